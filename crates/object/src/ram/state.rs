//! All objects of the device and the one place where a transaction changes them.
//!
//! A transaction is checked as a whole, for validity and for space, before its first mutation
//! applies; applying cannot fail. `used_bytes` is always the sum over all objects.

use super::content::SparseContent;
use crate::error::{Error, ErrorKind, Result};
use crate::hints::Hints;
use crate::id::{AttributeKey, ObjectId};
use crate::transaction::{Mutation, Transaction};
use crate::validate::{self, Admission};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Content moves by the byte.
pub(super) const MOVE_UNIT: u64 = 1;

/// What an object costs besides its content and attributes.
const OBJECT_BYTES: u64 = 128;
/// What an attribute costs besides its value.
const ATTRIBUTE_BYTES: u64 = 32;

#[derive(Clone, Default)]
pub(super) struct Object {
    pub(super) content: SparseContent,
    pub(super) attributes: BTreeMap<AttributeKey, Vec<u8>>,
    pub(super) hints: Hints,
    pub(super) accessed: u64,
    attribute_bytes: u64,
}

impl Object {
    fn cost_bytes(&self) -> u64 {
        OBJECT_BYTES + self.content.allocated_bytes() + self.attribute_bytes
    }

    fn set_attribute(&mut self, key: AttributeKey, value: Vec<u8>) {
        self.remove_attribute(key);
        self.attribute_bytes += attribute_cost(&value);
        self.attributes.insert(key, value);
    }

    fn remove_attribute(&mut self, key: AttributeKey) {
        if let Some(old) = self.attributes.remove(&key) {
            self.attribute_bytes -= attribute_cost(&old);
        }
    }
}

const fn attribute_cost(value: &[u8]) -> u64 {
    ATTRIBUTE_BYTES + value.len() as u64
}

/// Every object, shared with the snapshot of the crash model if there is one.
#[derive(Clone)]
pub(super) struct State {
    objects: BTreeMap<ObjectId, Arc<Object>>,
    next_id: ObjectId,
    used_bytes: u64,
}

impl State {
    pub(super) const fn new() -> Self {
        Self { objects: BTreeMap::new(), next_id: ObjectId::FIRST_FREE, used_bytes: 0 }
    }

    pub(super) const fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    pub(super) fn object_count(&self) -> u64 {
        self.objects.len() as u64
    }

    pub(super) fn object(&self, object: ObjectId) -> Result<&Object> {
        match self.objects.get(&object) {
            Some(found) => Ok(found),
            None => Err(Error::of(ErrorKind::NotFound, object, "there is no such object")),
        }
    }

    pub(super) fn list(&self, from: ObjectId, limit: usize) -> Vec<ObjectId> {
        self.objects.range(from..).take(limit).map(|(id, _)| *id).collect()
    }

    pub(super) fn reserve_ids(&mut self, count: u64) -> Result<ObjectId> {
        let (first, next) = validate::reserve(self.next_id, count)?;
        self.next_id = next;
        Ok(first)
    }

    /// Checks everything, then does everything.
    pub(super) fn commit(&mut self, transaction: Transaction, capacity_bytes: u64) -> Result<()> {
        self.check(&transaction, capacity_bytes)?;
        for mutation in transaction.mutations {
            self.apply(mutation);
        }
        Ok(())
    }

    /// Whether a transaction can be done, and has room.
    pub(super) fn check(&self, transaction: &Transaction, capacity_bytes: u64) -> Result<()> {
        let objects = &self.objects;
        let admission = Admission { next_id: self.next_id, move_unit: Some(MOVE_UNIT) };
        validate::validate(transaction, admission, &mut |object| Ok(objects.contains_key(&object)))?;
        self.check_space(transaction, capacity_bytes)
    }

