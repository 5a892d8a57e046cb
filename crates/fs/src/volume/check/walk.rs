//! Collecting: every object, every inode, every name and attribute, once each and in order.

use super::usage::Usage;
use super::{Finding, FindingKind, Report};
use crate::error::Result;
use crate::inodes::inode::Inode;
use crate::inodes::xattr::{Value, Xattr};
use crate::inodes::{Found, Inodes};
use crate::names::entry::Entry;
use crate::names::slots::{FIRST_SLOT, LAST_SLOT, NameHash, Slot, Slots, next_slot};
use crate::types::FileType;
use crate::volume::VOLUME;
use crate::volume::orphan;
use onode_base::ErrorKind;
use onode_object::{AttributeKind, ObjectDevice, ObjectId, ObjectKind, ObjectStat};
use std::collections::{BTreeMap, BTreeSet};

const OBJECTS_AT_ONCE: usize = 256;
const SLOTS_AT_ONCE: usize = 64;

/// What is remembered of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub file_type: Option<FileType>,
    pub kind: ObjectKind,
    pub links: u64,
    pub parent: u64,
    pub entries: u64,
    /// Names that lead to it.
    pub names: u64,
    /// For a directory: directories in it and names in it.
    pub directories_in: u64,
    pub names_in: u64,
    /// It holds the value of an extended attribute.
    pub is_value: bool,
    pub damaged: bool,
    pub orphan: bool,
    /// The key that it needs beside that of the volume; 0 for none.
    pub key: u32,
}

impl Seen {
    /// An object with this inode, to which no name was found yet.
    fn new(inode: Option<&Inode>, stat: &ObjectStat, key: u32) -> Self {
        Self {
            file_type: inode.map(|inode| inode.file_type),
            kind: stat.hints.kind,
            links: inode.map_or(0, |inode| u64::from(inode.links)),
            parent: inode.map_or(0, |inode| inode.parent),
            entries: inode.map_or(0, |inode| inode.entries),
            names: 0,
            directories_in: 0,
            names_in: 0,
            is_value: false,
            damaged: false,
            orphan: false,
            key,
        }
    }
}

/// The key of what is locked so that not even its number can be told.
const UNKNOWN_KEY: u32 = u32::MAX;

/// Where a directory's name is.
#[derive(Clone, Debug)]
pub(super) struct NamedIn {
    pub directory: u64,
    pub slot: u64,
    pub name: Vec<u8>,
}

