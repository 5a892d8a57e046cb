//! Members of a pool that are away, lag after a cut, or went on alone, as checks that can fail.

use super::faulty::{Fault, Faulty};
use super::losses::{differ, ram, seen, tend};
use super::pool::{Device, members};
use onode_base::Prng;
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, RamDevice, Transaction};
use onode_services::Pool;
use std::sync::Arc;

const OBJECTS: u64 = 5;

fn devices(rams: &[Arc<RamDevice>], places: &[usize]) -> Vec<Device> {
    places.iter().map(|place| rams[*place].clone() as Device).collect()
}

fn open(rams: &[Arc<RamDevice>], places: &[usize]) -> Result<Pool<Device>, String> {
    Pool::open(members(&devices(rams, places)), false).map_err(|error| format!("open: {error}"))
}

/// Two members in memory with some objects, synced.
fn made() -> (Vec<Arc<RamDevice>>, Pool<Device>) {
    let rams = vec![ram(), ram()];
    let pool = Pool::create([1; 16], members(&devices(&rams, &[0, 1]))).expect("a pool can be made");
    for object in 1..=OBJECTS {
        let mut transaction = Transaction::new();
        transaction.create(ObjectId(object), Hints::default()).write(ObjectId(object), 0, vec![1; 9000]);
        pool.commit(transaction, Durability::Durable).expect("it has room");
    }
    (rams, pool)
}

fn write(device: &dyn ObjectDevice, object: u64, seed: u8, durability: Durability) {
    let mut transaction = Transaction::new();
    transaction.write(ObjectId(object), 100, vec![seed; 5000]);
    device.commit(transaction, durability).expect("it has room");
}

/// Compares a pool and its members with what should be there.
fn judge(pool: &Pool<Device>, rams: &[Arc<RamDevice>], model: &RamDevice) -> Result<(), String> {
    let wrong = |what| Err(format!("the pool: {what}"));
    seen(pool).difference(&seen(model)).map_or(Ok(()), wrong)?;
    tend(pool)?;
    seen(pool).difference(&seen(model)).map_or(Ok(()), wrong)?;
    differ(&*rams[0], &*rams[1])
}

fn model_of(device: &dyn ObjectDevice) -> RamDevice {
    let model = RamDevice::new(1 << 40);
    let mut transaction = Transaction::new();
    for object in (1..=OBJECTS).map(ObjectId) {
        let mut bytes = vec![0; 9000];
        device.read(object, 0, &mut bytes).expect("readable");
        transaction.create(object, Hints::default()).write(object, 0, bytes);
    }
    model.commit(transaction, Durability::Durable).expect("it has room");
    model
}

/// A cut leaves one member behind the other one: both are equal again, in a state that was synced
/// or came later.
pub fn cuts() -> Result<(), String> {
    for seed in 1..20 {
        let mut prng = Prng::new(seed);
        let (rams, pool) = made();
        let mut states = vec![model_of(&pool)];
        let mut synced = 0;
        for step in 0..12 {
            let is_durable = prng.chance(1, 4);
            let durability = if is_durable { Durability::Durable } else { Durability::Buffered };
            write(&pool, 1 + prng.below(OBJECTS), step + 2, durability);
            states.push(model_of(&pool));
            synced = if is_durable { states.len() - 1 } else { synced };
            // Devices write by themselves, too, each in its time.
            if prng.chance(1, 3) {
                let place = prng.below(2) as usize;
                rams[place].sync(onode_object::SyncScope::All).expect("memory syncs");
            }
        }
        drop(pool);
        // The first one alone, then both: what was synced must be on either.
        rams.iter().for_each(|ram| ram.crash());
        if seed % 2 == 0 {
            rams[prng.below(2) as usize].crash();
        }
        let places = if seed % 3 == 0 { vec![1, 0] } else { vec![0, 1] };
        let single = seed % 4 == 1;
        let pool = open(&rams, if single { &[1] } else { &places })?;
        let found = seen(&pool);
        let Some(found) = states[synced..].iter().find(|state| found.difference(&seen(*state)).is_none()) else {
            return Err(format!("seed {seed}: no state since the last sync"));
        };
        let pool = if single {
            drop(pool);
            open(&rams, &places)?
        } else {
            pool
        };
        judge(&pool, &rams, found).map_err(|why| format!("seed {seed}: {why}"))?;
    }
    Ok(())
}

