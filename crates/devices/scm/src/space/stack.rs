//! Blocks in store, in the memory itself: the first 8 bytes of each name the next.
//!
//! So two words say all of it, and any process that has them has the blocks.

use onode_media::Pmem;

/// A stack of blocks. No block begins at 0, which ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stack {
    pub first: u64,
    pub count: u64,
}

impl Stack {
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
    use super::Stack;
    use onode_media::sim::SimPmem;

    #[test]
    fn the_last_comes_first_and_the_end_is_known() {
        let memory = SimPmem::new(4096, Default::default());
        let mut stack = Stack::default();
        assert_eq!(stack.pop(&memory), None);
        for address in [64, 512, 128] {
            stack.push(&memory, address);
        }
        assert_eq!(stack.addresses(&memory), [128, 512, 64]);
        let mut other = stack;
        assert_eq!([other.pop(&memory), other.pop(&memory)], [Some(128), Some(512)]);
        stack.push(&memory, 1024);
        assert_eq!((stack.len(), other.len()), (4, 1));
    }
}
