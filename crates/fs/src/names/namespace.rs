//! Names: lookup, making files of every type, hard links, unlink and rmdir.
//!
//! Every change is one transaction: the names, the inodes and the directories' counts and times
//! change together or not at all.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::inodes::acl;
use crate::inodes::inode::Inode;
use crate::limits::{GROUP_EXECUTE, LINKS_MAX, NAME_BYTES_MAX, SET_GROUP, TARGET_BYTES_MAX};
use crate::names::cache::CachedName;
use crate::names::entry::{Entry, is_valid_name};
use crate::names::slots::Slot;
use crate::state::{Node, Place, State};
use crate::types::{Attributes, Block, Caller, FileHandle, FileType, InodeNumber};
use crate::volume::orphan::Ended;
use onode_base::{ErrorKind, Timestamp};
use onode_object::Transaction;
use onode_object::powers::Content;

/// What a name is taken away for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// To remove a file.
    File,
    /// To remove a directory.
    Directory,
    /// To have the content of a file as memory, which whoever asks may have open.
    ToMemory(Option<FileHandle>),
}

/// What kind of file to make.
#[derive(Clone, Copy, Debug)]
enum New<'a> {
    Plain(FileType),
    Device(FileType, u64),
    Link(&'a [u8]),
    Memory(Block),
}

impl New<'_> {
    const fn file_type(self) -> FileType {
        match self {
            Self::Plain(file_type) | Self::Device(file_type, _) => file_type,
            Self::Link(_) => FileType::SymbolicLink,
            Self::Memory(_) => FileType::Regular,
        }
    }
}

/// What overlay mounts take for a name that was removed.
const WHITEOUT: New<'static> = New::Device(FileType::CharacterDevice, 0);

/// A file that is to be made.
struct NewFile<'a> {
    caller: &'a Caller,
    parent: InodeNumber,
    what: New<'a>,
    permissions: u16,
    now: Timestamp,
}

