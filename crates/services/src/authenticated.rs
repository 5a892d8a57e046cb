//! The device that tells what is not what was stored last: of somebody who changes the medium while
//! nobody has it open, and puts things in other places or older ones back.
//!
//! Each object has a head with the sum of its attributes, objects with neighbouring numbers have a
//! bucket with the sum of their heads, the volume has a root with the sum of its buckets. They
//! change in the same transaction as what they tell of, so at each cut of power they are right. An
//! object is verified when it is first used. Content is told by attributes of [`Encrypted`], so it
//! stands under that; under it, and under snapshots, is the device.
//!
//! An older state of the whole medium is right in itself: it is found out by an [`Anchor`] that the
//! owner has noted.
//!
//! [`Encrypted`]: crate::Encrypted

mod change;
mod known;
mod record;
mod renew;
mod sum;
mod verify;

pub use record::Anchor;

use crate::authenticated::change::is_counted;
use crate::authenticated::known::KnownSums;
use crate::authenticated::record::{HEAD, HOLDER, SumKeys};
use crate::encrypted::MasterKey;
use crate::plan::{UNUSED, refused_of_own};
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::{Mutex, MutexGuard, rank};
use onode_object::powers::Decision;
use onode_object::{
    AttributeKey, Condition, Demand, DeviceInfo, Durability, Error, ErrorKind, Health, Mutation, ObjectDevice,
    ObjectId, ObjectStat, Result, Severity, Space, Transaction, forward_device,
};
use std::fmt;
use std::sync::Arc;

/// The code of the condition of a device that has found something that it did not store last.
pub const NOT_AUTHENTIC: &str = "not-authentic";
/// Objects that are named to people.
const NAMED: usize = 8;
/// One part in so many of the space is kept back, and no more than so many bytes.
const KEPT_PART: u64 = 32;
const KEPT_BYTES_MAX: u64 = 64 << 10;
/// The bytes of an attribute with a sum.
const RECORD_BYTES: u64 = 60;

/// An object device that finds out what others did to the one below.
pub struct Authenticated<D: ?Sized> {
    keys: SumKeys,
    /// Held by who changes something, and by who looks at what is not known.
    changing: Mutex<(), rank::SumChanging>,
    known: Mutex<KnownSums, rank::SumKnown>,
    /// Whatever there is is taken for right.
    is_trusting: bool,
    inner: Arc<D>,
}

impl<D: ?Sized> fmt::Debug for Authenticated<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticated").field("is_trusting", &self.is_trusting).finish_non_exhaustive()
    }
}

impl<D: ObjectDevice + ?Sized> Authenticated<D> {
    /// The device of a volume that is to be made on an empty one.
    ///
    /// # Errors
    /// `NotSupported` if others change the device, too.
    pub fn create(inner: Arc<D>, master: &MasterKey) -> Result<Self> {
        Self::new(inner, SumKeys::new(master), KnownSums::default())
    }

    /// The device of a volume that has sums.
    ///
    /// # Errors
    /// `Corrupt` if they are not those that were stored last; as [`create`](Self::create); those
    /// of the device.
    pub fn open(inner: Arc<D>, master: &MasterKey) -> Result<Self> {
        let keys = SumKeys::new(master);
        let known = verify::load(inner.as_ref(), &keys)?;
        Self::new(inner, keys, known)
    }

    fn new(inner: Arc<D>, keys: SumKeys, known: KnownSums) -> Result<Self> {
        if inner.share().is_some() || inner.map_objects().is_some() {
            let why = "others change objects of this device, too: no sum could tell of that";
            return Err(Error::new(ErrorKind::NotSupported, why));
        }
        let (changing, known) = (Mutex::new(()), Mutex::new(known));
        Ok(Self { keys, changing, known, is_trusting: false, inner })
    }

    /// The wrapped device.
    #[must_use]
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// What an owner may note of the state that there is now. That it is durable somebody else
    /// must see to.
    #[must_use]
    pub fn anchor(&self) -> Anchor {
        let known = self.known();
        SumKeys::anchor(known.changes, &known.item)
    }

    /// Refuses a state that is older than one that was noted, or another one of the same age, with
    /// `Corrupt`.
    ///
    /// # Errors
    /// That one.
    pub fn expect(&self, anchor: &Anchor) -> Result<()> {
        let now = self.anchor();
        let why = match now.changes.cmp(&anchor.changes) {
            std::cmp::Ordering::Greater => return Ok(()),
            std::cmp::Ordering::Equal if now == *anchor => return Ok(()),
            std::cmp::Ordering::Equal => "the state of the volume is not the one that was noted".to_owned(),
            std::cmp::Ordering::Less => {
                format!("the volume is older than was noted: {} of {} changes", now.changes, anchor.changes)
            }
        };
        Err(Error::new(ErrorKind::Corrupt, why))
    }

    const fn keys(&self) -> &SumKeys {
        &self.keys
    }

    const fn is_trusting(&self) -> bool {
        self.is_trusting
    }

