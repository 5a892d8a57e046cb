//! Damaged memories: what was promised comes back whole, or whoever opens the device hears that it
//! does not.

use crate::common::Scm;
use onode_base::{ErrorKind, Prng};
use onode_media::sim::{PmemLatency, PmemOptions, SimPmem, Survival};
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Severity, Transaction};
use onode_scm::{MountOptions, ScmDevice};
use std::collections::BTreeMap;

const NAME: AttributeKind = AttributeKind(3);
const CHUNK: u32 = 4 << 10;
const LENGTH: u64 = 1 << 20;
const PAGE: usize = 4096;

/// All that a device has: sizes, content and attributes.
type State = BTreeMap<u64, (Vec<u8>, Vec<(AttributeKey, Vec<u8>)>)>;

fn state_of(device: &dyn ObjectDevice) -> State {
    let mut state = State::new();
    for object in device.list(ObjectId(0), usize::MAX).expect("readable") {
        let mut content = vec![0; device.stat(object).expect("it is there").size as usize];
        device.read(object, 0, &mut content).expect("readable");
        let from = AttributeKey::new(AttributeKind(0), 0);
        let attributes = device.attributes(object, from, usize::MAX).expect("readable");
        state.insert(object.0, (content, attributes));
    }
    state
}

/// A device with a directory of files, some of which are gone or have another name; each change is
/// durable if `synced`.
fn filled(files: u64, synced: bool) -> Scm {
    let scm = Scm::with_length(CHUNK, LENGTH);
    let durability = if synced { Durability::Durable } else { Durability::Buffered };
    let commit = |transaction| scm.device.commit(transaction, durability).expect("room");
    let directory = scm.device.reserve_ids(1).expect("ids");
    let mut making = Transaction::new();
    making.create(directory, Hints::default());
    commit(making);
    let mut objects = Vec::new();
    for number in 0..files {
        let object = scm.device.reserve_ids(1).expect("ids");
        let mut making = Transaction::new();
        making.create(object, Hints::default()).set_attribute(directory, AttributeKey::new(NAME, number), vec![9; 12]);
        commit(making);
        let mut writing = Transaction::new();
        writing.write(object, 0, vec![number as u8; 100 + number as usize]);
        commit(writing);
        objects.push(object);
    }
    for number in (0..files).step_by(3) {
        let mut removal = Transaction::new();
        removal.remove_attribute(directory, AttributeKey::new(NAME, number)).remove(objects[number as usize]);
        commit(removal);
    }
    scm
}

fn mount(image: &[u8], read_only: bool, accept_loss: bool) -> onode_object::Result<(SimMemory, Device)> {
    let options = PmemOptions { latency: PmemLatency::NONE, ..PmemOptions::default() };
    let memory = std::sync::Arc::new(SimPmem::from_image(image.to_vec(), options));
    let options = MountOptions { read_only, accept_loss, ..MountOptions::default() };
    ScmDevice::mount(std::sync::Arc::clone(&memory), &options).map(|device| (memory, device))
}

type SimMemory = std::sync::Arc<SimPmem>;
type Device = ScmDevice<SimMemory>;

/// What became of a damaged image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// All is there.
    Same,
    /// All is there, and damage was told.
    Told,
    /// It is not opened without consent, or not at all.
    Refused,
    /// Content is other than it was; content of files in use has no checksums.
    Content,
}

