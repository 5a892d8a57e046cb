//! The content of an object brought together in one block: nothing about the object changes but
//! where it lies.
//!
//! A program that looks at an object as memory needs it in one piece. Names, attributes, size and
//! times are the file system's and know nothing of blocks, so moving the bytes is all there is to
//! do.

use crate::commit::change::Change;
use crate::log::item::Item;
use crate::medium::errors::no_space;
use onode_media::Pmem;
use onode_object::{ObjectId, Result};

/// Bytes are copied in pieces of at most so many.
const PIECE_BYTES: u64 = 1 << 20;

impl<P: Pmem> Change<'_, P> {
    /// Moves the content of an object to one block of its size, in which holes are zeros.
    pub(crate) fn gather(&mut self, object: ObjectId) -> Result<()> {
        let size = self.size(object)?;
        let wanted = size.max(1);
        let address = self.take(wanted).ok_or_else(|| no_space(format!("no block of {wanted} bytes is left")))?;
        let length = self.store.blocks().usable_bytes(wanted);
        let mut at = 0;
        while at < size {
            let next = self.extent_at(object, at)?.filter(|extent| extent.offset < size);
            match next {
                Some(extent) if extent.offset <= at => {
                    let part = (extent.end().min(size) - at).min(PIECE_BYTES);
                    self.copy(extent.address + (at - extent.offset), address + at, part)?;
                    at += part;
                }
                _ => {
                    let hole_end = next.map_or(size, |extent| extent.offset);
                    self.zero_now(address + at, hole_end - at)?;
                    at = hole_end;
                }
            }
        }
        while let Some(extent) = self.extent_at(object, 0)? {
            self.unmap(object, extent.offset)?;
            self.give_up(extent.address, extent.length, false);
        }
        self.lists.batch.push(&Item::NoExtent { object, offset: 0, length: u64::MAX });
        self.map(object, 0, address, length)
    }
}
