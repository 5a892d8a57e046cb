//! Allocation in sections, against a model.

use onode_base::Prng;
use onode_tier::fast::extent::exact::Exact;
use onode_tier::fast::extent::paper::Paper;
use onode_tier::fast::extent::{Allocate, Run};
use std::collections::BTreeSet;

const BLOCKS: u64 = 2048;

/// Every scheme with small and large extents, with and without stripes.
fn sections() -> Vec<(String, Box<dyn Allocate>)> {
    let mut all: Vec<(String, Box<dyn Allocate>)> = Vec::new();
    for extent in [4, 16, 128] {
        for stripe in [0, 64] {
            all.push((format!("exact {extent} {stripe}"), Box::new(Exact::new(BLOCKS, extent, stripe))));
        }
        all.push((format!("paper {extent}"), Box::new(Paper::new(BLOCKS, extent, 16))));
    }
    all
}

struct Model {
    name: String,
    section: Box<dyn Allocate>,
    held: BTreeSet<u64>,
    files: Vec<Vec<Run>>,
}

impl Model {
    fn hold(&mut self, run: Run) {
        for block in run.start..run.end() {
            assert!(block < BLOCKS && self.held.insert(block), "{}: block {block} is handed out twice", self.name);
        }
    }

    fn create(&mut self, blocks: u32) {
        let room = self.section.room();
        let Some(runs) = self.section.allocate(blocks) else {
            // Segments want one hole; exact runs are divided, if not without end.
            let most = if self.name.starts_with("paper") { 1 } else { 16 };
            assert!(u64::from(blocks) > room || blocks > most, "{}: {blocks} of {room} refused", self.name);
            return;
        };
        assert_eq!(runs.iter().map(|run| run.blocks).sum::<u32>(), blocks, "{}", self.name);
        runs.iter().for_each(|run| self.hold(*run));
        self.files.push(runs);
    }

    fn grow(&mut self, file: usize, blocks: u32) {
        let end = self.files[file].last().expect("a run").end();
        let granted = self.section.extend(end, blocks);
        assert!(granted <= blocks);
        if granted > 0 {
            let run = Run { start: end, blocks: granted };
            self.hold(run);
            self.files[file].push(run);
        }
    }

    /// Gives back a run, or the end of it.
    fn give_back(&mut self, file: usize, prng: &mut Prng) {
        let run = self.files[file].pop().expect("a run");
        let kept = prng.below(u64::from(run.blocks)) as u32 * prng.below(2) as u32;
        let gone = Run { start: run.start + u64::from(kept), blocks: run.blocks - kept };
        self.section.free(gone);
        (gone.start..gone.end()).for_each(|block| assert!(self.held.remove(&block)));
        if kept > 0 {
            self.files[file].push(Run { blocks: kept, ..run });
        }
        if self.files[file].is_empty() {
            self.files.swap_remove(file);
        }
    }

    fn check(&self) {
        assert_eq!(self.section.used(), self.held.len() as u64, "{}", self.name);
        let unit = u64::from(self.section.unit_blocks());
        for number in 0..BLOCKS / unit {
            let live = self.held.range(number * unit..(number + 1) * unit).count() as u32;
            assert_eq!(self.section.live(number as u32), live, "{}: unit {number}", self.name);
        }
        assert!(self.section.room() + self.section.used() <= BLOCKS, "{}", self.name);
    }

    /// All of it, given back, can be handed out as before.
    fn empty(&mut self) {
        for runs in std::mem::take(&mut self.files) {
            runs.into_iter().for_each(|run| self.section.free(run));
        }
        self.held.clear();
        self.section.seal(0);
        assert_eq!((self.section.used(), self.section.room()), (0, BLOCKS), "{}", self.name);
        for _ in 0..BLOCKS / u64::from(self.section.unit_blocks()) {
            let runs = self.section.allocate(self.section.unit_blocks()).expect("a clean unit");
            runs.into_iter().for_each(|run| self.hold(run));
        }
        assert_eq!(self.section.allocate(1), None, "{}", self.name);
    }
}

