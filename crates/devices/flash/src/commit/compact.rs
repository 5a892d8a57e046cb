//! Compact commits: what a small synced write can do without.
//!
//! A synced write of whole pages would take one more for its record. Where the spare area has room
//! for the record, the content goes to the journal itself, and the record goes with the last page
//! of it. An attribute that changes a little is logged as what changed, which makes records short
//! enough.
//!
//! Pages that carry their trailers themselves have no such room, and 4 KiB have a tail of a few
//! bytes there. It goes with the rest, into a page that waits for what is written next
//! ([`crate::log::waiting`]): with the record it would be an extent of its own and keep a journal
//! segment from becoming empty.

use crate::log::patch::Patch;
use crate::log::record::{Change, FRAME_HEADER_BYTES, Piece, Record};
use crate::medium::format::FEATURE_COMPACT_RECORDS;
use crate::volume::Volume;
use alloc::vec;
use alloc::vec::Vec;
use onode_engine::Key;
use onode_object::{Mutation, Result, Transaction};

/// Larger writes gain little, and the journal is to stay short.
const PAGES_MAX: usize = 4;

/// How a host works: with a sync after each commit, or after many. What it did last it will do
/// again; at first each commit is taken for one that a sync follows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rhythm {
    /// Commits since the last sync.
    commits: u32,
    /// The last sync was for many commits.
    gathers: bool,
}

impl Rhythm {
    /// A commit; whether a sync is likely to follow at once.
    pub const fn commit(&mut self) -> bool {
        self.commits = self.commits.saturating_add(1);
        self.gathers |= self.commits > 1;
        !self.gathers
    }

    /// A sync.
    pub const fn sync(&mut self) {
        if self.commits > 0 {
            self.gathers = self.commits > 1;
        }
        self.commits = 0;
    }
}

impl Volume<'_> {
    const fn logs_compactly(&self) -> bool {
        self.checkpoints.has_feature(FEATURE_COMPACT_RECORDS)
    }

    /// What is logged in place of `change`, which has not been applied yet, if that is shorter.
    pub fn patch(&mut self, change: &Change) -> Result<Option<Change>> {
        let Change::Mutation(Mutation::SetAttribute { object, key, value }) = change else { return Ok(None) };
        if !self.logs_compactly() {
            return Ok(None);
        }
        let patch = self.index.entry(self.log, &Key::attribute(*object, *key), |old| Patch::between(old, value))?;
        Ok(patch.flatten().map(|patch| Change::Patch { object: *object, key: *key, patch }))
    }

    /// Whether the content of `transaction`, which will be durable at once, goes to the journal in
    /// one run. If that comes otherwise, it has still gone to a good place.
    pub fn belongs_in_one_run(&mut self, transaction: &Transaction) -> Result<bool> {
        let layout = *self.log.layout();
        let (payload, spare) = (layout.payload_bytes as usize, layout.spare_record_bytes as usize);
        let mut writes = transaction.mutations.iter().filter_map(|one| match one {
            Mutation::Write { data, .. } if !data.is_empty() => Some(data.len()),
            _ => None,
        });
        let (Some(length), None) = (writes.next(), writes.next()) else { return Ok(false) };
        Ok(spare > 0
            && length.is_multiple_of(payload)
            && length <= PAGES_MAX * payload
            && self.checkpoints.settings().packs
            && self.log.journal_starts_page(spare)
            && self.record_bytes(transaction)? <= spare)
    }

    /// About how many bytes the record of `transaction` takes in a page.
    fn record_bytes(&mut self, transaction: &Transaction) -> Result<usize> {
        let layout = *self.log.layout();
        let location = u64::from(layout.segments) * layout.segment_bytes();
        let mut changes = Vec::with_capacity(transaction.mutations.len());
        for mutation in &transaction.mutations {
            changes.push(match mutation {
                Mutation::Write { object, offset, data } if !data.is_empty() => {
                    let pieces = vec![Piece { location, length: data.len() as u32 }];
                    Change::Place { object: *object, offset: *offset, pieces }
                }
                other => {
                    let change = Change::Mutation(other.clone());
                    self.patch(&change)?.unwrap_or(change)
                }
            });
        }
        let record = Record::Commit { transaction: self.log.transaction() + 1, changes };
        Ok(FRAME_HEADER_BYTES + record.encode().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rhythm_goes_on() {
        let mut rhythm = Rhythm::default();
        assert!(rhythm.commit());
        rhythm.sync();
        assert!(rhythm.commit());
        assert!(!rhythm.commit());
        rhythm.sync();
        assert!(!rhythm.commit(), "many were gathered before");
        rhythm.sync();
        rhythm.sync();
        assert!(rhythm.commit());
    }
}
