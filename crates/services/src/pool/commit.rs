//! Commits: every change goes to every member that takes part, one after another, and with it what
//! tells that it did.
//!
//! A request is refused only as long as no member has done it. The member with the least room is
//! the first, so that a full one refuses before another one has changed, and others that may be
//! full are asked before it. A member that refuses later lacks these objects from then on; one that
//! fails is left out. Either is on the media of the others before the call returns.

use crate::pool::Pool;
use crate::pool::changed::ChangedObjects;
use crate::pool::label::{MEMBERSHIP, MemberState};
use crate::pool::record::{PoolRecord, set};
use crate::pool::ring::ChangeEntry;
use crate::pool::standing::{MemberStanding, Verdict};
use onode_base::planted::{Bug, is_planted};
use onode_object::validate::refuse_moves;
use onode_object::{
    AttributeKey, Durability, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result, SyncScope, Transaction,
};
use std::collections::BTreeSet;

/// Attributes that one transaction removes when all members have everything.
const FORGOTTEN: usize = 256;

/// A member may have no room for a change if less of it is left than this part of all, and than so
/// many times the bytes of the change, and so many bytes.
const TIGHT_PART: u64 = 32;
const TIGHT_TIMES: u64 = 4;
const TIGHT_BYTES: u64 = 256 << 10;

/// What the pool itself sets with a change.
struct OwnChanges {
    entries: Vec<ChangeEntry>,
    parts: ChangedObjects,
    /// From now on it is not recorded which objects change.
    gives_up: bool,
}

/// What came of a change.
#[derive(Default)]
struct ChangeOutcome {
    /// Somebody who has everything did it.
    is_done: bool,
    /// Nobody did it, because of this.
    refused: Option<Error>,
    /// Members that did not do what others did, and members that do not work any more.
    behind: Vec<(usize, Error)>,
    failed: Vec<(usize, Error)>,
}

impl<D: ObjectDevice> Pool<D> {
    /// As [`commit`](ObjectDevice::commit).
    pub(super) fn change(&self, transaction: &Transaction, durability: Durability) -> Result<()> {
        refuse_own(transaction)?;
        // Before a member that could do it has done it.
        refuse_moves(transaction)?;
        if !transaction.is_empty() {
            let mut record = self.record.lock();
            record.check()?;
            self.keep_ring(&mut record)?;
            self.change_recorded(&mut record, transaction)?;
        }
        match durability {
            Durability::Durable => self.make_durable(SyncScope::All),
            Durability::Buffered => Ok(()),
        }
    }

    fn change_recorded(&self, record: &mut PoolRecord, transaction: &Transaction) -> Result<()> {
        let objects: BTreeSet<_> = transaction.mutations.iter().flat_map(Mutation::objects).collect();
        let is_whole = record.membership.is_whole();
        let entries = record.ring.plan(&objects);
        let mut own = OwnChanges { entries, parts: ChangedObjects::default(), gives_up: false };
        if !is_whole && !record.membership.is_all_changed && !is_planted(Bug::PoolChangesForgotten) {
            match record.changed.with(&objects) {
                Some(parts) => own.parts = parts,
                None => own.gives_up = true,
            }
        }
        let mut outcome = self.apply(record, transaction, &own, &objects);
        // The set of what changed may need room that a full device does not have.
        if !own.parts.is_empty() && outcome.refused.as_ref().is_some_and(|error| error.kind == ErrorKind::NoSpace) {
            (own.parts, own.gives_up) = (ChangedObjects::default(), true);
            let again = self.apply(record, transaction, &own, &objects);
            outcome.failed.extend(again.failed);
            outcome = ChangeOutcome { failed: outcome.failed, ..again };
        }
        if outcome.is_done {
            record.ring.take(own.entries);
            record.changed.take(own.parts);
            record.membership.is_all_changed |= own.gives_up;
        }
        self.settle(record, outcome)
    }

