//! Several disks one behind another, used as one: a volume that has become too large for its disk
//! goes on on the next.
//!
//! The first disk lies at the start as it is, so that a volume on one disk takes up another and
//! nothing of it moves. Each other one begins with a [label](label::DiskLabel) that says of what it
//! is a part, and where it lies; behind that are the bytes. Where a disk has its successor it ends,
//! even if it becomes longer afterwards.
//!
//! What it keeps true: a flush is one of every disk. Requests that cross from one disk to the next
//! are two.
//!
//! What it does not do: spread content over the disks. Where one is lost, so is the volume.

pub mod label;
mod replacing;
mod shared;
#[cfg(test)]
mod tests;

use crate::blockdev::replace::ReplaceDisk;
use crate::blockdev::{BlockCounters, BlockDev, SharedDisk, too_short};
use crate::error::{Error, MediaErrorKind, Result};
use crate::tag::IoTag;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use label::{DiskLabel, LABEL_BYTES};
use replacing::Replacing;
use shared::{SharedPart, SharedParts};

/// One of the disks.
struct Part {
    disk: Box<dyn BlockDev>,
    /// Where it begins in the whole.
    start: u64,
    /// Bytes of the disk before those that are part of the whole.
    skip: u64,
}

/// The disks as one.
pub struct JoinedDisk {
    name: String,
    /// At least one.
    parts: Vec<Part>,
    shared: Option<Arc<SharedParts>>,
    /// A disk that comes in place of one of them.
    replacing: Option<Replacing>,
}

/// A piece of a request.
struct Piece {
    /// The number of a disk, and the byte of that.
    part: usize,
    offset: u64,
    /// How many, and where among those of the request.
    bytes: usize,
    at: usize,
}

impl Piece {
    /// Its bytes among those of the request.
    fn of<'a>(&self, request: &'a [u8]) -> &'a [u8] {
        request.get(self.at..self.at + self.bytes).unwrap_or_default()
    }
}

impl Part {
    fn bytes(&self) -> u64 {
        self.disk.bytes().saturating_sub(self.skip)
    }

    fn shared(&self) -> Option<SharedPart> {
        self.disk.shared().map(|disk| SharedPart { disk, start: self.start, skip: self.skip })
    }
}

impl JoinedDisk {
    /// A disk that is alone so far.
    #[must_use]
    pub fn new(first: Box<dyn BlockDev>) -> Self {
        let name = first.name().to_string();
        let parts = alloc::vec![Part { disk: first, start: 0, skip: 0 }];
        let shared = parts.iter().map(Part::shared).collect::<Option<Vec<_>>>().map(SharedParts::new).map(Arc::new);
        Self { name, parts, shared, replacing: None }
    }

    /// How many disks there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// Names of the disks, and where each begins in the whole.
    pub fn disks(&self) -> impl Iterator<Item = (&str, u64)> {
        self.parts.iter().map(|part| (part.disk.name(), part.start))
    }

    /// Goes on on `disk` at byte `start`, which is no more than all bytes of the others: what they
    /// have beyond that is not used. The label is there already.
    ///
    /// # Errors
    /// `OutOfRange` if the others end before, `Invalid` if `disk` has no bytes, or cannot be read
    /// beside its owner as the others can.
    pub fn push(&mut self, disk: Box<dyn BlockDev>, start: u64) -> Result<()> {
        if start > self.bytes() || self.parts.last().is_some_and(|last| start <= last.start) {
            return Err(too_short(&self.name, self.bytes(), start));
        }
        let part = Part { disk, start, skip: LABEL_BYTES };
        if part.bytes() == 0 {
            return Err(too_short(part.disk.name(), part.disk.bytes(), 2 * LABEL_BYTES));
        }
        match (&self.shared, part.shared()) {
            (Some(all), Some(one)) => all.push(one),
            (Some(_), None) => {
                let why = format!("{} is of another kind than {}", part.disk.name(), self.name);
                return Err(Error::new(MediaErrorKind::Invalid, why));
            }
            (None, _) => {}
        }
        self.parts.push(part);
        self.rename();
        Ok(())
    }

    /// Where the pieces of a request lie.
    fn pieces(&self, offset: u64, bytes: u64) -> Result<Vec<Piece>> {
        let end = offset.checked_add(bytes).filter(|end| *end <= self.bytes());
        let end = end.ok_or_else(|| too_short(&self.name, self.bytes(), offset.saturating_add(bytes)))?;
        let mut pieces = Vec::with_capacity(1);
        for (number, part) in self.parts.iter().enumerate() {
            let until = self.parts.get(number + 1).map_or(u64::MAX, |next| next.start);
            let (from, to) = (offset.max(part.start), end.min(until));
            if from < to || (bytes == 0 && (part.start..until).contains(&offset)) {
                let (bytes, at) = (to.saturating_sub(from) as usize, (from - offset) as usize);
                pieces.push(Piece { part: number, offset: from - part.start + part.skip, bytes, at });
            }
        }
        Ok(pieces)
    }

    /// Changes each piece of a request, and what takes the place of one.
    fn change(&mut self, offset: u64, bytes: u64, act: impl Fn(&mut dyn BlockDev, &Piece) -> Result<()>) -> Result<()> {
        for piece in self.pieces(offset, bytes)? {
            if let Some(part) = self.parts.get_mut(piece.part) {
                act(&mut *part.disk, &piece)?;
            }
            if let Some(replacing) = &mut self.replacing {
                replacing.mirror(&piece, &act);
            }
        }
        Ok(())
    }

