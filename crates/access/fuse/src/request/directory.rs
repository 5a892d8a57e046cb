//! Directory listings in the form the kernel wants them.
//!
//! The file system hands out entries one by one; what does not fit into the answer any more is
//! refused and comes first the next time.

use crate::request::convert::{attributes, errno, file_type, inode, no_attributes};
use fuser::{FileAttr, Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use onode_fs::{DirectoryEntry, FileSystem};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

pub(crate) fn read(files: &FileSystem, number: INodeNo, offset: u64, mut reply: ReplyDirectory) {
    let result = files.read_directory(inode(number), offset, &mut |entry: &DirectoryEntry| {
        let name = OsStr::from_bytes(&entry.name);
        !reply.add(INodeNo(entry.inode.0), entry.cursor, file_type(entry.file_type), name)
    });
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

pub(crate) fn read_plus(
    files: &FileSystem,
    number: INodeNo,
    offset: u64,
    ttl: &Duration,
    mut reply: ReplyDirectoryPlus,
) {
    let result = files.read_directory_plus(inode(number), offset, &mut |entry: &DirectoryEntry| {
        let name = OsStr::from_bytes(&entry.name);
        let number = INodeNo(entry.inode.0);
        let added = match &entry.attributes {
            Some(found) => {
                let generation = Generation(u64::from(found.generation));
                reply.add(number, entry.cursor, name, ttl, &attributes(found), generation)
            }
            // `.`, `..` and files whose inode is damaged: a name and a type, not to be remembered.
            None => {
                let shown = FileAttr { ino: number, kind: file_type(entry.file_type), ..no_attributes() };
                reply.add(number, entry.cursor, name, &Duration::ZERO, &shown, Generation(0))
            }
        };
        !added
    });
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}
