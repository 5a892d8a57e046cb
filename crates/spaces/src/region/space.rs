//! A space: a part of a region that is a memory by itself.

use crate::open::{Open, outside};
use crate::region::Region;
use crate::table::Kind;
use alloc::format;
use alloc::sync::Arc;
use core::ptr::NonNull;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;
use onode_media::error::{Error, MediaErrorKind, Result};
use onode_media::pmem::{Domain, Pmem};

/// One space of a region. Clones are the same space; as long as there is one, it is not moved, cut
/// or removed.
///
/// **A store to a space that may only be read panics**, like one past the end: ask
/// [`is_read_only`](Self::is_read_only).
pub struct Space<P> {
    region: Region<P>,
    open: Arc<Open>,
}

impl<P> Clone for Space<P> {
    fn clone(&self) -> Self {
        Self { region: self.region.clone(), open: Arc::clone(&self.open) }
    }
}

impl<P: Pmem> Space<P> {
    pub(super) const fn new(region: Region<P>, open: Arc<Open>) -> Self {
        Self { region, open }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.open.name()
    }

    /// What it is for.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.open.kind()
    }

    /// Whether it may only be read.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.open.is_read_only()
    }

    /// Where it begins in the memory of the region.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.open.start()
    }

    /// The region that it is part of.
    #[must_use]
    pub const fn region(&self) -> &Region<P> {
        &self.region
    }

    #[inline]
    fn pmem(&self) -> &P {
        self.region.pmem()
    }

    /// The address in the region; panics unless the range is inside.
    #[inline]
    fn at(&self, at: u64, length: u64) -> u64 {
        let whole = self.open.length();
        if at > whole || length > whole - at {
            outside(at, length, &self.open);
        }
        self.open.start() + at
    }

    /// The same for a word: the region looks whether it is aligned, and the length of a space is
    /// whole pages.
    #[inline]
    fn word_at(&self, at: u64) -> u64 {
        if at >= self.open.length() {
            outside(at, 8, &self.open);
        }
        self.open.start() + at
    }

    #[inline]
    fn check_storable(&self) {
        assert!(!self.open.is_read_only(), "space {} may only be read", self.open.name());
    }

    #[inline]
    fn word_at_to_store(&self, at: u64) -> u64 {
        self.check_storable();
        self.word_at(at)
    }

    #[inline]
    fn at_to_store(&self, at: u64, length: u64) -> u64 {
        self.check_storable();
        self.at(at, length)
    }
}

impl<P: Pmem> Pmem for Space<P> {
    #[inline]
    fn length(&self) -> u64 {
        self.open.length()
    }

    fn domain(&self) -> Domain {
        self.pmem().domain()
    }

    #[inline]
    fn load(&self, at: u64) -> u64 {
        self.pmem().load(self.word_at(at))
    }

    #[inline]
    fn store(&self, at: u64, value: u64) {
        self.pmem().store(self.word_at_to_store(at), value);
    }

    #[inline]
    fn compare_exchange(&self, at: u64, current: u64, new: u64) -> core::result::Result<u64, u64> {
        self.pmem().compare_exchange(self.word_at_to_store(at), current, new)
    }

    #[inline]
    fn read(&self, at: u64, buffer: &mut [u8]) {
        self.pmem().read(self.at(at, buffer.len() as u64), buffer);
    }

    #[inline]
    fn write(&self, at: u64, bytes: &[u8]) {
        self.pmem().write(self.at_to_store(at, bytes.len() as u64), bytes);
    }

    #[inline]
    fn write_through(&self, at: u64, bytes: &[u8]) {
        self.pmem().write_through(self.at_to_store(at, bytes.len() as u64), bytes);
    }

    #[inline]
    fn zero(&self, at: u64, length: u64) {
        self.pmem().zero(self.at_to_store(at, length), length);
    }

    #[inline]
    fn flush(&self, at: u64, length: u64) {
        self.pmem().flush(self.at(at, length), length);
    }

    fn fence(&self) -> Result<()> {
        self.pmem().fence()
    }

    #[inline]
    fn failure(&self) -> Option<Error> {
        self.pmem().failure()
    }

    fn grow(&self, length: u64) -> Result<()> {
        if length <= self.open.length() {
            return Ok(());
        }
        if self.open.is_read_only() {
            return Err(Error::new(MediaErrorKind::ReadOnly, format!("space '{}'", self.open.name())));
        }
        self.region.grow_space(self.open.id(), length)
    }

    #[cfg(target_has_atomic = "64")]
    #[inline]
    fn words(&self, at: u64, count: u64) -> Option<&[AtomicU64]> {
        // A memory that may only be read is not handed out for stores.
        if self.open.is_read_only() {
            return None;
        }
        self.pmem().words(self.at(at, count.saturating_mul(8)), count)
    }

    #[inline]
    fn prepare(&self, at: u64, length: u64) {
        self.pmem().prepare(self.at(at, length), length);
    }

    fn address(&self) -> Option<NonNull<u8>> {
        let base = self.pmem().address()?;
        let start = usize::try_from(self.open.start()).ok()?;
        Some(base.map_addr(|base| base.saturating_add(start)))
    }
}
