//! The words of slots as they lie in the memory: what one word says of a block, where it lies in
//! its page, and which ids are those of tables.
//!
//! Whatever a word is, its block is numbers that somebody has to check.

use onode_media::Pmem;
use onode_object::{Error, ObjectId, Transaction};

/// Ids from here on are those of tables, up to those of versions.
const FIRST_TABLE: u64 = 1 << 63;
/// Ids from here on are those of versions as the log and the index know them: hosts know them by
/// the ids that tables have here.
const FIRST_VERSION: u64 = FIRST_TABLE | VERSION_BIT;
const VERSION_BIT: u64 = 1 << 62;
/// Bytes of a page of words, which is a block of its own.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Slots of a page.
pub(crate) const PAGE_SLOTS: u64 = PAGE_BYTES / 8;
const LINES: u64 = PAGE_BYTES / 64;

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
    /// The word of a block; `None` if no word can name it.
    pub(crate) fn of(address: u64, length: u64, chunk_bytes: u64) -> Option<Self> {
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

/// Whether an id is that of a table, which hosts know nothing of.
pub(crate) const fn is_table(object: u64) -> bool {
    object >= FIRST_TABLE && object < FIRST_VERSION
}

/// Whether an id, as log and index know it, is that of a version.
pub(crate) const fn is_version(object: u64) -> bool {
    object >= FIRST_VERSION
}

/// The first id behind those of tables.
pub(crate) const BEHIND_TABLES: ObjectId = ObjectId(FIRST_VERSION);

/// The id by which log and index know an object of the host; that of no object if there can be
/// none, as with versions of objects whose number is very large.
pub(crate) const fn inner_id(object: ObjectId) -> ObjectId {
    match object.version_of() {
        None => object,
        Some(_) if object.0 & VERSION_BIT == 0 => ObjectId(object.0 | VERSION_BIT),
        Some(_) => ObjectId(0),
    }
}

/// The id by which the host knows an object.
pub(crate) const fn outer_id(object: ObjectId) -> ObjectId {
    if object.is_version() && is_version(object.0) { ObjectId(object.0 & !VERSION_BIT) } else { object }
}

/// The transaction as log and index know its objects.
pub(crate) fn inner_transaction(mut transaction: Transaction) -> Transaction {
    for mutation in &mut transaction.mutations {
        let object = mutation.object_mut();
        *object = inner_id(*object);
    }
    transaction
}

/// The error as the host knows the object that it names.
pub(crate) fn outer_error(mut error: Error) -> Error {
    error.object = error.object.map(outer_id);
    error
}

/// The table of an object.
pub(crate) const fn table_of(object: ObjectId) -> ObjectId {
    ObjectId(object.0 | FIRST_TABLE)
}

/// Where the word of a slot lies in its page. Slots that follow each other are in lines of their
/// own: a line that was just flushed is slow to store to.
pub(crate) const fn place_of(slot: u64) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use onode_object::powers::SLOT_BYTES_MAX;

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
