//! Whether a volume may be changed, and why not.
//!
//! What it keeps true: once a write has failed, or something that always holds did not, nothing
//! changes until the next mount. The first reason is the one that is told.
//!
//! What it does not do: undo anything. What was read before can still be read.

use alloc::format;
use alloc::string::String;
use onode_object::{Error, ErrorKind, Result};

/// The latch of a mounted volume.
#[derive(Debug, Default)]
pub struct Latch {
    /// The mount asked for no changes.
    is_read_only: bool,
    /// Why nothing can be changed.
    why: Option<String>,
}

impl Latch {
    /// An open one; nobody writes to the media of a mount that is `is_read_only`.
    #[must_use]
    pub const fn new(is_read_only: bool) -> Self {
        Self { is_read_only, why: None }
    }

    /// Whether the mount asked for no changes.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Why nothing can be changed.
    #[must_use]
    pub const fn why(&self) -> Option<&String> {
        self.why.as_ref()
    }

    /// Whether something may be written to the media.
    #[must_use]
    pub const fn may_write(&self) -> bool {
        !self.is_read_only && self.why.is_none()
    }

    /// The log was replayed in memory, and nothing changes any more.
    pub fn close(&mut self, why: &str) {
        self.why = Some(String::from(why));
    }

    /// # Errors
    /// `ReadOnly` if nothing can be changed.
    pub fn check(&self) -> Result<()> {
        match &self.why {
            Some(why) => Err(Error::new(ErrorKind::ReadOnly, why.clone())),
            None => Ok(()),
        }
    }

    /// A write failed: from now on nothing changes.
    pub fn fail(&mut self, error: Error) -> Error {
        if self.why.is_none() {
            self.why = Some(format!("read-only since a failure: {error}"));
        }
        error
    }

    /// Something that always holds does not: nothing changes any more either.
    pub fn fail_if_bug(&mut self, error: Error) -> Error {
        if error.kind == ErrorKind::Bug { self.fail(error) } else { error }
    }
}
