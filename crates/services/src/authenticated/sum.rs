//! Sums over attributes: what shows that a set of them is the one that was stored.
//!
//! Each attribute counts for a number that only who has the key can make, from its place and its
//! value. The sum of these numbers changes with any of them, whatever their order, and follows a
//! change without a look at the others (an incremental multiset hash).

use crate::encrypted::{Key, MasterKey, derive, keyed_hash};
use onode_object::{AttributeKey, ObjectId};

/// The bytes of a sum.
pub(super) const SUM_BYTES: usize = 32;

/// A number below 2^256, the lowest eight bytes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum([u64; SUM_BYTES / 8]);

impl Sum {
    pub(super) fn of_bytes(bytes: &[u8; SUM_BYTES]) -> Self {
        let (words, _) = bytes.as_chunks();
        let mut all = [0; SUM_BYTES / 8];
        all.iter_mut().zip(words).for_each(|(one, word)| *one = u64::from_le_bytes(*word));
        Self(all)
    }

    pub(super) fn bytes(&self) -> [u8; SUM_BYTES] {
        let mut bytes = [0; SUM_BYTES];
        let (words, _) = bytes.as_chunks_mut();
        words.iter_mut().zip(self.0).for_each(|(word, one)| *word = one.to_le_bytes());
        bytes
    }

    /// This one and another, modulo 2^256.
    pub(super) fn add(&mut self, other: &Self) {
        let mut carry = false;
        for (word, other) in self.0.iter_mut().zip(other.0) {
            (*word, carry) = word.carrying_add(other, carry);
        }
    }

    /// This one without another that is in it.
    pub(super) fn take(&mut self, other: &Self) {
        let mut borrow = false;
        for (word, other) in self.0.iter_mut().zip(other.0) {
            (*word, borrow) = word.borrowing_sub(other, borrow);
        }
    }
}

/// Makes the numbers that attributes count for.
pub(super) struct Counting(Key);

impl Counting {
    pub(super) fn new(master: &MasterKey) -> Self {
        Self(derive(master.bytes(), b"onode 1 sums"))
    }

    /// What an attribute counts for.
    pub(super) fn attribute(&self, object: ObjectId, key: AttributeKey, value: &[u8]) -> Sum {
        let (number, index) = (object.0.to_le_bytes(), key.index.to_le_bytes());
        Sum::of_bytes(&keyed_hash(&*self.0, &[&number, &[key.kind.0], &index, value]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_object::AttributeKind;

    #[test]
    fn what_is_added_and_taken_leaves_nothing() {
        let counting = Counting::new(&MasterKey::new([1; 32]));
        let of = |object, index, value: &[u8]| {
            counting.attribute(ObjectId(object), AttributeKey::new(AttributeKind::ENTRY, index), value)
        };
        let items = [of(1, 1, b"a"), of(1, 1, b"b"), of(1, 2, b"a"), of(2, 1, b"a"), of(1, 1, b"")];
        for (at, one) in items.iter().enumerate() {
            assert!(items[at + 1..].iter().all(|other| other != one));
        }
        let mut sum = Sum::default();
        items.iter().for_each(|one| sum.add(one));
        assert_eq!(Sum::of_bytes(&sum.bytes()), sum);
        items.iter().rev().for_each(|one| sum.take(one));
        assert_eq!(sum, Sum::default());
    }

    #[test]
    fn sums_wrap_around() {
        let most = Sum([u64::MAX; 4]);
        let one = Sum([1, 0, 0, 0]);
        let mut sum = most;
        sum.add(&one);
        assert_eq!(sum, Sum::default());
        sum.take(&one);
        assert_eq!(sum, most);
    }
}
