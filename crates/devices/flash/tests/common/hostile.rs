//! From arbitrary bytes to an image whose checksums are right again, and what must survive it.

use super::Shared;
use super::patched::Patched;
use onode_base::checksum::{crc32c, crc32c_append};
use onode_flash::check::{CheckOptions, check};
use onode_flash::format::Superblock;
use onode_flash::{FlashDevice, FormatOptions, MountOptions, RepairOptions, dump, repair};
use onode_media::{Geometry, PageAddress, SimNand};
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Transaction};

/// A small volume with every kind of page.
pub fn volume(shape: Geometry) -> Shared {
    volume_of(shape, &FormatOptions::default())
}

/// The same, made in this way.
pub fn volume_of(shape: Geometry, format: &FormatOptions) -> Shared {
    let nand = Shared::new(shape);
    let device = FlashDevice::format(nand.clone(), format, &MountOptions::default()).unwrap();
    for round in 0..40u64 {
        let object = device.reserve_ids(1).unwrap();
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, vec![round as u8; 900]);
        transaction.set_attribute(object, AttributeKey::new(AttributeKind(40), round), vec![2; 200]);
        device.commit(transaction, Durability::Durable).unwrap();
        if round == 30 {
            device.close().unwrap();
        }
    }
    drop(device);
    nand
}

/// Applies `input` as patches of three bytes each - which page, where in it, what - and sets all
/// checksums right that stand in one page: trailer, and superblock references to patched nodes.
fn disturb(sound: &SimNand, input: &[u8]) -> Patched {
    let shape = onode_media::Nand::geometry(sound);
    let mut medium = Patched::new(sound);
    let pages = medium.programmed();
    for patch in input.chunks_exact(4) {
        let [page, low, high, byte] = *patch else { continue };
        // Superblocks, the newest pages and anything else, each with a fair share.
        let at = match page % 4 {
            0 => pages[usize::from(page / 4) % 8],
            1 => pages[pages.len() - 1 - usize::from(page / 4) % 12],
            _ => pages[usize::from(page / 4) * 7 % pages.len()],
        };
        let (mut data, spare) = medium.page(at);
        let offset = if high % 3 == 0 { usize::from(low) } else { usize::from(low) + usize::from(high) * 256 };
        let length = data.len();
        data[offset % length] = byte;
        medium.patch(at, (data, spare));
        reseal(&mut medium, shape, at);
    }
    mend_references(&mut medium, shape);
    medium
}

fn payload_bytes(shape: Geometry) -> usize {
    if shape.spare_bytes >= 16 { shape.page_bytes as usize } else { shape.page_bytes as usize - 16 }
}

/// Sets the trailer's checksum right.
fn reseal(medium: &mut Patched, shape: Geometry, at: PageAddress) {
    let seed = crc32c(&FormatOptions::default().uuid);
    let (mut data, mut spare) = medium.page(at);
    let payload = payload_bytes(shape);
    let trailer = if shape.spare_bytes >= 16 { spare.clone() } else { data[payload..].to_vec() };
    let sum = crc32c_append(seed, &at.0.to_le_bytes());
    let sum = crc32c_append(crc32c_append(sum, &trailer[4..16]), &data[..payload]);
    // What of the payload lies behind the trailer in the spare area.
    let more = trailer.get(16..16 + usize::from(trailer[14])).unwrap_or_default();
    let sum = crc32c_append(sum, more).to_le_bytes();
    if shape.spare_bytes >= 16 {
        spare[..4].copy_from_slice(&sum);
    } else {
        data[payload..payload + 4].copy_from_slice(&sum);
    }
    medium.patch(at, (data, spare));
}

/// Sets the checksums right by which superblocks refer to the root and to the segment table.
fn mend_references(medium: &mut Patched, shape: Geometry) {
    let payload = payload_bytes(shape) as u64;
    let blocks = if shape.blocks >= 64 { 4 } else { 2 };
    for page in (0..blocks * u64::from(shape.pages_per_block)).map(PageAddress) {
        let (mut data, spare) = medium.page(page);
        if data[..8] != onode_flash::format::SUPERBLOCK_MAGIC {
            continue;
        }
        let root = core::mem::offset_of!(Superblock, root);
        let after = size_of::<Superblock>();
        for at in [root, after, after + 16] {
            let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
            let (location, length) = (number(&data[at..at + 8]), number(&data[at + 8..at + 12]));
            let mut bytes = Vec::new();
            // A segment of such a small medium is one block, and segments follow each other.
            while (bytes.len() as u64) < length.min(8192) {
                let next = location.saturating_add(bytes.len() as u64);
                let address = next / payload + blocks * u64::from(shape.pages_per_block);
                if address >= shape.pages() {
                    break;
                }
                let (content, _) = medium.page(PageAddress(address));
                let from = (next % payload) as usize;
                let count = (length as usize - bytes.len()).min(payload as usize - from);
                bytes.extend_from_slice(&content[from..from + count]);
            }
            data[at + 12..at + 16].copy_from_slice(&crc32c(&bytes).to_le_bytes());
        }
        medium.patch(page, (data, spare));
        reseal(medium, shape, page);
    }
}

/// Does everything that can be done with the image that `input` makes of `sound`.
pub fn survive(sound: &SimNand, input: &[u8]) {
    let medium = disturb(sound, input);
    check(&mut medium.clone(), &CheckOptions { data: true, findings: 100 }, &mut |_, _| ());
    for read_only in [true, false] {
        let options = MountOptions { read_only, accept_loss: true, ..MountOptions::default() };
        let Ok(device) = FlashDevice::mount(medium.clone(), &options) else { continue };
        use_it(&device);
    }
    let _ = dump::superblocks(&mut medium.clone());
    let _ = dump::tree(&mut medium.clone(), None);
    let _ = dump::onode(&mut medium.clone(), ObjectId(70));
    for segment in 0..3 {
        let _ = dump::segment(&mut medium.clone(), segment);
    }
    for drop_damaged in [false, true] {
        let _ = repair(medium.clone(), &RepairOptions { drop_damaged, ..RepairOptions::default() });
    }
}

fn use_it(device: &FlashDevice) {
    let mut buffer = vec![0; 4096];
    for object in device.list(ObjectId(0), 200).unwrap_or_default() {
        let size = device.stat(object).map_or(0, |stat| stat.size);
        for offset in [0, size.saturating_sub(2000)] {
            let _ = device.read(object, offset, &mut buffer);
        }
        let _ = device.attributes(object, AttributeKey::new(AttributeKind(0), 0), 10);
        let _ = device.extents(object, 0, 10);
    }
    let objects = [ObjectId(64), ObjectId(80), ObjectId(100)];
    for object in objects {
        let mut transaction = Transaction::new();
        transaction.write(object, 100, vec![8; 1500]).truncate(object, 700);
        let _ = device.commit(transaction, Durability::Durable);
        let mut transaction = Transaction::new();
        transaction.remove(object);
        let _ = device.commit(transaction, Durability::Durable);
    }
    let _ = device.maintain(4);
    let _ = device.space();
    let _ = device.close();
}
