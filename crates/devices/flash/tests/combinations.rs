//! Every option with every other one: the conformance suite over a covering array of all pairs.
//!
//! Pairs of placement, victim and wear policy, extents, small-object buffer, bytes of a page, pages
//! of a block and spare area. Lists of policies are read from the device: a new one is covered by
//! being there. Each row runs the whole suite but for what takes long and differs little: of the
//! random histories one with crashes and one without, a different one in each row (every policy
//! meets all of them), tiny objects until nothing fits only where erase blocks, and with them the
//! smallest volume, are small, and full volumes of files only if asked for. What a combination is
//! known not to keep is named in [`Combination::deviation`] and counted as skipped.

use crate::common::{Flash, pairwise};
use onode_flash::policy::{Placement, VictimPolicy, WearPolicy};
use onode_flash::{MountOptions, Policies};
use onode_media::Geometry;
use onode_object::conformance::{Harness, Outcome, Report, cases, run};
use std::collections::BTreeSet;

const PAGE_BYTES: [u32; 4] = [512, 2048, 4096, 16_384];
const BLOCK_PAGES: [u32; 3] = [16, 64, 256];
/// A chip of larger blocks takes seconds to fill; one row has them all the same.
const BLOCK_BYTES_MAX: u32 = 1 << 20;
/// Where a volume of the fewest blocks holds so few tiny objects that filling it is quick.
const TINY_BLOCK_BYTES_MAX: u32 = 32 << 10;
/// Erase blocks up to this size give back their space to the percent.
const SPACE_BLOCK_BYTES_MAX: u32 = 128 << 10;
/// The random histories, by the ends of their names.
const HISTORIES: [&str; 3] = ["_one", "_two", "_three"];
/// What a stream gathers of its pages in some rows: less than by default.
const GATHERED_BYTES: usize = 2048;
/// So many figures of a row, the first, are policies: placement, victims, wear.
const POLICIES: usize = 3;
/// The figures of a row, in the order of [`Combination::of`].
const PAGE: usize = 5;
const BLOCK: usize = 6;

/// One row: the options and the shape of the chip.
struct Combination {
    options: MountOptions,
    shape: Geometry,
    what: String,
}

/// Whether full volumes of many files are asked for too.
fn asked_full() -> bool {
    std::env::var_os("ONODE_FULL_COMBINATIONS").is_some()
}

fn levels() -> [usize; 8] {
    [Placement::ALL.len(), VictimPolicy::ALL.len(), WearPolicy::ALL.len(), 2, 2, PAGE_BYTES.len(), BLOCK_PAGES.len(), 2]
}

fn allows(row: &[Option<usize>]) -> bool {
    match (row[PAGE], row[BLOCK]) {
        (Some(page), Some(block)) => PAGE_BYTES[page] * BLOCK_PAGES[block] <= BLOCK_BYTES_MAX,
        _ => true,
    }
}

/// The rows of the array, and the one with the largest blocks.
fn rows() -> Vec<Vec<usize>> {
    let mut rows = pairwise::rows(&levels(), &allows);
    rows.push(vec![0, 0, 0, 0, 0, PAGE_BYTES.len() - 1, BLOCK_PAGES.len() - 1, 1]);
    rows
}

/// Which of the histories each row runs: the one that most of its policies have not met yet.
fn histories(rows: &[Vec<usize>]) -> Vec<usize> {
    let mut met = BTreeSet::new();
    let mut all = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let policies = || row[..POLICIES].iter().copied().enumerate();
        let turns = (0..HISTORIES.len()).map(|turn| (number + turn) % HISTORIES.len());
        let missing = |history: usize| policies().filter(|policy| !met.contains(&(*policy, history))).count();
        let history = turns.max_by_key(|history| missing(*history)).unwrap_or(0);
        met.extend(policies().map(|policy| (policy, history)));
        all.push(history);
    }
    all
}

impl Combination {
    /// Row `number` of the array: every second pair of rows writes pages as they come, the others
    /// gather some first.
    fn of(number: usize, row: &[usize]) -> Self {
        let write_buffer_bytes =
            if number % 4 < 2 { GATHERED_BYTES } else { MountOptions::default().write_buffer_bytes };
        let (placement, victim, wear) = (Placement::ALL[row[0]], VictimPolicy::ALL[row[1]], WearPolicy::ALL[row[2]]);
        let (page_bytes, pages_per_block) = (PAGE_BYTES[row[PAGE]], BLOCK_PAGES[row[BLOCK]]);
        let spare_bytes = if row[7] == 0 { 0 } else { page_bytes / 32 };
        let options = MountOptions {
            policies: Policies { placement: Some(placement), victim: Some(victim), wear: Some(wear) },
            extents: row[3] == 0,
            small_object_buffer: row[4] == 0,
            write_buffer_bytes,
            ..MountOptions::default()
        };
        let switch = |level| if level == 0 { "on" } else { "off" };
        let what = format!(
            "{}, {}, wear {}, extents {}, small-object buffer {}, {pages_per_block} pages of {page_bytes}+{spare_bytes}",
            placement.name(),
            victim.name(),
            wear.name(),
            switch(row[3]),
            switch(row[4]),
        );
        Self { options, shape: Geometry { page_bytes, spare_bytes, pages_per_block, blocks: 0, chips: 1 }, what }
    }

