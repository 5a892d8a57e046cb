//! The lists of a transaction in the making, kept empty for the next one: nothing is allocated for
//! a usual transaction.

use crate::commit::change::{Change, Changed, Pending, Put};
use crate::index::node::{Key, Value};
use crate::log::Place;
use crate::log::batch::Batch;
use onode_media::Pmem;
use onode_object::ObjectId;

/// Lists without an entry, but for those of the running transaction.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub batch: Batch,
    pub undo: Vec<(Key, Option<Value>)>,
    pub pending: Vec<Pending>,
    pub onodes: Vec<(ObjectId, Changed)>,
    pub fresh: Vec<(u64, u64, bool)>,
    pub released: Vec<(u64, u64, bool)>,
    pub puts: Vec<Put>,
    pub content: Vec<u8>,
    pub written: Vec<(u64, u64)>,
    pub checked: Vec<(u64, u64)>,
    pub places: Vec<Place>,
}

/// Longer lists are not kept.
const MOST_KEPT: usize = 16 << 10;

/// Empties a list and keeps its memory, if that is not much.
pub(crate) fn keep<T>(list: &mut Vec<T>) {
    list.clear();
    if list.capacity() > MOST_KEPT {
        *list = Vec::new();
    }
}

impl Scratch {
    /// Empties all lists.
    fn clear(&mut self) {
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

impl<P: Pmem> Change<'_, P> {
    /// Leaves the lists, empty, to the next transaction.
    pub(crate) fn leave_lists(self) {
        let Self { core, mut lists, .. } = self;
        lists.clear();
        core.scratch = Some(lists);
    }
}
