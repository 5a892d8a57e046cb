//! Small files that are made or replaced wholly or not at all, each by one transaction.

use crate::error::{Error, Result};
use crate::heap::Heap;
use onode_base::ErrorKind;
use onode_fs::{Caller, Follow};

impl Heap {
    /// Makes the file at `path` hold exactly `bytes`. One that is there has as many.
    pub(crate) fn put_whole(&self, path: &[u8], bytes: &[u8]) -> Result<()> {
        let files = self.files();
        let failed = |error: onode_fs::Error| {
            Error::of_files(&format!("cannot store {}", String::from_utf8_lossy(path)), &error)
        };
        loop {
            match files.resolve(path, Follow::No) {
                Ok(inode) => {
                    files.write(&Caller::root(), inode, 0, bytes).map_err(failed)?;
                    return Ok(());
                }
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
            let mut block = self.allocate(bytes.len())?;
            block.copy_from_slice(bytes);
            match self.mm_to_file(block, path, &Caller::root(), 0o600) {
                // Somebody else was faster.
                Err((_, error)) if error.kind == ErrorKind::Exists => {}
                other => return other.map(drop).map_err(|(_, error)| error),
            }
        }
    }

    /// Makes the directory at `path` and those on the way to it.
    pub(crate) fn make_directories(&self, path: &[u8]) -> Result<()> {
        let made = self.files().make_directories(&Caller::root(), path, 0o700);
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
