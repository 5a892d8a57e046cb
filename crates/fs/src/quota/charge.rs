//! What a transaction changes of what is used, worked out from the transaction itself: so nobody
//! who makes one can forget it, and the records change in the commit that they count.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::inodes::inode::{INODE_KEY, Inode};
use crate::inodes::{Found, Inodes};
use crate::quota::record::{Charged, QuotaRecord};
use crate::quota::table::Holder;
use crate::state::State;
use crate::types::InodeNumber;
use crate::volume::VOLUME;
use onode_base::ErrorKind;
use onode_object::{Mutation, ObjectId, Transaction};
use std::collections::BTreeMap;

/// What the device has of a file, as far as it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub holder: Holder,
    pub bytes: u64,
}

/// A file that a transaction changes.
#[derive(Clone, Copy, Debug, Default)]
struct Draft {
    before: Option<Counted>,
    /// As the transaction leaves it so far; without a holder it is no file, or none yet.
    holder: Option<Holder>,
    bytes: u64,
    is_removed: bool,
}

impl Draft {
    fn after(&self) -> Option<Counted> {
        let holder = self.holder.filter(|_| !self.is_removed)?;
        Some(Counted { holder, bytes: self.bytes })
    }
}

/// What a limit has more, or less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Change {
    bytes: i64,
    files: i64,
}

/// What a transaction changes of all limits.
#[derive(Debug, Default)]
pub(crate) struct Charges {
    changes: BTreeMap<Charged, Change>,
    /// Trees whose topmost directory goes.
    ended: Vec<Charged>,
}

/// The part of an object's number that is about a file.
enum Part {
    File(ObjectId),
    Inode(ObjectId),
}

fn part_of(inodes: Inodes, object: ObjectId) -> Part {
    inodes.file_of(object).map_or(Part::File(object), Part::Inode)
}

impl FileSystem {
    /// What the device has of a file; `None` if the object is none.
    pub(crate) fn counted(&self, state: &State, file: ObjectId) -> Result<Option<Counted>> {
        if let Some(node) = state.nodes.get(&file.0).filter(|node| node.seen == state.seen) {
            let counted = Counted { holder: Holder::of(&node.inode), bytes: node.device_size };
            return Ok((!node.removed).then_some(counted));
        }
        match self.inodes.load(self.device.as_ref(), file)? {
            Found::Missing => Ok(None),
            Found::Damaged => {
                let number = InodeNumber(file.0);
                Err(Error::of(ErrorKind::Corrupt, number, "the inode is damaged; run onode repair"))
            }
            Found::Sound(inode) => {
                let bytes = self.device.stat(file)?.size;
                Ok(Some(Counted { holder: Holder::of(&inode), bytes }))
            }
        }
    }

    /// Adds to a transaction what it changes of the records of limits. Once it is committed
    /// [`charged`](Self::charged) takes that into memory.
    pub(crate) fn charge(&self, state: &State, transaction: &mut Transaction) -> Result<Charges> {
        let mut charges = Charges::default();
        if !state.quotas.is_on() {
            return Ok(charges);
        }
        for (number, draft) in self.drafts(state, transaction)? {
            let (before, after) = (draft.before, draft.after());
            for (counted, sign) in [(before, -1), (after, 1)] {
                let Some(Counted { holder, bytes }) = counted else { continue };
                let counts = |charged: &Charged| state.quotas.counts(*charged, number);
                for charged in holder.charged().into_iter().filter(counts) {
                    let change = charges.changes.entry(charged).or_default();
                    change.bytes += sign * bytes.cast_signed();
                    change.files += sign;
                }
            }
            if let Some(Counted { holder, .. }) = before.filter(|_| draft.is_removed)
                && state.quotas.top(holder.tree) == Some(number)
            {
                charges.ended.push(Charged::Tree(holder.tree));
            }
        }
        charges.changes.retain(|charged, change| *change != Change::default() && !charges.ended.contains(charged));
        for (charged, change) in &charges.changes {
            if let Some(entry) = state.quotas.get(*charged) {
                changed(&entry.record, *change).store(transaction, *charged);
            }
        }
        for charged in charges.ended.iter().filter(|charged| state.quotas.get(**charged).is_some()) {
            transaction.remove_attribute(VOLUME, charged.key());
        }
        Ok(charges)
    }

    /// Takes into memory what a commit changed of limits.
    pub(crate) fn charged(state: &mut State, charges: &Charges) {
        for (charged, change) in &charges.changes {
            if let Some(entry) = state.quotas.kept(*charged) {
                entry.record = changed(&entry.record, *change);
            }
        }
        charges.ended.iter().for_each(|charged| state.quotas.remove(*charged));
    }

    /// The files that a transaction changes, as they were and as it leaves them.
    fn drafts(&self, state: &State, transaction: &Transaction) -> Result<BTreeMap<u64, Draft>> {
        let mut drafts: BTreeMap<u64, Draft> = BTreeMap::new();
        for mutation in &transaction.mutations {
            let object = mutation.object();
            let part = part_of(self.inodes, object);
            let (Part::File(file) | Part::Inode(file)) = part;
            if object == VOLUME {
                continue;
            }
            let is_concerned = match mutation {
                Mutation::Create { .. }
                | Mutation::Remove { .. }
                | Mutation::Write { .. }
                | Mutation::Truncate { .. }
                | Mutation::SetAttribute { key: INODE_KEY, .. } => true,
                Mutation::SetAttribute { .. }
                | Mutation::RemoveAttribute { .. }
                | Mutation::Punch { .. }
                | Mutation::Move { .. }
                | Mutation::SetHints { .. }
                | Mutation::SetAccessTime { .. } => false,
            };
            if !is_concerned {
                continue;
            }
            let is_new = matches!((mutation, &part), (Mutation::Create { .. }, Part::File(_)));
            if is_new {
                drafts.insert(file.0, Draft::default());
            }
            let draft = match drafts.entry(file.0) {
                std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::btree_map::Entry::Vacant(place) => {
                    let before = self.counted(state, file)?;
                    let (holder, bytes) = before.map_or((None, 0), |it| (Some(it.holder), it.bytes));
                    place.insert(Draft { before, holder, bytes, is_removed: false })
                }
            };
            self.apply(draft, mutation, &part);
        }
        Ok(drafts)
    }

    fn apply(&self, draft: &mut Draft, mutation: &Mutation, part: &Part) {
        match (mutation, part) {
            (Mutation::SetAttribute { value, .. }, Part::File(_)) => {
                draft.holder = Inode::decode(value).map(|inode| Holder::of(&inode));
            }
            (Mutation::Write { data, .. }, Part::Inode(_)) => {
                draft.holder = Inodes::decode_object(data).map(|inode| Holder::of(&inode));
            }
            (Mutation::Write { offset, data, .. }, Part::File(_)) if !data.is_empty() => {
                draft.bytes = draft.bytes.max(offset + data.len() as u64);
            }
            (Mutation::Truncate { size, .. }, Part::File(_)) => draft.bytes = *size,
            (Mutation::Remove { .. }, Part::File(_)) => draft.is_removed = true,
            _ => {}
        }
    }
}

fn changed(record: &QuotaRecord, change: Change) -> QuotaRecord {
    let mut record = *record;
    record.used.bytes = record.used.bytes.saturating_add_signed(change.bytes);
    record.used.files = record.used.files.saturating_add_signed(change.files);
    record
}
