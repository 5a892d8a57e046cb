//! Zones as erase blocks, on a device in memory that refuses what a real one refuses.

use super::*;
use crate::blockdev::BlockDev;

const ZONE: u64 = 4 << 20;
const CAPACITY: u64 = 3 << 20;
const PAGE: usize = 4096;
const PAGES: u64 = CAPACITY / PAGE as u64;

struct Device {
    bytes: Vec<u8>,
    zones: Vec<Zone>,
    most_active: u32,
    /// Writes that fail from now on.
    fails: bool,
}

impl Device {
    /// Two zones without order, then `count` with.
    fn new(count: u64) -> Self {
        let zone = |number: u64| Zone {
            start: number * ZONE,
            bytes: ZONE,
            capacity: if number < 2 { ZONE } else { CAPACITY },
            written: 0,
            condition: if number < 2 { ZoneCondition::Full } else { ZoneCondition::Empty },
            is_sequential: number >= 2,
        };
        let zones: Vec<Zone> = (0..count + 2).map(zone).collect();
        Self { bytes: vec![0x5a; zones.len() * ZONE as usize], zones, most_active: 10, fails: false }
    }

    fn at(&mut self, start: u64) -> &mut Zone {
        &mut self.zones[(start / ZONE) as usize]
    }

    fn active(&self) -> usize {
        self.zones.iter().filter(|zone| zone.condition == ZoneCondition::Active).count()
    }
}

