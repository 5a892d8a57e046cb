//! What a pool knows of its members and of what changed, as its members have it on their media.

use crate::pool::changed::ChangedObjects;
use crate::pool::copy::{CopyJob, Figures};
use crate::pool::label::{LABEL, MEMBERSHIP, Membership, PoolLabel, damaged};
use crate::pool::ring::ChangeRing;
use onode_object::{AttributeKey, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result};

/// Attributes that one call asks for.
const FETCHED: usize = 128;

/// What one member says.
#[derive(Clone, Debug)]
pub(crate) struct MemberRecord {
    pub(crate) label: PoolLabel,
    pub(crate) membership: Membership,
    pub(crate) ring: ChangeRing,
    pub(crate) changed: ChangedObjects,
}

impl MemberRecord {
    /// What a device says of the pool that it is a member of.
    ///
    /// # Errors
    /// `WrongPart` if it is none; `NotSupported` for a format of a later version; `Corrupt` and
    /// others of the device.
    pub(crate) fn load(device: &impl ObjectDevice) -> Result<Self> {
        let label = label_of(device)?.ok_or_else(|| Error::new(ErrorKind::WrongPart, "it is no member of a pool"))?;
        let membership = device.attribute(ObjectId::POOL, MEMBERSHIP)?.ok_or_else(|| damaged("membership"))?;
        let membership = Membership::decode(&membership)?;
        let mut ring = ChangeRing::new(membership.slots);
        let [first, behind] = ChangeRing::bounds(membership.slots);
        for (_, value) in attributes(device, first, Some(behind))? {
            if !ring.read(&value) {
                return Err(damaged("ring of changes"));
            }
        }
        let mut changed = ChangedObjects::default();
        for (key, value) in attributes(device, ChangedObjects::first_key(), None)? {
            if !changed.read(key, &value) {
                return Err(damaged("set of changed objects"));
            }
        }
        Ok(Self { label, membership, ring, changed })
    }
}

/// Which member of which pool a device is; `None` if it is none.
///
/// # Errors
/// `Corrupt` and others of the device; `NotSupported` for a format of a later version.
pub(crate) fn label_of(device: &impl ObjectDevice) -> Result<Option<PoolLabel>> {
    match device.attribute(ObjectId::POOL, LABEL) {
        Ok(None) => Ok(None),
        Ok(Some(bytes)) => PoolLabel::decode(&bytes).map(Some),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The attributes of the pool's object from a key on, as far as the one behind them.
pub(crate) fn attributes(
    device: &impl ObjectDevice,
    from: AttributeKey,
    behind: Option<AttributeKey>,
) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
    let mut all: Vec<(AttributeKey, Vec<u8>)> = Vec::new();
    let mut next = Some(from);
    while let Some(from) = next {
        let some = device.attributes(ObjectId::POOL, from, FETCHED)?;
        next = some.last().and_then(|(key, _)| key.next());
        let count = some.len();
        all.extend(some.into_iter().take_while(|(key, _)| behind.is_none_or(|behind| *key < behind)));
        if count == 0 || behind.is_some_and(|behind| next.is_some_and(|next| next >= behind)) {
            break;
        }
    }
    Ok(all)
}

/// The change that sets an attribute of the pool's object.
pub(crate) const fn set(key: AttributeKey, value: Vec<u8>) -> Mutation {
    Mutation::SetAttribute { object: ObjectId::POOL, key, value }
}

/// All that changes with a commit.
pub(crate) struct PoolRecord {
    pub(crate) membership: Membership,
    pub(crate) ring: ChangeRing,
    pub(crate) changed: ChangedObjects,
    /// No object has this number or a higher one.
    pub(crate) next_id: ObjectId,
    /// All members that take part have this change on their media.
    pub(crate) synced: u64,
    /// Why nothing can be changed any more.
    pub(crate) broken: Option<String>,
    /// What is being made equal.
    pub(crate) job: Option<CopyJob>,
    /// The number of the last change when what could not be made equal was tried.
    pub(crate) tried: u64,
    pub(crate) figures: Figures,
}

impl PoolRecord {
    pub(crate) fn check(&self) -> Result<()> {
        match &self.broken {
            None => Ok(()),
            Some(why) => Err(Error::new(ErrorKind::ReadOnly, why.clone())),
        }
    }
}
