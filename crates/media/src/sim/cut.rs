//! What a power cut leaves on a NAND: one operation, damaged in each way that chips are known for.
//!
//! The crash explorer records the operations of a run, applies the first k of them whole to a clone
//! of the medium, the next one with a [`Damage`], and mounts what is left. Fault model, for an
//! operation that was under way when the power went:
//!
//! - it had not begun, or it was done and nobody heard of it;
//! - *program*: a prefix of the bytes is there, or all but some bits; the page reads well once and
//!   then no more (cells charged half); its code fails at once; its spare bytes are missing;
//! - *erase*: some pages are erased; the block looks erased and holds no new content (also charged
//!   half); the content is garbage, or its code fails.
//!
//! A page whose program was cut counts as programmed, and a block whose erase was cut cannot be
//! programmed (`ProgramOrder`) unless all of it looks erased: as on a chip, only a new erase helps.
//! Not modelled: loss of an *earlier* page of the block (paired pages of multi-level cells).

use super::nand::{Condition, Later, PageContent, SimNand, WeakBlock};
use crate::error::{Error, MediaErrorKind, Result};
use crate::nand::{BlockAddress, Nand, PageAddress};
use crate::tag::IoTag;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::Prng;

mod damage;
#[cfg(test)]
mod tests;

pub use damage::{Damage, Prefix};

/// Bits that a cut program leaves unprogrammed.
const LOST_BITS: u32 = 40;

/// A change of a NAND, as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaOperation {
    /// Program of one page.
    Program {
        /// Which page.
        page: PageAddress,
        /// All its data bytes.
        data: Arc<[u8]>,
        /// All its spare bytes, or none.
        spare: Arc<[u8]>,
        /// What it was for.
        tag: IoTag,
    },
    /// Erase of one block.
    Erase {
        /// Which block.
        block: BlockAddress,
        /// What it was for.
        tag: IoTag,
    },
    /// Mark of a bad block.
    MarkBad {
        /// Which block.
        block: BlockAddress,
    },
}

impl SimNand {
    /// Does the whole operation, as the call on the medium would have: rules, counters, virtual
    /// time and planned failures included. Content is shared with `operation`, not copied.
    ///
    /// # Errors
    /// Those of the call.
    pub fn apply(&mut self, operation: &MediaOperation) -> Result<()> {
        match operation {
            MediaOperation::Program { page, data, spare, tag } => {
                self.check_program(*page, data, spare)?;
                self.program_shared(*page, content(data, spare), *tag)
            }
            MediaOperation::Erase { block, tag } => self.erase(*block, *tag),
            MediaOperation::MarkBad { block } => self.mark_bad(*block),
        }
    }

    /// Leaves what a power cut within the operation leaves. Random choices follow from `seed`.
    /// Counters, virtual time and planned failures are not concerned.
    ///
    /// # Errors
    /// `OutOfRange` if the damage does not fit the operation; else those of the call.
    pub fn apply_cut(&mut self, operation: &MediaOperation, damage: Damage, seed: u64) -> Result<()> {
        if !damage.fits(operation) {
            let detail = format!("{damage:?} does not fit {}", damage::name_of(operation));
            return Err(Error::new(MediaErrorKind::OutOfRange, detail));
        }
        match operation {
            MediaOperation::Program { page, data, spare, .. } => {
                self.check_program(*page, data, spare)?;
                self.cut_program(*page, data, spare, damage, seed);
            }
            MediaOperation::Erase { block, .. } => {
                self.good_block(*block)?;
                self.cut_erase(*block, damage, seed);
            }
            MediaOperation::MarkBad { block } => {
                self.geometry.check_block(*block)?;
                if damage == Damage::Complete {
                    self.mark_bad(*block)?;
                }
            }
        }
        Ok(())
    }

    fn cut_program(&mut self, page: PageAddress, data: &Arc<[u8]>, spare: &Arc<[u8]>, damage: Damage, seed: u64) {
        let mut prng = Prng::new(seed);
        let (content, condition) = match damage {
            Damage::Complete => (content(data, spare), None),
            Damage::PrefixBytes(prefix) => {
                let mut torn = data.to_vec();
                let kept = prefix.of(torn.len());
                torn.iter_mut().skip(kept).for_each(|byte| *byte = 0xff);
                (PageContent { data: Some(Arc::from(torn)), spare: None }, None)
            }
            Damage::RandomBits => {
                let mut all: Vec<u8> = data.iter().chain(spare.iter()).copied().collect();
                unprogram(&mut all, &mut prng);
                let (data, spare) = all.split_at(data.len());
                (content(&Arc::from(data), &Arc::from(spare)), None)
            }
            Damage::SpareLost => (PageContent { data: Some(Arc::clone(data)), spare: None }, None),
            Damage::Unstable { good_reads, later } => {
                let condition = Condition::Unstable { reads_left: good_reads, later, seed: prng.next_u64() };
                (content(data, spare), Some(condition))
            }
            Damage::Uncorrectable => (content(data, spare), Some(Condition::Uncorrectable)),
            Damage::Nothing
            | Damage::ErasePrefix
            | Damage::EraseRandom
            | Damage::HalfErased(_)
            | Damage::EraseGarbage => return,
        };
        self.place(page, content, condition);
    }

