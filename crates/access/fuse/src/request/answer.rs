//! What the kernel is answered, whichever way the answer goes.

use crate::request::convert::errno;
use crate::request::page_cache::PageCache;
use crate::request::reply::{LateReply, Reply};
use fuser::{FileAttr, Generation, INodeNo};
use std::sync::Arc;
use std::time::Duration;

/// A name and what it stands for.
pub(crate) struct Entry {
    pub(crate) attributes: FileAttr,
    pub(crate) generation: Generation,
}

/// One of the files that a directory lists.
pub(crate) struct Listed<'a> {
    pub(crate) entry: Entry,
    /// Where a listing goes on behind it.
    pub(crate) cursor: u64,
    pub(crate) name: &'a [u8],
    /// How long the kernel may remember the attributes.
    pub(crate) ttl: Duration,
}

/// A value, or its length if that was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Length(u32),
    Bytes(Vec<u8>),
}

/// The answer to a write that is under way.
pub(crate) struct Answer<R> {
    pub(crate) number: INodeNo,
    pub(crate) offset: u64,
    /// All of it is written, or the answer is an error.
    pub(crate) is_whole: bool,
    /// Where the kernel may hold what was there before.
    pub(crate) page_cache: Option<Arc<PageCache>>,
    pub(crate) reply: R,
}

impl<R: Reply<u32>> Answer<R> {
    /// Tells what it came to.
    pub(crate) fn written(self, written: onode_fs::Result<usize>) {
        let Self { number, offset, page_cache, reply, .. } = self;
        match (written, page_cache) {
            // A request carries at most a mebibyte.
            (Ok(length), Some(page_cache)) => page_cache.written(number, offset, length as u32, reply),
            (Ok(length), None) => reply.now(Ok(length as u32)),
            (Err(error), _) => reply.now(Err(errno(&error))),
        }
    }

    /// The same for another thread.
    pub(crate) fn later(self) -> Answer<LateReply<u32>> {
        let Self { number, offset, is_whole, page_cache, reply } = self;
        Answer { number, offset, is_whole, page_cache, reply: reply.later() }
    }
}
