//! Scrubs of a volume on a device that says what is damaged: step by step, kept and gone on with,
//! by one program at a time, and in the background.

use crate::common::*;
use onode_base::Timestamp;
use onode_base::clock::ManualClock;
use onode_fs::scrub::SCRUB;
use onode_fs::scrub::record::{DamagedRange, ScrubPhase};
use onode_fs::scrub::state::ScrubOwner;
use onode_fs::scrub::told::ScrubStatus;
use onode_fs::*;
use onode_object::powers::{GroupScrub, Scrub, ScrubReport};
use onode_object::ram::RamDevice;
use onode_object::{
    AttributeKey, DeviceInfo, Durability, Error, Maintenance, ObjectDevice, ObjectId, ObjectStat, Space, SyncScope,
    Transaction,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const GROUPS: u64 = 10;
const ME: ScrubOwner = ScrubOwner(7);
const OTHER: ScrubOwner = ScrubOwner(8);

/// Memory with ten groups of pages, one of them damaged until background work has moved it, and an
/// object that can be damaged.
struct Checked {
    inner: RamDevice,
    damaged: AtomicU64,
    lost_index: AtomicU64,
    to_move: AtomicU32,
}

impl Checked {
    fn broken(object: ObjectId) -> Error {
        Error::of(ErrorKind::Corrupt, object, "made to be").in_bytes(4096..8192)
    }
}

impl Scrub for Checked {
    fn scrub(&self, from: ObjectId, limit: usize) -> onode_object::Result<ScrubReport> {
        let mut report = ScrubReport::default();
        let objects = self.inner.list(from, limit)?;
        for object in &objects {
            if object.0 == self.lost_index.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Corrupt, "a node is damaged"));
            }
            report.objects += 1;
            report.bytes += self.inner.stat(*object)?.size;
            if object.0 == self.damaged.load(Ordering::Relaxed) {
                report.damaged.push(Self::broken(*object));
            }
        }
        report.next = objects.last().filter(|_| objects.len() == limit).map(|last| ObjectId(last.0 + 1));
        Ok(report)
    }

    fn scrub_groups(&self, from: u64, limit: u32) -> onode_object::Result<GroupScrub> {
        let until = (from + u64::from(limit)).min(GROUPS);
        let rebuilt = u64::from(self.to_move.load(Ordering::Relaxed) > 0 && (from..until).contains(&3));
        let next = (until < GROUPS).then_some(until);
        Ok(GroupScrub { groups: until - from, all: GROUPS, rebuilt, next, ..GroupScrub::default() })
    }
}

impl ObjectDevice for Checked {
    fn info(&self) -> DeviceInfo {
        self.inner.info()
    }