impl FileSystem {
    /// The file a name leads to. `.` and `..` work; `.` is any file itself. Counts as one use, to
    /// be given back by [`forget`](Self::forget).
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`, `NameTooLong`; the device's errors.
    pub fn lookup(&self, parent: InodeNumber, name: &[u8]) -> Result<Attributes> {
        let state = &mut *self.lock();
        let number = self.resolve_name(state, parent, name)?;
        let seen = state.seen;
        let known = |node: &&mut Box<Node>| node.seen == seen && node.allocated.is_some();
        if let Some(node) = state.nodes.get_mut(&number.0).filter(known) {
            node.used = true;
            let attributes = node.attributes(number.0);
            state.lookups.add(number.0);
            return Ok(attributes);
        }
        let attributes = self.attributes_of(state, number)?;
        state.lookups.add(number.0);
        Ok(attributes)
    }

    /// Gives back `count` uses that lookups and creations counted. A file without name, use and
    /// handle goes away.
    pub fn forget(&self, number: InodeNumber, count: u64) {
        let mut state = self.state.lock();
        state.lookups.take(number.0, count);
        if state.nodes.get(&number.0).is_some_and(|node| node.removed || node.is_orphan) {
            self.let_go(&mut self.take_turn(state), number);
        }
    }

    /// Makes a regular file, FIFO, socket or device node; `mode` carries the type and permissions.
    /// Counts as a lookup.
    ///
    /// # Errors
    /// `Exists`, `NotFound` if the directory was removed, `Invalid` for a type that is made
    /// otherwise; as [`lookup`](Self::lookup).
    pub fn make_node(
        &self,
        caller: &Caller,
        parent: InodeNumber,
        name: &[u8],
        mode: u32,
        device: u64,
    ) -> Result<Attributes> {
        let file_type = if mode >> 12 == 0 { Some(FileType::Regular) } else { FileType::from_mode(mode) };
        let new = match file_type {
            Some(file_type @ (FileType::Regular | FileType::Fifo | FileType::Socket)) => New::Plain(file_type),
            Some(file_type @ (FileType::CharacterDevice | FileType::BlockDevice)) => New::Device(file_type, device),
            Some(FileType::Directory | FileType::SymbolicLink) | None => {
                return Err(Error::new(ErrorKind::Invalid, "no such type of node"));
            }
        };
        self.make(caller, parent, name, new, (mode & 0o7777) as u16)
    }

    /// Makes a regular file. Counts as a lookup.
    ///
    /// # Errors
    /// As [`make_node`](Self::make_node).
    pub fn create(&self, caller: &Caller, parent: InodeNumber, name: &[u8], permissions: u16) -> Result<Attributes> {
        self.make(caller, parent, name, New::Plain(FileType::Regular), permissions)
    }

    /// Makes a directory. Counts as a lookup.
    ///
    /// # Errors
    /// As [`make_node`](Self::make_node).
    pub fn make_directory(
        &self,
        caller: &Caller,
        parent: InodeNumber,
        name: &[u8],
        permissions: u16,
    ) -> Result<Attributes> {
        self.make(caller, parent, name, New::Plain(FileType::Directory), permissions)
    }

    /// Makes a symbolic link. Counts as a lookup.
    ///
    /// # Errors
    /// `NameTooLong` for a target over 4,095 bytes; as [`make_node`](Self::make_node).
    pub fn make_symbolic_link(
        &self,
        caller: &Caller,
        parent: InodeNumber,
        name: &[u8],
        target: &[u8],
    ) -> Result<Attributes> {
        if target.len() > TARGET_BYTES_MAX {
            return Err(Error::new(ErrorKind::NameTooLong, "target of a symbolic link"));
        }
        if target.is_empty() || target.contains(&0) {
            return Err(Error::new(ErrorKind::Invalid, "target of a symbolic link"));
        }
        self.make(caller, parent, name, New::Link(target), 0o777)
    }

    pub(crate) fn make_of_memory(
        &self,
        caller: &Caller,
        parent: InodeNumber,
        name: &[u8],
        block: Block,
        permissions: u16,
    ) -> Result<InodeNumber> {
        self.check_writable()?;
        let state = &mut *self.lock();
        let file = NewFile { caller, parent, what: New::Memory(block), permissions, now: self.now() };
        Ok(self.make_locked(state, name, &file, false)?.inode)
    }

    fn make(
        &self,
        caller: &Caller,
        parent: InodeNumber,
        name: &[u8],
        new: New<'_>,
        permissions: u16,
    ) -> Result<Attributes> {
        self.check_writable()?;
        let state = &mut *self.lock();
        let file = NewFile { caller, parent, what: new, permissions, now: self.now() };
        let made = self.make_locked(state, name, &file, true)?;
        if made.size == 0 { Ok(made) } else { self.attributes_of(state, made.inode) }
    }

    /// Makes a file, which begins with a lookup if that is to be counted; its attributes without
    /// the space that it takes.
    fn make_locked(&self, state: &mut State, name: &[u8], file: &NewFile<'_>, is_lookup: bool) -> Result<Attributes> {
        check_name(name)?;
        let (parent, now) = (file.parent, file.now);
        let mut directory = self.live_directory(state, parent)?;
        let (home, found) = self.search_name(state, parent, name)?;
        let home_is_free = matches!(found, InDirectory::Nothing { home_is_free: true });
        if matches!(found, InDirectory::Name(_)) {
            return Err(Error::new(ErrorKind::Exists, ""));
        }
        let number = self.new_number(state)?;
        let mut transaction = Transaction { mutations: Vec::with_capacity(4) };
        let inode = self.prepare_inode(state, &directory, file, number, &mut transaction)?;
        let entry = Entry { file_type: inode.file_type, inode: number.0, name }.encode();
        if home_is_free {
            self.names(parent).insert_first(&mut transaction, home, entry);
        } else {
            self.names(parent).insert(&mut transaction, home, &entry, None)?;
        }
        directory.entries += 1;
        directory.links += u32::from(inode.is_directory());
        (directory.modified, directory.changed) = (now, now);
        self.inodes.store(&mut transaction, parent.object(), &directory);
        match file.what {
            New::Memory(block) => self.commit_block(state, transaction, number, block)?,
            New::Plain(_) | New::Device(..) | New::Link(_) => self.commit(state, transaction)?,
        }
        self.set_inode(state, parent, directory);
        state.names.insert(parent.0, home, name, CachedName { inode: number.0, file_type: inode.file_type });
        Ok(Self::admit_new(state, number, inode, file.what, is_lookup))
    }

    /// Makes a regular file without a name in the directory `parent`, which goes away with its last
    /// use unless [`link`](Self::link) names it. Counts as a lookup.
    ///
    /// # Errors
    /// As [`make_node`](Self::make_node).
    pub fn make_unnamed(&self, caller: &Caller, parent: InodeNumber, permissions: u16) -> Result<Attributes> {
        self.check_writable()?;
        let state = &mut *self.lock();
        let directory = self.live_directory(state, parent)?;
        let number = self.new_number(state)?;
        let mut transaction = Transaction::new();
        let what = New::Plain(FileType::Regular);
        let file = NewFile { caller, parent, what, permissions, now: self.now() };
        let mut inode = self.prepare_inode(state, &directory, &file, number, &mut transaction)?;
        Self::add_orphan(&mut transaction, number);
        self.commit(state, transaction)?;
        inode.links = 0;
        let attributes = Self::admit_new(state, number, inode, what, true);
        Self::note_orphan(state, number);
        Ok(attributes)
    }

    /// Adds the new object with its inode, target and inherited ACLs to the transaction.
    fn prepare_inode(
        &self,
        state: &mut State,
        directory: &Inode,
        file: &NewFile<'_>,
        number: InodeNumber,
        transaction: &mut Transaction,
    ) -> Result<Inode> {
        let NewFile { caller, parent, what, permissions, now } = *file;
        let file_type = what.file_type();
        let mut inode = Inode::new(file_type, permissions & 0o7777, now);
        inode.is_dense = directory.is_dense;
        (inode.uid, inode.gid) = (caller.uid, caller.gid);
        if directory.permissions & SET_GROUP != 0 {
            inode.gid = directory.gid;
            if inode.is_directory() {
                inode.permissions |= SET_GROUP;
            }
        }
        let wants_group_bit = inode.permissions & (SET_GROUP | GROUP_EXECUTE) == SET_GROUP | GROUP_EXECUTE;
        if wants_group_bit && !inode.is_directory() && !caller.may_set_group_bit(inode.gid) {
            inode.permissions &= !SET_GROUP;
        }
        match what {
            New::Device(_, device) => inode.device = device,
            New::Plain(FileType::Directory) => inode.parent = parent.0,
            New::Plain(_) | New::Link(_) | New::Memory(_) => {}
        }
        let mut inherited = Vec::new();
        if file_type != FileType::SymbolicLink {
            let default = if directory.has_xattrs { self.default_acl(state, parent)? } else { None };
            match default {
                Some(default) => inherited = acl::inherit(&default, &mut inode),
                None => inode.permissions &= !(caller.umask as u16 & 0o777),
            }
        }
        inode.has_xattrs = !inherited.is_empty();
        inode.tree = state.quotas.tree_of(directory);
        let counted = if let New::Link(target) = what { target.len() as u64 } else { 0 };
        Self::admit_new_file(state, caller, &inode, counted)?;
        let hints = self.advice(state, parent)?.add_to(Self::hints(file_type, parent));
        self.inodes.create(transaction, number.object(), hints, &inode);
        if inode.has_xattrs {
            self.put_first_xattrs(state, transaction, number, &inherited)?;
        }
        if let New::Link(target) = what {
            transaction.write(number.object(), 0, target.to_vec());
        }
        Ok(inode)
    }

    /// Adds a whiteout to the transaction: a character device 0:0 without permissions, in
    /// `directory`. Its name is for the caller to put in.
    pub(crate) fn prepare_whiteout(
        &self,
        state: &mut State,
        caller: &Caller,
        directory: InodeNumber,
        transaction: &mut Transaction,
    ) -> Result<(InodeNumber, Inode)> {
        let parent = self.live_directory(state, directory)?;
        let number = self.new_number(state)?;
        let file = NewFile { caller, parent: directory, what: WHITEOUT, permissions: 0, now: self.now() };
        Ok((number, self.prepare_inode(state, &parent, &file, number, transaction)?))
    }

    /// Takes a whiteout that was committed into memory.
    pub(crate) fn admit_whiteout(&self, state: &mut State, number: InodeNumber, inode: Inode) {
        Self::admit_new(state, number, inode, WHITEOUT, false);
    }

    /// Takes a file that was just made into memory; its attributes without the space that it takes.
    fn admit_new(state: &mut State, number: InodeNumber, inode: Inode, new: New<'_>, is_lookup: bool) -> Attributes {
        let size = match new {
            New::Link(target) => target.len() as u64,
            New::Memory(block) => block.bytes,
            New::Plain(_) | New::Device(..) => 0,
        };
        let mut node = Node::new(inode, size);
        node.allocated = (size == 0).then_some(0);
        // What is made in it soon need not ask the device what it took over.
        if inode.is_directory() {
            node.advice = state.nodes.get(&inode.parent).and_then(|parent| parent.advice);
        }
        if let New::Memory(block) = new {
            node.place = Place::Block(block.address);
        }
        state.statistics.changes += 1;
        let attributes = node.attributes(number.0);
        state.insert(number.0, node);
        if is_lookup {
            state.lookups.add(number.0);
        }
        attributes
    }

    /// Gives a file one more name. Counts as a lookup.
    ///
    /// # Errors
    /// `NotPermitted` for a directory, `TooManyLinks`, `Exists`; `NotFound` for a file that was
    /// removed, or whose last name another process took; as [`lookup`](Self::lookup).
    pub fn link(&self, number: InodeNumber, parent: InodeNumber, name: &[u8]) -> Result<Attributes> {
        self.check_writable()?;
        let state = &mut *self.lock();
        check_name(name)?;
        let mut directory = self.live_directory(state, parent)?;
        let node = self.node(state, number)?;
        if node.removed {
            return Err(Error::of(ErrorKind::NotFound, number, "the file was removed"));
        }
        let (mut inode, was_orphan) = (node.inode, node.is_orphan);
        if inode.is_directory() {
            return Err(Error::of(ErrorKind::NotPermitted, number, "a directory has one name only"));
        }
        if inode.links >= LINKS_MAX {
            return Err(Error::of(ErrorKind::TooManyLinks, number, ""));
        }
        if !was_orphan {
            self.refuse_orphan_of_others(number)?;
        }
        Self::check_tree(state, number, &inode, &directory)?;
        self.check_keys(state, number, parent)?;
        if self.find_name(state, parent, name)?.is_some() {
            return Err(Error::new(ErrorKind::Exists, ""));
        }
        // A name must not lead to less than was written before it was given.
        self.write_back_file(state, number)?;
        let now = self.now();
        let mut transaction = Transaction::new();
        if was_orphan {
            Self::remove_orphan_mark(&mut transaction, number);
        }
        inode.links += 1;
        inode.changed = now;
        let entry = Entry { file_type: inode.file_type, inode: number.0, name };
        self.names(parent).insert(&mut transaction, self.hash.home(name), &entry.encode(), None)?;
        directory.entries += 1;
        (directory.modified, directory.changed) = (now, now);
        self.inodes.store(&mut transaction, parent.object(), &directory);
        self.inodes.store(&mut transaction, number.object(), &inode);
        self.commit(state, transaction)?;
        self.set_inode(state, parent, directory);
        self.set_inode(state, number, inode);
        if was_orphan {
            Self::forget_orphan(state, number);
        }
        self.cache_name(state, parent, name, CachedName { inode: number.0, file_type: inode.file_type });
        state.statistics.changes += 1;
        state.lookups.add(number.0);
        self.attributes_of(state, number)
    }

    /// Takes a name from a file that is no directory. The last name takes the file with it, once
    /// nobody uses it.
    ///
    /// # Errors
    /// `IsDirectory`; as [`lookup`](Self::lookup).
    pub fn unlink(&self, parent: InodeNumber, name: &[u8]) -> Result<()> {
        self.beside_others(|| self.remove_name(parent, name, Removal::File).map(|_| ()))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotDirectory`, `NotEmpty`, `Invalid` for `.`; as [`lookup`](Self::lookup).
    pub fn remove_directory(&self, parent: InodeNumber, name: &[u8]) -> Result<()> {
        match name {
            b"." => Err(Error::new(ErrorKind::Invalid, "`.` cannot be removed")),
            b".." => Err(Error::new(ErrorKind::NotEmpty, "`..` cannot be removed")),
            _ => self.beside_others(|| self.remove_name(parent, name, Removal::Directory).map(|_| ())),
        }
    }

