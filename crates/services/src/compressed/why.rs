//! Whether content would be compressed if it were written now, and why, for people who ask.

use crate::compressed::Compressed;
use crate::compressed::chunk::Algorithm;
use crate::compressed::map::CHUNK_BYTES;
use crate::compressed::policy::{Wish, is_compressed_format};
use onode_object::powers::Decision;
use onode_object::{Compression, Hints, ObjectDevice, ObjectId, ObjectKind, ObjectStat, Result};

/// What formats are known by.
const START_BYTES: usize = 16;

impl<D: ObjectDevice + ?Sized> Compressed<D> {
    /// What the hints of an object lead to, here and below.
    pub(crate) fn decided(&self, object: ObjectId) -> Result<Vec<Decision>> {
        let mut all = self.inner().decisions(object)?;
        let stat = self.stat(object)?;
        if matches!(stat.hints.kind, ObjectKind::Data | ObjectKind::Unknown) {
            let wish = self.wish(&stat.hints);
            let (choice, why) = match wish.algorithm {
                None => ("none", self.why_not(&stat.hints)),
                Some(algorithm) => self.chosen(object, &stat, wish, algorithm)?,
            };
            all.insert(0, Decision::new("compression", choice, why));
        }
        Ok(all)
    }

    /// Who said how content is compressed.
    fn said(&self, hints: &Hints) -> String {
        match hints.compression {
            Compression::Auto => format!("by compress={} of the mount", self.mode().name()),
            hint => format!("by its hint compress={}", hint.name()),
        }
    }

    fn why_not(&self, hints: &Hints) -> String {
        let is_wanted = Wish::of(self.mode(), hints).algorithm.is_some();
        if is_wanted { "while other processes use the memory nothing is".into() } else { self.said(hints) }
    }

    fn chosen(
        &self,
        object: ObjectId,
        stat: &ObjectStat,
        wish: Wish,
        algorithm: Algorithm,
    ) -> Result<(&'static str, String)> {
        let said = self.said(&stat.hints);
        let unit = self.unit() as u64;
        if stat.size > 0 && stat.size <= unit {
            return Ok(("none", format!("{said}, but {unit} bytes or less take no fewer")));
        }
        let name = match algorithm {
            Algorithm::Lz4 => "LZ4",
            Algorithm::Zstd => "Zstandard",
        };
        if !wish.tries_first {
            return Ok((name, said));
        }
        let mut start = [0; START_BYTES];
        let count = self.read(object, 0, &mut start)?;
        if is_compressed_format(start.get(..count).unwrap_or_default()) {
            return Ok(("none", format!("{said}: it begins as a format that is compressed already")));
        }
        let kept = match algorithm {
            Algorithm::Zstd => ", in few bytes as it is to be kept",
            Algorithm::Lz4 => "",
        };
        let is_plain = stat.size >= CHUNK_BYTES && !self.entry(object, 0)?.is_compressed();
        if is_plain {
            return Ok(("none", format!("{said}: its first 64 KiB do not shrink, or were written before")));
        }
        Ok((name, format!("{said}, as long as its first 64 KiB shrink{kept}")))
    }
}
