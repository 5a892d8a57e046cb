//! Many readers beside one who writes, cleans, removes and fills the volume: every read shows one
//! version of an object, whole and sound.

use crate::common::{Flash, LARGE, SMALL, STRIPED, Shared, TINY};
use onode_base::sync::as_another_thread;
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::{
    BlockAddress, Geometry, IoTag, Nand, PageAddress, Result as MediaResult, SharedNand, SimNand, SimOptions,
};
use onode_object::{Durability, ErrorKind, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

const OBJECTS: u64 = 12;
const ROUNDS: u64 = 150;

/// Bytes of an object in one version: each word says whose it is.
fn content(object: u64, version: u64) -> Vec<u8> {
    let words = 40 + (object * 977 + version * 131) % 2500;
    (0..words).flat_map(|_| (object << 32 | version).to_le_bytes()).collect()
}

/// What is read must be one version that is no older than `since`.
fn check(object: u64, bytes: &[u8], since: u64) -> u64 {
    let word = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert_eq!(word >> 32, object, "it belongs to another object");
    let version = word & 0xffff_ffff;
    assert!(version >= since, "object {object}: version {version} after {since}");
    assert!(bytes == content(object, version), "object {object}: version {version} is mixed with others");
    version
}

/// Reads all of one object; nothing if it is not there now.
fn read(device: &dyn ObjectDevice, object: u64, buffer: &mut [u8]) -> Option<usize> {
    match device.read(ObjectId(object), 0, buffer) {
        Ok(length) => Some(length).filter(|length| *length > 0),
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
            None
        }
    }
}

/// Replaces an object, now and then by removing it; says whether there was room.
fn replace(device: &dyn ObjectDevice, object: u64, version: u64) -> bool {
    let mut transaction = Transaction::new();
    if version % 5 == 4 {
        transaction.remove(ObjectId(object)).create(ObjectId(object), Hints::default());
    } else {
        transaction.truncate(ObjectId(object), 0);
    }
    transaction.write(ObjectId(object), 0, content(object, version));
    let durability = if version.is_multiple_of(3) { Durability::Durable } else { Durability::Buffered };
    match device.commit(transaction, durability) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
            false
        }
    }
}

fn fill(device: &dyn ObjectDevice) {
    let first = device.reserve_ids(64).unwrap();
    let mut made = Vec::new();
    for object in (first.0..first.0 + 64).map(ObjectId) {
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, vec![7; 60_000]);
        match device.commit(transaction, Durability::Buffered) {
            Ok(()) => made.push(object),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
                break;
            }
        }
    }
    for object in made {
        let mut transaction = Transaction::new();
        transaction.remove(object);
        device.commit(transaction, Durability::Buffered).unwrap();
    }
}

