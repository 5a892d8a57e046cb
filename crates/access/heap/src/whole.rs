//! Small files that are made or replaced wholly or not at all, each by one transaction.
//!
//! A replacement is made beside the file and takes its name: bytes of a file may be overwritten
//! where they lie.

use crate::caller::owner;
use crate::error::{Error, Result};
use crate::heap::Heap;
use onode_base::ErrorKind;
use onode_fs::RenameFlags;

/// What the name of a file begins with that is about to replace another.
const NEW: &[u8] = b"new-";

/// Whether a name is one of a file that was to replace another when somebody died.
pub(crate) fn is_left_over(name: &[u8]) -> bool {
    name.starts_with(NEW)
}

impl Heap {
    /// Makes the file at `path` hold exactly `bytes`.
    pub(crate) fn put_whole(&self, path: &[u8], bytes: &[u8]) -> Result<()> {
        let files = self.files();
        let failed = |error: onode_fs::Error| {
            Error::of_files(&format!("cannot store {}", String::from_utf8_lossy(path)), &error)
        };
        let make = |path: &[u8]| {
            let mut block = self.allocate(bytes.len())?;
            block.copy_from_slice(bytes);
            self.mm_to_file(block, path, &owner(), 0o600).map(drop).map_err(Error::from)
        };
        match make(path) {
            Err(error) if error.kind == ErrorKind::Exists => {}
            other => return other,
        }
        let (parent, name) = files.resolve_parent(path).map_err(failed)?;
        let between = [NEW, name].concat();
        let folder = &path[..path.len() - name.len()];
        loop {
            match make(&[folder, &between].concat()) {
                Ok(()) => {}
                // Left behind, or of somebody who does the same: then one of the two comes last.
                Err(error) if error.kind == ErrorKind::Exists => {
                    let _ = files.unlink(parent, &between);
                    continue;
                }
                Err(error) => return Err(error),
            }
            match files.rename(parent, &between, parent, name, RenameFlags::default()) {
                Err(error) if error.kind == ErrorKind::NotFound => {}
                other => return other.map_err(failed),
            }
        }
    }

    /// Makes the directory at `path` and those on the way to it.
    pub(crate) fn make_directories(&self, path: &[u8]) -> Result<()> {
        let made = self.files().make_directories(&owner(), path, 0o700);
        made.map(drop).map_err(|error| {
            Error::of_files(&format!("cannot make the directory {}", String::from_utf8_lossy(path)), &error)
        })
    }
}

/// Whether a name can stand in a path behind a prefix of ours.
pub(crate) fn check_name(what: &str, name: &[u8]) -> Result<()> {
    let words = String::from_utf8_lossy(name);
    if name.is_empty() || name.contains(&b'/') || name.contains(&0) {
        return Err(Error::new(ErrorKind::Invalid, format!("\"{words}\" is no name for {what}: 1 to 200 bytes, no /")));
    }
    if name.len() > 200 {
        let why = format!("the name for {what} has {} bytes, 200 are possible", name.len());
        return Err(Error::new(ErrorKind::NameTooLong, why));
    }
    Ok(())
}