    /// Takes a name away; returns the file's block if it was to become memory.
    pub(crate) fn remove_name(&self, parent: InodeNumber, name: &[u8], removal: Removal) -> Result<Option<Content>> {
        let as_directory = removal == Removal::Directory;
        self.check_writable()?;
        let state = &mut *self.lock();
        let mut directory = self.directory(state, parent)?;
        let found = self.find_name(state, parent, name)?.ok_or(ErrorKind::NotFound)?;
        let number = InodeNumber(found.inode);
        match (found.file_type == FileType::Directory, as_directory) {
            (true, false) => return Err(Error::of(ErrorKind::IsDirectory, number, "")),
            (false, true) => return Err(Error::of(ErrorKind::NotDirectory, number, "")),
            _ => {}
        }
        let now = self.now();
        let mut transaction = Transaction::new();
        let names = self.names(parent);
        let slot = names.find(self.hash.home(name), |payload| is_entry_of(payload, name))?;
        let slot = slot.ok_or_else(|| Error::of(ErrorKind::Corrupt, parent, "a name vanished; run fsck"))?;
        names.remove(&mut transaction, &slot);
        directory.entries = directory.entries.saturating_sub(1);
        directory.links = directory.links.saturating_sub(u32::from(as_directory));
        (directory.modified, directory.changed) = (now, now);
        self.inodes.store(&mut transaction, parent.object(), &directory);
        let (content, ended) = if let Removal::ToMemory(handle) = removal {
            (Some(self.take_link_to_memory(state, number, handle, now, transaction)?), Ended::Removed)
        } else {
            let ended = self.take_link(state, number, now, &mut transaction)?;
            self.commit_removal(state, number, transaction, ended)?;
            (None, ended)
        };
        self.set_inode(state, parent, directory);
        self.forget_name(state, parent, name);
        state.statistics.changes += 1;
        self.link_taken(state, number, now, ended);
        Ok(content)
    }

