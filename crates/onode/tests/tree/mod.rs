//! The tree of the project, as the tests that judge it walk it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folder of every crate.
pub fn crate_folders() -> Vec<PathBuf> {
    let groups = ["crates", "crates/devices", "crates/access"].into_iter();
    let entries = groups.flat_map(|group| fs::read_dir(root().join(group)).unwrap());
    let folders = entries.map(|entry| entry.unwrap().path());
    folders.filter(|folder| folder.join("Cargo.toml").exists()).collect()
}

/// All source files of Rust below a folder, without what a build has made.
pub fn rust_files(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut all = Vec::new();
    files(folder, &mut all);
    out.extend(all.into_iter().filter(|path| path.extension().is_some_and(|it| it == "rs")));
}

/// All files below a folder, without what a build has made.
pub fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true if name != "target" && !name.starts_with('.') => files(&path, out),
            true => {}
            false => out.push(path),
        }
    }
}
