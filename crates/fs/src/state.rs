//! What the file system holds in memory: nodes (inodes in use or cached), names, handles, counters.
//!
//! A node that is dirty, open or without a name stays; the others are kept while there is room,
//! whatever the kernel knows. Everything here can be rebuilt from the device, except what is dirty.

pub(crate) mod advice;
pub mod handle;
pub mod handles;
pub mod hash;
pub mod lookups;
pub mod shared_space;

use crate::content::cluster::{DirtyRanges, blocks_of};
use crate::inodes::inode::Inode;
use crate::names::cache::NameCache;
use crate::options::Options;
use crate::quota::table::{Holder, QuotaTable};
use crate::state::advice::Advice;
use crate::state::handles::{Handles, OpenFile};
use crate::state::hash::NumberMap;
use crate::state::lookups::Lookups;
use crate::state::shared_space::SharedSpace;
use crate::types::{Attributes, FileHandle, FileType, InodeNumber, Statistics};
use onode_base::{ErrorKind, Timestamp};
use onode_object::{Demand, ObjectDevice};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const INODES_LEAST: usize = 64;

/// Where a device whose objects are memory has the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Not asked since the last change.
    Unknown,
    /// Not in one block.
    Scattered,
    /// In the block at this address, from its start on.
    Block(u64),
}

/// One file in memory.
#[derive(Debug)]
pub(crate) struct Node {
    pub inode: Inode,
    /// The size users see.
    pub size: u64,
    /// The size of the object at the device.
    pub device_size: u64,
    /// How much of the device's bytes still counts: a truncation that the device does not know yet
    /// makes it smaller than `device_size`.
    pub valid: u64,
    /// Bytes that occupy the medium, as the device last told; `None` after a change.
    pub allocated: Option<u64>,
    /// Where the device has its bytes.
    pub place: Place,
    /// Bytes the device does not have yet.
    pub dirty: DirtyRanges,
    /// Space that is set aside for what the device does not have yet.
    pub promised: u64,
    /// Bytes that are counted for limits beyond, or short of, what the device has.
    pub charged: i64,
    /// The inode differs from the device's.
    pub inode_dirty: bool,
    /// The access time differs from the device's, and nothing else of the inode does.
    pub access_dirty: bool,
    /// The access time that the device keeps apart from the inode; 0 for none.
    pub device_accessed: u64,
    /// Since when anything is dirty, and the place in the order of dirty files.
    pub dirty_since: Option<(Timestamp, u64)>,
    /// Handles open.
    pub opens: u64,
    /// Its content was cut to nothing and is being written anew: closing it writes it out.
    pub rewritten: bool,
    /// Number of failed write-backs so far and the kind of the last.
    pub failures: u64,
    pub failure: Option<ErrorKind>,
    /// Failures told to those without a handle.
    pub failures_told: u64,
    /// The object is gone from the device; only the memory of it answers.
    pub removed: bool,
    /// It lost its last name here and is still in use. The device need not know: its inode there
    /// may still have a link, and only the list of orphans tells.
    pub is_orphan: bool,
    /// Used since the last sweep.
    pub used: bool,
    /// Of a view: its content was read. What the kernel keeps of that goes with the size that the
    /// file had then.
    pub is_size_kept: bool,
    /// What [`State::seen`] was when it was last read from the device.
    pub seen: u64,
    /// The advice that the object has, if somebody asked for it.
    pub advice: Option<Advice>,
}

impl Node {
    pub(crate) fn new(inode: Inode, size: u64) -> Self {
        Self {
            inode,
            size,
            device_size: size,
            valid: size,
            allocated: None,
            place: Place::Unknown,
            dirty: DirtyRanges::default(),
            promised: 0,
            charged: 0,
            inode_dirty: false,
            access_dirty: false,
            device_accessed: 0,
            dirty_since: None,
            opens: 0,
            rewritten: false,
            failures: 0,
            failure: None,
            failures_told: 0,
            removed: false,
            is_orphan: false,
            used: true,
            is_size_kept: false,
            seen: 0,
            advice: None,
        }
    }

