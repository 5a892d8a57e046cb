//! Both superblocks of a fast disk, read and written.
//!
//! What it keeps true: one of them is durable before the other is touched, and the newest that is
//! sound counts.

use super::{FastSuperblock, VERSION};
use crate::medium::errors::{damaged, from_media, wrong_part};
use alloc::format;
use onode_engine::{Copies, Numbered};
use onode_media::blockdev::{BlockDev, SECTOR_BYTES};
use onode_media::tag::IoTag;
use onode_object::Result;

const BLOCK: u64 = SECTOR_BYTES as u64;

impl Numbered for FastSuperblock {
    fn number(&self) -> u64 {
        self.sequence
    }
}

impl FastSuperblock {
    /// The newest sound superblock; `None` if there never was one.
    ///
    /// # Errors
    /// `Corrupt` if both are damaged, `WrongPart` for a newer format, `Media`.
    pub fn read_newest(disk: &mut dyn BlockDev) -> Result<Option<FastSuperblock>> {
        let blocks = disk.bytes() / BLOCK;
        let (mut copies, mut failure) = (Copies::default(), None);
        for slot in 0..2.min(blocks) {
            let mut block = alloc::vec![0; SECTOR_BYTES];
            if let Err(error) = disk.read_at(slot * BLOCK, &mut block, IoTag::Recovery) {
                failure = Some(from_media("reading the superblock of the fast disk", &error));
                continue;
            }
            copies.add(slot, FastSuperblock::decode(&block, blocks));
        }
        if let Some(newer) = copies.newer_format().filter(|_| copies.newest().is_none()) {
            return Err(wrong_part(format!(
                "{} has format {newer} of fast disks, and this version knows {VERSION}; use a newer one, or mount without it",
                disk.name()
            )));
        }
        let any_damaged = copies.any_damaged();
        match (copies.into_newest(), failure) {
            (Some((newest, _)), _) => Ok(Some(newest)),
            (None, _) if any_damaged => Err(damaged(format!(
                "both superblocks of the fast disk {} are damaged; mount without it, and attach it as a new one",
                disk.name()
            ))),
            (None, Some(failure)) => Err(failure),
            (None, None) => Ok(None),
        }
    }

    /// Writes it with the next sequence into both places, one when the other is durable: what one
    /// of them says counts only if it is sound.
    ///
    /// # Errors
    /// `Media`.
    pub fn write_next(&mut self, disk: &mut dyn BlockDev) -> Result<()> {
        self.sequence += 1;
        let bytes = self.encode();
        let first = self.sequence % 2;
        for slot in [first, 1 - first] {
            let wrote = disk.write_at(slot * BLOCK, &bytes, IoTag::Anchor).and_then(|()| disk.flush());
            wrote.map_err(|error| from_media("writing the superblock of the fast disk", &error))?;
        }
        Ok(())
    }
}
