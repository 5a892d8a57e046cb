//! Making and opening pools: which members have which state, and who of them is believed.
//!
//! The member with the newest epoch, and in it the newest change, has the state of the pool. Others
//! are compared with it by what both recorded. Who went on alone while the others did so, too, is
//! not believed and not overwritten either: people have to choose.

use crate::pool::copy::{Figures, STEP_BYTES};
use crate::pool::label::{LABEL, MEMBERS_MAX, MEMBERSHIP, MemberEntry, MemberState, Membership, PoolLabel};
use crate::pool::label::{SLOTS_MAX, SLOTS_MIN};
use crate::pool::record::{MemberRecord, PoolRecord, attributes, set};
use crate::pool::ring::ChangeRing;
use crate::pool::standing::{Lag, MemberStanding, Verdict};
use crate::pool::{Member, Pool, PoolMember, Standings};
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::{Mutex, RwLock};
use onode_object::{
    AttributeKey, Durability, Error, ErrorKind, Hints, ObjectDevice, ObjectId, ObjectKind, Result, Transaction,
};
use std::collections::BTreeSet;

/// Attributes that one transaction sets.
const SET_AT_ONCE: usize = 128;
/// From so many bytes on a volume has the larger ring.
const LARGE_BYTES: u64 = 64 << 20;
/// Bytes that are compared before a pool is opened; the rest is for `maintain`.
const COMPARED_AT_OPEN: u64 = 64 << 20;
/// Locks of content.
const SHARDS: usize = 64;

/// A member that said what it is.
struct Found<D> {
    member: PoolMember<D>,
    record: MemberRecord,
}

impl<D: ObjectDevice> Pool<D> {
    /// Makes a pool of empty devices.
    ///
    /// # Errors
    /// `Invalid` for too few or too many; `Exists` for a device that is a member of a pool; those
    /// of the devices.
    pub fn create(uuid: [u8; 16], members: Vec<PoolMember<D>>) -> Result<Self> {
        if members.is_empty() || members.len() > MEMBERS_MAX {
            let detail = format!("a pool has 1 to {MEMBERS_MAX} members, not {}", members.len());
            return Err(Error::new(ErrorKind::Invalid, detail));
        }
        let least = members.iter().map(|member| member.device.space().total).min().unwrap_or(0);
        let slots = if least < LARGE_BYTES { SLOTS_MIN } else { SLOTS_MAX };
        let entry = |number| MemberEntry { number, state: MemberState::Whole, seen: 1 };
        let entries = (1..=members.len() as u8).map(entry).collect();
        let membership = Membership { epoch: 1, slots, is_all_changed: false, entries };
        for (member, number) in members.iter().zip(1..) {
            Self::prepare(&member.device, PoolLabel { pool: uuid, number }, &membership)?;
        }
        Self::open(members, false)
    }

    /// Makes an empty device a member: one of a new pool, or one that a pool was told to expect.
    ///
    /// # Errors
    /// `Exists` if it is a member of one; those of the device.
    pub(super) fn prepare(device: &D, label: PoolLabel, membership: &Membership) -> Result<()> {
        let mut transaction = Transaction::new();
        transaction.create(ObjectId::POOL, Hints { kind: ObjectKind::Volume, ..Hints::default() });
        device.commit(transaction, Durability::Buffered)?;
        set_all(device, &ChangeRing::blank(membership.slots).collect::<Vec<_>>())?;
        // The label comes last: without it the device is no member.
        let mut transaction = Transaction::new();
        transaction.set_attribute(ObjectId::POOL, MEMBERSHIP, membership.encode());
        transaction.set_attribute(ObjectId::POOL, LABEL, label.encode());
        device.commit(transaction, Durability::Durable)
    }

