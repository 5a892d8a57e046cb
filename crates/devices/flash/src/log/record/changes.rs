//! The changes of a transaction as its record has them: each is encoded once, as soon as it is
//! known what of it is logged.

use super::{COMMIT, Change, put_change, put_mutation};
use alloc::vec::Vec;
use onode_base::varint;
use onode_object::Mutation;

/// Changes of one transaction in the order in which they were applied.
#[derive(Debug, Default)]
pub struct Changes {
    count: u64,
    bytes: Vec<u8>,
}

impl Changes {
    /// None yet.
    pub const fn new() -> Self {
        Self { count: 0, bytes: Vec::new() }
    }

    /// How many there are.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Appends a change.
    pub fn push(&mut self, change: &Change) {
        put_change(&mut self.bytes, change);
        self.count += 1;
    }

    /// Appends a change that was encoded before, by [`encoded`].
    pub fn push_encoded(&mut self, change: &[u8]) {
        self.bytes.extend_from_slice(change);
        self.count += 1;
    }

    /// The record of them as the transaction of this number.
    pub fn record(&self, transaction: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(RECORD_HEADER_BYTES_MAX + self.bytes.len());
        out.push(COMMIT);
        varint::put(&mut out, transaction);
        varint::put(&mut out, self.count);
        out.extend_from_slice(&self.bytes);
        out
    }
}

/// Kind, number of the transaction, number of changes.
const RECORD_HEADER_BYTES_MAX: usize = 21;

/// A change as bytes.
pub fn encoded(change: &Change) -> Vec<u8> {
    let mut out = Vec::new();
    put_change(&mut out, change);
    out
}

/// A mutation as the change that it is.
pub fn encoded_mutation(mutation: &Mutation) -> Vec<u8> {
    let mut out = Vec::new();
    put_mutation(&mut out, mutation);
    out
}
