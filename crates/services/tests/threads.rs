//! Readers beside a writer.

mod common;

#[test]
fn nobody_reads_a_mixture() {
    common::readers::run(2000).unwrap();
}
