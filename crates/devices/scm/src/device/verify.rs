//! Whether the parts of a device agree with each other; for tests.
//!
//! Every byte of the area belongs to an object, a deferred free, the log, the index, or nobody, and
//! counts are what a walk over the index finds.

use crate::index::Index;
use crate::index::node::{Key, log_bytes};
use crate::medium::slot::{first_slot, is_table, words_of};
use crate::persist::Persistence;
use onode_media::Pmem;

/// Whether blocks, index and log agree.
///
/// # Errors
/// What does not agree.
pub(super) fn verify<P: Pmem>(index: &Index<P>, store: &Persistence<P>) -> Result<(), String> {
    let (blocks, log) = (store.blocks(), store.log());
    blocks.check()?;
    let (mut objects, mut live) = (0, 0);
    let mut entries = Vec::new();
    index.scan(Key::FIRST, |key, value| {
        entries.push((key, value));
        true
    });
    let mut mapped = 0;
    for (key, value) in &entries {
        objects += u64::from(key.is_onode() && !is_table(key.object));
        live += log_bytes(key, *value);
        if key.is_extent() {
            mapped += blocks.usable_bytes(value.1);
            if is_table(key.object) {
                let words = words_of(store.memory(), value.0, first_slot(key.index));
                let lengths = words.filter_map(|(_, word)| word.block(store.chunk_bytes()));
                mapped += lengths.map(|(_, length)| blocks.usable_bytes(length)).sum::<u64>();
            }
        }
    }
    if objects != index.objects() {
        return Err(format!("{objects} objects are in the index, {} are counted", index.objects()));
    }
    if live != log.live_bytes() {
        return Err(format!("{live} bytes of the log are needed, {} are counted", log.live_bytes()));
    }
    let deferred: u64 = store.space().deferred().map(|free| blocks.usable_bytes(free.bytes)).sum();
    let (logged, indexed) = (log.bytes(), index.bytes());
    let free = blocks.free_bytes() + blocks.unusable_bytes();
    let capacity = blocks.capacity_bytes();
    if mapped + deferred + logged + indexed + free != capacity {
        return Err(format!(
            "{mapped} bytes mapped, {deferred} deferred, {logged} of the log, {indexed} of the index and {free} \
             free are not {capacity}"
        ));
    }
    Ok(())
}