/// Opens an image that was damaged, with and without consent. All that was there is there, or it is
/// refused; with consent it can be used, and opened again without any.
fn verdict(image: &[u8], wanted: &State, what: &str) -> Verdict {
    let names = |state: &State| -> Vec<_> {
        state.iter().map(|(object, (content, attributes))| (*object, content.len(), attributes.clone())).collect()
    };
    let verdict = match mount(image, true, false) {
        Ok((_, device)) => {
            device.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
            let found = state_of(&device);
            assert!(names(&found) == names(wanted), "{what}: silently another state");
            let told = !device.health().conditions.is_empty();
            match found == *wanted {
                true if told => Verdict::Told,
                true => Verdict::Same,
                false => Verdict::Content,
            }
        }
        Err(error) => {
            let kinds = [ErrorKind::Loss, ErrorKind::Corrupt, ErrorKind::Invalid];
            assert!(kinds.contains(&error.kind) && !error.detail.is_empty(), "{what}: {error}");
            Verdict::Refused
        }
    };
    if let Ok((memory, device)) = mount(image, false, true) {
        device.verify().unwrap_or_else(|error| panic!("{what}, with consent: {error}"));
        let object = device.reserve_ids(1).expect("ids");
        let mut making = Transaction::new();
        making.create(object, Hints::default()).write(object, 0, b"afterwards".to_vec());
        device.commit(making, Durability::Durable).unwrap_or_else(|error| panic!("{what}, with consent: {error}"));
        let found = state_of(&device);
        device.close().expect("it can be closed");
        drop(device);
        let again = mount(&memory.durable_image(), false, false);
        let (_, device) = again.unwrap_or_else(|error| panic!("{what}, after consent: {error}"));
        assert!(state_of(&device) == found, "{what}: what was consented to changed");
        device.verify().unwrap_or_else(|error| panic!("{what}, after consent: {error}"));
    }
    verdict
}

/// Images of a device that was closed, was cut after its last change, and in whose session
/// everything was synced.
fn images() -> Vec<(&'static str, Vec<u8>, State)> {
    let mut images = Vec::new();
    for (name, files, synced, closed) in
        [("closed", 40, false, true), ("synced, closed", 40, true, true), ("synced, killed", 40, true, false)]
    {
        let scm = filled(files, synced);
        let state = state_of(&scm.device);
        if closed {
            scm.device.close().expect("it can be closed");
        }
        let survival = Survival::Everything;
        images.push((name, scm.memory.crash_image(survival), state));
    }
    images
}

/// One flipped bit in the log of a device that was closed in order brought an older state back, and
/// nobody was told.
#[test]
fn a_flipped_bit_never_brings_an_older_state_back() {
    let mut prng = Prng::new(18);
    let mut verdicts = BTreeMap::new();
    for (name, image, state) in images() {
        let lines: Vec<usize> = (0..image.len()).step_by(64).filter(|at| image[*at..*at + 64] != [0; 64]).collect();
        for line in lines {
            let at = line + prng.below(64) as usize;
            let mut damaged = image.clone();
            damaged[at] ^= 1 << prng.below(8);
            *verdicts.entry(verdict(&damaged, &state, &format!("{name}, a bit of byte {at}"))).or_insert(0) += 1;
        }
    }
    // Each must have happened, or this shows nothing.
    assert!(verdicts.get(&Verdict::Refused).is_some_and(|count| *count > 50), "{verdicts:?}");
    assert!(verdicts.get(&Verdict::Same).is_some_and(|count| *count > 50), "{verdicts:?}");
}

/// Pages of zeros, of noise and of what was there before, one at a time.
#[test]
fn a_lost_page_never_brings_an_older_state_back() {
    let mut prng = Prng::new(19);
    for (name, image, state) in images() {
        for page in (0..image.len()).step_by(PAGE) {
            if image[page..page + PAGE].iter().all(|byte| *byte == 0) {
                continue;
            }
            let mut damaged = image.clone();
            damaged[page..page + PAGE].fill(0);
            verdict(&damaged, &state, &format!("{name}, zeros at {page}"));
            prng.fill(&mut damaged[page..page + PAGE]);
            verdict(&damaged, &state, &format!("{name}, noise at {page}"));
            let half = PAGE / 2;
            damaged[page..page + half].copy_from_slice(&image[page..page + half]);
            verdict(&damaged, &state, &format!("{name}, torn at {page}"));
        }
    }
}

/// Both superblocks are at the start, and what lies there is what is overwritten by mistake.
#[test]
fn a_lost_start_is_not_the_end_of_a_device() {
    for (name, image, state) in images() {
        let mut damaged = image;
        damaged[..64 << 10].fill(0);
        assert_eq!(verdict(&damaged, &state, name), Verdict::Told, "{name}");
    }
}

