//! Objects of the wrapped device that nobody outside sees: content of views that is too much for
//! memory, and the object that says which these are.
//!
//! An object is listed in the transaction that makes it, so that whoever opens the device after a
//! cut finds all of them ([`recover`](crate::staged::recover)). While there are none, there is no
//! list either.

use crate::staged::Staged;
use crate::staged::content::Hidden;
use crate::staged::record::IntentState;
use onode_base::planted::{Bug, is_planted};
use onode_object::{
    AttributeKey, Durability, ErrorKind, Hints, Mutation, ObjectDevice, ObjectId, ObjectKind, Result, Transaction,
};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// The object with the list.
pub(crate) const LIST: ObjectId = ObjectId::STAGED;
/// Its attributes with a hidden object's number added.
const FIRST: AttributeKey = AttributeKey::STAGED_OBJECTS;
const AT_ONCE: usize = 64;

/// The hidden objects of a device.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    objects: BTreeSet<ObjectId>,
    /// There is the object with the list.
    pub(crate) has_list: bool,
}

impl Listed {
    /// Whether an object is not to be seen.
    pub(crate) fn hides(&self, object: ObjectId) -> bool {
        object == LIST || self.objects.contains(&object)
    }

    /// How many there are with the list.
    pub(crate) fn count(&self) -> u64 {
        self.objects.len() as u64 + u64::from(self.has_list)
    }

    /// Whether hidden objects other than these are listed.
    pub(crate) fn has_others(&self, than: &[ObjectId]) -> bool {
        self.objects.iter().any(|object| !than.contains(object))
    }

    /// The hidden objects.
    pub(crate) fn objects(&self) -> Vec<ObjectId> {
        self.objects.iter().copied().collect()
    }
}

/// Where an object is listed.
const fn key_of(object: ObjectId) -> AttributeKey {
    AttributeKey::new(FIRST.kind, FIRST.index + object.0)
}

/// Adds to a transaction that there is a list.
pub(crate) fn make_list(transaction: &mut Transaction) {
    transaction.create(LIST, Hints { kind: ObjectKind::Volume, ..Hints::default() });
    transaction.set_attribute(LIST, AttributeKey::STAGED_STATE, IntentState::NOTHING.encode());
}

/// The mutations that take objects off the list of the device, and the list with the last of them.
pub(crate) fn unlist(listed: &Listed, objects: &[ObjectId]) -> Vec<Mutation> {
    if listed.has_list && !listed.has_others(objects) {
        return vec![Mutation::Remove { object: LIST }];
    }
    objects.iter().map(|object| take_off(*object)).collect()
}

/// The mutation that takes one object off the list.
pub(crate) const fn take_off(object: ObjectId) -> Mutation {
    Mutation::RemoveAttribute { object: LIST, key: key_of(object) }
}

impl<D: ObjectDevice + ?Sized> Staged<D> {
    /// Makes a hidden object: of this number, or of a new one.
    pub(crate) fn hide(&self, own: Option<ObjectId>, hints: Hints) -> Result<Hidden> {
        let object = own.map_or_else(|| self.inner.reserve_ids(1), Ok)?;
        let mut listed = self.listed.lock();
        let mut transaction = Transaction::new();
        if !listed.has_list {
            make_list(&mut transaction);
        }
        transaction.create(object, hints);
        if !is_planted(Bug::StagedHiddenUnlisted) {
            transaction.set_attribute(LIST, key_of(object), Vec::new());
        }
        // Before it is there: who lists the objects of the device meanwhile must not see it.
        self.has_hidden.store(true, Ordering::Release);
        listed.objects.insert(object);
        if let Err(error) = self.inner.commit(transaction, Durability::Buffered) {
            listed.objects.remove(&object);
            return Err(error);
        }
        listed.has_list = true;
        Ok(Hidden { object, size: 0 })
    }

    /// Takes note that objects are off the list.
    pub(crate) fn unlisted(&self, objects: &[ObjectId]) {
        self.listed.lock().objects.retain(|object| !objects.contains(object));
    }

    /// Commits mutations after which objects are not hidden any more.
    pub(crate) fn commit_unlisting(
        &self,
        mut mutations: Vec<Mutation>,
        objects: &[ObjectId],
        durability: Durability,
    ) -> Result<()> {
        let mut listed = self.listed.lock();
        mutations.extend(unlist(&listed, objects));
        self.inner.commit(Transaction { mutations }, durability)?;
        listed.objects.retain(|object| !objects.contains(object));
        if listed.objects.is_empty() {
            listed.has_list = false;
            self.has_hidden.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Has hidden objects changed; those that are removed are off the list.
    pub(crate) fn work(&self, mutations: Vec<Mutation>) -> Result<()> {
        let is_removal = |one: &Mutation| matches!(one, Mutation::Remove { .. });
        let removed: Vec<_> = mutations.iter().filter(|one| is_removal(one)).map(Mutation::object).collect();
        if removed.is_empty() {
            return self.inner.commit(Transaction { mutations }, Durability::Buffered);
        }
        self.commit_unlisting(mutations, &removed, Durability::Buffered)
    }

    /// Removes hidden objects.
    pub(crate) fn discard(&self, objects: &[ObjectId]) -> Result<()> {
        objects.chunks(AT_ONCE).try_for_each(|some| self.discard_some(some))
    }

    /// Removes some at once; fewer if a full device has no room for the transaction that makes it.
    fn discard_some(&self, objects: &[ObjectId]) -> Result<()> {
        let removals = objects.iter().map(|object| Mutation::Remove { object: *object }).collect();
        match self.commit_unlisting(removals, objects, Durability::Buffered) {
            Err(error) if error.kind == ErrorKind::NoSpace && objects.len() > 1 => {
                let (first, second) = objects.split_at(objects.len() / 2);
                self.discard_some(first)?;
                self.discard_some(second)
            }
            done => done,
        }
    }

    /// Makes the list if there is none.
    pub(crate) fn begin_list(&self) -> Result<()> {
        let mut listed = self.listed.lock();
        if !listed.has_list {
            let mut transaction = Transaction::new();
            make_list(&mut transaction);
            self.has_hidden.store(true, Ordering::Release);
            self.inner.commit(transaction, Durability::Buffered)?;
            listed.has_list = true;
        }
        Ok(())
    }

    /// Removes the list if nothing is on it.
    pub(crate) fn end_list(&self) -> Result<()> {
        let mut listed = self.listed.lock();
        if listed.has_list && !listed.has_others(&[]) {
            let mut transaction = Transaction::new();
            transaction.remove(LIST);
            self.inner.commit(transaction, Durability::Buffered)?;
            listed.has_list = false;
            self.has_hidden.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Learns what is listed on the device.
    pub(crate) fn learn_list(&self) -> Result<()> {
        let mut listed = self.listed.lock();
        let mut from = FIRST;
        loop {
            let found = self.inner.attributes(LIST, from, AT_ONCE)?;
            let Some((last, _)) = found.last() else { break };
            let next = last.next();
            listed.objects.extend(found.iter().map(|(key, _)| ObjectId(key.index - FIRST.index)));
            let Some(next) = next else { break };
            from = next;
        }
        listed.has_list = true;
        self.has_hidden.store(true, Ordering::Release);
        Ok(())
    }
}
