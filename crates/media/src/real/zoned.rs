//! A NAND on a zoned block device: a zone is an erase block, written in order and reset whole.
//!
//! The first zone that has to be written in order holds the label and the list of bad blocks, the
//! others are the blocks; zones without order are left alone. It keeps true: what was written is on
//! the device when `program` returns, and survives a failure of the host after the next
//! [`flush`](Nand::flush); pages behind the write pointer read as erased (after reopening, what a
//! finished zone shows there is the device's own affair, mostly zeros, which do, too); zones that
//! can be written no more are bad. A device that limits how many zones are written at the same time
//! is told of each block that is done with ([`Nand::finish`]), and of those that an earlier session
//! left half written.

use super::block::is_labelled;
use super::host::DeviceFile;
use super::label::{BadBlocks, DATA_OFFSET, LABEL_COPIES, Label};
use crate::blockdev::SECTOR_BYTES;
use crate::counters::Counters;
use crate::error::{Error, MediaErrorKind, Result};
use crate::image::OpenMode;
use crate::nand::{BlockAddress, Geometry, Nand, PageAddress};
use crate::tag::IoTag;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use std::path::Path;

mod storage;
#[cfg(test)]
mod tests;

pub use storage::{Zone, ZoneCondition, ZonedStorage};

/// Zones that the flash device writes at the same time, with one for the superblocks and the
/// label's.
const LEAST_ACTIVE: u32 = 8;
/// A block has at most this many bytes, because a segment has.
const MOST_BLOCK_BYTES: u64 = 1 << 30;

/// A NAND on a zoned block device.
pub struct ZonedNand<S = DeviceFile> {
    storage: S,
    mode: OpenMode,
    geometry: Geometry,
    uuid: [u8; 16],
    /// The zone with the label, then one for each block.
    zones: Vec<Zone>,
    /// The zones that were empty when the medium was opened or since.
    known: Vec<bool>,
    bad: BadBlocks,
    counters: Counters,
}

impl ZonedNand {
    /// Divides the device at `path` into pages and blocks; all that it held is lost. `page_bytes`
    /// is chosen by the zones if it is `None`.
    ///
    /// # Errors
    /// `OutOfRange` (zones that cannot be used), and those of [`DeviceFile::open`].
    pub fn create(path: impl AsRef<Path>, page_bytes: Option<u32>, uuid: [u8; 16]) -> Result<Self> {
        Self::create_on(DeviceFile::open(path.as_ref(), OpenMode::ReadWrite)?, page_bytes, uuid)
    }

    /// The shape that [`create`](Self::create) would give; changes nothing.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn geometry_at(path: impl AsRef<Path>, page_bytes: Option<u32>) -> Result<Geometry> {
        let mut device = DeviceFile::open(path.as_ref(), OpenMode::ReadOnly)?;
        geometry_of(&used_zones(&mut device)?, page_bytes)
    }

    /// Opens the device at `path`.
    ///
    /// # Errors
    /// `NotAnImage`, `NewerFormat`, `Damaged`, and those of [`DeviceFile::open`].
    pub fn open(path: impl AsRef<Path>, mode: OpenMode) -> Result<Self> {
        Self::open_on(DeviceFile::open(path.as_ref(), mode)?, mode)
    }
}

impl<S: ZonedStorage> ZonedNand<S> {
    /// Divides `storage` into pages and blocks; all that it held is lost.
    ///
    /// # Errors
    /// `OutOfRange`, `EraseFailed` and `ProgramFailed` (the first zone cannot be used), `Host`.
    pub fn create_on(mut storage: S, page_bytes: Option<u32>, uuid: [u8; 16]) -> Result<Self> {
        let mut zones = used_zones(&mut storage)?;
        let geometry = geometry_of(&zones, page_bytes)?;
        if let Some(most) = storage.most_active().filter(|most| *most < LEAST_ACTIVE) {
            let detail = format!("{} lets {most} zones be written at once, {LEAST_ACTIVE} are needed", storage.name());
            return Err(Error::new(MediaErrorKind::OutOfRange, detail));
        }
        for zone in &mut zones {
            if matches!(zone.condition, ZoneCondition::Active | ZoneCondition::Full) {
                storage.reset(zone.start, zone.bytes)?;
                (zone.condition, zone.written) = (ZoneCondition::Empty, 0);
            }
        }
        let label = Label { geometry, data_offset: zones.first().map_or(0, |first| first.bytes), uuid };
        let mut nand = Self::of(storage, OpenMode::ReadWrite, &label, zones, BadBlocks::default());
        for _ in 0..LABEL_COPIES {
            nand.append(0, &label.encode(), IoTag::Anchor)?;
        }
        nand.append(0, &nand.bad.encode(&uuid), IoTag::Anchor)?;
        nand.storage.flush()?;
        Ok(nand)
    }