/// One member has many more changes on its medium than the other one, and more than are recorded.
pub fn lags() -> Result<(), String> {
    let (rams, pool) = made();
    let before = model_of(&pool);
    drop(pool);
    // It is not the pool that lets it come so far.
    let behind = Arc::new(RamDevice::with_crash_model(1 << 40));
    copy(&*rams[1], &*behind);
    let pool = open(&rams, &[0, 1])?;
    write(&pool, 1, 7, Durability::Durable);
    (0..1100).for_each(|step| write(&pool, 2, step as u8, Durability::Buffered));
    pool.sync(onode_object::SyncScope::All).map_err(|error| error.to_string())?;
    let model = model_of(&pool);
    drop((pool, before));
    let rams = vec![rams[0].clone(), behind];
    judge(&open(&rams, &[0, 1])?, &rams, &model)
}

fn copy(from: &dyn ObjectDevice, to: &dyn ObjectDevice) {
    let tree = onode_object::conformance::dump(from).expect("readable");
    let mut transaction = Transaction::new();
    for (object, dumped) in tree.objects {
        transaction.create(object, dumped.hints);
        for (unit, bytes) in dumped.content {
            transaction.write(object, unit * 512, bytes);
        }
        for (key, value) in dumped.attributes {
            transaction.set_attribute(object, key, value);
        }
    }
    to.commit(transaction, Durability::Durable).expect("it has room");
}

/// One member is away while others change, and comes back while the pool is used.
pub fn returns() -> Result<(), String> {
    for place in 0..2 {
        let (rams, pool) = made();
        // Object 1 is none of those that changed last.
        (0..1100).for_each(|step| write(&pool, 5, step as u8, Durability::Buffered));
        pool.sync(onode_object::SyncScope::All).map_err(|error| error.to_string())?;
        drop(pool);
        let pool = open(&rams, &[place])?;
        // More changes than the ring names, the first of another object than the last.
        write(&pool, 1, 7, Durability::Durable);
        (0..1100).for_each(|step| write(&pool, 2, step as u8, Durability::Buffered));
        pool.sync(onode_object::SyncScope::All).map_err(|error| error.to_string())?;
        let model = model_of(&pool);
        drop(pool);
        // To look only: nothing is rebuilt, and nothing that is old may be seen.
        let looked = Pool::open(members(&devices(&rams, &[0, 1])), true).map_err(|error| error.to_string())?;
        let wrong = |what| Err(format!("looked at: {what}"));
        seen(&looked).difference(&seen(&model)).map_or(Ok(()), wrong)?;
        drop(looked);
        judge(&open(&rams, &[0, 1])?, &rams, &model)?;
    }
    Ok(())
}

/// One failed while the other one went on, and went on alone later.
pub fn split_by_a_failure() -> Result<(), String> {
    let (rams, pool) = made();
    drop(pool);
    let failing = Faulty::new(&rams[0], Fault::Dead, 6);
    let devices: Vec<Device> = vec![failing.clone(), rams[1].clone()];
    let pool = Pool::open(members(&devices), false).map_err(|error| format!("open: {error}"))?;
    (0..20).for_each(|step| write(&pool, 1, step, Durability::Durable));
    assert!(failing.has_begun());
    drop(pool);
    write(&open(&rams, &[0])?, 1, 99, Durability::Durable);
    match open(&rams, &[0, 1]) {
        Err(_) => Ok(()),
        Ok(_) => Err("what was acknowledged may be overwritten".to_owned()),
    }
}

/// Both went on alone.
pub fn splits() -> Result<(), String> {
    let (rams, pool) = made();
    drop(pool);
    for place in 0..2 {
        write(&open(&rams, &[place])?, 1, 7 + place as u8, Durability::Durable);
    }
    match open(&rams, &[0, 1]) {
        Err(_) => Ok(()),
        Ok(_) => Err("two histories were taken for one".to_owned()),
    }
}
