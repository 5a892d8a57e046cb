//! What was said of a file, where it comes from, and what the device makes of it: for people who
//! ask why.
//!
//! Programs read it as the attribute [`WHY`], a line each: `hint=NAME VALUE ORIGIN`,
//! `decision=MATTER`, choice and reason with tabs between them, and on two disks where the content
//! lies.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::state::advice::Advice;
use crate::types::{FileType, InodeNumber};
use crate::volume::hints::Hint;
use onode_base::ErrorKind;
use onode_object::powers::{Decision, Whereabouts};
use std::fmt::Write;

/// The attribute that tells what was said and decided of a file.
pub const WHY: &str = "onode.why";

/// Who said what a hint says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: device and mount decide.
    Nobody,
    /// The directory in which the file was made says the same.
    Directory,
    /// It was said of the file itself, or by a directory that says something else now.
    Own,
}

impl Origin {
    /// The word for it in the attribute.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Directory => "directory",
            Self::Own => "own",
        }
    }

    /// What a word stands for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Nobody, Self::Directory, Self::Own].into_iter().find(|one| one.name() == name)
    }
}

/// A hint that a file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenHint {
    /// Which.
    pub hint: Hint,
    /// Its value in words.
    pub value: String,
    /// Who said so.
    pub origin: Origin,
}

/// What was said of a file and what comes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The hints, those that nobody gave too; none that the volume has no use for.
    pub hints: Vec<GivenHint>,
    /// What the device makes of them.
    pub decisions: Vec<Decision>,
    /// Where two disks have the content.
    pub whereabouts: Option<Whereabouts>,
}

impl FileSystem {
    /// What was said of a file or directory, and what its device makes of it.
    ///
    /// # Errors
    /// `Stale`; `Invalid` for what is neither file nor directory; the device's errors.
    pub fn explain(&self, number: InodeNumber) -> Result<Explanation> {
        let (own, directory) = self.advice_beside(number)?;
        let mut explanation = Explanation::default();
        for hint in Hint::ALL {
            let value = match self.hint(number, hint) {
                Err(error) if error.kind == ErrorKind::NotSupported => continue,
                value => value?,
            };
            explanation.hints.push(GivenHint { hint, value, origin: origin(hint, own, directory) });
        }
        explanation.decisions = self.device.decisions(number.object())?;
        if self.device.compression().is_none() {
            let why = "nothing on this volume is, unless it is opened with compress= once";
            explanation.decisions.insert(0, Decision::new("compression", "none", why));
        }
        if self.device.place().is_some() {
            explanation.whereabouts = Some(self.whereabouts(number)?);
        }
        Ok(explanation)
    }

    /// The advice of a file, written out, and that of the directory in which it was made.
    fn advice_beside(&self, number: InodeNumber) -> Result<(Advice, Advice)> {
        let state = &mut *self.lock();
        let node = self.node(state, number)?;
        let inode = node.inode;
        if node.removed || !matches!(inode.file_type, FileType::Regular | FileType::Directory) {
            return Err(Error::of(ErrorKind::Invalid, number, "only files and directories have hints"));
        }
        if !self.options.read_only {
            self.write_back_file(state, number)?;
        }
        let hints = self.device.stat(number.object())?.hints;
        let parent = if inode.is_directory() { Some(inode.parent) } else { hints.locality.map(|object| object.0) };
        let parent = parent.filter(|parent| *parent != number.0).map(InodeNumber);
        // It may be gone, and then it says nothing any more.
        let said = parent.and_then(|parent| self.device.stat(parent.object()).ok());
        Ok((Advice::of(&hints), said.map(|stat| Advice::of(&stat.hints)).unwrap_or_default()))
    }

    /// What the attribute tells.
    pub(crate) fn why_xattr(&self, number: InodeNumber) -> Result<Vec<u8>> {
        Ok(told(&self.explain(number)?).into_bytes())
    }
}

fn origin(hint: Hint, own: Advice, directory: Advice) -> Origin {
    let is_same = |other: Advice| match hint {
        Hint::Lifetime => own.lifetime == other.lifetime,
        Hint::Temperature => own.temperature == other.temperature,
        Hint::Size => own.expected_size == other.expected_size,
        Hint::Compress => own.compression == other.compression,
        Hint::Parity => own.parity_pages == other.parity_pages,
        Hint::Placement => own.placement_class == other.placement_class,
        Hint::Key => own.encryption_key == other.encryption_key,
    };
    match (is_same(Advice::default()), is_same(directory)) {
        (true, _) => Origin::Nobody,
        (false, true) => Origin::Directory,
        (false, false) => Origin::Own,
    }
}

fn told(explanation: &Explanation) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for GivenHint { hint, value, origin } in &explanation.hints {
        let _ = writeln!(text, "hint={} {value} {}", hint.name(), origin.name());
    }
    for Decision { matter, choice, why } in &explanation.decisions {
        let _ = writeln!(text, "decision={matter}\t{choice}\t{why}");
    }
    let Some(Whereabouts { big_bytes, fast_bytes, log_bytes, section, reasons }) = &explanation.whereabouts else {
        return text;
    };
    let section = section.as_deref().unwrap_or("");
    let _ = write!(text, "big={big_bytes}\nfast={fast_bytes}\nlog={log_bytes}\nsection={section}\n");
    for reason in reasons {
        let _ = writeln!(text, "reason={reason}");
    }
    text
}
