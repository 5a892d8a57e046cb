//! What the device `flash+scm` itself takes of its memory and stores to it: populations of files on
//! it, updates of objects, and PostMark with a sync for each operation.

use super::Population;
use super::chip::{PAGE_BYTES, PAGES_PER_BLOCK};
use super::figures::{Measuring, REACH};
use super::on_device::DeviceFiles;
use crate::bench::{Caches, Durability};
use crate::chip::Chip;
use crate::replay::{Settings, processor_seconds, replay};
use crate::stream::trace::operations_of;
use onode::{Class, Error, Result, Spec};
use onode_base::Prng;
use onode_flash::{FlashDevice, FormatOptions, MemoryOptions, MemoryUse, MountOptions};
use onode_fs::AccessTimes;
use onode_media::{Geometry, PmemOptions, SimPmem};
use onode_object::{Durability as Promise, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};
use std::sync::Arc;

/// Memory for a gibibyte: enough that nothing has to stay on flash alone.
const MEMORY_PER_GIB: u64 = 8 << 20;
/// Page programs of PostMark to reach with the buffer, and bytes stored for one update.
const REACH_PROGRAMS: u64 = 100_000;
const REACH_UPDATE_BYTES: f64 = 512.0;
const REACH_UPDATE_US: f64 = 100.0;
const REACH_DECODE_MS: f64 = 30.0;
/// Repetitions of which the fastest counts.
const ROUNDS: u32 = 3;

/// What a device holds in its memory.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// What, by part.
    memory: MemoryUse,
    /// Bytes of the NAND.
    nand_bytes: u64,
    /// Processor time of a mount, the fastest of some.
    mount_seconds: f64,
    /// And then to find every object that the memory knows: all of it is decoded.
    decode_seconds: f64,
}

impl Held {
    /// All that is not free.
    pub const fn used_bytes(&self) -> u64 {
        self.memory.capacity - self.memory.free_bytes
    }

    fn mib_per_gib(&self, bytes: u64) -> f64 {
        per_gib(bytes as f64 / f64::from(1 << 20), self.nand_bytes)
    }
}

fn per_gib(value: f64, nand_bytes: u64) -> f64 {
    value * f64::from(1 << 30) / nand_bytes as f64
}

fn failed(what: &str, error: &onode_object::Error) -> Error {
    Error::new(Class::of_device(error), format!("cannot measure {what} on flash+scm"), error.to_string())
}

/// A device and its memory.
struct Made {
    device: FlashDevice,
    memory: Arc<SimPmem>,
}

fn make(blocks: u32, beside: &MemoryOptions) -> Result<Made> {
    let (pages_per_block, chips) = (PAGES_PER_BLOCK, 1);
    let shape = Geometry { page_bytes: PAGE_BYTES as u32, spare_bytes: 64, pages_per_block, blocks, chips };
    let chip = Chip::new(shape).map_err(|error| Error::new(Class::BadSize, "cannot measure", error.to_string()))?;
    let bytes = (shape.bytes() / (1 << 20) * MEMORY_PER_GIB / 1024).max(64 << 10);
    let memory = Arc::new(SimPmem::new(bytes, PmemOptions::default()));
    let (format, mount) = (FormatOptions::default(), MountOptions::default());
    let device = FlashDevice::format_beside(chip, memory.clone(), &format, &mount, beside);
    Ok(Made { device: device.map_err(|error| failed("anything", &error))?, memory })
}

/// Makes a population on a device, ends it, mounts it again and asks for every object.
pub fn populate(population: Population, blocks: u32, seed: u64) -> Result<Held> {
    let failed = |error: onode_object::Error| failed(population.name(), &error);
    let files = DeviceFiles::filled(population, blocks, seed).map_err(failed)?;
    files.device().close().map_err(failed)?;
    let lost = || Error::new(Class::Bug, "cannot measure flash+scm", "the memory was given up");
    let used = files.device().memory_use().ok_or_else(lost)?;
    let expected = files.device().list(ObjectId(0), usize::MAX).map_err(failed)?;
    let (chip, memory) = files.into_media();
    let (options, beside) = (MountOptions::default(), MemoryOptions::default());
    let nand_bytes = u64::from(blocks * PAGES_PER_BLOCK) * PAGE_BYTES;
    let mut held = Held { memory: used, nand_bytes, mount_seconds: f64::INFINITY, decode_seconds: f64::INFINITY };
    for _ in 0..ROUNDS {
        let (chip, memory) = (chip.clone(), memory.clone());
        let begin = processor_seconds();
        let (device, _) = FlashDevice::mount_beside(chip, memory, &options, &beside, &mut |_| {}).map_err(failed)?;
        let mounted = processor_seconds();
        let objects = device.list(ObjectId(0), usize::MAX).map_err(failed)?;
        held.decode_seconds = held.decode_seconds.min(processor_seconds() - mounted);
        held.mount_seconds = held.mount_seconds.min(mounted - begin);
        if objects != expected {
            return Err(Error::new(Class::Bug, "cannot measure flash+scm", "a mount shows other objects"));
        }
    }
    Ok(held)
}

