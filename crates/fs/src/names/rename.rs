//! Rename, with all its flags, in one transaction.
//!
//! What it keeps true: at every moment a file that is renamed has one of both names, or with a
//! whiteout the old name leads to that as soon as the file has the new one.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::inodes::inode::Inode;
use crate::names::cache::CachedName;
use crate::names::entry::Entry;
use crate::names::namespace::{check_name, is_entry_of};
use crate::names::slots::Slot;
use crate::state::State;
use crate::types::{Caller, FileType, InodeNumber, RenameFlags};
use onode_base::planted::{Bug, is_planted};
use onode_base::{ErrorKind, Timestamp};
use onode_object::Transaction;
use std::collections::BTreeMap;

/// One end of a rename: a name in a directory.
#[derive(Clone, Copy, Debug)]
pub struct RenameEnd<'a> {
    /// The directory.
    pub directory: InodeNumber,
    /// The name in it.
    pub name: &'a [u8],
}

/// The file that a place names.
#[derive(Clone, Copy)]
struct Named<'a> {
    place: RenameEnd<'a>,
    file: CachedName,
}

impl FileSystem {
    /// Gives a file another name, in the same directory or another. A file that has the new name
    /// loses it, as by unlink.
    ///
    /// # Errors
    /// `NotFound`; `Exists` or as `flags` say; `NotEmpty`, `IsDirectory`, `NotDirectory` if the old
    /// file cannot take the new one's place; `Invalid` for a directory into itself; the device's
    /// errors.
    pub fn rename(
        &self,
        from_directory: InodeNumber,
        from_name: &[u8],
        to_directory: InodeNumber,
        to_name: &[u8],
        flags: RenameFlags,
    ) -> Result<()> {
        let from = RenameEnd { directory: from_directory, name: from_name };
        let to = RenameEnd { directory: to_directory, name: to_name };
        self.beside_others(|| self.rename_ends(from, to, flags, None))
    }

    /// The same, and a whiteout of `caller` takes the old name in the same transaction: a character
    /// device 0:0, which overlay mounts take for a name that was removed (`RENAME_WHITEOUT`).
    ///
    /// # Errors
    /// `Invalid` for an exchange; as [`rename`](Self::rename).
    pub fn rename_leaving_whiteout(
        &self,
        caller: &Caller,
        from: RenameEnd<'_>,
        to: RenameEnd<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        if flags == RenameFlags::Exchange {
            return Err(Error::new(ErrorKind::Invalid, "an exchange leaves no name free for a whiteout"));
        }
        self.beside_others(|| self.rename_ends(from, to, flags, Some(caller)))
    }

    fn rename_ends(
        &self,
        from: RenameEnd<'_>,
        to: RenameEnd<'_>,
        flags: RenameFlags,
        whiteout_of: Option<&Caller>,
    ) -> Result<()> {
        self.check_writable()?;
        let state = &mut *self.lock();
        for place in [from, to] {
            match check_name(place.name) {
                // `.` and `..` exist, but nobody can move them.
                Err(error) if error.kind == ErrorKind::Exists => return Err(ErrorKind::Busy.into()),
                other => other?,
            }
        }
        self.live_directory(state, from.directory)?;
        self.live_directory(state, to.directory)?;
        let source = self.find_name(state, from.directory, from.name)?.ok_or(ErrorKind::NotFound)?;
        let target = self.find_name(state, to.directory, to.name)?;
        match (flags, target) {
            (RenameFlags::NoReplace, Some(_)) => Err(ErrorKind::Exists.into()),
            (RenameFlags::Exchange, None) => Err(ErrorKind::NotFound.into()),
            // Two names of one file: nothing to do.
            (_, Some(target)) if target.inode == source.inode => Ok(()),
            (RenameFlags::Exchange, Some(target)) => {
                self.exchange(state, Named { place: from, file: source }, Named { place: to, file: target })
            }
            (RenameFlags::Replace | RenameFlags::NoReplace, target) => {
                self.replace(state, Named { place: from, file: source }, to, target, whiteout_of)
            }
        }
    }