    /// Opens what [`create_on`](Self::create_on) made. Zones that an earlier session left half
    /// written are finished, unless the medium is opened for reads only.
    ///
    /// # Errors
    /// `NotAnImage`, `NewerFormat`, `Damaged`, `Uncorrectable`, `Host`.
    pub fn open_on(mut storage: S, mode: OpenMode) -> Result<Self> {
        let zones = used_zones(&mut storage)?;
        let Some(first) = zones.first().copied() else {
            return Err(Error::new(MediaErrorKind::NotAnImage, format!("{} has no zones", storage.name())));
        };
        let label = read_label(&mut storage, &first)?;
        let fits = geometry_of(&zones, Some(label.geometry.page_bytes));
        if fits.ok() != Some(label.geometry) || label.data_offset != first.bytes {
            let detail = format!("the zones of {} are not those that the volume was made on", storage.name());
            return Err(Error::new(MediaErrorKind::Damaged, detail));
        }
        let bad = read_bad_blocks(&mut storage, &first, &label.uuid)?;
        let mut nand = Self::of(storage, mode, &label, zones, bad);
        if mode == OpenMode::ReadWrite {
            for block in 0..label.geometry.blocks {
                nand.finish_zone(block as usize + 1)?;
            }
        }
        Ok(nand)
    }

    fn of(storage: S, mode: OpenMode, label: &Label, zones: Vec<Zone>, bad: BadBlocks) -> Self {
        let Label { geometry, uuid, .. } = *label;
        let known = zones.iter().map(|zone| zone.condition == ZoneCondition::Empty).collect();
        Self { storage, mode, geometry, uuid, zones, known, bad, counters: Counters::default() }
    }

    /// The identity given when the device was divided.
    #[must_use]
    pub const fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    /// What lies below, given back.
    #[must_use]
    pub fn into_storage(self) -> S {
        self.storage
    }

    fn check_writable(&self) -> Result<()> {
        self.mode.check_writable(self.storage.name())
    }

    fn zone(&self, index: usize) -> Result<Zone> {
        let zone = self.zones.get(index).copied();
        zone.ok_or_else(|| Error::new(MediaErrorKind::OutOfRange, format!("zone {index} of {}", self.zones.len())))
    }

    fn zone_of(&self, block: BlockAddress) -> Result<Zone> {
        self.geometry.check_block(block)?;
        self.zone(block.0 as usize + 1)
    }

    fn is_known_bad(&self, block: BlockAddress) -> Result<bool> {
        let lost = matches!(self.zone_of(block)?.condition, ZoneCondition::Offline | ZoneCondition::ReadOnly);
        Ok(lost || self.bad.blocks.contains(&block.0))
    }

    fn check_good(&self, block: BlockAddress) -> Result<()> {
        if self.is_known_bad(block)? {
            return Err(Error::new(MediaErrorKind::BadBlock, format!("block {}", block.0)));
        }
        Ok(())
    }

    /// Writes at the write pointer of a zone. After a failure the device is asked where that is
    /// now.
    fn append(&mut self, index: usize, bytes: &[u8], tag: IoTag) -> Result<()> {
        let zone = self.zone(index)?;
        let written = self.storage.write_at(zone.start + zone.written, bytes, tag);
        if written.is_err() {
            let now = self.storage.zones().ok().and_then(|zones| zones.into_iter().find(|one| one.start == zone.start));
            if let (Some(slot), Some(now)) = (self.zones.get_mut(index), now) {
                *slot = now;
            }
            return written;
        }
        if let Some(slot) = self.zones.get_mut(index) {
            slot.written += bytes.len() as u64;
            slot.condition = if slot.written >= slot.capacity { ZoneCondition::Full } else { ZoneCondition::Active };
        }
        Ok(())
    }

    /// Lets the device forget the write pointer of a zone that is written in part. What was written
    /// stays known here: what comes behind it reads as erased.
    fn finish_zone(&mut self, index: usize) -> Result<()> {
        let zone = self.zone(index)?;
        if zone.condition == ZoneCondition::Active {
            self.storage.finish(zone.start, zone.bytes)?;
            if let Some(slot) = self.zones.get_mut(index) {
                slot.condition = ZoneCondition::Full;
            }
        }
        Ok(())
    }