impl BlockDev for Device {
    fn name(&self) -> &str {
        "zones"
    }
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&mut self, offset: u64, out: &mut [u8], _tag: IoTag) -> Result<()> {
        out.copy_from_slice(&self.bytes[offset as usize..][..out.len()]);
        Ok(())
    }
    fn write_at(&mut self, offset: u64, bytes: &[u8], _tag: IoTag) -> Result<()> {
        let limit = self.most_active as usize;
        let active = self.active();
        let fails = self.fails;
        let zone = self.at(offset);
        assert!(zone.is_sequential, "a zone without order was written");
        assert_eq!(offset, zone.start + zone.written, "not at the write pointer");
        let end = zone.written + bytes.len() as u64;
        assert!(end <= zone.capacity, "behind the capacity");
        if fails || matches!(zone.condition, ZoneCondition::Full | ZoneCondition::ReadOnly | ZoneCondition::Offline) {
            zone.condition = ZoneCondition::ReadOnly;
            return Err(Error::new(MediaErrorKind::ProgramFailed, "write"));
        }
        assert!(zone.condition == ZoneCondition::Active || active < limit, "too many zones are active");
        zone.written = end;
        zone.condition = if end == zone.capacity { ZoneCondition::Full } else { ZoneCondition::Active };
        self.bytes[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
    fn zero(&mut self, _: u64, _: u64) -> Result<()> {
        panic!("zones are not zeroed")
    }
    fn discard(&mut self, _: u64, _: u64) -> Result<()> {
        panic!("zones are not discarded")
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl ZonedStorage for Device {
    fn zones(&mut self) -> Result<Vec<Zone>> {
        Ok(self.zones.clone())
    }
    fn reset(&mut self, start: u64, bytes: u64) -> Result<()> {
        assert_eq!(bytes, ZONE);
        let zone = self.at(start);
        if matches!(zone.condition, ZoneCondition::ReadOnly | ZoneCondition::Offline) {
            return Err(Error::new(MediaErrorKind::EraseFailed, "zone"));
        }
        (zone.written, zone.condition) = (0, ZoneCondition::Empty);
        self.bytes[start as usize..][..ZONE as usize].fill(0);
        Ok(())
    }
    fn finish(&mut self, start: u64, bytes: u64) -> Result<()> {
        assert_eq!(bytes, ZONE);
        let zone = self.at(start);
        assert_eq!(zone.condition, ZoneCondition::Active);
        let rest = (start + zone.written) as usize..(start + zone.capacity) as usize;
        (zone.written, zone.condition) = (zone.capacity, ZoneCondition::Full);
        self.bytes[rest].fill(0);
        Ok(())
    }
    fn most_active(&self) -> Option<u32> {
        Some(self.most_active)
    }
}

fn made(count: u64) -> ZonedNand<Device> {
    ZonedNand::create_on(Device::new(count), None, [7; 16]).unwrap()
}

fn reopened(nand: ZonedNand<Device>) -> ZonedNand<Device> {
    ZonedNand::open_on(nand.into_storage(), OpenMode::ReadWrite).unwrap()
}

fn byte_of(nand: &mut dyn Nand, page: u64) -> u8 {
    let mut data = [1; PAGE];
    nand.read(PageAddress(page), &mut data, &mut [], IoTag::Data).unwrap();
    assert!(data.iter().all(|byte| *byte == data[0]), "page {page} is mixed");
    data[0]
}

fn put(nand: &mut dyn Nand, page: u64, byte: u8) -> Result<()> {
    nand.program(PageAddress(page), &[byte; PAGE], &[], IoTag::Data)
}

#[test]
fn a_zone_is_a_block_with_as_many_pages_as_it_takes() {
    let nand = made(20);
    let shape = nand.geometry();
    assert_eq!((shape.page_bytes, shape.pages_per_block, shape.blocks), (4096, 768, 19));
    let large = Device::new(20).zones.iter().map(|zone| Zone { capacity: 1 << 30, ..*zone }).collect::<Vec<_>>();
    let shape = geometry_of(&large[2..], None).unwrap();
    assert_eq!((shape.page_bytes, shape.pages_per_block), (32768, 32768));
    let few = ZonedNand::create_on(Device { most_active: 4, ..Device::new(20) }, None, [0; 16]);
    assert_eq!(few.map(drop).unwrap_err().kind, MediaErrorKind::OutOfRange);
    let small = ZonedNand::create_on(Device::new(4), None, [0; 16]);
    assert_eq!(small.map(drop).unwrap_err().kind, MediaErrorKind::OutOfRange);
}

#[test]
fn pages_are_written_in_order_and_erased_by_the_zone() {
    let mut nand = made(12);
    put(&mut nand, PAGES, 1).unwrap();
    put(&mut nand, PAGES + 3, 4).unwrap();
    assert_eq!(put(&mut nand, PAGES + 2, 3).unwrap_err().kind, MediaErrorKind::ProgramOrder);
    nand.program_run(PageAddress(PAGES + 4), &vec![5; 700 * PAGE], &[], IoTag::Data).unwrap();
    put(&mut nand, 2 * PAGES, 0).unwrap();
    assert_eq!(byte_of(&mut nand, 2 * PAGES), 0);
    let bytes = [0, 1, 2, 3, 4, 703, 704].map(|page| byte_of(&mut nand, PAGES + page));
    assert_eq!(bytes, [1, 0xff, 0xff, 4, 5, 5, 0xff]);
    nand.erase(BlockAddress(1), IoTag::Data).unwrap();
    assert_eq!(byte_of(&mut nand, PAGES), 0xff);
    nand.program_run(PageAddress(PAGES), &vec![6; PAGES as usize * PAGE], &[], IoTag::Data).unwrap();
    let mut nand = reopened(nand);
    assert_eq!([0, PAGES, 2 * PAGES - 1, 2 * PAGES].map(|page| byte_of(&mut nand, page)), [0xff, 6, 6, 0xff]);
    let outside = nand.read(PageAddress(11 * PAGES), &mut [0; PAGE], &mut [], IoTag::Data);
    assert_eq!(outside.unwrap_err().kind, MediaErrorKind::OutOfRange);
}

#[test]
fn zones_left_half_written_are_finished() {
    let mut nand = made(20);
    for block in 0..9 {
        put(&mut nand, block * PAGES, block as u8 + 1).unwrap();
        if block >= 4 {
            nand.finish(BlockAddress(block as u32)).unwrap();
        }
    }
    // Four blocks and the label.
    assert_eq!(nand.storage.active(), 5);
    assert_eq!(put(&mut nand, 5 * PAGES + 1, 0).unwrap_err().kind, MediaErrorKind::ProgramOrder);
    assert_eq!(byte_of(&mut nand, 5 * PAGES + 1), 0xff);
    let mut nand = reopened(nand);
    assert_eq!(nand.storage.active(), 1);
    assert_eq!([0, 1, 4 * PAGES, 4 * PAGES + 1].map(|page| byte_of(&mut nand, page)), [1, 0xff, 5, 0xff]);
    let mut nand = ZonedNand::open_on(nand.into_storage(), OpenMode::ReadOnly).unwrap();
    assert_eq!(put(&mut nand, 0, 1).unwrap_err().kind, MediaErrorKind::ReadOnly);
}

#[test]
fn zones_that_fail_are_bad() {
    let mut nand = made(20);
    put(&mut nand, 0, 1).unwrap();
    nand.storage.fails = true;
    assert_eq!(put(&mut nand, 1, 1).unwrap_err().kind, MediaErrorKind::ProgramFailed);
    nand.storage.fails = false;
    assert_eq!(nand.is_bad(BlockAddress(0)), Ok(true));
    assert_eq!(byte_of(&mut nand, 0), 1);
    assert_eq!(nand.erase(BlockAddress(0), IoTag::Data).unwrap_err().kind, MediaErrorKind::BadBlock);
    nand.mark_bad(BlockAddress(7)).unwrap();
    nand.mark_bad(BlockAddress(9)).unwrap();
    let mut storage = nand.into_storage();
    storage.zones[2 + 1 + 11].condition = ZoneCondition::Offline;
    let mut nand = ZonedNand::open_on(storage, OpenMode::ReadWrite).unwrap();
    let bad: Vec<u32> = (0..19).filter(|block| nand.is_bad(BlockAddress(*block)).unwrap()).collect();
    assert_eq!(bad, [0, 7, 9, 11]);
    let lost = nand.read(PageAddress(11 * PAGES), &mut [0; PAGE], &mut [], IoTag::Data);
    assert_eq!(lost.unwrap_err().kind, MediaErrorKind::Uncorrectable);
    // A list that a cut tore takes its slot; the next one goes behind it.
    let mut storage = nand.into_storage();
    let end = storage.zones[2].written;
    let start = storage.zones[2].start;
    storage.write_at(start + end, &[9; SECTOR_BYTES], IoTag::Data).unwrap();
    let mut nand = ZonedNand::open_on(storage, OpenMode::ReadWrite).unwrap();
    nand.mark_bad(BlockAddress(3)).unwrap();
    let mut nand = reopened(nand);
    assert_eq!([3, 7, 9, 10].map(|block| nand.is_bad(BlockAddress(block))), [Ok(true), Ok(true), Ok(true), Ok(false)]);
}

#[test]
fn what_is_no_volume_is_refused() {
    let kind = |device| ZonedNand::open_on(device, OpenMode::ReadOnly).map(drop).map_err(|error| error.kind);
    assert_eq!(kind(Device::new(20)), Err(MediaErrorKind::NotAnImage));
    let fresh = || made(20).into_storage();
    assert_eq!(kind(fresh()), Ok(()));
    let label = 2 * ZONE as usize;
    let mut damaged = fresh();
    damaged.bytes[label + 100] ^= 1;
    assert_eq!(kind(damaged), Ok(()));
    let mut both = fresh();
    both.bytes[label + 100] ^= 1;
    both.bytes[label + 4096 + 100] ^= 1;
    assert_eq!(kind(both), Err(MediaErrorKind::Damaged));
    let mut shorter = fresh();
    shorter.zones.pop();
    assert_eq!(kind(shorter), Err(MediaErrorKind::Damaged));
}
