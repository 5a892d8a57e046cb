//! The limits of a mounted volume in memory: of each what the device has, what waits beside that,
//! and how far the counting of a new one has come.
//!
//! It takes memory for limits, not for files: no limit, no entry, and nothing else looks here.

use crate::inodes::inode::Inode;
use crate::quota::record::{Charged, QuotaRecord};
use crate::quota::{QuotaSubject, QuotaUse};
use crate::types::InodeNumber;
use std::collections::BTreeMap;

/// To whom a file is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub tree: u64,
    pub uid: u32,
    pub gid: u32,
}

impl Holder {
    pub(crate) const fn of(inode: &Inode) -> Self {
        Self { tree: inode.tree, uid: inode.uid, gid: inode.gid }
    }

    /// What it may have limits by.
    pub(crate) const fn charged(self) -> [Charged; 3] {
        [Charged::Tree(self.tree), Charged::User(self.uid), Charged::Group(self.gid)]
    }
}

/// One limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuotaEntry {
    /// As the device has it.
    pub record: QuotaRecord,
    /// Bytes beyond, or short of, what the device has: of sizes that it does not know yet.
    pub pending: i64,
}

impl QuotaEntry {
    /// What is used, all that was accepted included.
    pub(crate) fn used(&self) -> QuotaUse {
        let QuotaUse { bytes, files } = self.record.used;
        QuotaUse { bytes: bytes.saturating_add_signed(self.pending), files }
    }
}

/// A directory whose names are being looked at, and where to go on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreePlace {
    pub directory: u64,
    pub cursor: u64,
}

/// How far the counting has come.
#[derive(Clone, Debug)]
pub(crate) enum Progress {
    /// What is in these directories and below is not looked at yet.
    Tree(Vec<TreePlace>),
    /// Objects from this one on are not looked at yet.
    Objects(u64),
}

/// A limit that comes once all was counted.
#[derive(Clone, Debug)]
pub(crate) struct Forming {
    pub charged: Charged,
    pub entry: QuotaEntry,
    pub progress: Progress,
    /// Who counts, and when the last step was made, in seconds.
    pub owner: u64,
    pub touched: i64,
}

/// All limits of a volume.
#[derive(Debug, Default)]
pub(crate) struct QuotaTable {
    entries: BTreeMap<Charged, QuotaEntry>,
    /// How often it was another set of limits: what began with one does not count by another.
    pub changes: u64,
    /// Programs change files without a call: nothing can be counted. As it was found at the mount,
    /// for a device hides its memory while transactions are open.
    pub is_memory: bool,
    /// The limits of a transaction's files, which are set elsewhere.
    pub is_view: bool,
    pub forming: Option<Box<Forming>>,
}

impl QuotaTable {
    /// Whether anything has to be counted.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !self.entries.is_empty() || self.forming.is_some()
    }

    /// No limits, before those that the device has are put in.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(crate) fn insert(&mut self, charged: Charged, record: QuotaRecord) {
        self.entries.insert(charged, QuotaEntry { record, pending: 0 });
    }

    /// Puts in a limit that was counted; what waits beside it was counted with it.
    pub(crate) fn admit(&mut self, charged: Charged, entry: QuotaEntry) {
        self.changes += 1;
        self.entries.insert(charged, entry);
    }

    pub(crate) fn remove(&mut self, charged: Charged) {
        self.changes += 1;
        self.entries.remove(&charged);
        if self.forming.as_ref().is_some_and(|forming| forming.charged == charged) {
            self.forming = None;
        }
    }

    /// What holds: a limit that is being counted does not.
    pub(crate) fn get(&self, charged: Charged) -> Option<&QuotaEntry> {
        self.entries.get(&charged)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Charged, &QuotaEntry)> {
        self.entries.iter().map(|(charged, entry)| (*charged, entry))
    }

    /// The entry that is kept for `charged`, with a limit or while it is counted.
    pub(crate) fn kept(&mut self, charged: Charged) -> Option<&mut QuotaEntry> {
        let forming = self.forming.as_mut().filter(|forming| forming.charged == charged);
        self.entries.get_mut(&charged).or(forming.map(|forming| &mut forming.entry))
    }

    /// Whether a change of an object counts for `charged`: while all objects are looked at in
    /// order, those that come later are counted then.
    pub(crate) fn counts(&self, charged: Charged, object: u64) -> bool {
        match self.forming.as_ref().filter(|forming| forming.charged == charged) {
            Some(forming) => match forming.progress {
                Progress::Tree(_) => true,
                Progress::Objects(next) => object < next,
            },
            None => self.entries.contains_key(&charged),
        }
    }

    /// The topmost directory of a tree with a limit, or of one that is being counted.
    pub(crate) fn top(&self, tree: u64) -> Option<u64> {
        let charged = Charged::Tree(tree);
        let forming = self.forming.as_ref().filter(|forming| forming.charged == charged);
        let entry = self.entries.get(&charged).or(forming.map(|forming| &forming.entry));
        entry.filter(|_| tree != 0).map(|entry| entry.record.directory)
    }

    /// The tree that an inode belongs to; 0 if it says none, or one without a limit.
    pub(crate) fn tree_of(&self, inode: &Inode) -> u64 {
        if self.top(inode.tree).is_some() { inode.tree } else { 0 }
    }

    /// The tree that a name of a file must be in: the topmost directory of a tree has its name
    /// outside.
    pub(crate) fn tree_of_name(&self, number: u64, inode: &Inode) -> u64 {
        if self.top(inode.tree).is_none_or(|top| top == number) { 0 } else { inode.tree }
    }

    /// The tree that is being counted, if a directory is in it and a file of it was not yet met.
    pub(crate) fn adopts(&self, directory: &Inode, file: &Inode) -> Option<u64> {
        let Charged::Tree(tree) = self.forming.as_ref()?.charged else { return None };
        (directory.tree == tree && self.tree_of(file) == 0).then_some(tree)
    }

    /// A directory that was just taken into the tree is to be looked at, too.
    pub(crate) fn look_into(&mut self, directory: u64) {
        if let Some(Progress::Tree(places)) = self.forming.as_mut().map(|forming| &mut forming.progress) {
            places.push(TreePlace { directory, cursor: 0 });
        }
    }

    /// What waits of a file has changed by so many bytes.
    pub(crate) fn add_pending(&mut self, holder: Holder, bytes: i64) {
        for charged in holder.charged() {
            if let Some(entry) = self.kept(charged) {
                entry.pending += bytes;
            }
        }
    }

    /// Nothing waits.
    pub(crate) fn clear_pending(&mut self) {
        let forming = self.forming.iter_mut().map(|forming| &mut forming.entry);
        self.entries.values_mut().chain(forming).for_each(|entry| entry.pending = 0);
    }

    /// What people call it; `None` for a tree without a limit.
    pub(crate) fn subject(&self, charged: Charged) -> Option<QuotaSubject> {
        match charged {
            Charged::Tree(tree) => self.top(tree).map(|top| QuotaSubject::Directory(InodeNumber(top))),
            Charged::User(uid) => Some(QuotaSubject::User(uid)),
            Charged::Group(gid) => Some(QuotaSubject::Group(gid)),
        }
    }
}
