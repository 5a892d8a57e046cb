//! Whether a transaction can apply: one set of rules for every device, so that all refuse alike.
//!
//! [`validate`] walks the whole list before anything changes and reports the first mutation that
//! cannot apply, as if those before it had been done. It needs to know only which objects exist;
//! it does not decide about space, except that [`never_needs_space`] names the transactions that a
//! full device must still accept.

use crate::error::{Error, ErrorKind, Result};
use crate::id::{AttributeKey, ObjectId};
use crate::transaction::{Mutation, Transaction};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

/// What a device admits beside what its objects allow.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    /// The id that `reserve_ids` would hand out next.
    pub next_id: ObjectId,
    /// As [`ObjectDevice::move_unit`](crate::ObjectDevice::move_unit) says. Whether an end that is
    /// no multiple of it is that of the object is left to the device, which knows sizes.
    pub move_unit: Option<u64>,
}

/// Refuses the transaction if any of its mutations cannot apply.
///
/// `exists` answers for the state before the transaction and is asked about each run of mutations
/// of one object only once.
///
/// # Errors
/// `NotFound`, `Exists` and `Invalid` as the documentation of [`Mutation`] says, and whatever
/// `exists` fails with.
pub fn validate(
    transaction: &Transaction,
    admission: Admission,
    exists: &mut dyn FnMut(ObjectId) -> Result<bool>,
) -> Result<()> {
    let mut known = Existence { exists, first: None, changed: BTreeMap::new(), last: None };
    for (position, mutation) in transaction.mutations.iter().enumerate() {
        check(mutation, admission, &mut known)
            .map_err(|error| Error { detail: format!("mutation {position}: {}", error.detail), ..error })?;
    }
    Ok(())
}

fn check(mutation: &Mutation, admission: Admission, known: &mut Existence<'_>) -> Result<()> {
    let object = mutation.object();
    match mutation {
        Mutation::Create { .. } => {
            check_new_id(object, admission.next_id)?;
            if known.ask(object)? {
                return Err(Error::of(ErrorKind::Exists, object, "it was created before"));
            }
            known.change(object, true);
        }
        Mutation::Remove { .. } => {
            known.require(object)?;
            known.change(object, false);
        }
        Mutation::Write { offset, data, .. } => {
            known.require(object)?;
            let end = offset.checked_add(data.len() as u64);
            if end.is_none_or(|end| end > Transaction::MAX_OBJECT_BYTES) {
                let detail = format!("{} bytes at {offset} reach past the largest object", data.len());
                return Err(Error::of(ErrorKind::Invalid, object, detail));
            }
        }
        Mutation::Truncate { size, .. } => {
            known.require(object)?;
            if *size > Transaction::MAX_OBJECT_BYTES {
                return Err(Error::of(ErrorKind::Invalid, object, format!("size {size} is past the largest object")));
            }
        }
        Mutation::SetAttribute { value, .. } => {
            known.require(object)?;
            if value.len() > Transaction::MAX_ATTRIBUTE_BYTES {
                let detail = format!("an attribute of {} bytes is too large", value.len());
                return Err(Error::of(ErrorKind::Invalid, object, detail));
            }
        }
        Mutation::Move { offset, to, .. } => {
            let invalid = |detail| Err(Error::of(ErrorKind::Invalid, object, detail));
            let Some(unit) = admission.move_unit else {
                return invalid(String::from("this device does not move content"));
            };
            known.require(object)?;
            known.require(*to)?;
            if object == *to || object.origin() != to.origin() {
                return invalid(format!("its content cannot move to {to}"));
            }
            if !offset.is_multiple_of(unit.max(1)) {
                return invalid(format!("content moves in units of {unit} bytes, not from {offset} on"));
            }
        }
        // A punch past the size, or one whose end overflows, only covers less; hints are advice.
        Mutation::Punch { .. }
        | Mutation::RemoveAttribute { .. }
        | Mutation::SetHints { .. }
        | Mutation::SetAccessTime { .. } => known.require(object)?,
    }
    Ok(())
}

/// Refuses a transaction with a [`Mutation::Move`], for a device that moves no content and would
/// look at sizes before [`validate`].
///
/// # Errors
/// `Invalid` if there is one.
pub fn refuse_moves(transaction: &Transaction) -> Result<()> {
    match transaction.mutations.iter().find(|one| matches!(one, Mutation::Move { .. })) {
        None => Ok(()),
        Some(one) => Err(Error::of(ErrorKind::Invalid, one.object(), "this device does not move content")),
    }
}

/// Whether the host may make an object of this id at all.
fn check_new_id(object: ObjectId, next_id: ObjectId) -> Result<()> {
    let is_free = object < ObjectId::FIRST_FREE || object < next_id || object.is_version();
    if object == ObjectId(0) || !is_free {
        return Err(Error::of(ErrorKind::Invalid, object, "this id was never reserved"));
    }
    Ok(())
}

/// Which objects exist after the mutations seen so far.
struct Existence<'a> {
    exists: &'a mut dyn FnMut(ObjectId) -> Result<bool>,
    /// The first object made or removed by this transaction: most have none or one.
    first: Option<(ObjectId, bool)>,
    /// The others.
    changed: BTreeMap<ObjectId, bool>,
    /// The last answer: mutations of one object mostly follow each other.
    last: Option<(ObjectId, bool)>,
}

