//! Reading directories.
//!
//! A cursor is the index of the slot to go on with: it stays good whatever is made or removed in the
//! meantime, names that are there all the time come exactly once, and it needs no memory.

use crate::error::Result;
use crate::file_system::FileSystem;
use crate::names::entry::Entry;
use crate::names::slots::FIRST_SLOT;
use crate::types::{DirectoryEntry, FileType, InodeNumber};
use onode_base::ErrorKind;

const SLOTS_AT_ONCE: usize = 64;
const SLOTS_AT_ONCE_PLUS: usize = 32;

impl FileSystem {
    /// Calls `each` for the names of a directory from `cursor` on (0 starts), `.` and `..` first, until
    /// it says that it takes no more. The entry it refuses comes first the next time.
    ///
    /// # Errors
    /// `NotDirectory`; the device's errors.
    pub fn read_directory(
        &self,
        number: InodeNumber,
        cursor: u64,
        each: &mut dyn FnMut(&DirectoryEntry) -> bool,
    ) -> Result<()> {
        self.list_directory(number, cursor, false, each)
    }

    /// As [`read_directory`](Self::read_directory), with attributes. Every entry taken except `.` and
    /// `..` counts as a lookup.
    ///
    /// # Errors
    /// As [`read_directory`](Self::read_directory).
    pub fn read_directory_plus(
        &self,
        number: InodeNumber,
        cursor: u64,
        each: &mut dyn FnMut(&DirectoryEntry) -> bool,
    ) -> Result<()> {
        self.list_directory(number, cursor, true, each)
    }

    fn list_directory(
        &self,
        number: InodeNumber,
        cursor: u64,
        plus: bool,
        each: &mut dyn FnMut(&DirectoryEntry) -> bool,
    ) -> Result<()> {
        let (parent, removed) = {
            let state = &mut *self.lock();
            let parent = InodeNumber(self.directory(state, number)?.parent);
            self.touch_accessed(state, number);
            (parent, self.node(state, number)?.removed)
        };
        for (at, name, inode) in [(1, &b"."[..], number), (2, b"..", parent)] {
            let file_type = FileType::Directory;
            let entry = DirectoryEntry { inode, file_type, cursor: at, name: name.to_vec(), attributes: None };
            if cursor < at && !each(&entry) {
                return Ok(());
            }
        }
        let mut from = cursor.max(FIRST_SLOT);
        if removed {
            return Ok(());
        }
        loop {
            let (batch, next) = self.read_batch(number, from, plus)?;
            let mut entries = batch.iter();
            while let Some(entry) = entries.next() {
                if !each(entry) {
                    if plus {
                        // What was counted for entries nobody took is given back.
                        let counted = std::iter::once(entry).chain(entries).filter(|entry| entry.attributes.is_some());
                        counted.for_each(|entry| self.forget(entry.inode, 1));
                    }
                    return Ok(());
                }
            }
            match next {
                Some(next) => from = next,
                None => return Ok(()),
            }
        }
    }

    /// The next names, and where to go on.
    fn read_batch(&self, number: InodeNumber, from: u64, plus: bool) -> Result<(Vec<DirectoryEntry>, Option<u64>)> {
        let state = &mut *self.lock();
        let limit = if plus { SLOTS_AT_ONCE_PLUS } else { SLOTS_AT_ONCE };
        let slots = match self.names(number).list(from, limit) {
            Ok(slots) => slots,
            // Removed meanwhile: it has no names.
            Err(error) if error.kind == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let next = slots.last().map(|slot| slot.index + 1);
        let mut batch = Vec::with_capacity(slots.len());
        for slot in &slots {
            // A damaged slot hides one name, not the directory; fsck reports it.
            let Some(entry) = Entry::decode(&slot.payload) else { continue };
            let inode = InodeNumber(entry.inode);
            let mut attributes = None;
            if plus {
                // A name whose inode is damaged is still listed.
                attributes = self.attributes_of(state, inode).ok();
                if attributes.is_some() {
                    state.lookups.add(inode.0);
                }
            }
            let (file_type, name) = (entry.file_type, entry.name.to_vec());
            batch.push(DirectoryEntry { inode, file_type, cursor: slot.index + 1, name, attributes });
        }
        Ok((batch, next))
    }
}
