//! The bytes of files: read, write, links' targets.
//!
//! Writes go to the write-clustering cache; reads lay what is in the cache over what the device
//! has. The lock is not held while the device reads.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::inodes::access;
use crate::inodes::inode::Inode;
use crate::limits::{GROUP_EXECUTE, SET_GROUP, SET_USER};
use crate::options::AccessTimes;
use crate::state::State;
use crate::types::{Caller, FileType, InodeNumber};
use core::ops::Range;
use onode_base::{ErrorKind, Timestamp};
use onode_object::Transaction;

const SECONDS_A_DAY: i64 = 86_400;

impl FileSystem {
    /// Reads into `buffer` from `offset`; returns how many bytes there were before the end.
    ///
    /// # Errors
    /// `IsDirectory`, `Invalid` for a file without bytes; `Corrupt` if bytes of the range are lost.
    pub fn read(&self, number: InodeNumber, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.read_renewing(number, offset, buffer, true)
    }

    /// [`read`](Self::read) for who wants to leave the access time as it is (`O_NOATIME`).
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_noatime(&self, number: InodeNumber, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.read_renewing(number, offset, buffer, false)
    }

    fn read_renewing(&self, number: InodeNumber, offset: u64, buffer: &mut [u8], renews: bool) -> Result<usize> {
        let (length, valid, gaps) = {
            let state = &mut *self.lock();
            if let Some(length) = self.read_in_place(state, number, offset, buffer) {
                return Ok(length);
            }
            self.check_regular(state, number)?;
            if renews {
                self.touch_accessed(state, number);
            }
            let node = self.node(state, number)?;
            let length = usize::try_from(node.size.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
            let gaps = if length == 0 { Vec::new() } else { node.dirty.read(offset, &mut buffer[..length]) };
            let valid = node.valid;
            node.is_size_kept = self.changes_below.is_some();
            state.statistics.read_bytes += length as u64;
            (length, valid, gaps)
        };
        for gap in gaps {
            let start = offset + gap.start as u64;
            let there = usize::try_from(valid.saturating_sub(start)).unwrap_or(usize::MAX).min(gap.len());
            let piece = &mut buffer[gap];
            let got = if there > 0 { self.device.read(number.object(), start, &mut piece[..there])? } else { 0 };
            piece[got.min(there)..].fill(0);
        }
        Ok(length)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `Invalid` if it is none; the device's errors.
    pub fn read_link(&self, number: InodeNumber) -> Result<Vec<u8>> {
        let state = &mut *self.lock();
        let node = self.node(state, number)?;
        if node.inode.file_type != FileType::SymbolicLink || node.removed {
            return Err(Error::of(ErrorKind::Invalid, number, "no symbolic link"));
        }
        let mut target = vec![0; node.size as usize];
        self.touch_accessed(state, number);
        let length = self.device.read(number.object(), 0, &mut target)?;
        target.truncate(length);
        Ok(target)
    }

    /// Writes `data` at `offset`; returns how many bytes were taken, fewer only if space ran out.
    ///
    /// # Errors
    /// `NoSpace` if nothing fits, `TooLarge`, `ReadOnly`; as [`read`](Self::read).
    pub fn write(&self, caller: &Caller, number: InodeNumber, offset: u64, data: &[u8]) -> Result<usize> {
        self.check_writable()?;
        self.beside_others(|| self.write_locked(&mut self.lock(), caller, number, offset, data))
    }

    /// Writes `data` behind the last byte there is, whoever wrote that; as [`write`](Self::write).
    /// Returns where it lies.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn append(&self, caller: &Caller, number: InodeNumber, data: &[u8]) -> Result<Range<u64>> {
        self.check_writable()?;
        self.beside_others(|| {
            let state = &mut *self.lock();
            let end = self.node(state, number)?.size;
            let written = self.write_locked(state, caller, number, end, data)?;
            Ok(end..end + written as u64)
        })
    }

    fn write_locked(
        &self,
        state: &mut State,
        caller: &Caller,
        number: InodeNumber,
        offset: u64,
        data: &[u8],
    ) -> Result<usize> {
        if let Some(written) = self.overwrite_in_place(state, caller, number, offset, data)? {
            return Ok(written);
        }
        self.check_regular(state, number)?;
        if data.is_empty() {
            return Ok(0);
        }
        self.check_unlocked(state, number)?;
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > Transaction::MAX_OBJECT_BYTES) {
            return Err(Error::of(ErrorKind::TooLarge, number, ""));
        }
        self.admit_size(state, caller, number, offset + data.len() as u64)?;
        if self.writes_through()
            && let Some(written) = self.write_directly(state, caller, number, offset, data)?
        {
            return Ok(written);
        }
        let length = match self.reserve(state, number, offset, data.len()) {
            Ok(length) => length,
            Err(error) if error.kind == ErrorKind::NoSpace => {
                return self.write_when_full(state, caller, number, offset, data)?.ok_or(error);
            }
            Err(error) => return Err(error),
        };
        self.make_cache_room(state, length);
        let node = self.node(state, number)?;
        let before = node.inode;
        let now = self.content_time(&before);
        let held = node.dirty.bytes();
        let contiguous = node.dirty.write(offset, &data[..length]);
        let grown = node.dirty.bytes() - held;
        node.size = node.size.max(offset + length as u64);
        (node.inode.modified, node.inode.changed) = (now, now);
        drop_privileges(&mut node.inode, caller);
        node.inode_dirty = true;
        // What replaces an old content goes out whole, if one transaction can carry it.
        let whole_bytes = if node.rewritten { self.transaction_bytes } else { 0 };
        let stream_bytes = self.options.stream_bytes.max(whole_bytes);
        state.dirty_bytes += grown;
        state.statistics.dropped_bytes += (length - grown) as u64;
        state.statistics.written_bytes += length as u64;
        state.statistics.changes += 1;
        state.mark_dirty(number.0, now);
        state.promise(self.device.as_ref(), number.0);
        if self.keeps_nothing_back() {
            self.write_through(state, number, before)?;
        } else if contiguous >= stream_bytes
            && let Err(error) = self.write_back_file(state, number)
        {
            self.remember_failure(state, number, error.kind);
        }
        Ok(length)
    }

