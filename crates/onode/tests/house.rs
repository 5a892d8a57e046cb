//! Rules of the house that no compiler checks: floors, file sizes, plain text, no local paths.

mod tree;

use std::collections::BTreeMap;
use std::fs;
use tree::{crate_folders, root, rust_files};

/// Crates by floor, the ground first (DESIGN section 1). A crate imports only from floors below its
/// own.
const FLOORS: [&[&str]; 9] = [
    &["onode-base"],
    &["onode-codec", "onode-media", "onode-object"],
    &["onode-engine"],
    &["onode-flash", "onode-scm", "onode-tier", "onode-spaces", "onode-fs"],
    &["onode-services"],
    &["onode", "onode-heap-derive", "onode-ring"],
    &["onode-fuse", "onode-heap", "onode-console"],
    &["onode-lab", "onode-crash", "onode-capi"],
    &["onode-cli"],
];

/// What a crate may import beside what lies on lower floors, or must not although it lies lower.
const FORBIDDEN: [(&str, &str); 24] = [
    // The lab and the explorer are no part of what people install.
    ("onode-cli", "onode-lab"),
    ("onode-cli", "onode-crash"),
    ("onode-media", "onode-object"),
    // What devices share knows no medium, no codec; a file system knows no device.
    ("onode-engine", "onode-media"),
    ("onode-engine", "onode-codec"),
    ("onode-fs", "onode-engine"),
    ("onode-object", "onode-media"),
    ("onode-fs", "onode-media"),
    ("onode-fs", "onode-flash"),
    ("onode-flash", "onode-fs"),
    ("onode-fuse", "onode-flash"),
    ("onode-fs", "onode-scm"),
    ("onode-scm", "onode-fs"),
    ("onode-scm", "onode-flash"),
    ("onode-fuse", "onode-scm"),
    ("onode-fs", "onode-tier"),
    ("onode-tier", "onode-fs"),
    ("onode-tier", "onode-flash"),
    ("onode-fuse", "onode-tier"),
    // A service is the same over every device, and knows no file.
    ("onode-services", "onode-flash"),
    ("onode-services", "onode-scm"),
    ("onode-services", "onode-tier"),
    ("onode-services", "onode-media"),
    ("onode-services", "onode-fs"),
];

fn manifests() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for folder in crate_folders() {
        let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")).unwrap();
        let mut section = "";
        let mut imports = Vec::new();
        for line in text.lines() {
            if line.starts_with('[') {
                section = line;
            } else if section == "[dependencies]"
                && let Some((import, _)) = line.split_once(['.', ' '])
                && import.starts_with("onode")
            {
                imports.push(import.to_string());
            }
        }
        found.insert(name.trim_end_matches('"').to_string(), imports);
    }
    found
}

#[test]
fn no_crate_imports_upward() {
    let floor = |name: &str| FLOORS.iter().position(|floor| floor.contains(&name));
    let manifests = manifests();
    assert!(manifests.len() >= 10, "only {} crates were found", manifests.len());
    for (name, imports) in &manifests {
        let own = floor(name).unwrap_or_else(|| panic!("{name} has no floor: add it to FLOORS"));
        for import in imports {
            let theirs = floor(import).unwrap_or_else(|| panic!("{import} has no floor: add it to FLOORS"));
            assert!(theirs < own, "{name} (floor {own}) imports {import} (floor {theirs})");
            assert!(!FORBIDDEN.contains(&(name, import)), "{name} must not know {import}");
        }
    }
}

#[test]
fn files_hold_one_concept_and_say_what_they_are() {
    let mut all = Vec::new();
    rust_files(&root().join("crates"), &mut all);
    assert!(all.len() > 50, "only {} source files were found", all.len());
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        let is_test = path.to_string_lossy().contains("tests");
        assert!(is_test || lines <= 600, "{} has {lines} lines", path.display());
        assert!(text.is_ascii(), "{} has characters outside ASCII", path.display());
        assert!(text.starts_with("//!"), "{} does not say what it is", path.display());
    }
}

/// Where cargo does not look for tests by itself, a file that nobody names is run by nothing.
#[test]
fn every_file_of_tests_is_a_part_of_a_program() {
    let (mut seen, mut lost) = (0, Vec::new());
    for folder in crate_folders() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        if !manifest.contains("autotests = false") {
            continue;
        }
        let main = fs::read_to_string(folder.join("tests/main.rs")).unwrap();
        for path in fs::read_dir(folder.join("tests")).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let Some(module) = name.strip_suffix(".rs") else { continue };
            seen += 1;
            let is_module = main.lines().any(|line| line == format!("mod {module};"));
            if !is_module && !manifest.contains(&format!("path = \"tests/{name}\"")) {
                lost.push(path.strip_prefix(root().join("crates")).unwrap().to_path_buf());
            }
        }
    }
    assert!(seen > 100, "only {seen} files of tests were found");
    assert!(lost.is_empty(), "neither tests/main.rs nor Cargo.toml name {lost:#?}");
}

#[test]
fn ground_crates_work_without_an_operating_system() {
    for (name, folder) in [
        ("base", "crates/base"),
        ("object", "crates/object"),
        ("codec", "crates/codec"),
        ("engine", "crates/engine"),
        ("media", "crates/media"),
        ("spaces", "crates/spaces"),
        ("flash", "crates/devices/flash"),
        ("tier", "crates/devices/tier"),
    ] {
        let text = fs::read_to_string(root().join(folder).join("src/lib.rs")).unwrap();
        assert!(text.contains("#![no_std]"), "{name} is not no_std");
        // Real media need the kernel, and then a few calls of it that have no safe face.
        let forbids = if name == "media" {
            "#![cfg_attr(not(feature = \"std\"), forbid(unsafe_code))]\n#![deny(unsafe_code)]"
        } else {
            "#![forbid(unsafe_code)]"
        };
        assert!(text.contains(forbids), "{name} does not forbid unsafe code");
    }
}

#[test]
fn media_hold_unsafe_code_only_where_they_call_the_kernel() {
    let mut all = Vec::new();
    rust_files(&root().join("crates/media"), &mut all);
    let mut unsafe_files: Vec<String> = all
        .iter()
        .filter(|path| fs::read_to_string(path).unwrap().contains("allow(unsafe_code"))
        .map(|path| path.strip_prefix(root().join("crates/media/src/real")).unwrap().to_string_lossy().into_owned())
        .collect();
    unsafe_files.sort();
    assert_eq!(
        unsafe_files,
        [
            "host/in_flight.rs",
            "ioctl.rs",
            "lock.rs",
            "pmem/lost.rs",
            "pmem/mapping.rs",
            "pmem/pieces.rs",
            "pmem/range.rs",
            "pmem/tests.rs",
            "pmem/views.rs",
            "pmem/writeback.rs"
        ]
    );
}
