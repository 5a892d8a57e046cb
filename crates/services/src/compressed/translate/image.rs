//! What is stored of a chunk with new bytes: a frame, all of it plain, or only the new bytes beside
//! what is there.
//!
//! A chunk becomes a frame if it has no hole and is whole, as far as the object goes. One that was
//! plain and is appended to stays plain until it is full, so that a log is not compressed anew with
//! each line.

use crate::compressed::Compressed;
use crate::compressed::chunk::{Algorithm, encode};
use crate::compressed::map::{CHUNK_BYTES, Entry};
use crate::compressed::policy::{Wish, is_compressed_format};
use crate::life::{Life, Patch};
use crate::ranges::Ranges;
use onode_object::validate::REPLACED_BYTES_MAX;
use onode_object::{ErrorKind, ObjectDevice, Result};

/// The bytes of a chunk as they are after the transaction.
struct Image {
    bytes: Vec<u8>,
    /// Where it is no hole.
    data: Ranges,
    /// What it was compressed with.
    before: Option<Algorithm>,
}

/// What becomes of a chunk.
pub(super) enum Outcome {
    /// A frame, and nothing else in the chunk's range.
    Frame(Vec<u8>),
    /// These bytes, and nothing else in the chunk's range.
    Plain(Vec<(u64, Vec<u8>)>),
    /// All of a small object in an attribute, and nothing in the chunk's range: so bytes that were
    /// there can be replaced without space (N7), which plain ones in a hole cannot.
    Inline(Vec<u8>),
    /// These bytes over what is there, which is plain.
    Over(Vec<(u64, Vec<u8>)>),
}

impl<D: ObjectDevice + ?Sized> Compressed<D> {
    /// What becomes of a chunk with new bytes that is as `entry` says. `is_tried` says whether it
    /// may be compressed that was not.
    pub(super) fn outcome(
        &self,
        life: &Life<Wish>,
        chunk: u64,
        patch: &Patch,
        entry: Entry,
        is_tried: bool,
    ) -> Result<Outcome> {
        let end = life.end_in(chunk);
        if entry.is_compressed()
            && (chunk, life.size) == (0, life.size_before)
            && end <= REPLACED_BYTES_MAX as u64
            && patch.fresh().covers(0, end)
        {
            return Ok(Outcome::Inline(patch.get(0, end).to_vec()));
        }
        let gone = life.cleared_of(chunk);
        let is_left = entry.is_compressed() && !gone.covers(0, entry.valid());
        let pieces = |data: &Ranges, get: &dyn Fn(u64, u64) -> Vec<u8>| {
            data.iter().map(|(start, end)| (start, get(start, end))).collect::<Vec<_>>()
        };
        let image = if patch.fresh().covers(0, end) {
            Some(Image { bytes: patch.get(0, end).to_vec(), data: Ranges::of(0, end), before: None })
        } else if is_left {
            Some(self.compressed_image(life, chunk, entry, &gone)?)
        } else if is_tried && !entry.is_compressed() && !life.is_new && patch.fresh().covers(CHUNK_BYTES - 1, end) {
            match self.plain_image(life, chunk, &gone) {
                // New bytes beside damaged ones are stored as they are (N6).
                Err(error) if matches!(error.kind, ErrorKind::Corrupt | ErrorKind::Media) => None,
                image => image?,
            }
        } else {
            None
        };
        let Some(mut image) = image else {
            let new = pieces(patch.fresh(), &|start, end| patch.get(start, end).to_vec());
            return Ok(if entry.is_compressed() { Outcome::Plain(new) } else { Outcome::Over(new) });
        };
        image.bytes.resize(end as usize, 0);
        for (start, end) in patch.fresh().iter() {
            image.bytes[start as usize..end as usize].copy_from_slice(patch.get(start, end));
            image.data.add(start, end);
        }
        let is_settled = patch.fresh().covers(0, end) || end == CHUNK_BYTES || (is_left && entry.valid() == end);
        let wished = life.wish.algorithm.filter(|_| is_tried);
        if is_settled
            && image.data.covers(0, end)
            && let Some(algorithm) = wished.or(image.before)
            && !(life.wish.tries_first && chunk == 0 && is_compressed_format(&image.bytes))
            && let Some(frame) = encode(algorithm, &image.bytes, self.unit())
        {
            return Ok(Outcome::Frame(frame));
        }
        if entry.is_compressed() {
            let all = pieces(&image.data, &|start, end| image.bytes[start as usize..end as usize].to_vec());
            return Ok(Outcome::Plain(all));
        }
        Ok(Outcome::Over(pieces(patch.fresh(), &|start, end| patch.get(start, end).to_vec())))
    }

    /// What is left of a compressed chunk.
    fn compressed_image(&self, life: &Life<Wish>, chunk: u64, entry: Entry, gone: &Ranges) -> Result<Image> {
        let loaded = self.load(life.object, chunk, entry)?;
        let mut data = Ranges::of(0, entry.valid());
        let mut bytes = loaded.plain;
        loaded.holes.iter().for_each(|(start, end)| data.remove(start, end));
        for (start, end) in gone.within(0, entry.valid()) {
            data.remove(start, end);
            bytes[start as usize..end as usize].fill(0);
        }
        Ok(Image { bytes, data, before: loaded.algorithm })
    }

    /// What is left of a plain chunk; `None` if a hole is left in it that nothing new fills.
    fn plain_image(&self, life: &Life<Wish>, chunk: u64, gone: &Ranges) -> Result<Option<Image>> {
        let mut data = self.data_of_plain(life.object, chunk, life.size_before)?;
        gone.iter().for_each(|(start, end)| data.remove(start, end));
        let mut filled = data.clone();
        if let Some(patch) = life.patches.get(&chunk) {
            patch.fresh().iter().for_each(|(start, end)| filled.add(start, end));
        }
        if !filled.covers(0, CHUNK_BYTES) {
            return Ok(None);
        }
        let mut bytes = vec![0; CHUNK_BYTES as usize];
        let count = self.inner().read(life.object, chunk * CHUNK_BYTES, &mut bytes)?;
        bytes[count..].fill(0);
        Ok(Some(Image { bytes, data, before: None }))
    }
}
