//! A disk takes the place of another one while all of them are used.
//!
//! Order:
//!
//! 1. the new disk says, durably, that it is being copied to;
//! 2. what is in use is copied, from the start to the end. Writes to where the copy has been, and
//!    is, go to both disks;
//! 3. the new disk is flushed. Only then what makes it a part of the volume is written, the first
//!    sectors at the very last, and flushed;
//! 4. it is used in place of the old one.
//!
//! What it keeps true: at any moment the old disk is a part of the volume, with everything that was
//! flushed, or the new one is. Nothing on either tells of a copy that is under way, so a cut
//! forgets it. An error of the new disk is none of who writes: the copy is given up.

#[cfg(test)]
mod tests;

use super::label::{DiskLabel, LABEL_BYTES};
use super::{JoinedDisk, Part, Piece};
use crate::blockdev::replace::{FormerDisk, ReplaceDisk, ReplaceProgress, Replacement};
use crate::blockdev::{BlockDev, SECTOR_BYTES};
use crate::error::{Error, MediaErrorKind, Result};
use crate::tag::IoTag;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes that are read and written at once.
const COPY_BYTES: u64 = 1 << 20;
const SECTOR: u64 = SECTOR_BYTES as u64;
/// A disk that cannot read so many bytes in a row is taken for dead.
const UNREADABLE_MAX: u64 = 64 << 20;

/// What is under way. All offsets are those of the old disk, and so those of the new one.
pub(super) struct Replacing {
    which: usize,
    disk: Box<dyn BlockDev>,
    label: DiskLabel,
    /// Where the copy begins and ends.
    range: Range<u64>,
    /// Writes before this go to both.
    mirrored: u64,
    /// What is written last, in order.
    last: Vec<Range<u64>>,
    unreadable: u64,
    unreadable_in_a_row: u64,
    /// Why the new disk cannot be used.
    failed: Option<Error>,
}

impl Replacing {
    /// Does with the new disk what was done with a piece of the old one, as far as it has that.
    pub(super) fn mirror(&mut self, piece: &Piece, mut act: impl FnMut(&mut dyn BlockDev, &Piece) -> Result<()>) {
        if piece.part != self.which || self.failed.is_some() {
            return;
        }
        let written = piece.offset..piece.offset + piece.bytes as u64;
        for copied in without(written, &self.last) {
            let range = copied.start.max(self.range.start)..copied.end.min(self.mirrored);
            if range.is_empty() {
                continue;
            }
            let at = piece.at + (range.start - piece.offset) as usize;
            let bytes = (range.end - range.start) as usize;
            if let Err(error) = act(&mut *self.disk, &Piece { part: self.which, offset: range.start, bytes, at }) {
                self.failed = Some(error);
                return;
            }
        }
    }

    /// Copies a piece, sector by sector if it cannot be read at once.
    fn copy(&mut self, old: &mut dyn BlockDev, range: Range<u64>) -> Result<()> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        if old.read_at(range.start, &mut bytes, IoTag::Cleaning).is_ok() {
            self.unreadable_in_a_row = 0;
            return self.put(range.start, &bytes);
        }
        for at in (range.start..range.end).step_by(SECTOR_BYTES) {
            let mut sector = vec![0; SECTOR_BYTES];
            match old.read_at(at, &mut sector, IoTag::Cleaning) {
                Ok(()) => self.unreadable_in_a_row = 0,
                Err(error) => {
                    sector.fill(0);
                    self.unreadable += SECTOR;
                    self.unreadable_in_a_row += SECTOR;
                    if self.unreadable_in_a_row > UNREADABLE_MAX {
                        return Err(error);
                    }
                }
            }
            self.put(at, &sector)?;
        }
        Ok(())
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        if bytes.iter().all(|byte| *byte == 0) {
            return self.disk.zero(at, bytes.len() as u64);
        }
        self.disk.post_write(at, bytes, IoTag::Cleaning)
    }

    /// Makes the new disk a part of the volume.
    fn seal(&mut self, old: &mut dyn BlockDev) -> Result<()> {
        self.disk.flush()?;
        if self.label.number > 0 {
            return self.label.write(&mut *self.disk);
        }
        for range in self.last.clone().into_iter().rev() {
            self.copy(old, range)?;
            self.disk.flush()?;
        }
        Ok(())
    }
}

/// What of a range none of `others` has, which are in order.
fn without(range: Range<u64>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let (mut at, mut left) = (range.start, Vec::with_capacity(1));
    for other in others.iter().filter(|other| other.start < range.end && other.end > range.start) {
        left.push(at..other.start);
        at = other.end;
    }
    left.push(at..range.end);
    left.retain(|range| !range.is_empty());
    left
}

