//! Volumes of which it is known what they hold, for tests in which their size changes.

use super::Shared;
use onode_base::ErrorKind;
use onode_flash::{CheckOptions, FlashDevice, FormatOptions, MountOptions, check};
use onode_media::Geometry;
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Transaction};
use std::collections::BTreeMap;

/// What each object must hold.
pub type Held = BTreeMap<ObjectId, Vec<u8>>;

/// A volume in the first blocks of a larger medium.
pub fn volume(shape: Geometry, medium: u32, format: &FormatOptions) -> (Shared, FlashDevice) {
    let nand = Shared::new(Geometry { blocks: medium, ..shape });
    let device = FlashDevice::format(nand.clone(), format, &MountOptions::default()).unwrap();
    (nand, device)
}

/// Makes objects until there is no room.
pub fn fill(device: &FlashDevice, held: &mut Held) -> usize {
    for made in 0.. {
        let object = device.reserve_ids(1).unwrap();
        let content = vec![object.0 as u8; 1 + (object.0 as usize * 997) % 9000];
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, content.clone());
        match device.commit(transaction, Durability::Buffered) {
            Ok(()) => held.insert(object, content),
            Err(error) if error.kind == ErrorKind::NoSpace => return made,
            Err(error) => panic!("{error}"),
        };
    }
    unreachable!()
}

/// Every object holds what it must.
pub fn verify(device: &FlashDevice, held: &Held) {
    assert_eq!(device.space().objects, held.len() as u64);
    for (&object, content) in held {
        let mut bytes = vec![0; content.len() + 1];
        assert_eq!(device.read(object, 0, &mut bytes), Ok(content.len()), "{object}");
        assert!(bytes[..content.len()] == content[..], "{object}");
    }
}

/// Mounts it.
pub fn mount(nand: &Shared) -> FlashDevice {
    FlashDevice::mount(nand.clone(), &MountOptions::default()).unwrap()
}

/// The check finds nothing.
pub fn is_sound(nand: &Shared) {
    let report = check(&mut nand.clone(), &CheckOptions::default(), &mut |_, _| {});
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

/// It is closed, the check finds nothing, and the next mount shows everything.
pub fn closes_whole(device: &FlashDevice, nand: &Shared, held: &Held) {
    device.close().unwrap();
    is_sound(nand);
    verify(&mount(nand), held);
}
