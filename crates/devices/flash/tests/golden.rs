//! The format does not change by accident: an image of every format version opens, and the same
//! operations make the same bytes.
//!
//! An image is a list of its programmed pages, zero bytes packed: see [`pack`]. After a deliberate
//! change of the format, raise its version and let `ONODE_WRITE_GOLDEN=1` write the new image.

use crate::common::Shared;
use onode_base::{Prng, varint};
use onode_flash::check::{CheckOptions, check};
use onode_flash::format::{FORMAT_MAJOR, FORMAT_MINOR, FORMAT_MINOR_PARITY, FORMAT_MINOR_PLAIN};
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::{Geometry, IoTag, Nand, PageAddress, SimNand, SimOptions};
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, ObjectKind, Transaction};
use std::path::PathBuf;

const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 0, pages_per_block: 8, blocks: 64, chips: 1 };
const ATTRIBUTE: AttributeKey = AttributeKey::new(AttributeKind::INODE, 0);

/// The versions that are written now: minor number, blocks of a segment, pages of parity, and those
/// of objects that wish nothing if they choose.
const WRITTEN: [(u16, u16, u8, Option<u8>); 3] =
    [(FORMAT_MINOR_PLAIN, 2, 0, None), (FORMAT_MINOR_PARITY, 3, 1, None), (FORMAT_MINOR, 4, 2, Some(0))];

/// The chip of an image: with parity segments are larger.
fn shape(minor: u16) -> Geometry {
    let blocks = match minor {
        ..=FORMAT_MINOR_PLAIN => SHAPE.blocks,
        FORMAT_MINOR_PARITY => 128,
        _ => 256,
    };
    Geometry { blocks, ..SHAPE }
}

fn golden_path(minor: u16) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v{FORMAT_MAJOR}.{minor}.pages"))
}

fn content(object: u64) -> Vec<u8> {
    let mut bytes = vec![0; 40 + object as usize % 7 * 150];
    // Text compresses by itself: one random byte in eight.
    let mut prng = Prng::new(object);
    for byte in bytes.iter_mut().step_by(8) {
        *byte = prng.next_u64() as u8;
    }
    bytes
}

/// The volume of the golden image: a closed session, then one that ended in a crash.
fn make(minor: u16, blocks_per_segment: u16, parity_pages: u8, chosen_parity: Option<u8>) -> SimNand {
    let nand = Shared::new(shape(minor));
    let options = FormatOptions {
        uuid: *b"golden flash v1 ",
        blocks_per_segment: Some(blocks_per_segment),
        parity_pages,
        chosen_parity,
        ..FormatOptions::default()
    };
    let device = FlashDevice::format(nand.clone(), &options, &MountOptions::default()).unwrap();
    for object in 64..72 {
        assert_eq!(device.reserve_ids(1).unwrap(), ObjectId(object));
        let mut transaction = Transaction::new();
        let parity_pages = if chosen_parity.is_some() { object as u8 % 3 } else { 0 };
        let hints = Hints { kind: ObjectKind::Data, expected_size: 900, parity_pages, ..Hints::default() };
        transaction.create(ObjectId(object), hints).write(ObjectId(object), 10, content(object));
        transaction.set_attribute(ObjectId(object), ATTRIBUTE, vec![object as u8; 30]);
        device.commit(transaction, Durability::Durable).unwrap();
    }
    device.close().unwrap();
    drop(device);
    let device = FlashDevice::mount(nand.clone(), &MountOptions::default()).unwrap();
    let mut transaction = Transaction::new();
    transaction.remove(ObjectId(65)).truncate(ObjectId(66), 100).punch(ObjectId(67), 20, 30);
    transaction.remove_attribute(ObjectId(68), ATTRIBUTE);
    device.commit(transaction, Durability::Durable).unwrap();
    drop(device);
    nand.with(|nand| nand.clone())
}

fn expect_content(device: &FlashDevice) {
    let objects = device.list(ObjectId(0), 100).unwrap();
    assert!(objects.iter().copied().eq([64, 66, 67, 68, 69, 70, 71].map(ObjectId)));
    for object in objects {
        let mut expected = vec![0; 10];
        expected.extend(content(object.0));
        if object.0 == 66 {
            expected.resize(100, 0);
        } else if object.0 == 67 {
            expected[20..50].fill(0);
        }
        let mut found = vec![0; 4096];
        let length = device.read(object, 0, &mut found).unwrap();
        assert_eq!(found[..length], expected, "{object}");
        let value = device.attribute(object, ATTRIBUTE).unwrap();
        assert_eq!(value, (object.0 != 68).then(|| vec![object.0 as u8; 30]), "{object}");
        assert_eq!(device.stat(object).unwrap().hints.kind, ObjectKind::Data);
    }
}

