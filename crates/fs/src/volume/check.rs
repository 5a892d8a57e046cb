//! The names part of fsck: whether inodes, names, links and attributes fit together.
//!
//! It stands on the object interface only and shares no code with the mounted file system except
//! the encodings. Findings are data; repairing is a step of its own ([`repair`]). Memory is used
//! for a few words of each object, not for names. Whether the bytes themselves are sound is the
//! device's scrub.

mod drop_key;
mod drop_links;
mod judge;
mod repair;
mod settings;
mod usage;
mod walk;

use crate::error::{Error, Result};
use crate::inodes::Inodes;
use crate::names::slots::NameHash;
use crate::volume::VolumeInfo;
use onode_base::ErrorKind;
use onode_object::{ObjectDevice, ObjectId};
use std::fmt;

pub use drop_key::drop_key;
pub use drop_links::drop_links;
pub use repair::{Repaired, repair};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is wrong; the next mount deals with it.
    Note,
    /// Something is wrong that harms no file.
    Warning,
    /// A name, a file or an attribute is damaged or lost.
    Error,
    /// The volume cannot be mounted.
    Fatal,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// The settings of the volume are not there or damaged.
    VolumeDamaged,
    /// There is no root directory.
    RootMissing,
    /// The device could not read something of this object.
    Unreadable,
    /// A file has no inode.
    InodeMissing,
    /// The inode cannot be decoded.
    InodeDamaged,
    /// A stored name cannot be decoded.
    EntryDamaged,
    /// A name is in a slot where a lookup does not find it.
    EntryMisplaced,
    /// A name is twice in a directory.
    EntryDuplicate,
    /// A name leads to nothing.
    EntryDangling,
    /// A name says another type than the inode.
    EntryWrongType,
    /// Something that is no directory has names in it.
    NamesInFile,
    /// A directory has a second name.
    DirectoryTwice,
    /// Directories contain each other and hang on nothing.
    DirectoryCycle,
    /// `..` leads to another directory than the one with the name.
    WrongParent,
    /// The number of names in a directory is wrong.
    WrongEntryCount,
    /// The number of links is wrong.
    WrongLinkCount,
    /// A file has no name and is no orphan.
    Unreachable,
    /// An object belongs to nothing.
    LostObject,
    /// A file without a name that was open when the volume was last used.
    Orphan,
    /// An orphan is listed that does not exist.
    OrphanMissing,
    /// An orphan is listed that has a name.
    OrphanNamed,
    /// A stored extended attribute cannot be decoded.
    XattrDamaged,
    /// An extended attribute is in a slot where a search does not find it.
    XattrMisplaced,
    /// A file has extended attributes, but its inode says it has none.
    XattrsHidden,
    /// The object with the value of an extended attribute is missing or has another size.
    XattrValueWrong,
    /// A limit cannot be decoded.
    QuotaDamaged,
    /// A limit is for a directory that does not exist.
    QuotaOfNothing,
    /// What a limit says is used of its bytes is wrong.
    WrongQuotaBytes,
    /// What a limit says is used of its files is wrong.
    WrongQuotaFiles,
}

impl FindingKind {
    /// How bad it is.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self {
            Self::VolumeDamaged | Self::RootMissing => Severity::Fatal,
            Self::Unreadable
            | Self::InodeMissing
            | Self::InodeDamaged
            | Self::EntryDamaged
            | Self::EntryMisplaced
            | Self::EntryDuplicate
            | Self::EntryDangling
            | Self::EntryWrongType
            | Self::NamesInFile
            | Self::DirectoryTwice
            | Self::DirectoryCycle
            | Self::WrongParent
            | Self::Unreachable
            | Self::OrphanNamed
            | Self::XattrDamaged
            | Self::XattrMisplaced
            | Self::XattrsHidden
            | Self::XattrValueWrong
            | Self::QuotaDamaged => Severity::Error,
            Self::WrongEntryCount
            | Self::WrongLinkCount
            | Self::LostObject
            | Self::OrphanMissing
            | Self::QuotaOfNothing
            | Self::WrongQuotaBytes
            | Self::WrongQuotaFiles => Severity::Warning,
            Self::Orphan => Severity::Note,
        }
    }

    /// A few words for people.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::VolumeDamaged => "the settings of the volume are missing or damaged",
            Self::RootMissing => "there is no root directory",
            Self::Unreadable => "cannot be read",
            Self::InodeMissing => "has no inode",
            Self::InodeDamaged => "inode is damaged",
            Self::EntryDamaged => "a stored name is damaged",
            Self::EntryMisplaced => "a name is where no lookup finds it",
            Self::EntryDuplicate => "a name is there twice",
            Self::EntryDangling => "a name leads to nothing",
            Self::EntryWrongType => "a name says the wrong type",
            Self::NamesInFile => "is no directory but has names in it",
            Self::DirectoryTwice => "a directory has a second name",
            Self::DirectoryCycle => "directories contain each other",
            Self::WrongParent => "`..` leads to the wrong directory",
            Self::WrongEntryCount => "number of names is wrong",
            Self::WrongLinkCount => "number of links is wrong",
            Self::Unreachable => "has no name",
            Self::LostObject => "object belongs to nothing",
            Self::Orphan => "was open without a name; the next mount removes it",
            Self::OrphanMissing => "is listed as an orphan but does not exist",
            Self::OrphanNamed => "is listed as an orphan but has a name",
            Self::XattrDamaged => "an extended attribute is damaged",
            Self::XattrMisplaced => "an extended attribute is where no search finds it",
            Self::XattrsHidden => "extended attributes are hidden",
            Self::XattrValueWrong => "the value of an extended attribute is missing or cut",
            Self::QuotaDamaged => "a limit is damaged",
            Self::QuotaOfNothing => "a limit is for a directory that does not exist",
            Self::WrongQuotaBytes => "what a limit says is used of its bytes is wrong",
            Self::WrongQuotaFiles => "what a limit says is used of its files is wrong",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// Where: for names and attributes the object that holds them.
    pub object: ObjectId,
    /// The slot concerned, if it is one.
    pub slot: Option<u64>,
    /// The name concerned, if it is one.
    pub name: Option<Vec<u8>>,
    /// What should be: a count, an inode number or a type.
    pub expected: Option<u64>,
    /// What is.
    pub found: Option<u64>,
}

