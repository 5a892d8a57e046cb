//! Random histories of content, compressed or encrypted, against the device in memory that is
//! neither, not only at the end of each but between one transaction and the next.

use crate::common::history::{History, Wrap};
use crate::common::vault::Vault;
use onode_object::Compression;
use onode_services::Compressed;
use std::sync::Arc;

fn steps() -> u64 {
    std::env::var("ONODE_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(600)
}

fn compressed(mode: Compression) -> Wrap {
    Box::new(move |inner| Box::new(Compressed::new(Arc::clone(inner), mode)))
}

fn encrypted() -> Wrap {
    let vault = Vault::new();
    Box::new(move |inner| Box::new(vault.open(inner)))
}

fn both() -> Wrap {
    let vault = Vault::new();
    Box::new(move |inner| Box::new(Compressed::new(Arc::new(vault.open(inner)), Compression::Fast)))
}

/// A history in which less is stored after some steps than without the wrapper.
fn shrinks(seed: u64, mode: Compression, steps: u64) {
    let smaller = History::new(seed, compressed(mode)).run(steps);
    assert!(smaller > steps / 20, "content was smaller only after {smaller} steps");
}

#[test]
fn fast() {
    (1..5).for_each(|seed| shrinks(seed, Compression::Fast, steps()));
}

#[test]
fn small() {
    shrinks(11, Compression::Small, steps() / 2);
}

#[test]
fn auto() {
    (21..23).for_each(|seed| shrinks(seed, Compression::Auto, steps()));
}

#[test]
fn by_hints_alone() {
    shrinks(31, Compression::Never, steps());
}

#[test]
fn of_encrypted_content() {
    (41..45).for_each(|seed| _ = History::new(seed, encrypted()).run(steps()));
}

#[test]
fn of_compressed_and_encrypted_content() {
    (51..53).for_each(|seed| _ = History::new(seed, both()).run(steps()));
}
