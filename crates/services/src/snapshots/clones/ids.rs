//! Numbers of objects that are made in a clone.
//!
//! They are its own: the device below never hears of them. So what was handed out is kept with the
//! clone, a number ahead of those in use, by the transaction that makes the first object past it.

use crate::snapshots::version::List;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::{Mutex, rank};
use onode_base::varint;
use onode_object::{AttributeKey, AttributeKind, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result};

/// How far ahead of the objects that are made the number that is kept is.
const AHEAD: u64 = 256;
/// Objects of larger numbers can have no versions.
const LAST: u64 = ObjectId::FIRST_UNVERSIONED.0 - 1;
/// Where the list of a clone has the number. Entries of objects have larger ones.
const KEY: AttributeKey = AttributeKey::new(AttributeKind::SNAPSHOT, 0);

struct Numbers {
    /// The next one that is handed out.
    next: u64,
    /// Those below it are never handed out again.
    kept: u64,
}

/// The numbers of a clone.
pub(super) struct Ids(Mutex<Numbers, rank::CloneIds>);

impl Ids {
    /// Those of a clone with this list, of a snapshot before which objects had numbers below
    /// `base`.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub(super) fn load<D: ObjectDevice + ?Sized>(device: &D, list: &List, base: ObjectId) -> Result<Self> {
        let first = base.0.max(ObjectId::FIRST_FREE.0);
        let kept = match device.attribute(list.0, KEY)? {
            None => first,
            Some(value) => {
                let malformed = || Error::of(ErrorKind::Corrupt, list.0, "the numbers of a clone are malformed");
                varint::take(&mut value.as_slice()).ok_or_else(malformed)?.max(first)
            }
        };
        Ok(Self(Mutex::new(Numbers { next: kept, kept })))
    }

    /// The next number that is handed out.
    pub(super) fn next(&self) -> ObjectId {
        ObjectId(self.0.lock().next)
    }

    /// Hands out `count` numbers, the first of which is returned.
    ///
    /// # Errors
    /// `NoSpace` if there are none left.
    pub(super) fn reserve(&self, count: u64) -> Result<ObjectId> {
        let mut numbers = self.0.lock();
        let first = numbers.next;
        let next = first.checked_add(count).filter(|next| *next <= LAST);
        numbers.next = next.ok_or_else(|| Error::new(ErrorKind::NoSpace, "all numbers of objects are used"))?;
        Ok(ObjectId(first))
    }

    /// Commits a transaction that makes objects up to `last`, with what keeps their numbers from
    /// being handed out again.
    ///
    /// # Errors
    /// Those of `commit`.
    pub(super) fn commit(
        &self,
        list: &List,
        last: Option<ObjectId>,
        mut mutations: Vec<Mutation>,
        commit: impl FnOnce(Vec<Mutation>) -> Result<()>,
    ) -> Result<()> {
        let last = last.filter(|_| !is_planted(Bug::CloneNumbersForgotten));
        let Some(last) = last else { return commit(mutations) };
        let mut numbers = self.0.lock();
        if last.0 < numbers.kept {
            drop(numbers);
            return commit(mutations);
        }
        let kept = numbers.next.max(last.0 + 1) + AHEAD;
        let mut value = Vec::new();
        varint::put(&mut value, kept);
        mutations.push(Mutation::SetAttribute { object: list.0, key: KEY, value });
        commit(mutations)?;
        numbers.kept = kept;
        Ok(())
    }
}
