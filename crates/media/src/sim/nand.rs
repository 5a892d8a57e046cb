//! A NAND in memory: enforces the rules of the chip, keeps virtual time and wear, fails on demand.
//!
//! It keeps true: a page is programmed once and in ascending order within its block, or the call
//! fails with `ProgramOrder`; equal calls on equal options give equal results, counters and times;
//! a clone shares all content and is independent of its origin. What a power cut leaves behind is
//! in [`cut`](super::cut). Not modelled: paired pages of multi-level cells, retention, the channel.

use super::timing::ChipClock;
use crate::counters::Counters;
use crate::error::{Error, MediaErrorKind, Result};
use crate::fault::{FaultPlan, OperationKind};
use crate::nand::{BlockAddress, Geometry, Nand, PageAddress, PageRun, read_in_turn};
use crate::tag::IoTag;
use crate::wear::Wear;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::Prng;

pub(crate) mod blocks;
mod options;
#[cfg(test)]
mod tests;

pub(crate) use blocks::{Block, Condition, Conditions, PageContent};
pub use blocks::{Later, WeakBlock};
pub use options::{BitErrors, FactoryBad, SimOptions};

/// Bits flipped in an unstable page once it goes bad; odd, so that flips of one bit never all
/// cancel.
const UNSTABLE_BITS: u32 = 41;

/// A simulated NAND.
#[derive(Clone, Debug)]
pub struct SimNand {
    pub(super) geometry: Geometry,
    options: Arc<SimOptions>,
    pub(super) blocks: Vec<Block>,
    pub(super) conditions: Conditions,
    faults: FaultPlan,
    clock: ChipClock,
    counters: Counters,
    prng: Prng,
    /// Blocks with reads at the bitflip threshold, until somebody asks.
    bitflips: BTreeSet<BlockAddress>,
}

impl SimNand {
    /// A NAND fresh from the factory.
    ///
    /// # Errors
    /// `OutOfRange` if the geometry cannot exist.
    pub fn new(geometry: Geometry, options: SimOptions) -> Result<Self> {
        geometry.validate()?;
        let mut prng = Prng::new(options.seed);
        let fresh = |number| Block::fresh(options.factory_bad.is_bad(BlockAddress(number), &mut prng));
        let blocks = (0..geometry.blocks).map(fresh).collect();
        Ok(Self {
            geometry,
            blocks,
            conditions: Conditions::new(),
            faults: FaultPlan::new(options.faults.clone()),
            clock: ChipClock::new(options.latency),
            counters: Counters::default(),
            prng,
            bitflips: BTreeSet::new(),
            options: Arc::new(options),
        })
    }

    /// Erases of `block` so far, failed ones not counted; `None` past the end.
    #[must_use]
    pub fn erase_count(&self, block: BlockAddress) -> Option<u32> {
        self.blocks.get(block.0 as usize).map(|block| block.erases)
    }

    /// Whether reads of `page` change it: it reads well a few times and then no more.
    #[must_use]
    pub fn is_unstable(&self, page: PageAddress) -> bool {
        matches!(self.conditions.get(&page.0), Some(Condition::Unstable { .. }))
    }

    /// The spread of erases over all blocks that are not bad.
    #[must_use]
    pub fn wear(&self) -> Wear {
        Wear::over(self.blocks.iter().filter(|block| !block.bad).map(|block| block.erases))
    }

    /// The time at which the caller is: posted programs and erases may still run.
    #[must_use]
    pub const fn now_nanoseconds(&self) -> u64 {
        self.clock.now()
    }

    /// Planned failures, to be added to or cleared; operations are counted since the medium began.
    pub fn faults_mut(&mut self) -> &mut FaultPlan {
        &mut self.faults
    }

    /// Sets counters and virtual time back to zero; content, wear and planned failures stay.
    pub fn reset_counters(&mut self) {
        self.counters = Counters::default();
        self.clock = ChipClock::new(self.options.latency);
    }

