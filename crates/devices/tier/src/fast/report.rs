//! What the fast disk tells about itself.

use super::piece::Wanted;
use super::section::Section;
use super::{Fast, Piece};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

/// A copy, as checks see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The first block on the big disk.
    pub block: u64,
    /// The checkpoint at which its blocks were allocated.
    pub born: u64,
    /// How many.
    pub blocks: u32,
    /// The first block on the fast disk.
    pub fast: u64,
    /// It is collected and not written yet.
    pub is_collected: bool,
}

impl Fast {
    /// All copies, in the order of the big disk's blocks.
    pub fn copies(&self) -> impl Iterator<Item = Copied> {
        self.map.iter().map(|(block, copy)| Copied {
            block,
            born: copy.born,
            blocks: copy.blocks,
            fast: copy.fast,
            is_collected: self.collection.holds_any(copy.fast..copy.fast + u64::from(copy.blocks)),
        })
    }

    /// Named figures, always in the same order.
    #[must_use]
    pub fn counters(&self) -> Vec<(String, u64)> {
        let counts = &self.counts;
        let mut all: Vec<(String, u64)> = [
            ("fast.hits", counts.hits),
            ("fast.misses", counts.misses),
            ("fast.copies", self.map.len() as u64),
            ("fast.blocks_copied", self.map.blocks()),
            ("fast.blocks_written_back", counts.written_back),
            ("fast.blocks_promoted", counts.promoted),
            ("fast.blocks_moved", counts.moved),
            ("fast.copies_evicted", counts.evicted),
            ("fast.copies_stale", counts.stale),
            ("fast.copies_damaged", counts.damaged),
            ("fast.batches", self.collection.batches),
            ("fast.blocks_written", self.collection.blocks_written),
            ("fast.bytes_collected", self.collection.bytes()),
            ("fast.bytes_of_today", self.admission.spent()),
            ("fast.snapshots", self.snapshots),
            ("fast.snapshot_blocks", counts.snapshot_blocks),
            ("fast.snapshots_lost", counts.snapshots_lost),
            ("fast.entries_dropped", counts.entries_dropped),
            ("fast.objects_waiting", self.mover.len() as u64),
            ("fast.discards", self.sections.iter().map(|section| section.discards.requests()).sum()),
            ("fast.blocks_discarded", self.sections.iter().map(|section| section.discards.blocks()).sum()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_string(), value))
        .collect();
        let refusals = self.admission.refusals();
        all.extend(refusals.map(|(refusal, count)| (format!("fast.refused.{}", refusal.name()), count)));
        for section in &self.sections {
            let name = &section.place.name;
            all.push((format!("section.{name}.blocks"), section.allocator.blocks()));
            all.push((format!("section.{name}.copied"), section.kept_blocks()));
            all.push((format!("section.{name}.lent"), section.lent_blocks()));
            all.push((format!("section.{name}.pinned"), section.pinned_blocks));
            all.push((format!("section.{name}.room"), section.allocator.room()));
        }
        all
    }

    /// Blocks that content of a placement class can fill in its section, or in all of them;
    /// `None` if it bypasses the fast disk.
    #[must_use]
    pub fn capacity(&self, class: u16) -> Option<u64> {
        let piece = Piece { block: 0, born: 0, blocks: 1, object: 0, index: 0, class };
        let sections = match piece.wanted(self.sections.len()) {
            Wanted::Nowhere => return None,
            Wanted::In(number) => self.sections.get(number..=number)?,
            Wanted::Anywhere => &self.sections,
        };
        let blocks = |section: &Section| section.allocator.blocks().saturating_sub(section.high_water());
        Some(sections.iter().map(|section| blocks(section).saturating_sub(section.pinned_blocks)).sum())
    }

    /// The names of the sections, in the order of their numbers.
    #[must_use]
    pub fn section_names(&self) -> Vec<String> {
        self.sections.iter().map(|section| section.place.name.clone()).collect()
    }

    pub(super) fn explain(&self, block: u64) -> String {
        if let Some((first, copy)) = self.map.find(block) {
            let fast = copy.fast + (block - first);
            let section = self.sections.iter().find(|section| section.holds(fast, 1));
            let name = section.map_or("", |section| section.place.name.as_str());
            let state = if self.collection.holds_any(fast..fast + 1) {
                "collected, to be written with its stripe"
            } else if copy.pinned {
                "pinned"
            } else if section.is_some_and(|section| section.heat(first, copy.placed).1) {
                "hot"
            } else {
                "may go when room is needed"
            };
            return format!("copied to section `{name}`: {state}");
        }
        match self.admission.last_refusal(block) {
            Some(refusal) => format!("not copied: {}", refusal.describe()),
            None => "not copied: nobody asked for it of late".to_string(),
        }
    }
}
