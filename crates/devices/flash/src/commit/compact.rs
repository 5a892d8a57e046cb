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

use crate::index::tree::Setting;
use crate::log::patch::Patch;
use crate::log::record::{Change, Changes, FRAME_HEADER_BYTES, Piece, encoded, encoded_mutation};
use crate::medium::format::FEATURE_COMPACT_RECORDS;
use crate::volume::Volume;
use alloc::vec;
use alloc::vec::Vec;
use onode_engine::Key;
use onode_object::{AttributeKey, Mutation, ObjectId, Result, Transaction};

/// Larger writes gain little, and the journal is to stay short.
pub const PAGES_MAX: usize = 4;

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

    /// Sets an attribute; returns what is logged of it: what of it changed, if that is shorter than
    /// the value.
    pub fn set_attribute(&mut self, object: ObjectId, key: AttributeKey, value: Vec<u8>) -> Result<Change> {
        let (compactly, mut patch) = (self.logs_compactly(), None);
        let replaced = &mut |old: &[u8]| {
            if compactly {
                patch = Patch::between(old, &value);
            }
        };
        self.index.set_attribute(self.log, Setting { key: Key::attribute(object, key), value: &value, replaced })?;
        Ok(match patch {
            Some(patch) => Change::Patch { object, key, patch },
            None => Change::Mutation(Mutation::SetAttribute { object, key, value }),
        })
    }

    /// What is logged of a mutation that has not been applied yet, encoded.
    fn logged(&mut self, mutation: &Mutation) -> Result<Vec<u8>> {
        if let Mutation::SetAttribute { object, key, value } = mutation
            && self.logs_compactly()
        {
            let patch = self.index.entry(self.log, &Key::attribute(*object, *key), |old| Patch::between(old, value))?;
            if let Some(patch) = patch.flatten() {
                return Ok(encoded(&Change::Patch { object: *object, key: *key, patch }));
            }
        }
        Ok(encoded_mutation(mutation))
    }

    /// How the content of `transaction`, which will be durable at once, is placed. If the record
    /// gets longer than was thought, the content has still gone to a good place.
    pub fn plan(&mut self, transaction: &Transaction) -> Result<Plan> {
        let layout = *self.log.layout();
        let (payload, spare) = (layout.payload_bytes as usize, layout.spare_record_bytes as usize);
        let mut writes = transaction.mutations.iter().filter_map(|one| match one {
            Mutation::Write { data, .. } if !data.is_empty() => Some(data.len()),
            _ => None,
        });
        let (Some(length), None) = (writes.next(), writes.next()) else { return Ok(Plan::default()) };
        let fits = spare > 0
            && length.is_multiple_of(payload)
            && length <= PAGES_MAX * payload
            && self.checkpoints.settings().packs
            && self.log.journal_starts_page(spare);
        if !fits {
            return Ok(Plan::default());
        }
        let location = layout.end();
        let mut bytes = FRAME_HEADER_BYTES + Changes::new().record(self.log.transaction() + 1).len();
        let mut plan = Plan::default();
        for mutation in &transaction.mutations {
            let is_write = matches!(mutation, Mutation::Write { data, .. } if !data.is_empty());
            let change = match mutation {
                Mutation::Write { object, offset, data } if is_write => {
                    let pieces = vec![Piece { location, length: data.len() as u32 }];
                    encoded(&Change::Place { object: *object, offset: *offset, pieces })
                }
                other => self.logged(other)?,
            };
            bytes += change.len();
            plan.encoded.push(if is_write { Vec::new() } else { change });
        }
        plan.in_one_run = bytes <= spare;
        if !keeps_patches(transaction) {
            plan.encoded.clear();
        }
        Ok(plan)
    }
}

/// How the content of a transaction is placed, and what was encoded to find out.
#[derive(Debug, Default)]
pub struct Plan {
    /// Content goes to the journal in one run.
    pub in_one_run: bool,
    /// What is logged of mutations but writes, by their position, as far as it is known already.
    encoded: Vec<Vec<u8>>,
}

impl Plan {
    /// What is logged of the mutation at `position`, if it is known already.
    pub fn encoded(&self, position: usize) -> Option<&[u8]> {
        self.encoded.get(position).filter(|change| !change.is_empty()).map(|change| &change[..])
    }
}

/// Whether what attributes were before the transaction is what they are when its mutations are
/// applied one after the other.
fn keeps_patches(transaction: &Transaction) -> bool {
    let mut keys = Vec::new();
    transaction.mutations.iter().all(|one| match one {
        Mutation::SetAttribute { object, key, .. } => {
            let is_first = !keys.contains(&(*object, *key));
            keys.push((*object, *key));
            is_first
        }
        Mutation::Remove { .. } | Mutation::RemoveAttribute { .. } => false,
        _ => true,
    })
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
