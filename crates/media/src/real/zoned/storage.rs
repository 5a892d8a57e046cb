//! A zoned block device: bytes at offsets, written in order within each zone.

use crate::blockdev::BlockDev;
use crate::error::{Error, MediaErrorKind, Result};
use crate::real::host::{DeviceFile, of_io};
use crate::real::ioctl::{self, RawZone};
use crate::real::kind::queue_limit;
use alloc::format;
use alloc::vec::Vec;
use rustix::io::Errno;

/// What can be done with a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneCondition {
    /// Nothing is written.
    Empty,
    /// Written in part; the device holds resources for it.
    Active,
    /// No more can be written before a reset.
    Full,
    /// It can be read only, for ever.
    ReadOnly,
    /// It is lost.
    Offline,
}

/// One zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its first byte.
    pub start: u64,
    /// Bytes to the next zone.
    pub bytes: u64,
    /// Bytes that can be written.
    pub capacity: u64,
    /// Bytes before the write pointer; all of the capacity for a full zone.
    pub written: u64,
    /// Its state.
    pub condition: ZoneCondition,
    /// It has to be written in order.
    pub is_sequential: bool,
}

/// A device of zones. Writes to a sequential zone go to its write pointer.
pub trait ZonedStorage: BlockDev {
    /// All zones in order.
    ///
    /// # Errors
    /// `Host`.
    fn zones(&mut self) -> Result<Vec<Zone>>;

    /// Makes the zone at `start` empty.
    ///
    /// # Errors
    /// `EraseFailed`, `ReadOnly`, `Host`.
    fn reset(&mut self, start: u64, bytes: u64) -> Result<()>;

    /// Makes the zone at `start` full, so that the device can forget where it was written last.
    ///
    /// # Errors
    /// `ProgramFailed`, `ReadOnly`, `Host`.
    fn finish(&mut self, start: u64, bytes: u64) -> Result<()>;

    /// Zones that may be written in part at the same time; `None` if there is no limit.
    fn most_active(&self) -> Option<u32>;
}

/// Zones tell of sectors of this size, whatever the device's own is.
const REPORT_SECTOR: u64 = 512;

impl ZonedStorage for DeviceFile {
    fn zones(&mut self) -> Result<Vec<Zone>> {
        let mut zones: Vec<Zone> = Vec::new();
        let mut sector = 0;
        while sector * REPORT_SECTOR < self.bytes() {
            let found = ioctl::zones_from(self.file(), sector)
                .map_err(|errno| of_io(self.name(), "ask for the zones of", &errno.into(), MediaErrorKind::Host))?;
            let Some(last) = found.last() else { break };
            let next = last.start.saturating_add(last.length);
            if next <= sector {
                let detail = format!("{} reports zones in a circle", self.name());
                return Err(Error::new(MediaErrorKind::Host, detail));
            }
            sector = next;
            zones.extend(found.iter().map(Zone::of));
        }
        Ok(zones)
    }

    fn reset(&mut self, start: u64, bytes: u64) -> Result<()> {
        ioctl::reset_zone(self.file(), start / REPORT_SECTOR, bytes / REPORT_SECTOR).map_err(|errno| match errno {
            Errno::INVAL => of_io(self.name(), "reset a zone of", &Errno::IO.into(), MediaErrorKind::EraseFailed),
            _ => of_io(self.name(), "reset a zone of", &errno.into(), MediaErrorKind::EraseFailed),
        })
    }

    fn finish(&mut self, start: u64, bytes: u64) -> Result<()> {
        ioctl::finish_zone(self.file(), start / REPORT_SECTOR, bytes / REPORT_SECTOR)
            .map_err(|errno| of_io(self.name(), "finish a zone of", &errno.into(), MediaErrorKind::ProgramFailed))
    }

    fn most_active(&self) -> Option<u32> {
        let most = queue_limit(self.file(), "max_active_zones")?;
        u32::try_from(most).ok().filter(|most| *most > 0)
    }
}

impl Zone {
    fn of(raw: &RawZone) -> Self {
        let bytes = |sectors: u64| sectors.saturating_mul(REPORT_SECTOR);
        let condition = match raw.condition {
            1 => ZoneCondition::Empty,
            2..=4 => ZoneCondition::Active,
            0x0d => ZoneCondition::ReadOnly,
            0x0e => ZoneCondition::Full,
            // Conventional zones have no write pointer.
            0 => ZoneCondition::Full,
            _ => ZoneCondition::Offline,
        };
        let capacity = bytes(raw.capacity);
        let written = match condition {
            ZoneCondition::Empty | ZoneCondition::Offline => 0,
            ZoneCondition::Active => bytes(raw.write_pointer.saturating_sub(raw.start)).min(capacity),
            ZoneCondition::Full | ZoneCondition::ReadOnly => capacity,
        };
        let is_sequential = raw.kind != 1;
        Self { start: bytes(raw.start), bytes: bytes(raw.length), capacity, written, condition, is_sequential }
    }
}