    /// Opens a pool with those of its members that are there. Unless nothing may change, members
    /// that lack something begin to be made equal, and if that is little they are when it returns.
    ///
    /// # Errors
    /// `WrongPart` if one is no member of this pool, was taken out of it, or if members went on
    /// without each other; `Loss` if none of them has everything; those of the devices.
    pub fn open(members: Vec<PoolMember<D>>, read_only: bool) -> Result<Self> {
        let (mut found, mut unreadable) = (Vec::new(), Vec::new());
        for member in members {
            match MemberRecord::load(&member.device) {
                Ok(record) => found.push(Found { member, record }),
                Err(error) if matches!(error.kind, ErrorKind::WrongPart | ErrorKind::NotSupported) => {
                    return Err(Error::new(error.kind, format!("{}: {}", member.name, error.detail)));
                }
                Err(error) => unreadable.push((member, error)),
            }
        }
        let newest = newest(&found, &unreadable)?;
        let mut record = PoolRecord {
            membership: found[newest].record.membership.clone(),
            ring: found[newest].record.ring.clone(),
            changed: found[newest].record.changed.clone(),
            next_id: ObjectId(0),
            synced: 0,
            broken: None,
            job: None,
            tried: 0,
            figures: Figures::default(),
        };
        let label = found[newest].record.label;
        let mut standings = Vec::new();
        for (index, one) in found.iter().enumerate() {
            standings.push(if index == newest { MemberStanding::Whole } else { compare(&found[newest], one)? });
        }
        let mut opened: Vec<Member<D>> = Vec::new();
        for Found { member, record } in found {
            opened.push(Member { number: record.label.number, name: member.name, device: member.device });
        }
        for (member, error) in unreadable {
            standings.push(MemberStanding::Out(format!("what it says of the pool cannot be read: {error}")));
            opened.push(Member { number: 0, name: member.name, device: member.device });
        }
        let likes = opened.iter().map(|member| member.device.info().transaction_bytes as u64).min().unwrap_or(0);
        let mut next_id = ObjectId(0);
        for (member, standing) in opened.iter().zip(&mut standings) {
            if read_only || standing.is_out() {
                continue;
            }
            match member.device.reserve_ids(0) {
                Ok(next) => next_id = next_id.max(next),
                Err(error) if standing.is_whole() => return Err(error),
                Err(error) => *standing = MemberStanding::Out(error.to_string()),
            }
        }
        record.next_id = next_id;
        // Before the first sync nobody knows what lags.
        record.synced = record.ring.last().saturating_sub(record.ring.half());
        let count = opened.len();
        let pool = Self {
            uuid: label.pool,
            members: opened,
            record: Mutex::new(record),
            content: (0..SHARDS).map(|_| RwLock::new(())).collect(),
            standings: Mutex::new(Standings::new(standings, count)),
            step_bytes: (likes / 2).clamp(4096, STEP_BYTES) / 4096 * 4096,
            is_read_only: read_only,
        };
        if !read_only {
            pool.begin()?;
        }
        Ok(pool)
    }

    /// Puts down who is there and brings those that lack something as far as they come at once.
    fn begin(&self) -> Result<()> {
        {
            let mut record = self.record.lock();
            let is_other = {
                let standings = self.standings.lock();
                let is_whole = standings.members.iter().all(MemberStanding::is_whole);
                !is_whole || !self.are_recorded(&record)
            };
            self.raise_ids(&mut record)?;
            if is_other {
                self.record_standings(&mut record)?;
                self.hand_over_record(&mut record)?;
            }
        }
        self.agree_on_access_times()?;
        while self.record.lock().figures.compared_bytes < COMPARED_AT_OPEN && self.rebuild_step()? {}
        Ok(())
    }

    /// Gives all members the access times that reads show. A cut leaves each member any one of
    /// those that were not covered by a sync, whatever else it has; which objects these are the
    /// ring tells.
    fn agree_on_access_times(&self) -> Result<()> {
        let mut record = self.record.lock();
        let mut failed = Vec::new();
        for object in record.ring.named() {
            let Ok(shown) = self.ask(object, |device| device.stat(object)) else { continue };
            for (index, _) in self.order() {
                let device = &self.members[index].device;
                let has_other = || device.stat(object).is_ok_and(|stat| stat.accessed != shown.accessed);
                if !self.standings.lock().members[index].has(object) || !has_other() {
                    continue;
                }
                let mut transaction = Transaction::new();
                transaction.set_access_time(object, shown.accessed);
                match device.commit(transaction, Durability::Buffered) {
                    Err(error) if Verdict::of(error.kind) == Verdict::Failed => failed.push((index, error)),
                    // Where there is no room for it, the time stays as it is.
                    _ => {}
                }
            }
        }
        let mut is_other = false;
        for (index, error) in failed {
            is_other |= self.leave_out(&mut record, index, &error)?;
        }
        if is_other { self.record_standings(&mut record) } else { Ok(()) }
    }

    /// Whether the membership says of all its members that they have everything, and they are here.
    pub(super) fn are_recorded(&self, record: &PoolRecord) -> bool {
        let is_here = |entry: &MemberEntry| self.members.iter().any(|member| member.number == entry.number);
        record.membership.is_whole() && record.membership.entries.iter().all(is_here)
    }

    /// No member hands out or refuses a number that another one has used.
    pub(super) fn raise_ids(&self, record: &mut PoolRecord) -> Result<()> {
        let next = record.next_id;
        let mut failed = Vec::new();
        for (index, _) in self.order() {
            let device = &self.members[index].device;
            let raised = device.reserve_ids(0).and_then(|own| match next.0.checked_sub(own.0) {
                None | Some(0) => Ok(own),
                Some(missing) => device.reserve_ids(missing),
            });
            if let Err(error) = raised {
                failed.push((index, error));
            }
        }
        let mut is_other = false;
        for (index, error) in failed {
            is_other |= self.leave_out(record, index, &error)?;
        }
        if is_other { self.record_standings(record) } else { Ok(()) }
    }

