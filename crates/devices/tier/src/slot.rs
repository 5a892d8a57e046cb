//! The place of the fast disk: it is there, or it is away for a reason.
//!
//! Whatever fails on the fast disk makes it away. Nothing depends on it: the big disk has everything.

use crate::extent::Extent;
use crate::fast::{Fast, Piece};
use crate::layout::{BLOCK, BLOCK_BYTES};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::checksum::crc32c;
use onode_media::IoTag;
use onode_object::Result;

/// Copies that do not match their checksums until the fast disk is given up.
const MOST_MISMATCHES: u32 = 64;

/// The fast disk, if there is one.
#[derive(Default)]
pub struct FastSlot {
    fast: Option<Fast>,
    /// Why it is away, if it was there in this session.
    pub lost: Option<String>,
    mismatches: u32,
}

impl FastSlot {
    /// The fast disk takes its place.
    #[must_use]
    pub const fn of(fast: Fast) -> Self {
        Self { fast: Some(fast), lost: None, mismatches: 0 }
    }

    /// The fast disk.
    pub const fn get(&mut self) -> Option<&mut Fast> {
        self.fast.as_mut()
    }

    /// Whether it is there.
    #[must_use]
    pub const fn is_there(&self) -> bool {
        self.fast.is_some()
    }

    /// Does something with the fast disk. If that fails, the disk is away from then on.
    pub fn with<R>(&mut self, act: impl FnOnce(&mut Fast) -> Result<R>) -> Option<R> {
        match act(self.fast.as_mut()?) {
            Ok(result) => Some(result),
            Err(error) => {
                self.lose(format!("{error}"));
                None
            }
        }
    }

    /// The fast disk is not used any more.
    pub fn lose(&mut self, why: String) {
        self.fast = None;
        self.lost = Some(why);
    }

    /// Reads what it has of an extent into `out`; says of each block whether it is there and matches its checksum.
    pub fn read(&mut self, extent: &Extent, out: &mut [u8]) -> Vec<bool> {
        let mut have = vec![false; extent.sums.len()];
        let mut at = 0;
        while at < have.len() {
            let Some(fast) = self.fast.as_mut() else { break };
            let block = extent.block + at as u64;
            let found = fast.lookup(block, extent.born);
            let count = found.map_or(1, |(_, count)| count as usize).clamp(1, have.len() - at);
            let Some(part) = out.get_mut(at * BLOCK_BYTES..(at + count) * BLOCK_BYTES) else { break };
            let is_read = match found {
                Some((place, _)) => fast.disk().read_at(place * BLOCK, part, IoTag::Data).is_ok(),
                None => fast.read_collected(block, extent.born, part),
            };
            for (number, have) in have.iter_mut().enumerate().skip(at).take(count) {
                let bytes = out.get(number * BLOCK_BYTES..(number + 1) * BLOCK_BYTES).unwrap_or_default();
                let matches = is_read && extent.sums.get(number).is_some_and(|sum| crc32c(bytes) == *sum);
                *have = matches;
                if !matches && found.is_some() {
                    self.mismatch(extent.block + number as u64);
                }
            }
            at += count;
        }
        have
    }

    fn mismatch(&mut self, block: u64) {
        if let Some(fast) = self.fast.as_mut() {
            fast.damaged(block);
        }
        self.mismatches += 1;
        if self.mismatches >= MOST_MISMATCHES {
            self.lose(format!("{} copies did not match their checksums", self.mismatches));
        }
    }

    /// Content was read from the big disk: copies it if that is worth it.
    pub fn consider(&mut self, piece: &Piece, content: &[u8]) {
        for (part, content) in piece.parts().zip(content.chunks(Piece::MOST_BLOCKS as usize * BLOCK_BYTES)) {
            self.with(|fast| match fast.missed(&part) {
                Ok(()) => fast.promote(&part, content, false).map(|_| ()),
                Err(_) => Ok(()),
            });
        }
    }
}
