//! What a simulated byte-addressable memory can be told to be.

use crate::pmem::Domain;

/// Options of a [`SimPmem`](super::SimPmem). The default is FeRAM of paper 1 behind the processor's
/// caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmemOptions {
    /// What makes stores durable. With [`Domain::Fence`] a store is durable as soon as it is seen.
    pub domain: Domain,
    /// How long accesses take in virtual time.
    pub latency: PmemLatency,
    /// The length to which it can grow.
    pub grows_to: u64,
}

impl Default for PmemOptions {
    fn default() -> Self {
        Self { domain: Domain::Flush, latency: PmemLatency::FERAM, grows_to: u64::MAX }
    }
}

/// How long accesses take, in nanoseconds. The memory is reached past the caches, so a flush costs
/// nothing of its own unless it is told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmemLatency {
    /// Bytes of one access: the width of the bus.
    pub access_bytes: u64,
    /// Load of one access.
    pub load_nanoseconds: u64,
    /// Store of one access.
    pub store_nanoseconds: u64,
    /// Flush of one line.
    pub flush_nanoseconds: u64,
    /// One fence.
    pub fence_nanoseconds: u64,
}

impl PmemLatency {
    /// FeRAM, paper 1, Table I.
    pub const FERAM: Self = Self::of(8, 70, 70);
    /// PRAM (phase-change memory), paper 1, Table I.
    pub const PRAM: Self = Self::of(8, 68, 180);
    /// MRAM, paper 1, Table I.
    pub const MRAM: Self = Self::of(8, 35, 35);
    /// The FeRAM of the board of paper 2, section IV: 55 ns for each word of 32 bits.
    pub const FERAM_BOARD: Self = Self::of(4, 55, 55);
    /// The SDRAM of the same board: 35 ns for each word.
    pub const DRAM_BOARD: Self = Self::of(4, 35, 35);
    /// Time stands still.
    pub const NONE: Self = Self::of(8, 0, 0);

    const fn of(access_bytes: u64, load_nanoseconds: u64, store_nanoseconds: u64) -> Self {
        Self { access_bytes, load_nanoseconds, store_nanoseconds, flush_nanoseconds: 0, fence_nanoseconds: 0 }
    }

    pub(super) const fn of_load(&self, at: u64, length: u64) -> u64 {
        self.accesses(at, length) * self.load_nanoseconds
    }

    pub(super) const fn of_store(&self, at: u64, length: u64) -> u64 {
        self.accesses(at, length) * self.store_nanoseconds
    }

    const fn accesses(&self, at: u64, length: u64) -> u64 {
        let width = if self.access_bytes == 0 { 1 } else { self.access_bytes };
        (at + length).div_ceil(width) - at / width
    }
}
