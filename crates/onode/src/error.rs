//! The error that people read: what failed and where, why, and what to do now.
//!
//! Every layer below has its own small error; here they become one sentence, one hint and one
//! [`Class`], from which the exit code follows. The classes are a promise to scripts: a number
//! never changes its meaning.

use onode_base::ErrorKind;
use onode_media::MediaErrorKind;
use std::fmt;
use std::io;
use std::path::Path;

/// What kind of trouble it is, in terms of what a script would do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Anything without a class of its own.
    General,
    /// The command line or a device spec is wrong.
    Usage,
    /// The file is not an Onode image.
    NotAnImage,
    /// The image or data in it is damaged or cut short.
    Damaged,
    /// The image was made by a newer version.
    NewerFormat,
    /// Somebody else uses the image.
    InUse,
    /// The image or volume accepts no changes.
    ReadOnly,
    /// The volume is full.
    VolumeFull,
    /// The host's file system that holds the image is full.
    HostFull,
    /// The mount point is missing, not a directory, not empty or in use.
    MountPoint,
    /// The system offers no FUSE.
    NoFuse,
    /// A size is impossible.
    BadSize,
    /// No such file or object.
    NotFound,
    /// It exists already and nobody said that it may be replaced.
    Exists,
    /// The user lacks a permission.
    Permission,
    /// The volume holds less than it promised, and nobody consented to go on without.
    Loss,
    /// The volume is encrypted, and no key was given that opens it.
    Key,
    /// A transaction changed what somebody else changed meanwhile.
    Conflict,
    /// A limit of a directory tree, a user, a group or a pool is reached.
    OverLimit,
    /// A mistake in Onode itself.
    Bug,
}

impl Class {
    /// Every class, in the order of its exit code.
    pub const ALL: [Self; 20] = [
        Self::General,
        Self::Usage,
        Self::NotAnImage,
        Self::Damaged,
        Self::NewerFormat,
        Self::InUse,
        Self::ReadOnly,
        Self::VolumeFull,
        Self::HostFull,
        Self::MountPoint,
        Self::NoFuse,
        Self::BadSize,
        Self::NotFound,
        Self::Exists,
        Self::Permission,
        Self::Loss,
        Self::Key,
        Self::Conflict,
        Self::OverLimit,
        Self::Bug,
    ];

