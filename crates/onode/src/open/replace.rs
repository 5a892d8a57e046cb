//! A file that is made under another name and gets its own when it is complete: what it replaces
//! stays until then, and nobody may be using it.

use crate::error::{Class, Error, Result};
use crate::open::missing::refuse_missing;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Has a file made under another name and gives it its own when it is complete.
pub(crate) fn in_its_place(path: &Path, replaces: bool, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let unfinished = unfinished_name(path);
    let made = make(&unfinished).and_then(|()| {
        let flags = if replaces { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        renameat_with(CWD, &unfinished, CWD, path, flags).map_err(|errno| Error::host_file("make", path, &errno.into()))
    });
    if made.is_err() {
        // The first error says more than that this could not be removed either.
        let _ = std::fs::remove_file(&unfinished);
    }
    made
}

/// The file that is to be replaced, locked so that nobody uses it; `None` if there is none.
pub(crate) fn lock_replaced(path: &Path, replace: bool) -> Result<Option<File>> {
    let what = format!("cannot make {}", path.display());
    let Ok(metadata) = std::fs::metadata(path) else {
        refuse_missing(&what, path)?;
        return Ok(None);
    };
    if !metadata.is_file() {
        return Err(Error::new(Class::Exists, what, "something that is not a file has that name")
            .hint("choose a name of its own for the image"));
    }
    if !replace {
        return Err(Error::new(Class::Exists, what, "there is a file of that name already")
            .hint("choose another name, or add --force to replace it with all it holds"));
    }
    let file = File::options().read(true).write(true).open(path);
    let file = file.map_err(|error| Error::host_file("replace", path, &error))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| Error::new(Class::InUse, what, "another process uses the image that is there"))?;
    Ok(Some(file))
}

/// Whether the start of a memory holds anything. One that was never written has zeros, or ones
/// where it is a kind of flash.
#[cfg(any(feature = "flash", feature = "scm"))]
pub(crate) fn is_used(memory: &dyn onode_media::Pmem) -> bool {
    /// File systems begin within so many bytes.
    const LOOKED_AT: u64 = 128 << 10;
    let mut start = vec![0; LOOKED_AT.min(memory.length()) as usize];
    memory.read(0, &mut start);
    ![0, 0xff].iter().any(|blank| start.iter().all(|byte| byte == blank))
}

fn unfinished_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".unfinished");
    path.with_file_name(name)
}