    /// A transaction changed what the device has of it.
    pub(crate) const fn device_changed(&mut self) {
        self.allocated = None;
        self.place = Place::Unknown;
    }

    /// Whether it is a regular file whose bytes and size are what the device has.
    pub(crate) fn is_as_on_device(&self) -> bool {
        self.inode.file_type == FileType::Regular
            && !self.removed
            && self.dirty.is_empty()
            && self.size == self.device_size
            && self.valid == self.device_size
    }

    /// Whether the device does not know all of it yet.
    pub(crate) fn is_dirty(&self) -> bool {
        self.inode_dirty
            || self.access_dirty
            || !self.dirty.is_empty()
            || self.valid != self.device_size
            || self.size != self.device_size
    }

    /// What the device will be given of its content if `range`, another one, becomes dirty as well.
    pub(crate) fn demand(&self, range: Option<(u64, usize)>) -> Demand {
        let (offset, length) = range.unwrap_or((0, 0));
        // A file that only grows may need a block for what it had.
        let grows = u64::from(self.size > self.device_size && self.dirty.is_empty());
        Demand {
            ranges: self.dirty.count() as u64 + u64::from(range.is_some()).max(grows),
            bytes: (self.dirty.bytes() + length) as u64,
            blocks: self.dirty.blocks() + blocks_of(offset, length).max(grows),
            object_bytes: self.size.max(self.device_size).max(offset + length as u64),
            is_new: self.device_size == 0,
            ..Demand::default()
        }
    }

    /// Whether it was read since the device heard of it, and nothing else.
    pub(crate) fn is_read_only_since(&self) -> bool {
        let is_written = self.inode_dirty || !self.dirty.is_empty();
        self.access_dirty && !is_written && self.valid == self.device_size && self.size == self.device_size
    }

    /// Whether all that is known of it can be read again.
    fn can_go(&self) -> bool {
        let is_whole = !self.removed && !self.is_orphan && self.failures_told == self.failures;
        is_whole && self.opens == 0 && !self.is_dirty() && self.dirty_since.is_none() && !self.rewritten
    }

