//! Some damaged images of every medium.

use onode_crash::damage::{DamagePlan, line, run};

fn nothing_is_silent(medium: &str) {
    let plan =
        DamagePlan { medium: medium.into(), seed: 3, first: 0, images: 300, jobs: 2, most_violations: 3, keep: None };
    let outcome = run(&plan).unwrap();
    let first = outcome.violations.first();
    let first = first.map(|(image, what, why)| format!("{}\n{what}\n{why}", line(&plan, *image)));
    assert_eq!(first, None);
    assert_eq!(outcome.images, 300);
    assert!(outcome.told > 20 && outcome.opened > 50 && outcome.repaired > 10, "{outcome:?}");
    assert!(outcome.beyond_repair < 10, "{outcome:?}");
}

fn is_mended(medium: &str, image: u64) {
    let plan =
        DamagePlan { medium: medium.into(), seed: 1, first: image, images: 1, jobs: 1, most_violations: 1, keep: None };
    let outcome = run(&plan).unwrap();
    assert_eq!(outcome.violations.first().map(|(_, what, why)| format!("{what}\n{why}")), None);
    assert_eq!(outcome.repaired, 1);
}

/// A flash that was replaced by the one of a session ago: repairs changed nothing, for the flash
/// agrees with itself, and the memory beside it said for ever that something is missing.
#[test]
fn a_memory_that_knows_more_than_its_flash_is_given_up_with_consent() {
    is_mended("beside", 308);
}

/// A flipped bit in the attributes of the settings: no name was found any more.
#[test]
fn lost_settings_of_a_volume_in_memory_are_made_anew() {
    is_mended("scm", 637);
}

#[test]
fn damage_of_flash_is_told() {
    nothing_is_silent("nand");
}

#[test]
fn damage_of_flash_and_its_memory_is_told() {
    nothing_is_silent("beside");
}

#[test]
fn damage_of_memory_is_told() {
    nothing_is_silent("scm");
}

#[test]
fn damage_of_two_disks_is_told() {
    nothing_is_silent("tier");
}