fn run(device: &dyn ObjectDevice) {
    let first = device.reserve_ids(OBJECTS).unwrap().0;
    let newest: Vec<AtomicU64> = (0..OBJECTS).map(|_| AtomicU64::new(0)).collect();
    for object in first..first + OBJECTS {
        let mut transaction = Transaction::new();
        transaction.create(ObjectId(object), Hints::default()).write(ObjectId(object), 0, content(object, 0));
        device.commit(transaction, Durability::Buffered).unwrap();
    }
    let (is_over, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for reader in 0..3 {
            let (newest, is_over, reads) = (&newest, &is_over, &reads);
            scope.spawn(move || {
                let mut buffer = vec![0; 32_768];
                let mut turn = reader;
                while !is_over.load(Ordering::Acquire) {
                    let slot = turn % OBJECTS;
                    turn += 1 + reader;
                    let since = newest[slot as usize].load(Ordering::Acquire);
                    if let Some(length) = read(device, first + slot, &mut buffer) {
                        check(first + slot, &buffer[..length], since);
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for version in 1..=ROUNDS {
            for slot in 0..OBJECTS {
                if replace(device, first + slot, version) {
                    newest[slot as usize].store(version, Ordering::Release);
                }
            }
            if version.is_multiple_of(7) {
                device.maintain(3).unwrap();
            }
            if version.is_multiple_of(40) {
                fill(device);
            }
            device.sync(SyncScope::All).unwrap();
        }
        is_over.store(true, Ordering::Release);
    });
    assert!(reads.load(Ordering::Relaxed) > 0);
    let mut buffer = vec![0; 32_768];
    for slot in 0..OBJECTS {
        let length = read(device, first + slot, &mut buffer).unwrap();
        check(first + slot, &buffer[..length], newest[slot as usize].load(Ordering::Acquire));
    }
    assert!(device.health().conditions.is_empty(), "{:?}", device.health());
    device.close().unwrap();
}

#[test]
fn reads_beside_a_writer_are_whole_on_every_shape() {
    for shape in [TINY, SMALL, LARGE, STRIPED] {
        run(Flash::holding(shape, 900_000).device.as_ref().unwrap());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn reads_beside_a_writer_are_whole_in_files() {
    use onode_media::image::CreateOptions;
    use onode_media::{ImageNand, real::BlockNand};
    let path = std::env::temp_dir().join(format!("onode-flash-parallel-{}", std::process::id()));
    let shape = Geometry { page_bytes: 4096, spare_bytes: 0, pages_per_block: 16, blocks: 96, chips: 1 };
    let (format, options) = (FormatOptions::default(), MountOptions::default());
    std::fs::write(&path, "").unwrap();
    let nand = BlockNand::create(&path, shape, [3; 16]).unwrap();
    run(&FlashDevice::format(nand, &format, &options).unwrap());
    let how = CreateOptions { uuid: [4; 16], overwrite: true };
    let nand = ImageNand::create(&path, Geometry { spare_bytes: 64, ..shape }, how).unwrap();
    run(&FlashDevice::format(nand, &format, &options).unwrap());
    std::fs::remove_file(&path).unwrap();
}

type Act = Box<dyn FnOnce() + Send>;

/// A chip at which something happens while a reader waits for its first page.
#[derive(Clone)]
struct Interrupted {
    chip: Shared,
    act: Arc<Mutex<Option<Act>>>,
}

impl Nand for Interrupted {
    fn geometry(&self) -> Geometry {
        self.chip.geometry()
    }
    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> MediaResult<()> {
        self.chip.read(page, data, spare, tag)
    }
    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> MediaResult<()> {
        self.chip.program(page, data, spare, tag)
    }
    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> MediaResult<()> {
        self.chip.erase(block, tag)
    }
    fn is_bad(&mut self, block: BlockAddress) -> MediaResult<bool> {
        self.chip.is_bad(block)
    }
    fn mark_bad(&mut self, block: BlockAddress) -> MediaResult<()> {
        self.chip.mark_bad(block)
    }
    fn shared(&self) -> Option<Arc<dyn SharedNand>> {
        Some(Arc::new(self.clone()))
    }
}

impl SharedNand for Interrupted {
    fn read_run(&self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> MediaResult<()> {
        let act = self.act.lock().unwrap().take();
        if let Some(act) = act {
            // What happens there is another thread's work, in this one so that it is done in time.
            as_another_thread(act);
        }
        self.chip.read_run(first, data, spare, tag)
    }
    fn finish_flush(&self) -> MediaResult<()> {
        Ok(())
    }
}

/// The lock is free while the medium works, or this would never end; and what the reader needs is
/// not reused.
#[test]
fn everything_can_be_rewritten_while_one_read_waits_for_the_medium() {
    let shape = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 16, blocks: 96, chips: 1 };
    let chip = Shared::holding(SimNand::new(shape, SimOptions::default()).unwrap());
    let nand = Interrupted { chip, act: Arc::default() };
    let device = FlashDevice::format(nand.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap();
    let device = Arc::new(device);
    let object = device.reserve_ids(2).unwrap();
    let (old, new) = (vec![1; 30_000], vec![2; 30_000]);
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, old.clone());
    device.commit(transaction, Durability::Durable).unwrap();
    let erases = |nand: &Interrupted| nand.chip.with(|nand| nand.counters().unwrap().total().erases);
    let before = erases(&nand);
    let (writer, content) = (Arc::clone(&device), new.clone());
    *nand.act.lock().unwrap() = Some(Box::new(move || {
        for _ in 0..400 {
            let mut transaction = Transaction::new();
            transaction.write(object, 0, content.clone());
            writer.commit(transaction, Durability::Durable).unwrap();
        }
    }));
    let mut buffer = vec![0; 30_000];
    assert_eq!(device.read(object, 0, &mut buffer).unwrap(), old.len());
    assert!(buffer == old, "the read shows the moment at which it began");
    assert!(erases(&nand) - before > 3 * 96, "every block was used again");
    device.read(object, 0, &mut buffer).unwrap();
    assert!(buffer == new);
}
