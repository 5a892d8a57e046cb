//! Several devices of any kind as one: every member has every object (paper 1, section III.A).
//!
//! What the pool keeps true, whatever happens to one member:
//!
//! 1. **A change is on every member that takes part, or on none.** Members are asked one after
//!    another, the one with the least room first. As long as none has done it, a refusal is the
//!    answer. Nothing is undone: a member that refuses after another one did it *lacks* these
//!    objects from then on, and one that fails is *left out*. Both are on the media of the others
//!    before the call returns.
//! 2. **Every change is numbered.** A transaction sets, on each member and together with what it
//!    changes, an attribute of the object [`ObjectId::POOL`] with its number and the objects that
//!    it changes: one place of a ring. After a cut the member with the highest number has the state
//!    of the pool. It is a prefix of what was committed (N2), as its device promises, and has all
//!    that any sync covered (N1), for a sync is one of all members. The others get the objects that
//!    changed since their number. No member may be more than half of the ring behind: before that
//!    all are synced.
//! 3. **Who does not have an object as it is, is not asked for it.** What members lack is known by
//!    objects. An object that is being made equal gets changes already and is not read yet.
//! 4. **While not all have everything, what changes is recorded** on those that take part: a set of
//!    objects, by bits, in the same transactions. A full device that has no room for it sets a flag
//!    instead, for which there is room: then all objects are compared. What is recorded may be more
//!    than what a member lacks. It is compared, and only what differs is copied.
//! 5. **An epoch ends when a member stands otherwise.** Each member has the epoch, how all members
//!    stand, and the last epoch in which each took part. One that returns with a later epoch than
//!    the others saw of it has gone on without them: two histories, which are refused and never
//!    mixed.
//!
//! What it does not do: keep an object on fewer members than there are; notice that a member gives
//! wrong bytes which its device takes for right; notice that something wrote to a member without
//! its number (the facade refuses to).

mod changed;
mod commit;
mod copy;
mod label;
mod members;
mod mend;
mod open;
mod powers;
mod read;
mod rebuild;
mod record;
mod resizing;
mod ring;
mod standing;

pub use label::{MEMBERS_MAX, PoolLabel};
pub use members::{PoolMemberState, PoolMemberStatus};
pub use mend::Mended;

use crate::pool::record::PoolRecord;
use crate::pool::standing::MemberStanding;
use onode_base::sync::{Mutex, RwLock, WriteGuard, rank};
use onode_object::powers::{Decision, Inspect, Resize, Scrub};
use onode_object::validate::reserve;
use onode_object::{
    AttributeKey, Compression, Demand, DeviceInfo, Durability, Error, ErrorKind, Health, Maintenance, ObjectDevice,
    ObjectId, ObjectStat, ParityChoice, Result, Space, SyncScope, Transaction,
};
use std::collections::BTreeSet;

/// What a transaction takes more because of the pool: the places of the ring, and a part of the set
/// of what changed.
const OWN_ENTRIES: u64 = 3;
const OWN_BYTES: u64 = 3 * 80;

/// A device that is a member, and what people call it.
pub struct PoolMember<D> {
    /// The spec of the device, for messages.
    pub name: String,
    /// The device, which nobody else changes.
    pub device: D,
}

/// A member of an open pool.
struct Member<D> {
    /// 0 if it could not be read.
    number: u8,
    name: String,
    device: D,
}

/// How the members stand, and what was noticed of them.
struct Standings {
    members: Vec<MemberStanding>,
    /// How often each could not give what another one had.
    read_around: Vec<u64>,
    /// What is to be written to members again, and what was.
    repairs: BTreeSet<(usize, ObjectId)>,
    mended: BTreeSet<(usize, ObjectId)>,
    /// Members that were made equal since the pool was opened.
    rebuilt: BTreeSet<usize>,
}

impl Standings {
    fn new(members: Vec<MemberStanding>, count: usize) -> Self {
        Self {
            members,
            read_around: vec![0; count],
            repairs: BTreeSet::new(),
            mended: BTreeSet::new(),
            rebuilt: BTreeSet::new(),
        }
    }
}

/// Several devices as one.
pub struct Pool<D> {
    uuid: [u8; 16],
    members: Vec<Member<D>>,
    record: Mutex<PoolRecord, rank::PoolRecord>,
    /// Held to read objects, alone to change them: nobody sees a change on one member and then not
    /// on another.
    content: Vec<RwLock<(), rank::PoolContent>>,
    standings: Mutex<Standings, rank::PoolStandings>,
    /// Bytes that a step of a rebuild compares.
    step_bytes: u64,
    is_read_only: bool,
}

impl<D: ObjectDevice> Pool<D> {
    fn name(&self, index: usize) -> String {
        let Member { number, name, .. } = &self.members[index];
        if *number == 0 { name.clone() } else { format!("member {number} ({name})") }
    }

    fn shard(&self, object: ObjectId) -> usize {
        (object.0 % self.content.len() as u64) as usize
    }

    fn content_of(&self, object: ObjectId) -> &RwLock<(), rank::PoolContent> {
        &self.content[self.shard(object)]
    }

    /// Waits until nobody reads these objects.
    fn alone(&self, objects: &BTreeSet<ObjectId>) -> Vec<WriteGuard<'_, ()>> {
        let shards: BTreeSet<usize> = objects.iter().map(|object| self.shard(*object)).collect();
        shards.into_iter().map(|shard| self.content[shard].write_at(shard)).collect()
    }

    /// What the least of the members with everything says.
    fn least<T: Ord>(&self, say: impl Fn(&D) -> T) -> Option<T> {
        let standings = self.standings.lock();
        let whole: Vec<bool> = standings.members.iter().map(MemberStanding::is_whole).collect();
        drop(standings);
        self.members.iter().zip(whole).filter(|(_, is_whole)| *is_whole).map(|(member, _)| say(&member.device)).min()
    }
}

