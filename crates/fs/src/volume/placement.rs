//! Where a tiered device keeps files: the mapping of directories to sections (paper 4, section
//! 3.5).
//!
//! What a directory says holds for what is made in it from then on, and goes with a file wherever
//! it is renamed to ([advice](crate::volume::advice)): the longest prefix of the paper is the
//! directory a file was made in.
//!
//! Programs reach it through attributes that no listing shows: the placement is one of the
//! [hints](crate::volume::hints), [`MOVE`] is set to `promote`, `promote-later` or `demote`, and
//! [`SECTIONS`] is the division of the fast device.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::state::advice::Advice;
use crate::types::{FileType, InodeNumber};
use onode_base::ErrorKind;
use onode_object::Placement;
use onode_object::powers::{Moved, Place, SectionSize, Whereabouts};

/// The attribute whose setting moves the content.
pub const MOVE: &str = "onode.move";

/// The attribute of the topmost directory with the sections, each as `NAME:EXTENT:BYTES`, joined by
/// `+`. Who sets it divides the fast device anew, in proportion to the bytes.
pub const SECTIONS: &str = "onode.sections";

pub(crate) fn is_ours(name: &[u8]) -> bool {
    [MOVE, SECTIONS].iter().any(|ours| ours.as_bytes() == name)
}

impl FileSystem {
    pub(crate) fn tiers(&self) -> Result<&dyn Place> {
        let why = "the volume lies on one device: there is nothing to choose between";
        self.device.place().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))
    }

    /// Where a file's content goes from now on; of a directory, that of what is made in it.
    ///
    /// # Errors
    /// `NotSupported` on a device with one place only; `Stale`; the device's errors.
    pub fn chosen_placement(&self, number: InodeNumber) -> Result<Placement> {
        self.tiers()?;
        Ok(Placement::from_class(self.advice(&mut self.lock(), number)?.placement_class))
    }

    /// Changes where a file's content goes from now on. Nothing is copied: what lies on the fast
    /// device in another section stays until it is written anew or given up.
    ///
    /// # Errors
    /// As [`chosen_placement`](Self::chosen_placement); `ReadOnly`.
    pub fn set_placement(&self, number: InodeNumber, placement: Placement) -> Result<()> {
        self.check_writable()?;
        self.tiers()?;
        self.advise(number, |advice| advice.placement_class = placement.to_class())
    }

    /// Copies a file's content to the fast device, or puts it on the list if it need not wait.
    ///
    /// # Errors
    /// As [`chosen_placement`](Self::chosen_placement); those of [`Place::promote`].
    pub fn promote(&self, number: InodeNumber, waits: bool) -> Result<Moved> {
        self.written_out(number)?;
        Ok(self.tiers()?.promote(number.object(), waits)?)
    }

    /// Gives up what the fast device has of a file.
    ///
    /// # Errors
    /// As [`chosen_placement`](Self::chosen_placement); those of [`Place::demote`].
    pub fn demote(&self, number: InodeNumber) -> Result<Moved> {
        self.written_out(number)?;
        Ok(self.tiers()?.demote(number.object())?)
    }

    /// Where a file's content is, and why.
    ///
    /// # Errors
    /// As [`chosen_placement`](Self::chosen_placement).
    pub fn whereabouts(&self, number: InodeNumber) -> Result<Whereabouts> {
        let tiers = self.tiers()?;
        if !self.options.read_only {
            self.written_out(number)?;
        }
        Ok(tiers.why(number.object())?)
    }

    fn written_out(&self, number: InodeNumber) -> Result<()> {
        self.tiers()?;
        let state = &mut *self.lock();
        let node = self.node(state, number)?;
        if node.removed || !matches!(node.inode.file_type, FileType::Regular | FileType::Directory) {
            return Err(Error::of(ErrorKind::Invalid, number, "only files and directories have a place of their own"));
        }
        if self.options.read_only { Ok(()) } else { self.write_back_file(state, number) }
    }

    /// The placement that is part of the advice in words.
    pub(crate) fn placement_words(&self, advice: Advice) -> Result<String> {
        Ok(Placement::from_class(advice.placement_class).words(&self.tiers()?.sections()))
    }

    /// Changes of a placement what the words name.
    pub(crate) fn set_placement_words(&self, number: InodeNumber, words: &str) -> Result<()> {
        let placement = self.chosen_placement(number)?.parse(words, &self.tiers()?.sections());
        self.set_placement(number, placement.map_err(|why| Error::of(ErrorKind::Invalid, number, why))?)
    }

    /// What one of our attributes tells.
    pub(crate) fn placement_xattr(&self, number: InodeNumber, name: &[u8]) -> Result<Vec<u8>> {
        if name == SECTIONS.as_bytes() && number == InodeNumber::ROOT {
            return Ok(SectionSize::join(&self.tiers()?.division()).into_bytes());
        }
        Err(ErrorKind::NoAttribute.into())
    }

    /// Does what the setting of one of our attributes asks for.
    pub(crate) fn set_placement_xattr(&self, number: InodeNumber, name: &[u8], value: &[u8]) -> Result<()> {
        let invalid = |why: String| Error::of(ErrorKind::Invalid, number, why);
        let words = str::from_utf8(value).map_err(|_| invalid("it is not UTF-8".into()))?.trim();
        self.check_writable()?;
        if name == SECTIONS.as_bytes() && number == InodeNumber::ROOT {
            let sections = SectionSize::parse_all(words).filter(|sections| !sections.is_empty());
            let sections = sections.ok_or_else(|| invalid(format!("`{words}` is not NAME:EXTENT:BYTES+...")))?;
            return Ok(self.tiers()?.divide(&sections)?);
        }
        match (name == MOVE.as_bytes(), words) {
            (true, "promote") => self.promote(number, true).map(drop),
            (true, "promote-later") => self.promote(number, false).map(drop),
            (true, "demote") => self.demote(number).map(drop),
            (true, _) => Err(invalid(format!("`{words}` is none of promote, promote-later, demote"))),
            (false, _) => Err(Error::of(ErrorKind::NotPermitted, number, "only the topmost directory has sections")),
        }
    }
}
