//! Answers to the kernel from what a call of the file system came to.

use crate::convert::{attributes, errno, errno_of};
use fuser::{Errno, FileAttr, Generation, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyWrite, ReplyXattr};
use onode_base::ErrorKind;
use onode_fs::Attributes;
use std::time::Duration;

pub(crate) fn generation_of(of: &Attributes) -> Generation {
    Generation(u64::from(of.generation))
}

pub(crate) fn answer_entry(ttl: &Duration, result: onode_fs::Result<Attributes>, reply: ReplyEntry) {
    match result {
        Ok(found) => reply.entry(ttl, &attributes(&found), generation_of(&found)),
        Err(error) => reply.error(errno(&error)),
    }
}

pub(crate) fn answer_attributes(ttl: &Duration, result: onode_fs::Result<Attributes>, reply: ReplyAttr) {
    match result {
        Ok(found) => reply.attr(ttl, &attributes(&found)),
        Err(error) => reply.error(errno(&error)),
    }
}

pub(crate) fn answer_empty(result: onode_fs::Result<()>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

pub(crate) fn answer_written(written: onode_fs::Result<usize>, reply: ReplyWrite) {
    match written {
        // A request carries at most a mebibyte.
        Ok(length) => reply.written(length as u32),
        Err(error) => reply.error(errno(&error)),
    }
}

pub(crate) fn answer_shown(ttl: &Duration, shown: Result<FileAttr, Errno>, reply: ReplyAttr) {
    match shown {
        Ok(found) => reply.attr(ttl, &found),
        Err(errno) => reply.error(errno),
    }
}

pub(crate) fn answer_done(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

/// Answers with a value whose size may be asked for first.
pub(crate) fn answer_value(value: &[u8], size: u32, reply: ReplyXattr) {
    match u32::try_from(value.len()) {
        Ok(length) if size == 0 => reply.size(length),
        Ok(length) if length <= size => reply.data(value),
        _ => reply.error(errno_of(ErrorKind::Range)),
    }
}
