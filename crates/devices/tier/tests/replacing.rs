//! Disks of a volume that others take the place of while it is in use: whatever is written
//! meanwhile and whenever power goes, a disk with everything is a part of the volume.

use crate::common::{cut, new_fast, small_division};
use onode_base::Prng;
use onode_base::sync::{Mutex, rank};
use onode_media::sim::disk::SimDisk;
use onode_media::{BlockDev, JoinedDisk};
use onode_object::powers::{ReplaceState, Replaced, Resize};
use onode_object::{Acknowledge, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, Result, Transaction};
use onode_tier::fast::FastOptions;
use onode_tier::{FindDisks, FormatOptions, MountOptions, NewFast, TierDevice};
use std::collections::BTreeMap;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

/// Disks by their names, and which of them is the fast one.
struct Shelf {
    disks: Vec<SimDisk>,
    fast: Mutex<String, rank::Free>,
}

impl Shelf {
    fn named(&self, name: &str) -> Result<SimDisk> {
        let found = self.disks.iter().find(|disk| disk.name() == name).cloned();
        found.ok_or_else(|| onode_object::Error::new(ErrorKind::Invalid, "no such disk"))
    }
}

impl FindDisks for Shelf {
    fn known(&self) -> Result<Box<dyn BlockDev>> {
        Ok(Box::new(self.named(&self.fast.lock().clone())?))
    }
    fn empty(&self, _: Option<FastOptions>) -> Result<NewFast> {
        Ok(new_fast(&self.named(&self.fast.lock().clone())?))
    }
    fn another(&self, place: &str, _: [u8; 16]) -> Result<Box<dyn BlockDev>> {
        Ok(Box::new(self.named(place)?))
    }
    fn fast_name(&self) -> Option<String> {
        Some(self.fast.lock().clone())
    }
    fn fast_at(&self, place: &str, _: Option<u64>, before: Option<FastOptions>) -> Result<NewFast> {
        assert_eq!(before.map(|before| before.sections.len()), Some(small_division().sections.len()));
        Ok(new_fast(&self.named(place)?))
    }
    fn fast_is_at(&self, place: &str) {
        place.clone_into(&mut self.fast.lock());
    }
}

/// A fast disk, and a big one that goes on on another.
struct Rig {
    shelf: Arc<Shelf>,
    device: TierDevice,
    options: MountOptions,
    prng: Prng,
    /// The first of the objects, and what they hold, durably.
    first: u64,
    model: BTreeMap<u64, Vec<u8>>,
}

/// The disks at once, in order.
fn joined(disks: &[SimDisk]) -> JoinedDisk {
    let mut disks = disks.iter().cloned();
    let mut all = JoinedDisk::new(Box::new(disks.next().unwrap()));
    disks.for_each(|disk| all.push(Box::new(disk), 12 * MIB).unwrap());
    all
}

impl Rig {
    fn new(acknowledge: Acknowledge, seed: u64) -> Self {
        let sizes = [("fast", 8), ("big", 12), ("second", 8), ("new", 13), ("other", 9)];
        let disks = sizes.map(|(name, mib)| SimDisk::new(name, mib * MIB)).to_vec();
        let options = MountOptions { acknowledge, ..MountOptions::default() };
        let format = FormatOptions { log_bytes: Some(256 << 10), acknowledge, ..FormatOptions::default() };
        let mut all = JoinedDisk::new(Box::new(disks[1].clone()));
        all.join(Box::new(disks[2].clone()), format.uuid).unwrap();
        let device = TierDevice::format(Box::new(all), Some(new_fast(&disks[0])), &format, &options).unwrap();
        let shelf = Arc::new(Shelf { disks, fast: Mutex::new("fast".to_owned()) });
        device.set_finder(Arc::clone(&shelf) as Arc<dyn FindDisks>);
        let first = device.reserve_ids(40).unwrap().0;
        Self { first, shelf, device, options, prng: Prng::new(seed), model: BTreeMap::new() }
    }