    /// Writes a file out at once; if that fails the change never happened.
    pub(crate) fn write_through(&self, state: &mut State, number: InodeNumber, before: Inode) -> Result<()> {
        let result = self.write_back_file(state, number);
        if result.is_err() {
            state.clean(number.0);
            if let Some(node) = state.nodes.get_mut(&number.0) {
                node.inode = before;
                node.size = node.device_size;
                node.valid = node.device_size;
            }
        }
        result
    }

    /// That the file has bytes and they are there.
    pub(crate) fn check_regular(&self, state: &mut State, number: InodeNumber) -> Result<()> {
        let node = self.node(state, number)?;
        match node.inode.file_type {
            FileType::Regular if node.removed => Err(Error::of(ErrorKind::Stale, number, "the file is gone")),
            FileType::Regular => Ok(()),
            FileType::Directory => Err(Error::of(ErrorKind::IsDirectory, number, "")),
            FileType::SymbolicLink
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice => Err(Error::of(ErrorKind::Invalid, number, "the file has no bytes")),
        }
    }

    /// Renews the access time if the mount wants it.
    pub(crate) fn touch_accessed(&self, state: &mut State, number: InodeNumber) {
        if self.options.access_times == AccessTimes::Never || self.is_read_only() {
            return;
        }
        let now = self.now();
        let relative = self.options.access_times == AccessTimes::Relative;
        let Some(node) = state.nodes.get_mut(&number.0) else { return };
        if node.removed || (relative && !is_access_time_due(&node.inode, now)) || node.inode.accessed == now {
            return;
        }
        let is_apart = access::is_apart(&node.inode) && access::device_time(now) != 0;
        // A read is not refused for it.
        if !is_apart && !self.can_wait(state, number, 0) {
            return;
        }
        let Some(node) = state.nodes.get_mut(&number.0) else { return };
        node.inode.accessed = now;
        node.access_dirty |= is_apart;
        node.inode_dirty |= !is_apart;
        state.mark_dirty(number.0, now);
        state.promise(self.device.as_ref(), number.0);
    }
}

fn is_access_time_due(inode: &Inode, now: Timestamp) -> bool {
    inode.accessed <= inode.modified
        || inode.accessed <= inode.changed
        || now.seconds.saturating_sub(inode.accessed.seconds) >= SECONDS_A_DAY
}

/// A write by anyone but the super-user takes the setuid and setgid bits away.
pub(crate) fn drop_privileges(inode: &mut Inode, caller: &Caller) {
    if caller.uid != 0 {
        drop_set_bits(inode, caller);
    }
}

/// Clears setuid, and setgid of a program. Where the group may not execute, which once meant
/// mandatory locks, those who may set the bit leave it.
pub(crate) fn drop_set_bits(inode: &mut Inode, caller: &Caller) {
    inode.permissions &= !SET_USER;
    if inode.permissions & GROUP_EXECUTE != 0 || !caller.may_set_group_bit(inode.gid) {
        inode.permissions &= !SET_GROUP;
    }
}
