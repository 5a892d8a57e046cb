//! What each member says of the pool it belongs to: which one it is, and who else is in it.
//!
//! The values are attributes of the object [`ObjectId::POOL`](onode_object::ObjectId::POOL). Each
//! has one length for good, so that to change one never needs space (N7).

use onode_object::{AttributeKey, AttributeKind, Error, ErrorKind, Result};

/// Members that a pool has at most.
pub const MEMBERS_MAX: usize = 8;

const VERSION: u8 = 1;
const LABEL_BYTES: usize = 18;
const HEAD_BYTES: usize = 16;
const ENTRY_BYTES: usize = 16;
const MEMBERSHIP_BYTES: usize = HEAD_BYTES + MEMBERS_MAX * ENTRY_BYTES;
/// A flag of the membership: any object may have changed.
const ALL_CHANGED: u8 = 1;

/// Where the label stands.
pub(crate) const LABEL: AttributeKey = AttributeKey::POOL_MEMBER;
/// Where the membership stands.
pub(crate) const MEMBERSHIP: AttributeKey = AttributeKey::new(AttributeKind::SERVICE, 2);

/// Which pool a device is a member of, and which one of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLabel {
    /// The unique number of the pool.
    pub pool: [u8; 16],
    /// The member's number, from 1; never one that another member had.
    pub number: u8,
}

impl PoolLabel {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, self.number];
        bytes.extend_from_slice(&self.pool);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let Some((&[version, number], pool)) = bytes.split_first_chunk::<2>() else { return Err(damaged("label")) };
        known(version)?;
        match pool.try_into() {
            Ok(pool) if number > 0 && bytes.len() == LABEL_BYTES => Ok(Self { pool, number }),
            _ => Err(damaged("label")),
        }
    }
}

/// How a member stands to the others, as it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum MemberState {
    /// It has everything.
    Whole = 1,
    /// It takes part and lacks some of what changed.
    Behind = 2,
    /// It does not take part.
    Away = 3,
}

/// One member, as the others know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberEntry {
    pub(crate) number: u8,
    pub(crate) state: MemberState,
    /// The last epoch in which it took part.
    pub(crate) seen: u64,
}

/// Who is in the pool and how they stand. An epoch lasts until one of them stands otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    pub(crate) epoch: u64,
    /// Places of the ring of changes.
    pub(crate) slots: u32,
    /// Which objects changed is not recorded one by one.
    pub(crate) is_all_changed: bool,
    pub(crate) entries: Vec<MemberEntry>,
}

impl Membership {
    pub(crate) fn entry(&self, number: u8) -> Option<&MemberEntry> {
        self.entries.iter().find(|entry| entry.number == number)
    }

    /// Everybody has everything.
    pub(crate) fn is_whole(&self) -> bool {
        self.entries.iter().all(|entry| entry.state == MemberState::Whole)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let flags = if self.is_all_changed { ALL_CHANGED } else { 0 };
        let mut bytes = vec![VERSION, flags, self.entries.len() as u8, 0];
        bytes.extend_from_slice(&self.slots.to_le_bytes());
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        for entry in &self.entries {
            bytes.extend_from_slice(&[entry.number, entry.state as u8, 0, 0, 0, 0, 0, 0]);
            bytes.extend_from_slice(&entry.seen.to_le_bytes());
        }
        bytes.resize(MEMBERSHIP_BYTES, 0);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Err(damaged("membership")) };
        let [version, flags, count, _, a, b, c, d, epoch @ ..] = *head;
        known(version)?;
        if bytes.len() != MEMBERSHIP_BYTES || count == 0 || usize::from(count) > MEMBERS_MAX {
            return Err(damaged("membership"));
        }
        let (slots, epoch) = (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(epoch));
        let mut entries: Vec<MemberEntry> = Vec::new();
        for entry in rest.chunks_exact(ENTRY_BYTES).take(count.into()) {
            let (Some(&[number, state]), Some(&seen)) = (entry.first_chunk(), entry.last_chunk()) else {
                return Err(damaged("membership"));
            };
            let state = match state {
                1 => MemberState::Whole,
                2 => MemberState::Behind,
                3 => MemberState::Away,
                _ => return Err(damaged("membership")),
            };
            if number == 0 || entries.iter().any(|other| other.number == number) {
                return Err(damaged("membership"));
            }
            entries.push(MemberEntry { number, state, seen: u64::from_le_bytes(seen) });
        }
        if !(SLOTS_MIN..=SLOTS_MAX).contains(&slots) {
            return Err(damaged("membership"));
        }
        Ok(Self { epoch, slots, is_all_changed: flags & ALL_CHANGED != 0, entries })
    }
}

/// Places of the ring on small volumes, and on others.
pub(crate) const SLOTS_MIN: u32 = 64;
pub(crate) const SLOTS_MAX: u32 = 1024;

pub(crate) fn damaged(what: &str) -> Error {
    Error::of(ErrorKind::Corrupt, onode_object::ObjectId::POOL, format!("the {what} of the pool is damaged"))
}

fn known(version: u8) -> Result<()> {
    if version == VERSION {
        return Ok(());
    }
    Err(Error::new(ErrorKind::NotSupported, format!("the pool has format {version}, this program knows {VERSION}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded_and_nothing_else_is() {
        let label = PoolLabel { pool: [7; 16], number: 3 };
        assert_eq!(PoolLabel::decode(&label.encode()), Ok(label));
        let entry = |number, state, seen| MemberEntry { number, state, seen };
        let entries = vec![entry(1, MemberState::Whole, 9), entry(4, MemberState::Away, 2)];
        let membership = Membership { epoch: 9, slots: 64, is_all_changed: true, entries };
        let bytes = membership.encode();
        assert_eq!((bytes.len(), Membership::decode(&bytes)), (144, Ok(membership)));
        for (at, wrong) in [(0, 2), (2, 0), (2, 9), (4, 1), (17, 4), (32, 1), (32, 0)] {
            let mut bytes = bytes.clone();
            bytes[at] = wrong;
            assert!(Membership::decode(&bytes).is_err(), "byte {at}");
        }
        assert!(Membership::decode(&bytes[1..]).is_err() && PoolLabel::decode(&[]).is_err());
    }
}