    fn replace(
        &self,
        state: &mut State,
        moved: Named<'_>,
        to: RenameEnd<'_>,
        target: Option<CachedName>,
        whiteout_of: Option<&Caller>,
    ) -> Result<()> {
        let Named { place: from, file: source } = moved;
        let (source_number, now) = (InodeNumber(source.inode), self.now());
        let is_directory = source.file_type == FileType::Directory;
        if is_directory {
            self.check_no_loop(state, source_number, to.directory)?;
        }
        match target.map(|target| target.file_type == FileType::Directory) {
            Some(true) if !is_directory => return Err(ErrorKind::IsDirectory.into()),
            Some(false) if is_directory => return Err(ErrorKind::NotDirectory.into()),
            _ => {}
        }
        let adopted = self.check_trees(state, from.directory, to.directory, source)?;
        self.check_keys(state, source_number, to.directory)?;
        // The new name must not lead to less than was written before.
        if !is_planted(Bug::RenameBeforeData) {
            self.write_back_file(state, source_number)?;
        }
        let mut changes = Changes::default();
        let mut transaction = Transaction::new();
        let mut ended = None;
        let from_slot = self.slot_of(from)?;
        let whiteout = match whiteout_of {
            Some(caller) => Some(self.prepare_whiteout(state, caller, from.directory, &mut transaction)?),
            None => None,
        };
        // The old name goes before the other is put in: with colliding names both may be in one
        // chain, and then the freed slot may be the one to use.
        let leave = |transaction: &mut Transaction| match whiteout {
            Some((number, inode)) => {
                let payload = Entry { file_type: inode.file_type, inode: number.0, name: from.name }.encode();
                self.names(from.directory).replace(transaction, &from_slot, &payload);
            }
            None => self.names(from.directory).remove(transaction, &from_slot),
        };
        let payload = Entry { file_type: source.file_type, inode: source.inode, name: to.name }.encode();
        match target {
            Some(target) => {
                let number = InodeNumber(target.inode);
                ended = Some((number, self.take_link(state, number, now, &mut transaction)?));
                self.names(to.directory).replace(&mut transaction, &self.slot_of(to)?, &payload);
                leave(&mut transaction);
            }
            None => {
                leave(&mut transaction);
                let is_freed = from.directory == to.directory && whiteout.is_none();
                let freed = is_freed.then_some(from_slot.index);
                self.names(to.directory).insert(&mut transaction, self.hash.home(to.name), &payload, freed)?;
            }
        }
        let replaced_directory = u32::from(is_directory && target.is_some());
        let directory = changes.inode(self, state, from.directory)?;
        directory.entries = directory.entries.saturating_sub(u64::from(whiteout.is_none()));
        directory.links = directory.links.saturating_sub(u32::from(is_directory));
        let directory = changes.inode(self, state, to.directory)?;
        directory.entries += u64::from(target.is_none());
        directory.links = (directory.links + u32::from(is_directory)).saturating_sub(replaced_directory);
        changes.touch(self, state, from.directory, to.directory, now)?;
        let moved = changes.inode(self, state, source_number)?;
        moved.changed = now;
        moved.tree = adopted.unwrap_or(moved.tree);
        if is_directory {
            moved.parent = to.directory.0;
        }
        changes.finish(self, state, transaction)?;
        if is_directory && adopted.is_some() {
            state.quotas.look_into(source.inode);
        }
        match whiteout {
            Some((number, inode)) => {
                self.admit_whiteout(state, number, inode);
                let left = CachedName { inode: number.0, file_type: inode.file_type };
                self.cache_name(state, from.directory, from.name, left);
            }
            None => self.forget_name(state, from.directory, from.name),
        }
        self.cache_name(state, to.directory, to.name, source);
        if let Some((number, ended)) = ended {
            self.link_taken(state, number, now, ended);
        }
        state.directory_moves += u64::from(is_directory);
        Ok(())
    }

    fn exchange(&self, state: &mut State, one: Named<'_>, other: Named<'_>) -> Result<()> {
        let (from, source, to, target) = (one.place, one.file, other.place, other.file);
        let (source_number, target_number) = (InodeNumber(source.inode), InodeNumber(target.inode));
        let now = self.now();
        let mut changes = Changes::default();
        let mut transaction = Transaction::new();
        let adopted = [
            self.check_trees(state, from.directory, to.directory, source)?,
            self.check_trees(state, to.directory, from.directory, target)?,
        ];
        self.check_keys(state, source_number, to.directory)?;
        self.check_keys(state, target_number, from.directory)?;
        for (moved, into) in [(target, from), (source, to)] {
            let number = InodeNumber(moved.inode);
            if moved.file_type == FileType::Directory {
                self.check_no_loop(state, number, into.directory)?;
            }
            self.write_back_file(state, number)?;
            let payload = Entry { file_type: moved.file_type, inode: moved.inode, name: into.name }.encode();
            self.names(into.directory).replace(&mut transaction, &self.slot_of(into)?, &payload);
        }
        let directories = |found: CachedName| u32::from(found.file_type == FileType::Directory);
        let (leaving, coming) = (directories(source), directories(target));
        let directory = changes.inode(self, state, from.directory)?;
        directory.links = (directory.links + coming).saturating_sub(leaving);
        let directory = changes.inode(self, state, to.directory)?;
        directory.links = (directory.links + leaving).saturating_sub(coming);
        changes.touch(self, state, from.directory, to.directory, now)?;
        let moved = [(source_number, to.directory), (target_number, from.directory)];
        for ((number, parent), adopted) in moved.into_iter().zip(adopted) {
            let inode = changes.inode(self, state, number)?;
            inode.changed = now;
            inode.tree = adopted.unwrap_or(inode.tree);
            if inode.is_directory() {
                inode.parent = parent.0;
            }
        }
        changes.finish(self, state, transaction)?;
        for (moved, _) in [source, target].into_iter().zip(adopted).filter(|(_, adopted)| adopted.is_some()) {
            if moved.file_type == FileType::Directory {
                state.quotas.look_into(moved.inode);
            }
        }
        self.cache_name(state, from.directory, from.name, target);
        self.cache_name(state, to.directory, to.name, source);
        state.directory_moves += u64::from(leaving + coming);
        Ok(())
    }

