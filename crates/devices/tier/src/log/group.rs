//! Commits that the log lacks: what the next record is made of.
//!
//! What it keeps true: transactions are in it in the order of their commits, and where the content
//! of one can be read is counted from the start of the payload.

use crate::content::pending::Content;
use crate::log::change::{Change, put_transaction};
use alloc::vec::Vec;

/// Commits that the log lacks.
#[derive(Debug, Default)]
pub struct Group {
    payload: Vec<u8>,
    transactions: u32,
    /// Content was written to its place for them and not flushed since.
    has_placed: bool,
    /// Content that can be read from the record.
    contents: Vec<Content>,
}

impl Group {
    /// Adds a transaction; returns where in the payload each of its changes ends.
    pub fn add(&mut self, changes: &[Change]) -> Vec<usize> {
        self.transactions += 1;
        put_transaction(&mut self.payload, changes)
    }

    /// Content that can be read from the record, counted from the start of the payload.
    pub fn note_contents(&mut self, contents: Vec<Content>) {
        self.contents.extend(contents);
    }

    /// Content is written to its place for these commits.
    pub const fn note_placed(&mut self) {
        self.has_placed = true;
    }

    /// Whether content was written to its place for them and not flushed since.
    #[must_use]
    pub const fn has_placed(&self) -> bool {
        self.has_placed
    }

    /// The transactions, encoded.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// How many there are.
    #[must_use]
    pub const fn transactions(&self) -> u32 {
        self.transactions
    }

    /// Hands over where content can be read.
    pub fn take_contents(&mut self) -> Vec<Content> {
        core::mem::take(&mut self.contents)
    }
}
