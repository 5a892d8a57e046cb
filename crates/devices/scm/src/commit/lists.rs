//! The lists of a transaction in the making, kept empty for the next one: nothing is allocated for
//! a usual transaction.
//!
//! No entry of the index waits for an item that does not set it any more. What the lists say is
//! done by others.

use crate::index::node::{Key, Value, log_bytes};
use crate::log::batch::{Batch, keep};
use crate::log::item::Onode;
use crate::log::place::Place;
use onode_object::ObjectId;

/// Bytes to be put in place when the record is durable.
#[derive(Clone, Copy, Debug)]
pub(super) enum Put {
    /// `length` bytes from `start` of [`Lists::content`] on.
    Bytes {
        address: u64,
        start: usize,
        length: usize,
    },
    Zero {
        address: u64,
        length: u64,
    },
}

impl Put {
    /// Address and length of what it changes.
    pub(crate) const fn range(&self) -> (u64, u64) {
        match *self {
            Self::Bytes { address, length, .. } => (address, length as u64),
            Self::Zero { address, length } => (address, length),
        }
    }
}

/// An onode that the transaction changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changed {
    pub onode: Onode,
    /// What the log says of it, if it does, and where.
    pub logged: Option<(Onode, Place)>,
    pub allocated: u64,
    /// Bytes below were there before the transaction.
    pub stable: u64,
}

/// An entry of the index that waits to hear where its item lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub key: Key,
    /// The number of the item in the batch.
    pub item: usize,
    /// The other word of the entry.
    pub second: u64,
}

/// Lists without an entry, but for those of the running transaction.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(super) batch: Batch,
    pub(super) undo: Vec<(Key, Option<Value>)>,
    pub(super) pending: Vec<Pending>,
    pub(super) onodes: Vec<(ObjectId, Changed)>,
    pub(super) fresh: Vec<(u64, u64, bool)>,
    pub(super) released: Vec<(u64, u64, bool)>,
    pub(super) puts: Vec<Put>,
    pub(super) content: Vec<u8>,
    pub(super) written: Vec<(u64, u64)>,
    pub(super) checked: Vec<(u64, u64)>,
    pub(super) places: Vec<Place>,
}

impl Lists {
    /// A block that the transaction gives up.
    pub(super) fn give_up(&mut self, address: u64, bytes: u64, part: bool) {
        if bytes > 0 {
            self.released.push((address, bytes, part));
        }
    }

    /// Bytes of content that were written.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written.iter().map(|(_, length)| length).sum()
    }

    /// An entry is not in the index any more.
    pub(super) fn note_unset(&mut self, key: Key, before: Value, live: &mut i64) {
        self.forget_pending(&key, before);
        *live -= log_bytes(&key, before) as i64;
        self.undo.push((key, Some(before)));
    }

    /// An entry that is not what it was does not wait for its item any more.
    pub(super) fn forget_pending(&mut self, key: &Key, before: Value) {
        if !key.is_extent() && Place(before.0).as_pending().is_some() {
            self.pending.retain(|pending| pending.key != *key);
        }
    }

    /// Empties all lists.
    pub(super) fn clear(&mut self) {
        self.batch.keep();
        keep(&mut self.undo);
        keep(&mut self.pending);
        keep(&mut self.onodes);
        keep(&mut self.fresh);
        keep(&mut self.released);
        keep(&mut self.puts);
        keep(&mut self.content);
        keep(&mut self.written);
        keep(&mut self.checked);
        keep(&mut self.places);
    }
}