    /// Has every member do it, nobody reading these objects meanwhile.
    fn apply(
        &self,
        record: &PoolRecord,
        transaction: &Transaction,
        own: &OwnChanges,
        objects: &BTreeSet<ObjectId>,
    ) -> ChangeOutcome {
        let mut mine: Vec<Mutation> =
            own.entries.iter().map(|entry| record.ring.attribute(entry)).map(set_one).collect();
        mine.extend(own.parts.attributes().map(set_one));
        if own.gives_up {
            let mut membership = record.membership.clone();
            membership.is_all_changed = true;
            mine.push(set(MEMBERSHIP, membership.encode()));
        }
        let _alone = self.alone(objects);
        let order = self.order();
        let mut outcome = ChangeOutcome { refused: self.refusal(&order, transaction, &mine), ..Default::default() };
        if outcome.refused.is_some() {
            return outcome;
        }
        for (index, is_whole) in order {
            if !is_whole && !outcome.is_done {
                break;
            }
            match self.hand_on(index, transaction, &mine) {
                Ok(()) => outcome.is_done |= is_whole,
                Err(error) => match Verdict::of(error.kind) {
                    Verdict::Refused if !outcome.is_done => {
                        outcome.refused = Some(error);
                        break;
                    }
                    Verdict::Refused | Verdict::Damaged => outcome.behind.push((index, error)),
                    Verdict::Failed => outcome.failed.push((index, error)),
                },
            }
        }
        // Before anybody reads: who did not do it does not have them.
        if outcome.is_done && !is_planted(Bug::PoolRefusalForgotten) {
            let mut standings = self.standings.lock();
            for (index, error) in &outcome.behind {
                standings.members[*index].lose(objects, &format!("it did not take a change: {error}"));
            }
        }
        outcome
    }

    /// Why a member would refuse a change that others before it in `order` have done.
    fn refusal(&self, order: &[(usize, bool)], transaction: &Transaction, mine: &[Mutation]) -> Option<Error> {
        let bytes: u64 = transaction.mutations.iter().chain(mine).map(content_bytes).sum();
        let mut all: Option<Transaction> = None;
        for (index, is_whole) in order.iter().skip(1) {
            let device = &self.members[*index].device;
            let space = device.space();
            let tight = (TIGHT_BYTES + TIGHT_TIMES * bytes).max(space.total / TIGHT_PART);
            if !is_whole || space.available > tight || is_planted(Bug::PoolFullNotAsked) {
                continue;
            }
            let all = all.get_or_insert_with(|| {
                let mutations = transaction.mutations.iter().chain(mine).cloned().collect();
                Transaction { mutations }
            });
            // What is broken tells so when it is to do it.
            match device.check_commit(all) {
                Err(error) if Verdict::of(error.kind) == Verdict::Refused => return Some(error),
                _ => {}
            }
        }
        None
    }

    /// Hands a member what of a change is for it.
    fn hand_on(&self, index: usize, transaction: &Transaction, mine: &[Mutation]) -> Result<()> {
        let device = &self.members[index].device;
        let mut mutations: Vec<Mutation> = {
            let mut standings = self.standings.lock();
            let standing = &mut standings.members[index];
            standing.give_up_moves(transaction);
            transaction.mutations.iter().filter(|one| standing.takes_change(one)).cloned().collect()
        };
        if is_planted(Bug::PoolRecordInTwo) {
            device.commit(Transaction { mutations: mine.to_vec() }, Durability::Buffered)?;
        } else {
            mutations.extend_from_slice(mine);
        }
        device.commit(Transaction { mutations }, Durability::Buffered)
    }

    /// Draws the consequences: who failed is left out, and how members stand is recorded.
    fn settle(&self, record: &mut PoolRecord, outcome: ChangeOutcome) -> Result<()> {
        let ChangeOutcome { is_done, refused, behind, failed } = outcome;
        let mut is_other = is_done && !behind.is_empty();
        for (index, error) in &failed {
            is_other |= self.leave_out(record, *index, error)?;
        }
        if is_other {
            self.record_standings(record)?;
        }
        if is_done {
            return Ok(());
        }
        let nobody = || Error::new(ErrorKind::Media, "no member of the pool could do it");
        Err(refused.or_else(|| behind.into_iter().chain(failed).next().map(|(_, error)| error)).unwrap_or_else(nobody))
    }

