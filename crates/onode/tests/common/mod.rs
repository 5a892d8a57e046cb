//! What tests of volumes in files share: a folder that goes away at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A folder of one test, removed with all that it holds when it is dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// A folder where the computer has its temporary files. A number tells those of one process
    /// apart: tests of several files run in it, and may choose the same name.
    pub fn new(name: &str) -> Self {
        Self::within(&std::env::temp_dir(), name)
    }

    /// The same in another place.
    pub fn within(place: &Path, name: &str) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("onode-{}-{number}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
