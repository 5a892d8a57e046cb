//! How many objects the host has: those of the device without what snapshots are kept in.
//!
//! The lists of snapshots have an entry for each version, some hundred on a page. They are counted
//! once, when somebody asks first; from then on what the host makes and removes is.

use crate::snapshots::Versioned;
use crate::snapshots::record::Records;
use crate::snapshots::version::List;
use onode_object::{Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result, Transaction};
use std::sync::atomic::{AtomicU64, Ordering};

/// Entries that are asked for at once.
const AT_ONCE: usize = 1024;
/// How often it is counted before somebody else is asked.
const TRIES: usize = 3;
const UNKNOWN: u64 = u64::MAX;

/// The number of objects that the host has, once it was counted. It changes while the records of
/// snapshots are held, and is counted while they are held alone.
pub(super) struct Visible(AtomicU64);

impl Default for Visible {
    fn default() -> Self {
        Self(AtomicU64::new(UNKNOWN))
    }
}

impl Visible {
    fn known(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|count| *count != UNKNOWN)
    }

    /// The host has so many more.
    pub(super) fn add(&self, more: i64) {
        if self.known().is_some() {
            self.0.fetch_add(more as u64, Ordering::Relaxed);
        }
    }
}

/// How many objects more there are after a transaction.
pub(super) fn more_by(transaction: &Transaction) -> i64 {
    let of_one = |one: &Mutation| match one {
        Mutation::Create { .. } => 1,
        Mutation::Remove { .. } => -1,
        _ => 0,
    };
    transaction.mutations.iter().map(of_one).sum()
}

impl<D: ObjectDevice + ?Sized> Versioned<D> {
    /// Those of `all` objects that the host has; all of them if it cannot be told.
    pub(super) fn visible_of(&self, all: u64) -> u64 {
        if self.records().is_new() {
            return all;
        }
        self.visible.known().or_else(|| self.count_visible().ok()).unwrap_or(all)
    }

    fn count_visible(&self) -> Result<u64> {
        let records = self.records.write();
        if let Some(known) = self.visible.known() {
            return Ok(known);
        }
        for _ in 0..TRIES {
            let all = self.inner().space().objects;
            let hidden = self.count_hidden(&records)?;
            // What deleted clones had goes meanwhile.
            if self.inner().space().objects == all {
                let visible = all.saturating_sub(hidden);
                self.visible.0.store(visible, Ordering::Relaxed);
                return Ok(visible);
            }
        }
        Err(Error::new(ErrorKind::Busy, "objects go while they are counted"))
    }

    fn count_hidden(&self, records: &Records) -> Result<u64> {
        let is_there = |object: ObjectId| u64::from(self.inner().stat(object).is_ok());
        let mut hidden = is_there(ObjectId::SNAPSHOTS) + is_there(ObjectId::RECEIVED);
        for list in records.lists().filter_map(List::of) {
            hidden += is_there(list.0);
            // No object has the number 0.
            let mut from = ObjectId(1);
            loop {
                let found = list.entries(self.inner(), from, AT_ONCE)?;
                let Some(last) = found.last() else { break };
                from = ObjectId(last.object.0 + 1);
                hidden += found.len() as u64;
            }
        }
        Ok(hidden)
    }
}
