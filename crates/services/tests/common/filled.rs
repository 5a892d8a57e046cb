//! Pools whose members are full at about the same moment, each by a count of its own: no member
//! does a change for which another one has no room.

use super::pool::{Device, members};
use onode_base::Prng;
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::sim::{PmemLatency, PmemOptions, SimPmem};
use onode_media::{Geometry, SimNand, SimOptions};
use onode_object::{Durability, ErrorKind, Hints, ObjectDevice, ObjectId, Transaction};
use onode_scm::{FormatOptions as MemoryOptions, ScmDevice};
use onode_services::{Pool, PoolMemberState};
use std::collections::VecDeque;
use std::sync::Arc;

const LENGTHS: [usize; 6] = [0, 90, 700, 3000, 9000, 20_000];
const REFUSALS: usize = 60;

fn flash() -> Device {
    let geometry = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 16, blocks: 64, chips: 1 };
    let nand = SimNand::new(geometry, SimOptions::default()).expect("a chip");
    Arc::new(FlashDevice::format(nand, &FormatOptions::default(), &MountOptions::default()).expect("a volume"))
}

fn memory(bytes: u64) -> Device {
    let options = PmemOptions { latency: PmemLatency::NONE, ..PmemOptions::default() };
    let memory = Arc::new(SimPmem::new(bytes, options));
    let options = MemoryOptions { uuid: [7; 16], chunk_bytes: Some(4 << 10), ..MemoryOptions::default() };
    Arc::new(ScmDevice::format(memory, &options).expect("a volume"))
}

/// Fills pools over memories from small to large, takes some away, and fills them again. Every
/// member has everything all the time. Returns how many changes were refused for want of room on
/// either member.
///
/// # Errors
/// The first member that has not.
pub fn run() -> Result<[usize; 2], String> {
    let mut refused = [0; 2];
    for bytes in (272 << 10..=512 << 10).step_by(8 << 10) {
        let devices = [flash(), memory(bytes)];
        let pool = Pool::create([9; 16], members(&devices)).map_err(|error| error.to_string())?;
        let mut draw = Prng::new(bytes);
        let mut objects = VecDeque::new();
        let mut refusals = 0;
        while refusals < REFUSALS {
            let object = pool.reserve_ids(1).map_err(|error| error.to_string())?;
            let length = LENGTHS[draw.below(LENGTHS.len() as u64) as usize];
            let mut transaction = Transaction::new();
            let mut content = vec![0; length];
            draw.fill(&mut content);
            transaction.create(object, Hints::default()).write(object, 0, content);
            let durability = if draw.chance(1, 4) { Durability::Durable } else { Durability::Buffered };
            match pool.commit(transaction, durability) {
                Ok(()) => objects.push_back(object),
                Err(error) if error.kind == ErrorKind::NoSpace => {
                    refusals += 1;
                    let least = devices.iter().map(|device| device.space().available).min();
                    (0..2).for_each(|at| refused[at] += usize::from(Some(devices[at].space().available) == least));
                    if refusals % 5 == 0 {
                        take_some(&pool, &mut objects)?;
                    }
                }
                Err(error) => return Err(error.to_string()),
            }
            for one in pool.status() {
                if one.state != PoolMemberState::Whole {
                    return Err(format!("with {bytes} bytes of memory, after {refusals} refusals: {one:?}"));
                }
            }
        }
    }
    Ok(refused)
}

/// Takes a quarter of the objects away, the oldest first.
fn take_some(pool: &Pool<Device>, objects: &mut VecDeque<ObjectId>) -> Result<(), String> {
    for object in objects.drain(..objects.len() / 4) {
        let mut transaction = Transaction::new();
        transaction.remove(object);
        pool.commit(transaction, Durability::Buffered)
            .map_err(|error| format!("a full pool does not let go: {error}"))?;
    }
    Ok(())
}
