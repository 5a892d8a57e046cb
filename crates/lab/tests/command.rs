//! The command of the lab as a person uses it.

use std::process::{Command, Output};

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onode-lab")).args(arguments).current_dir("/").output().expect("it starts")
}

fn succeeds(arguments: &[&str]) -> String {
    let output = lab(arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn fails(arguments: &[&str], code: i32) -> String {
    let output = lab(arguments);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn a_replay_reports_what_the_device_did() {
    let report = succeeds(&["--json", "replay", "zipf:fill=20,operations=200", "--wear", "static"]);
    assert!(report.contains("wear=static") && report.contains("segment_wear"), "{report}");
}

#[test]
fn figures_stand_beside_those_to_reach() {
    let output = lab(&["--json", "replay", "--figures", "--quick"]);
    assert_eq!(output.status.code(), Some(0));
    let rows = String::from_utf8(output.stdout).expect("UTF-8");
    for key in ["rows", "name", "value", "unit", "reach", "met"] {
        assert!(rows.contains(&format!("\"{key}\": ")), "{rows}");
    }
    let progress = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(progress.contains("mount of 32M, 90 % full"), "{progress}");
    fails(&["replay", "--figures", "--quick", "--traces", "/nowhere"], 20);
    fails(&["replay", "--figures", "largefile:write"], 2);
    fails(&["replay", "--traces", "/nowhere", "largefile:write"], 2);
    fails(&["replay"], 2);
}

#[test]
fn recordings_are_found_from_anywhere() {
    let drawn = succeeds(&["tier", "--figure", "13"]);
    assert!(drawn.contains("MB/s"), "{drawn}");
    let said = fails(&["tier", "--figure", "13", "--recordings", "/nowhere"], 20);
    assert!(said.starts_with("onode-lab: ") && said.contains("/nowhere") && said.contains("hint: "), "{said}");
    let json = fails(&["--json", "tier", "--record"], 2);
    assert!(json.starts_with("{\"error\":"), "{json}");
}
