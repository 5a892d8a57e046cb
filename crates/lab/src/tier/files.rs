//! What workloads do with files, whoever keeps them: a file system of the kernel or our own.

use super::recording::Done;
use crate::stream::Operation;
use onode::Result;
use onode_base::Prng;

/// Bytes of [`content`].
pub(super) const CONTENT_BYTES: usize = 2 << 20;

/// What files hold: bytes that nothing packs.
pub(super) fn content() -> Vec<u8> {
    let mut bytes = vec![0; CONTENT_BYTES];
    Prng::new(95).fill(&mut bytes);
    bytes
}

/// Files that are named by paths below one directory, `a/b/c`.
pub trait Files {
    /// Makes a directory.
    ///
    /// # Errors
    /// What the file system says; so do all calls.
    fn make_directory(&mut self, path: &str) -> Result<()>;

    /// Makes a file with so many bytes, in calls of at most `call` bytes; `durable`: it is on the
    /// medium, name and all, when this returns.
    ///
    /// # Errors
    /// What the file system says.
    fn create(&mut self, path: &str, bytes: u64, call: u64, durable: bool) -> Result<()>;

    /// Writes so many bytes at an offset, in calls of at most `call` bytes.
    ///
    /// # Errors
    /// What the file system says.
    fn write(&mut self, path: &str, offset: u64, bytes: u64, call: u64, durable: bool) -> Result<()>;

    /// Adds so many bytes at the end.
    ///
    /// # Errors
    /// What the file system says.
    fn append(&mut self, path: &str, bytes: u64, call: u64, durable: bool) -> Result<()>;

    /// Reads a part, in calls of at most `call` bytes; as many bytes as there are.
    ///
    /// # Errors
    /// What the file system says.
    fn read(&mut self, path: &str, offset: u64, bytes: u64, call: u64) -> Result<u64>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the file system says.
    fn delete(&mut self, path: &str, durable: bool) -> Result<()>;

    /// Changes of different files that as many programs ask for at the same time, each durable when
    /// its program goes on.
    ///
    /// # Errors
    /// What the file system says.
    fn at_once(&mut self, changes: &[Operation]) -> Result<()>;

    /// Makes everything durable.
    ///
    /// # Errors
    /// What the file system says.
    fn sync(&mut self) -> Result<()>;

    /// Unmounts and mounts again: nothing is in memory any more.
    ///
    /// # Errors
    /// What the file system says.
    fn remount(&mut self) -> Result<()>;

    /// A phase begins.
    fn begin(&mut self, phase: &str);

    /// It ends.
    fn end(&mut self, done: Done);
}