    fn known(&self) -> MutexGuard<'_, KnownSums> {
        self.known.lock()
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock()
    }

    /// The transaction as the device refuses it, if it is about what only this service stores.
    fn refused(transaction: &mut Transaction) -> Option<Transaction> {
        // Nobody sees that there is a head, so to remove it changes nothing.
        for mutation in &mut transaction.mutations {
            if let Mutation::RemoveAttribute { key, .. } = mutation {
                *key = seen_key(*key);
            }
        }
        refused_of_own(transaction, |one| one.changes(HOLDER), |key| key == HEAD)
    }
}

/// What is not promised of a device: each transaction changes the nodes of root and bucket, too.
fn kept_of(space: &Space) -> u64 {
    (space.total / KEPT_PART).min(KEPT_BYTES_MAX)
}

/// The key of an attribute as a host may ask for it: never that of a head.
fn seen_key(key: AttributeKey) -> AttributeKey {
    if key == HEAD { UNUSED } else { key }
}

impl<D: ObjectDevice + ?Sized> ObjectDevice for Authenticated<D> {
    fn info(&self) -> DeviceInfo {
        let info = self.inner.info();
        DeviceInfo { summary: format!("{}, authenticated", info.summary), ..info }
    }

    fn commit(&self, mut transaction: Transaction, durability: Durability) -> Result<()> {
        if let Some(refused) = Self::refused(&mut transaction) {
            return self.inner.commit(refused, durability);
        }
        if !transaction.mutations.iter().any(is_counted) {
            return self.inner.commit(transaction, durability);
        }
        let _changing = self.changing();
        let Some(mut change) = self.change_by(&transaction.mutations)? else {
            return self.inner.commit(transaction, durability);
        };
        let sums = std::mem::take(&mut change.mutations);
        if is_planted(Bug::AuthenticatedInTwo) {
            self.inner.commit(transaction, durability)?;
            self.inner.commit(Transaction { mutations: sums }, durability)?;
        } else {
            transaction.mutations.extend(sums);
            self.inner.commit(transaction, durability)?;
        }
        self.changed(change);
        Ok(())
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.admit(object)?;
        self.inner.read(object, offset, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.admit(object)?;
        self.inner.attribute(object, seen_key(key))
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.admit(object)?;
        let found = self.inner.attributes(object, from, limit)?;
        // None means that there are no more: it must not be said of a head alone.
        let behind = HEAD.next().filter(|_| matches!(found[..], [(HEAD, _)]));
        let found = if let Some(behind) = behind { self.inner.attributes(object, behind, limit)? } else { found };
        Ok(found.into_iter().filter(|(key, _)| *key != HEAD).collect())
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.admit(object)?;
        self.inner.stat(object)
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        self.verify_listed(from, limit)
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.admit(object)?;
        self.inner.extents(object, offset, limit)
    }

    fn space(&self) -> Space {
        let space = self.inner.space();
        let objects = space.objects.saturating_sub(u64::from(self.known().changes > 0));
        Space { available: space.available.saturating_sub(kept_of(&space)), objects, ..space }
    }

    fn promisable(&self) -> u64 {
        self.inner.promisable().saturating_sub(kept_of(&self.inner.space()))
    }

    /// Each object may be new, and the first one of its bucket.
    fn space_for(&self, demand: &Demand) -> u64 {
        let records = 2 * demand.entries + 2;
        self.inner.space_for(&Demand {
            entries: demand.entries + records,
            entry_bytes: demand.entry_bytes + records * RECORD_BYTES,
            ..*demand
        })
    }

    fn decisions(&self, object: ObjectId) -> Result<Vec<Decision>> {
        self.admit(object)?;
        let mut decisions = self.inner.decisions(object)?;
        decisions.push(Decision::new("authentication", "BLAKE2b-256", "all of the volume is, since it was made"));
        Ok(decisions)
    }

    fn health(&self) -> Health {
        let mut health = self.inner.health();
        let known = self.known();
        let others: Vec<_> = known.others().iter().map(|object| object.0.to_string()).collect();
        if !others.is_empty() {
            let named = others[..others.len().min(NAMED)].join(", ");
            let more = if others.len() > NAMED { ", ..." } else { "" };
            let text = format!("{} objects are not what the volume stored last ({named}{more})", others.len());
            let remedy = "find out who had the medium; restore a copy, or take what there is with --accept-loss";
            health.conditions.push(Condition::new(NOT_AUTHENTIC, Severity::Failed, text).remedy(remedy));
        }
        health
    }

    // No power to erase: what goes has to be taken out of the sums.
    forward_device! {
        self => self.inner;
        reserve_ids, sync, extents_are_exact, space_to_replace, move_unit, maintain, close,
        compression, parity, rearrange, rearranging_bytes, place, attachment, resizing, scrub,
        inspect
    }
}

impl<D: ObjectDevice + ?Sized> Authenticated<D> {
    /// Refuses an object that a host may not see, and one that is not as it was stored last.
    fn admit(&self, object: ObjectId) -> Result<()> {
        if object == HOLDER {
            return Err(Error::of(ErrorKind::NotFound, object, "there is no such object"));
        }
        self.verify(object)
    }
}
