//! The lists of a transaction in the making, kept empty for the next one: nothing is allocated for a usual transaction.

use crate::batch::Batch;
use crate::change::{Change, Changed, Pending, Put};
use crate::log::Place;
use crate::node::{Key, Value};
use onode_media::Pmem;
use onode_object::ObjectId;

/// Lists without an entry.
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

/// Empties a list and keeps its memory.
pub(crate) fn keep<T>(list: &mut Vec<T>, kept: &mut Vec<T>) {
    list.clear();
    if list.capacity() <= MOST_KEPT {
        std::mem::swap(list, kept);
    }
}

impl<P: Pmem> Drop for Change<'_, P> {
    fn drop(&mut self) {
        let scratch = &mut self.core.scratch;
        self.batch.keep(&mut scratch.batch);
        keep(&mut self.undo, &mut scratch.undo);
        keep(&mut self.pending, &mut scratch.pending);
        keep(&mut self.onodes, &mut scratch.onodes);
        keep(&mut self.fresh, &mut scratch.fresh);
        keep(&mut self.released, &mut scratch.released);
        keep(&mut self.puts, &mut scratch.puts);
        keep(&mut self.content, &mut scratch.content);
        keep(&mut self.written, &mut scratch.written);
        keep(&mut self.checked, &mut scratch.checked);
        keep(&mut self.places, &mut scratch.places);
    }
}
