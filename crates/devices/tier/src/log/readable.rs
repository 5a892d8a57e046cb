//! Content that can be read from records in the log of the fast disk, so that memory need not hold
//! it.
//!
//! What it keeps true: nothing is handed out before the fast disk was given its record.

use crate::content::pending::Content;
use alloc::vec::Vec;

/// Content in records of the fast disk.
#[derive(Debug, Default)]
pub struct Readable {
    /// In records that the disk was not given yet.
    unwritten: Vec<Content>,
    /// In records that it was.
    written: Vec<Content>,
}

impl Readable {
    /// A record has this content, whose places are counted from byte `first` of the disk on.
    pub fn append(&mut self, contents: Vec<Content>, first: u64) {
        self.unwritten.extend(contents.into_iter().map(|mut content| {
            content.logged.at += first;
            content
        }));
    }

    /// The disk was given all records.
    pub fn is_written(&mut self) {
        self.written.append(&mut self.unwritten);
    }

    /// Content that can be read since this was asked last.
    pub fn take(&mut self) -> Vec<Content> {
        core::mem::take(&mut self.written)
    }
}
