//! What opening a volume may do to it, what comes of it, and its failures in words for people.
#![cfg_attr(
    not(any(feature = "flash", feature = "scm", feature = "tier")),
    expect(dead_code, reason = "objects in memory are opened in one way, and made when they are opened")
)]

use crate::error::{Class, Error, Result};
use crate::volume::face::BlockFace;
use onode_fs::Options as MountOptions;
use onode_object::{ErrorKind, ObjectDevice};
use std::sync::Arc;

/// What opening a volume may do to it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    /// Change nothing.
    pub(crate) read_only: bool,
    /// Open it although it holds less than it promised.
    pub(crate) accept_loss: bool,
    /// Give up what is damaged, where a mount does that.
    pub(crate) drop_damaged: bool,
}

impl Access {
    /// Looks and changes nothing.
    pub(crate) const LOOK: Self = Self { read_only: true, accept_loss: false, drop_damaged: false };
    /// Changes what it is asked to.
    pub(crate) const CHANGE: Self = Self { read_only: false, accept_loss: false, drop_damaged: false };

    /// As these options of a mount say.
    pub(crate) const fn of(options: &MountOptions) -> Self {
        Self { read_only: options.read_only, accept_loss: options.accept_loss, drop_damaged: false }
    }
}

/// Who else may use a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Users {
    /// Nobody, or others who only read.
    Alone,
    /// Others who share it, if it is opened for writing and is of a kind that can be shared.
    Sharing,
}

/// A volume that is to be made.
#[derive(Clone, Copy)]
pub(crate) struct NewVolume<'a> {
    /// What is there already may go.
    pub(crate) replace: bool,
    /// Its unique number.
    pub(crate) uuid: [u8; 16],
    /// Puts the first content on its device.
    pub(crate) fill: &'a dyn Fn(&dyn ObjectDevice) -> Result<()>,
}

/// A device that was opened.
pub(crate) struct Opened {
    /// The device.
    pub(crate) device: Arc<dyn ObjectDevice>,
    /// What lies beside it on the same medium.
    pub(crate) faces: Vec<BlockFace>,
    /// What people should hear of how it was opened.
    pub(crate) notes: Vec<String>,
}

/// A failure of the device that holds a volume, in words for people.
pub(crate) fn volume_error(what: String, error: &onode_object::Error) -> Error {
    let class = match error.kind {
        // An image gets its name only with a volume in it: if there is none it was destroyed.
        ErrorKind::Invalid => Class::Damaged,
        ErrorKind::NotSupported => Class::NewerFormat,
        _ => Class::of_device(error),
    };
    Error::new(class, what, error.to_string())
}
