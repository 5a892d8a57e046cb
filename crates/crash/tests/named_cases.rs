//! The sequences that broke other file systems on byte-addressable memory, each by its number in
//! the catalogue: cut everywhere, on every shape of memory, in both write modes.
//! `crates/devices/scm/tests/named_cases.rs` has those that are no sequence of calls.

use onode_crash::kind::geometry::memory_by_name;
use onode_crash::task::spec::RunName;
use onode_crash::task::{Media, explore};

/// So many states of each run.
const STATES: u64 = 120;

fn no_cut_breaks(workload: &str) {
    for shape in Media::Scm.shapes() {
        let memory = memory_by_name(&shape).expect("a shape of memory");
        for level in ["through", "back"].into_iter().filter(|level| memory.has_level(level)) {
            let run = RunName { level: level.into(), workload: workload.into(), shape: shape.clone(), seed: 43 };
            let outcome = explore(&run, STATES).unwrap_or_else(|why| panic!("{run}: {why}"));
            let outcome = outcome.unwrap_or_else(|violation| panic!("{run}: {violation}"));
            assert!(outcome.found.is_empty(), "{run}: {:?}", outcome.found);
            assert!(outcome.states > 0, "{run}: {} states", outcome.states);
        }
    }
}

#[test]
fn case_19_a_rename_changed_its_target_in_place() {
    no_cut_breaks("rename-over");
}

#[test]
fn case_20_a_log_entry_of_a_rename_lacked_the_parent() {
    no_cut_breaks("rename-directory");
}

#[test]
fn case_21_a_link_count_was_changed_in_place() {
    no_cut_breaks("link-count");
}

#[test]
fn case_22_two_descriptors_and_the_size_of_the_wrong_one() {
    no_cut_breaks("two-descriptors");
}

#[test]
fn case_23_blocks_of_a_truncation_were_counted_twice() {
    no_cut_breaks("truncate-allocate");
}

#[test]
fn case_27_truncations_were_replayed_before_there_was_an_allocator() {
    no_cut_breaks("truncate-last");
}

#[test]
fn case_28_and_29_the_tail_of_an_unaligned_write_was_not_flushed() {
    no_cut_breaks("unaligned-tail");
}

#[test]
fn an_overwrite_without_a_record_is_not_undone_by_a_recovery() {
    no_cut_breaks("overwrite-after-zero");
}

#[test]
fn case_31_an_overwrite_was_not_atomic() {
    no_cut_breaks("atomic-overwrite");
}

#[test]
fn case_43_memory_becomes_a_file_and_memory_again() {
    no_cut_breaks("memory-to-file");
}

#[test]
fn case_43_a_kept_pointer_and_a_dead_process() {
    no_cut_breaks("memory-of-the-dead");
}
