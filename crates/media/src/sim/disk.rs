//! Simulated disks: sectors behind a cache that forgets, with virtual time, faults and power cuts.
//!
//! What is durable follows [`Cached`], how long requests take a [`DiskModel`]: a hard disk
//! ([`hdd`]) or a solid-state one ([`ssd`]). Writes are posted: the host goes on when the disk has
//! taken them, and a flush waits until they are done. Several disks of one host share a
//! [`HostClock`], so what one disk does while another works costs no time.
//!
//! Handles are clones of one disk: a test keeps one while a device works on another.

pub mod cache;
pub mod ftl;
pub mod hdd;
pub mod log;
pub mod model;
pub mod ssd;
#[cfg(test)]
mod tests;

use crate::blockdev::{BlockCounters, BlockDev, DiskRead, SECTOR_BYTES, SharedDisk, check_request};
use crate::error::{Error, MediaErrorKind, Result};
use crate::tag::IoTag;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use cache::Cached;
use log::{DiskLog, DiskOperation};
use model::{DiskModel, Instant};
use onode_base::sync::{Mutex, rank};

/// The virtual time of a host, in nanoseconds; clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct HostClock(Arc<Mutex<u64, rank::Clock>>);

impl HostClock {
    /// The time at which the host is.
    #[must_use]
    pub fn now(&self) -> u64 {
        *self.0.lock()
    }

    /// The host waits until `until`, or goes on if that has passed.
    pub fn wait(&self, until: u64) {
        let mut now = self.0.lock();
        *now = (*now).max(until);
    }

    /// Does something in another thread of the host: what that waits for takes no time here.
    /// Returns when it is done.
    pub fn beside<R>(&self, act: impl FnOnce() -> R) -> (R, u64) {
        let begin = self.now();
        let result = act();
        (result, core::mem::replace(&mut *self.0.lock(), begin))
    }
}

/// A disk in memory.
#[derive(Clone)]
pub struct SimDisk {
    name: String,
    bytes: u64,
    state: Arc<Mutex<DiskState, rank::MediumContent>>,
}

struct DiskState {
    content: Cached,
    model: Box<dyn DiskModel>,
    clock: HostClock,
    counters: BlockCounters,
    next_byte: u64,
    /// When the flush is done that was begun.
    flush_until: Option<u64>,
    log: Option<(DiskLog, usize)>,
    faults: Faults,
}

#[derive(Default)]
struct Faults {
    /// Why every request fails.
    gone: Option<&'static str>,
    writes_until_failure: Option<u64>,
    flushes_until_failure: Option<u64>,
    unreadable: BTreeSet<u64>,
}

impl SimDisk {
    /// A disk of `bytes`, rounded up to sectors, that reads as zeros and takes no time.
    #[must_use]
    pub fn new(name: &str, bytes: u64) -> Self {
        Self::with_model(name, bytes, Box::new(Instant), &HostClock::default())
    }

    /// A disk whose requests take what `model` says on the time of `clock`.
    #[must_use]
    pub fn with_model(name: &str, bytes: u64, model: Box<dyn DiskModel>, clock: &HostClock) -> Self {
        Self::of_content(name, bytes, Cached::default(), model, clock)
    }

    /// A disk that durably holds `content` and takes no time: what [`Cached::after_cut`] left.
    #[must_use]
    pub fn from_content(name: &str, bytes: u64, content: Cached) -> Self {
        Self::of_content(name, bytes, content, Box::new(Instant), &HostClock::default())
    }

