//! Clones of snapshots, changed while their device is used.
//!
//! Nothing is remembered across a cut, and a clone changes: what it has to show stands in itself.
//! Each change of it sets, in the same transaction, an attribute of an object that only clones have
//! to the name of what the others are then, which a model tells. So whatever a cut leaves of a
//! clone must be what that attribute says, and without one what the snapshot is called.

use crate::kind::snapshots::look::Look;
use crate::object::workload::unexpected;
use crate::violation::Violation;
use onode_base::{Prng, Timestamp};
use onode_object::conformance::{Tree, dump};
use onode_object::{
    AttributeKey, AttributeKind, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, RamDevice,
    Result as ObjectResult, SyncScope, Transaction,
};
use onode_services::{CloneInfo, Versioned};
use std::sync::Arc;

/// Clones that there are at a time.
const MOST: usize = 2;
/// What only clones have.
const TELLER: ObjectId = ObjectId(59);
const TOLD: AttributeKey = AttributeKey::new(AttributeKind::FIRST_FREE, 7);
/// More than a model holds.
const MODEL_BYTES: u64 = 1 << 40;

/// Makes a clone of a snapshot, and deletes the oldest one if there are too many.
///
/// # Errors
/// Those of the device but for `NoSpace`.
pub(super) fn make<D: ObjectDevice>(device: &Arc<Versioned<D>>, snapshot: &str, name: &str) -> ObjectResult<()> {
    match device.make_clone(name, snapshot, Timestamp::default()) {
        Err(error) if error.kind == ErrorKind::NoSpace => return Ok(()),
        made => made?,
    };
    let clones = device.clones();
    match clones.first() {
        Some(oldest) if clones.len() > MOST => device.delete_clone(&oldest.name, None),
        _ => Ok(()),
    }
}

/// Changes a clone twice; both changes are durable on return.
///
/// # Errors
/// Those of the device but for `NoSpace`.
pub(super) fn change<D: ObjectDevice>(device: &Arc<Versioned<D>>, seed: u64) -> ObjectResult<()> {
    let mut prng = Prng::new(seed);
    let clones = device.clones();
    let Some(clone) = clones.get(prng.below(clones.len() as u64) as usize) else { return Ok(()) };
    let opened = device.open_clone(&clone.name)?;
    for durability in [Durability::Buffered, Durability::Durable] {
        let mut transaction = changes(&opened, &mut prng)?;
        let model = model_of(&dump(&opened)?)?;
        // The model hands out no numbers.
        let next = opened.reserve_ids(0)?.0;
        model.reserve_ids(next.saturating_sub(model.reserve_ids(0)?.0))?;
        model.commit(transaction.clone(), Durability::Buffered)?;
        if opened.stat(TELLER).is_err() {
            transaction.create(TELLER, Hints::default());
        }
        let serial = told_by(&opened)?.and_then(|told| super::look::serial_of(&told)).unwrap_or(0) + 1;
        transaction.set_attribute(TELLER, TOLD, Look::at(&model)?.without(TELLER).name(serial).into_bytes());
        match opened.commit(transaction, durability) {
            // The first one may have found room.
            Err(error) if error.kind == ErrorKind::NoSpace => return opened.sync(SyncScope::All),
            done => done?,
        }
    }
    Ok(())
}

/// Some changes of any kind, small ones: volumes of the explorer are small.
fn changes<D: ObjectDevice>(clone: &D, prng: &mut Prng) -> ObjectResult<Transaction> {
    let mut objects = clone.list(ObjectId(0), 64)?;
    objects.retain(|object| *object != TELLER);
    let mut transaction = Transaction::new();
    for _ in 0..1 + prng.below(4) {
        let position = prng.below(objects.len() as u64) as usize;
        let Some(object) = objects.get(position).copied().filter(|_| !prng.chance(1, 6)) else {
            let object = clone.reserve_ids(1)?;
            transaction.create(object, Hints::default()).write(object, prng.below(9_000), vec![0x33; 2_000]);
            objects.push(object);
            continue;
        };
        let key = AttributeKey::new(AttributeKind(AttributeKind::FIRST_FREE.0 + prng.below(2) as u8), prng.below(4));
        match prng.below(8) {
            0 => {
                transaction.remove(object);
                objects.swap_remove(position);
            }
            1 => _ = transaction.truncate(object, prng.below(12_000)),
            2 => _ = transaction.punch(object, prng.below(9_000), prng.below(6_000)),
            3 => _ = transaction.set_attribute(object, key, vec![0x44; prng.below(60) as usize]),
            4 => {
                match clone.attributes(object, AttributeKey::new(AttributeKind(0), 0), 1).unwrap_or_default().first() {
                    Some((key, _)) => _ = transaction.remove_attribute(object, *key),
                    None => _ = transaction.remove_attribute(object, key),
                }
            }
            _ => {
                let mut data = vec![0; 1 + prng.below(5_000) as usize];
                prng.fill(&mut data);
                transaction.write(object, prng.below(9_000), data);
            }
        }
    }
    Ok(transaction)
}

/// A device that shows this.
fn model_of(tree: &Tree) -> ObjectResult<RamDevice> {
    let model = RamDevice::new(MODEL_BYTES);
    let last = tree.objects.keys().next_back().map_or(0, |last| last.0);
    model.reserve_ids((last + 1).saturating_sub(model.reserve_ids(0)?.0))?;
    for made in tree.making() {
        model.commit(made, Durability::Buffered)?;
    }
    Ok(model)
}

/// What a clone says that it shows, if it was changed.
fn told_by<D: ObjectDevice>(clone: &D) -> ObjectResult<Option<String>> {
    match clone.attribute(TELLER, TOLD) {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        found => Ok(found?.and_then(|told| String::from_utf8(told).ok())),
    }
}

/// What the run notes down of a clone: what it says that it shows.
///
/// # Errors
/// Those of the device.
pub(super) fn told<D: ObjectDevice>(device: &Arc<Versioned<D>>, name: &str) -> ObjectResult<String> {
    let told = told_by(&device.open_clone(name)?)?;
    Ok(format!("{name}: {}", told.unwrap_or_default()))
}

/// A clone shows what it says that it does.
///
/// # Errors
/// How it differs.
pub(super) fn verify<D: ObjectDevice>(device: &Arc<Versioned<D>>, clone: &CloneInfo) -> Result<(), Violation> {
    let name = &clone.name;
    let opened = device.open_clone(name).map_err(unexpected("a clone is opened"))?;
    let look = Look::at(&opened).map_err(unexpected(&format!("clone {name} is read")))?.without(TELLER);
    let told = told_by(&opened).map_err(unexpected("a clone is read"))?;
    match look.difference(told.as_ref().unwrap_or(&clone.base)) {
        Some(difference) => Err(Violation::new("N3", format!("{name}: {difference}"))),
        None => Ok(()),
    }
}