    /// The exit code of a command that ends with it.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::General => 1,
            Self::Usage => 2,
            Self::NotAnImage => 10,
            Self::Damaged => 11,
            Self::NewerFormat => 12,
            Self::InUse => 13,
            Self::ReadOnly => 14,
            Self::VolumeFull => 15,
            Self::HostFull => 16,
            Self::MountPoint => 17,
            Self::NoFuse => 18,
            Self::BadSize => 19,
            Self::NotFound => 20,
            Self::Exists => 21,
            Self::Permission => 22,
            Self::Loss => 23,
            Self::Key => 24,
            Self::Conflict => 25,
            Self::OverLimit => 26,
            Self::Bug => 70,
        }
    }

    /// A few words for the table of exit codes.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::General => "any other failure",
            Self::Usage => "wrong command line, option or device spec",
            Self::NotAnImage => "not an Onode image",
            Self::Damaged => "damaged or truncated image or data",
            Self::NewerFormat => "image of a newer format",
            Self::InUse => "image in use by another process",
            Self::ReadOnly => "image or volume is read-only",
            Self::VolumeFull => "no space left in the volume",
            Self::HostFull => "no space left on the host for the image",
            Self::MountPoint => "mount point missing, not a directory, not empty or in use",
            Self::NoFuse => "FUSE is not available",
            Self::BadSize => "impossible size or geometry",
            Self::NotFound => "no such image, file or object",
            Self::Exists => "it exists already",
            Self::Permission => "permission denied",
            Self::Loss => "acknowledged data is missing, and --accept-loss was not given",
            Self::Key => "the volume is encrypted, and no key that opens it was given",
            Self::Conflict => "a transaction changed what somebody else changed meanwhile",
            Self::OverLimit => "a limit of a directory tree, a user, a group or a pool is reached",
            Self::Bug => "a bug in Onode",
        }
    }

    const fn of_kind(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotFound | ErrorKind::NoAttribute | ErrorKind::Stale => Self::NotFound,
            ErrorKind::Exists => Self::Exists,
            ErrorKind::NoSpace => Self::VolumeFull,
            ErrorKind::Corrupt => Self::Damaged,
            ErrorKind::Loss => Self::Loss,
            ErrorKind::KeyNeeded => Self::Key,
            ErrorKind::WrongPart | ErrorKind::PartNeeded => Self::Usage,
            ErrorKind::HostFull => Self::HostFull,
            ErrorKind::Bug => Self::Bug,
            ErrorKind::ReadOnly => Self::ReadOnly,
            ErrorKind::Busy => Self::InUse,
            ErrorKind::Conflict => Self::Conflict,
            ErrorKind::QuotaExceeded => Self::OverLimit,
            ErrorKind::NotPermitted | ErrorKind::AccessDenied => Self::Permission,
            // Nothing that a script could do about it; the test below has the list, so that a new
            // kind does not come here unseen.
            _ => Self::General,
        }
    }

    /// The class of a failure of an object device.
    #[must_use]
    pub fn of_device(error: &onode_object::Error) -> Self {
        Self::of_detail(error.kind, &error.detail)
    }

    /// The class of a failure of the file system.
    #[must_use]
    pub fn of_files(error: &onode_fs::Error) -> Self {
        Self::of_detail(error.kind, &error.detail)
    }

    /// A device that turned read-only keeps why in words alone, those of the error that it met.
    fn of_detail(kind: ErrorKind, detail: &str) -> Self {
        let is_host_full = kind == ErrorKind::ReadOnly && detail.contains(ErrorKind::HostFull.describe());
        if is_host_full { Self::HostFull } else { Self::of_kind(kind) }
    }

    /// What one can usually do about it, if there is such a thing.
    const fn usual_hint(self) -> Option<&'static str> {
        match self {
            Self::NotAnImage => Some("give the path of an image that `onode mkfs` or `onode up` made"),
            Self::Damaged => Some("`onode check IMAGE` tells what is damaged; it changes nothing"),
            Self::NewerFormat => Some("use a newer version of onode; this one leaves the image alone"),
            Self::InUse => Some("unmount it first (`onode umount DIR`), or wait until the other command ends"),
            Self::ReadOnly => Some("check the permissions of the image file and the mount options"),
            Self::VolumeFull => Some("remove something, or make the volume larger with `onode resize`"),
            Self::HostFull => Some("free space on the disk that holds the image, then try again"),
            Self::NoFuse => Some("run `modprobe fuse`, or in a container pass --device /dev/fuse --cap-add SYS_ADMIN"),
            Self::Permission => Some("run it as the owner or as root"),
            Self::Loss => {
                Some("copy the image first; then --accept-loss (or -o accept-loss) goes on without what is lost")
            }
            Self::Key => Some("give one with --key-file FILE, --passphrase-file FILE or --keyring NAME"),
            Self::Conflict => Some("abort it and do it again; `onode tx run --retry N` does that by itself"),
            Self::OverLimit => Some("remove something there; `onode quota report` shows limits and what is used"),
            Self::Bug => Some("please report it, with the command and the message above"),
            Self::General | Self::Usage | Self::MountPoint | Self::BadSize | Self::NotFound | Self::Exists => None,
        }
    }
}

/// One clear sentence, a hint and a class.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The kind of trouble.
    pub class: Class,
    /// What could not be done, with the place it concerns.
    pub what: String,
    /// Why; may be empty.
    pub why: String,
    /// What to do now, if there is something to do.
    pub hint: Option<String>,
}