impl<D: ObjectDevice> ObjectDevice for Pool<D> {
    fn info(&self) -> DeviceInfo {
        let broken = self.record.lock().broken.clone();
        let read_only = broken.or_else(|| {
            let of_member = || self.members.iter().find_map(|member| member.device.info().read_only);
            self.is_read_only.then(|| of_member().unwrap_or_else(|| "it was opened so".to_owned()))
        });
        let likes = self.members.iter().map(|member| member.device.info().transaction_bytes).min();
        let kinds: Vec<&str> = self.members.iter().map(|member| member.device.info().kind).collect();
        DeviceInfo {
            kind: "pool",
            uuid: self.uuid,
            summary: format!("each object on {}: {}", counted(self.members.len()), kinds.join(", ")),
            read_only,
            transaction_bytes: likes.unwrap_or(0),
        }
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        let mut record = self.record.lock();
        record.check()?;
        if self.is_read_only {
            return Err(Error::new(ErrorKind::ReadOnly, "the pool was opened so that nothing changes"));
        }
        let (first, next) = reserve(record.next_id, count)?;
        record.next_id = next;
        self.raise_ids(&mut record)?;
        Ok(first)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        if self.is_read_only {
            return Err(Error::new(ErrorKind::ReadOnly, "the pool was opened so that nothing changes"));
        }
        self.change(&transaction, durability)
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        if self.is_read_only { Ok(()) } else { self.make_durable(scope) }
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        visible(object)?;
        self.read_around(object, offset, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        visible(object)?;
        self.ask(object, |device| device.attribute(object, key))
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        visible(object)?;
        self.ask(object, |device| device.attributes(object, from, limit))
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        visible(object)?;
        self.ask(object, |device| device.stat(object))
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let mut found = self.list_whole(from, limit)?;
        let is_last = found.is_empty();
        found.retain(|object| *object != ObjectId::POOL);
        // None means that there are no more: it must not be said of a hidden one.
        if found.is_empty() && !is_last { self.list_whole(ObjectId(ObjectId::POOL.0 + 1), limit) } else { Ok(found) }
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        visible(object)?;
        self.ask(object, |device| device.extents(object, offset, limit))
    }

    /// That of the member with the least.
    fn space(&self) -> Space {
        let total = self.least(|device| device.space().total).unwrap_or(0);
        let available = self.least(|device| device.space().available).unwrap_or(0);
        let objects = self.least(|device| device.space().objects).unwrap_or(0);
        Space { total, available, objects: objects.saturating_sub(1) }
    }

    /// That of the member that needs the most.
    fn space_for(&self, demand: &Demand) -> u64 {
        let demand =
            Demand { entries: demand.entries + OWN_ENTRIES, entry_bytes: demand.entry_bytes + OWN_BYTES, ..*demand };
        self.members.iter().map(|member| member.device.space_for(&demand)).max().unwrap_or(0)
    }

    /// Those of members that are away, or come later, need not be: what a service above leaves out
    /// because holes tell of it would be data there.
    fn extents_are_exact(&self) -> bool {
        false
    }

    /// None, so snapshots have content copied: what is data of one member, maybe zeros at the end
    /// of a unit, may be a hole of another one, from which nothing would come to be in a version
    /// there.
    fn move_unit(&self) -> Option<u64> {
        None
    }

    fn promisable(&self) -> u64 {
        self.least(ObjectDevice::promisable).unwrap_or(0)
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        self.tend(budget)
    }

    fn close(&self) -> Result<()> {
        // After this it matters for the next mount only whether one of them could be closed.
        let synced = match self.is_read_only {
            true => Ok(()),
            false => self.make_durable(SyncScope::All).and_then(|()| self.note_synced()),
        };
        let mut failure = None;
        let mut is_closed = false;
        for (index, is_whole) in self.order() {
            match self.members[index].device.close() {
                Ok(()) => is_closed |= is_whole,
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if !is_closed => Err(error),
            _ => synced,
        }
    }

    fn health(&self) -> Health {
        self.conditions()
    }

    fn compression(&self) -> Option<Compression> {
        self.members.iter().find_map(|member| member.device.compression())
    }

    fn rearranging_bytes(&self) -> u64 {
        self.members.iter().map(|member| member.device.rearranging_bytes()).max().unwrap_or(0)
    }

    fn rearrange(&self, budget: u32) -> Result<Maintenance> {
        self.rearrange_members(budget)
    }

    fn parity(&self) -> Option<ParityChoice> {
        self.members.iter().find_map(|member| member.device.parity())
    }

    fn decisions(&self, object: ObjectId) -> Result<Vec<Decision>> {
        visible(object)?;
        let mut decisions = self.ask(object, |device| device.decisions(object))?;
        let copies = counted(self.order().len());
        decisions.push(Decision::new("copies", &copies, "each member of the pool has everything"));
        Ok(decisions)
    }

    fn resizing(&self) -> Option<&dyn Resize> {
        self.can_be_resized().then_some(self)
    }

    fn scrub(&self) -> Option<&dyn Scrub> {
        Some(self)
    }

    fn inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }
}

/// Hosts do not see the object of the pool.
fn visible(object: ObjectId) -> Result<()> {
    if object == ObjectId::POOL {
        return Err(Error::of(ErrorKind::NotFound, object, "there is no such object"));
    }
    Ok(())
}

fn counted(members: usize) -> String {
    if members == 1 { "1 member".to_owned() } else { format!("{members} members") }
}
