//! Power cuts on flash, at every operation, while wrapped content is rewritten and cut.

mod common;

use common::cuts::{Wrap, run};
use common::vault::Vault;
use onode_object::Compression;
use onode_services::Compressed;
use std::sync::Arc;

fn cut_at_every_operation(wrap: Wrap<'_>) {
    let mut judged = 0;
    for seed in 1..4 {
        judged += run(wrap, seed, 40).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    assert!(judged > 1000, "only {judged} cuts");
}

#[test]
fn compressed_flash_is_cut_at_every_operation() {
    cut_at_every_operation(&|flash| Box::new(Compressed::new(flash, Compression::Fast)));
}

#[test]
fn encrypted_flash_is_cut_at_every_operation() {
    let vault = Vault::new();
    cut_at_every_operation(&|flash| Box::new(vault.open(&flash)));
}

#[test]
fn compressed_and_encrypted_flash_is_cut_at_every_operation() {
    let vault = Vault::new();
    cut_at_every_operation(&|flash| Box::new(Compressed::new(Arc::new(vault.open(&flash)), Compression::Fast)));
}