    fn read_pages(&mut self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        spare.fill(0xff);
        let zone = self.zone_of(self.geometry.block_of(first))?;
        if zone.condition == ZoneCondition::Offline {
            let detail = format!("page {} lies in a zone that is lost", first.0);
            return Err(Error::new(MediaErrorKind::Uncorrectable, detail));
        }
        let offset = u64::from(self.geometry.index_in_block(first)) * u64::from(self.geometry.page_bytes);
        let written = zone.written.saturating_sub(offset).min(data.len() as u64) as usize;
        let (there, erased) = data.split_at_mut(written);
        erased.fill(0xff);
        if !there.is_empty() {
            self.storage.read_at(zone.start + offset, there, tag)?;
        }
        if self.known.get(self.geometry.block_of(first).0 as usize + 1) == Some(&true) {
            return Ok(());
        }
        // A zone that an earlier session finished reads as zeros where nothing was written.
        for page in data.chunks_exact_mut(self.geometry.page_bytes as usize) {
            if page.iter().all(|byte| *byte == 0) {
                page.fill(0xff);
            }
        }
        Ok(())
    }

    fn program_pages(&mut self, first: PageAddress, data: &[u8], tag: IoTag) -> Result<()> {
        self.check_writable()?;
        let block = self.geometry.block_of(first);
        self.check_good(block)?;
        let (zone, index) = (self.zone_of(block)?, block.0 as usize + 1);
        let offset = u64::from(self.geometry.index_in_block(first)) * u64::from(self.geometry.page_bytes);
        let Some(skipped) = offset.checked_sub(zone.written).filter(|_| zone.condition != ZoneCondition::Full) else {
            let detail = format!("page {} lies before the write pointer of block {}", first.0, block.0);
            return Err(Error::new(MediaErrorKind::ProgramOrder, detail));
        };
        if skipped > 0 {
            self.append(index, &vec![0xff; skipped as usize], tag)?;
        }
        self.append(index, data, tag)
    }
}

impl<S: ZonedStorage> Nand for ZonedNand<S> {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.geometry.check_read(page, data.len(), spare.len())?;
        self.counters.of_mut(tag).reads += 1;
        self.read_pages(page, data, spare, tag)
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.geometry.check_program(page, data.len(), spare.len())?;
        self.program_pages(page, data, tag)?;
        self.counters.of_mut(tag).programs += 1;
        Ok(())
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.check_writable()?;
        self.check_good(block)?;
        let zone = self.zone_of(block)?;
        if zone.condition != ZoneCondition::Empty {
            self.storage.reset(zone.start, zone.bytes)?;
            if let Some(slot) = self.zones.get_mut(block.0 as usize + 1) {
                (slot.condition, slot.written) = (ZoneCondition::Empty, 0);
            }
            if let Some(known) = self.known.get_mut(block.0 as usize + 1) {
                *known = true;
            }
        }
        self.counters.of_mut(tag).erases += 1;
        Ok(())
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.is_known_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.check_writable()?;
        self.geometry.check_block(block)?;
        let mut bad = self.bad.clone();
        if !bad.blocks.insert(block.0) {
            return Ok(());
        }
        let zone = self.zone(0)?;
        // A cut may have left part of a list: the write pointer says which slot is next.
        bad.generation = (zone.written / SECTOR_BYTES as u64).saturating_sub(LABEL_COPIES) as u32;
        if zone.written + SECTOR_BYTES as u64 > zone.capacity.min(DATA_OFFSET) {
            let detail = format!("the list of bad blocks of {} is full; replace the device", self.storage.name());
            return Err(Error::new(MediaErrorKind::Host, detail));
        }
        self.append(0, &bad.encode(&self.uuid), IoTag::Anchor)?;
        self.storage.flush()?;
        self.bad = bad;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        match self.mode {
            OpenMode::ReadWrite => self.storage.flush(),
            OpenMode::ReadOnly => Ok(()),
        }
    }

    fn finish(&mut self, block: BlockAddress) -> Result<()> {
        self.check_writable()?;
        self.geometry.check_block(block)?;
        self.finish_zone(block.0 as usize + 1)
    }

    fn read_run(&mut self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        let pages = self.geometry.check_run(first, data.len(), spare.len())?;
        self.counters.of_mut(tag).reads += u64::from(pages);
        self.read_pages(first, data, spare, tag)
    }

    fn program_run(&mut self, first: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        let pages = self.geometry.check_program_run(first, data.len(), spare.len())?;
        if data.is_empty() {
            return Ok(());
        }
        self.program_pages(first, data, tag)?;
        self.counters.of_mut(tag).programs += u64::from(pages);
        Ok(())
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }
}

