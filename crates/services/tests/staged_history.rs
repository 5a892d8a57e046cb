//! Random histories of several transactions and plain changes beside each other, and readers beside
//! large commits.

use crate::common;

#[test]
fn transactions_in_memory_are_as_if_one_followed_another() {
    common::staged_history::run(8 << 20);
}

#[test]
fn transactions_with_hidden_objects_and_records_are_as_if_one_followed_another() {
    common::staged_history::run(3 << 10);
}

#[test]
fn a_read_beside_a_large_commit_shows_all_of_it_or_nothing() {
    common::staged_gate::run(60).unwrap();
}
