//! Transactions of users across cuts of power, at every operation of a chip and at every call of a
//! device: all of each or nothing, and nothing hidden is left.

use crate::common::cuts::cut_at_every_operation;
use crate::common::transacting::Transacting;
use onode_object::Compression;
use onode_services::Compressed;
use std::sync::Arc;

#[test]
fn transactions_that_fit_the_device_are_cut_at_every_operation() {
    cut_at_every_operation(&|flash| Box::new(Transacting::open(flash, 256 << 10).unwrap()));
}

#[test]
fn transactions_with_a_record_are_cut_at_every_operation() {
    cut_at_every_operation(&|flash| Box::new(Transacting::open(flash, 1 << 10).unwrap()));
}

#[test]
fn transactions_of_compressed_objects_are_cut_at_every_operation() {
    cut_at_every_operation(&|flash| {
        let compressed = Arc::new(Compressed::new(flash, Compression::Fast));
        Box::new(Transacting::open(compressed, 2 << 10).unwrap())
    });
}