fn nothing_under_way() -> Error {
    Error::new(MediaErrorKind::Invalid, "no disk is being replaced")
}

impl JoinedDisk {
    /// Where in the whole the part ends, of a volume that has so many bytes.
    fn end_of(&self, which: usize, bytes: u64) -> u64 {
        self.parts.get(which + 1).map_or(bytes, |next| next.start)
    }

    /// What is under way, and the old disk of it; nothing is any more after an error.
    fn with_replacing<R>(&mut self, act: impl FnOnce(&mut Replacing, &mut Part) -> Result<R>) -> Result<R> {
        let mut replacing = self.replacing.take().ok_or_else(nothing_under_way)?;
        if let Some(error) = replacing.failed.take() {
            return Err(error);
        }
        let part = self.parts.get_mut(replacing.which).ok_or_else(nothing_under_way)?;
        let done = act(&mut replacing, part)?;
        self.replacing = Some(replacing);
        Ok(done)
    }
}

impl ReplaceDisk for JoinedDisk {
    fn disk_names(&self) -> Vec<String> {
        self.parts.iter().map(|part| part.disk.name().to_string()).collect()
    }

    fn begin(&mut self, replacement: Replacement) -> Result<()> {
        let Replacement { old, new: mut disk, uuid, bytes, last } = replacement;
        self.stop();
        let which = self.parts.iter().position(|part| part.disk.name() == old);
        let found = which.and_then(|which| self.parts.get(which).map(|part| (which, part)));
        let (which, part) =
            found.ok_or_else(|| Error::new(MediaErrorKind::NotFound, format!("{old} is none of {}", self.name)))?;
        let end = self.end_of(which, bytes) - part.start + part.skip;
        disk.grow(end)?;
        if part.disk.shared().is_some() && disk.shared().is_none() {
            let why = format!("{} is of another kind than {old}", disk.name());
            return Err(Error::new(MediaErrorKind::Invalid, why));
        }
        let number = u32::try_from(which).unwrap_or(u32::MAX);
        let label = DiskLabel { uuid, number, start: part.start };
        let last: Vec<Range<u64>> = if which == 0 {
            last.into_iter().filter(|range| range.end <= end).collect()
        } else {
            core::iter::once(0..LABEL_BYTES).collect()
        };
        last.iter().try_for_each(|range| disk.zero(range.start, range.end - range.start))?;
        label.write_as_copy(&mut *disk)?;
        self.replacing = Some(Replacing {
            which,
            disk,
            label,
            range: part.skip..end,
            mirrored: part.skip,
            last,
            unreadable: 0,
            unreadable_in_a_row: 0,
            failed: None,
        });
        Ok(())
    }

    fn advance(&mut self, bytes: u64) -> Result<Option<Range<u64>>> {
        self.with_replacing(|replacing, part| {
            let from = replacing.mirrored;
            replacing.mirrored = from.saturating_add(bytes).min(replacing.range.end);
            let to_whole = |at: u64| at - part.skip + part.start;
            Ok(Some(to_whole(from)..to_whole(replacing.mirrored)).filter(|range| !range.is_empty()))
        })
    }

    fn copy(&mut self, range: Range<u64>) -> Result<()> {
        self.with_replacing(|replacing, part| {
            let to_disk = |at: u64| (at.saturating_sub(part.start) + part.skip).min(replacing.mirrored);
            for range in without(to_disk(range.start)..to_disk(range.end), &replacing.last.clone()) {
                for from in (range.start..range.end).step_by(COPY_BYTES as usize) {
                    replacing.copy(&mut *part.disk, from..range.end.min(from + COPY_BYTES))?;
                }
            }
            Ok(())
        })
    }

    fn finish(&mut self) -> Result<FormerDisk> {
        self.with_replacing(|replacing, part| replacing.seal(&mut *part.disk))?;
        let Replacing { which, disk, last, unreadable, .. } = self.replacing.take().ok_or_else(nothing_under_way)?;
        let part = self.parts.get_mut(which).ok_or_else(nothing_under_way)?;
        let old = core::mem::replace(&mut part.disk, disk);
        let shared = part.shared();
        if let (Some(all), Some(one)) = (&self.shared, shared) {
            all.replace(which, one);
        }
        self.rename();
        Ok(FormerDisk::new(old, last, unreadable))
    }

    fn stop(&mut self) {
        self.replacing = None;
    }

    fn progress(&self) -> Option<ReplaceProgress> {
        let Replacing { range, mirrored, unreadable, .. } = self.replacing.as_ref()?;
        Some(ReplaceProgress { done: mirrored - range.start, total: range.end - range.start, unreadable: *unreadable })
    }
}
