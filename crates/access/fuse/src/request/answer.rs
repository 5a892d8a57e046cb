//! Answers to the kernel from what a call of the file system came to.

use crate::request::convert::{attributes, errno, errno_of};
use crate::request::page_cache::PageCache;
use fuser::{
    Errno, FileAttr, Generation, INodeNo, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyStatfs, ReplyWrite, ReplyXattr,
};
use onode_base::ErrorKind;
use onode_fs::{Attributes, StatFs};
use std::sync::Arc;
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

pub(crate) fn answer_space(stat: &StatFs, reply: ReplyStatfs) {
    reply.statfs(
        stat.blocks,
        stat.blocks_free,
        stat.blocks_free,
        stat.files,
        stat.files_free,
        stat.block_bytes,
        stat.name_bytes_max,
        stat.block_bytes,
    );
}

/// The answer to a write that is under way.
pub(crate) struct Answer {
    pub(crate) number: INodeNo,
    pub(crate) offset: u64,
    /// Where the kernel may hold what was there before.
    pub(crate) page_cache: Option<Arc<PageCache>>,
    pub(crate) reply: ReplyWrite,
}

impl Answer {
    /// Tells what it came to.
    pub(crate) fn written(self, written: onode_fs::Result<usize>) {
        let Self { number, offset, page_cache, reply } = self;
        match (written, page_cache) {
            // A request carries at most a mebibyte.
            (Ok(length), Some(page_cache)) => page_cache.written(number, offset, length as u32, reply),
            (Ok(length), None) => reply.written(length as u32),
            (Err(error), _) => reply.error(errno(&error)),
        }
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
