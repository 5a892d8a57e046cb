//! Power cuts on flash, at every operation, while wrapped content is rewritten and cut.

use crate::common::cuts::cut_at_every_operation;
use crate::common::keyed::Keyed;
use crate::common::vault::Vault;
use onode_object::Compression;
use onode_services::Compressed;
use std::sync::Arc;

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

#[test]
fn authenticated_flash_is_cut_at_every_operation() {
    let vault = Vault::new();
    cut_at_every_operation(&|flash| Box::new(vault.open_authenticated(&flash)));
}

#[test]
fn flash_with_a_key_of_a_directory_is_cut_at_every_operation() {
    let vault = Vault::new();
    cut_at_every_operation(&|flash| Box::new(Keyed::open(&vault, &flash)));
}
