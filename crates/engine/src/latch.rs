//! Whether a volume may be changed, and why not.
//!
//! What it keeps true: once a write has failed, or something that always holds did not, nothing
//! changes until the next mount (N6). The first reason is the one that is told.
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
    /// Its recovery is over: there are none in memory either.
    is_closed: bool,
    /// What failed first.
    failure: Option<String>,
}

impl Latch {
    /// An open one; nobody writes to the media of a mount that is `is_read_only`.
    #[must_use]
    pub const fn new(is_read_only: bool) -> Self {
        Self { is_read_only, is_closed: false, failure: None }
    }

    /// Whether the mount asked for no changes.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Why nothing can be changed: the first failure, or that the mount asked for it.
    #[must_use]
    #[inline]
    pub fn why(&self) -> Option<&str> {
        let asked = if self.is_closed { Some("the volume is mounted read-only") } else { None };
        self.failure().or(asked)
    }

    /// The first failure.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Whether something may be written to the media.
    #[must_use]
    #[inline]
    pub const fn may_write(&self) -> bool {
        !self.is_read_only && self.failure.is_none()
    }

    /// The mount asked for no changes, and its recovery is over: from now on there are none, in
    /// memory neither.
    pub const fn close(&mut self) {
        (self.is_read_only, self.is_closed) = (true, true);
    }

    /// # Errors
    /// `ReadOnly` if nothing can be changed.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.why() {
            Some(why) => Err(Error::new(ErrorKind::ReadOnly, why)),
            None => Ok(()),
        }
    }

    /// A write failed: from now on nothing changes.
    pub fn fail(&mut self, error: Error) -> Error {
        self.fail_because(|| format!("read-only since a failure: {error}"));
        error
    }

    /// Something that always holds does not: nothing changes any more either.
    pub fn fail_if_bug(&mut self, error: Error) -> Error {
        if error.kind == ErrorKind::Bug { self.fail(error) } else { error }
    }

    /// Something failed that is no error of one call: from now on nothing changes.
    pub fn fail_because(&mut self, why: impl FnOnce() -> String) {
        if self.failure.is_none() {
            self.failure = Some(why());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_told_and_nothing_changes_after_it() {
        let mut latch = Latch::default();
        assert!(latch.may_write() && latch.check().is_ok());
        latch.fail(Error::new(ErrorKind::Media, "a chip is gone"));
        latch.fail(Error::new(ErrorKind::Media, "a second one"));
        latch.close();
        let refused = latch.check().unwrap_err();
        assert_eq!(refused.kind, ErrorKind::ReadOnly);
        assert!(refused.detail.contains("a chip is gone"), "{refused}");
        assert!(!latch.may_write() && latch.failure().is_some());
    }

    #[test]
    fn a_mount_without_changes_is_no_failure() {
        let mut latch = Latch::new(true);
        assert!(!latch.may_write() && latch.check().is_ok(), "its recovery changes what is in memory");
        latch.close();
        assert_eq!(latch.check().unwrap_err().kind, ErrorKind::ReadOnly);
        assert_eq!((latch.failure(), latch.why()), (None, Some("the volume is mounted read-only")));
    }

    #[test]
    fn only_what_always_holds_latches() {
        let mut latch = Latch::default();
        latch.fail_if_bug(Error::new(ErrorKind::NoSpace, "full"));
        assert!(latch.may_write());
        latch.fail_if_bug(Error::new(ErrorKind::Bug, "a count is off"));
        assert!(!latch.may_write());
    }
}
