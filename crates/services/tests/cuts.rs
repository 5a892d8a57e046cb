//! Power cuts on flash, at every operation, while compressed content is rewritten and cut.

mod common;

#[test]
fn flash_is_cut_at_every_operation() {
    let mut judged = 0;
    for seed in 1..4 {
        judged += common::cuts::run(seed, 40).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    assert!(judged > 1000, "only {judged} cuts");
}
