//! Blocks that are durable and found again: a block that is put into a slot, beside libpmemobj, on
//! memory with lines flushed, and one that becomes a file, on a plain file of ext4 that is synced.

use super::Measuring;
use super::host::{LoopMount, Scratch, failed, nanoseconds};
use super::peers::{Peer, Table};
use onode::Result;
use onode_fs::{Caller, FileSystem, InodeNumber, WriteMode};
use onode_heap::Heap;
use std::path::Path;

/// The size of the blocks.
const BLOCK_BYTES: usize = 512;
/// Operations that are made durable together on a plain file.
const GROUP: usize = 64;
const NANOSECONDS: &str = "ns";
const TIMES: &str = "times";

/// Nanoseconds for a block that is allocated and put into a slot, durable each time; the best of
/// several rounds.
fn own(blocks: usize, rounds: usize) -> Result<f64> {
    let place = Scratch::new("durable");
    let heap = Heap::open(&format!("scm:{},size=64M,flush=on", place.0.display()));
    let heap = heap.map_err(|error| failed("cannot make a heap", error))?;
    let slots = heap.slots(b"blocks").map_err(|error| failed("cannot make slots", error))?;
    let mut best = f64::INFINITY;
    // In the first round the memory is touched for the first time.
    for round in 0..=rounds {
        let (time, ()) = nanoseconds(|| {
            for slot in 0..blocks as u64 {
                let mut block = heap.allocate(BLOCK_BYTES).map_err(|error| failed("no block", error))?;
                block[0] = 1;
                // As with the peer, only what says that it is there is durable; its bytes are the
                // program's business.
                slots.fill(slot, block, true).map_err(|error| failed("a slot", error))?;
            }
            Ok(())
        })?;
        if round > 0 {
            best = best.min(time / blocks as f64);
        }
        for slot in 0..blocks as u64 {
            slots.take(slot).map_err(|error| failed("a slot", error))?;
        }
    }
    Ok(best)
}

/// Nanoseconds for a file that is made and removed on a plain file, with a sync after each group.
fn own_on_file(folder: &Path, groups: usize) -> Result<f64> {
    let place = Scratch::beside(folder, "plain.scm");
    let went = |error: onode::Error| failed("cannot make a volume in a plain file", error);
    let spec = onode::Spec::parse(&format!("scm:{},size=256M", place.0.display())).map_err(went)?;
    onode::Volume::create(&spec, &onode::CreateOptions::default()).map_err(went)?;
    let options = onode::MountOptions { write_mode: WriteMode::WriteBack, ..onode::MountOptions::default() };
    let volume = onode::Volume::open(&spec, options).map_err(went)?;
    let fs: &FileSystem = volume.files();
    let went = |error: onode_fs::Error| failed("a call of the file system failed", error);
    let names: Vec<String> = (0..GROUP).map(|number| format!("block-{number}")).collect();
    let root = Caller::root();
    let one_group = || {
        for name in &names {
            let made = fs.create(&root, InodeNumber::ROOT, name.as_bytes(), 0o600).map_err(went)?;
            fs.write(&root, made.inode, 0, &[1; 64]).map_err(went)?;
            fs.forget(made.inode, 1);
        }
        fs.sync().map_err(went)?;
        names.iter().try_for_each(|name| fs.unlink(InodeNumber::ROOT, name.as_bytes()).map_err(went))?;
        fs.sync().map_err(went)
    };
    one_group()?;
    let (time, ()) = nanoseconds(|| (0..groups).try_for_each(|_| one_group()))?;
    Ok(time / (groups * GROUP) as f64)
}

fn best(rounds: usize, mut one: impl FnMut() -> Result<f64>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        best = best.min(one()?);
    }
    Ok(best)
}

/// Measures both media.
pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    let quick = measuring.options.quick;
    let (blocks, rounds) = if quick { (50, 1) } else { (4000, 5) };
    measuring.say("blocks that become durable");
    let flushed = own(blocks, rounds)?;
    measuring.shown("durable alloc + publish 512 B, onode", flushed, NANOSECONDS);
    if measuring.options.program.is_none() {
        return Ok(());
    }
    let times = |table: &Table| table.get(&(BLOCK_BYTES as u64)).copied();
    match Peer::pmemobj("libpmemobj", if quick { 2 } else { 30 }).and_then(|mut peer| peer.measure()) {
        Ok(table) => {
            if let Some(theirs) = times(&table) {
                let name = "durable alloc + publish 512 B, faster than libpmemobj that flushes";
                measuring.at_least(name, theirs.allocate / flushed, TIMES, 3.0);
                let name = "durable alloc into a reference 512 B, libpmemobj that flushes";
                measuring.shown(name, theirs.allocate, NANOSECONDS);
            }
        }
        Err(error) => measuring.failures.push(error.to_string()),
    }
    // There a fence is a sync of the file.
    let disk = match LoopMount::new("ext4", "", Path::new("/dev/shm")) {
        Ok(disk) => disk,
        Err(error) => {
            measuring.failures.push(error.to_string());
            return Ok(());
        }
    };
    measuring.say("blocks that become durable in a plain file");
    let ours = best(if quick { 1 } else { 3 }, || own_on_file(&disk.mount, if quick { 1 } else { 20 }))?;
    measuring.shown("put + unlink in a plain file of ext4, groups of 64, onode", ours, NANOSECONDS);
    match Peer::pmemobj_on(&disk.mount, if quick { 1 } else { 3 }).and_then(|mut peer| peer.measure()) {
        Ok(table) => {
            if let Some(theirs) = times(&table) {
                let name = "put + unlink in a plain file of ext4, groups of 64, faster than alloc + free of libpmemobj";
                measuring.at_least(name, theirs.pair / ours, TIMES, 10.0);
                let name = "alloc + free in a plain file of ext4, libpmemobj";
                measuring.shown(name, theirs.pair, NANOSECONDS);
            }
        }
        Err(error) => measuring.failures.push(error.to_string()),
    }
    Ok(())
}
