//! Volumes whose tree has a damaged node, in every block in turn: the rest is there, agrees with
//! itself and can be changed.

use crate::common::Alone;
use onode_base::Prng;
use onode_media::sim::disk::SimDisk;
use onode_media::{BlockDev, IoTag};
use onode_object::powers::Scrub;
use onode_object::{AttributeKey, AttributeKind, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, Transaction};
use onode_tier::{MountOptions, TierDevice};

const BLOCK: u64 = 4096;
const OBJECTS: u64 = 150;
const ATTRIBUTE: AttributeKey = AttributeKey::new(AttributeKind(40), 7);

fn object(number: u64) -> ObjectId {
    ObjectId(10 + number)
}

fn content(number: u64, time: u64) -> Vec<u8> {
    let mut bytes = vec![0; [0, 300, 900, 5000, 9000][number as usize % 5]];
    Prng::new(number ^ time << 32).fill(&mut bytes);
    bytes
}

/// A volume whose objects are all in a checkpoint; with `goes_on` the log has changes of a third of
/// them, and it was not closed.
fn disk(goes_on: bool) -> SimDisk {
    let alone = Alone::holding(4 << 20, 256 << 10);
    let device = alone.device.as_ref().unwrap();
    device.reserve_ids(object(OBJECTS).0).unwrap();
    for number in 0..OBJECTS {
        let mut transaction = Transaction::new();
        transaction.create(object(number), Hints::default()).write(object(number), 0, content(number, 0));
        transaction.set_attribute(object(number), ATTRIBUTE, vec![number as u8; 90]);
        device.commit(transaction, Durability::Buffered).unwrap();
    }
    device.close().unwrap();
    for number in (0..OBJECTS).step_by(3).filter(|_| goes_on) {
        let mut transaction = Transaction::new();
        // Into the middle of a block, which has to be read for that.
        transaction.write(object(number), 100, content(number, 1)).set_attribute(
            object(number),
            ATTRIBUTE,
            vec![1; 90],
        );
        if number.is_multiple_of(2) {
            transaction.truncate(object(number), 150);
        }
        device.commit(transaction, Durability::Durable).unwrap();
    }
    let left = alone.big.content().after_cut(|_, _| true);
    SimDisk::from_content("big", alone.big.bytes(), left)
}

fn copy(disk: &SimDisk) -> SimDisk {
    SimDisk::from_content(disk.name(), disk.bytes(), disk.content().settled())
}

fn mount(disk: &SimDisk, drop_damaged: bool) -> onode_object::Result<TierDevice> {
    let options = MountOptions { drop_damaged, ..MountOptions::default() };
    TierDevice::mount(Box::new(disk.clone()), None, &options)
}

/// The blocks in which nodes lie, or content does.
fn blocks(disk: &SimDisk, nodes: bool) -> Vec<u64> {
    let read = |block: u64| {
        let mut bytes = vec![0; BLOCK as usize];
        disk.clone().read_at(block * BLOCK, &mut bytes, IoTag::Check).unwrap();
        bytes
    };
    let is_content = |bytes: &[u8]| {
        (0..OBJECTS).map(|number| content(number, 0)).any(|all| all.chunks(4096).any(|part| bytes.starts_with(part)))
    };
    (0..disk.bytes() / BLOCK)
        .filter(|block| {
            let bytes = read(*block);
            if nodes { bytes.starts_with(b"TNOD") } else { bytes[..64] != [0; 64] && is_content(&bytes) }
        })
        .collect()
}

fn spoil(disk: &mut SimDisk, block: u64, way: u64) {
    match way {
        0 => disk.make_unreadable(block * BLOCK),
        _ => {
            let mut bytes = vec![0; BLOCK as usize];
            disk.read_at(block * BLOCK, &mut bytes, IoTag::Check).unwrap();
            bytes[200] ^= 1;
            disk.write_at(block * BLOCK, &bytes, IoTag::Check).unwrap();
            disk.flush().unwrap();
        }
    }
}

/// What an object held at the checkpoint and after each change since.
fn states(number: u64, goes_on: bool) -> Vec<Vec<u8>> {
    let mut states = vec![content(number, 0)];
    let change = content(number, 1);
    if goes_on && number.is_multiple_of(3) {
        let mut now = content(number, 0);
        if !change.is_empty() {
            now.resize(now.len().max(100 + change.len()), 0);
            now[100..100 + change.len()].copy_from_slice(&change);
        }
        states.push(now.clone());
        if number.is_multiple_of(2) {
            now.resize(150, 0);
            states.push(now);
        }
    }
    states
}

