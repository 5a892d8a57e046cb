//! Directory listings in the form the kernel wants them.
//!
//! The file system hands out entries one by one; what does not fit into the answer any more is
//! refused and comes first the next time.

use crate::request::answer::{Entry, Listed};
use crate::request::convert::{errno, file_type, no_attributes};
use crate::request::place::Place;
use fuser::{Errno, FileAttr, Generation, INodeNo};
use onode_fs::DirectoryEntry;
use std::time::Duration;

/// A name and a type, not to be remembered: `.`, `..` and files whose inode is damaged.
fn bare(place: &Place<'_>, entry: &DirectoryEntry) -> Entry {
    let number = place.number(entry.inode);
    let attributes = FileAttr { ino: number, kind: file_type(entry.file_type), ..no_attributes() };
    Entry { attributes, generation: Generation(0) }
}

/// Hands the entries from `offset` on to `take` until it refuses one. With `plus` they come with
/// attributes, which the kernel may believe for `ttl`.
pub(crate) fn list(
    place: &Place<'_>,
    number: INodeNo,
    offset: u64,
    plus: Option<Duration>,
    take: &mut dyn FnMut(&Listed<'_>) -> bool,
) -> Result<(), Errno> {
    let each = &mut |entry: &DirectoryEntry| {
        let (shown, ttl) = match (&entry.attributes, plus) {
            (Some(found), Some(ttl)) => (place.entry(found), ttl),
            _ => (bare(place, entry), Duration::ZERO),
        };
        take(&Listed { entry: shown, cursor: entry.cursor, name: &entry.name, ttl })
    };
    let listed = match plus {
        Some(_) => place.read_directory_plus(place.inode(number), offset, each),
        None => place.read_directory(place.inode(number), offset, each),
    };
    listed.map_err(|error| errno(&error))
}