    /// Leaves a member out that does not work any more; whether it took part until now.
    ///
    /// # Errors
    /// The member's, if nobody else has everything: then nothing can be changed any more.
    pub(super) fn leave_out(&self, record: &mut PoolRecord, index: usize, error: &Error) -> Result<bool> {
        let mut standings = self.standings.lock();
        if standings.members[index].is_out() {
            return Ok(false);
        }
        let is_last = standings.members[index].is_whole()
            && standings.members.iter().filter(|standing| standing.is_whole()).count() == 1;
        if is_last {
            record.broken = Some(format!("{} failed, and no other member has everything: {error}", self.name(index)));
            return Err(error.clone());
        }
        standings.members[index] = MemberStanding::Out(error.to_string());
        standings.repairs.retain(|(member, _)| *member != index);
        if record.job.as_ref().is_some_and(|job| job.member == index) {
            record.job = None;
        }
        Ok(true)
    }

    /// Puts down how members stand, durably and on each that takes part. When all have everything,
    /// what changed is forgotten.
    ///
    /// # Errors
    /// If nobody is left who has everything.
    pub(super) fn record_standings(&self, record: &mut PoolRecord) -> Result<()> {
        if is_planted(Bug::PoolFailureUnrecorded) {
            return Ok(());
        }
        let mut has_room = true;
        let parts = loop {
            self.begin_epoch(record);
            let is_whole = record.membership.is_whole();
            let more = if has_room { record.ring.all().and_then(|all| record.changed.with(&all)) } else { None };
            record.membership.is_all_changed = !is_whole && (record.membership.is_all_changed || more.is_none());
            let parts = more.filter(|_| !is_whole && !record.membership.is_all_changed).unwrap_or_default();
            let mut mutations = vec![set(MEMBERSHIP, record.membership.encode())];
            mutations.extend(parts.attributes().map(set_one));
            let mut is_again = false;
            for (index, _) in self.order() {
                let transaction = Transaction { mutations: mutations.clone() };
                match self.members[index].device.commit(transaction, Durability::Durable) {
                    Ok(()) => {}
                    Err(error) if error.kind == ErrorKind::NoSpace && !parts.is_empty() => {
                        (has_room, is_again) = (false, true);
                        break;
                    }
                    Err(error) => is_again |= self.leave_out(record, index, &error)?,
                }
            }
            if !is_again {
                break parts;
            }
        };
        record.changed.take(parts);
        record.synced = record.ring.last();
        if record.membership.is_whole() { self.forget_changes(record) } else { Ok(()) }
    }

    /// The next epoch of the membership, with everybody as they stand now.
    fn begin_epoch(&self, record: &mut PoolRecord) {
        let standings = self.standings.lock();
        record.membership.epoch += 1;
        let epoch = record.membership.epoch;
        for entry in &mut record.membership.entries {
            let index = self.members.iter().position(|member| member.number == entry.number);
            entry.state = match index.map(|index| &standings.members[index]) {
                Some(MemberStanding::Whole) => MemberState::Whole,
                Some(MemberStanding::Behind(_)) => MemberState::Behind,
                Some(MemberStanding::Out(_)) | None => MemberState::Away,
            };
            if entry.state != MemberState::Away {
                entry.seen = epoch;
            }
        }
    }

    /// Removes the set of what changed. What a cut leaves of it does no harm.
    fn forget_changes(&self, record: &mut PoolRecord) -> Result<()> {
        while !record.changed.is_empty() {
            let keys = record.changed.drain(FORGOTTEN);
            let mut transaction = Transaction::new();
            keys.into_iter().for_each(|key| _ = transaction.remove_attribute(ObjectId::POOL, key));
            for (index, _) in self.order() {
                if let Err(error) = self.members[index].device.commit(transaction.clone(), Durability::Buffered)
                    && self.leave_out(record, index, &error)?
                {
                    return self.record_standings(record);
                }
            }
        }
        Ok(())
    }