    /// The block of a page that may be programmed, and the index of the page in it.
    pub(super) fn check_program(&self, page: PageAddress, data: &[u8], spare: &[u8]) -> Result<(BlockAddress, u32)> {
        self.geometry.check_program(page, data.len(), spare.len())?;
        let (address, index) = (self.geometry.block_of(page), self.geometry.index_in_block(page));
        let next = self.good_block(address)?.next_page;
        if index < next {
            let detail = format!("page {} is number {index} of block {}, {next} is next", page.0, address.0);
            return Err(Error::new(MediaErrorKind::ProgramOrder, detail));
        }
        Ok((address, index))
    }

    pub(super) fn good_block(&self, address: BlockAddress) -> Result<&Block> {
        self.geometry.check_block(address)?;
        match self.blocks.get(address.0 as usize) {
            Some(block) if !block.bad => Ok(block),
            _ => Err(Error::new(MediaErrorKind::BadBlock, format!("block {}", address.0))),
        }
    }

    /// Puts content into a page that was checked; an unsuccessful program leaves a `condition`.
    pub(super) fn place(&mut self, page: PageAddress, content: PageContent, condition: Option<Condition>) {
        let (address, index) = (self.geometry.block_of(page), self.geometry.index_in_block(page));
        let Some(block) = self.blocks.get_mut(address.0 as usize) else { return };
        block.set_page(index, content);
        block.next_page = index + 1;
        let weak = block.weak.map(|_| Condition::Uncorrectable);
        if let Some(condition) = weak.or(condition) {
            self.conditions.insert(page.0, condition);
        }
    }

    /// Empties a block that was checked and counts the erase.
    pub(super) fn wipe(&mut self, address: BlockAddress) {
        let Some(block) = self.blocks.get_mut(address.0 as usize) else { return };
        block.clear();
        block.erases = block.erases.saturating_add(1);
        if !self.conditions.is_empty() {
            let first = self.geometry.first_page(address).0;
            let pages = first..first + u64::from(self.geometry.pages_per_block);
            self.conditions.retain(|page, _| !pages.contains(page));
        }
    }

    pub(super) fn program_shared(&mut self, page: PageAddress, content: PageContent, tag: IoTag) -> Result<()> {
        let address = self.geometry.block_of(page);
        self.counters.of_mut(tag).programs += 1;
        self.clock.program(self.geometry.chip_of(address));
        self.counters.virtual_nanoseconds = self.clock.end();
        let planned = self.faults.next(OperationKind::Program);
        let weak = self.blocks.get(address.0 as usize).and_then(|block| block.weak);
        let failure = planned.or((weak == Some(WeakBlock::ProgramFails)).then_some(MediaErrorKind::ProgramFailed));
        self.place(page, content, failure.map(|_| Condition::Uncorrectable));
        match failure {
            Some(kind) => Err(Error::new(kind, format!("page {}", page.0))),
            None => Ok(()),
        }
    }

    /// Lets the condition of a page pass judgement on one read of it: whether and how the bits that
    /// were read have to be spoilt.
    fn meet_condition(&mut self, page: PageAddress) -> Result<Option<Prng>> {
        let unreadable = || Err(Error::new(MediaErrorKind::Uncorrectable, format!("page {}", page.0)));
        match self.conditions.get_mut(&page.0) {
            None => Ok(None),
            Some(Condition::Uncorrectable) => unreadable(),
            Some(Condition::Unstable { reads_left, later, seed }) => {
                if *reads_left > 0 {
                    *reads_left -= 1;
                    return Ok(None);
                }
                match later {
                    Later::Uncorrectable => unreadable(),
                    Later::Different => {
                        let mut prng = Prng::new(*seed);
                        *seed = prng.next_u64();
                        Ok(Some(prng))
                    }
                }
            }
        }
    }