    /// Puts a committed inode into memory.
    pub(crate) fn set_inode(&self, state: &mut State, number: InodeNumber, inode: Inode) {
        if let Some(node) = state.nodes.get_mut(&number.0) {
            node.inode = inode;
            node.inode_dirty = false;
        }
    }

    /// Where a name leads, `.` and `..` included.
    pub(crate) fn resolve_name(&self, state: &mut State, parent: InodeNumber, name: &[u8]) -> Result<InodeNumber> {
        // Who has a handle from long ago (NFS, `open_by_handle_at`) asks so whether a file of any
        // type is there.
        if name == b"." {
            let node = self.node(state, parent)?;
            return if node.removed { Err(ErrorKind::NotFound.into()) } else { Ok(parent) };
        }
        let directory = self.directory(state, parent)?;
        match name {
            b".." => Ok(InodeNumber(directory.parent)),
            _ => Ok(InodeNumber(self.find_name(state, parent, name)?.ok_or(ErrorKind::NotFound)?.inode)),
        }
    }

    /// What a directory has under a name.
    pub(crate) fn find_name(&self, state: &mut State, parent: InodeNumber, name: &[u8]) -> Result<Option<CachedName>> {
        match self.search_name(state, parent, name)? {
            (_, InDirectory::Name(found)) => Ok(Some(found)),
            (_, InDirectory::Nothing { .. }) => Ok(None),
        }
    }

