//! How long the requests of a disk take.

use alloc::vec::Vec;

/// The time of one disk, in nanoseconds of the host's clock. `now` never goes back.
pub trait DiskModel: Send {
    /// When a read that is handed over at `now` has its bytes.
    fn read(&mut self, now: u64, offset: u64, length: u64) -> u64;

    /// When the disk has taken a write that is handed over at `now`; it is done later.
    fn write(&mut self, now: u64, offset: u64, length: u64) -> u64;

    /// The range holds nothing of value.
    fn discard(&mut self, offset: u64, length: u64);

    /// When a flush that is handed over at `now` is done.
    fn flush(&mut self, now: u64) -> u64;

    /// When everything begun is done.
    fn idle_at(&self) -> u64;

    /// What it counts, for reports.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// A disk that takes no time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Instant;

impl DiskModel for Instant {
    fn read(&mut self, now: u64, _offset: u64, _length: u64) -> u64 {
        now
    }

    fn write(&mut self, now: u64, _offset: u64, _length: u64) -> u64 {
        now
    }

    fn discard(&mut self, _offset: u64, _length: u64) {}

    fn flush(&mut self, now: u64) -> u64 {
        now
    }

    fn idle_at(&self) -> u64 {
        0
    }
}
