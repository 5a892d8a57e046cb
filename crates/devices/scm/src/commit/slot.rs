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
use crate::commit::mapping::Blocks;
use crate::core::{Blocks as Members, Core, store_copy};
use crate::index::node::{Key, Value};
use crate::log::item::Item;
use crate::medium::errors::{from_media, no_space};
use crate::medium::format::FEATURE_SLOTS;
use crate::space::held::Held;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::powers::{Content, SLOT_BYTES_MAX, SLOTS};
use onode_object::{Durability, Error, Hints, ObjectId, Result, Transaction};
use std::collections::BTreeMap;

/// Ids from here on are those of tables; hosts have none of them.
pub(crate) const FIRST_TABLE: u64 = 1 << 63;
/// Bytes of a page of words, which is a block of its own.
pub(crate) const PAGE_BYTES: u64 = 4096;
const PAGE_SLOTS: u64 = PAGE_BYTES / 8;
const LINES: u64 = PAGE_BYTES / 64;
/// Tables were objects with a block at each multiple of this, once.
const OLD_SLOT_BITS: u32 = 32;

/// Addresses and sizes of blocks smaller than a chunk are multiples of this.
const UNIT: u64 = 16;
const ADDRESS_BITS: u32 = 43;
const LENGTH_BITS: u32 = 20;
/// The length is that of so many chunks and one more.
const OF_CHUNKS: u64 = 1 << 63;

/// Where a block lies and how long it is, in one word; 0 is an empty slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    fn of(address: u64, length: u64, chunk_bytes: u64) -> Option<Self> {
        let (count, flag) =
            if length < chunk_bytes { (length / UNIT, 0) } else { ((length / chunk_bytes).wrapping_sub(1), OF_CHUNKS) };
        let unit = address / UNIT;
        let fits = count >> LENGTH_BITS == 0 && unit >> ADDRESS_BITS == 0 && address.is_multiple_of(UNIT);
        fits.then_some(Self(unit | count << ADDRESS_BITS | flag))
    }

    /// Address and length; whatever the word is, they are numbers that somebody has to check.
    pub(crate) const fn block(self, chunk_bytes: u64) -> Option<(u64, u64)> {
        let count = self.0 >> ADDRESS_BITS & ((1 << LENGTH_BITS) - 1);
        let length = if self.0 & OF_CHUNKS == 0 { count * UNIT } else { (count + 1) * chunk_bytes };
        if self.0 == 0 { None } else { Some(((self.0 & ((1 << ADDRESS_BITS) - 1)) * UNIT, length)) }
    }
}

/// The table of an object.
pub(crate) const fn table_of(object: ObjectId) -> ObjectId {
    ObjectId(object.0 | FIRST_TABLE)
}

/// Where the word of a slot lies in its page. Slots that follow each other are in lines of their
/// own: a line that was just flushed is slow to store to.
const fn place_of(slot: u64) -> u64 {
    let number = slot % PAGE_SLOTS;
    number % LINES * 64 + number / LINES * 8
}

/// The words of a page with the numbers of their slots, those of empty slots left out.
pub(crate) fn words_of<P: Pmem + ?Sized>(memory: &P, page: u64, first: u64) -> impl Iterator<Item = (u64, Word)> {
    let slots = first..first.saturating_add(PAGE_SLOTS);
    slots.map(move |slot| (slot, Word(memory.load(page + place_of(slot))))).filter(|(_, word)| word.0 != 0)
}

/// The first slot of the page that lies at an offset of its table.
pub(crate) const fn first_slot(offset: u64) -> u64 {
    offset / PAGE_BYTES * PAGE_SLOTS
}

fn invalid(object: ObjectId, slot: u64, what: &str) -> Error {
    Error::of(ErrorKind::Invalid, object, format!("slot {slot}: {what}"))
}

impl<P: Pmem> Core<P> {
    /// Where the word of a slot lies; `None` if it is empty because its page is not there.
    fn word_at(&self, object: ObjectId, slot: u64) -> Option<u64> {
        let key = Key::extent(table_of(object), slot / PAGE_SLOTS * PAGE_BYTES);
        let Value(page, _) = self.tree.get(&*self.memory, key).filter(|_| slot < SLOTS)?;
        Some(page + place_of(slot))
    }

    /// Address and length of the block in a slot.
    pub(crate) fn slot(&self, object: ObjectId, slot: u64) -> Option<(u64, u64)> {
        Word(self.memory.load(self.word_at(object, slot)?)).block(self.chunk_bytes())
    }

