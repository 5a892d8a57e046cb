//! A small exploration of every level, and states that once broke a promise.

use onode_crash::files::cases::CASES;
use onode_crash::kind::geometry::MEMORY_SHAPES;
use onode_crash::task::spec::Spec;
use onode_crash::task::{LEVELS, explore, replay, workloads};

#[test]
fn no_promise_is_broken_in_a_few_states_of_every_workload() {
    for level in LEVELS {
        for workload in workloads(level).into_iter().filter(|name| !matches!(*name, "churn" | "clean")) {
            let spec: Spec = format!("{level}.{workload}.spare.3").parse().unwrap();
            let outcome = explore(&spec.run, 60).unwrap().unwrap_or_else(|violation| panic!("{spec}: {violation}"));
            assert_eq!(outcome.found, [], "{spec}");
            assert!(outcome.states > 0, "{spec}");
        }
    }
}

#[test]
fn no_promise_is_broken_in_a_few_states_on_memory() {
    for level in LEVELS {
        for workload in workloads(level).into_iter().filter(|name| !matches!(*name, "failing" | "churn" | "clean")) {
            let spec: Spec = format!("{level}.{workload}.scm-4k.3").parse().unwrap();
            let outcome = explore(&spec.run, 60).unwrap().unwrap_or_else(|violation| panic!("{spec}: {violation}"));
            assert_eq!(outcome.found, [], "{spec}");
            assert!(outcome.states > 0, "{spec}");
        }
    }
}

#[test]
fn no_promise_of_any_mode_is_broken_in_a_few_states() {
    for shape in MEMORY_SHAPES.iter().filter(|shape| !shape.has_level("back")) {
        for workload in ["pair", "triple", "random", "full"] {
            for seed in [3, 4] {
                let spec: Spec = format!("through.{workload}.{}.{seed}", shape.name).parse().unwrap();
                let outcome =
                    explore(&spec.run, 120).unwrap().unwrap_or_else(|violation| panic!("{spec}: {violation}"));
                assert_eq!(outcome.found, [], "{spec}");
                assert!(outcome.states > 0, "{spec}");
            }
        }
    }
}

#[test]
fn sequences_that_broke_other_file_systems_on_memory_break_nothing() {
    for (name, _) in CASES {
        for shape in MEMORY_SHAPES {
            for level in ["through", "back"].into_iter().filter(|level| shape.has_level(level)) {
                let spec: Spec = format!("{level}.{name}.{}.1", shape.name).parse().unwrap();
                let outcome =
                    explore(&spec.run, 300).unwrap().unwrap_or_else(|violation| panic!("{spec}: {violation}"));
                assert_eq!(outcome.found, [], "{spec}");
                assert!(outcome.states > 5, "{spec}: {} states", outcome.states);
            }
        }
    }
}

#[test]
fn states_that_broke_a_promise_once_do_so_no_more() {
    for line in [
        // Sequence numbers of a lost session.
        "object.buffered.tiny.1:4:0",
        "object.cycles.tiny.1:18:0",
        // A record that crosses the end of a journal segment.
        "object.attributes.tiny.1:50:0",
        // Sequence numbers of a recovery that was cut.
        "through.random.chips.4:12:7:7:4",
        "back.full.tiny.2:69:7:2:8",
        // A recovery that wrote where the chain says the journal goes on.
        "object.failing.chips.4:27:3:8:3",
        // Segments that one session after the other left held, until a recovery found none to write
        // to.
        "object.cycles.long.5000:113:2:6:10",
        "object.cycles.wide.5000:128:8:5:9",
        "object.cycles.huge.5000:91:4:5:0",
        // Content changed that a recovery of memory would still check.
        "object.read.scm-4k.1:4533:1:620:24",
        "object.full.scm-4k.1:19225:2:1636:36",
        "object.churn.scm-sync.1:15982:9",
        // A record that a mount did not accept, and that became sound by what was written after it.
        "through.pair.scm-4k.61:792:23:767:112",
        "through.pair.scm-4k.119:789:71:732:14",
        // A mode that waits with the content of its file.
        "back.triple.tiny.79:3:6:8:3",
        // Many files removed at once from two full disks: each was counted as if it split a node.
        "object.brim.tier-alone.4:366:6",
        "object.brim.tier-alone.4:499:0:4:8",
    ] {
        let spec: Spec = line.parse().unwrap();
        let (story, verdict) = replay(&spec).unwrap();
        assert_eq!(verdict, Ok(()), "{spec}\n{story}");
    }
}

#[test]
fn snapshots_keep_their_promises_in_a_few_states() {
    for shape in ["snap-tiny", "snap-beside-tiny", "snap-tier-safe"] {
        for workload in ["object.mix", "object.cycles", "back.random"] {
            let spec: Spec = format!("{workload}.{shape}.3").parse().unwrap();
            let outcome = explore(&spec.run, 60).unwrap().unwrap_or_else(|violation| panic!("{spec}: {violation}"));
            assert_eq!(outcome.found, [], "{spec}");
            assert!(outcome.states > 0, "{spec}");
        }
    }
}
