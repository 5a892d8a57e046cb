//! Changing names and permissions of files in a volume.

pub mod chmod;
pub mod ln;
mod mode;
pub mod mv;

use crate::location::find;
use onode::{Class, Error, Result};
use onode_fs::{FileSystem, FileType};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where something comes that is given the name `to`: into it under its own name, if that is a
/// directory.
fn target(files: &FileSystem, to: &Path, own: Option<&OsStr>) -> Result<PathBuf> {
    Ok(match own {
        Some(name) if is_directory(files, to)? => to.join(name),
        _ => to.to_owned(),
    })
}

fn is_directory(files: &FileSystem, path: &Path) -> Result<bool> {
    Ok(find(files, path)?.is_some_and(|node| node.attributes().file_type == FileType::Directory))
}

/// The error of a command line that asks for what makes no sense.
fn wrong(what: String, why: &str, hint: &str) -> Error {
    Error::new(Class::Usage, what, why).hint(hint)
}
