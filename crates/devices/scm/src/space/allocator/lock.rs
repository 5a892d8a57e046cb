//! The lock word in the region: who changes the side tables.
//!
//! It names the lease of its holder, so that whoever waits can see that the holder is dead, take
//! the lock over and make the lists anew from the chunk table. A holder that unwinds leaves a mark
//! to the same effect. It also says how often the lease was taken: else whoever saw a dead holder
//! could take the lock from a later process with the same lease.

use super::Allocator;
use onode_media::Pmem;

/// Nobody holds it.
pub(crate) const FREE: u64 = 0;
const HELD: u64 = 1 << 62;
/// Whoever held it failed in the middle of a change.
pub(crate) const BROKEN: u64 = 1 << 63;
const LEASE_BITS: u32 = 12;
const EPOCHS: u64 = (1 << (62 - LEASE_BITS)) - 1;

/// What a lock says that is held under a lease which was taken `epoch` times.
pub(crate) const fn holder_word(lease: u16, epoch: u64) -> u64 {
    HELD | (epoch & EPOCHS) << LEASE_BITS | lease as u64
}

/// The lease under which a lock is held.
pub(crate) const fn lease_of(word: u64) -> u16 {
    (word & ((1 << LEASE_BITS) - 1)) as u16
}
/// Attempts before the thread lets others run; few where a scheduler draws each of them.
const SPINS: u32 = if cfg!(test) { 2 } else { 200 };

/// The lock, held.
pub(super) struct Guard<'a, P: Pmem> {
    allocator: &'a Allocator<P>,
}

impl<P: Pmem> Allocator<P> {
    /// Takes the lock.
    pub(super) fn lock(&self) -> Guard<'_, P> {
        let pmem = &self.table.pmem;
        let at = self.table.layout.lock();
        let own = self.holder_word;
        let (mut spins, mut turns) = (0, 0_u32);
        loop {
            let found = pmem.load(at);
            let broken = match found {
                FREE => false,
                BROKEN => true,
                _ if spins < SPINS => {
                    spins += 1;
                    core::hint::spin_loop();
                    continue;
                }
                _ => {
                    (spins, turns) = (0, turns.wrapping_add(1));
                    // The longer it takes, the seldomer the holder is looked at.
                    if !turns.is_power_of_two() || !self.is_dead(lease_of(found)) {
                        std::thread::yield_now();
                        continue;
                    }
                    true
                }
            };
            if pmem.compare_exchange(at, found, own).is_ok() {
                let guard = Guard { allocator: self };
                if broken {
                    self.table.rebuild();
                }
                return guard;
            }
        }
    }
}

impl<P: Pmem> Drop for Guard<'_, P> {
    fn drop(&mut self) {
        let left = if std::thread::panicking() { BROKEN } else { FREE };
        self.allocator.table.pmem.store(self.allocator.table.layout.lock(), left);
    }
}
