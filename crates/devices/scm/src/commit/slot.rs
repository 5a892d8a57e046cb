//! Slots: durable references to blocks that need no name of their own, each of them one word in the
//! memory.
//!
//! A table of slots belongs to an object and lies in pages of words, which the log maps as the
//! content of an object that no host sees. A slot is filled, replaced and emptied by one store of 8
//! bytes, which is flushed and fenced: no record, and nothing in the index. So recoveries read the
//! pages, and claim the blocks that are named there as they claim those that the log names. A store
//! comes after everything that was done before it is durable, and after no recovery would put
//! anything in place once more: no record follows that could say so.

use crate::commit::change::Change;
use crate::index::Index;
use crate::index::node::{Key, Value};
use crate::log::item::Item;
use crate::medium::errors::{from_media, no_space};
use crate::medium::slot::{PAGE_BYTES, PAGE_SLOTS, Word, first_slot, place_of, table_of, words_of};
use crate::persist::Persistence;
use crate::space::Blocks;
use crate::space::deferred_frees::DeferredFree;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::powers::{Content, SLOT_BYTES_MAX, SLOTS};
use onode_object::{Error, Hints, ObjectId, Result};
use std::collections::BTreeMap;

/// Tables were objects with a block at each multiple of this, once.
const OLD_SLOT_BITS: u32 = 32;

/// Something is wrong with a slot.
pub(crate) fn invalid(object: ObjectId, slot: u64, what: &str) -> Error {
    Error::of(ErrorKind::Invalid, object, format!("slot {slot}: {what}"))
}

/// The slots of a device: they are looked at in the index, and stored to when the rest is durable.
pub(crate) struct Slots<'a, P: Pmem> {
    index: &'a Index<P>,
    store: &'a mut Persistence<P>,
}

/// Where the word of a slot lies; `None` if it is empty because its page is not there.
pub(crate) fn word_at<P: Pmem>(index: &Index<P>, object: ObjectId, slot: u64) -> Option<u64> {
    let key = Key::extent(table_of(object), slot / PAGE_SLOTS * PAGE_BYTES);
    let Value(page, _) = index.get(key).filter(|_| slot < SLOTS)?;
    Some(page + place_of(slot))
}

/// Address and length of the block in a slot.
pub(crate) fn block_in<P: Pmem>(
    index: &Index<P>,
    store: &Persistence<P>,
    object: ObjectId,
    slot: u64,
) -> Option<(u64, u64)> {
    Word(store.memory().load(word_at(index, object, slot)?)).block(store.chunk_bytes())
}

/// Whether an object has a table of slots, and the page of a slot.
pub(crate) fn has_slot<P: Pmem>(index: &Index<P>, object: ObjectId, slot: Option<u64>) -> bool {
    let has_table = index.get(Key::onode(table_of(object))).is_some();
    has_table && slot.is_none_or(|slot| word_at(index, object, slot).is_some())
}

/// That there may be such a slot, with such a block.
pub(crate) fn check_slot(content: &Content, slot: u64) -> Result<()> {
    if slot >= SLOTS || content.bytes == 0 || content.bytes > SLOT_BYTES_MAX {
        return Err(invalid(content.object, slot, "there is no such slot, or no such block"));
    }
    Ok(())
}

impl<'a, P: Pmem> Slots<'a, P> {
    pub(crate) const fn new(index: &'a Index<P>, store: &'a mut Persistence<P>) -> Self {
        Self { index, store }
    }

    /// Stores the word of a slot, durable on return.
    fn set_word(&mut self, at: u64, word: Word) -> Result<()> {
        if self.store.has_unsynced() {
            self.store.sync()?;
        }
        self.store.accept_puts()?;
        self.store_word(at, word);
        self.store.fence()
    }

    fn store_word(&self, at: u64, word: Word) {
        self.store.memory().store(at, word.0);
        if !is_planted(Bug::ScmSlotNotFlushed) {
            self.store.memory().flush(at, 8);
        }
    }

    /// Has a slot, whose word lies `at`, hold a block of memory, in place of what it held, which is
    /// free then.
    pub(crate) fn fill(&mut self, content: &Content, slot: u64, at: u64) -> Result<()> {
        self.store.flush_blocks(std::slice::from_ref(content))?;
        let word = self.publish_word(content, slot)?;
        let before = Word(self.store.memory().load(at));
        self.set_word(at, word)?;
        self.release_word(before)
    }

    /// The same where nothing waits for anything, the slot is empty, and nothing is left for others
    /// to know but what the memory has then; `None` if it is not so.
    pub(crate) fn fill_at_once(&mut self, content: &Content, slot: u64) -> Option<Result<()>> {
        let can = self.store.is_quiet() && content.is_durable && (1..=SLOT_BYTES_MAX).contains(&content.bytes);
        let at = if can { word_at(self.index, content.object, slot)? } else { return None };
        if self.store.memory().load(at) != 0 {
            return None;
        }
        Some(self.publish_word(content, slot).and_then(|word| {
            self.store_word(at, word);
            self.store.fence_store().map_err(|error| from_media("filling a slot", &error))
        }))
    }

