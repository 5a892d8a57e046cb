//! What stands at the start of a disk on which another one goes on.

use crate::blockdev::{BlockDev, SECTOR_BYTES};
use crate::error::{Error, MediaErrorKind, Result};
use crate::tag::IoTag;
use alloc::format;
use alloc::vec;
use onode_base::checksum::crc32c;

/// Bytes of a disk before those of the whole, so that these begin where an erase block does.
pub const LABEL_BYTES: u64 = 1 << 20;

/// What a label begins with.
pub const MAGIC: [u8; 8] = *b"ONODJOIN";
const VERSION: u32 = 1;
/// Both copies of the label: a damaged one does not cost the disk.
const PLACES: [u64; 2] = [0, LABEL_BYTES - SECTOR_BYTES as u64];
/// The number of a disk that does not hold everything yet.
pub const BEING_COPIED_TO: u32 = u32::MAX;
const CRC_AT: usize = 40;

/// Of what a disk is a part, and where it lies in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskLabel {
    /// The number of the volume.
    pub uuid: [u8; 16],
    /// How many disks lie before it.
    pub number: u32,
    /// The byte of the whole at which it begins.
    pub start: u64,
}

impl DiskLabel {
    /// The label at the start of `disk`; `None` if there is none.
    ///
    /// # Errors
    /// `NewerFormat`; the disk's, if neither copy can be read.
    pub fn read(disk: &mut dyn BlockDev) -> Result<Option<Self>> {
        let (mut failed, bytes) = (None, disk.bytes());
        for place in PLACES.iter().filter(|place| **place + SECTOR_BYTES as u64 <= bytes) {
            let mut sector = vec![0; SECTOR_BYTES];
            match disk.read_at(*place, &mut sector, IoTag::Anchor) {
                Ok(()) => {}
                Err(error) => {
                    failed = Some(error);
                    continue;
                }
            }
            if let Some(label) = Self::decode(disk.name(), &sector)? {
                return Ok(Some(label));
            }
        }
        failed.map_or(Ok(None), Err)
    }

    /// Writes the label durably.
    ///
    /// # Errors
    /// The disk's.
    pub fn write(&self, disk: &mut dyn BlockDev) -> Result<()> {
        self.write_to(disk, &PLACES)
    }

    /// Has the disk say that it is being copied to: it is no part of the volume, and who begins the
    /// copy anew knows it by that. Nothing is written behind the first sector.
    ///
    /// # Errors
    /// The disk's.
    pub fn write_as_copy(&self, disk: &mut dyn BlockDev) -> Result<()> {
        Self { number: BEING_COPIED_TO, ..*self }.write_to(disk, &[0])
    }

    fn write_to(&self, disk: &mut dyn BlockDev, places: &[u64]) -> Result<()> {
        let mut sector = vec![0; SECTOR_BYTES];
        let (version, number, start) = (VERSION.to_le_bytes(), self.number.to_le_bytes(), self.start.to_le_bytes());
        let mut body = [&MAGIC[..], &version, &number, &self.uuid, &start].concat();
        body.extend_from_slice(&crc32c(&body).to_le_bytes());
        sector.iter_mut().zip(body).for_each(|(to, from)| *to = from);
        places.iter().try_for_each(|place| disk.write_at(*place, &sector, IoTag::Anchor))?;
        disk.flush()
    }

    /// Has the disk be a part of nothing any more.
    ///
    /// # Errors
    /// The disk's.
    pub fn wipe(disk: &mut dyn BlockDev) -> Result<()> {
        let zeros = vec![0; SECTOR_BYTES];
        PLACES.iter().try_for_each(|place| disk.write_at(*place, &zeros, IoTag::Anchor))?;
        disk.flush()
    }

    fn decode(name: &str, sector: &[u8]) -> Result<Option<Self>> {
        let number_at =
            |at: usize| sector.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        let (Some(body), Some(version)) = (sector.get(..CRC_AT), number_at(8)) else { return Ok(None) };
        if !body.starts_with(&MAGIC) || number_at(CRC_AT) != Some(crc32c(body)) {
            return Ok(None);
        }
        if version != VERSION {
            let why = format!("{name} is one of several disks in format {version}, which is newer than this program");
            return Err(Error::new(MediaErrorKind::NewerFormat, why));
        }
        let uuid = sector.get(16..32).and_then(|bytes| bytes.try_into().ok());
        let start = sector.get(32..40).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        Ok(uuid.zip(start).zip(number_at(12)).map(|((uuid, start), number)| Self { uuid, number, start }))
    }
}
