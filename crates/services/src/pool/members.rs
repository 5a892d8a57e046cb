//! Members by name: who there is, who is to come, and who is taken out.

use crate::pool::Pool;
use crate::pool::label::{MEMBERS_MAX, MemberEntry, MemberState, Membership, PoolLabel};
use crate::pool::record::label_of;
use crate::pool::standing::MemberStanding;
use onode_object::{Error, ErrorKind, ObjectDevice, Result};

/// How a member stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolMemberState {
    /// It has everything.
    Whole,
    /// It takes part, lacks something and is being made equal.
    Behind {
        /// Objects that are known to be compared still; not all, if all are compared.
        objects: u64,
        /// All objects are compared, for it is not recorded what changed.
        compares_all: bool,
        /// Objects that cannot be made equal now.
        stuck: u64,
        /// Why it lacks something.
        why: String,
    },
    /// It does not take part.
    Away {
        /// Why, if that is known.
        why: String,
    },
}

/// One member, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolMemberStatus {
    /// Its number.
    pub number: u8,
    /// What people call it; empty if it is not there.
    pub name: String,
    /// How it stands.
    pub state: PoolMemberState,
}

impl<D: ObjectDevice> Pool<D> {
    /// Which member of which pool a device is; `None` if it is none.
    ///
    /// # Errors
    /// `Corrupt` and others of the device; `NotSupported` for a format of a later version.
    pub fn label_of(device: &D) -> Result<Option<PoolLabel>> {
        label_of(device)
    }

    /// The devices of the members that are there, in the order in which they were opened.
    pub fn devices(&self) -> impl Iterator<Item = &D> {
        self.members.iter().map(|member| &member.device)
    }

    /// All members in the order of their numbers, those that are not there as well.
    pub fn status(&self) -> Vec<PoolMemberStatus> {
        let record = self.record.lock();
        let standings = self.standings.lock();
        let of_entry = |entry: &MemberEntry| {
            let index = self.members.iter().position(|member| member.number == entry.number);
            let state = match index.map(|index| &standings.members[index]) {
                Some(MemberStanding::Whole) => PoolMemberState::Whole,
                Some(MemberStanding::Behind(lag)) => PoolMemberState::Behind {
                    objects: lag.listed.len() as u64 + u64::from(lag.current.is_some()),
                    compares_all: lag.rest_from.is_some(),
                    stuck: lag.stuck.len() as u64,
                    why: lag.why.clone(),
                },
                Some(MemberStanding::Out(why)) => PoolMemberState::Away { why: why.clone() },
                None => PoolMemberState::Away { why: "it was not there when the pool was opened".to_owned() },
            };
            let name = index.map_or_else(String::new, |index| self.members[index].name.clone());
            PoolMemberStatus { number: entry.number, name, state }
        };
        let mut all: Vec<_> = record.membership.entries.iter().map(of_entry).collect();
        all.sort_by_key(|member| member.number);
        all
    }

    /// Expects a member that is made next; returns what [`join`](Self::join) is to write to it.
    ///
    /// # Errors
    /// `Invalid` if the pool has as many as it can; those of the devices.
    pub fn admit(&self) -> Result<PoolLabel> {
        let mut record = self.record.lock();
        record.check()?;
        let entries = &mut record.membership.entries;
        let number = entries.iter().map(|entry| entry.number).max().unwrap_or(0).checked_add(1);
        let Some(number) = number.filter(|_| entries.len() < MEMBERS_MAX) else {
            return Err(Error::new(ErrorKind::Invalid, format!("a pool has at most {MEMBERS_MAX} members")));
        };
        entries.push(MemberEntry { number, state: MemberState::Away, seen: 0 });
        self.record_standings(&mut record)?;
        Ok(PoolLabel { pool: self.uuid, number })
    }

    /// Makes an empty device the member that a pool expects. It gets what the others have when the
    /// pool is opened with it.
    ///
    /// # Errors
    /// `Exists` if it is a member of a pool; those of the device.
    pub fn join(device: &D, label: PoolLabel) -> Result<()> {
        let entry = MemberEntry { number: label.number, state: MemberState::Behind, seen: 0 };
        let slots = crate::pool::label::SLOTS_MIN;
        // Its own epoch is before the first: it knows nothing of the others.
        let membership = Membership { epoch: 0, slots, is_all_changed: true, entries: vec![entry] };
        Self::prepare(device, label, &membership)
    }

    /// Takes a member out, which is not one again from then on.
    ///
    /// # Errors
    /// `NotFound` if there is none of that number; `Invalid` if no other one has everything; those
    /// of the devices.
    pub fn expel(&self, number: u8) -> Result<()> {
        let mut record = self.record.lock();
        record.check()?;
        if record.membership.entry(number).is_none() {
            return Err(Error::new(ErrorKind::NotFound, format!("the pool has no member {number}")));
        }
        {
            let mut standings = self.standings.lock();
            let of = |member: &crate::pool::Member<D>| member.number == number;
            let index = self.members.iter().position(of);
            let whole = standings.members.iter().enumerate().filter(|(_, standing)| standing.is_whole());
            if whole.map(|(index, _)| index).all(|whole| Some(whole) == index) {
                let why = format!("member {number} is the only one that has everything");
                return Err(Error::new(ErrorKind::Invalid, why));
            }
            if let Some(index) = index {
                standings.members[index] = MemberStanding::Out("it was taken out of the pool".to_owned());
                standings.repairs.retain(|(member, _)| *member != index);
                record.job = record.job.filter(|job| job.member != index);
            }
        }
        record.membership.entries.retain(|entry| entry.number != number);
        self.record_standings(&mut record)
    }
}
