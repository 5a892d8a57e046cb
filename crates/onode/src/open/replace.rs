//! A file that is made under another name and gets its own when it is complete: what it replaces
//! stays until then, and nobody may be using it. Of several who make the same file one makes it,
//! and the others wait until it is there.

use crate::error::{Class, Error, Result};
use crate::open::missing::refuse_missing;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// How often whoever wants to make a file looks whether somebody else is done with that.
const LOOKS: u32 = 1500;
const PAUSE: Duration = Duration::from_millis(20);

/// Has a file made under another name and gives it its own when it is complete.
pub(crate) fn in_its_place(path: &Path, replaces: bool, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let _alone = Making::begin(path)?;
    if !replaces && path.exists() {
        return Err(exists(path));
    }
    let unfinished = name_beside(path, "unfinished");
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
        return Err(exists(path));
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

fn exists(path: &Path) -> Error {
    let what = format!("cannot make {}", path.display());
    Error::new(Class::Exists, what, "there is a file of that name already")
        .hint("choose another name, or add --force to replace it with all it holds")
}

fn name_beside(path: &Path, what: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".");
    name.push(what);
    path.with_file_name(name)
}

/// The right to make a file. It is a lock on a file beside it, which goes with it; one that a
/// process left behind that died keeps nobody out.
struct Making {
    guard: PathBuf,
    file: File,
}

impl Making {
    /// Waits for whoever makes the file now. `None` where no file can be made beside it: to make
    /// the file itself fails there, too, and says why.
    fn begin(path: &Path) -> Result<Option<Self>> {
        let guard = name_beside(path, "making");
        for _ in 0..LOOKS {
            let file = File::options().create(true).truncate(false).write(true).open(&guard);
            let Ok(file) = file else { return Ok(None) };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &guard) => return Ok(Some(Self { guard, file })),
                // Whoever had it has removed it.
                Ok(()) => {}
                Err(Errno::WOULDBLOCK | Errno::INTR) => sleep(PAUSE),
                Err(_) => return Ok(None),
            }
        }
        let what = format!("cannot make {}", path.display());
        Err(Error::new(Class::InUse, what, "another process is making it")
            .hint("wait until it is there, or end that one"))
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        // Before the lock goes: whoever gets that sees that the file is not the one of the name.
        let _ = std::fs::remove_file(&self.guard);
        // It would go with the last descriptor; a child that is about to start may have one.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Whether an open file is the one of a name.
fn is_at(file: &File, path: &Path) -> bool {
    let number = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(opened), Ok(named)) => number(opened) == number(named),
        _ => false,
    }
}