    fn cut_erase(&mut self, block: BlockAddress, damage: Damage, seed: u64) {
        let mut prng = Prng::new(seed);
        let pages = self.geometry.pages_per_block;
        match damage {
            Damage::Complete => self.wipe(block),
            Damage::HalfErased(weak) => {
                self.wipe(block);
                self.set_weak(block, weak);
            }
            Damage::ErasePrefix => self.overwrite(block, pages / 2, |_| PageContent::default()),
            Damage::EraseRandom => {
                // At least one page is kept and one erased: all and none are other damages.
                let kept = prng.below(u64::from(pages)) as u32;
                for index in (0..pages).filter(|index| *index != kept) {
                    if index == (kept + 1) % pages || prng.chance(1, 2) {
                        self.overwrite_one(block, index, PageContent::default());
                    }
                }
                self.close_after_cut(block);
            }
            Damage::EraseGarbage => {
                let shape = self.geometry;
                let mut garbage = |bytes: u32| {
                    let mut content = alloc::vec![0; bytes as usize];
                    prng.fill(&mut content);
                    Some(Arc::from(content))
                };
                self.overwrite(block, pages, |_| PageContent {
                    data: garbage(shape.page_bytes),
                    spare: garbage(shape.spare_bytes),
                });
            }
            Damage::Uncorrectable => {
                self.close_after_cut(block);
                let first = self.geometry.first_page(block).0;
                for page in first..first + u64::from(pages) {
                    self.conditions.insert(page, Condition::Uncorrectable);
                }
            }
            Damage::Nothing
            | Damage::PrefixBytes(_)
            | Damage::RandomBits
            | Damage::SpareLost
            | Damage::Unstable { .. } => {}
        }
    }

    /// Replaces the first `count` pages of a block whose erase was cut.
    fn overwrite(&mut self, block: BlockAddress, count: u32, mut content: impl FnMut(u32) -> PageContent) {
        for index in 0..count {
            self.overwrite_one(block, index, content(index));
        }
        self.close_after_cut(block);
    }

    fn overwrite_one(&mut self, block: BlockAddress, index: u32, content: PageContent) {
        self.conditions.remove(&(self.geometry.first_page(block).0 + u64::from(index)));
        if let Some(block) = self.blocks.get_mut(block.0 as usize) {
            block.set_page(index, content);
        }
    }

    /// A block whose erase was cut is worn by it and takes no program until it is erased again.
    fn close_after_cut(&mut self, block: BlockAddress) {
        let pages = self.geometry.pages_per_block;
        if let Some(block) = self.blocks.get_mut(block.0 as usize) {
            block.erases = block.erases.saturating_add(1);
            block.next_page = pages;
        }
    }

    fn set_weak(&mut self, block: BlockAddress, weak: WeakBlock) {
        if let Some(block) = self.blocks.get_mut(block.0 as usize) {
            block.weak = Some(weak);
        }
    }
}

fn content(data: &Arc<[u8]>, spare: &Arc<[u8]>) -> PageContent {
    PageContent { data: Some(Arc::clone(data)), spare: (!spare.is_empty()).then(|| Arc::clone(spare)) }
}

/// Sets about forty of the zero bits (programmed cells) back to one; at least one, if there is any.
fn unprogram(bytes: &mut [u8], prng: &mut Prng) {
    let (mut lost, mut draws) = (0, 0);
    while lost < LOST_BITS && draws < 8 * LOST_BITS {
        draws += 1;
        let bit = prng.below(bytes.len() as u64 * 8) as usize;
        let Some(byte) = bytes.get_mut(bit / 8) else { return };
        if *byte & (1 << (bit % 8)) == 0 {
            *byte |= 1 << (bit % 8);
            lost += 1;
        }
    }
    if lost == 0
        && let Some(byte) = bytes.iter_mut().find(|byte| **byte != 0xff)
    {
        *byte |= *byte + 1;
    }
}
