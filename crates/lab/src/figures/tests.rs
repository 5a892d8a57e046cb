//! That a run measures every figure and tells what it did.

use super::*;
use std::collections::BTreeSet;

#[test]
fn a_quick_run_has_every_figure() {
    let options = Options { quick: true, ..Options::default() };
    let mut said = Vec::new();
    let report = measure(&options, &mut |what| said.push(what.to_owned())).expect("a run");
    assert!(said.len() >= 15, "{said:?}");
    assert_eq!(report.failures, [""; 0]);
    let names: BTreeSet<&str> = report.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names.len(), report.rows.len(), "a name stands for two rows");
    for part in [
        "PostMark write (built-in), op: programs",
        "PostMark table2 (built-in), lazy: reads",
        "random 4 KB rewrite, without spare",
        "to mount, clean, 16M, 10 % full",
        "to mount, worst of 2 cuts, 32M, 90 % full",
        "first 4 KB synced write after a mount: programs",
        "files of 500 B",
        "8 chips against 1",
        "the longest takes",
        "zipf over a third of the files of 16M, 40 % spare: most worn segment to the mean, static",
        "zipf, 40 % spare: distance of files to pages",
        "RAM of the device",
        "natural, 16M (the paper's medium): programs saved against no inode embedding (Table II)",
        "natural, 16M (the paper's medium): programs without either",
        "natural, 14M (half of it): segments cleaned saved against no small-object buffer (Table II)",
    ] {
        assert!(names.iter().any(|name| name.contains(part)), "{part} is missing in {names:?}");
    }
    assert!(report.rows.iter().all(|row| row.met.is_none() && row.reach.is_none()));
}

#[test]
fn a_folder_without_the_streams_is_named() {
    let options = Options { traces: Some("/nowhere".into()), quick: true, ..Options::default() };
    let error = measure(&options, &mut |_| ()).expect_err("no streams");
    assert!(error.to_string().contains("/nowhere/postmark-write-s42.txt.zst"), "{error}");
}

#[test]
fn bounds_are_judged_in_their_direction() {
    let most = Row::at_most("a".into(), 5_u64.into(), "pages", 5_u64.into());
    assert_eq!((most.reach, most.bound, most.met), (Some(Value::Count(5)), Some("at most"), Some(true)));
    assert_eq!(Row::at_most("a".into(), 6_u64.into(), "pages", 5_u64.into()).met, Some(false));
    let least = Row::at_least("a".into(), 6.5.into(), "times", 7.0.into());
    assert_eq!((least.reach, least.bound, least.met), (Some(Value::Ratio(7.0)), Some("at least"), Some(false)));
    assert_eq!(Row::at_least("a".into(), 7.0.into(), "times", 7.0.into()).met, Some(true));
    let report = FigureReport {
        device: "d".into(),
        quick: false,
        rows: vec![most, least],
        failures: vec!["it broke".into()],
        notes: Vec::new(),
    };
    let text = report.to_string();
    assert!(
        text.contains("<= 5  yes")
            && text.contains(">= 7.00  NO")
            && text.contains("FAILED: it broke")
            && text.ends_with("1 of 2 figures reached"),
        "{text}"
    );
}