/// Rows for the populations, one after another with what is to be reached.
pub fn populations(rows: &mut Measuring<'_>) -> Result<()> {
    let (mut mount_ms, mut decode_ms) = (0.0f64, 0.0f64);
    for (population, reach) in Population::ALL.into_iter().zip(REACH) {
        rows.say(&format!("filling a device with {}", population.name()));
        let held = populate(population, rows.options.blocks(), rows.options.seed)?;
        let name = format!("flash+scm, {}: everything in its memory", population.name());
        rows.at_most(name, held.mib_per_gib(held.used_bytes()), "MiB/GiB", reach);
        let name = format!("flash+scm, {}: of it, the table of segments", population.name());
        rows.shown(name, held.mib_per_gib(held.memory.piece_bytes), "MiB/GiB");
        mount_ms = mount_ms.max(per_gib(held.mount_seconds * 1e3, held.nand_bytes));
        decode_ms = decode_ms.max(per_gib(held.decode_seconds * 1e3, held.nand_bytes));
    }
    let name = "flash+scm: decoding all of it after a mount, the slowest of these";
    rows.at_most(name, decode_ms, "CPU ms/GiB", REACH_DECODE_MS);
    rows.shown("flash+scm: the mount before, the slowest of these", mount_ms, "CPU ms/GiB");
    Ok(())
}

/// Bytes stored to the memory and processor time for each synced update of an object.
fn update(blocks: u32, seed: u64, buffer: bool) -> Result<(f64, f64)> {
    let failed = |error: onode_object::Error| failed("updates", &error);
    let Made { device, memory } = make(blocks, &MemoryOptions { buffer, ..MemoryOptions::default() })?;
    let (mut prng, mut objects) = (Prng::new(seed), Vec::new());
    for _ in 0..u64::from(blocks) * 11 {
        let object = device.reserve_ids(1).map_err(failed)?;
        let pages = 1 + prng.below(4);
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default());
        transaction.write(object, 0, vec![1; (pages * PAGE_BYTES) as usize]);
        device.commit(transaction, Promise::Buffered).map_err(failed)?;
        objects.push((object, pages));
    }
    device.sync(SyncScope::All).map_err(failed)?;
    let (before, begin) = (memory.counters().bytes_stored, processor_seconds());
    let updates = 2 * objects.len();
    for _ in 0..updates {
        let (object, pages) = objects[prng.below(objects.len() as u64) as usize];
        let mut transaction = Transaction::new();
        transaction.write(object, prng.below(pages) * PAGE_BYTES, vec![2; PAGE_BYTES as usize]);
        device.commit(transaction, Promise::Durable).map_err(failed)?;
    }
    let spent = processor_seconds() - begin;
    let stored = memory.counters().bytes_stored - before;
    Ok((stored as f64 / updates as f64, spent * 1e6 / updates as f64))
}

/// Rows for updates without and with the write buffer.
pub fn updates(rows: &mut Measuring<'_>) -> Result<()> {
    for (buffer, with) in [(false, "off"), (true, "on")] {
        rows.say(&format!("updating objects on a device, buffer={with}"));
        let (bytes, us) = update(rows.options.blocks(), rows.options.seed, buffer)?;
        let name =
            format!("flash+scm, buffer={with}: stored to the memory for a synced 2 KiB overwrite, folds included");
        rows.at_most(name, bytes, "B", REACH_UPDATE_BYTES);
        let name = format!("flash+scm, buffer={with}: time of that overwrite, simulated media included");
        rows.at_most(name, us, "CPU us", REACH_UPDATE_US);
    }
    Ok(())
}

/// Rows for page programs of PostMark with a sync for each operation.
pub fn postmark(rows: &mut Measuring<'_>) -> Result<()> {
    let Some(traces) = &rows.options.traces else { return Ok(()) };
    let trace = traces.join("postmark-write-s42.txt.zst").display().to_string();
    let mut programs = |device: &str| -> Result<u64> {
        rows.say(&format!("PostMark on {device}"));
        let device = Spec::parse(device)?;
        let operations = operations_of(&trace, &device)?;
        let (durability, caches) = (Durability::Operation, Caches::small());
        let settings = Settings { trace: trace.clone(), device, durability, caches, access_times: AccessTimes::Never };
        replay(&settings, &operations).map(|report| report.nand.programs)
    };
    let shape = "sim,size=128M,page=2K,spare=64";
    let plain = programs(&format!("flash:{shape}"))?;
    let off = programs(&format!("flash+scm:{shape}"))?;
    let on = programs(&format!("flash+scm:{shape},buffer=on"))?;
    rows.shown("PostMark write-intensive, op: page programs of flash", plain, "pages");
    rows.at_most("the same on flash+scm, buffer=off", off, "pages", plain);
    rows.at_most("the same on flash+scm, buffer=on", on, "pages", REACH_PROGRAMS.min(plain));
    Ok(())
}
