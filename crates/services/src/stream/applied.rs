//! Applying mutations that lead a device to a state, from the state before or from anywhere on the
//! way: what is done already is done again.

use onode_object::{
    AttributeKey, AttributeKind, Durability, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result, Transaction,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Attributes that are removed at once.
const ATTRIBUTES: usize = 64;
/// What a mutation takes beside its bytes.
const MUTATION_BYTES: usize = 64;

/// What becomes of a mutation: it is applied as it is returned, or not at all.
pub type Keep<'a> = dyn Fn(Mutation) -> Result<Option<Mutation>> + 'a;

/// A device that is led to another state.
pub struct Applied<'a> {
    device: Arc<dyn ObjectDevice>,
    keep: &'a Keep<'a>,
    transaction: Transaction,
    bytes: usize,
    /// Objects of the transaction that are known to be there, and those that it removes.
    there: BTreeSet<ObjectId>,
    gone: BTreeSet<ObjectId>,
}

impl<'a> Applied<'a> {
    /// Leads a device to a state all of whose objects have lower numbers than `next_id`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(device: Arc<dyn ObjectDevice>, next_id: ObjectId, keep: &'a Keep<'a>) -> Result<Self> {
        let next = device.reserve_ids(0)?;
        if next < next_id {
            device.reserve_ids(next_id.0 - next.0)?;
        }
        let (there, gone) = (BTreeSet::new(), BTreeSet::new());
        Ok(Self { device, keep, transaction: Transaction::new(), bytes: 0, there, gone })
    }

    /// Applies some mutations, sooner or later.
    ///
    /// # Errors
    /// `Invalid` for what no stream has; `Stale` if the device has not the state from which the
    /// mutations lead on; `NoSpace`; those of the device.
    pub fn apply(&mut self, mutations: Vec<Mutation>) -> Result<()> {
        for mutation in mutations {
            check(&mutation)?;
            if let Some(mutation) = (self.keep)(mutation)? {
                self.apply_one(mutation)?;
            }
        }
        Ok(())
    }

    /// Applies what was left; durable on return.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn finish(mut self) -> Result<()> {
        self.commit(Durability::Durable)
    }

    fn apply_one(&mut self, mutation: Mutation) -> Result<()> {
        let object = mutation.object();
        match mutation {
            Mutation::Create { hints, .. } if self.has(object)? && object < ObjectId::FIRST_FREE => {
                // Others know it by its number.
                self.push(Mutation::SetHints { object, hints })?;
                self.push(Mutation::Truncate { object, size: 0 })?;
                self.remove_attributes(object)
            }
            Mutation::Create { .. } => {
                if self.has(object)? {
                    self.push(Mutation::Remove { object })?;
                }
                self.push(mutation)
            }
            Mutation::Remove { .. } if !self.has(object)? => Ok(()),
            Mutation::Write { offset, data, .. } => {
                self.require(object)?;
                let most = (self.device.info().transaction_bytes / 2).max(4096);
                for (part, data) in (0..).zip(data.chunks(most)) {
                    let offset = offset + part * most as u64;
                    self.push(Mutation::Write { object, offset, data: data.to_vec() })?;
                }
                Ok(())
            }
            mutation => {
                self.require(object)?;
                self.push(mutation)
            }
        }
    }

    fn has(&mut self, object: ObjectId) -> Result<bool> {
        if self.there.contains(&object) {
            return Ok(true);
        }
        if self.gone.contains(&object) {
            return Ok(false);
        }
        match self.device.stat(object) {
            Ok(_) => {
                // Most mutations are about the object of the one before.
                self.there.insert(object);
                Ok(true)
            }
            Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn require(&mut self, object: ObjectId) -> Result<()> {
        if self.has(object)? {
            return Ok(());
        }
        Err(Error::of(ErrorKind::Stale, object, "it is to be changed and is not there"))
    }

    fn remove_attributes(&mut self, object: ObjectId) -> Result<()> {
        self.commit(Durability::Buffered)?;
        let mut next = Some(AttributeKey::new(AttributeKind(0), 0));
        while let Some(from) = next {
            let found = self.device.attributes(object, from, ATTRIBUTES)?;
            next = found.last().and_then(|(key, _)| key.next());
            for (key, _) in found {
                if let Some(mutation) = (self.keep)(Mutation::RemoveAttribute { object, key })? {
                    self.push(mutation)?;
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, mutation: Mutation) -> Result<()> {
        let object = mutation.object();
        let bytes = MUTATION_BYTES
            + match &mutation {
                Mutation::Write { data, .. } => data.len(),
                Mutation::SetAttribute { value, .. } => value.len(),
                _ => 0,
            };
        if self.bytes > 0 && self.bytes + bytes > self.device.info().transaction_bytes {
            self.commit(Durability::Buffered)?;
        }
        match &mutation {
            Mutation::Create { .. } => {
                self.there.insert(object);
                self.gone.remove(&object);
            }
            Mutation::Remove { .. } => {
                self.gone.insert(object);
                self.there.remove(&object);
            }
            _ => {}
        }
        self.bytes += bytes;
        self.transaction.mutations.push(mutation);
        Ok(())
    }

    fn commit(&mut self, durability: Durability) -> Result<()> {
        self.bytes = 0;
        self.there.clear();
        self.gone.clear();
        self.device.commit(std::mem::take(&mut self.transaction), durability)
    }
}

/// Refuses what no stream has: content that is moved, and what belongs to the device or a service.
fn check(mutation: &Mutation) -> Result<()> {
    let object = mutation.object();
    let is_fit = match mutation {
        Mutation::Move { .. } => false,
        Mutation::SetAttribute { key, .. } | Mutation::RemoveAttribute { key, .. } => {
            let kind = key.kind;
            let is_service = [AttributeKind::SERVICE, AttributeKind::STAGED, AttributeKind::SNAPSHOT].contains(&kind);
            !is_service && kind < AttributeKind::FIRST_ABSENT
        }
        _ => true,
    };
    let is_users = object > ObjectId(0) && object < ObjectId::FIRST_VERSION && !is_of_service(object);
    if is_fit && is_users {
        return Ok(());
    }
    Err(Error::of(ErrorKind::Invalid, object, "the stream changes what belongs to the device"))
}

fn is_of_service(object: ObjectId) -> bool {
    [ObjectId::POOL, ObjectId::STAGED, ObjectId::SNAPSHOTS, ObjectId::RECEIVED].contains(&object)
}