#[test]
fn no_block_is_handed_out_twice_and_all_that_is_given_back_is_found_again() {
    for seed in 0..4 {
        for (name, section) in sections() {
            let mut model = Model { name, section, held: BTreeSet::new(), files: Vec::new() };
            let mut prng = Prng::new(seed);
            for step in 0..3000 {
                let file = prng.below(model.files.len() as u64) as usize;
                match prng.below(10) {
                    0..5 => {
                        let most = if prng.chance(1, 20) { 300 } else { 10 };
                        model.create(1 + prng.below(most) as u32);
                    }
                    5 if !model.files.is_empty() => model.grow(file, 1 + prng.below(8) as u32),
                    6 if step % 50 == 0 => model.section.seal(prng.below(3) as usize),
                    7..10 if !model.files.is_empty() => model.give_back(file, &mut prng),
                    _ => {}
                }
                if step % 100 == 0 {
                    model.check();
                }
            }
            model.check();
            model.empty();
        }
    }
}

#[test]
fn a_section_that_is_built_from_what_is_in_use_hands_out_the_rest() {
    for ((name, mut before), (_, mut after)) in sections().into_iter().zip(sections()) {
        let mut prng = Prng::new(9);
        let mut held = BTreeSet::new();
        for _ in 0..200 {
            for run in before.allocate(1 + prng.below(9) as u32).unwrap_or_default() {
                if prng.chance(1, 2) {
                    before.free(run);
                } else {
                    assert!(after.take(run), "{name}");
                    assert!(!after.take(run), "{name}: taken twice");
                    held.extend(run.start..run.end());
                }
            }
        }
        assert_eq!(after.used(), held.len() as u64, "{name}");
        assert!(!after.take(Run { start: BLOCKS - 1, blocks: 2 }), "{name}");
        assert!(!after.take(Run { start: u64::MAX, blocks: 2 }), "{name}");
        while let Some(runs) = after.allocate(1) {
            runs.iter().for_each(|run| assert!(held.insert(run.start), "{name}"));
        }
    }
}

#[test]
fn stripes_are_filled_from_their_first_block_to_their_last() {
    let mut section = Exact::new(BLOCKS, 4, 64);
    let mut next = 0;
    for blocks in [1, 7, 2, 64, 30, 64, 64] {
        for run in section.allocate(blocks).expect("room") {
            assert_eq!(run.start, next);
            next = run.end();
        }
    }
    // Half of a stripe given back is no room yet; all of it is.
    let before = section.room();
    section.free(Run { start: 0, blocks: 32 });
    assert_eq!(section.room(), before);
    section.free(Run { start: 32, blocks: 32 });
    assert_eq!(section.room(), before + 64);
}

#[test]
fn the_first_file_of_a_shared_extent_can_go_without_the_others() {
    // The paper calls an extent clean when its first segment is free, and writes over what is
    // behind it.
    let mut section = Paper::new(64, 64, 16);
    let first = section.allocate(1).expect("room");
    let second = section.allocate(5).expect("room");
    section.free(first[0]);
    let mut held: BTreeSet<u64> = (second[0].start..second[0].end()).collect();
    while let Some(runs) = section.allocate(1) {
        runs.iter().for_each(|run| assert!(held.insert(run.start)));
    }
    assert_eq!(section.allocate(64), None);
}

#[test]
fn segments_have_the_bits_of_the_papers_table() {
    // Table 3 counts two bits for each map of 16, 64, 256 and 512 KiB: 5, 7 + 5, 9 + 7 and 10 + 8
    // maps.
    let maps = [16, 64, 256, 512].map(|blocks| Paper::new(1 << 20, blocks, 16).bits_per_extent() / 2);
    assert_eq!(maps, [5, 12, 16, 18]);
}
