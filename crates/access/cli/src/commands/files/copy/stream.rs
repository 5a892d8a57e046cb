//! The side of a copy that is standard input or standard output: one file, read or written in
//! order.

use super::{Entry, Kind, Side, Special, Xattr};
use crate::signals::Stop;
use onode::{Class, Error, Result, SystemClock};
use onode_base::Clock;
use onode_console::Output;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

/// How long to wait for input before looking whether somebody asked for an end.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Zeros written at once where a file has a hole.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Standard input as a file that is there, or standard output as one that is not there yet. Its
/// path is empty: it has no name that a copy could get.
#[derive(Debug)]
pub struct Stream {
    /// `None` for input.
    output: Option<Output>,
    written: Cell<u64>,
    stop: Stop,
}

impl Stream {
    /// What this process is given. It ends early if somebody asks for an end.
    pub const fn input(stop: Stop) -> Self {
        Self { output: None, written: Cell::new(0), stop }
    }

    /// Where this process writes.
    pub const fn output(output: Output, stop: Stop) -> Self {
        Self { output: Some(output), written: Cell::new(0), stop }
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
            shared: None,
        }))
    }

    fn names(&self, _: &Path) -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }

    fn read(&self, _: &Path, _: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        // A pipe gives a little at a time; whole buffers keep what is written in large pieces.
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match read_input(rest, &self.stop).map_err(|error| Error::host("cannot read standard input", &error))? {
                0 => break,
                more => filled += more,
            }
        }
        Ok(filled)
    }

    fn data(&self, _: &Path, offset: u64) -> Result<Option<Range<u64>>> {
        Ok(Some(offset..u64::MAX))
    }

    fn xattrs(&self, _: &Path) -> Result<Vec<Xattr>> {
        Ok(Vec::new())
    }

    fn make_directory(&self, _: &Path) -> Result<()> {
        Err(takes_one_file("a directory"))
    }

    fn make_link(&self, _: &Path, target: &OsStr) -> Result<()> {
        Err(takes_one_file(&format!("a symbolic link to {}", target.display())))
    }

    fn make_name(&self, _: &Path, _: &Path) -> Result<()> {
        Err(takes_one_file("a hard link"))
    }

    fn make_special(&self, _: &Path, _: Special) -> Result<()> {
        Err(takes_one_file("a device, FIFO or socket"))
    }

    fn make_file(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn remove(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn write(&self, _: &Path, offset: u64, data: &[u8]) -> Result<()> {
        self.fill(offset)?;
        self.append(data)
    }

    fn set_xattr(&self, _: &Path, _: &Xattr) -> Result<bool> {
        Ok(true)
    }

    fn finish(&self, _: &Path, entry: &Entry) -> Result<()> {
        self.fill(entry.size)
    }

    fn goes_on(&self) -> bool {
        false
    }

    fn name(&self, _: &Path) -> String {
        if self.output.is_some() { "standard output" } else { "standard input" }.into()
    }
}

/// Reads what standard input has, and waits for it; 0 at its end, or if somebody asked for an end.
pub fn read_input(buffer: &mut [u8], stop: &Stop) -> io::Result<usize> {
    let input = io::stdin();
    loop {
        if stop.asked().is_some() {
            return Ok(0);
        }
        // Whatever a poll says beside a timeout, the read tells what it is.
        if poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&WAIT)) == Ok(0) {
            continue;
        }
        if stop.asked().is_some() {
            return Ok(0);
        }
        match input.lock().read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}