/// A result for people.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `class` with its usual hint.
    #[must_use]
    pub fn new(class: Class, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { class, what: what.into(), why: why.into(), hint: class.usual_hint().map(str::to_owned) }
    }

    /// An error as another process told it: with its exit code, its words and no hint but that one.
    #[must_use]
    pub fn told(exit_code: u8, what: String, why: String, hint: Option<String>) -> Self {
        let class = Class::ALL.into_iter().find(|class| class.exit_code() == exit_code);
        Self { class: class.unwrap_or(Class::General), what, why, hint }
    }

    /// Replaces what could not be done.
    #[must_use]
    pub fn what(mut self, what: impl Into<String>) -> Self {
        self.what = what.into();
        self
    }

    /// Replaces the reason.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    /// Replaces the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// An error of the operating system while doing `what`.
    #[must_use]
    pub fn host(what: impl Into<String>, error: &io::Error) -> Self {
        let class = match error.kind() {
            io::ErrorKind::NotFound => Class::NotFound,
            io::ErrorKind::PermissionDenied => Class::Permission,
            io::ErrorKind::AlreadyExists => Class::Exists,
            io::ErrorKind::StorageFull => Class::HostFull,
            io::ErrorKind::QuotaExceeded => Class::OverLimit,
            io::ErrorKind::ReadOnlyFilesystem => Class::ReadOnly,
            _ => Class::General,
        };
        Self::new(class, what, error.to_string())
    }

    /// An error of the host about one file.
    #[must_use]
    pub fn host_file(action: &str, path: &Path, error: &io::Error) -> Self {
        Self::host(format!("cannot {action} {}", path.display()), error)
    }

    /// An error of an object device while doing `what`.
    #[must_use]
    pub fn device(what: impl Into<String>, error: &onode_object::Error) -> Self {
        Self::new(Class::of_device(error), what, error.to_string())
    }

    /// An error of a medium while doing `what`.
    #[must_use]
    pub fn medium(what: impl Into<String>, error: &onode_media::Error) -> Self {
        let class = match error.kind {
            MediaErrorKind::HostFull => Class::HostFull,
            MediaErrorKind::NoSpace => Class::VolumeFull,
            MediaErrorKind::Locked | MediaErrorKind::InUse => Class::InUse,
            MediaErrorKind::NotAnImage => Class::NotAnImage,
            MediaErrorKind::Damaged | MediaErrorKind::Uncorrectable => Class::Damaged,
            MediaErrorKind::NewerFormat => Class::NewerFormat,
            MediaErrorKind::ReadOnly => Class::ReadOnly,
            MediaErrorKind::NotFound | MediaErrorKind::NoSuchSpace => Class::NotFound,
            MediaErrorKind::Exists => Class::Exists,
            MediaErrorKind::Denied => Class::Permission,
            MediaErrorKind::OutOfRange | MediaErrorKind::Invalid => Class::BadSize,
            MediaErrorKind::Host
            | MediaErrorKind::ProgramFailed
            | MediaErrorKind::EraseFailed
            | MediaErrorKind::BadBlock
            | MediaErrorKind::ProgramOrder => Class::General,
        };
        Self::new(class, what, error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if !self.why.is_empty() {
            write!(f, ": {}", self.why)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new kind of error is no general one unless somebody says so.
    #[test]
    fn every_kind_of_error_was_given_its_class() {
        let general = ErrorKind::ALL.into_iter().filter(|kind| Class::of_kind(*kind) == Class::General);
        let given = [
            ErrorKind::Invalid,
            ErrorKind::Media,
            ErrorKind::NotDirectory,
            ErrorKind::IsDirectory,
            ErrorKind::NotEmpty,
            ErrorKind::NameTooLong,
            ErrorKind::TooManyLinks,
            ErrorKind::Range,
            ErrorKind::NoSuchOffset,
            ErrorKind::BadHandle,
            ErrorKind::TooLarge,
            ErrorKind::NotSupported,
            ErrorKind::OutOfMemory,
            ErrorKind::CrossDevice,
        ];
        assert_eq!(general.collect::<Vec<_>>(), given);
    }

    #[test]
    fn exit_codes_are_unique_and_ordered() {
        assert!(Class::ALL.windows(2).all(|pair| pair[0].exit_code() < pair[1].exit_code()));
        assert_eq!(Class::ALL.len(), Class::Bug as usize + 1);
    }
}
