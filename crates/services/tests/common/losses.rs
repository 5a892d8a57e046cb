//! One member of a pool fails at some call while a history goes on. The program notices nothing,
//! and afterwards the members are equal again.

use super::changes::{Changes, OBJECTS};
use super::faulty::{Fault, Faulty};
use super::pool::{Device, members};
use onode_object::conformance::{Tree, dump};
use onode_object::{
    AttributeKey, AttributeKind, Durability, ObjectDevice, ObjectId, RamDevice, SyncScope, Transaction,
};
use onode_services::{Pool, PoolMemberState};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const BYTES: u64 = 1 << 40;

pub fn ram() -> Arc<RamDevice> {
    Arc::new(RamDevice::with_crash_model(BYTES))
}

/// Which member a device is, the only thing in which two members differ.
const LABEL: AttributeKey = AttributeKey::new(AttributeKind::SERVICE, 1);

/// What a host sees of a device, without what a member has of its pool.
pub fn seen(device: &dyn ObjectDevice) -> Tree {
    let mut tree = dump(device).expect("everything is readable");
    tree.objects.remove(&ObjectId::POOL);
    tree
}

/// What two members differ in, if anything: what they have of the pool is the same, too.
pub fn differ(one: &dyn ObjectDevice, other: &dyn ObjectDevice) -> Result<(), String> {
    let of = |device: &dyn ObjectDevice| {
        let mut tree = dump(device).expect("everything is readable");
        let own = tree.objects.get_mut(&ObjectId::POOL).expect("a member of a pool");
        own.attributes.remove(&LABEL).expect("a label");
        tree
    };
    of(one).difference(&of(other)).map_or(Ok(()), |what| Err(format!("the members differ: {what}")))
}

/// Does what there is to do until nothing is left.
pub fn tend(pool: &Pool<Device>) -> Result<(), String> {
    for _ in 0..10_000 {
        let done = pool.maintain(8).map_err(|error| format!("maintain: {error}"))?;
        if done.done == 0 && !done.more {
            return Ok(());
        }
    }
    Err("maintenance has no end".to_owned())
}

/// How a run ended.
#[derive(Debug, Default)]
pub struct Ran {
    /// Calls of the member that failed.
    pub calls: u64,
    /// Whether the fault began.
    pub has_begun: bool,
}

/// A history of `steps` over two members, of which the one at `place` fails from its call `from`
/// on.
pub fn run(fault: Fault, place: usize, from: u64, steps: u64) -> Result<Ran, String> {
    let rams = [ram(), ram()];
    drop(Pool::create([1; 16], members(&[rams[0].clone() as Device, rams[1].clone() as Device])).unwrap());
    let faulty = Faulty::new(&rams[place], fault, from);
    let mut devices: Vec<Device> = vec![rams[0].clone(), rams[1].clone()];
    devices[place] = faulty.clone();
    let model = RamDevice::new(1 << 60);
    let mut changes = Changes::small(from + 1);
    {
        let pool = Pool::open(members(&devices), false).map_err(|error| format!("open: {error}"))?;
        let both = |transaction: &Transaction, durability| {
            let expected = model.commit(transaction.clone(), durability).map_err(|error| error.kind);
            let found = pool.commit(transaction.clone(), durability);
            match &found {
                Err(error) if Err(error.kind) != expected => Err(format!("the program was told: {error}")),
                found if found.is_ok() != expected.is_ok() => Err("a wrong change was accepted".to_owned()),
                _ => Ok(()),
            }
        };
        for object in 1..=OBJECTS {
            let mut transaction = Transaction::new();
            transaction.create(ObjectId(object), changes.hints());
            both(&transaction, Durability::Buffered)?;
        }
        for step in 0..steps {
            let mut transaction = Transaction::new();
            for _ in 0..=changes.prng.below(3) {
                changes.mutate(&model, &mut transaction);
            }
            both(&transaction, if step % 3 == 0 { Durability::Durable } else { Durability::Buffered })?;
            look(&pool, &model, &mut changes)?;
            if step % 5 == 4 {
                pool.sync(SyncScope::All).map_err(|error| format!("sync: {error}"))?;
                pool.maintain(3).map_err(|error| format!("maintain: {error}"))?;
            }
        }
        if fault == Fault::Damaged {
            // Nobody has to do anything about it.
            tend(&pool)?;
            if let Some(behind) = pool.status().iter().find(|member| member.state != PoolMemberState::Whole) {
                return Err(format!("it was not mended: {behind:?}"));
            }
        }
        seen(&pool).difference(&seen(&model)).map_or(Ok(()), |what| Err(format!("the pool: {what}")))?;
        // A cut: what was only buffered may go from both, but what was synced must be there.
        pool.sync(SyncScope::All).map_err(|error| format!("sync: {error}"))?;
    }
    let ran = Ran { calls: faulty.calls.load(Ordering::Relaxed), has_begun: faulty.has_begun() };
    // The one that failed comes back as it was when it did.
    faulty.is_well.store(true, Ordering::Relaxed);
    rams.iter().for_each(|ram| ram.crash());
    let pool = Pool::open(members(&devices), false).map_err(|error| format!("open again: {error}"))?;
    tend(&pool)?;
    seen(&pool).difference(&seen(&model)).map_or(Ok(()), |what| Err(format!("after its return: {what}")))?;
    differ(&*rams[0], &*rams[1])?;
    seen(&*rams[0]).difference(&seen(&model)).map_or(Ok(()), |what| Err(format!("a member: {what}")))?;
    if let Some(behind) = pool.status().iter().find(|member| member.state != PoolMemberState::Whole) {
        return Err(format!("it was not rebuilt: {behind:?}"));
    }
    Ok(ran)
}

/// Reads somewhere, and asks.
fn look(pool: &Pool<Device>, model: &RamDevice, changes: &mut Changes) -> Result<(), String> {
    for object in (1..=OBJECTS).map(ObjectId) {
        let offset = changes.offset();
        let answer = |device: &dyn ObjectDevice| {
            let mut buffer = vec![0xa5; 9000];
            let count = device.read(object, offset, &mut buffer)?;
            let stat = device.stat(object)?;
            Ok::<_, onode_object::Error>((count, buffer, stat.size, stat.hints))
        };
        let found = answer(pool).map_err(|error| format!("the program was told: {error}"))?;
        if Ok(found) != answer(model) {
            return Err(format!("{object} at {offset} differs"));
        }
    }
    Ok(())
}