    /// The same, with the name's home and whether that is free.
    fn search_name(&self, state: &mut State, parent: InodeNumber, name: &[u8]) -> Result<(u64, InDirectory)> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Error::new(ErrorKind::NameTooLong, ""));
        }
        let home = self.hash.home(name);
        if let Some(cached) = state.names.get(parent.0, home, name) {
            state.statistics.name_cache_hits += 1;
            return Ok((home, InDirectory::Name(cached)));
        }
        if self.node(state, parent)?.removed {
            return Ok((home, InDirectory::Nothing { home_is_free: false }));
        }
        state.statistics.name_cache_misses += 1;
        let names = self.names(parent);
        let Some(first) = names.at(home)? else { return Ok((home, InDirectory::Nothing { home_is_free: true })) };
        let slot = names.find_from(first, |payload| is_entry_of(payload, name))?;
        let entry = slot.as_ref().and_then(|slot: &Slot| Entry::decode(&slot.payload));
        let Some(entry) = entry else { return Ok((home, InDirectory::Nothing { home_is_free: false })) };
        let found = CachedName { inode: entry.inode, file_type: entry.file_type };
        state.names.insert(parent.0, home, name, found);
        Ok((home, InDirectory::Name(found)))
    }

    /// Remembers where a name leads.
    pub(crate) fn cache_name(&self, state: &mut State, parent: InodeNumber, name: &[u8], found: CachedName) {
        state.names.insert(parent.0, self.hash.home(name), name, found);
    }

    /// Forgets where a name led.
    pub(crate) fn forget_name(&self, state: &mut State, parent: InodeNumber, name: &[u8]) {
        state.names.remove(parent.0, self.hash.home(name), name);
    }
}

/// What a directory has under a name.
#[derive(Clone, Copy, Debug)]
enum InDirectory {
    Name(CachedName),
    Nothing {
        /// No slot is where the name would be first.
        home_is_free: bool,
    },
}

/// Whether a slot holds that name.
pub(crate) fn is_entry_of(payload: &[u8], name: &[u8]) -> bool {
    Entry::decode(payload).is_some_and(|entry| entry.name == name)
}

/// Whether a new file may have that name.
pub(crate) fn check_name(name: &[u8]) -> Result<()> {
    if name.len() > NAME_BYTES_MAX {
        return Err(Error::new(ErrorKind::NameTooLong, ""));
    }
    match name {
        b"." | b".." => Err(Error::new(ErrorKind::Exists, "")),
        _ if is_valid_name(name) => Ok(()),
        _ => Err(Error::new(ErrorKind::Invalid, "a name is not empty and has no slash and no zero byte")),
    }
}
