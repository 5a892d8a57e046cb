//! Files that were memory and memory that was a file (paper 2, section IV): on devices whose objects are memory a file is
//! made of a block, and becomes a block again, without a copy.
//!
//! The block itself is the device's business; here are the names.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::names::namespace::Removal;
use crate::state::State;
use crate::types::{Caller, FileHandle, FileType, InodeNumber};
use crate::volume::orphan::Ended;
use onode_base::{ErrorKind, Timestamp};
use onode_object::powers::{Content, MapObjects, Placed};
use onode_object::{Durability, ObjectId, Transaction};

/// A block of the device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it begins, in bytes from the start of the memory.
    pub address: u64,
    /// So many of its bytes count.
    pub bytes: u64,
    /// The bytes are durable already.
    pub is_durable: bool,
}

impl FileSystem {
    fn mapping(&self) -> Result<&dyn MapObjects> {
        let why = "the objects of this device are not memory";
        self.device.map_objects().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))
    }

    /// Makes a regular file of a block of memory: the bytes stay where they are, and the file is durable, name and content,
    /// when this returns.
    ///
    /// # Errors
    /// `NotSupported` on other devices, `Invalid` if there is no such block or it belongs to a file; as
    /// [`make_node`](Self::make_node).
    pub fn publish(
        &self,
        caller: &Caller,
        parent: InodeNumber,
        name: &[u8],
        permissions: u16,
        block: Block,
    ) -> Result<InodeNumber> {
        self.mapping()?;
        self.make_of_memory(caller, parent, name, block, permissions)
    }

    /// Removes a file and leaves its content as a block of memory, which is the caller's then.
    ///
    /// # Errors
    /// `NotSupported` on other devices; `Busy` if the file is open or has other names; `Invalid` if its content is not one
    /// block; as [`unlink`](Self::unlink).
    pub fn withdraw(&self, parent: InodeNumber, name: &[u8]) -> Result<Block> {
        self.withdraw_held(parent, name, None)
    }

    /// The same for somebody who has the file open: the handle is given back with it, and stays open if this fails.
    ///
    /// # Errors
    /// As [`withdraw`](Self::withdraw), but `Busy` only if others have it open; `Stale` if the handle is one of another file.
    pub fn withdraw_open(&self, parent: InodeNumber, name: &[u8], handle: FileHandle) -> Result<Block> {
        self.withdraw_held(parent, name, Some(handle))
    }

    fn withdraw_held(&self, parent: InodeNumber, name: &[u8], handle: Option<FileHandle>) -> Result<Block> {
        self.mapping()?;
        let content = self.remove_name(parent, name, Removal::ToMemory(handle))?;
        let content = content.ok_or_else(|| Error::new(ErrorKind::Invalid, "the file has no block"))?;
        Ok(Block { address: content.address, bytes: content.bytes, is_durable: true })
    }

    /// Has the content of a regular file lie in one block. The file stays what it is, times and attributes included; whoever
    /// knows where its blocks lay must ask anew.
    ///
    /// # Errors
    /// `NotSupported` on other devices; `NoSpace` if there is no such block beside those that hold it now; as
    /// [`read`](Self::read); the device's errors.
    pub fn gather(&self, number: InodeNumber) -> Result<()> {
        let mapping = self.mapping()?;
        self.check_writable()?;
        let state = &mut *self.lock();
        self.settle_content(state, number)?;
        mapping.gather(number.object())?;
        state.statistics.transactions += 1;
        self.node(state, number)?.device_changed();
        Ok(())
    }

    /// The object of a regular file as one that has a table of slots ([`MapObjects::fill_slot`]); the table is made if there is
    /// none.
    ///
    /// # Errors
    /// `NotSupported` on other devices; as [`read`](Self::read); the device's errors.
    pub fn table_of_slots(&self, number: InodeNumber) -> Result<ObjectId> {
        let mapping = self.mapping()?;
        self.check_writable()?;
        let state = &mut *self.lock();
        self.settle_content(state, number)?;
        mapping.make_slots(number.object())?;
        self.node(state, number)?.device_changed();
        Ok(number.object())
    }

    /// That a file is a regular one and the device has all of its bytes.
    fn settle_content(&self, state: &mut State, number: InodeNumber) -> Result<()> {
        self.check_regular(state, number)?;
        if self.node(state, number)?.is_as_on_device() { Ok(()) } else { self.write_back_file(state, number) }
    }

    /// Where the content of a file lies in the device's memory, all that was written so far included.
    ///
    /// # Errors
    /// `NotSupported` on other devices; `IsDirectory`, `Invalid` for a file without bytes; the device's errors.
    pub fn placement(&self, number: InodeNumber) -> Result<Vec<Placed>> {
        let mapping = self.mapping()?;
        let state = &mut *self.lock();
        self.check_regular(state, number)?;
        self.write_back_file(state, number)?;
        Ok(mapping.placement(number.object())?)
    }

    /// Commits the making of a file of a block.
    pub(crate) fn commit_block(
        &self,
        state: &mut State,
        transaction: Transaction,
        number: InodeNumber,
        block: Block,
    ) -> Result<()> {
        let Block { address, bytes, is_durable } = block;
        let content = Content { object: number.object(), address, bytes, is_durable };
        self.mapping()?.publish(transaction, &[content], Durability::Durable)?;
        state.statistics.transactions += 1;
        Ok(())
    }

    /// Whether a file may become memory now, open through nothing but one handle, if one is given; writes out what the device
    /// does not know of it.
    pub(crate) fn check_withdrawable(
        &self,
        state: &mut State,
        number: InodeNumber,
        handle: Option<FileHandle>,
    ) -> Result<()> {
        let is_other = |handle| state.handles.get(handle).is_none_or(|open| open.inode != number.0);
        if handle.is_some_and(is_other) {
            return Err(Error::of(
                ErrorKind::Stale,
                number,
                "the name leads to another file than the one that is open",
            ));
        }
        let node = self.node(state, number)?;
        if node.inode.file_type != FileType::Regular {
            return Err(Error::of(ErrorKind::Invalid, number, "only the bytes of a regular file can be memory"));
        }
        if node.inode.links > 1 {
            return Err(Error::of(ErrorKind::Busy, number, "the file has other names"));
        }
        let opens = node.opens;
        if state.lookups.of(number.0) > 0 || opens > u64::from(handle.is_some()) {
            return Err(Error::of(ErrorKind::Busy, number, "the file is in use"));
        }
        self.write_back_file(state, number)
    }

    /// Commits the removal of a file whose block stays.
    pub(crate) fn commit_withdrawal(
        &self,
        state: &mut State,
        number: InodeNumber,
        transaction: Transaction,
        ended: Ended,
    ) -> Result<Content> {
        if ended != Ended::Removed {
            return Err(Error::of(ErrorKind::Busy, number, "the file is in use"));
        }
        let content = self.mapping()?.withdraw(transaction, number.object())?;
        state.statistics.transactions += 1;
        Ok(content)
    }

    /// Takes the last name of a file that becomes memory; a handle that it is open through is closed with it, or with nothing.
    pub(crate) fn take_link_to_memory(
        &self,
        state: &mut State,
        number: InodeNumber,
        handle: Option<FileHandle>,
        now: Timestamp,
        mut transaction: Transaction,
    ) -> Result<Content> {
        self.check_withdrawable(state, number, handle)?;
        let held = u64::from(handle.is_some());
        self.node(state, number)?.opens -= held;
        let taken = self.take_link(state, number, now, &mut transaction);
        let content = taken.and_then(|ended| self.commit_withdrawal(state, number, transaction, ended));
        match (&content, handle) {
            (Ok(_), Some(handle)) => _ = state.handles.close(handle),
            (Err(_), Some(_)) => {
                if let Some(node) = state.nodes.get_mut(&number.0) {
                    node.opens += held;
                }
            }
            (_, None) => {}
        }
        content
    }
}
