//! The commits of a volume: how many there were, which of them no record has yet, and which logs
//! must have them.
//!
//! What it keeps true: what a commit needs counts among what is not synced from the moment that it
//! is applied, and nothing of it is forgotten while somebody commits beside a sync.

use crate::content::pending::Content;
use crate::log::Log;
use crate::log::change::Change;
use crate::log::group::Group;
use crate::log::need::Need;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_object::{Acknowledge, Placement, Result};

/// Figures of the log since the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogFigures {
    /// Records written.
    pub records: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// Bytes of records, padding included.
    pub bytes: u64,
}

/// The commits.
#[derive(Debug)]
pub struct Commits {
    /// Those that the log lacks.
    group: Group,
    /// How many there were so far.
    count: u64,
    /// Which logs the transaction at hand needs.
    need: Need,
    /// Which logs must have the commits since everything was durable where it must be.
    unsynced: Need,
    /// Bytes that the log of the fast disk has room for.
    fast_room: u64,
    /// Something changed since the last checkpoint.
    is_dirty: bool,
    /// When durable changes return of objects whose class does not say it.
    acknowledge: Acknowledge,
    figures: LogFigures,
}

impl Commits {
    /// None yet, of a volume whose superblock has the rule `of_volume`; the mount may have another.
    #[must_use]
    pub fn new(of_mount: Acknowledge, of_volume: Acknowledge) -> Self {
        let mut rules = [of_mount, of_volume].into_iter();
        Self {
            group: Group::default(),
            count: 0,
            need: Need::default(),
            unsynced: Need::default(),
            fast_room: 0,
            is_dirty: false,
            acknowledge: rules.find(|rule| *rule != Acknowledge::Volume).unwrap_or(Acknowledge::Safe),
            figures: LogFigures::default(),
        }
    }

    /// Figures of the log since the mount.
    #[must_use]
    pub const fn figures(&self) -> &LogFigures {
        &self.figures
    }

    /// When durable changes of an object of this class return.
    #[must_use]
    pub fn rule(&self, class: u16) -> Acknowledge {
        match Placement::from_class(class).acknowledge {
            Acknowledge::Volume => self.acknowledge,
            rule => rule,
        }
    }

    /// Whether changes of the whole volume return as soon as the fast disk has them.
    #[must_use]
    pub fn leans_on_fast(&self) -> bool {
        self.acknowledge == Acknowledge::Either
    }

    /// How many there were so far: the number of the last one.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Those that the log lacks.
    #[must_use]
    pub const fn group(&self) -> &Group {
        &self.group
    }

    /// Which logs must have those since the last sync.
    #[must_use]
    pub const fn unsynced(&self) -> Need {
        self.unsynced
    }

    /// Whether something changed since the last checkpoint.
    #[must_use]
    pub const fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// Something changed that is no commit.
    pub const fn mark_dirty(&mut self) {
        self.is_dirty = true;
    }

    /// A transaction is applied from now on.
    pub fn begin(&mut self) {
        self.need = Need::default();
    }

    /// It changes an object of this class, which says which logs it needs.
    pub fn note_class(&mut self, class: u16) {
        self.need.add(self.rule(class));
    }

    /// It was applied, wholly or in part; returns what it needs.
    pub const fn end(&mut self) -> Need {
        self.unsynced = self.unsynced.and(self.need);
        self.need
    }

    /// It is a commit: adds it to the group. Content of it is on its way to its place if
    /// `has_placed`. Returns where in the payload each of its changes ends.
    pub fn add(&mut self, changes: &[Change], has_placed: bool) -> Vec<usize> {
        if has_placed {
            self.group.note_placed();
        }
        self.count += 1;
        self.is_dirty = true;
        self.group.add(changes)
    }

    /// Content that can be read from the record of the group.
    pub fn note_contents(&mut self, contents: Vec<Content>) {
        self.group.note_contents(contents);
    }

    /// The log had so many at the mount.
    pub const fn replayed(&mut self, count: u32) {
        self.count += count as u64;
    }

    /// All up to this one are as durable as they need to be. Who commits beside a sync may need
    /// more, and another sync that waits must see what it waits for.
    pub fn synced(&mut self, commit: u64) {
        if self.count == commit || is_planted(Bug::ManyTierSyncForgets) {
            self.unsynced = Need::default();
        }
    }

    /// A checkpoint has all of them; those in the group need no record.
    pub fn take_into_checkpoint(&mut self) {
        self.group = Group::default();
        self.is_dirty = false;
    }

    /// Makes a record of the group and appends it.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn append_to(&mut self, log: &mut Log) -> Result<()> {
        let transactions = self.group.transactions();
        let bytes = log.append(&mut self.group, self.count)?;
        if transactions > 0 {
            self.note_fast_room(log);
            self.figures.records += 1;
            self.figures.transactions += u64::from(transactions);
            self.figures.bytes += bytes;
        }
        Ok(())
    }

    /// The log of the fast disk has other room than before.
    pub fn note_fast_room(&mut self, log: &Log) {
        self.fast_room = log.fast_room();
    }

    /// Whether the log of the fast disk has room for so much content, and for others like it.
    #[must_use]
    pub fn has_fast_room(&self, bytes: u64) -> bool {
        (bytes + self.group.payload().len() as u64) * 8 <= self.fast_room
    }
}
