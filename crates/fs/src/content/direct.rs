//! Short ways for what is asked most: they mean the same as the long ones.
//!
//! On a device whose objects are memory a file in one block is read where it lies, and overwritten
//! there if the device's mode lets content change without a transaction. A write that is durable at
//! its return becomes one transaction at once, without the write-clustering cache in between.

use crate::content::data::drop_privileges;
use crate::content::write_back::SHORT_WRITE_BYTES;
use crate::error::Result;
use crate::file_system::FileSystem;
use crate::inodes::access;
use crate::options::AccessTimes;
use crate::state::{Node, Place, State};
use crate::types::{Caller, InodeNumber};
use onode_base::ErrorKind;
use onode_object::powers::MapObjects;
use onode_object::{SyncScope, Transaction};

/// More than that is read without the lock.
const MOST_IN_PLACE_BYTES: usize = 64 << 10;
/// More than that is not overwritten at once on a full device.
const MOST_WHEN_FULL_BYTES: usize = 64 << 10;

/// Where the bytes of a file lie that are as the device has them.
fn block_of(mapping: &dyn MapObjects, number: InodeNumber, node: &mut Node) -> Option<u64> {
    if node.place == Place::Unknown {
        node.place = mapping.whole(number.object(), node.size).map_or(Place::Scattered, Place::Block);
    }
    match node.place {
        Place::Block(address) => Some(address),
        Place::Unknown | Place::Scattered => None,
    }
}

impl FileSystem {
    /// Reads a file that lies in one block of memory; `None` if it takes the long way.
    pub(crate) fn read_in_place(
        &self,
        state: &mut State,
        number: InodeNumber,
        offset: u64,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let times_stay = self.options.access_times == AccessTimes::Never || self.options.read_only;
        let mapping = self.device.map_objects().filter(|_| times_stay && buffer.len() <= MOST_IN_PLACE_BYTES)?;
        let seen = state.seen;
        let node = state.nodes.get_mut(&number.0).filter(|node| node.seen == seen && node.is_as_on_device())?;
        let node = Some(node).filter(|node| offset < node.size)?;
        let address = block_of(mapping, number, node)?;
        node.used = true;
        let length = usize::try_from(node.size - offset).unwrap_or(usize::MAX).min(buffer.len());
        mapping.look(address + offset, &mut buffer[..length]).ok()?;
        state.statistics.read_bytes += length as u64;
        Some(length)
    }

    /// Whether a write need not wait for, or be put in order with, anything else of the file.
    fn goes_directly(&self, node: &Node, data: &[u8]) -> bool {
        node.is_as_on_device() && !node.rewritten && data.len() <= self.transaction_bytes
    }

    /// Overwrites bytes of a file that lies in one block of memory; `None` if it takes another way.
    pub(crate) fn overwrite_in_place(
        &self,
        state: &mut State,
        caller: &Caller,
        number: InodeNumber,
        offset: u64,
        data: &[u8],
    ) -> Result<Option<usize>> {
        let Some(mapping) = self.device.map_objects().filter(|mapping| mapping.overwrites()) else { return Ok(None) };
        if !self.writes_through() || data.is_empty() {
            return Ok(None);
        }
        let node = self.node(state, number)?;
        let is_inside = offset.checked_add(data.len() as u64).is_some_and(|end| end <= node.size);
        if !is_inside || !self.goes_directly(node, data) {
            return Ok(None);
        }
        let Some(address) = block_of(mapping, number, node) else { return Ok(None) };
        mapping.overwrite(address + offset, data)?;
        let now = self.content_time(&node.inode);
        (node.inode.modified, node.inode.changed) = (now, now);
        drop_privileges(&mut node.inode, caller);
        node.inode_dirty = true;
        if node.dirty_since.is_none() {
            state.mark_dirty(number.0, now);
        }
        state.statistics.written_bytes += data.len() as u64;
        state.statistics.changes += 1;
        Ok(Some(data.len()))
    }

