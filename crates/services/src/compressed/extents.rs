//! Where an object has data: the ranges of the wrapped device, with those of frames replaced by
//! what the frames hold.

use crate::compressed::Compressed;
use crate::compressed::map::{CHUNK_BYTES, Group};
use crate::ranges::Ranges;
use onode_object::{ObjectDevice, ObjectId, Result};
use std::ops::Range;

/// Ranges that one call asks the wrapped device for.
const FETCHED: usize = 64;

impl<D: ObjectDevice + ?Sized> Compressed<D> {
    /// The extents of an object that has compressed chunks.
    pub(crate) fn extents_mixed(
        &self,
        object: ObjectId,
        head: &Group,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>> {
        let size = self.inner().stat(object)?.size.saturating_sub(head.hidden());
        let mut found = Ranges::default();
        // The frame of a chunk may end before the offset, and what it holds begin behind it.
        let mut from = offset - offset % CHUNK_BYTES;
        if from == 0 && head.entry(0).is_inline() {
            // The wrapped device has nothing there.
            self.add_data(object, 0..1, &mut found)?;
            from = CHUNK_BYTES;
            found.remove(0, offset);
        }
        // One more than wanted: the last may be the beginning of a longer one.
        while found.count() <= limit && from < size {
            let stored = self.inner().extents(object, from, FETCHED)?;
            let Some((start, length)) = stored.last() else { break };
            let until = start + length;
            for (start, length) in stored {
                self.add_data(object, start.max(from)..start + length, &mut found)?;
            }
            found.remove(0, offset);
            from = until.max(from + 1);
        }
        Ok(found.within(offset, size).take(limit).map(|(start, end)| (start, end - start)).collect())
    }

    /// Adds what lies in a range in which the wrapped device has data.
    fn add_data(&self, object: ObjectId, stored: Range<u64>, found: &mut Ranges) -> Result<()> {
        let mut at = stored.start;
        while at < stored.end {
            let chunk = at / CHUNK_BYTES;
            let (base, next) = (chunk * CHUNK_BYTES, (chunk + 1) * CHUNK_BYTES);
            let entry = self.entry(object, chunk)?;
            if entry.is_compressed() {
                let mut data = Ranges::of(0, entry.valid());
                for (from, until) in self.holes(object, chunk, entry)?.iter() {
                    data.remove(from, until);
                }
                data.iter().for_each(|(from, until)| found.add(base + from, base + until));
            } else {
                found.add(at, stored.end.min(next));
            }
            at = next;
        }
        Ok(())
    }

    /// Which bytes of a chunk that is not compressed hold data below `size`, from its start.
    pub(crate) fn data_of_plain(&self, object: ObjectId, chunk: u64, size: u64) -> Result<Ranges> {
        let base = chunk * CHUNK_BYTES;
        let end = (base + CHUNK_BYTES).min(size);
        let mut data = Ranges::default();
        let mut from = base;
        while from < end {
            let stored = self.inner().extents(object, from, FETCHED)?;
            let Some((start, length)) = stored.last() else { break };
            let until = start + length;
            for (start, length) in stored {
                data.add(start.clamp(base, end) - base, (start + length).clamp(base, end) - base);
            }
            from = until.max(from + 1);
        }
        Ok(data)
    }
}
