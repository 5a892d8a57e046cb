//! Random histories of content that compresses, against the device in memory that does not, not
//! only at the end of each but between one transaction and the next.

mod common;

use common::history::History;
use onode_object::Compression;

fn steps() -> u64 {
    std::env::var("ONODE_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(600)
}

#[test]
fn fast() {
    (1..5).for_each(|seed| History::new(seed, Compression::Fast).run(steps()));
}

#[test]
fn small() {
    History::new(11, Compression::Small).run(steps() / 2);
}

#[test]
fn auto() {
    (21..23).for_each(|seed| History::new(seed, Compression::Auto).run(steps()));
}

#[test]
fn by_hints_alone() {
    History::new(31, Compression::Never).run(steps());
}
