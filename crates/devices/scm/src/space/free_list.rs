//! An intrusive free list: the first 8 bytes of a free block hold the address of the next one.
//!
//! Two words say all of it, so any process that has the words has the blocks. It allocates nothing
//! and gives nothing back: it keeps what it is handed.

use onode_media::Pmem;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Free blocks, the last one handed in first. No block begins at 0, which ends the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct FreeList {
    first: u64,
    count: u64,
}

impl FreeList {
    pub(crate) const EMPTY: Self = Self { first: 0, count: 0 };

    pub(crate) const fn len(&self) -> usize {
        self.count as usize
    }

    pub(crate) fn push<P: Pmem + ?Sized>(&mut self, memory: &P, address: u64) {
        memory.store(address, self.first);
        self.first = address;
        self.count += 1;
    }

    pub(crate) fn pop<P: Pmem + ?Sized>(&mut self, memory: &P) -> Option<u64> {
        self.count = self.count.checked_sub(1)?;
        let address = self.first;
        self.first = memory.load(address);
        Some(address)
    }

    /// The blocks, the one that comes next first.
    pub(crate) fn addresses<P: Pmem + ?Sized>(&self, memory: &P) -> Vec<u64> {
        let mut all = Vec::with_capacity(self.len());
        let mut next = self.first;
        for _ in 0..self.count {
            all.push(next);
            next = memory.load(next);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::FreeList;
    use onode_media::sim::SimPmem;

    #[test]
    fn the_last_comes_first_and_the_end_is_known() {
        let memory = SimPmem::new(4096, Default::default());
        let mut list = FreeList::default();
        assert_eq!(list.pop(&memory), None);
        for address in [64, 512, 128] {
            list.push(&memory, address);
        }
        assert_eq!(list.addresses(&memory), [128, 512, 64]);
        let mut other = list;
        assert_eq!([other.pop(&memory), other.pop(&memory)], [Some(128), Some(512)]);
        list.push(&memory, 1024);
        assert_eq!((list.len(), other.len()), (4, 1));
    }
}