/// Where the label of a volume on the zoned device at `path` would be.
///
/// # Errors
/// Those of [`DeviceFile::open`].
pub fn first_zone(path: &Path) -> Result<Option<u64>> {
    let mut device = DeviceFile::open(path, OpenMode::ReadOnly)?;
    Ok(used_zones(&mut device)?.first().map(|zone| zone.start))
}

/// The zones that are used: those written in order and as large as the first of them.
fn used_zones<S: ZonedStorage>(storage: &mut S) -> Result<Vec<Zone>> {
    let mut zones = storage.zones()?;
    zones.retain(|zone| zone.is_sequential);
    let bytes = zones.first().map_or(0, |zone| zone.bytes);
    zones.retain(|zone| zone.bytes == bytes);
    Ok(zones)
}

/// One block a zone: as many pages as the smallest zone takes, of the size said or of the smallest
/// that makes them few enough.
fn geometry_of(zones: &[Zone], page_bytes: Option<u32>) -> Result<Geometry> {
    let wrong = |detail| Err(Error::new(MediaErrorKind::OutOfRange, detail));
    let offline = |zone: &&Zone| zone.condition != ZoneCondition::Offline;
    let least = zones.iter().filter(offline).map(|zone| zone.capacity).min().unwrap_or(0).min(MOST_BLOCK_BYTES);
    if least < DATA_OFFSET {
        return wrong(format!("zones of {least} bytes are too small"));
    }
    let mut page = page_bytes.unwrap_or(SECTOR_BYTES as u32);
    if (page as usize) < SECTOR_BYTES || !page.is_power_of_two() {
        return wrong(format!("pages of {page} bytes on a zoned device"));
    }
    while page_bytes.is_none() && least / u64::from(page) > u64::from(Geometry::MOST_PAGES_PER_BLOCK) {
        page *= 2;
    }
    let pages = (least / u64::from(page)).min(u64::from(Geometry::MOST_PAGES_PER_BLOCK));
    let geometry = Geometry {
        page_bytes: page,
        spare_bytes: 0,
        pages_per_block: pages as u32,
        blocks: u32::try_from(zones.len().saturating_sub(1)).unwrap_or(u32::MAX),
        chips: 1,
    };
    geometry.validate().map(|()| geometry)
}

fn read_label<S: ZonedStorage>(storage: &mut S, first: &Zone) -> Result<Label> {
    let mut found = Error::new(MediaErrorKind::NotAnImage, format!("{}: its first zone is empty", storage.name()));
    for copy in 0..LABEL_COPIES {
        let offset = copy * SECTOR_BYTES as u64;
        if offset + SECTOR_BYTES as u64 > first.written {
            break;
        }
        let mut bytes = [0; SECTOR_BYTES];
        match storage.read_at(first.start + offset, &mut bytes, IoTag::Recovery).and_then(|()| Label::decode(&bytes)) {
            Ok(label) => return Ok(label),
            Err(error) => found = Error::new(error.kind, format!("{}: {}", storage.name(), error.detail)),
        }
        if !is_labelled(&bytes) && found.kind == MediaErrorKind::NotAnImage {
            break;
        }
    }
    Err(found)
}

/// The newest list of bad blocks that can be read.
fn read_bad_blocks<S: ZonedStorage>(storage: &mut S, first: &Zone, uuid: &[u8; 16]) -> Result<BadBlocks> {
    let mut newest = BadBlocks::default();
    let mut offset = LABEL_COPIES * SECTOR_BYTES as u64;
    while offset + SECTOR_BYTES as u64 <= first.written.min(DATA_OFFSET) {
        let mut bytes = [0; SECTOR_BYTES];
        match storage.read_at(first.start + offset, &mut bytes, IoTag::Recovery) {
            Ok(()) => {}
            Err(error) if error.kind == MediaErrorKind::Uncorrectable => {}
            Err(error) => return Err(error),
        }
        if let Some(list) = BadBlocks::decode(&bytes, uuid).filter(|list| list.generation > newest.generation) {
            newest = list;
        }
        offset += SECTOR_BYTES as u64;
    }
    Ok(newest)
}