    /// Makes the table of an object, if it has none, and the page of a slot.
    pub(crate) fn make_slots(&mut self, object: ObjectId, slot: Option<u64>) -> Result<()> {
        let is_there = self.tree.get(&*self.memory, Key::onode(table_of(object))).is_some();
        if is_there && slot.is_none_or(|slot| self.word_at(object, slot).is_some()) {
            return Ok(());
        }
        if self.superblock.features & FEATURE_SLOTS == 0 {
            // Who does not know of them must not take their blocks for free.
            self.superblock.features |= FEATURE_SLOTS;
            store_copy(&*self.memory, &self.superblock);
            self.write_superblock(false)?;
        }
        let blocks = Blocks { slots: Some((object, slot)), ..Blocks::default() };
        self.commit_with(&Transaction::new(), Durability::Durable, blocks)
    }

    /// Stores the word of a slot, durable on return.
    fn set_word(&mut self, at: u64, word: Word) -> Result<()> {
        if self.log.fenced < self.log.sequence || !self.unflushed.is_empty() {
            self.flush_content();
            self.fence()?;
        }
        self.settle_puts()?;
        self.store_word(at, word);
        self.fence()
    }

    fn store_word(&self, at: u64, word: Word) {
        self.memory.store(at, word.0);
        if !is_planted(Bug::ScmSlotNotFlushed) {
            self.memory.flush(at, 8);
        }
    }

    /// Has a slot hold a block of memory, in place of what it held, which is free then.
    pub(crate) fn fill_slot(&mut self, content: &Content, slot: u64) -> Result<()> {
        let Content { object, bytes, .. } = *content;
        if slot >= SLOTS || bytes == 0 || bytes > SLOT_BYTES_MAX {
            return Err(invalid(object, slot, "there is no such slot, or no such block"));
        }
        let at = match self.word_at(object, slot) {
            Some(at) => at,
            None => {
                self.make_slots(object, Some(slot))?;
                self.word_at(object, slot).ok_or_else(|| invalid(object, slot, "it has no page"))?
            }
        };
        self.flush_blocks(std::slice::from_ref(content))?;
        let word = self.publish_word(content, slot)?;
        let before = Word(self.memory.load(at));
        self.set_word(at, word)?;
        self.release_word(before)
    }

    /// The same where nothing waits for anything, the slot is empty, and nothing is left for others
    /// to know but what the memory has then; `None` if it is not so.
    pub(crate) fn fill_at_once(&mut self, content: &Content, slot: u64) -> Option<Result<()>> {
        let is_settled = self.log.fenced == self.log.sequence
            && self.log.applied == self.log.flushed
            && self.last_put < self.superblock.accepted
            && self.unflushed.is_empty()
            && self.held.is_empty()
            && !self.has_foreign;
        let can = is_settled && content.is_durable && (1..=SLOT_BYTES_MAX).contains(&content.bytes);
        let at = if can { self.word_at(content.object, slot)? } else { return None };
        if self.memory.load(at) != 0 {
            return None;
        }
        Some(self.publish_word(content, slot).and_then(|word| {
            self.store_word(at, word);
            self.counters.fences += 1;
            self.memory.fence().map_err(|error| from_media("filling a slot", &error))
        }))
    }

    /// Makes a block one that outlives its process; its word.
    fn publish_word(&self, content: &Content, slot: u64) -> Result<Word> {
        let Content { object, address, bytes, .. } = *content;
        let chunk_bytes = self.chunk_bytes();
        let mut word = None;
        // Whoever dies after that has the turn: what no slot names is free again.
        let published = self.blocks.publish_if(address, |length| {
            word = Word::of(address, length, chunk_bytes).filter(|_| bytes <= length);
            word.is_some()
        });
        let Some(word) = word.filter(|_| published == Ok(true)) else {
            self.check_unowned(content)?;
            return Err(invalid(object, slot, "the block is too large"));
        };
        Ok(word)
    }

    /// Frees what a slot held that durably holds something else.
    fn release_word(&mut self, word: Word) -> Result<()> {
        if let Some((address, bytes)) = word.block(self.chunk_bytes()) {
            self.hold(&Held { sequence: 0, address, bytes, part: false })?;
            self.release_held();
        }
        Ok(())
    }