    pub(crate) fn attributes(&self, number: u64) -> Attributes {
        let size = match self.inode.file_type {
            FileType::Directory => self.inode.entries,
            FileType::Regular | FileType::SymbolicLink => self.size,
            FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice => 0,
        };
        Attributes {
            inode: InodeNumber(number),
            generation: self.inode.generation(),
            file_type: self.inode.file_type,
            permissions: self.inode.permissions,
            links: self.inode.links,
            uid: self.inode.uid,
            gid: self.inode.gid,
            device: self.inode.device,
            size,
            blocks: (self.allocated.unwrap_or(0) + self.dirty.bytes() as u64).div_ceil(512),
            accessed: self.inode.accessed,
            modified: self.inode.modified,
            changed: self.inode.changed,
            created: self.inode.created,
        }
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub nodes: NumberMap<u64, Box<Node>>,
    /// Entries handed to the kernel and not forgotten.
    pub lookups: Lookups,
    /// Files without a name that are still in use, and when the last of them lost its name.
    pub orphans: u64,
    pub last_orphan: Option<Timestamp>,
    /// Those that nobody uses any more and that the device had no room to remove.
    pub unremoved: BTreeSet<u64>,
    /// Those in use that the device had no room to list as orphans.
    pub unlisted: BTreeSet<u64>,
    /// Nodes in the order in which the sweep looks at them.
    sweep: VecDeque<u64>,
    cached_inodes: usize,
    pub names: NameCache,
    /// Dirty files, longest dirty first, each with its place in the order; other places are of
    /// files that are clean.
    dirty_order: VecDeque<(u64, u64)>,
    dirty_files: usize,
    next_dirty: u64,
    /// Bytes in the write-clustering cache.
    pub dirty_bytes: usize,
    /// Space that there is at least as far as the device was asked, and what of it is set aside for
    /// dirty files.
    pub space: u64,
    pub promised: u64,
    /// The same where others see it.
    pub set_aside: Arc<AtomicU64>,
    /// Limits of directory trees, users and groups.
    pub quotas: QuotaTable,
    /// Views of the device, which use its space, too, are open.
    pub has_views: bool,
    /// What all file systems on the device share, this one among them, if there are several.
    shared: Option<SharedSpace>,
    /// Ids reserved and not yet used.
    pub ids: std::ops::Range<u64>,
    pub handles: Handles,
    /// Renames of directories so far, and how many of them a sync of everything has covered.
    pub directory_moves: u64,
    pub directory_moves_synced: u64,
    /// Since when the device may hold a commit that is not durable.
    pub unsynced_since: Option<Timestamp>,
    /// Why background work of the device failed when it was last asked for, if it did.
    pub upkeep_failure: Option<String>,
    /// The changes of others at the device, as far as they were heard of.
    pub seen: u64,
    pub statistics: Statistics,
}

impl State {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            nodes: NumberMap::default(),
            lookups: Lookups::default(),
            orphans: 0,
            last_orphan: None,
            unremoved: BTreeSet::new(),
            unlisted: BTreeSet::new(),
            sweep: VecDeque::new(),
            // What one call works with never goes before it is done.
            cached_inodes: options.cached_inodes.max(INODES_LEAST),
            names: NameCache::new(options.name_cache_bytes),
            dirty_order: VecDeque::new(),
            dirty_files: 0,
            next_dirty: 0,
            dirty_bytes: 0,
            space: 0,
            promised: 0,
            set_aside: Arc::default(),
            quotas: QuotaTable::default(),
            has_views: false,
            shared: None,
            ids: 0..0,
            handles: Handles::default(),
            directory_moves: 0,
            directory_moves_synced: 0,
            unsynced_since: None,
            upkeep_failure: None,
            seen: 0,
            statistics: Statistics::default(),
        }
    }

    /// Takes a node into memory and lets an unused one go if there are too many.
    pub(crate) fn insert(&mut self, number: u64, mut node: Node) {
        node.seen = self.seen;
        if self.nodes.insert(number, Box::new(node)).is_none() {
            self.sweep.push_back(number);
        }
        // A few steps a time: no insertion ever waits for a walk over all nodes.
        for _ in 0..4 {
            let too_many = self.nodes.len() > self.cached_inodes;
            // Files that are gone leave their numbers in the queue.
            if !too_many && self.sweep.len() <= 2 * self.nodes.len() + 16 {
                break;
            }
            let Some(candidate) = self.sweep.pop_front() else { break };
            let Some(node) = self.nodes.get_mut(&candidate) else { continue };
            if !too_many || candidate == number || node.used || !node.can_go() {
                node.used &= !too_many;
                self.sweep.push_back(candidate);
            } else {
                self.nodes.remove(&candidate);
            }
        }
    }

    /// Whether somebody outside holds on to a file.
    pub(crate) fn is_referenced(&self, number: u64) -> bool {
        self.lookups.of(number) > 0 || self.nodes.get(&number).is_some_and(|node| node.opens > 0)
    }

    /// Lets go of everything known of a file.
    pub(crate) fn drop_node(&mut self, number: u64) {
        self.clean(number);
        self.nodes.remove(&number);
    }

    /// Counts a file among the dirty ones.
    pub(crate) fn mark_dirty(&mut self, number: u64, now: Timestamp) {
        if let Some(node) = self.nodes.get_mut(&number)
            && node.dirty_since.is_none()
        {
            node.dirty_since = Some((now, self.next_dirty));
            self.dirty_order.push_back((self.next_dirty, number));
            self.next_dirty += 1;
            self.dirty_files += 1;
            if self.dirty_order.len() > 2 * self.dirty_files + 16 {
                let nodes = &self.nodes;
                self.dirty_order.retain(|&(place, number)| is_dirty(nodes, place, number));
            }
        }
    }

    /// Whether others use the device's space, too: then it is asked each time.
    pub(crate) const fn shares_space(&self) -> bool {
        self.has_views || self.shared.is_some()
    }

    /// The device is asked how much room there is before anything is promised again.
    pub(crate) const fn forget_space(&mut self) {
        self.space = 0;
    }

    /// Whether anybody has set aside some of the device's space.
    pub(crate) fn is_any_set_aside(&self) -> bool {
        self.promised > 0 || self.set_aside_by_others() > 0
    }

    /// What others have set aside of the device's space.
    pub(crate) fn set_aside_by_others(&self) -> u64 {
        let all = self.shared.as_ref().map_or(0, |shared| shared.ledger.load(Ordering::Relaxed));
        all.saturating_sub(self.promised)
    }

    /// What it shares with others.
    pub(crate) const fn shared_space(&self) -> Option<&SharedSpace> {
        self.shared.as_ref()
    }

    /// Takes part in what file systems on a device share, or in nothing any more.
    pub(crate) fn share_space(&mut self, shared: Option<SharedSpace>) {
        let promised = self.promised;
        self.set_promised(0);
        (self.shared, self.space) = (shared, 0);
        self.set_promised(promised);
    }

    /// So much is set aside from now on.
    fn set_promised(&mut self, promised: u64) {
        // It wraps around, so less is added like more.
        let more = promised.wrapping_sub(self.promised);
        let ledger = self.shared.as_ref().map(|shared| &shared.ledger);
        if let Some(ledger) = ledger.filter(|ledger| !Arc::ptr_eq(ledger, &self.set_aside)) {
            ledger.fetch_add(more, Ordering::Relaxed);
        }
        self.set_aside.fetch_add(more, Ordering::Relaxed);
        self.promised = promised;
    }

    /// Space that is neither used nor set aside.
    pub(crate) const fn budget(&self) -> u64 {
        self.space.saturating_sub(self.promised)
    }

    /// What is dirty of a file has changed: sets aside for it what it needs now.
    pub(crate) fn promise(&mut self, device: &dyn ObjectDevice, number: u64) {
        let Some(node) = self.nodes.get_mut(&number) else { return };
        let content = match node.dirty.is_empty() && node.size <= node.device_size {
            true => 0,
            false => device.space_for(&node.demand(None)),
        };
        let cut = node.device_size.saturating_sub(node.valid);
        let replaced = match cut > 0 || (content == 0 && node.inode_dirty) {
            true => device.space_to_replace(cut),
            false => 0,
        };
        let needs = content + replaced;
        let before = std::mem::replace(&mut node.promised, needs);
        self.set_promised(self.promised - before + needs);
        if self.quotas.is_on() {
            self.charge_pending(number);
        }
    }

    /// Counts for limits what the device does not know yet of the size of a file.
    fn charge_pending(&mut self, number: u64) {
        let Some(node) = self.nodes.get_mut(&number) else { return };
        // No file has more than 2^63 bytes.
        let waits = if node.removed { 0 } else { node.size.cast_signed() - node.device_size.cast_signed() };
        let before = std::mem::replace(&mut node.charged, waits);
        self.quotas.add_pending(Holder::of(&node.inode), waits - before);
    }

    /// The same of all files anew, for limits that were not there before.
    pub(crate) fn recount_pending(&mut self) {
        self.quotas.clear_pending();
        let dirty: Vec<u64> = self.dirty().collect();
        for number in dirty {
            if let Some(node) = self.nodes.get_mut(&number) {
                node.charged = 0;
            }
            self.charge_pending(number);
        }
    }

    /// The device has what was set aside for a file, or a part of it: that space is used now.
    pub(crate) fn keep_promise(&mut self, device: &dyn ObjectDevice, number: u64) {
        let before = self.promised;
        self.promise(device, number);
        self.space = self.space.saturating_sub(before.saturating_sub(self.promised));
    }

    /// How many files are dirty.
    pub(crate) const fn dirty_files(&self) -> usize {
        self.dirty_files
    }

    /// The dirty files, longest dirty first.
    pub(crate) fn dirty(&self) -> impl Iterator<Item = u64> {
        self.dirty_order
            .iter()
            .filter(|&&(place, number)| is_dirty(&self.nodes, place, number))
            .map(|(_, number)| *number)
    }

    /// Takes a file out of the order of dirty ones; whether it was there.
    pub(crate) fn unmark_dirty(&mut self, number: u64) -> bool {
        let was_dirty = self.nodes.get_mut(&number).is_some_and(|node| node.dirty_since.take().is_some());
        if was_dirty {
            self.dirty_files -= 1;
            // So the first one is found at once.
            while self.dirty_order.front().is_some_and(|&(place, number)| !is_dirty(&self.nodes, place, number)) {
                self.dirty_order.pop_front();
            }
        }
        was_dirty
    }

    /// Forgets what is dirty of a file and that it is.
    pub(crate) fn clean(&mut self, number: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            self.dirty_bytes -= node.dirty.bytes();
            let promised = std::mem::take(&mut node.promised);
            let charged = std::mem::take(&mut node.charged);
            if charged != 0 {
                self.quotas.add_pending(Holder::of(&node.inode), -charged);
            }
            node.dirty.clear();
            node.inode_dirty = false;
            node.access_dirty = false;
            self.set_promised(self.promised - promised);
            self.unmark_dirty(number);
        }
    }

    /// A new handle of a file.
    pub(crate) fn open_handle(&mut self, number: u64) -> Option<FileHandle> {
        let node = self.nodes.get_mut(&number)?;
        node.opens += 1;
        Some(self.handles.open(OpenFile { inode: number, failures_told: node.failures }))
    }

    /// Forgets every name, and every file that is neither dirty nor in use: the device may have
    /// others now.
    pub(crate) fn forget_caches(&mut self) {
        self.names.clear();
        self.sweep.retain(|number| {
            let stays = self.nodes.get(number).is_some_and(|node| !node.can_go());
            if !stays {
                self.nodes.remove(number);
            } else if let Some(node) = self.nodes.get_mut(number) {
                node.device_changed();
            }
            stays
        });
    }
}