/// Whether these bytes are those of an object where they are not zeros.
fn is_part_of(found: &[u8], number: u64, goes_on: bool) -> bool {
    let states = states(number, goes_on);
    let fits = |at: usize, state: &Vec<u8>| found[at] == 0 || state.get(at) == Some(&found[at]);
    // A block that was zeroed may take away what a change before it had put there.
    (0..found.len()).all(|at| states.iter().any(|state| fits(at, state)))
}

/// Looks at a volume on `disk` that was mounted with leave: (objects there, whether anything was
/// said to be lost).
fn look(disk: &SimDisk, device: TierDevice, goes_on: bool, what: &str) -> (usize, bool) {
    let salvaged = device.salvaged();
    // What is damaged in content is the scrub's to tell.
    let mut damaged = Scrub::scrub(&device, ObjectId(0), 1000).unwrap().damaged;
    damaged.retain(|error| !error.detail.contains("checksum") && !error.detail.contains("cannot be read"));
    assert_eq!(damaged, [], "{what}");
    device.verify().unwrap_or_else(|error| panic!("{what}: {error}; {salvaged:?}"));
    device.close().unwrap();
    drop(device);
    let device = mount(disk, false).unwrap_or_else(|error| panic!("{what}, mounted again: {error}"));
    device.verify().unwrap_or_else(|error| panic!("{what}, mounted again: {error}"));
    assert_eq!(device.salvaged().actions, Vec::<String>::new());
    let there = device.list(ObjectId(0), 1000).unwrap();
    for number in 0..OBJECTS {
        let mut found = vec![0; 20_000];
        match device.read(object(number), 0, &mut found) {
            Ok(length) => assert!(is_part_of(&found[..length], number, goes_on), "{what}: {}", object(number)),
            Err(error) => assert!([ErrorKind::NotFound, ErrorKind::Corrupt].contains(&error.kind), "{what}: {error}"),
        }
    }
    // It goes on as a volume does.
    let id = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(id, Hints::default()).write(id, 0, vec![1; 70_000]);
    there.iter().take(20).for_each(|object| _ = transaction.remove(*object));
    device.commit(transaction, Durability::Durable).unwrap();
    device.close().unwrap();
    device.verify().unwrap_or_else(|error| panic!("{what}, after changes: {error}"));
    (there.len(), salvaged.is_loss)
}

#[test]
fn a_volume_goes_on_without_any_node_of_its_tree() {
    for goes_on in [false, true] {
        let sound = disk(goes_on);
        let nodes = blocks(&sound, true);
        assert!(nodes.len() > 8, "{} nodes", nodes.len());
        let (mut losses, mut roots, mut least) = (0, 0, OBJECTS as usize);
        for &block in &nodes {
            for way in 0..2 {
                let what = format!("node in block {block}, way {way}, goes on {goes_on}");
                let mut damaged = copy(&sound);
                spoil(&mut damaged, block, way);
                let device = match mount(&damaged, true) {
                    Ok(device) => device,
                    // The root of the tree: a disk that fails is left as it is.
                    Err(error) => {
                        assert_eq!((error.kind, way), (ErrorKind::Media, 0), "{what}");
                        roots += 1;
                        continue;
                    }
                };
                let (there, is_loss) = look(&damaged, device, goes_on, &what);
                assert!(is_loss || there == OBJECTS as usize, "{what}: {there} objects and nothing is said");
                losses += u64::from(is_loss);
                least = least.min(there);
            }
        }
        assert!(losses >= 8 && least == 0 && roots == 1, "{losses} losses, {least} objects at least, {roots} roots");
    }
}

/// A change in the log begins in the middle of a block whose content is damaged: the mount was
/// refused for ever.
#[test]
fn damaged_content_below_a_change_of_the_log_is_zeroed() {
    let sound = disk(true);
    let mut refused = 0;
    for block in blocks(&sound, false) {
        let mut damaged = copy(&sound);
        spoil(&mut damaged, block, 1);
        refused += u64::from(mount(&copy(&damaged), false).is_err());
        look(&damaged, mount(&damaged, true).unwrap(), true, &format!("content in block {block}"));
    }
    assert!(refused > 5, "{refused} mounts were refused");
}

#[test]
fn a_sound_volume_loses_nothing() {
    for goes_on in [false, true] {
        let sound = disk(goes_on);
        let device = mount(&sound, true).unwrap();
        assert_eq!(look(&sound, device, goes_on, "sound"), (OBJECTS as usize, false));
        assert_eq!(mount(&sound, true).unwrap().salvaged().actions, Vec::<String>::new());
    }
}