    /// Refuses what might end above the capacity. Growth is measured against the state before, so
    /// it may count a chunk twice; only objects removed by the same transaction are credited.
    fn check_space(&self, transaction: &Transaction, capacity_bytes: u64) -> Result<()> {
        let (mut growth, mut credit) = (0, 0);
        let mut removed = BTreeSet::new();
        for mutation in &transaction.mutations {
            let object = mutation.object();
            let before = self.objects.get(&object).filter(|_| !removed.contains(&object));
            growth += match mutation {
                Mutation::Create { .. } => OBJECT_BYTES,
                Mutation::Write { offset, data, .. } => match before {
                    Some(before) => before.content.growth_bytes(*offset, data.len() as u64),
                    None => SparseContent::default().growth_bytes(*offset, data.len() as u64),
                },
                Mutation::SetAttribute { key, value, .. } => {
                    let stored = before.and_then(|before| before.attributes.get(key));
                    attribute_cost(value).saturating_sub(stored.map_or(0, |value| attribute_cost(value)))
                }
                Mutation::Remove { .. } => {
                    credit += before.map_or(0, |before| before.cost_bytes());
                    removed.insert(object);
                    0
                }
                Mutation::Move { .. } => SparseContent::MOVED_GROWTH_BYTES,
                Mutation::Truncate { .. }
                | Mutation::Punch { .. }
                | Mutation::RemoveAttribute { .. }
                | Mutation::SetHints { .. }
                | Mutation::SetAccessTime { .. } => 0,
            };
        }
        if growth > 0 && self.used_bytes + growth - credit > capacity_bytes && !self.must_fit(transaction)? {
            let left = capacity_bytes.saturating_sub(self.used_bytes);
            return Err(Error::new(ErrorKind::NoSpace, format!("{growth} bytes are needed and {left} are left")));
        }
        Ok(())
    }

    /// Whether the contract forbids to refuse `transaction`; then it may even end a little above
    /// the capacity.
    fn must_fit(&self, transaction: &Transaction) -> Result<bool> {
        validate::never_needs_space(transaction, &mut Lookup(self))
    }

    fn apply(&mut self, mutation: Mutation) {
        match mutation {
            Mutation::Create { object, hints } => {
                self.used_bytes += OBJECT_BYTES;
                self.objects.insert(object, Arc::new(Object { hints, ..Object::default() }));
            }
            Mutation::Remove { object } => {
                if let Some(removed) = self.objects.remove(&object) {
                    self.used_bytes -= removed.cost_bytes();
                }
            }
            Mutation::Write { object, offset, data } => self.change(object, |it| it.content.write(offset, &data)),
            Mutation::Truncate { object, size } => self.change(object, |it| it.content.truncate(size)),
            Mutation::Punch { object, offset, length } => self.change(object, |it| it.content.punch(offset, length)),
            Mutation::Move { object, offset, length, to } => {
                let mut content = SparseContent::default();
                self.change(object, |it| content = core::mem::take(&mut it.content));
                self.change(to, |it| content.move_to(&mut it.content, offset, length));
                self.change(object, |it| it.content = content);
            }
            Mutation::SetAttribute { object, key, value } => self.change(object, |it| it.set_attribute(key, value)),
            Mutation::RemoveAttribute { object, key } => self.change(object, |it| it.remove_attribute(key)),
            Mutation::SetHints { object, hints } => self.change(object, |it| it.hints = hints),
            Mutation::SetAccessTime { object, time } => self.change(object, |it| it.accessed = time),
        }
    }

    /// Changes one object and keeps the sum. Validation saw that it exists.
    fn change(&mut self, object: ObjectId, change: impl FnOnce(&mut Object)) {
        if let Some(shared) = self.objects.get_mut(&object) {
            let object = Arc::make_mut(shared);
            self.used_bytes -= object.cost_bytes();
            change(object);
            self.used_bytes += object.cost_bytes();
        }
    }
}

/// The state as it is asked for what is stored.
struct Lookup<'a>(&'a State);

impl validate::Stored for Lookup<'_> {
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>> {
        Ok(self.0.objects.get(&object).and_then(|object| object.attributes.get(&key)).map(Vec::len))
    }

    fn solid_bytes(&mut self, object: ObjectId) -> Result<Option<u64>> {
        let content = self.0.objects.get(&object).map(|object| &object.content);
        Ok(content.filter(|content| content.growth_bytes(0, content.size()) == 0).map(SparseContent::size))
    }
}
