//! What a simulated NAND can be told to be: fast, worn, badly made, noisy or about to fail.

use crate::fault::Fault;
use crate::nand::{BlockAddress, Geometry, PageAddress};
use crate::sim::timing::LatencyTable;
use alloc::vec::Vec;
use onode_base::Prng;

/// Options of a [`SimNand`](super::SimNand). The default is a perfect chip with the latencies of
/// paper 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimOptions {
    /// How long operations take in virtual time.
    pub latency: LatencyTable,
    /// Erases that a block endures; every later one fails. `None` is no limit.
    pub endurance: Option<u32>,
    /// Blocks marked bad from the start.
    pub factory_bad: FactoryBad,
    /// Bit errors of reads. `None` is a chip without any.
    pub bit_errors: Option<BitErrors>,
    /// Operations that fail.
    pub faults: Vec<Fault>,
    /// From which all random choices follow.
    pub seed: u64,
}

/// Blocks that leave the factory bad.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FactoryBad {
    /// None.
    #[default]
    None,
    /// These.
    List(Vec<BlockAddress>),
    /// Each block with a chance of so many in a thousand, by the seed of the options. Block 0 is
    /// always good, as makers promise.
    PerThousand(u16),
}

impl FactoryBad {
    pub(super) fn is_bad(&self, block: BlockAddress, prng: &mut Prng) -> bool {
        match self {
            Self::None => false,
            Self::List(list) => list.contains(&block),
            Self::PerThousand(share) => prng.chance(u64::from(*share), 1000) && block.0 != 0,
        }
    }
}

/// Raw bit errors, drawn anew for every read of a page or lasting, and what the chip's code
/// corrects of them.
///
/// Read disturb is modelled, retention is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BitErrors {
    /// Wrong bits expected in 10^9 bits read.
    pub per_billion_bits: u32,
    /// Read disturb: so many reads of a block make one bit more wrong in each of its pages until
    /// the block is erased, in the best pages half of one, in the worst one and a half. 0 is a
    /// chip without.
    pub reads_per_bit: u32,
    /// Wrong bits in one page that are corrected; more make the read `Uncorrectable`.
    pub correctable_bits: u32,
    /// Wrong bits in one page of which the chip tells; 0 is three quarters of those that are
    /// corrected, as Linux has it.
    pub bitflip_threshold: u32,
}

impl BitErrors {
    /// Wrong bits in one page of which the chip tells.
    pub(super) fn threshold_bits(&self) -> u32 {
        let usual = (u64::from(self.correctable_bits) * 3).div_ceil(4) as u32;
        if self.bitflip_threshold > 0 { self.bitflip_threshold } else { usual.max(1) }
    }

    /// Wrong bits of a page whose block was erased and read so many times.
    pub(super) fn lasting(&self, page: PageAddress, erases: u32, reads: u32) -> u32 {
        if self.reads_per_bit == 0 {
            return 0;
        }
        let weight = 512 + Prng::new(page.0 ^ (u64::from(erases) << 40)).below(1025);
        (u64::from(reads) * weight / (1024 * u64::from(self.reads_per_bit))) as u32
    }

    /// Wrong bits of one read of a page: Poisson-distributed (Knuth's product of uniform numbers).
    /// Only additions and multiplications, so that every machine draws the same.
    pub(super) fn draw(&self, shape: Geometry, prng: &mut Prng) -> u32 {
        let bits = f64::from(shape.page_bytes + shape.spare_bytes) * 8.0;
        // Beyond some hundred expected errors no code helps; the bound keeps the product above
        // zero.
        let expected = (bits * f64::from(self.per_billion_bits) / 1e9).min(600.0);
        let limit = exponential_of_negative(expected);
        let mut product = 1.0;
        let mut count = 0;
        loop {
            product *= ((prng.next_u64() >> 11) + 1) as f64 / 9_007_199_254_740_992.0;
            if product <= limit {
                return count;
            }
            count += 1;
        }
    }
}

/// e^-x for 0 <= x <= 600: a short series for a small part of x, squared back up.
fn exponential_of_negative(x: f64) -> f64 {
    let part = x / 1024.0;
    let mut value = 1.0;
    for term in (1..=12).rev() {
        value = 1.0 - value * part / f64::from(term);
    }
    for _ in 0..10 {
        value *= value;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_is_near_the_true_one() {
        for (x, wanted) in [(0.0, 1.0), (1.0, 0.367_879_441_171_442_3), (20.0, 2.061_153_622_438_558e-9)] {
            let found = exponential_of_negative(x);
            assert!((found - wanted).abs() <= wanted * 1e-10, "{x}: {found}");
        }
    }

    #[test]
    fn draws_have_the_expected_mean() {
        let shape = Geometry { page_bytes: 2048, spare_bytes: 0, pages_per_block: 4, blocks: 8, chips: 1 };
        // 16,384 bits at 10^-4 are 1.6384 errors a page.
        let errors = BitErrors { per_billion_bits: 100_000, ..BitErrors::default() };
        let mut prng = Prng::new(3);
        let sum: u32 = (0..10_000).map(|_| errors.draw(shape, &mut prng)).sum();
        assert!((16_000..16_800).contains(&sum), "{sum}");
    }
}