    /// Syncs members before one of them can lag by more than the ring tells of.
    fn keep_ring(&self, record: &mut PoolRecord) -> Result<()> {
        if record.ring.last() - record.synced < record.ring.half() {
            return Ok(());
        }
        let mut is_other = false;
        for (index, _) in self.order() {
            if let Err(error) = self.members[index].device.sync(SyncScope::All) {
                is_other |= self.leave_out(record, index, &error)?;
            }
        }
        record.synced = record.ring.last();
        if is_other { self.record_standings(record) } else { Ok(()) }
    }

    /// As [`sync`](ObjectDevice::sync): of every member that takes part, without any lock.
    pub(super) fn make_durable(&self, scope: SyncScope) -> Result<()> {
        let last = {
            let record = self.record.lock();
            record.check()?;
            record.ring.last()
        };
        let mut failed = Vec::new();
        for (index, is_whole) in self.order() {
            // Who lacks the object need not know it.
            let scope = if is_whole { scope } else { SyncScope::All };
            if let Err(error) = self.members[index].device.sync(scope) {
                failed.push((index, error));
            }
            if is_planted(Bug::PoolSyncOfOne) {
                break;
            }
        }
        if failed.is_empty() && scope != SyncScope::All {
            return Ok(());
        }
        let mut record = self.record.lock();
        let mut is_other = false;
        for (index, error) in &failed {
            is_other |= self.leave_out(&mut record, *index, error)?;
        }
        if is_other {
            return self.record_standings(&mut record);
        }
        if failed.is_empty() {
            record.synced = record.synced.max(last);
        }
        Ok(())
    }

    /// Notes on each member that all of them have everything, which was just made durable. Who goes
    /// on without the others from here on is known to lack only what follows.
    pub(super) fn note_synced(&self) -> Result<()> {
        let mut record = self.record.lock();
        record.check()?;
        let are_whole = self.standings.lock().members.iter().all(MemberStanding::is_whole);
        let Some(entry) = record.ring.mark().filter(|_| are_whole && self.are_recorded(&record)) else { return Ok(()) };
        let mark = set_one(record.ring.attribute(&entry));
        let mut is_other = false;
        for (index, _) in self.order() {
            let transaction = Transaction { mutations: vec![mark.clone()] };
            if let Err(error) = self.members[index].device.commit(transaction, Durability::Buffered) {
                is_other |= self.leave_out(&mut record, index, &error)?;
            }
        }
        record.ring.take(vec![entry]);
        if is_other { self.record_standings(&mut record) } else { Ok(()) }
    }

    /// Members that take part, and whether each has everything: those first, the one with the least
    /// room in front.
    pub(super) fn order(&self) -> Vec<(usize, bool)> {
        let mut order: Vec<(usize, bool)> = {
            let standings = self.standings.lock();
            let all = standings.members.iter().enumerate().filter(|(_, standing)| !standing.is_out());
            all.map(|(index, standing)| (index, standing.is_whole())).collect()
        };
        if order.len() > 1 {
            order.sort_by_cached_key(|(index, is_whole)| {
                (!is_whole, if *is_whole { self.members[*index].device.space().available } else { 0 }, *index)
            });
        }
        order
    }
}

/// Bytes that a change brings.
const fn content_bytes(mutation: &Mutation) -> u64 {
    match mutation {
        Mutation::Write { data, .. } => data.len() as u64,
        Mutation::SetAttribute { value, .. } => value.len() as u64,
        _ => 0,
    }
}

/// The change that sets one of several attributes.
fn set_one(one: (AttributeKey, Vec<u8>)) -> Mutation {
    set(one.0, one.1)
}

/// Refuses what concerns the object of the pool itself, which hosts do not see.
fn refuse_own(transaction: &Transaction) -> Result<()> {
    match transaction.mutations.iter().find(|one| one.changes(ObjectId::POOL)) {
        None => Ok(()),
        Some(Mutation::Create { .. }) => {
            Err(Error::of(ErrorKind::Invalid, ObjectId::POOL, "this number is the pool's own"))
        }
        Some(_) => Err(Error::of(ErrorKind::NotFound, ObjectId::POOL, "there is no such object")),
    }
}
