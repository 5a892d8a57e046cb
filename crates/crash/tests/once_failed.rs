//! States that once broke a promise, by name: they are judged again.

use onode_crash::task::replay;

/// What each of them showed.
const ONCE_FAILED: [(&str, &str); 9] = [
    ("back.triple.compressed-scm-4k.48028:802:5", "a rewritten file that found no room was empty after its close"),
    ("back.full.encrypted-scm-4k.1000:5735:30", "the same with much behind it"),
    ("back.brim.encrypted-tier-alone.1000", "a sync was refused for what had been promised"),
    ("back.brim.tx-chips.4242", "hidden objects of a transaction that was refused stayed on a full device"),
    ("object.remade.snap-tiny.4242:8750:5", "of two changes of a clone the second was refused, the first not durable"),
    ("object.read.pool-nandsim.1000:4717:45056:1323:1", "an access time was older than one that a sync covered"),
    (
        "object.failing.parity-bare.4242:583:2",
        "a journal that went on elsewhere after a failure was taken for a later one",
    ),
    ("object.failing.parity-bare.4242:352:6:43:2", "the same after a second cut"),
    (
        "object.failing.beside-parity.1000:474:12291:9:12289",
        "a memory two superblocks ahead was refused, and believed by the next mount",
    ),
];

#[test]
fn what_once_failed_keeps_its_promises() {
    for (spec, what) in ONCE_FAILED {
        let (story, verdict) = replay(&spec.parse().unwrap()).unwrap();
        assert!(verdict.is_ok(), "{spec}: {what}: {verdict:?}\n{story}");
    }
}
