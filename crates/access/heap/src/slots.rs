//! Slots: durable references to blocks that need no name of their own.
//!
//! A file in `/.slots` has the name of a table, and goes with it. Filling a slot is a store of one
//! word, flushed and fenced: neither a name nor an inode nor a line of the log. After whatever
//! happens a slot holds the block before or the block after, and no block is lost or held twice.

use crate::block::{Block, BlockError};
use crate::caller::owner;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::whole::check_name;
use onode_base::ErrorKind;
use onode_fs::{Follow, OpenFlags};
use onode_object::ObjectId;
use onode_object::powers::{Content, MapObjects, SLOT_BYTES_MAX, SLOTS};
use std::sync::Arc;

const ROOM: &[u8] = b"/.slots";

/// A table of slots, open in this process.
pub struct Slots {
    heap: Heap,
    table: ObjectId,
    handle: onode_fs::FileHandle,
}

impl Slots {
    /// So many slots a table has.
    pub const COUNT: u64 = SLOTS;
    /// The most bytes of a block in a slot.
    pub const MOST_BYTES: u64 = SLOT_BYTES_MAX;

    fn memory(&self) -> Result<&dyn MapObjects> {
        let memory = self.heap.files().device().map_objects();
        memory.ok_or_else(|| Error::new(ErrorKind::NotSupported, "the objects of this device are not memory"))
    }

    fn failed(slot: u64, error: onode_object::Error) -> Error {
        Error::of_files(&format!("cannot change slot {slot}"), &error.into())
    }

    /// Has a slot hold a block, in place of the block that it held, which is free then. The block's
    /// first bytes, as many as count, and the slot are durable on return; with `is_durable` the
    /// bytes are the caller's business and only the slot is made so.
    ///
    /// # Errors
    /// `Invalid` for a slot that there is not or a block of more than 4 GiB, `NoSpace`, ...: the
    /// block comes back.
    pub fn fill(&self, slot: u64, block: Block, is_durable: bool) -> std::result::Result<(), BlockError> {
        if !Arc::ptr_eq(&block.shared, self.heap.shared()) {
            return Err(BlockError::new(block, Error::new(ErrorKind::CrossDevice, "the block is one of another heap")));
        }
        let content = Content { object: self.table, address: block.address, bytes: block.bytes as u64, is_durable };
        let filled = self
            .memory()
            .and_then(|memory| memory.fill_slot(&content, slot).map_err(|error| Self::failed(slot, error)));
        match filled {
            Ok(()) => {
                block.leave();
                Ok(())
            }
            Err(error) => Err(BlockError::new(block, error)),
        }
    }

    /// Takes the block out of a slot: the program's own again, whole.
    ///
    /// # Errors
    /// `NotFound` if the slot is empty; `Invalid`; those of the device.
    pub fn take(&self, slot: u64) -> Result<Block> {
        let block = self.memory()?.take_slot(self.table, slot).map_err(|error| Self::failed(slot, error))?;
        Ok(Block { shared: Arc::clone(self.heap.shared()), address: block.address, bytes: block.bytes as usize })
    }

    /// Where the block of a slot lies, in bytes from the start of the memory; `None` if the slot is
    /// empty.
    ///
    /// # Errors
    /// `Invalid` for a slot that there is not.
    pub fn address(&self, slot: u64) -> Result<Option<u64>> {
        if slot >= Self::COUNT {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("there is no slot {slot}: a table has {}", Self::COUNT),
            ));
        }
        Ok(self.memory()?.slot(self.table, slot).map(|(address, _)| address))
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // It was opened for reading only: nothing is left to be told.
        let _ = self.heap.files().release(self.handle);
    }
}

impl std::fmt::Debug for Slots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slots").field("table", &self.table).finish_non_exhaustive()
    }
}

impl Heap {
    /// Opens the table of slots with that name; makes an empty one if there is none.
    ///
    /// # Errors
    /// `Invalid` for a name that cannot be one; `NoSpace`; those of the device.
    pub fn slots(&self, name: &[u8]) -> Result<Slots> {
        check_name("a table of slots", name)?;
        let files = self.files();
        let owner = owner();
        let path = [ROOM, b"/", name].concat();
        let failed = |error: onode_fs::Error| Error::of_files("cannot open a table of slots", &error);
        let table = match files.resolve(&path, Follow::Yes) {
            Err(error) if error.kind == ErrorKind::NotFound => {
                self.make_directories(ROOM)?;
                let (parent, name) = files.resolve_parent(&path).map_err(failed)?;
                match files.create(&owner, parent, name, 0o600) {
                    Ok(made) => {
                        files.forget(made.inode, 1);
                        made.inode
                    }
                    // Somebody else was faster.
                    Err(error) if error.kind == ErrorKind::Exists => {
                        files.resolve(&path, Follow::Yes).map_err(failed)?
                    }
                    Err(error) => return Err(failed(error)),
                }
            }
            found => found.map_err(failed)?,
        };
        let handle = files.open(&owner, table, OpenFlags::default()).map_err(failed)?;
        let slots = files.table_of_slots(table).map(|object| Slots { heap: self.clone(), table: object, handle });
        if slots.is_err() {
            // It was opened for reading only: nothing is left to be told.
            let _ = files.release(handle);
        }
        slots.map_err(failed)
    }
}