/// A mount that found one superblock damaged wrote over the sound one first, and over the copy at
/// the same time: a cut there left none of the three.
#[test]
fn a_cut_while_damaged_superblocks_are_written_again_leaves_a_sound_one() {
    let scm = filled(3, true);
    scm.device.close().expect("it can be closed");
    let image = scm.memory.durable_image();
    let options = PmemOptions { latency: PmemLatency::NONE, ..PmemOptions::default() };
    let mut cuts = 0;
    for damaged in [&[0][..], &[PAGE], &[0, PAGE]] {
        let mut image = image.clone();
        damaged.iter().for_each(|&at| image[at + 20] ^= 1);
        for cut in 0.. {
            let memory = std::sync::Arc::new(SimPmem::from_image(image.clone(), options));
            memory.cut_after(cut);
            let _ = ScmDevice::mount(std::sync::Arc::clone(&memory), &MountOptions::default());
            for lines in 0..16 {
                let left = memory.crash_image(Survival::Lines(lines));
                let opened = mount(&left, false, true).map(|_| ());
                opened.unwrap_or_else(|error| panic!("{damaged:?}, cut {cut}, lines {lines:b}: {error}"));
            }
            cuts += 1;
            // The superblocks are written before the index.
            if !memory.is_cut() || cut > 60 {
                break;
            }
        }
    }
    assert!(cuts > 60, "only {cuts} cuts");
}

/// A device whose log was damaged in the middle could not be opened at all.
#[test]
fn a_damaged_record_costs_what_it_says_and_no_more() {
    let scm = filled(60, true);
    let wanted = state_of(&scm.device);
    scm.device.close().expect("it can be closed");
    let mut image = scm.memory.durable_image();
    // The value of a name.
    let at = image.windows(12).rposition(|bytes| bytes == [9; 12]).expect("a name is in the log");
    image[at + 5] ^= 4;
    let error = mount(&image, false, false).err().expect("something is lost");
    assert_eq!(error.kind, ErrorKind::Loss);
    let (_, device) = mount(&image, false, true).expect("the rest is there");
    let found = state_of(&device);
    let there = wanted.iter().filter(|(object, of)| found.get(object) == Some(of)).count();
    assert!(there + 3 >= wanted.len(), "{there} of {} objects are as they were", wanted.len());
    let health = device.health();
    let lost: Vec<_> = health.conditions.iter().filter(|condition| condition.code == "loss-accepted").collect();
    assert!(matches!(lost[..], [one] if one.severity == Severity::Notice && !one.remedy.is_empty()), "{health:?}");
}

/// A segment of the log that lies in the place of a block, or of the allocator's tables, and these
/// in its place: the device could not be opened at all, not even with consent.
#[test]
fn a_segment_in_the_place_of_something_else_is_told_and_consented_to() {
    let mut refused = 0;
    for (name, image, state) in images() {
        let chunks: Vec<usize> = (64 << 10..image.len() - PAGE).step_by(PAGE).collect();
        let is_used = |at: &&usize| image[**at..**at + PAGE].iter().any(|byte| *byte != 0);
        let segments: Vec<usize> = chunks.iter().filter(|at| image[**at..].starts_with(b"OLOG")).copied().collect();
        assert!(segments.len() > 1, "{name}: {} segments", segments.len());
        for &segment in &segments {
            for &other in chunks.iter().filter(is_used).filter(|other| **other != segment) {
                for length in [PAGE / 2, PAGE] {
                    let what = format!("{name}, {length} bytes at {segment} and {other} are swapped");
                    let mut damaged = image.clone();
                    damaged[segment..segment + length].copy_from_slice(&image[other..other + length]);
                    damaged[other..other + length].copy_from_slice(&image[segment..segment + length]);
                    refused += u64::from(verdict(&damaged, &state, &what) == Verdict::Refused);
                    mount(&damaged, false, true).unwrap_or_else(|error| panic!("{what}, with consent: {error}"));
                }
            }
        }
    }
    assert!(refused > 100, "{refused} were refused without consent");
}