    /// Takes the block out of a slot: memory again, of the process that `members` is.
    pub(crate) fn take_slot(&mut self, members: &Members<P>, object: ObjectId, slot: u64) -> Result<Content> {
        let empty = || Error::of(ErrorKind::NotFound, object, format!("slot {slot} is empty"));
        let at = self.word_at(object, slot).ok_or_else(empty)?;
        let word = Word(self.memory.load(at));
        let (address, bytes) = word.block(self.chunk_bytes()).ok_or_else(empty)?;
        let content = Content { object, address, bytes, is_durable: true };
        if members.can_unpublish(address) != Ok(false) {
            self.set_word(at, Word(0))?;
            // Programs store there as they like.
            self.settle(address, bytes)?;
            let _ = members.unpublish(address);
            return Ok(content);
        }
        // A small one among those of another process, whose death would free it.
        let copy = members.allocate(bytes).ok_or_else(|| no_space("no room for the block"))?;
        let mut whole = vec![0; bytes as usize];
        self.memory.read(address, &mut whole);
        if let Err(error) = self.set_word(at, Word(0)) {
            members.release(copy, bytes);
            return Err(error);
        }
        self.memory.write(copy, &whole);
        self.release_word(word)?;
        Ok(Content { address: copy, ..content })
    }
}

impl<P: Pmem> Change<'_, P> {
    /// Makes the table of an object, if it has none, and the page of a slot.
    pub(crate) fn make_slots(&mut self, object: ObjectId, slot: Option<u64>) -> Result<()> {
        let table = table_of(object);
        let mut pages = BTreeMap::<u64, Vec<(u64, Word)>>::new();
        if self.core.tree.get(&*self.core.memory, Key::onode(table)).is_none() {
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
            let memory = &*self.core.memory;
            memory.zero(at, PAGE_BYTES);
            words.iter().for_each(|(slot, word)| memory.store(at + place_of(*slot), word.0));
            memory.flush(at, PAGE_BYTES);
            self.map(table, page * PAGE_BYTES, at, PAGE_BYTES)?;
        }
        // What the record maps are words already.
        self.core.fence()
    }

    /// The blocks of a table as it was once become words.
    fn move_blocks(&mut self, object: ObjectId, pages: &mut BTreeMap<u64, Vec<(u64, Word)>>) -> Result<()> {
        let mut blocks = Vec::new();
        self.core.tree.scan(&*self.core.memory, Key::extent(object, 0), |key, Value(address, length)| {
            let is_block = key.is_extent() && key.object() == object;
            if is_block && key.index.is_multiple_of(1 << OLD_SLOT_BITS) {
                blocks.push((key.index, address, length));
            }
            is_block
        });
        for (offset, address, length) in blocks {
            let Some(word) = Word::of(address, length, self.core.chunk_bytes()) else { continue };
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
        self.core.tree.scan(&*self.core.memory, Key::extent(table, 0), |key, Value(page, _)| {
            let is_page = key.is_extent() && key.object() == table;
            pages.extend(is_page.then_some((page, key.index)));
            is_page
        });
        let chunk_bytes = self.core.chunk_bytes();
        for (page, offset) in pages {
            let words = words_of(&*self.core.memory, page, first_slot(offset));
            let blocks: Vec<_> = words.filter_map(|(_, word)| word.block(chunk_bytes)).collect();
            blocks.into_iter().for_each(|(address, length)| self.give_up(address, length, false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_where_every_block_lies() {
        for chunk in [4096, 16 << 10, 64 << 10] {
            let small = [32, 48, 64, 96, chunk / 4 * 3, chunk / 2].map(|length| ((1 << 46) + 48 * 7, length));
            let large = [chunk, 3 * chunk, SLOT_BYTES_MAX].map(|length| (5 * chunk, length));
            for (address, length) in small.into_iter().chain(large) {
                let word = Word::of(address, length, chunk).expect("a word");
                assert_eq!(word.block(chunk), Some((address, length)));
                assert_ne!(word, Word(0));
            }
            assert_eq!(Word::of(8, 32, chunk), None);
            assert_eq!(Word::of(1 << 47, 32, chunk), None);
            assert_eq!(Word(0).block(chunk), None);
        }
        assert_eq!(Word::of(4096, SLOT_BYTES_MAX + 4096, 4096), None);
    }

    #[test]
    fn each_slot_has_a_place_of_its_own() {
        let places: std::collections::BTreeSet<u64> = (0..PAGE_SLOTS).map(place_of).collect();
        assert!(places.len() as u64 == PAGE_SLOTS && places.iter().all(|at| at % 8 == 0 && *at < PAGE_BYTES));
        assert_eq!(place_of(PAGE_SLOTS + 1), place_of(1));
    }
}