    /// Gives members that lack something the whole record of what changed, in place of theirs.
    fn hand_over_record(&self, record: &mut PoolRecord) -> Result<()> {
        let wanted: Vec<_> = record.ring.attributes().into_iter().chain(record.changed.attributes()).collect();
        let keys: BTreeSet<AttributeKey> = wanted.iter().map(|(key, _)| *key).collect();
        let [first, _] = ChangeRing::bounds(record.membership.slots);
        let mut is_other = false;
        for (index, is_whole) in self.order() {
            if is_whole {
                continue;
            }
            let device = &self.members[index].device;
            let handed = attributes(device, first, None).and_then(|present| {
                let mut transaction = Transaction::new();
                for (key, _) in present.iter().filter(|(key, _)| !keys.contains(key)) {
                    transaction.remove_attribute(ObjectId::POOL, *key);
                }
                device.commit(transaction, Durability::Buffered)?;
                let other: Vec<_> = wanted.iter().filter(|one| !present.contains(one)).cloned().collect();
                set_all(device, &other)
            });
            if let Err(error) = handed {
                is_other |= self.leave_out(record, index, &error)?;
            }
        }
        if is_other { self.record_standings(record) } else { Ok(()) }
    }
}

fn set_all(device: &impl ObjectDevice, all: &[(AttributeKey, Vec<u8>)]) -> Result<()> {
    for some in all.chunks(SET_AT_ONCE) {
        let mutations = some.iter().cloned().map(|(key, value)| set(key, value)).collect();
        device.commit(Transaction { mutations }, Durability::Buffered)?;
    }
    Ok(())
}

/// The member that has the state of the pool.
fn newest<D>(found: &[Found<D>], unreadable: &[(PoolMember<D>, Error)]) -> Result<usize> {
    let Some(first) = found.first() else {
        let why = unreadable.iter().map(|(member, error)| format!("{}: {error}", member.name)).collect::<Vec<_>>();
        return Err(Error::new(ErrorKind::Corrupt, format!("no member of the pool can be read: {}", why.join("; "))));
    };
    for (index, one) in found.iter().enumerate() {
        let (label, name) = (one.record.label, &one.member.name);
        if label.pool != first.record.label.pool {
            let detail = format!("{name} and {} are of different pools", first.member.name);
            return Err(Error::new(ErrorKind::WrongPart, detail));
        }
        if let Some(other) = found[..index].iter().find(|other| other.record.label.number == label.number) {
            let detail = format!("{name} and {} are both member {}", other.member.name, label.number);
            return Err(Error::new(ErrorKind::WrongPart, detail));
        }
    }
    let is_whole = |one: &Found<D>| {
        let MemberRecord { membership, label, .. } = &one.record;
        membership.entry(label.number).is_some_and(|entry| entry.state == MemberState::Whole)
    };
    let epoch = |one: &Found<D>| one.record.membership.epoch;
    let top = found.iter().map(epoch).max().unwrap_or(0);
    let candidates = found.iter().enumerate().filter(|(_, one)| epoch(one) == top && is_whole(one));
    let newest = candidates.max_by_key(|(index, one)| (one.record.ring.last(), std::cmp::Reverse(*index)));
    newest.map(|(index, _)| index).ok_or_else(|| {
        let names = found.iter().map(|one| one.member.name.as_str()).collect::<Vec<_>>().join(", ");
        let detail = format!("{names}: what is there lacks changes that a member has which is not there");
        Error::new(ErrorKind::Loss, detail)
    })
}

/// How a member stands to the newest one.
fn compare<D>(newest: &Found<D>, one: &Found<D>) -> Result<MemberStanding> {
    let (record, own) = (&newest.record, &one.record);
    let Some(entry) = record.membership.entry(own.label.number) else {
        let detail = format!("{} was taken out of the pool", one.member.name);
        return Err(Error::new(ErrorKind::WrongPart, detail));
    };
    // One that never took part knows nothing.
    if own.membership.epoch == 0 {
        return Ok(MemberStanding::Behind(Lag::all("it is new")));
    }
    let is_same_epoch = own.membership.epoch == record.membership.epoch;
    let is_other = is_same_epoch && own.membership != record.membership;
    if (own.membership.epoch > entry.seen || is_other) && !is_planted(Bug::PoolSplitMerged) {
        let detail = format!(
            "{} and {} were each changed without the other: only one of them can be right",
            newest.member.name, one.member.name
        );
        return Err(Error::new(ErrorKind::WrongPart, detail));
    }
    let (last, own_last) = (record.ring.last(), own.ring.last());
    let both = || Some(record.ring.all()?.into_iter().chain(own.ring.all()?).collect::<BTreeSet<_>>());
    let (missing, why) = match entry.state {
        MemberState::Whole if is_same_epoch && last == own_last => return Ok(MemberStanding::Whole),
        MemberState::Whole if own_last <= last && is_planted(Bug::PoolRecordTooShort) => {
            (Some(record.ring.named()), "planted")
        }
        MemberState::Whole if own_last <= last => (record.ring.since(own_last), "the last changes did not reach it"),
        MemberState::Whole => (both(), "it has changes that the others do not have"),
        MemberState::Behind | MemberState::Away if record.membership.is_all_changed => (None, ""),
        MemberState::Behind | MemberState::Away => {
            let changed = |both: BTreeSet<ObjectId>| both.into_iter().chain(record.changed.objects()).collect();
            (both().map(changed), "it was away, or was being rebuilt")
        }
    };
    Ok(MemberStanding::Behind(match missing {
        Some(listed) => Lag::of(listed, why),
        None => Lag::all("more changed than is recorded: all objects are compared"),
    }))
}