    fn correct_bits(&mut self, page: PageAddress) -> Result<()> {
        let Some(errors) = self.options.bit_errors else { return Ok(()) };
        let address = self.geometry.block_of(page);
        let mut wrong = errors.draw(self.geometry, &mut self.prng);
        if let Some(block) = self.blocks.get_mut(address.0 as usize).filter(|_| errors.reads_per_bit > 0) {
            wrong += errors.lasting(page, block.erases, block.reads);
            block.reads = block.reads.saturating_add(1);
        }
        if wrong > errors.correctable_bits {
            let detail = format!("page {}: {wrong} wrong bits, {} correctable", page.0, errors.correctable_bits);
            return Err(Error::new(MediaErrorKind::Uncorrectable, detail));
        }
        self.counters.corrected_bits += u64::from(wrong);
        if wrong >= errors.threshold_bits() {
            self.bitflips.insert(address);
        }
        Ok(())
    }
}

impl Nand for SimNand {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.geometry.check_read(page, data.len(), spare.len())?;
        let (address, index) = (self.geometry.block_of(page), self.geometry.index_in_block(page));
        self.counters.of_mut(tag).reads += 1;
        self.clock.read(self.geometry.chip_of(address));
        self.counters.virtual_nanoseconds = self.clock.end();
        if let Some(kind) = self.faults.next(OperationKind::Read) {
            return Err(Error::new(kind, format!("page {}", page.0)));
        }
        let spoil = self.meet_condition(page)?;
        self.correct_bits(page)?;
        let content = self.blocks.get(address.0 as usize).and_then(|block| block.page(index));
        fill(data, content.and_then(|content| content.data.as_deref()));
        fill(spare, content.and_then(|content| content.spare.as_deref()));
        if let Some(mut prng) = spoil {
            for part in [data, spare] {
                flip_bits(part, UNSTABLE_BITS, &mut prng);
            }
        }
        Ok(())
    }

    fn read_runs(&mut self, runs: &mut [PageRun<'_>], tag: IoTag) {
        self.clock.read_together();
        read_in_turn(runs, |first, data, spare| self.read_run(first, data, spare, tag));
        self.clock.wait_for_reads();
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.check_program(page, data, spare)?;
        let spare = (!spare.is_empty()).then(|| Arc::from(spare));
        self.program_shared(page, PageContent { data: Some(Arc::from(data)), spare }, tag)
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        let erases = self.good_block(block)?.erases;
        self.counters.of_mut(tag).erases += 1;
        self.clock.erase(self.geometry.chip_of(block));
        self.counters.virtual_nanoseconds = self.clock.end();
        if let Some(kind) = self.faults.next(OperationKind::Erase) {
            return Err(Error::new(kind, format!("block {}", block.0)));
        }
        if self.options.endurance.is_some_and(|limit| erases >= limit) {
            return Err(Error::new(MediaErrorKind::EraseFailed, format!("block {} after {erases} erases", block.0)));
        }
        self.wipe(block);
        Ok(())
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.geometry.check_block(block)?;
        Ok(self.blocks.get(block.0 as usize).is_none_or(|block| block.bad))
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.geometry.check_block(block)?;
        if let Some(block) = self.blocks.get_mut(block.0 as usize) {
            block.bad = true;
        }
        Ok(())
    }

    /// Waits, in virtual time, until every chip is idle.
    fn flush(&mut self) -> Result<()> {
        self.clock.wait();
        match self.faults.next(OperationKind::Flush) {
            Some(kind) => Err(Error::new(kind, "flush")),
            None => Ok(()),
        }
    }

    fn take_bitflips(&mut self) -> Option<Vec<BlockAddress>> {
        self.options.bit_errors.is_some().then(|| core::mem::take(&mut self.bitflips).into_iter().collect())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }

    fn virtual_nanoseconds(&self) -> u64 {
        self.counters.virtual_nanoseconds
    }
}

fn fill(buffer: &mut [u8], content: Option<&[u8]>) {
    match content {
        Some(content) if !buffer.is_empty() => buffer.copy_from_slice(content),
        _ => buffer.fill(0xff),
    }
}

/// Flips a random bit `count` times.
fn flip_bits(bytes: &mut [u8], count: u32, prng: &mut Prng) {
    for _ in 0..count {
        let bit = prng.below(bytes.len() as u64 * 8) as usize;
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
}