pub(super) struct Walk<'a> {
    pub device: &'a dyn ObjectDevice,
    hash: NameHash,
    inodes: Inodes,
    pub seen: BTreeMap<u64, Seen>,
    pub named_in: BTreeMap<u64, NamedIn>,
    pub report: Report,
    /// What limits say is used, and what is.
    pub usage: Usage,
    /// Files whose inode says that they have no extended attributes.
    hidden: BTreeSet<u64>,
    unreadable: BTreeSet<u64>,
    /// Keys of directories that are locked: names in these cannot be read.
    pub locked: BTreeSet<u32>,
    /// One of them keeps even sizes and owners of files.
    hides_sizes: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(device: &'a dyn ObjectDevice, hash: NameHash, inodes: Inodes, usage: Usage) -> Self {
        Self {
            device,
            hash,
            inodes,
            seen: BTreeMap::new(),
            named_in: BTreeMap::new(),
            report: Report::default(),
            usage,
            hidden: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            locked: BTreeSet::new(),
            hides_sizes: false,
        }
    }

    /// Whether there is a directory whose key is locked: nobody knows what names are in it.
    pub(super) fn has_locked_directory(&self) -> bool {
        let is_it = |seen: &Seen| seen.file_type == Some(FileType::Directory) && self.locked.contains(&seen.key);
        self.has_unknown() || self.seen.values().any(is_it)
    }

    /// Whether there is something of which neither size nor owner can be told.
    pub(super) fn has_unknown(&self) -> bool {
        self.hides_sizes
    }

    pub(super) fn find(&mut self, finding: Finding) {
        self.report.findings.push(finding);
    }

    /// A device error about one object becomes a finding; others end the check.
    fn readable<T>(&mut self, object: u64, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if matches!(error.kind, ErrorKind::Corrupt | ErrorKind::KeyNeeded) => {
                if self.unreadable.insert(object) {
                    self.find(Finding::new(FindingKind::Unreadable, object));
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads every inode.
    pub(super) fn inodes(&mut self) -> Result<()> {
        let mut from = ObjectId(0);
        loop {
            let batch = self.device.list(from, OBJECTS_AT_ONCE)?;
            let Some(last) = batch.last() else { return Ok(()) };
            from = ObjectId(last.0.saturating_add(1));
            for object in batch {
                self.report.objects += 1;
                match self.inodes.file_of(object) {
                    Some(file) if self.seen.contains_key(&file.0) => {}
                    // Files come before their inodes.
                    Some(_) => self.find(Finding::new(FindingKind::LostObject, object.0)),
                    // A member of a pool, looked at by itself, has one more, and so has a
                    // volume on memory that received a stream.
                    None if [VOLUME, ObjectId::POOL, ObjectId::RECEIVED].contains(&object) => {}
                    None => self.inode(object)?,
                }
            }
        }
    }

    fn inode(&mut self, object: ObjectId) -> Result<()> {
        let number = object.0;
        let stat: Result<_> = self.device.stat(object).map_err(Into::into);
        // Compression keeps the size of a file where the key of its directory keeps it.
        let is_locked = stat.as_ref().is_err_and(|error| error.kind == ErrorKind::KeyNeeded);
        let stat = if is_locked { ObjectStat::default() } else { self.readable(number, stat)?.unwrap_or_default() };
        if is_locked {
            let key = self.device.directory_key(object).ok().filter(|key| *key != 0).unwrap_or(UNKNOWN_KEY);
            self.hides_sizes |= self.locked.insert(key);
            self.seen.insert(number, Seen::new(None, &stat, key));
            return Ok(());
        }
        let found = self.inodes.load(self.device, object).map_err(Into::into);
        let found = self.readable(number, found)?;
        if found == Some(Found::Damaged) {
            self.find(Finding::new(FindingKind::InodeDamaged, number));
        }
        let inode = found.and_then(Found::sound);
        if let Some(inode) = &inode {
            self.usage.count(inode, stat.size);
        }
        match inode.map(|inode| inode.file_type) {
            Some(FileType::Directory) => self.report.directories += 1,
            Some(_) => {
                self.report.files += 1;
                self.report.bytes = self.report.bytes.saturating_add(stat.size);
            }
            None => {}
        }
        if inode.is_some_and(|inode| !inode.has_xattrs) {
            self.hidden.insert(number);
        }
        let damaged = inode.is_none() && found != Some(Found::Missing);
        let seen = Seen::new(inode.as_ref(), &stat, stat.hints.encryption_key);
        self.seen.insert(number, Seen { damaged, ..seen });
        Ok(())
    }

    /// Reads the list of orphans.
    pub(super) fn orphans(&mut self) -> Result<()> {
        let mut from = 0;
        loop {
            let batch = orphan::list_orphans(self.device, from, OBJECTS_AT_ONCE)?;
            let Some(last) = batch.last() else { return Ok(()) };
            from = last.saturating_add(1);
            for number in batch {
                match self.seen.get_mut(&number) {
                    Some(seen) => seen.orphan = true,
                    None => self.find(Finding::new(FindingKind::OrphanMissing, number)),
                }
            }
        }
    }

    /// Reads every name and extended attribute.
    pub(super) fn contents(&mut self) -> Result<()> {
        let numbers: Vec<u64> = self.seen.keys().copied().collect();
        for number in numbers {
            self.slots_of(number, AttributeKind::ENTRY)?;
            self.slots_of(number, AttributeKind::XATTR)?;
        }
        Ok(())
    }

    fn slots_of(&mut self, number: u64, kind: AttributeKind) -> Result<()> {
        let slots = Slots { device: self.device, object: ObjectId(number), kind };
        let mut from = 0;
        let mut first = true;
        loop {
            let listed = slots.list(from, SLOTS_AT_ONCE);
            let key = self.seen.get(&number).map(|seen| seen.key).filter(|key| *key != 0);
            if let Some(key) = key
                && listed.as_ref().is_err_and(|error| error.kind == ErrorKind::KeyNeeded)
            {
                self.locked.insert(key);
                return Ok(());
            }
            let Some(batch) = self.readable(number, listed)? else { return Ok(()) };
            let Some(last) = batch.last() else { return Ok(()) };
            from = last.index.saturating_add(1);
            if std::mem::take(&mut first) && kind == AttributeKind::ENTRY {
                let file_type = self.seen.get(&number).and_then(|seen| seen.file_type);
                if file_type.is_some_and(|file_type| file_type != FileType::Directory) {
                    self.find(Finding::new(FindingKind::NamesInFile, number));
                    return Ok(());
                }
            }
            for slot in batch {
                if slot.payload.is_empty() {
                    continue;
                }
                if kind == AttributeKind::ENTRY {
                    self.entry(&slots, number, &slot)?;
                } else {
                    self.xattr(&slots, number, &slot)?;
                }
            }
            if from == u64::MAX {
                return Ok(());
            }
        }
    }

    fn entry(&mut self, slots: &Slots<'_>, directory: u64, slot: &Slot) -> Result<()> {
        let Some(entry) = Entry::decode(&slot.payload) else {
            let finding = Finding { slot: Some(slot.index), ..Finding::new(FindingKind::EntryDamaged, directory) };
            self.find(finding);
            return Ok(());
        };
        self.report.names += 1;
        let at = |kind| Finding::new(kind, directory).at(slot.index, entry.name);
        let same_name = |payload: &[u8]| Entry::decode(payload).is_some_and(|other| other.name == entry.name);
        match self.place(slots, slot, self.hash.home(entry.name), same_name)? {
            Placed::Right => {}
            Placed::Hidden => self.find(at(FindingKind::EntryMisplaced)),
            Placed::Second => {
                self.find(at(FindingKind::EntryDuplicate));
                return Ok(());
            }
        }
        let Some(target) = self.seen.get_mut(&entry.inode) else {
            self.find(at(FindingKind::EntryDangling).found_inode(entry.inode));
            return Ok(());
        };
        let target_type = target.file_type;
        let declared = entry.file_type;
        if target_type.is_some_and(|actual| actual != declared) {
            let (expected, found) = (target_type.map_or(0, |t| t as u64), declared as u64);
            self.find(at(FindingKind::EntryWrongType).counts(expected, found));
        }
        let is_directory = target_type.unwrap_or(declared) == FileType::Directory;
        if is_directory && !self.name_directory(entry.inode, directory, slot.index, entry.name) {
            return Ok(());
        }
        if let Some(target) = self.seen.get_mut(&entry.inode) {
            target.names += 1;
        }
        if let Some(holder) = self.seen.get_mut(&directory) {
            holder.names_in += 1;
            holder.directories_in += u64::from(is_directory);
        }
        Ok(())
    }

    /// Notes a directory's name; false if it has one already or is the root, and this one is too
    /// much.
    fn name_directory(&mut self, number: u64, directory: u64, slot: u64, name: &[u8]) -> bool {
        let named = NamedIn { directory, slot, name: name.to_vec() };
        let parent = self.seen.get(&number).map_or(0, |seen| seen.parent);
        let surplus = match self.named_in.get(&number).cloned() {
            _ if number == 1 => named,
            None => {
                self.named_in.insert(number, named);
                return true;
            }
            Some(first) if parent == directory && first.directory != parent => {
                self.named_in.insert(number, named);
                // The first one was counted; its place is taken by this one.
                if let Some(holder) = self.seen.get_mut(&first.directory) {
                    holder.names_in -= 1;
                    holder.directories_in -= 1;
                }
                if let Some(holder) = self.seen.get_mut(&directory) {
                    holder.names_in += 1;
                    holder.directories_in += 1;
                }
                first
            }
            Some(_) => named,
        };
        let finding = Finding::new(FindingKind::DirectoryTwice, surplus.directory).at(surplus.slot, &surplus.name);
        self.find(finding.found_inode(number));
        false
    }

    fn xattr(&mut self, slots: &Slots<'_>, number: u64, slot: &Slot) -> Result<()> {
        if self.hidden.remove(&number) {
            self.find(Finding::new(FindingKind::XattrsHidden, number));
        }
        let Some(xattr) = Xattr::decode(&slot.payload) else {
            let finding = Finding { slot: Some(slot.index), ..Finding::new(FindingKind::XattrDamaged, number) };
            self.find(finding);
            return Ok(());
        };
        let at = |kind| Finding::new(kind, number).at(slot.index, xattr.name);
        let same_name = |payload: &[u8]| Xattr::decode(payload).is_some_and(|other| other.name == xattr.name);
        if self.place(slots, slot, self.hash.home(xattr.name), same_name)? != Placed::Right {
            self.find(at(FindingKind::XattrMisplaced));
        }
        if let Value::Object { object, size } = xattr.value {
            let held = self.device.stat(object).ok().map(|stat| stat.size);
            match self.seen.get_mut(&object.0) {
                Some(value) if value.file_type.is_none() && held == Some(size) => value.is_value = true,
                _ => self.find(Finding { found: held, ..at(FindingKind::XattrValueWrong) }),
            }
        }
        Ok(())
    }

    /// Whether a search that starts at `home` comes to the slot.
    fn place(
        &mut self,
        slots: &Slots<'_>,
        slot: &Slot,
        home: u64,
        same_name: impl Fn(&[u8]) -> bool,
    ) -> Result<Placed> {
        if slot.index == home {
            return Ok(Placed::Right);
        }
        if !(FIRST_SLOT..=LAST_SLOT).contains(&slot.index) {
            return Ok(Placed::Hidden);
        }
        // Only displaced entries come here, and with a keyed hash there are none: reading is fine.
        let mut index = home;
        loop {
            let bytes = slots.device.attribute(slots.object, onode_object::AttributeKey::new(slots.kind, index))?;
            let Some(passed) = bytes.map(|bytes| Slot::from_bytes(index, bytes)) else { return Ok(Placed::Hidden) };
            if same_name(&passed.payload) {
                return Ok(if index == slot.index { Placed::Right } else { Placed::Second });
            }
            if !passed.passed {
                return Ok(Placed::Hidden);
            }
            index = next_slot(index);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placed {
    Right,
    Hidden,
    Second,
}

impl Finding {
    pub(super) const fn found_inode(mut self, number: u64) -> Self {
        self.found = Some(number);
        self
    }
}
