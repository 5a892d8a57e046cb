//! Disks of the volume that others take the place of while it is in use.
//!
//! Programs reach it through [`REPLACE`], an attribute of the topmost directory that no listing
//! shows.

use super::{check_root, check_topmost};
use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::types::{Caller, InodeNumber};
use onode_base::ErrorKind;
use onode_object::powers::{Copying, Replace, ReplaceState, Replaced};

/// The attribute of the topmost directory by which root has a disk replaced. Set to the name of a
/// disk, a line feed, and the path of an empty disk or file as whoever serves the mount sees it, it
/// begins ([`Replace::begin_replacing`]); [`REPLACE_FURTHER`] copies some more, again and again
/// until it is over, and [`STOP_REPLACING`] leaves the old disk where it is. It tells `idle`, or
/// `copying DONE TOTAL UNREADABLE` in bytes, or `done UNREADABLE` and, if the old disk still says
/// that it is a part of the volume, why: `done 0 /dev/sdb: Input/output error`.
pub const REPLACE: &str = "onode.replace-disk";

/// What [`REPLACE`] is set to for another step.
pub const REPLACE_FURTHER: &str = "further";

/// What [`REPLACE`] is set to for giving up.
pub const STOP_REPLACING: &str = "stop";

impl FileSystem {
    fn replacing(&self) -> Result<&dyn Replace> {
        let why = "the volume has one disk for ever";
        self.resizing()?.replacing().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))
    }

    fn replacing_writable(&self) -> Result<&dyn Replace> {
        self.resizing_writable()?;
        self.replacing()
    }

    /// The names of the volume's disks.
    ///
    /// # Errors
    /// `NotSupported` for a volume whose disks are not replaced.
    pub fn disks(&self) -> Result<Vec<String>> {
        Ok(self.replacing()?.disks())
    }

    /// Begins to replace a disk; see [`Replace::begin_replacing`].
    ///
    /// # Errors
    /// `NotSupported`, and those of [`Replace::begin_replacing`].
    pub fn begin_replacing(&self, old: &str, new: &str) -> Result<()> {
        self.heard(self.replacing_writable()?.begin_replacing(old, new))
    }

    /// Copies some more; see [`Replace::replace_some`].
    ///
    /// # Errors
    /// Those of [`Replace::replace_some`].
    pub fn replace_some(&self) -> Result<()> {
        self.heard(self.replacing_writable()?.replace_some())
    }

    /// The old disk stays.
    ///
    /// # Errors
    /// `NotSupported` for a volume whose disks are not replaced.
    pub fn stop_replacing(&self) -> Result<()> {
        self.replacing()?.stop_replacing();
        Ok(())
    }

    /// How far it is.
    ///
    /// # Errors
    /// `NotSupported` for a volume whose disks are not replaced.
    pub fn replace_state(&self) -> Result<ReplaceState> {
        Ok(self.replacing()?.replace_state())
    }

    pub(crate) fn disks_xattr(&self, number: InodeNumber) -> Result<Vec<u8>> {
        check_topmost(number)?;
        Ok(self.disks()?.join("\n").into_bytes())
    }

    pub(crate) fn replace_xattr(&self, number: InodeNumber) -> Result<Vec<u8>> {
        check_topmost(number)?;
        Ok(match self.replace_state()? {
            ReplaceState::Idle => String::from("idle"),
            ReplaceState::Copying(Copying { done, total, unreadable }) => {
                format!("copying {done} {total} {unreadable}")
            }
            ReplaceState::Done(Replaced { unreadable, not_cleared }) => {
                format!("done {unreadable} {}", not_cleared.unwrap_or_default())
            }
        }
        .into_bytes())
    }

    pub(crate) fn set_replace_xattr(&self, caller: &Caller, number: InodeNumber, value: &[u8]) -> Result<()> {
        check_topmost(number)?;
        check_root(caller, number)?;
        let wrong = |why: &str| Error::of(ErrorKind::Invalid, number, why);
        match str::from_utf8(value).map_err(|_| wrong("that is no path"))? {
            REPLACE_FURTHER => self.replace_some(),
            STOP_REPLACING => self.stop_replacing(),
            names => match names.split_once('\n') {
                Some((old, new)) => self.begin_replacing(old, new),
                None => Err(wrong("a disk is replaced by its name, a line feed, and the path of another one")),
            },
        }
    }
}
