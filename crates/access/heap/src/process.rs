//! Which process opened something: what a child inherits by `fork` is not its own.
//!
//! A child has copies of what its parent knew of the medium when it was forked, of the blocks that
//! a thread had ready, of locks. If both go on with them, each destroys what the other stores.

use crate::error::{Error, Result};
use onode_base::ErrorKind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many forks lie between this process and the one that first asked.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// What the system answered when it was asked to count them.
static COUNTED: OnceLock<libc::c_int> = OnceLock::new();

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process that opened a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opener {
    forks: u64,
}

impl Opener {
    /// This process.
    ///
    /// # Errors
    /// `OutOfMemory` if the system cannot tell of forks.
    pub fn this() -> Result<Self> {
        // SAFETY: the handler only counts, which is allowed at any moment of a child.
        match COUNTED.get_or_init(|| unsafe { libc::pthread_atfork(None, None, Some(in_child)) }) {
            0 => Ok(Self { forks: FORKS.load(Ordering::Relaxed) }),
            code => {
                let why = std::io::Error::from_raw_os_error(*code);
                Err(Error::new(ErrorKind::OutOfMemory, format!("the system cannot tell of forks: {why}")))
            }
        }
    }

    /// Whether this process is it, and no child of it.
    #[inline]
    #[must_use]
    pub fn is_here(self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }

    /// Refuses a child.
    ///
    /// # Errors
    /// `NotPermitted`.
    #[inline]
    pub fn check(self) -> Result<()> {
        if self.is_here() { Ok(()) } else { Err(Self::refused()) }
    }

    #[cold]
    fn refused() -> Error {
        let why = "another process opened it, and this one is a child of that; close it before fork or daemon, and \
                   open it in the process that goes on";
        Error::new(ErrorKind::NotPermitted, why)
    }
}