impl Existence<'_> {
    fn ask(&mut self, object: ObjectId) -> Result<bool> {
        if let Some((last, answer)) = self.last
            && last == object
        {
            return Ok(answer);
        }
        let first = self.first.filter(|(first, _)| *first == object).map(|(_, answer)| answer);
        let answer = match first.or_else(|| self.changed.get(&object).copied()) {
            Some(changed) => changed,
            None if object == ObjectId(0) || object >= ObjectId::FIRST_OF_DEVICE => false,
            None => (self.exists)(object)?,
        };
        self.last = Some((object, answer));
        Ok(answer)
    }

    fn require(&mut self, object: ObjectId) -> Result<()> {
        if self.ask(object)? {
            return Ok(());
        }
        Err(Error::of(ErrorKind::NotFound, object, "there is no such object"))
    }

    fn change(&mut self, object: ObjectId, exists: bool) {
        match &mut self.first {
            Some((first, answer)) if *first == object => *answer = exists,
            Some(_) => _ = self.changed.insert(object, exists),
            None => self.first = Some((object, exists)),
        }
        self.last = Some((object, exists));
    }
}

/// What the key of an attribute counts in [`never_needs_space`].
pub const KEY_BYTES: i64 = 16;

/// What a `Remove`, `Truncate` or `Punch` counts in [`never_needs_space`].
pub const CUT_BYTES: i64 = 16;

/// The most bytes of an object that a `Write` may replace on a full device.
pub const REPLACED_BYTES_MAX: usize = 256;

/// What [`never_needs_space`] asks of a device.
pub trait Stored {
    /// Length of a stored attribute, `None` if there is none.
    ///
    /// # Errors
    /// The device's errors.
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>>;

    /// Length of an object's content if there is no hole in it, `None` if there is one or no such
    /// object.
    ///
    /// # Errors
    /// The device's errors.
    fn solid_bytes(&mut self, object: ObjectId) -> Result<Option<u64>>;
}

/// Whether the contract forbids to refuse this valid transaction for space (N7): it consists only
/// of `Remove`, `Truncate`, `Punch`, `RemoveAttribute`, `SetAttribute` and of a `Write` that
/// replaces the whole content of a small object by as many bytes, and what its attributes grow by
/// is no more than what it gives up. An attribute counts its value and 16 bytes for its key; each
/// `Remove`, `Truncate` and `Punch` gives up 16 bytes, so that a file can be cut and bear the time
/// of it.
///
/// # Errors
/// Whatever `stored` fails with.
pub fn never_needs_space(transaction: &Transaction, stored: &mut dyn Stored) -> Result<bool> {
    let mutations = &transaction.mutations;
    let fills = |one: &Mutation| match one {
        Mutation::Create { .. }
        | Mutation::Move { .. }
        | Mutation::SetHints { .. }
        | Mutation::SetAccessTime { .. } => true,
        Mutation::Write { offset, data, .. } => *offset != 0 || data.len() > REPLACED_BYTES_MAX,
        _ => false,
    };
    if mutations.iter().any(fills) {
        return Ok(false);
    }
    for mutation in mutations {
        if let Mutation::Write { object, data, .. } = mutation
            && stored.solid_bytes(*object)? != Some(data.len() as u64)
        {
            return Ok(false);
        }
    }
    if !mutations.iter().any(|one| matches!(one, Mutation::SetAttribute { .. })) {
        return Ok(true);
    }
    let cost = |length: usize| KEY_BYTES + length as i64;
    let mut changed = BTreeMap::new();
    let mut growth = 0;
    for mutation in mutations {
        let (object, key, length) = match mutation {
            Mutation::SetAttribute { object, key, value } => (*object, *key, Some(value.len())),
            Mutation::RemoveAttribute { object, key } => (*object, *key, None),
            Mutation::Remove { .. } | Mutation::Truncate { .. } | Mutation::Punch { .. } => {
                growth -= CUT_BYTES;
                continue;
            }
            Mutation::Create { .. }
            | Mutation::Write { .. }
            | Mutation::Move { .. }
            | Mutation::SetHints { .. }
            | Mutation::SetAccessTime { .. } => continue,
        };
        let before = match changed.insert((object, key), length) {
            Some(before) => before,
            None => stored.attribute_bytes(object, key)?,
        };
        growth += length.map_or(0, cost) - before.map_or(0, cost);
    }
    Ok(growth <= 0)
}

/// The ids that a reservation of `count` hands out, as the first one and the one after the last.
///
/// # Errors
/// `NoSpace` once 2^63 ids are used up.
pub fn reserve(next_id: ObjectId, count: u64) -> Result<(ObjectId, ObjectId)> {
    let first = next_id.max(ObjectId::FIRST_FREE);
    match first.0.checked_add(count) {
        Some(next) if next <= 1 << 63 => Ok((first, ObjectId(next))),
        _ => Err(Error::new(ErrorKind::NoSpace, format!("{count} more object ids are not left"))),
    }
}

#[cfg(test)]
mod tests;
