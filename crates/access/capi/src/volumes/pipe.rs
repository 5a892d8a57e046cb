//! A descriptor of the process through which a stream goes.

use crate::error::{Failure, Outcome};
use crate::volumes::progress::Listener;
use onode_base::ErrorKind;
use std::ffi::c_int;
use std::fs::File;
use std::io::{self, ErrorKind as Io, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

/// A descriptor that stays the program's, and open.
pub(crate) struct Pipe<'a> {
    file: ManuallyDrop<File>,
    listener: &'a Listener<'a>,
    /// Bytes that went through it.
    moved: u64,
    failed: Option<Failure>,
}

impl<'a> Pipe<'a> {
    /// # Safety
    /// Nobody closes the descriptor while this is in use.
    pub(crate) unsafe fn of(descriptor: c_int, listener: &'a Listener<'a>) -> Outcome<Self> {
        // Whether it is open is asked first: a stream is not begun for nothing.
        // SAFETY: this changes nothing, and any number may be asked about.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
            return Err(Failure::new(ErrorKind::BadHandle, format!("{descriptor} is no open descriptor")));
        }
        // SAFETY: it is open, and is not closed when this is dropped.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
        Ok(Self { file, listener, moved: 0, failed: None })
    }

    /// Bytes that went through it.
    pub(crate) const fn moved(&self) -> u64 {
        self.moved
    }

    /// What went wrong with it, if that is why something else failed.
    pub(crate) const fn failure(&mut self) -> Option<Failure> {
        self.failed.take()
    }

    /// Writes all of it, however little is taken at a time.
    pub(crate) fn put(&mut self, mut bytes: &[u8]) -> Outcome<()> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(Failure::host("cannot write the stream", &Io::WriteZero.into())),
                Ok(count) => {
                    self.moved += count as u64;
                    bytes = bytes.get(count..).unwrap_or_default();
                }
                Err(error) if error.kind() == Io::Interrupted => {}
                Err(error) => return Err(Failure::host("cannot write the stream", &error)),
            }
            // If a signal came, which writes a part or nothing, perhaps it is one to stop.
            self.check()?;
        }
        Ok(())
    }

    /// Keeps what went wrong for who asks, as an error of reading has no room for it.
    fn fail(&mut self, failure: Failure) -> io::Error {
        self.failed = Some(failure);
        io::Error::other("the stream cannot be read")
    }

    fn check(&self) -> Outcome<()> {
        match self.listener.goes_on(self.moved, 0) {
            true => Ok(()),
            false => Err(Failure::stopped("the program stopped the stream")),
        }
    }
}

impl Read for Pipe<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match self.file.read(buffer) {
                Err(error) if error.kind() == Io::Interrupted => None,
                Err(error) => return Err(self.fail(Failure::host("cannot read the stream", &error))),
                Ok(count) => Some(count),
            };
            let count = read.unwrap_or(0);
            self.moved += count as u64;
            // If a signal came, which reads a part or nothing, perhaps it is one to stop.
            if count < buffer.len()
                && let Err(stopped) = self.check()
            {
                return Err(self.fail(stopped));
            }
            if read.is_some() {
                return Ok(count);
            }
        }
    }
}