    /// Changes or removes some object, durably.
    fn change(&mut self) {
        let number = self.prng.below(40);
        let object = ObjectId(self.first + number);
        let mut transaction = Transaction::new();
        if self.model.contains_key(&number) && self.prng.chance(1, 3) {
            transaction.remove(object);
            self.model.remove(&number);
        } else {
            let mut bytes = vec![0; 1 + self.prng.below(200_000) as usize];
            self.prng.fill(&mut bytes);
            let held = self.model.entry(number).or_insert_with(|| {
                transaction.create(object, Hints::default());
                Vec::new()
            });
            if held.len() < bytes.len() {
                held.resize(bytes.len(), 0);
            }
            held[..bytes.len()].copy_from_slice(&bytes);
            transaction.write(object, 0, bytes);
        }
        self.device.commit(transaction, Durability::Durable).unwrap();
        if self.prng.chance(1, 4) {
            self.device.maintain(1000).unwrap();
        }
    }

    /// What a cut leaves has everything, on these big disks.
    fn expect(&mut self, fast: &str, big: [&str; 2], what: &str) {
        let left: Vec<_> =
            [fast, big[0], big[1]].map(|name| cut(&self.shelf.named(name).unwrap(), &mut self.prng)).to_vec();
        let mut all = joined(&left[1..]);
        assert!(TierDevice::volume_on(&mut all).is_some(), "{what}");
        let device = TierDevice::mount(Box::new(all), Some(Box::new(left[0].clone())), &self.options).unwrap();
        self.verify(&device, what);
    }

    fn verify(&self, device: &TierDevice, what: &str) {
        assert_eq!(device.reports(), Vec::<String>::new(), "{what}");
        for number in 0..40 {
            let object = ObjectId(self.first + number);
            let mut out = vec![0; 200_001];
            match self.model.get(&number) {
                Some(held) => {
                    let read = device.read(object, 0, &mut out).unwrap();
                    assert!(&out[..read] == held, "{what}: object {number}");
                }
                None => assert_eq!(device.stat(object).unwrap_err().kind, ErrorKind::NotFound, "{what}: {number}"),
            }
        }
        device.verify().unwrap();
    }
}

#[test]
fn a_big_disk_is_replaced_at_work() {
    for (acknowledge, which, seed) in
        [(Acknowledge::Safe, 0, 1), (Acknowledge::Either, 0, 2), (Acknowledge::Safe, 1, 3), (Acknowledge::Either, 1, 4)]
    {
        let mut rig = Rig::new(acknowledge, seed);
        (0..60).for_each(|_| rig.change());
        let before = ["big", "second"];
        let mut after = before;
        let new = ["new", "other"][which];
        after[which] = new;
        let what = format!("{acknowledge:?} {which}");
        let replaced = rig.device.replacing().unwrap();
        assert_eq!(replaced.disks(), ["fast", "big", "second"]);
        assert_eq!(replaced.replace_state(), ReplaceState::Idle);
        replaced.begin_replacing(before[which], new).unwrap();
        assert_eq!(rig.device.grow(30 * MIB).unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(rig.device.begin_shrinking(18 * MIB).unwrap_err().kind, ErrorKind::Invalid);
        let mut steps = 0;
        while !matches!(rig.device.replacing().unwrap().replace_state(), ReplaceState::Done(_)) {
            (0..3).for_each(|_| rig.change());
            rig.expect("fast", before, &format!("{what}: step {steps}"));
            // The new one passes for nothing before it is over.
            let mut unfinished = cut(&rig.shelf.named(new).unwrap(), &mut rig.prng);
            if which == 0 {
                assert!(TierDevice::volume_on(&mut unfinished).is_none(), "{what}: step {steps}");
            }
            rig.device.replacing().unwrap().replace_some().unwrap();
            steps += 1;
        }
        assert!(steps > 2, "{steps}");
        let replaced = rig.device.replacing().unwrap();
        assert_eq!(replaced.replace_state(), ReplaceState::Done(Replaced::default()));
        assert_eq!(replaced.disks(), ["fast", after[0], after[1]]);
        rig.expect("fast", after, &format!("{what}: over"));
        (0..30).for_each(|_| rig.change());
        rig.expect("fast", after, &format!("{what}: changed"));
        if which == 0 {
            assert!(TierDevice::volume_on(&mut rig.shelf.named("big").unwrap()).is_none());
        }
        assert_eq!(replaced_error(&rig.device), ErrorKind::Invalid);
        rig.verify(&rig.device, &what);
        rig.device.close().unwrap();
        rig.expect("fast", after, &format!("{what}: closed"));
    }
}

/// Another step when nothing is under way.
fn replaced_error(device: &TierDevice) -> ErrorKind {
    device.replacing().unwrap().replace_some().unwrap_err().kind
}

#[test]
fn a_fast_disk_is_replaced_at_work() {
    for acknowledge in [Acknowledge::Safe, Acknowledge::Either] {
        let mut rig = Rig::new(acknowledge, 9);
        (0..60).for_each(|_| rig.change());
        let replaced = rig.device.replacing().unwrap();
        replaced.begin_replacing("fast", "other").unwrap();
        assert_eq!(replaced.replace_state(), ReplaceState::Done(Replaced::default()));
        assert_eq!(replaced.disks(), ["other", "big", "second"]);
        rig.expect("other", ["big", "second"], "replaced");
        (0..30).for_each(|_| rig.change());
        rig.expect("other", ["big", "second"], "changed");
        // One that cannot be used leaves the one that there is.
        let missing = rig.device.replacing().unwrap().begin_replacing("other", "nothing");
        assert_eq!(missing.unwrap_err().kind, ErrorKind::Invalid);
        assert!(rig.device.has_fast());
        rig.expect("other", ["big", "second"], "refused");
    }
}

#[test]
fn what_the_old_disk_cannot_read_is_told_and_found_by_a_scrub() {
    let mut rig = Rig::new(Acknowledge::Safe, 5);
    (0..60).for_each(|_| rig.change());
    rig.device.detach_fast().unwrap();
    let old = rig.shelf.named("big").unwrap();
    // Content lies behind the log and the bitmap.
    (200..2900).step_by(97).for_each(|block| old.make_unreadable(block * 4096));
    let replaced = rig.device.replacing().unwrap();
    replaced.begin_replacing("big", "new").unwrap();
    while matches!(replaced.replace_state(), ReplaceState::Copying(_)) {
        replaced.replace_some().unwrap();
    }
    let ReplaceState::Done(done) = replaced.replace_state() else { panic!("it is over") };
    assert!(done.unreadable > 0 && done.not_cleared.is_none(), "{done:?}");
    let (mut damaged, mut right) = (0, 0);
    for (number, held) in &rig.model {
        let mut out = vec![0; 200_001];
        match rig.device.read(ObjectId(rig.first + number), 0, &mut out) {
            Ok(read) => {
                assert!(&out[..read] == held, "object {number}");
                right += 1;
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Corrupt, "object {number}");
                damaged += 1;
            }
        }
    }
    assert!(damaged > 0 && right > 0, "{damaged} {right}");
}

