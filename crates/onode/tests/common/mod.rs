//! What tests of volumes in files share: a folder that goes away at the end.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder of one test, removed with all that it holds when it is dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// A folder where the computer has its temporary files. Names are told apart by the process,
    /// and within one by the caller.
    pub fn new(name: &str) -> Self {
        Self::within(&std::env::temp_dir(), name)
    }

    /// The same in another place.
    pub fn within(place: &Path, name: &str) -> Self {
        let path = place.join(format!("onode-{}-{name}", std::process::id()));
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