    fn reserve_ids(&self, count: u64) -> onode_object::Result<ObjectId> {
        self.inner.reserve_ids(count)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> onode_object::Result<()> {
        self.inner.commit(transaction, durability)
    }

    fn sync(&self, scope: SyncScope) -> onode_object::Result<()> {
        self.inner.sync(scope)
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> onode_object::Result<usize> {
        let range = offset..offset + buffer.len() as u64;
        if object.0 == self.damaged.load(Ordering::Relaxed) && range.start < 8192 && range.end > 4096 {
            return Err(Self::broken(object));
        }
        self.inner.read(object, offset, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> onode_object::Result<Option<Vec<u8>>> {
        self.inner.attribute(object, key)
    }

    fn attributes(
        &self,
        object: ObjectId,
        from: AttributeKey,
        limit: usize,
    ) -> onode_object::Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.inner.attributes(object, from, limit)
    }

    fn stat(&self, object: ObjectId) -> onode_object::Result<ObjectStat> {
        self.inner.stat(object)
    }

    fn list(&self, from: ObjectId, limit: usize) -> onode_object::Result<Vec<ObjectId>> {
        self.inner.list(from, limit)
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> onode_object::Result<Vec<(u64, u64)>> {
        self.inner.extents(object, offset, limit)
    }

    fn space(&self) -> Space {
        self.inner.space()
    }

    fn maintain(&self, _budget: u32) -> onode_object::Result<Maintenance> {
        let left = self.to_move.load(Ordering::Relaxed).saturating_sub(1);
        self.to_move.store(left, Ordering::Relaxed);
        Ok(Maintenance { done: 1, more: left > 0 })
    }

    fn close(&self) -> onode_object::Result<()> {
        self.inner.close()
    }

    fn scrub(&self) -> Option<&dyn Scrub> {
        Some(self)
    }
}

struct Made {
    device: Arc<Checked>,
    clock: Arc<ManualClock>,
    files: [InodeNumber; 2],
}

/// A volume with a small file and one of 100,000 bytes.
fn made() -> (Made, FileSystem) {
    let device = Checked {
        inner: RamDevice::with_crash_model(64 << 20),
        damaged: AtomicU64::new(0),
        lost_index: AtomicU64::new(0),
        to_move: AtomicU32::new(0),
    };
    let device = Arc::new(device);
    let options = FormatOptions { inodes: INODES, ..FormatOptions::default() };
    format(device.as_ref(), &options, Timestamp::from_nanoseconds(START)).unwrap();
    let clock = Arc::new(ManualClock::at(START));
    let mut made = Made { device, clock, files: [ROOT; 2] };
    let fs = made.mount(false);
    made.files = ["small", "large"].map(|name| create(&fs, ROOT, name));
    for (file, bytes) in made.files.iter().zip([9000, 100_000]) {
        fs.write(&root(), *file, 0, &vec![5; bytes]).unwrap();
    }
    fs.sync().unwrap();
    (made, fs)
}

impl Made {
    fn mount(&self, read_only: bool) -> FileSystem {
        let device: Arc<dyn ObjectDevice> = self.device.clone();
        FileSystem::mount(device, self.clock.clone(), Options { read_only, ..Options::default() }).unwrap()
    }

    fn damage(&self, file: usize) -> DamagedRange {
        let object = self.files[file].0;
        self.device.damaged.store(object, Ordering::Relaxed);
        DamagedRange { object, start: 4096, end: 8192 }
    }
}

fn finish(fs: &FileSystem, owner: ScrubOwner, budget: u64) -> ScrubStatus {
    for _ in 0..1000 {
        if !fs.step_scrub(owner, budget).unwrap() {
            return fs.scrub_status().unwrap();
        }
    }
    panic!("it has no end");
}

#[test]
fn small_steps_and_large_ones_find_the_same() {
    let (made, fs) = made();
    for file in 0..2 {
        let range = made.damage(file);
        for budget in [500, 5000, 20_000, 1 << 20] {
            made.device.to_move.store(3, Ordering::Relaxed);
            fs.begin_scrub(ME, false).unwrap();
            let found = finish(&fs, ME, budget).last.unwrap().found;
            assert_eq!(found.damaged, [range], "in steps of {budget} bytes");
            assert_eq!((found.groups, found.rebuilt, found.objects), (GROUPS, 1, made.device.space().objects));
            assert!(found.is_damaged() && !found.is_cut);
            // Step by step all of the large file counts but what is damaged.
            if file == 1 && budget < 1 << 20 {
                assert!((104_904..110_000).contains(&found.bytes), "{} in steps of {budget}", found.bytes);
            }
            assert_eq!(made.device.to_move.load(Ordering::Relaxed), 0, "it was not moved");
        }
    }
    made.device.damaged.store(0, Ordering::Relaxed);
    fs.begin_scrub(ME, false).unwrap();
    let found = finish(&fs, ME, 5000).last.unwrap().found;
    assert!(!found.is_damaged() && found.rebuilt == 0 && found.bytes >= 109_000);
}

#[test]
fn damage_of_the_index_ends_a_pass_and_is_told() {
    let (made, fs) = made();
    made.device.lost_index.store(made.files[0].0, Ordering::Relaxed);
    fs.begin_scrub(ME, false).unwrap();
    let found = finish(&fs, ME, 1 << 20).last.unwrap().found;
    assert!(found.is_cut && found.is_damaged());
    assert!(fs.scrub_damage().is_some());
}

#[test]
fn a_pass_goes_on_after_a_remount_and_nothing_is_kept_without_writing() {
    let (made, fs) = made();
    fs.begin_scrub(ME, false).unwrap();
    while fs.scrub_status().unwrap().pass.unwrap().phase == ScrubPhase::Groups {
        assert!(fs.step_scrub(ME, 1).unwrap());
    }
    fs.stop_scrub(ME).unwrap();
    let before = fs.scrub_status().unwrap();
    assert!(!before.is_running && before.last.is_none());
    fs.unmount().unwrap();
    drop(fs);
    let read_only = made.mount(true);
    assert_eq!(read_only.scrub_status().unwrap(), before);
    read_only.begin_scrub(ME, false).unwrap();
    assert!(finish(&read_only, ME, 1 << 20).last.is_some());
    drop(read_only);
    let fs = made.mount(false);
    assert_eq!(fs.scrub_status().unwrap(), before);
    made.clock.advance(100 * SECOND);
    fs.begin_scrub(ME, true).unwrap();
    let last = finish(&fs, ME, 1 << 20).last.unwrap();
    assert_eq!((last.started, last.found.groups), (before.pass.unwrap().started, GROUPS));
    assert_eq!(last.ended.seconds, last.started.seconds + 100);
    // Whatever stands there that makes no sense, it begins anew.
    let key = AttributeKey::new(onode_object::AttributeKind::VOLUME, 1);
    let mut nonsense = Transaction::new();
    nonsense.set_attribute(ObjectId(2), key, vec![1, 9, 9]);
    made.device.commit(nonsense, Durability::Durable).unwrap();
    drop(fs);
    assert_eq!(made.mount(false).scrub_status().unwrap().last, None);
    assert!(check::check(made.device.as_ref()).unwrap().findings.is_empty(), "a check finds fault with it");
}

#[test]
fn one_program_at_a_time() {
    let (made, fs) = made();
    fs.begin_scrub(ME, false).unwrap();
    assert_eq!(kind(fs.begin_scrub(OTHER, true)), ErrorKind::Busy);
    assert_eq!(kind(fs.step_scrub(OTHER, 1)), ErrorKind::Busy);
    assert_eq!(kind(fs.stop_scrub(OTHER)), ErrorKind::Busy);
    fs.step_scrub(ME, 1).unwrap();
    // Who makes no step for long is taken for gone.
    made.clock.advance(31 * SECOND);
    assert!(!fs.scrub_status().unwrap().is_running);
    fs.begin_scrub(OTHER, true).unwrap();
    assert_eq!(kind(fs.step_scrub(ME, 1)), ErrorKind::Busy);
    assert!(finish(&fs, OTHER, 1 << 20).last.is_some());
    assert_eq!(kind(fs.step_scrub(OTHER, 1)), ErrorKind::Busy, "there is nothing to go on with");
}

#[test]
fn the_attribute_does_the_same_for_root_and_the_owner() {
    let (made, fs) = made();
    let set = |caller: &Caller, number: InodeNumber, words: &str| {
        fs.set_xattr(caller, number, SCRUB.as_bytes(), words.as_bytes(), XattrFlags::Any)
    };
    assert_eq!(kind(set(&user(5, 5), ROOT, "begin 1")), ErrorKind::NotPermitted);
    assert_eq!(kind(set(&root(), made.files[0], "begin 1")), ErrorKind::NotPermitted);
    for wrong in ["", "begin", "begin 0", "begin x", "begin 1 2", "step 1", "go 1", "stop"] {
        assert_eq!(kind(set(&root(), ROOT, wrong)), ErrorKind::Invalid, "{wrong}");
    }
    set(&root(), ROOT, "begin 1").unwrap();
    set(&root(), ROOT, "step 1 1000").unwrap();
    let told = ScrubStatus::parse(&String::from_utf8(fs.get_xattr(ROOT, SCRUB.as_bytes()).unwrap()).unwrap());
    assert_eq!(told.to_text(), fs.scrub_status().unwrap().to_text());
    assert!(told.is_running && told.pass.is_some());
    set(&root(), ROOT, "stop 1").unwrap();
    assert!(!String::from_utf8(fs.list_xattrs(ROOT).unwrap()).unwrap().contains("scrub"));
    // A device that keeps no checksums has nothing to verify.
    let (_, plain) = mounted();
    let begun = plain.set_xattr(&root(), ROOT, SCRUB.as_bytes(), b"begin 1", XattrFlags::Any);
    assert_eq!(kind(begun), ErrorKind::NotSupported);
}

#[test]
fn the_background_takes_its_period_and_names_what_it_finds() {
    let (made, fs) = made();
    made.damage(0);
    let period = 1000;
    let mut seconds = 0;
    while fs.scrub_status().unwrap().last.is_none() {
        made.clock.advance(SECOND);
        seconds += 1;
        fs.scrub_in_background(period).unwrap();
        assert!(seconds < 2 * period, "it has no end");
    }
    // The estimate of what there is to verify is never right.
    assert!(seconds > period / 4 && seconds <= period + 100, "{seconds} seconds");
    let (told, more) = fs.scrub_damage().unwrap();
    assert_eq!((told.clone(), more), (vec![format!("inode {} bytes 4096 to 8192", made.files[0].0)], 0));
    fs.name_damage(&|| false);
    assert_eq!(fs.scrub_damage().unwrap().0, told, "it was not to be looked for");
    fs.name_damage(&|| true);
    assert_eq!(fs.scrub_damage().unwrap().0, ["/small bytes 4096 to 8192"]);
    made.device.damaged.store(0, Ordering::Relaxed);
    let first = fs.last_scrub().unwrap();
    while fs.scrub_status().unwrap().last.as_ref() == Some(&first) {
        made.clock.advance(SECOND);
        seconds += 1;
        fs.scrub_in_background(period).unwrap();
        assert!(seconds < 4 * period, "it has no end");
    }
    assert!(fs.scrub_status().unwrap().last.unwrap().started.seconds - first.started.seconds >= period as i64);
    assert_eq!(fs.scrub_damage(), None);
}

#[test]
fn a_program_goes_before_the_background() {
    let (made, fs) = made();
    fs.scrub_in_background(1000).unwrap();
    assert!(fs.scrub_status().unwrap().is_running);
    fs.begin_scrub(ME, true).unwrap();
    made.clock.advance(500 * SECOND / 100);
    let before = fs.scrub_status().unwrap();
    fs.scrub_in_background(10).unwrap();
    assert_eq!(fs.scrub_status().unwrap(), before, "the background went on meanwhile");
    fs.stop_scrub(ME).unwrap();
    fs.scrub_in_background(10).unwrap();
    fs.scrub_in_background(10).unwrap();
    assert_ne!(fs.scrub_status().unwrap().pass.map(|pass| pass.done), before.pass.map(|pass| pass.done));
}

/// A scrub is no reason to fail, nor may it take what was promised to others.
#[test]
fn a_full_volume_is_scrubbed_and_its_space_stays_what_it_was() {
    let (made, fs) = made();
    let mut at = 0;
    while let Ok(written) = fs.write(&root(), made.files[1], at, &vec![6; 1 << 16]) {
        at += written as u64;
    }
    let range = made.damage(0);
    fs.begin_scrub(ME, false).unwrap();
    fs.step_scrub(ME, 1000).unwrap();
    fs.stop_scrub(ME).unwrap();
    fs.begin_scrub(ME, true).unwrap();
    assert_eq!(finish(&fs, ME, 1 << 20).last.unwrap().found.damaged, [range]);
    made.device.damaged.store(0, Ordering::Relaxed);
    fs.sync().unwrap();
    let mut last = vec![0; 1 << 16];
    assert_eq!(fs.read(made.files[1], at - (1 << 16), &mut last).unwrap(), 1 << 16, "of {at} bytes");
    assert!(last == vec![6; 1 << 16], "what was accepted is not there");
    fs.unmount().unwrap();
}
