//! The lock word in the region: who changes the side tables.
//!
//! It names the lease of its holder, so that whoever waits can see that the holder is dead, take the lock over and make
//! the lists anew from the chunk table. A holder that unwinds leaves a mark to the same effect.

use super::Allocator;
use onode_media::Pmem;

const FREE: u64 = 0;
const HELD: u64 = 1 << 62;
const BROKEN: u64 = 1 << 63;
/// Attempts before the thread lets others run.
const SPINS: u32 = 200;

/// The lock, held.
pub(super) struct Guard<'a, P: Pmem> {
    allocator: &'a Allocator<P>,
}

impl<P: Pmem> Allocator<P> {
    /// Takes the lock.
    pub(super) fn lock(&self) -> Guard<'_, P> {
        let pmem = &self.table.pmem;
        let at = self.table.layout.lock();
        let own = HELD | u64::from(self.member);
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
                    if !turns.is_power_of_two() || !self.is_dead((found & 0xfff) as u16) {
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