impl Finding {
    pub(crate) const fn new(kind: FindingKind, object: u64) -> Self {
        Self { kind, object: ObjectId(object), slot: None, name: None, expected: None, found: None }
    }

    pub(crate) fn at(mut self, slot: u64, name: &[u8]) -> Self {
        self.slot = Some(slot);
        self.name = Some(name.to_vec());
        self
    }

    pub(crate) const fn counts(mut self, expected: u64, found: u64) -> Self {
        self.expected = Some(expected);
        self.found = Some(found);
        self
    }

    /// How bad it is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.kind.severity()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.kind.describe())?;
        if let Some(name) = &self.name {
            write!(f, ", name {:?}", String::from_utf8_lossy(name))?;
        }
        match (self.expected, self.found) {
            (Some(expected), Some(found)) => write!(f, ", expected {expected}, found {found}"),
            (None, Some(found)) => write!(f, ", found {found}"),
            _ => Ok(()),
        }
    }
}

/// What a check saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What is wrong, in a fixed order.
    pub findings: Vec<Finding>,
    /// Objects looked at.
    pub objects: u64,
    /// Files that are no directories.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Names.
    pub names: u64,
    /// Bytes of all files by their sizes.
    pub bytes: u64,
    /// Files and directories that need a key of a directory which is locked, and those to which a
    /// name in such a directory may lead: neither names that lead to them nor names in them were
    /// looked at.
    pub locked: u64,
}

impl Report {
    /// Whether nothing is wrong. Orphans are not.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.worst() <= Some(Severity::Note)
    }

    /// How bad the worst finding is.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(Finding::severity).max()
    }
}

/// Checks the file system on a device that nobody has mounted.
///
/// # Errors
/// Only if the check itself cannot go on; what is damaged is a finding.
pub fn check(device: &dyn ObjectDevice) -> Result<Report> {
    match load_settings(device)? {
        Some((hash, inodes)) => check_with(device, hash, inodes),
        None => {
            let finding = Finding::new(FindingKind::VolumeDamaged, crate::volume::VOLUME.0);
            Ok(Report { findings: vec![finding], ..Report::default() })
        }
    }
}

/// The volume's name hash and where its inodes are; `None` if its settings are gone.
pub(crate) fn load_settings(device: &dyn ObjectDevice) -> Result<Option<(NameHash, Inodes)>> {
    let bytes = match device.attribute(crate::volume::VOLUME, crate::volume::VOLUME_KEY) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Corrupt) => None,
        Err(error) => return Err(error.into()),
    };
    let Some(info) = bytes.and_then(|bytes| VolumeInfo::decode(&bytes)) else { return Ok(None) };
    if info.format_version != crate::volume::FORMAT_VERSION || info.unknown_features() != 0 {
        return Err(Error::new(ErrorKind::Invalid, "the volume is of a format this program does not know"));
    }
    Ok(Some((NameHash::new(info.hash_key), info.inodes())))
}

pub(crate) fn check_with(device: &dyn ObjectDevice, hash: NameHash, inodes: Inodes) -> Result<Report> {
    let mut walk = walk::Walk::new(device, hash, inodes, usage::Usage::load(device)?);
    walk.inodes()?;
    walk.orphans()?;
    walk.contents()?;
    Ok(judge::judge(walk))
}
