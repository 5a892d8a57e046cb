//! Looking at the files of a volume: what they hold, how large they are, where they are.

pub mod cat;
pub mod df;
pub mod du;
mod filter;
pub mod find;
pub mod tree;

use super::ls::bytes_of;
use onode_console::quote::{self, Style};
use serde::Serialize;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path in reports.
#[derive(Clone, Debug, Serialize)]
pub struct PathReport {
    path: String,
    /// Of a path that is no text, which JSON cannot hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<Vec<u8>>,
}

impl PathReport {
    fn of(path: &Path) -> Self {
        Self { path: path.display().to_string(), path_bytes: bytes_of(path.as_os_str().as_bytes()) }
    }

    /// As it is shown on a terminal, which control characters in it must not reach.
    fn shown(&self) -> String {
        quote::name(self.path_bytes.as_deref().unwrap_or(self.path.as_bytes()), Style::Shell)
    }
}
