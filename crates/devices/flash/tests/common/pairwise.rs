//! Covering arrays: few rows in which every level of each factor meets every level of each other
//! one.
//!
//! A level is a number below the number of levels of its factor. Rows are made greedily: each
//! begins with a pair that no row has and takes the levels that bring most new pairs, among equals
//! the one that was taken least. The same factors give the same rows.

use std::collections::BTreeSet;

/// Two factors with a level each, the lower factor first.
type Pair = ((usize, usize), (usize, usize));

/// Rows that have every pair of levels which some row that `allows` accepts can have.
///
/// `allows` is asked about rows in which what is not chosen yet is `None`.
pub fn rows(levels: &[usize], allows: &dyn Fn(&[Option<usize>]) -> bool) -> Vec<Vec<usize>> {
    let mut open: BTreeSet<Pair> = pairs(levels, allows);
    let mut used: Vec<Vec<usize>> = levels.iter().map(|count| vec![0; *count]).collect();
    let mut rows = Vec::new();
    while let Some(&(first, second)) = open.first() {
        let mut row = vec![None; levels.len()];
        row[first.0] = Some(first.1);
        row[second.0] = Some(second.1);
        for factor in 0..levels.len() {
            if row[factor].is_none() {
                let mut best = None;
                for (level, taken) in used[factor].iter().enumerate() {
                    row[factor] = Some(level);
                    if allows(&row) {
                        let score = (gain(&row, factor, &open), usize::MAX - taken);
                        best = best.max(Some((score, usize::MAX - level)));
                    }
                }
                row[factor] = best.map(|(_, level)| usize::MAX - level);
            }
        }
        let row: Vec<usize> = row.into_iter().map(|level| level.expect("some level is allowed")).collect();
        for (factor, level) in row.iter().enumerate() {
            used[factor][*level] += 1;
        }
        let before = open.len();
        open.retain(|(one, other)| row[one.0] != one.1 || row[other.0] != other.1);
        assert!(open.len() < before, "a row brought nothing");
        rows.push(row);
    }
    rows
}

/// Every pair that is allowed.
pub fn pairs(levels: &[usize], allows: &dyn Fn(&[Option<usize>]) -> bool) -> BTreeSet<Pair> {
    let mut all = BTreeSet::new();
    for one in 0..levels.len() {
        for other in one + 1..levels.len() {
            for level in 0..levels[one] {
                for second in 0..levels[other] {
                    let mut row = vec![None; levels.len()];
                    (row[one], row[other]) = (Some(level), Some(second));
                    if allows(&row) {
                        all.insert(((one, level), (other, second)));
                    }
                }
            }
        }
    }
    all
}

/// New pairs that the level of `factor` makes with the others of the row.
fn gain(row: &[Option<usize>], factor: usize, open: &BTreeSet<Pair>) -> usize {
    let Some(level) = row[factor] else { return 0 };
    let chosen = row.iter().enumerate().filter_map(|(other, second)| Some((other, (*second)?)));
    let new = |other: (usize, usize)| {
        let pair = if other.0 < factor { (other, (factor, level)) } else { ((factor, level), other) };
        other.0 != factor && open.contains(&pair)
    };
    chosen.filter(|other| new(*other)).count()
}