    fn of_content(name: &str, bytes: u64, content: Cached, model: Box<dyn DiskModel>, clock: &HostClock) -> Self {
        let state = DiskState {
            content,
            model,
            clock: clock.clone(),
            counters: BlockCounters::default(),
            next_byte: 0,
            flush_until: None,
            log: None,
            faults: Faults::default(),
        };
        Self {
            name: name.to_string(),
            bytes: bytes.next_multiple_of(SECTOR_BYTES as u64),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Records every change from now on in `log`, as disk number `disk`.
    pub fn record(&self, log: &DiskLog, disk: usize) {
        self.state.lock().log = Some((log.clone(), disk));
    }

    /// What the disk holds, durable and not.
    #[must_use]
    pub fn content(&self) -> Cached {
        self.state.lock().content.clone()
    }

    /// Makes every request fail from now on: the disk is unplugged.
    pub fn unplug(&self) {
        self.state.lock().faults.gone = Some("the disk is gone");
    }

    /// Makes the write after `writes` more of them fail once, with nothing written.
    pub fn fail_write_after(&self, writes: u64) {
        self.state.lock().faults.writes_until_failure = Some(writes);
    }

    /// Makes the flush after `flushes` more of them fail once. The disk then forgets what it should
    /// have made durable: it reads as before, and is gone with the power, whatever later flushes
    /// say.
    pub fn fail_flush_after(&self, flushes: u64) {
        self.state.lock().faults.flushes_until_failure = Some(flushes);
    }

    /// Makes reads of the sector at `offset` fail until it is written.
    pub fn make_unreadable(&self, offset: u64) {
        self.state.lock().faults.unreadable.insert(offset / SECTOR_BYTES as u64);
    }

    /// The counts from zero again; virtual time goes on.
    pub fn reset_counters(&self) {
        self.state.lock().counters = BlockCounters::default();
    }

    /// What the model itself counts, in words and numbers; nothing for a disk without a model.
    #[must_use]
    pub fn model_counters(&self) -> alloc::vec::Vec<(&'static str, u64)> {
        self.state.lock().model.counters()
    }

    fn change(&self, offset: u64, length: u64, what: impl FnOnce(&mut DiskState) -> Result<()>) -> Result<()> {
        check_request(&self.name, self.bytes, offset, length)?;
        let mut state = self.state.lock();
        state.check_there(&self.name)?;
        what(&mut state)
    }
}

impl DiskState {
    fn check_there(&self, name: &str) -> Result<()> {
        match self.faults.gone {
            Some(why) => Err(Error::new(MediaErrorKind::Host, format!("{name}: {why}"))),
            None => Ok(()),
        }
    }

    fn fail_flush_if_due(&mut self, name: &str) -> Result<()> {
        if !is_due(&mut self.faults.flushes_until_failure) {
            return Ok(());
        }
        self.content.forget_pending();
        Err(Error::new(MediaErrorKind::Host, format!("this flush of {name} was made to fail")))
    }

    fn moves_to(&mut self, offset: u64, length: u64) {
        self.counters.jumps += u64::from(self.next_byte != offset);
        self.next_byte = offset + length;
    }

    fn record(&self, operation: impl FnOnce() -> DiskOperation) {
        if let Some((log, disk)) = &self.log {
            log.push(*disk, operation());
        }
    }

    fn read(&mut self, name: &str, begin: u64, offset: u64, out: &mut [u8], tag: IoTag) -> Result<()> {
        let length = out.len() as u64;
        self.moves_to(offset, length);
        let counts = self.counters.of_mut(tag);
        counts.reads += 1;
        counts.bytes_read += length;
        self.clock.wait(self.model.read(begin, offset, length));
        let sector = SECTOR_BYTES as u64;
        if let Some(lost) = self.faults.unreadable.range(offset / sector..(offset + length).div_ceil(sector)).next() {
            let detail = format!("sector {lost} of {name}");
            return Err(Error::new(MediaErrorKind::Uncorrectable, detail));
        }
        self.content.read(offset, out);
        Ok(())
    }
}

/// Counts one down; true when it was the last.
fn is_due(count: &mut Option<u64>) -> bool {
    let due = *count == Some(0);
    *count = count.and_then(|count| count.checked_sub(1));
    due
}

impl SharedDisk for SimDisk {
    fn read_at(&self, offset: u64, out: &mut [u8], tag: IoTag) -> Result<()> {
        BlockDev::read_at(&mut self.clone(), offset, out, tag)
    }

    fn read_batch(&self, reads: &mut [DiskRead<'_>], tag: IoTag) {
        let state = &mut *self.state.lock();
        let begin = state.clock.now();
        for DiskRead { offset, out, result } in reads {
            *result = check_request(&self.name, self.bytes, *offset, out.len() as u64)
                .and_then(|()| state.check_there(&self.name))
                .and_then(|()| state.read(&self.name, begin, *offset, out, tag));
        }
    }

    fn flush(&self) -> Result<()> {
        BlockDev::flush(&mut self.clone())
    }
}

impl BlockDev for SimDisk {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8], tag: IoTag) -> Result<()> {
        self.read_batch(&mut [(offset, out)], tag)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8], tag: IoTag) -> Result<()> {
        let length = bytes.len() as u64;
        self.change(offset, length, |state| {
            if is_due(&mut state.faults.writes_until_failure) {
                let detail = format!("this write to {} was made to fail", self.name);
                return Err(Error::new(MediaErrorKind::ProgramFailed, detail));
            }
            state.moves_to(offset, length);
            let counts = state.counters.of_mut(tag);
            counts.writes += 1;
            counts.bytes_written += length;
            let accepted = state.model.write(state.clock.now(), offset, length);
            state.clock.wait(accepted);
            let sector = SECTOR_BYTES as u64;
            for written in offset / sector..(offset + length) / sector {
                state.faults.unreadable.remove(&written);
            }
            let bytes: Arc<[u8]> = Arc::from(bytes);
            state.record(|| DiskOperation::Write { offset, bytes: Arc::clone(&bytes) });
            state.content.write(offset, bytes);
            Ok(())
        })
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> Result<()> {
        const PIECE: u64 = 1 << 20;
        let zeros = alloc::vec![0; PIECE.min(bytes) as usize];
        let mut done = 0;
        while done < bytes {
            let part = PIECE.min(bytes - done);
            self.write_at(offset + done, zeros.get(..part as usize).unwrap_or_default(), IoTag::Anchor)?;
            done += part;
        }
        Ok(())
    }

    /// Reads as zeros at once, or as the content says; after a power cut before the next flush, as
    /// that or as what was there.
    fn discard(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.change(offset, bytes, |state| {
            state.counters.bytes_discarded += bytes;
            state.model.discard(offset, bytes);
            state.record(|| DiskOperation::Discard { offset, length: bytes });
            state.content.discard(offset, bytes);
            Ok(())
        })
    }

    fn flush(&mut self) -> Result<()> {
        self.change(0, 0, |state| {
            state.counters.flushes += 1;
            let done = state.model.flush(state.clock.now());
            state.clock.wait(done);
            state.flush_until = None;
            state.fail_flush_if_due(&self.name)?;
            state.record(|| DiskOperation::Flush);
            state.content.flush();
            Ok(())
        })
    }

    fn begin_flush(&mut self) -> Result<()> {
        self.change(0, 0, |state| {
            state.counters.flushes += 1;
            state.fail_flush_if_due(&self.name)?;
            state.flush_until = Some(state.model.flush(state.clock.now()));
            state.record(|| DiskOperation::FlushBegin);
            state.content.begin_flush();
            Ok(())
        })
    }

    fn flush_is_done(&mut self) -> Result<bool> {
        let mut state = self.state.lock();
        state.check_there(&self.name)?;
        let is_done = state.flush_until.is_none_or(|until| until <= state.clock.now());
        if is_done && state.flush_until.take().is_some() {
            state.record(|| DiskOperation::FlushEnd);
            state.content.end_flush();
        }
        Ok(is_done)
    }

    fn is_busy(&mut self) -> bool {
        let state = self.state.lock();
        state.model.idle_at() > state.clock.now()
    }

    fn read_batch(&mut self, reads: &mut [(u64, &mut [u8])], tag: IoTag) -> Result<()> {
        for (offset, out) in reads.iter() {
            check_request(&self.name, self.bytes, *offset, out.len() as u64)?;
        }
        let mut state = self.state.lock();
        state.check_there(&self.name)?;
        let begin = state.clock.now();
        reads.iter_mut().try_for_each(|(offset, out)| state.read(&self.name, begin, *offset, out, tag))
    }

    fn shared(&self) -> Option<Arc<dyn SharedDisk>> {
        Some(Arc::new(self.clone()))
    }

    fn counters(&self) -> Option<BlockCounters> {
        let state = self.state.lock();
        let mut counters = state.counters.clone();
        counters.virtual_nanoseconds = state.clock.now().max(state.model.idle_at());
        Some(counters)
    }
}