    fn block_bytes(&self) -> u32 {
        self.shape.page_bytes * self.shape.pages_per_block
    }

    /// Why the device is known not to keep what a case asks under these options. Counted as
    /// skipped.
    fn deviation(&self, case: &str) -> Option<&'static str> {
        match case {
            "space::space_returns_over_many_cycles" | "space::half_the_space_returns"
                if self.block_bytes() > SPACE_BLOCK_BYTES_MAX =>
            {
                Some("a few large erase blocks: what is left over in one is more than the case grants")
            }
            _ => None,
        }
    }

    /// Runs the suite with the histories `history`.
    fn conform(&self, number: usize, history: usize) -> Report {
        eprintln!("combination {number}: {}", self.what);
        let make = |bytes: u64| -> Box<dyn Harness> { Box::new(Flash::with(self.shape, bytes, self.options)) };
        let mut report = Report::default();
        for case in cases() {
            let history = HISTORIES[history];
            let is_other_history = case.name.starts_with("differential::") && !case.name.ends_with(history);
            let is_large = self.block_bytes() > TINY_BLOCK_BYTES_MAX;
            // Full volumes take minutes in a row: `ONODE_FULL_COMBINATIONS` asks for them, as
            // scripts/soak does.
            let is_left_to_the_soak = case.name.starts_with("full::") && !asked_full();
            let is_other_size = is_large && case.name == "space::fill_with_tiny_objects";
            if is_other_history || is_other_size || is_left_to_the_soak {
                continue;
            }
            match self.deviation(case.name) {
                Some(why) => report.outcomes.push((case.name, Outcome::Skipped(why))),
                None => report.outcomes.extend(run(case.name, &make).outcomes),
            }
        }
        if !report.failed().is_empty() {
            eprintln!("combination {number} ({}) failed: {:?}", self.what, report.failed());
        }
        report
    }
}

/// Runs every second row, so that two can be under way.
fn conform(name: &str, first: usize) {
    let mut all = Report::default();
    let rows = rows();
    let histories = histories(&rows);
    let mut count = 0;
    for (number, row) in rows.iter().enumerate().skip(first).step_by(2) {
        all.outcomes.extend(Combination::of(number, row).conform(number, histories[number]).outcomes);
        count += 1;
    }
    all.assert_passed(&format!("{name}_of_{}_combinations", rows.len()));
    assert!(count >= rows.len() / 2);
}

#[test]
fn first_half_of_the_combinations() {
    conform("first_half", 0);
}

#[test]
fn second_half_of_the_combinations() {
    conform("second_half", 1);
}

#[test]
fn the_array_has_every_pair() {
    let rows = rows();
    let mut seen = BTreeSet::new();
    for row in &rows {
        for one in 0..row.len() {
            for other in one + 1..row.len() {
                seen.insert(((one, row[one]), (other, row[other])));
            }
        }
    }
    // All of them, those beyond the limit of allowed blocks too.
    assert_eq!(seen, pairwise::pairs(&levels(), &|_| true));
    let most = Placement::ALL.len() * VictimPolicy::ALL.len();
    assert!(rows.len() <= most + most / 4, "{} rows for {most} pairs of placement and victim", rows.len());
}

#[test]
fn every_policy_meets_every_history_by_name() {
    let rows = rows();
    let histories = histories(&rows);
    let cases: Vec<&str> = cases().iter().map(|case| case.name).collect();
    for history in HISTORIES {
        assert!(cases.iter().any(|name| name.starts_with("differential::") && name.ends_with(history)), "{history}");
    }
    let names: [Vec<&str>; POLICIES] = [
        Placement::ALL.iter().map(|one| one.name()).collect(),
        VictimPolicy::ALL.iter().map(|one| one.name()).collect(),
        WearPolicy::ALL.iter().map(|one| one.name()).collect(),
    ];
    for (column, names) in names.iter().enumerate() {
        for (policy, name) in names.iter().enumerate() {
            for (history, end) in HISTORIES.iter().enumerate() {
                let meets = |(number, row): (usize, &Vec<usize>)| row[column] == policy && histories[number] == history;
                assert!(rows.iter().enumerate().any(meets), "{name} does not meet the histories {end}");
            }
        }
    }
}
