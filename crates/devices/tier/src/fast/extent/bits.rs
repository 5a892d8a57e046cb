//! One bit a block.

use alloc::vec::Vec;

#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub fn new(count: u64) -> Self {
        Self(alloc::vec![0; count.div_ceil(64) as usize])
    }

    pub fn get(&self, at: u64) -> bool {
        self.0.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Sets or clears a bit; whether that changed it.
    pub fn set(&mut self, at: u64, to: bool) -> bool {
        let Some(word) = self.0.get_mut((at / 64) as usize) else { return false };
        let before = *word;
        let mask = 1 << (at % 64);
        if to {
            *word |= mask;
        } else {
            *word &= !mask;
        }
        *word != before
    }

    /// Whether none of a range is set.
    pub fn are_clear(&self, mut range: core::ops::Range<u64>) -> bool {
        range.all(|at| !self.get(at))
    }
}
