//! What the text of the figures shows, and what it leaves out.

use super::super::Figures;
use std::collections::BTreeMap;

fn figures() -> Figures {
    let device = [
        ("big.blocks_read", 7),
        ("big.discards", 0),
        ("fast.refused.first_hit", 3),
        ("commits", 5),
        ("free_bytes", 2048),
    ];
    Figures {
        spec: "tier:a,b".to_owned(),
        read_only: None,
        health: Default::default(),
        total_bytes: 1 << 20,
        available_bytes: 1 << 19,
        objects: 3,
        files: BTreeMap::from([("dirty_bytes".to_owned(), 4096), ("changes".to_owned(), 0)]),
        requests: BTreeMap::new(),
        settings: BTreeMap::new(),
        device: device.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        tags: Vec::new(),
        segments_cleaned: 0,
        bytes_moved: 0,
        bytes_written: 0,
        write_amplification: None,
        policies: BTreeMap::from([("victim".to_owned(), "greedy".to_owned())]),
        erases: None,
        costliest_objects: Vec::new(),
        wear: Vec::new(),
        ram: BTreeMap::new(),
        segments: BTreeMap::new(),
        all: false,
    }
}

/// The lines of a text, with single spaces.
fn lines(figures: &Figures) -> Vec<String> {
    figures.to_string().lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn counters_stand_under_their_groups_and_those_at_zero_are_counted() {
    let mut figures = figures();
    let text = lines(&figures).join("\n");
    let expected = "\n\nfile system\ndirty bytes 4.0 KiB\n\ndevice\nvictim greedy\ncommits 5\nfree bytes 2.0 KiB\n\nbig\nblocks read 7\n\
        \nfast refused\nfirst hit 3\n\n2 counters are 0 since the volume was opened (--all shows them)";
    assert!(text.ends_with(expected), "{text}");
    figures.all = true;
    let all = lines(&figures);
    assert!(all.contains(&"discards 0".to_owned()) && all.contains(&"changes 0".to_owned()), "{all:?}");
    assert!(!all.iter().any(|line| line.contains("--all")), "{all:?}");
}

#[test]
fn a_device_that_does_not_wear_has_no_table_of_it() {
    let text = figures().to_string();
    assert!(!text.contains("wear") && !text.contains("pages for") && !text.contains("segments"), "{text}");
}

#[test]
fn what_is_wrong_stands_at_the_top() {
    let condition = onode::Condition::new("fast-disk-away", onode::Severity::Degraded, "it is away").remedy("look");
    let health = onode::Health::new(vec![condition]);
    let text = Figures { health: health.into(), ..figures() }.to_string();
    assert_eq!(text.lines().nth(1), Some("DEGRADED fast-disk-away: it is away; look"), "{text}");
}