#[test]
fn a_replacement_that_fails_or_is_given_up_leaves_the_old_disk() {
    let mut rig = Rig::new(Acknowledge::Safe, 6);
    (0..40).for_each(|_| rig.change());
    let replaced = |rig: &Rig, old: &str, new: &str| rig.device.replacing().unwrap().begin_replacing(old, new);
    assert_eq!(replaced(&rig, "third", "new").unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(replaced(&rig, "big", "nothing").unwrap_err().kind, ErrorKind::Invalid);
    // It is too small.
    assert_eq!(replaced(&rig, "big", "other").unwrap_err().kind, ErrorKind::Invalid);
    assert_eq!(rig.device.replacing().unwrap().replace_state(), ReplaceState::Idle);
    replaced(&rig, "big", "new").unwrap();
    rig.device.replacing().unwrap().replace_some().unwrap();
    rig.device.replacing().unwrap().stop_replacing();
    assert_eq!(replaced_error(&rig.device), ErrorKind::Invalid);
    replaced(&rig, "big", "new").unwrap();
    rig.device.replacing().unwrap().replace_some().unwrap();
    rig.shelf.named("new").unwrap().unplug();
    rig.change();
    let mut outcome = Ok(());
    for _ in 0..10 {
        rig.change();
        outcome = outcome.and_then(|()| rig.device.replacing().unwrap().replace_some());
    }
    assert_eq!(outcome.unwrap_err().kind, ErrorKind::Media);
    assert_eq!(rig.device.replacing().unwrap().replace_state(), ReplaceState::Idle);
    assert!(rig.device.health().conditions.is_empty(), "{:?}", rig.device.health());
    rig.expect("fast", ["big", "second"], "failed");
    // A volume that shrinks keeps its disks until that is over.
    rig.device.begin_shrinking(18 * MIB).unwrap();
    assert_eq!(replaced(&rig, "second", "other").unwrap_err().kind, ErrorKind::Invalid);
    rig.device.stop_shrinking().unwrap();
    replaced(&rig, "second", "other").unwrap();
}