/// Programmed pages: distance to the page before, then runs of (zeros, bytes) up to the page's end.
fn pack(nand: &mut SimNand) -> Vec<u8> {
    let mut out = Vec::new();
    let mut last = 0;
    for page in 0..nand.geometry().pages() {
        let mut data = vec![0; SHAPE.page_bytes as usize];
        nand.read(PageAddress(page), &mut data, &mut [], IoTag::Check).unwrap();
        if data.iter().all(|&byte| byte == 0xff) {
            continue;
        }
        varint::put(&mut out, page - last);
        last = page;
        let mut rest = &data[..];
        while !rest.is_empty() {
            let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
            rest = &rest[zeros..];
            // Single zeros stay within a run of bytes.
            let bytes = rest.windows(3).position(|three| three == [0; 3]).unwrap_or(rest.len());
            varint::put(&mut out, zeros as u64);
            varint::put_bytes(&mut out, &rest[..bytes]);
            rest = &rest[bytes..];
        }
    }
    out
}

fn unpack(mut input: &[u8], shape: Geometry) -> SimNand {
    let mut nand = SimNand::new(shape, SimOptions::default()).unwrap();
    let mut page = 0;
    while !input.is_empty() {
        page += varint::take(&mut input).unwrap();
        let mut data = Vec::new();
        while data.len() < SHAPE.page_bytes as usize {
            data.resize(data.len() + varint::take(&mut input).unwrap() as usize, 0);
            data.extend_from_slice(varint::take_bytes(&mut input).unwrap());
        }
        nand.program(PageAddress(page), &data, &[], IoTag::Check).unwrap();
    }
    nand
}

#[test]
fn packing_loses_nothing() {
    let mut nand = make(FORMAT_MINOR_PLAIN, 2, 0, None);
    let packed = pack(&mut nand);
    assert_eq!(pack(&mut unpack(&packed, SHAPE)), packed);
}

#[test]
fn the_same_operations_make_the_same_bytes() {
    for (minor, blocks_per_segment, parity_pages, chosen_parity) in WRITTEN {
        let packed = pack(&mut make(minor, blocks_per_segment, parity_pages, chosen_parity));
        assert!(packed.len() < 13_000, "{} bytes are too many for a golden image", packed.len());
        let path = golden_path(minor);
        if std::env::var_os("ONODE_WRITE_GOLDEN").is_some() {
            std::fs::write(&path, &packed).unwrap();
        }
        let golden = std::fs::read(&path).unwrap_or_else(|error| {
            panic!("format {FORMAT_MAJOR}.{minor} has no golden image at {}: {error}", path.display())
        });
        assert!(packed == golden, "the same operations make other bytes: format {minor} or its use has changed");
    }
}

#[test]
fn every_golden_image_opens_takes_changes_and_opens_again() {
    let mut images = 0;
    for entry in std::fs::read_dir(golden_path(FORMAT_MINOR).parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let minor = path.file_stem().unwrap().to_str().unwrap().rsplit('.').next().unwrap().parse().unwrap();
        let packed = std::fs::read(path).unwrap();
        let nand = unpack(&packed, shape(minor));
        let report = check(&mut nand.clone(), &CheckOptions::default(), &mut |_, _| ());
        assert_eq!(report.findings, []);
        let shared = Shared::holding(nand);
        let device = FlashDevice::mount(shared.clone(), &MountOptions::default()).unwrap();
        expect_content(&device);
        let object = device.reserve_ids(1).unwrap();
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, vec![9; 3000]);
        device.commit(transaction, Durability::Durable).unwrap();
        device.close().unwrap();
        drop(device);
        let report = check(&mut shared.with(|nand| nand.clone()), &CheckOptions::default(), &mut |_, _| ());
        assert_eq!((report.findings, report.objects), (Vec::new(), 8));
        let device = FlashDevice::mount(shared, &MountOptions::default()).unwrap();
        let mut found = vec![0; 4000];
        assert_eq!(device.read(object, 0, &mut found).unwrap(), 3000);
        let mut transaction = Transaction::new();
        transaction.remove(object);
        device.commit(transaction, Durability::Durable).unwrap();
        expect_content(&device);
        images += 1;
    }
    assert!(images > 0);
}