    fn rename(&mut self) {
        let names: Vec<_> = self.parts.iter().map(|part| part.disk.name()).collect();
        self.name = names.join("+");
    }

    /// Where the whole ends does not change while a disk is replaced.
    fn check_none_replaced(&self) -> Result<()> {
        let why = "a disk of it is being replaced: it becomes no longer and no shorter until that is over";
        self.replacing.as_ref().map_or(Ok(()), |_| Err(Error::new(MediaErrorKind::Invalid, why)))
    }

    fn last(&mut self) -> Result<&mut Part> {
        self.parts.last_mut().ok_or_else(|| Error::new(MediaErrorKind::Invalid, "there is no disk"))
    }

    /// Does something with every disk, whatever comes of one; the first error is the one that
    /// counts.
    fn all<T>(&mut self, mut act: impl FnMut(&mut dyn BlockDev) -> Result<T>) -> Result<Vec<T>> {
        let done: Vec<_> = self.parts.iter_mut().map(|part| act(&mut *part.disk)).collect();
        done.into_iter().collect()
    }
}

impl BlockDev for JoinedDisk {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> u64 {
        self.parts.last().map_or(0, |last| last.start + last.bytes())
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8], tag: IoTag) -> Result<()> {
        for piece in self.pieces(offset, out.len() as u64)? {
            let part = self.parts.get_mut(piece.part).zip(out.get_mut(piece.at..piece.at + piece.bytes));
            if let Some((part, out)) = part {
                part.disk.read_at(piece.offset, out, tag)?;
            }
        }
        Ok(())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8], tag: IoTag) -> Result<()> {
        self.change(offset, bytes.len() as u64, |disk, piece| disk.write_at(piece.offset, piece.of(bytes), tag))
    }

    fn post_write(&mut self, offset: u64, bytes: &[u8], tag: IoTag) -> Result<()> {
        self.change(offset, bytes.len() as u64, |disk, piece| disk.post_write(piece.offset, piece.of(bytes), tag))
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.change(offset, bytes, |disk, piece| disk.zero(piece.offset, piece.bytes as u64))
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.change(offset, bytes, |disk, piece| disk.discard(piece.offset, piece.bytes as u64))
    }

    fn flush(&mut self) -> Result<()> {
        self.all(|disk| disk.flush()).map(|_| ())
    }

    fn begin_flush(&mut self) -> Result<()> {
        self.all(|disk| disk.begin_flush()).map(|_| ())
    }

    fn flush_is_done(&mut self) -> Result<bool> {
        Ok(self.all(|disk| disk.flush_is_done())?.into_iter().all(|is_done| is_done))
    }

    fn is_busy(&mut self) -> bool {
        self.parts.iter_mut().any(|part| part.disk.is_busy())
    }

    fn stripe_bytes(&self) -> Option<u64> {
        self.parts.iter().filter_map(|part| part.disk.stripe_bytes()).max()
    }

    fn shared(&self) -> Option<Arc<dyn SharedDisk>> {
        self.shared.clone().map(|shared| shared as Arc<dyn SharedDisk>)
    }

    /// All of one disk at once, one disk after another.
    fn read_batch(&mut self, reads: &mut [(u64, &mut [u8])], tag: IoTag) -> Result<()> {
        let mut by_part: Vec<Vec<(u64, &mut [u8])>> = self.parts.iter().map(|_| Vec::new()).collect();
        for (offset, out) in reads {
            let mut left = &mut **out;
            for piece in self.pieces(*offset, left.len() as u64)? {
                let (now, later) = left.split_at_mut(piece.bytes);
                left = later;
                if let Some(of_part) = by_part.get_mut(piece.part) {
                    of_part.push((piece.offset, now));
                }
            }
        }
        let parts = self.parts.iter_mut().zip(by_part).filter(|(_, reads)| !reads.is_empty());
        for (part, mut reads) in parts {
            part.disk.read_batch(&mut reads, tag)?;
        }
        Ok(())
    }

    /// The last disk becomes longer.
    fn grow(&mut self, bytes: u64) -> Result<()> {
        if bytes > self.bytes() {
            self.check_none_replaced()?;
        }
        let last = self.last()?;
        // Zero asks how long it is by now.
        let wanted = if bytes == 0 { 0 } else { bytes.saturating_sub(last.start) + last.skip };
        last.disk.grow(wanted)
    }

    /// The last disk becomes shorter, but keeps a byte of the whole.
    fn shrink(&mut self, bytes: u64) -> Result<()> {
        self.check_none_replaced()?;
        let last = self.last()?;
        match bytes.checked_sub(last.start).filter(|bytes| *bytes > 0) {
            Some(bytes) => last.disk.shrink(bytes + last.skip),
            None => Ok(()),
        }
    }

    fn join(&mut self, mut disk: Box<dyn BlockDev>, uuid: [u8; 16]) -> Result<()> {
        self.check_none_replaced()?;
        let start = self.bytes();
        let number = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        if disk.bytes() >= LABEL_BYTES {
            DiskLabel { uuid, number, start }.write(&mut *disk)?;
        }
        self.push(disk, start)
    }

    fn replaceable(&mut self) -> Option<&mut dyn ReplaceDisk> {
        Some(self)
    }

    fn way(&self) -> Option<&'static str> {
        self.parts.first().and_then(|part| part.disk.way())
    }

    fn counters(&self) -> Option<BlockCounters> {
        let all: Option<Vec<_>> = self.parts.iter().map(|part| part.disk.counters()).collect();
        all.and_then(|all| all.into_iter().reduce(|sum, one| sum.with(&one)))
    }
}
