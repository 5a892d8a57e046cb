//! What of a NAND many threads may use while its owner programs and erases: reads, and the wait of
//! a flush.
//!
//! It keeps true: a page that was programmed before the call, and whose block is not erased before
//! it returns, reads as it would read through the owner, and is counted as if the owner had read
//! it. It does not know which pages those are: whoever reads keeps their blocks from being erased.

use super::{PageAddress, PageRun, read_in_turn};
use crate::between::Gap;
use crate::error::{Error, Result};
use crate::tag::IoTag;
use onode_base::sync::{Mutex, rank};

/// The part of a NAND that is used without its owner; [`Nand::shared`](super::Nand::shared) gives
/// it out.
pub trait SharedNand: Send + Sync {
    /// Reads consecutive pages of one block, as [`Nand::read_run`](super::Nand::read_run).
    ///
    /// # Errors
    /// As [`Nand::read_run`](super::Nand::read_run).
    fn read_run(&self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()>;

    /// Reads several runs, as [`Nand::read_runs`](super::Nand::read_runs).
    fn read_runs(&self, runs: &mut [PageRun<'_>], tag: IoTag) {
        read_in_turn(runs, |first, data, spare| self.read_run(first, data, spare, tag));
    }

    /// Waits until all that was programmed and erased before the owner's last
    /// [`begin_flush`](super::Nand::begin_flush) survives a failure of the host.
    ///
    /// # Errors
    /// `Host`, `HostFull`; and from then on every flush fails, that of the owner too: what the
    /// first did not bring to the medium no later one speaks of.
    fn finish_flush(&self) -> Result<()>;

    /// A thread of the owner has let go of its locks between two steps, or is about to wait until
    /// reads of others are over. That is for who simulates threads in one; a medium has nothing to
    /// do.
    fn tell(&self, _gap: Gap) {}
}

/// Flushes of one medium, by its owner and by others: one after another, and none succeeds after
/// one failed.
#[derive(Debug, Default)]
pub struct Flushes {
    failed: Mutex<Option<Error>, rank::MediumFlushes>,
}

impl Flushes {
    /// Makes one flush.
    ///
    /// # Errors
    /// Those of `flush`, now or before.
    pub fn run(&self, flush: impl FnOnce() -> Result<()>) -> Result<()> {
        // Held while the medium works: the system reports a lost write to one of two flushes,
        // perhaps the other one.
        let mut failed = self.failed.lock();
        if let Some(error) = &*failed {
            return Err(error.clone());
        }
        flush().inspect_err(|error| *failed = Some(error.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::MediaErrorKind;

    #[test]
    fn no_flush_succeeds_after_one_that_failed() {
        let flushes = Flushes::default();
        assert!(flushes.run(|| Ok(())).is_ok());
        assert!(flushes.run(|| Err(Error::new(MediaErrorKind::Host, "lost"))).is_err());
        let error = flushes.run(|| Ok(())).unwrap_err();
        assert_eq!((error.kind, &*error.detail), (MediaErrorKind::Host, "lost"));
    }
}
