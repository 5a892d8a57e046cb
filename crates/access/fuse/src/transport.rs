//! How requests come and answers go: read from the device of FUSE and written to it, or by
//! io_uring. What a request means is the business of `adaptor`.

use crate::options::IoUring;
use onode_ring::{Offer, offer, switch_on};

pub mod breakdown;
pub mod classic;
pub mod encode;
pub mod greeting;
pub mod late;
pub mod operation;
pub mod ring;
pub mod rings;
pub mod waiting;

/// How requests come to a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// They are read from the device of FUSE, and answers are written to it.
    Device,
    /// By io_uring, on the processor where a program waits.
    IoUring,
}

impl Transport {
    /// Its name, as it is shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::IoUring => "io_uring",
        }
    }

    /// The way for a mount to come. Where io_uring is only switched off it is switched on, which
    /// root may.
    ///
    /// # Errors
    /// Why it cannot be had, if it is wanted in any case.
    pub(crate) fn choose(wanted: IoUring) -> Result<Self, String> {
        if wanted == IoUring::Off {
            return Ok(Self::Device);
        }
        let had = match offer() {
            Offer::Offered => Ok(Self::IoUring),
            Offer::SwitchedOff => switch_on().map(|()| Self::IoUring).map_err(|error| {
                format!(
                    "it is switched off, and switching it on failed: {error}; root does it with \
                     `echo Y > /sys/module/fuse/parameters/enable_uring`"
                )
            }),
            Offer::Forbidden => Err("the kernel does not let this process use io_uring".to_owned()),
            Offer::Unknown => {
                Err("the kernel does not offer FUSE over io_uring (Linux 6.14 is the first that may)".to_owned())
            }
        };
        if wanted == IoUring::On { had } else { Ok(had.unwrap_or(Self::Device)) }
    }
}
