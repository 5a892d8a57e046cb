//! The error of a medium: what failed and where.

use alloc::string::String;
use core::fmt;
use onode_base::ErrorKind;

/// What a medium cannot do.
///
/// The list is closed, unlike that of [`ErrorKind`]: the crates above say of every kind what it
/// means for a volume, and a new one must not be taken for some other failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaErrorKind {
    /// More bit errors than the medium can correct, or a page that no program finished.
    Uncorrectable,
    /// A program failed; the content of the page is undefined.
    ProgramFailed,
    /// An erase failed; the block should be retired.
    EraseFailed,
    /// The block is marked bad.
    BadBlock,
    /// Past the end, or a buffer of the wrong size: a mistake of the caller.
    OutOfRange,
    /// A page programmed twice or out of order: a mistake of the caller.
    ProgramOrder,
    /// The operating system refused; the detail says why.
    Host,
    /// No space on the host for the image.
    HostFull,
    /// No space left on the medium itself.
    NoSpace,
    /// The memory has no space of that name.
    NoSuchSpace,
    /// Somebody in this process uses it.
    InUse,
    /// A name, a length or the like that cannot be.
    Invalid,
    /// No such file on the host.
    NotFound,
    /// There is a file of that name already.
    Exists,
    /// Another process uses the medium.
    Locked,
    /// The user may not open the medium.
    Denied,
    /// Not an image of this kind.
    NotAnImage,
    /// An image, but damaged or cut short.
    Damaged,
    /// An image of a newer format.
    NewerFormat,
    /// The medium accepts reads only.
    ReadOnly,
}

/// An error of a medium.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// What failed.
    pub kind: MediaErrorKind,
    /// The page or block concerned, in words; empty if none.
    pub detail: String,
}

/// A result of a medium.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// An error of `kind`; `detail` says where and what was expected.
    #[must_use]
    pub fn new(kind: MediaErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// The kind by which the layers above know it.
    #[must_use]
    pub const fn error_kind(&self) -> ErrorKind {
        match self.kind {
            MediaErrorKind::NotFound | MediaErrorKind::NoSuchSpace => ErrorKind::NotFound,
            MediaErrorKind::Exists => ErrorKind::Exists,
            MediaErrorKind::Locked | MediaErrorKind::InUse => ErrorKind::Busy,
            MediaErrorKind::Denied => ErrorKind::AccessDenied,
            MediaErrorKind::ReadOnly => ErrorKind::ReadOnly,
            MediaErrorKind::NotAnImage
            | MediaErrorKind::NewerFormat
            | MediaErrorKind::OutOfRange
            | MediaErrorKind::Invalid => ErrorKind::Invalid,
            MediaErrorKind::Damaged => ErrorKind::Corrupt,
            MediaErrorKind::HostFull => ErrorKind::HostFull,
            MediaErrorKind::NoSpace => ErrorKind::NoSpace,
            MediaErrorKind::Uncorrectable
            | MediaErrorKind::ProgramFailed
            | MediaErrorKind::EraseFailed
            | MediaErrorKind::BadBlock
            | MediaErrorKind::ProgramOrder
            | MediaErrorKind::Host => ErrorKind::Media,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            MediaErrorKind::Uncorrectable => "uncorrectable page",
            MediaErrorKind::ProgramFailed => "program failed",
            MediaErrorKind::EraseFailed => "erase failed",
            MediaErrorKind::BadBlock => "bad block",
            MediaErrorKind::OutOfRange => "address or buffer out of range",
            MediaErrorKind::ProgramOrder => "page programmed twice or out of order",
            MediaErrorKind::Host => "input/output error of the host",
            MediaErrorKind::HostFull => "no space left on the host",
            MediaErrorKind::NoSpace => "no room",
            MediaErrorKind::NoSuchSpace => "no such space",
            MediaErrorKind::InUse => "in use",
            MediaErrorKind::Invalid => "not possible",
            MediaErrorKind::NotFound => "no such file",
            MediaErrorKind::Exists => "exists already",
            MediaErrorKind::Locked => "in use by another process",
            MediaErrorKind::Denied => "permission denied",
            MediaErrorKind::NotAnImage => "not an Onode image",
            MediaErrorKind::Damaged => "damaged image",
            MediaErrorKind::NewerFormat => "image of a newer format",
            MediaErrorKind::ReadOnly => "read-only medium",
        };
        f.write_str(what)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl core::error::Error for Error {}