    /// Writes to a file that has nothing in the cache; `None` if it takes the long way.
    pub(crate) fn write_directly(
        &self,
        state: &mut State,
        caller: &Caller,
        number: InodeNumber,
        offset: u64,
        data: &[u8],
    ) -> Result<Option<usize>> {
        let seen = state.seen;
        let Some(node) = state.nodes.get_mut(&number.0) else { return Ok(None) };
        if node.seen != seen || !self.goes_directly(node, data) {
            return Ok(None);
        }
        node.used = true;
        let length = match self.reserve(state, number, offset, data.len()) {
            Ok(length) => length,
            Err(error) if error.kind == ErrorKind::NoSpace => {
                return self.write_when_full(state, caller, number, offset, data);
            }
            Err(error) => return Err(error),
        };
        self.commit_write(state, caller, number, offset, &data[..length])
    }

    /// When nothing can be set aside any more: writes at once, as much as the device takes, over
    /// bytes of a file that it has, or into space that it gives only to data in hand. What is
    /// written over needs space only until it is given up, and the device keeps some for that.
    /// `None` if there is no room, or others have set some aside: what is kept of what is written
    /// over would take of that.
    pub(crate) fn write_when_full(
        &self,
        state: &mut State,
        caller: &Caller,
        number: InodeNumber,
        offset: u64,
        data: &[u8],
    ) -> Result<Option<usize>> {
        if state.set_aside_by_others() > 0 {
            return Ok(None);
        }
        let mut length = data.len().min(MOST_WHEN_FULL_BYTES);
        // The device was told of the cut alone, because space ran short: after a close only a sync
        // keeps the file from being found empty.
        let is_cut = state.nodes.get(&number.0).is_some_and(|node| node.rewritten && node.device_size == 0);
        let is_given_at_once = || self.device.space().available > self.device.promisable();
        if !self.is_stored(state, number, offset, length)? && !is_given_at_once() {
            return Ok(None);
        }
        while length > 0 {
            match self.commit_write(state, caller, number, offset, &data[..length]) {
                Err(error) if error.kind == ErrorKind::NoSpace => {
                    length = length / 2 / SHORT_WRITE_BYTES * SHORT_WRITE_BYTES;
                }
                Ok(Some(written)) if is_cut => {
                    self.device.sync(SyncScope::Object(number.object()))?;
                    return Ok(Some(written));
                }
                done => return done,
            }
        }
        Ok(None)
    }

    /// Writes to a file that has nothing in the cache, in one transaction; `None` if it has.
    fn commit_write(
        &self,
        state: &mut State,
        caller: &Caller,
        number: InodeNumber,
        offset: u64,
        data: &[u8],
    ) -> Result<Option<usize>> {
        let length = data.len();
        let Some(node) = state.nodes.get_mut(&number.0).filter(|node| node.is_as_on_device()) else { return Ok(None) };
        let mut inode = node.inode;
        let now = self.content_time(&inode);
        (inode.modified, inode.changed) = (now, now);
        drop_privileges(&mut inode, caller);
        let object = number.object();
        let mut transaction = Transaction { mutations: Vec::with_capacity(3) };
        transaction.write(object, offset, data.to_vec());
        let accessed = access::take_back(&mut transaction, object, node, &inode);
        self.inodes.store(&mut transaction, object, &inode);
        self.commit_promised(state, transaction)?;
        if let Some(node) = state.nodes.get_mut(&number.0) {
            node.inode = inode;
            node.size = node.size.max(offset + length as u64);
            (node.device_size, node.valid) = (node.size, node.size);
            node.device_accessed = accessed;
            node.device_changed();
            if let Some(mapping) = self.device.map_objects() {
                // Now the way there is short; what is written is often read or overwritten next.
                let _ = block_of(mapping, number, node);
            }
            if node.dirty_since.is_some() {
                state.clean(number.0);
            }
        }
        state.statistics.written_bytes += length as u64;
        state.statistics.written_back_bytes += length as u64;
        state.statistics.changes += 1;
        Ok(Some(length))
    }
}