    /// That a file which gets a name in another directory stays in its tree with a limit, or
    /// outside of all. Returns the tree that it comes into if that is being counted and was in the
    /// directory before without having been met.
    fn check_trees(
        &self,
        state: &mut State,
        from: InodeNumber,
        to: InodeNumber,
        moved: CachedName,
    ) -> Result<Option<u64>> {
        if !state.quotas.is_on() {
            return Ok(None);
        }
        let number = InodeNumber(moved.inode);
        let (directory, file) = (self.directory(state, to)?, self.node(state, number)?.inode);
        if from == to {
            return Ok(state.quotas.adopts(&directory, &file));
        }
        Self::check_tree(state, number, &file, &directory).map(|()| None)
    }

    /// Where a name that was just found is stored.
    fn slot_of(&self, place: RenameEnd<'_>) -> Result<Slot> {
        let slots = self.names(place.directory);
        let slot = slots.find(self.hash.home(place.name), |payload| is_entry_of(payload, place.name))?;
        slot.ok_or_else(|| Error::of(ErrorKind::Corrupt, place.directory, "a name vanished; run fsck"))
    }

    /// That `directory` is not `moved` nor anywhere below it.
    fn check_no_loop(&self, state: &mut State, moved: InodeNumber, directory: InodeNumber) -> Result<()> {
        let mut at = directory;
        // A damaged volume may have a cycle: two walkers, one twice as fast, meet in it.
        let mut slow = directory;
        let mut steps = 0u64;
        while at != InodeNumber::ROOT {
            if at == moved {
                return Err(Error::of(ErrorKind::Invalid, moved, "a directory cannot be moved into itself"));
            }
            at = InodeNumber(self.directory(state, at)?.parent);
            steps += 1;
            if steps.is_multiple_of(2) {
                slow = InodeNumber(self.directory(state, slow)?.parent);
                if slow == at && at != InodeNumber::ROOT {
                    return Err(Error::of(ErrorKind::Corrupt, at, "directories form a cycle; run fsck"));
                }
            }
        }
        if moved == InodeNumber::ROOT { Err(ErrorKind::Invalid.into()) } else { Ok(()) }
    }
}

/// Inodes that a rename changes; two places of it may be one directory.
#[derive(Default)]
struct Changes(BTreeMap<InodeNumber, Inode>);

impl Changes {
    fn inode(&mut self, fs: &FileSystem, state: &mut State, number: InodeNumber) -> Result<&mut Inode> {
        let known = fs.node(state, number)?.inode;
        Ok(self.0.entry(number).or_insert(known))
    }

    fn touch(
        &mut self,
        fs: &FileSystem,
        state: &mut State,
        from: InodeNumber,
        to: InodeNumber,
        now: Timestamp,
    ) -> Result<()> {
        for directory in [from, to] {
            let inode = self.inode(fs, state, directory)?;
            (inode.modified, inode.changed) = (now, now);
        }
        Ok(())
    }

    /// Commits the names with the inodes and takes them into memory.
    fn finish(self, fs: &FileSystem, state: &mut State, mut transaction: Transaction) -> Result<()> {
        for (number, inode) in &self.0 {
            fs.inodes.store(&mut transaction, number.object(), inode);
        }
        fs.commit(state, transaction)?;
        for (number, inode) in self.0 {
            fs.set_inode(state, number, inode);
        }
        state.statistics.changes += 1;
        Ok(())
    }
}