/// Whether a file has this place in the order of dirty ones.
fn is_dirty(nodes: &NumberMap<u64, Box<Node>>, place: u64, number: u64) -> bool {
    let since = nodes.get(&number).and_then(|node| node.dirty_since);
    since.is_some_and(|(_, of_file)| of_file == place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_the_files_there_are_not_those_there_were() {
        let mut state = State::new(&Options { cached_inodes: 100, ..Options::default() });
        let node = || Node::new(Inode::new(FileType::Regular, 0o644, Timestamp::default()), 0);
        for number in 0..10_000 {
            state.insert(number, node());
            state.drop_node(number);
        }
        assert!(state.sweep.len() < 100, "{} numbers of files that are gone", state.sweep.len());
        for number in 0..10_000 {
            state.insert(number, node());
        }
        assert!(state.nodes.len() <= 101 && state.sweep.len() <= 110);
        let mut held = node();
        held.opens = 1;
        state.insert(1_000_000, held);
        (0..10_000).for_each(|number| state.lookups.add(number));
        for number in 0..10_000 {
            state.insert(number, node());
        }
        assert!(state.nodes.contains_key(&1_000_000), "what is in use stays");
        assert!(state.nodes.len() <= 102, "{} files in memory because the kernel knows them", state.nodes.len());
    }
}
