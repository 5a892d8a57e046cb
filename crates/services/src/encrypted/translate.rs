//! From a transaction of the host to one of the wrapped device: one transaction becomes one.
//!
//! Attributes are sealed where they stand. All changes of the content of an object are taken
//! together ([`Life`]) and put at the end (`settle`). Whether a mutation can apply is the wrapped
//! device's to say: what cannot be translated is handed on so that it is refused as it stands.

use crate::encrypted::Encrypted;
use crate::encrypted::map::{BLOCK_BYTES, Begun, DataKey, Head, MapPart, is_ours};
use crate::life::Life;
use crate::plan::{Plan, concerns_content, refused};
use crate::turn::Turn;
use onode_object::validate::{REPLACED_BYTES_MAX, refuse_moves};
use onode_object::{ErrorKind, Mutation, ObjectDevice, ObjectId, Result, Transaction};
use std::collections::{BTreeMap, BTreeSet, btree_map};

/// The changes of the objects of a transaction; `None` for one that is not there: its mutations are
/// handed on.
type Lives = BTreeMap<ObjectId, Option<Life<()>>>;

/// Whether a transaction of such mutations may be one that a full device has to take (N7).
const fn is_free(mutation: &Mutation) -> bool {
    match mutation {
        Mutation::Create { .. }
        | Mutation::Move { .. }
        | Mutation::SetHints { .. }
        | Mutation::SetAccessTime { .. } => false,
        Mutation::Write { offset, data, .. } => *offset == 0 && data.len() <= REPLACED_BYTES_MAX,
        Mutation::Remove { .. }
        | Mutation::Truncate { .. }
        | Mutation::Punch { .. }
        | Mutation::SetAttribute { .. }
        | Mutation::RemoveAttribute { .. } => true,
    }
}

impl<D: ObjectDevice + ?Sized> Encrypted<D> {
    /// Commits what a transaction of the host is to the wrapped device.
    ///
    /// # Errors
    /// As [`ObjectDevice::commit`].
    pub(super) fn change<T>(
        &self,
        mut transaction: Transaction,
        commit: impl FnOnce(Transaction) -> Result<T>,
    ) -> Result<T> {
        refuse_moves(&transaction)?;
        if let Some(refused) = refused(&mut transaction, is_ours) {
            return commit(refused);
        }
        let concerned: BTreeSet<ObjectId> =
            transaction.mutations.iter().filter(|one| concerns_content(one)).map(Mutation::object).collect();
        let _turn = Turn::take(self.inner().as_ref());
        let _changing = self.shards().change(concerned.into_iter());
        let plan = self.translate(transaction)?;
        plan.carry_out(self.shards(), !self.is_shared(), |mutations| commit(Transaction { mutations }))
    }

    fn translate(&self, transaction: Transaction) -> Result<Plan<MapPart>> {
        let is_frugal = transaction.mutations.iter().all(is_free);
        let mut plan = Plan::default();
        let (mut lives, mut begun) = (Lives::new(), Begun::new());
        for mutation in transaction.mutations {
            let object = mutation.object();
            match mutation {
                Mutation::Create { hints, .. } => {
                    let before = lives.insert(object, Some(Life::new(object, BLOCK_BYTES, (), None)));
                    if hints.encryption_key != 0 {
                        begun.insert(object, self.begin_head(object, hints.encryption_key)?);
                    } else if before.is_some() && self.has_directories() {
                        // The one that it takes the place of may have had a key.
                        begun.insert(object, Head::new(DataKey::new(self.keys().data_key()?)));
                    }
                    plan.mutations.push(mutation);
                    plan.mutations.extend(self.header_of(object)?);
                }
                Mutation::Remove { .. } => {
                    lives.insert(object, None);
                    begun.remove(&object);
                    plan.alone.insert(object);
                    plan.forgotten.push(object);
                    plan.mutations.push(mutation);
                }
                Mutation::Write { .. } | Mutation::Truncate { .. } | Mutation::Punch { .. } => {
                    match self.life(&mut lives, object)? {
                        Some(life) => life.apply(mutation),
                        None => plan.mutations.push(mutation),
                    }
                }
                Mutation::SetAttribute { key, value, .. } => {
                    plan.mutations.extend(self.set_attribute(object, key, &value, &begun, is_frugal)?);
                }
                Mutation::RemoveAttribute { key, .. } => plan.mutations.push(Self::remove_attribute(object, key)),
                Mutation::SetHints { .. } => {
                    plan.mutations.push(self.with_directory_key(mutation, &mut begun)?);
                    if begun.contains_key(&object) {
                        self.life(&mut lives, object)?;
                    }
                }
                // Of moves none is left.
                Mutation::Move { .. } | Mutation::SetAccessTime { .. } => plan.mutations.push(mutation),
            }
        }
        for life in lives.into_values().flatten() {
            self.settle(&life, begun.remove(&life.object), is_frugal, &mut plan)?;
        }
        Ok(plan)
    }

    /// The changes of an object so far.
    fn life<'a>(&self, lives: &'a mut Lives, object: ObjectId) -> Result<&'a mut Option<Life<()>>> {
        match lives.entry(object) {
            btree_map::Entry::Occupied(life) => Ok(life.into_mut()),
            btree_map::Entry::Vacant(place) => {
                let life = match self.head(object) {
                    Ok(head) => Some(Life::new(object, BLOCK_BYTES, (), Some(head.map_or(0, |head| head.size)))),
                    Err(error) if error.kind == ErrorKind::NotFound => None,
                    Err(error) => return Err(error),
                };
                Ok(place.insert(life))
            }
        }
    }
}
