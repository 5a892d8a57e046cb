//! Tar streams: a tree of a volume as one, and one unpacked into a volume.
//!
//! Written are PAX archives, which hold names of any length, nanoseconds, holes and extended
//! attributes with access control lists. Read is also what GNU tar writes in its own format, and
//! older archives. Headers and records are read here and not by a library: the values of extended
//! attributes are any bytes, also such that look like records.
//!
//! An archive is not trusted: whatever it says, nothing outside of the directory that it is
//! unpacked into is touched, and nothing is written through a symbolic link.

mod header;
mod pack;
mod reader;
mod records;
mod sparse;
#[cfg(test)]
mod tests;
mod unpack;
mod writer;

pub use pack::{Packing, Top};
pub use reader::Reader;
pub use unpack::Unpacking;

use super::{Special, Xattr};
use onode_base::Timestamp;
use std::ffi::OsString;
use std::ops::Range;

/// Bytes of a block: a header, or a piece of content that is filled up with zeros.
const BLOCK_BYTES: usize = 512;

/// What a member of an archive is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MemberKind {
    /// A file with bytes.
    File,
    /// A directory.
    Directory,
    /// A symbolic link and where it leads.
    Link(OsString),
    /// One more name of the member of that name.
    Name(Vec<u8>),
    /// A device or FIFO.
    Special(Special),
    /// Something that no volume holds, by its letter.
    Unknown(u8),
}

/// A member of an archive, without its content.
#[derive(Clone, Debug)]
struct Member {
    /// Its name as the archive has it.
    name: Vec<u8>,
    kind: MemberKind,
    /// Bytes of a file, with its holes.
    size: u64,
    /// Where its content belongs, in order; the rest are holes.
    map: Vec<Range<u64>>,
    permissions: u16,
    uid: u32,
    gid: u32,
    modified: Timestamp,
    xattrs: Vec<Xattr>,
    /// It has an access control list in words, which a volume does not understand.
    has_worded_acl: bool,
}
