//! Open files of a heap, by descriptors as C programs know them.
//!
//! Descriptors are the heap's own numbers, not those of the process; the lowest that is free is
//! given out. What a descriptor names stays open until it is closed, or the heap is.

use crate::error::{Failure, Outcome};
use onode_base::ErrorKind;
use onode_base::sync::{Mutex, rank};
use onode_fs::{FileHandle, FileSystem, Follow, InodeNumber, OpenFlags};
use onode_heap::{Caller, caller};
use std::collections::BTreeMap;
use std::ffi::c_int;

/// How often a file is looked for at a path where somebody else removes or replaces it.
pub(crate) const TRIES: u32 = 100;

/// Does something with the file at a path. Where somebody replaces it by a rename there is always
/// one, but the one that was found may be gone before anything is done with it.
pub(crate) fn at_path<T>(
    files: &FileSystem,
    path: &[u8],
    mut act: impl FnMut(InodeNumber) -> Outcome<T>,
) -> Outcome<T> {
    let mut tries = 1..TRIES;
    loop {
        match files.resolve(path, Follow::Yes).map_err(Failure::from).and_then(&mut act) {
            Err(error) if error.is(ErrorKind::Stale) && tries.next().is_some() => {}
            other => return other,
        }
    }
}

/// Open files, and who opened the heap.
pub(crate) struct Files {
    open: Mutex<BTreeMap<c_int, OpenFile>, rank::CFiles>,
    user: Caller,
}

/// One open file.
#[derive(Clone)]
pub(crate) struct OpenFile {
    pub(crate) inode: InodeNumber,
    handle: FileHandle,
    /// By which it was opened.
    pub(crate) path: Vec<u8>,
    /// Where the next read or write begins.
    pub(crate) offset: u64,
    /// As for `open(2)`.
    pub(crate) flags: c_int,
}

fn bad_descriptor(descriptor: c_int) -> Failure {
    Failure::new(ErrorKind::BadHandle, format!("{descriptor} is no open descriptor of the heap"))
}

impl Files {
    /// None open, for the user of this process.
    pub(crate) fn of_process() -> Self {
        Self { open: Mutex::default(), user: caller() }
    }

    /// Who opened the heap.
    pub(crate) const fn user(&self) -> &Caller {
        &self.user
    }

    /// Number and handle of an open file.
    pub(crate) fn handle_of(&self, descriptor: c_int) -> Outcome<(InodeNumber, FileHandle)> {
        self.get(descriptor).map(|file| (file.inode, file.handle))
    }

    /// Ends a descriptor whose handle is gone.
    pub(crate) fn forget(&self, descriptor: c_int) {
        self.open.lock().remove(&descriptor);
    }

    fn insert(&self, file: OpenFile) -> c_int {
        let mut open = self.open.lock();
        let descriptor = (0..).find(|number| !open.contains_key(number)).unwrap_or_default();
        open.insert(descriptor, file);
        descriptor
    }

    /// What a descriptor names now.
    pub(crate) fn get(&self, descriptor: c_int) -> Outcome<OpenFile> {
        let open = self.open.lock();
        open.get(&descriptor).cloned().ok_or_else(|| bad_descriptor(descriptor))
    }

    /// Sets where the next read or write begins.
    pub(crate) fn seek_to(&self, descriptor: c_int, offset: u64) {
        let mut open = self.open.lock();
        if let Some(file) = open.get_mut(&descriptor) {
            file.offset = offset;
        }
    }

    /// The path of an open file as it is now, no symbolic link at its end.
    pub(crate) fn path_of(&self, files: &FileSystem, descriptor: c_int) -> Outcome<Vec<u8>> {
        let file = self.get(descriptor)?;
        if files.resolve(&file.path, Follow::No).is_ok_and(|found| found == file.inode) {
            return Ok(file.path);
        }
        let mut found = None;
        let walked = files.walk(b"/", &mut |path, attributes| {
            if attributes.inode != file.inode {
                return Ok(true);
            }
            found = Some(path.to_vec());
            // No error: it ends the walk.
            Err(onode_fs::Error::new(ErrorKind::Exists, "found"))
        });
        if let (None, Err(error)) = (&found, walked) {
            return Err(error.into());
        }
        found.ok_or_else(|| {
            let path = String::from_utf8_lossy(&file.path);
            Failure::new(ErrorKind::NotFound, format!("what was opened as {path} has no name any more"))
        })
    }

    /// Opens the file at a path, and makes it if there is none and the flags say so, whatever
    /// others do to its name meanwhile.
    pub(crate) fn open_path(&self, files: &FileSystem, path: &[u8], flags: c_int, mode: u32) -> Outcome<c_int> {
        let mut tries = 1..TRIES;
        loop {
            match self.open_or_make(files, path, flags, mode) {
                Err(error) if error.is(ErrorKind::Stale) && tries.next().is_some() => {}
                // Somebody else has just made it, which is as good.
                Err(error) if error.is(ErrorKind::Exists) && flags & libc::O_EXCL == 0 && tries.next().is_some() => {}
                other => return other,
            }
        }
    }

    fn open_or_make(&self, files: &FileSystem, path: &[u8], flags: c_int, mode: u32) -> Outcome<c_int> {
        let inode = match files.resolve(path, Follow::Yes) {
            Ok(_) if flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0 => {
                return Err(Failure::new(ErrorKind::Exists, format!("{} exists", String::from_utf8_lossy(path))));
            }
            Ok(inode) => inode,
            Err(error) if error.kind == ErrorKind::NotFound && flags & libc::O_CREAT != 0 => {
                let (parent, name) = files.resolve_parent(path)?;
                let made = files.create(&caller(), parent, name, (mode & 0o7777) as u16)?;
                files.forget(made.inode, 1);
                made.inode
            }
            Err(error) => return Err(error.into()),
        };
        self.open_known(files, inode, path, flags)
    }

    fn open_known(&self, files: &FileSystem, inode: InodeNumber, path: &[u8], flags: c_int) -> Outcome<c_int> {
        let write = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let how = OpenFlags { write, truncate: write && flags & libc::O_TRUNC != 0 };
        let handle = files.open(&self.user, inode, how)?;
        Ok(self.insert(OpenFile { inode, handle, path: path.to_vec(), offset: 0, flags }))
    }

    /// A descriptor of a file that has just been made at `path`.
    pub(crate) fn open_made(
        &self,
        files: &FileSystem,
        inode: InodeNumber,
        path: &[u8],
        flags: c_int,
    ) -> Outcome<c_int> {
        self.open_known(files, inode, path, flags & !(libc::O_TRUNC | libc::O_EXCL))
    }

    pub(crate) fn close(&self, files: &FileSystem, descriptor: c_int) -> Outcome<()> {
        let mut open = self.open.lock();
        let file = open.remove(&descriptor).ok_or_else(|| bad_descriptor(descriptor))?;
        Ok(files.release(file.handle)?)
    }

    pub(crate) fn close_all(&self, files: &FileSystem) {
        let open = std::mem::take(&mut *self.open.lock());
        for file in open.into_values() {
            // Nobody is left to hear of an error.
            let _ = files.release(file.handle);
        }
    }
}
