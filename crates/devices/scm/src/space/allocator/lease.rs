//! Leases: which process the volatile blocks belong to, and what becomes of them when it dies.
//!
//! A slot in the region names the process. A block is freed with the lease of its chunk unless it
//! is published; chunks with published blocks then belong to the device (lease 0). Who is dead is
//! judged by a function handed in: nothing here asks the operating system.

use super::entry::State;
use super::lock::holder_word;
use super::table::Table;
use super::{Allocator, Process};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use std::sync::Arc;
use std::vec::Vec;

/// Tells whether a process is dead.
pub(super) type Judge = Arc<dyn Fn(Process) -> bool + Send + Sync>;

/// Words of a slot: the process in one word, so that a slot is taken by a single store; how often
/// it was.
pub(super) const HOLDER: u64 = 0;
const EPOCH: u64 = 1;
/// Bits of the start of a process; its number has the others.
const STARTED_BITS: u32 = 40;

impl Process {
    /// In one word; `None` if it does not fit one, or would look like no process.
    fn to_word(self) -> Option<u64> {
        let fits = self.started >> STARTED_BITS == 0 && self.id >> (64 - STARTED_BITS) == 0;
        Some(self.id << STARTED_BITS | self.started).filter(|word| fits && *word != 0)
    }

    fn of_word(word: u64) -> Option<Self> {
        let started = word & ((1 << STARTED_BITS) - 1);
        (word != 0).then_some(Self { id: word >> STARTED_BITS, started })
    }
}

impl<P: Pmem> Table<P> {
    fn holder(&self, lease: u16) -> Option<Process> {
        if lease == 0 || u64::from(lease) >= self.layout.leases {
            return None;
        }
        Process::of_word(self.pmem.load(self.layout.lease_word(lease, HOLDER)))
    }

    fn is_volatile(&self, lease: u16, at: u64) -> bool {
        let entry = self.entry(at);
        entry.is(State::Head) && entry.lease() == lease && !entry.published()
    }

    /// Frees what of the lease is not published and gives the rest to the device.
    fn sweep(&self, lease: u16) {
        let mut at = 0;
        while at < self.layout.chunks {
            let entry = self.entry(at);
            let next = at + entry.chunks();
            if entry.is(State::Small) && entry.lease() == lease {
                for word in 0..self.layout.bitmap_words {
                    let allocated = self.layout.allocated(at, word);
                    let mut published = self.pmem.load(self.layout.published(at, word));
                    if is_planted(Bug::ScmSweepPublished) {
                        published = 0;
                    }
                    self.pmem.store(allocated, self.pmem.load(allocated) & published);
                }
                self.set_entry(at, entry.with_lease(0));
            } else if entry.is(State::Head) && entry.lease() == lease && entry.published() {
                self.set_entry(at, entry.with_lease(0));
            }
            at = next;
        }
        // Lists and counts follow the table first; then blocks of whole chunks are freed as by
        // their owner.
        self.rebuild();
        for head in (0..self.layout.chunks).filter(|at| self.is_volatile(lease, *at)).collect::<Vec<_>>() {
            self.release_run(head);
        }
    }
}

impl<P: Pmem> Allocator<P> {
    /// Joins the processes that share the region: a free slot becomes the lease of this allocator,
    /// and blocks that it hands out are volatile until they are published. `is_dead` judges other
    /// holders. `None` if all slots are taken; [`sweep_dead`](Self::sweep_dead) may free some.
    pub fn join(&mut self, process: Process, is_dead: impl Fn(Process) -> bool + Send + Sync + 'static) -> Option<u16> {
        let word = process.to_word()?;
        self.judge = Some(Arc::new(is_dead));
        let table = &self.table;
        for lease in 1..table.layout.leases as u16 {
            if table.pmem.compare_exchange(table.layout.lease_word(lease, HOLDER), 0, word).is_ok() {
                let epoch = table.layout.lease_word(lease, EPOCH);
                let times = table.pmem.load(epoch).wrapping_add(1);
                table.pmem.store(epoch, times);
                (self.lease, self.member, self.has_joined) = (lease, lease, true);
                self.holder_word = holder_word(lease, times);
                return Some(lease);
            }
        }
        None
    }

    /// Works in the name of the process that `joined` did, but hands out blocks of the device
    /// itself, or of the process's lease.
    pub(crate) fn follow(&mut self, joined: &Self, as_device: bool) {
        (self.member, self.holder_word) = (joined.member, joined.holder_word);
        self.lease = if as_device { 0 } else { joined.member };
        self.judge.clone_from(&joined.judge);
    }

    /// Frees all volatile blocks of this allocator's lease and gives the lease back. Caches of its
    /// threads are worth nothing afterwards.
    ///
    /// If it is not this allocator that joined, the lease stays.
    pub fn leave(&mut self) {
        if self.has_joined {
            self.sweep(self.member);
            (self.lease, self.member, self.has_joined) = (0, 0, false);
            self.holder_word = holder_word(0, 0);
        } else if self.lease != 0 {
            let _guard = self.lock();
            self.table.sweep(self.lease);
        }
    }

    /// The lease under which blocks are handed out; 0 is the device itself.
    pub const fn lease(&self) -> u16 {
        self.lease
    }

    /// The lease in whose name the lock is taken.
    pub(crate) const fn member(&self) -> u16 {
        self.member
    }

    /// What a lock says that is held in the name of that lease.
    pub(crate) const fn holder_word(&self) -> u64 {
        self.holder_word
    }

    /// Whether any other lease has a holder who lives.
    pub(crate) fn has_others(&self) -> bool {
        let others = (1..self.table.layout.leases as u16).filter(|lease| *lease != self.member);
        others.into_iter().any(|lease| self.table.holder(lease).is_some() && !self.is_dead(lease))
    }

    /// The process that holds a lease.
    pub fn holder(&self, lease: u16) -> Option<Process> {
        self.table.holder(lease)
    }

    pub(crate) fn is_dead(&self, lease: u16) -> bool {
        let Some(judge) = &self.judge else { return false };
        lease != self.member && self.table.holder(lease).is_some_and(&**judge)
    }

    /// The leases whose holders are dead. Whoever sweeps them first publishes what the log says of
    /// them.
    pub fn dead_leases(&self) -> Vec<u16> {
        (1..self.table.layout.leases as u16).filter(|lease| self.is_dead(*lease)).collect()
    }

    /// Frees every block of a lease that is not published; what is published becomes the device's.
    /// The lease is free then. Only for a lease whose holder is dead, or the own one.
    pub fn sweep(&self, lease: u16) {
        if lease == 0 || u64::from(lease) >= self.table.layout.leases {
            return;
        }
        let guard = self.lock();
        self.table.sweep(lease);
        self.table.pmem.store(self.table.layout.lease_word(lease, HOLDER), 0);
        drop(guard);
    }

    /// Sweeps all dead leases and says how many there were.
    pub fn sweep_dead(&self) -> usize {
        let dead = self.dead_leases();
        dead.iter().for_each(|lease| self.sweep(*lease));
        dead.len()
    }
}
