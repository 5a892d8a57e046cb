//! The size and the holes of files: truncate, allocate, punch, seek.

use crate::content::data::drop_privileges;
use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::inodes::inode::Inode;
use crate::state::State;
use crate::types::{Allocate, Caller, InodeNumber, Seek};
use onode_base::ErrorKind;
use onode_object::Transaction;

const EXTENTS_AT_ONCE: usize = 64;

impl FileSystem {
    /// Sets the size in memory; the device hears of it with the data, or at once in write-through
    /// mode and where there is no room for what is kept of what is cut off.
    pub(crate) fn set_size(&self, state: &mut State, caller: &Caller, number: InodeNumber, size: u64) -> Result<()> {
        match self.set_size_in_memory(state, caller, number, size)? {
            Some(before) => self.write_through(state, number, before),
            None => Ok(()),
        }
    }

    /// Sets the size in memory; returns the inode of before if the device has to have it at once.
    pub(crate) fn set_size_in_memory(
        &self,
        state: &mut State,
        caller: &Caller,
        number: InodeNumber,
        size: u64,
    ) -> Result<Option<Inode>> {
        self.check_regular(state, number)?;
        if size > Transaction::MAX_OBJECT_BYTES {
            return Err(Error::of(ErrorKind::TooLarge, number, ""));
        }
        if size > self.node(state, number)?.size {
            self.admit_size(state, caller, number, size)?;
            self.reserve(state, number, size, 0)?;
        }
        let mut waits = !self.keeps_nothing_back();
        let cut = self.node(state, number)?.device_size.saturating_sub(size);
        if waits && !self.can_wait(state, number, cut) {
            // If the change is refused, what was written before is not.
            self.write_back_file(state, number)?;
            waits = false;
        }
        let node = self.node(state, number)?;
        let before = node.inode;
        let now = self.content_time(&before);
        let held = node.dirty.bytes();
        node.dirty.discard(size..u64::MAX);
        let dropped = held - node.dirty.bytes();
        node.rewritten |= size == 0 && node.size > 0;
        node.valid = node.valid.min(size);
        node.size = size;
        (node.inode.modified, node.inode.changed) = (now, now);
        drop_privileges(&mut node.inode, caller);
        node.inode_dirty = true;
        state.dirty_bytes -= dropped;
        state.statistics.dropped_bytes += dropped as u64;
        state.mark_dirty(number.0, now);
        state.promise(self.device.as_ref(), number.0);
        Ok(if waits { None } else { Some(before) })
    }

    /// Allocates, punches or zeroes a range. Space is checked, not reserved: no medium of ours
    /// writes in place, so a reservation would have to hold for every later overwrite too.
    ///
    /// # Errors
    /// `NoSpace`, `Invalid` for an empty range, `TooLarge`; as [`write`](Self::write).
    pub fn allocate(
        &self,
        caller: &Caller,
        number: InodeNumber,
        offset: u64,
        length: u64,
        what: Allocate,
    ) -> Result<()> {
        self.beside_others(|| self.allocate_once(caller, number, offset, length, what))
    }

    fn allocate_once(
        &self,
        caller: &Caller,
        number: InodeNumber,
        offset: u64,
        length: u64,
        what: Allocate,
    ) -> Result<()> {
        self.check_writable()?;
        let state = &mut *self.lock();
        self.check_regular(state, number)?;
        if length == 0 {
            return Err(Error::of(ErrorKind::Invalid, number, "an empty range"));
        }
        let end = offset.checked_add(length).filter(|end| *end <= Transaction::MAX_OBJECT_BYTES);
        let end = end.ok_or_else(|| Error::of(ErrorKind::TooLarge, number, ""))?;
        if matches!(what, Allocate::Extend | Allocate::ZeroRange) {
            self.admit_size(state, caller, number, end)?;
        }
        state.statistics.changes += 1;
        match what {
            Allocate::Extend | Allocate::KeepSize => {
                self.write_back_file(state, number)?;
                self.check_space_for(state, number, offset, end)?;
                if what == Allocate::Extend && end > self.node(state, number)?.size {
                    return self.set_size(state, caller, number, end);
                }
                self.punch(state, caller, number, None, None)
            }
            Allocate::PunchHole | Allocate::ZeroRangeKeepSize => {
                self.write_back_file(state, number)?;
                self.punch(state, caller, number, Some((offset, length)), None)
            }
            Allocate::ZeroRange => {
                self.write_back_file(state, number)?;
                let size = self.node(state, number)?.size;
                let grown = Some(end).filter(|end| *end > size);
                self.punch(state, caller, number, Some((offset, length)), grown)
            }
        }
    }

    /// Makes a hole, if one is wanted, lets the file grow to `size`, if it shall, and renews the
    /// times, all in one transaction. Nothing may be dirty.
    fn punch(
        &self,
        state: &mut State,
        caller: &Caller,
        number: InodeNumber,
        hole: Option<(u64, u64)>,
        size: Option<u64>,
    ) -> Result<()> {
        let mut inode = self.node(state, number)?.inode;
        let now = self.content_time(&inode);
        if hole.is_some() {
            inode.modified = now;
        }
        inode.changed = now;
        drop_privileges(&mut inode, caller);
        let mut transaction = Transaction::new();
        if let Some((offset, length)) = hole {
            transaction.punch(number.object(), offset, length);
        }
        if let Some(size) = size {
            transaction.truncate(number.object(), size);
        }
        self.inodes.store(&mut transaction, number.object(), &inode);
        self.commit(state, transaction)?;
        self.set_inode(state, number, inode);
        let node = self.node(state, number)?;
        node.device_changed();
        if let Some(size) = size {
            (node.size, node.valid, node.device_size) = (size, size, size);
        }
        Ok(())
    }

    fn check_space_for(&self, state: &mut State, number: InodeNumber, offset: u64, end: u64) -> Result<()> {
        let mut needed = end - offset;
        let mut position = offset;
        'walk: while position < end {
            let extents = self.device.extents(number.object(), position, EXTENTS_AT_ONCE)?;
            if extents.is_empty() {
                break;
            }
            for (start, length) in extents {
                if start >= end {
                    break 'walk;
                }
                let stop = start.saturating_add(length).min(end);
                needed = needed.saturating_sub(stop.saturating_sub(start.max(position)));
                position = stop.max(position + 1);
            }
        }
        if needed > self.device.space().available.saturating_sub(state.promised + state.set_aside_by_others()) {
            return Err(Error::of(ErrorKind::NoSpace, number, ""));
        }
        Ok(())
    }

    /// The first data or hole at or after `offset`.
    ///
    /// # Errors
    /// `NoSuchOffset` at or after the end, or if there is no more data; the device's errors.
    pub fn seek(&self, number: InodeNumber, offset: u64, what: Seek) -> Result<u64> {
        let state = &mut *self.lock();
        self.check_regular(state, number)?;
        let size = self.node(state, number)?.size;
        if offset >= size {
            return Err(Error::of(ErrorKind::NoSuchOffset, number, ""));
        }
        self.write_back_file(state, number)?;
        let mut position = offset;
        loop {
            let extents = self.device.extents(number.object(), position, EXTENTS_AT_ONCE)?;
            if what == Seek::Data {
                let first = extents.first().map(|(start, _)| (*start).max(offset)).filter(|start| *start < size);
                return first.ok_or_else(|| Error::of(ErrorKind::NoSuchOffset, number, ""));
            }
            if extents.is_empty() {
                return Ok(position.min(size));
            }
            for (start, length) in extents {
                if start > position {
                    return Ok(position.min(size));
                }
                position = position.max(start.saturating_add(length));
            }
        }
    }
}
