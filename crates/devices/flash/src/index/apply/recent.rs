//! Onodes that were looked up or set lately: a transaction asks several times for the same one, and
//! the index is searched once.
//!
//! It keeps true: what it knows is what the entries say. Who changes entries beside that clears it.

use crate::index::apply::Onode;
use alloc::vec::Vec;
use onode_object::ObjectId;

/// Onodes that are known at a time, about 4 KiB: each has one place, which another one may take.
const PLACES: usize = 64;

/// What is known of objects: their onodes, or that there are none.
#[derive(Debug, Default)]
pub struct RecentOnodes {
    places: Vec<Option<(ObjectId, Option<Onode>)>>,
}

impl RecentOnodes {
    /// Nothing is known.
    pub const fn new() -> Self {
        Self { places: Vec::new() }
    }

    const fn place_of(object: ObjectId) -> usize {
        (object.0 % PLACES as u64) as usize
    }

    /// The onode of `object`, or that it has none; `None` if that is not known.
    pub fn get(&self, object: ObjectId) -> Option<Option<Onode>> {
        let (known, onode) = self.places.get(Self::place_of(object)).copied().flatten()?;
        (known == object).then_some(onode)
    }

    /// Takes in what the entries say of `object`.
    pub fn learn(&mut self, object: ObjectId, onode: Option<Onode>) {
        if self.places.is_empty() {
            self.places.resize(PLACES, None);
        }
        self.places[Self::place_of(object)] = Some((object, onode));
    }

    /// Forgets `object`: its entry is about to change.
    pub fn forget(&mut self, object: ObjectId) {
        if self.get(object).is_some() {
            self.places[Self::place_of(object)] = None;
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_onode_is_known_until_it_changes_or_another_takes_its_place() {
        let mut recent = RecentOnodes::new();
        let onode = Onode { size: 7, ..Onode::default() };
        recent.learn(ObjectId(5), Some(onode));
        recent.learn(ObjectId(6), None);
        assert_eq!(recent.get(ObjectId(5)), Some(Some(onode)));
        assert_eq!(recent.get(ObjectId(6)), Some(None));
        recent.forget(ObjectId(5 + PLACES as u64));
        assert_eq!(recent.get(ObjectId(5)), Some(Some(onode)), "another object was forgotten");
        recent.forget(ObjectId(5));
        assert_eq!(recent.get(ObjectId(5)), None);
        recent.learn(ObjectId(6 + PLACES as u64), None);
        assert_eq!(recent.get(ObjectId(6)), None, "its place was taken");
        recent.clear();
        assert_eq!(recent.get(ObjectId(6 + PLACES as u64)), None);
    }
}