    /// Makes a block one that outlives its process; its word.
    fn publish_word(&self, content: &Content, slot: u64) -> Result<Word> {
        let Content { object, address, bytes, .. } = *content;
        let chunk_bytes = self.store.chunk_bytes();
        let mut word = None;
        // Whoever dies after that has the lock: what no slot names is free again.
        let published = self.store.blocks().publish_if(address, |length| {
            word = Word::of(address, length, chunk_bytes).filter(|_| bytes <= length);
            word.is_some()
        });
        let Some(word) = word.filter(|_| published == Ok(true)) else {
            self.store.space().check_unowned(content)?;
            return Err(invalid(object, slot, "the block is too large"));
        };
        Ok(word)
    }

    /// Frees what a slot held that durably holds something else.
    fn release_word(&mut self, word: Word) -> Result<()> {
        if let Some((address, bytes)) = word.block(self.store.chunk_bytes()) {
            self.store.defer(&DeferredFree { sequence: 0, address, bytes, part: false })?;
            self.store.release_deferred();
        }
        Ok(())
    }

    /// Takes the block out of a slot: memory again, of the process that `members` is.
    pub(crate) fn take(&mut self, members: &Blocks<P>, object: ObjectId, slot: u64) -> Result<Content> {
        let empty = || Error::of(ErrorKind::NotFound, object, format!("slot {slot} is empty"));
        let at = word_at(self.index, object, slot).ok_or_else(empty)?;
        let word = Word(self.store.memory().load(at));
        let (address, bytes) = word.block(self.store.chunk_bytes()).ok_or_else(empty)?;
        let content = Content { object, address, bytes, is_durable: true };
        if members.can_unpublish(address) != Ok(false) {
            self.set_word(at, Word(0))?;
            // Programs store there as they like.
            self.store.allow_change(address, bytes)?;
            let _ = members.unpublish(address);
            return Ok(content);
        }
        // A small one among those of another process, whose death would free it.
        let copy = members.allocate(bytes).ok_or_else(|| no_space("no room for the block"))?;
        let mut whole = vec![0; bytes as usize];
        self.store.memory().read(address, &mut whole);
        if let Err(error) = self.set_word(at, Word(0)) {
            members.release(copy, bytes);
            return Err(error);
        }
        self.store.memory().write(copy, &whole);
        self.release_word(word)?;
        Ok(Content { address: copy, ..content })
    }
}

impl<P: Pmem> Change<'_, P> {
    /// Makes the table of an object, if it has none, and the page of a slot.
    pub(crate) fn make_slots(&mut self, object: ObjectId, slot: Option<u64>) -> Result<()> {
        let table = table_of(object);
        let mut pages = BTreeMap::<u64, Vec<(u64, Word)>>::new();
        if self.index.get(Key::onode(table)).is_none() {
            let size = self.size(object)?;
            self.create(table, Hints::default())?;
            self.set_size(table, SLOTS * 8)?;
            if size == SLOTS << OLD_SLOT_BITS {
                self.move_blocks(object, &mut pages)?;
            }
        }
        if let Some(slot) = slot {
            pages.entry(slot / PAGE_SLOTS).or_default();
        }
        for (page, words) in &pages {
            let at = self.take(PAGE_BYTES).ok_or_else(|| no_space("no room for a page of slots"))?;
            let memory = self.store.memory();
            memory.zero(at, PAGE_BYTES);
            words.iter().for_each(|(slot, word)| memory.store(at + place_of(*slot), word.0));
            memory.flush(at, PAGE_BYTES);
            self.map(table, page * PAGE_BYTES, at, PAGE_BYTES)?;
        }
        // What the record maps are words already.
        self.store.fence()
    }

    /// The blocks of a table as it was once become words.
    fn move_blocks(&mut self, object: ObjectId, pages: &mut BTreeMap<u64, Vec<(u64, Word)>>) -> Result<()> {
        let mut blocks = Vec::new();
        self.index.scan(Key::extent(object, 0), |key, Value(address, length)| {
            let is_block = key.is_extent() && key.object() == object;
            if is_block && key.index.is_multiple_of(1 << OLD_SLOT_BITS) {
                blocks.push((key.index, address, length));
            }
            is_block
        });
        for (offset, address, length) in blocks {
            let Some(word) = Word::of(address, length, self.store.chunk_bytes()) else { continue };
            self.unmap(object, offset)?;
            self.lists.batch.push(&Item::NoExtent { object, offset, length });
            self.shrinks = true;
            let slot = offset >> OLD_SLOT_BITS;
            pages.entry(slot / PAGE_SLOTS).or_default().push((slot, word));
        }
        Ok(())
    }

    /// Gives up what the slots of an object hold, which goes.
    pub(crate) fn empty_slots(&mut self, table: ObjectId) {
        let mut pages = Vec::new();
        self.index.scan(Key::extent(table, 0), |key, Value(page, _)| {
            let is_page = key.is_extent() && key.object() == table;
            pages.extend(is_page.then_some((page, key.index)));
            is_page
        });
        let chunk_bytes = self.store.chunk_bytes();
        for (page, offset) in pages {
            let words = words_of(self.store.memory(), page, first_slot(offset));
            let blocks: Vec<_> = words.filter_map(|(_, word)| word.block(chunk_bytes)).collect();
            blocks.into_iter().for_each(|(address, length)| self.give_up(address, length, false));
        }
    }
}
