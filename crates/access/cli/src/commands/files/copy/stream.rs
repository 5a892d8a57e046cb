//! The side of a copy that is standard input or standard output: one file, read or written in
//! order.

use super::{Entry, Kind, Side};
use onode::{Class, Error, Result, SystemClock};
use onode_base::Clock;
use onode_console::Output;
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::Path;

/// Zeros written at once where a file has a hole.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Standard input as a file that is there, or standard output as one that is not there yet. Its
/// path is empty: it has no name that a copy could get.
#[derive(Debug)]
pub struct Stream {
    /// `None` for input.
    output: Option<Output>,
    written: Cell<u64>,
}

impl Stream {
    /// What this process is given.
    pub const fn input() -> Self {
        Self { output: None, written: Cell::new(0) }
    }

    /// Where this process writes.
    pub const fn output(output: Output) -> Self {
        Self { output: Some(output), written: Cell::new(0) }
    }

    /// Whether an argument stands for a stream. A file of that name is `./-`.
    pub fn is_meant(path: &Path) -> bool {
        path.as_os_str() == "-"
    }

    /// Writes zeros up to `offset`: what a copy leaves out as a hole is there all the same.
    fn fill(&self, offset: u64) -> Result<()> {
        while let Some(missing) = offset.checked_sub(self.written.get()).filter(|missing| *missing > 0) {
            let length = usize::try_from(missing).unwrap_or(usize::MAX).min(ZEROS.len());
            self.append(ZEROS.get(..length).unwrap_or_default())?;
        }
        Ok(())
    }

    fn append(&self, data: &[u8]) -> Result<()> {
        if let Some(output) = self.output {
            output.bytes(data)?;
        }
        self.written.set(self.written.get() + data.len() as u64);
        Ok(())
    }
}

fn takes_one_file(what: &str) -> Error {
    Error::new(Class::Usage, "cannot copy to standard output", format!("it takes the content of one file, not {what}"))
        .hint("name a file or directory of the host in place of -")
}

impl Side for Stream {
    fn entry(&self, _: &Path) -> Result<Option<Entry>> {
        if self.output.is_some() {
            return Ok(None);
        }
        Ok(Some(Entry {
            kind: Kind::File,
            size: 0,
            permissions: 0o644,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            modified: SystemClock.now(),
        }))
    }

    fn names(&self, _: &Path) -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }

    fn read(&self, _: &Path, _: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut input = io::stdin().lock();
        let mut filled = 0;
        // A pipe gives a little at a time; whole buffers keep what is written in large pieces.
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match input.read(rest) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::host("cannot read standard input", &error)),
            }
        }
        Ok(filled)
    }

    fn make_directory(&self, _: &Path) -> Result<()> {
        Err(takes_one_file("a directory"))
    }

    fn make_link(&self, _: &Path, target: &OsStr) -> Result<()> {
        Err(takes_one_file(&format!("a symbolic link to {}", target.display())))
    }

    fn make_file(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn write(&self, _: &Path, offset: u64, data: &[u8]) -> Result<()> {
        self.fill(offset)?;
        self.append(data)
    }

    fn finish(&self, _: &Path, entry: &Entry) -> Result<()> {
        self.fill(entry.size)
    }

    fn name(&self, _: &Path) -> String {
        if self.output.is_some() { "standard output" } else { "standard input" }.into()
    }
}
