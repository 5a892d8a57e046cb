//! The kinds of failure of the whole house and the one table that turns a kind into an errno.
//!
//! A kind says what the caller can do. Layers add where and why in their own error types; the
//! number that a POSIX caller sees comes from [`ErrorKind::errno`] and from nowhere else.

/// What went wrong, in terms of what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorKind {
    // From the object interface.
    /// No such object, attribute holder or name.
    NotFound,
    /// It exists already.
    Exists,
    /// No space for the whole transaction; nothing of it was done.
    NoSpace,
    /// The request itself is malformed; it will never succeed.
    Invalid,
    /// Bytes that should be there failed verification; other data stays readable.
    Corrupt,
    /// The medium failed to read, program, erase or flush.
    Media,
    /// The data is encrypted and its key is not loaded.
    KeyNeeded,
    /// The device or mount accepts no changes (by choice, or after a failed write).
    ReadOnly,
    /// Somebody else uses it; try later.
    Busy,
    // From names and files.
    /// A path component is not a directory.
    NotDirectory,
    /// The operation does not work on a directory.
    IsDirectory,
    /// The directory still has entries.
    NotEmpty,
    /// A name is longer than 255 bytes, or a symbolic link target longer than 4,095.
    NameTooLong,
    /// Too many hard links.
    TooManyLinks,
    /// No such extended attribute.
    NoAttribute,
    /// The caller's buffer is too small for the answer.
    Range,
    /// No data or hole at or after that offset.
    NoSuchOffset,
    /// The operation is not permitted to anyone in this state (immutable, wrong type).
    NotPermitted,
    /// The caller lacks the permission.
    AccessDenied,
    /// The handle is not open, or not open for this.
    BadHandle,
    /// Past the largest file or value size.
    TooLarge,
    /// The file system does not offer this.
    NotSupported,
    /// Too many open handles or too much memory asked.
    OutOfMemory,
    /// A link across two file systems.
    CrossDevice,
    /// A handle from before, whose object is gone.
    Stale,
    // From opening a volume.
    /// The medium holds less than the volume promised; opening it would make that final. Nothing
    /// was changed.
    Loss,
    /// A disk or memory that was named beside another one is not one of this volume, or is one that
    /// this version does not know.
    WrongPart,
    /// The volume has a disk or memory beside this one, which was not named.
    PartNeeded,
    // From the host of an image.
    /// The host has no space left for the medium.
    HostFull,
    // From transactions of users.
    /// Somebody else changed what a transaction changes or has read; nothing of it was done.
    Conflict,
    // From Onode itself.
    /// Something that always holds does not: a mistake in Onode. What it concerned was not done.
    Bug,
    // From limits of directory trees, users and groups.
    /// More than a limit allows; nothing of it was done.
    QuotaExceeded,
}

impl ErrorKind {
    /// Every kind, for tests and the wire codec.
    pub const ALL: [Self; 32] = [
        Self::NotFound,
        Self::Exists,
        Self::NoSpace,
        Self::Invalid,
        Self::Corrupt,
        Self::Media,
        Self::KeyNeeded,
        Self::ReadOnly,
        Self::Busy,
        Self::NotDirectory,
        Self::IsDirectory,
        Self::NotEmpty,
        Self::NameTooLong,
        Self::TooManyLinks,
        Self::NoAttribute,
        Self::Range,
        Self::NoSuchOffset,
        Self::NotPermitted,
        Self::AccessDenied,
        Self::BadHandle,
        Self::TooLarge,
        Self::NotSupported,
        Self::OutOfMemory,
        Self::CrossDevice,
        Self::Stale,
        Self::Loss,
        Self::WrongPart,
        Self::PartNeeded,
        Self::HostFull,
        Self::Conflict,
        Self::Bug,
        Self::QuotaExceeded,
    ];

    /// The Linux errno of this kind (asm-generic numbering).
    #[must_use]
    pub const fn errno(self) -> i32 {
        match self {
            Self::NotFound => 2,
            Self::Exists => 17,
            Self::NoSpace | Self::HostFull => 28,
            Self::Invalid | Self::WrongPart | Self::PartNeeded => 22,
            Self::Corrupt | Self::Media | Self::Loss | Self::Bug => 5,
            Self::KeyNeeded => 126,
            Self::ReadOnly => 30,
            Self::Busy | Self::Conflict => 16,
            Self::NotDirectory => 20,
            Self::IsDirectory => 21,
            Self::NotEmpty => 39,
            Self::NameTooLong => 36,
            Self::TooManyLinks => 31,
            Self::NoAttribute => 61,
            Self::Range => 34,
            Self::NoSuchOffset => 6,
            Self::NotPermitted => 1,
            Self::AccessDenied => 13,
            Self::BadHandle => 9,
            Self::TooLarge => 27,
            Self::NotSupported => 95,
            Self::OutOfMemory => 12,
            Self::CrossDevice => 18,
            Self::Stale => 116,
            Self::QuotaExceeded => 122,
        }
    }

    /// A few words for people.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::Exists => "exists already",
            Self::NoSpace => "no space left",
            Self::Invalid => "invalid request",
            Self::Corrupt => "damaged data",
            Self::Media => "medium failure",
            Self::KeyNeeded => "key needed",
            Self::ReadOnly => "read-only",
            Self::Busy => "in use",
            Self::NotDirectory => "not a directory",
            Self::IsDirectory => "is a directory",
            Self::NotEmpty => "directory not empty",
            Self::NameTooLong => "name too long",
            Self::TooManyLinks => "too many links",
            Self::NoAttribute => "no such attribute",
            Self::Range => "buffer too small",
            Self::NoSuchOffset => "no such offset",
            Self::NotPermitted => "not permitted",
            Self::AccessDenied => "access denied",
            Self::BadHandle => "bad handle",
            Self::TooLarge => "too large",
            Self::NotSupported => "not supported",
            Self::OutOfMemory => "out of memory",
            Self::CrossDevice => "across file systems",
            Self::Stale => "stale handle",
            Self::Loss => "acknowledged data is missing",
            Self::WrongPart => "not a part of this volume",
            Self::PartNeeded => "a part of the volume is not named",
            Self::HostFull => "no space left on the host",
            Self::Conflict => "a conflict",
            Self::Bug => "a mistake in Onode",
            Self::QuotaExceeded => "over a limit",
        }
    }
}

impl core::fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.describe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_listed_once() {
        let mut sorted = ErrorKind::ALL;
        sorted.sort();
        assert!(sorted.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(ErrorKind::ALL.len(), ErrorKind::QuotaExceeded as usize + 1);
        assert!(ErrorKind::ALL.iter().all(|kind| kind.errno() > 0));
    }
}
