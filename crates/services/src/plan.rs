//! What a transaction of the host becomes for the wrapped device, and what is known once it is
//! committed.

use crate::shards::{Known, Ranks, Shards};
use onode_object::validate::{CUT_BYTES, KEY_BYTES};
use onode_object::{AttributeKey, AttributeKind, Hints, Mutation, ObjectId, Result, Transaction};
use std::collections::BTreeSet;

/// No attribute ever has this key.
pub(crate) const UNUSED: AttributeKey = AttributeKey::new(AttributeKind::SERVICE, u64::MAX);
/// Writes are joined up to so many bytes.
const JOINED_BYTES: usize = 1 << 20;

/// A transaction for the wrapped device; `P` is a part of what the wrapper knows of an object.
pub(crate) struct Plan<P> {
    pub(crate) mutations: Vec<Mutation>,
    /// Objects whose stored content changes: nobody reads them meanwhile.
    pub(crate) alone: BTreeSet<ObjectId>,
    /// Parts as they are then.
    pub(crate) learned: Vec<(ObjectId, u64, Known<P>)>,
    /// Objects that are gone.
    pub(crate) forgotten: Vec<ObjectId>,
}

impl<P> Default for Plan<P> {
    fn default() -> Self {
        Self { mutations: Vec::new(), alone: BTreeSet::new(), learned: Vec::new(), forgotten: Vec::new() }
    }
}

impl<P> Plan<P> {
    /// Commits it; who made it still waits for nobody else to change its objects. What is known of
    /// them is remembered if nobody else can change it.
    pub(crate) fn carry_out<T, R: Ranks>(
        self,
        shards: &Shards<P, R>,
        remembers: bool,
        commit: impl FnOnce(Vec<Mutation>) -> Result<T>,
    ) -> Result<T> {
        let Self { mutations, alone, learned, forgotten } = self;
        let commit_and_learn = || {
            let result = commit(mutations);
            let unknown = learned.iter().map(|(object, ..)| *object).filter(|_| result.is_err());
            forgotten.iter().copied().chain(unknown).for_each(|object| shards.of(object).forget(object));
            if result.is_ok() && remembers {
                for (object, part, known) in learned {
                    shards.of(object).learn(object, part, known);
                }
            }
            result
        };
        if alone.is_empty() { commit_and_learn() } else { shards.alone(alone.into_iter(), commit_and_learn) }
    }
}

/// Whether a mutation is one of content, or of which objects there are.
pub(crate) const fn concerns_content(mutation: &Mutation) -> bool {
    match mutation {
        Mutation::Create { .. }
        | Mutation::Remove { .. }
        | Mutation::Write { .. }
        | Mutation::Truncate { .. }
        | Mutation::Punch { .. }
        | Mutation::Move { .. } => true,
        Mutation::SetAttribute { .. }
        | Mutation::RemoveAttribute { .. }
        | Mutation::SetHints { .. }
        | Mutation::SetAccessTime { .. } => false,
    }
}

/// The transaction as the wrapped device refuses it, if it has a mutation that no object admits:
/// those are refused before sizes are reckoned with. `is_ours` tells the attributes of the wrapper.
pub(crate) fn refused(transaction: &mut Transaction, is_ours: impl Fn(AttributeKey) -> bool) -> Option<Transaction> {
    let is_refused = |mutation: &Mutation| match mutation {
        Mutation::Write { offset, data, .. } => {
            offset.checked_add(data.len() as u64).is_none_or(|end| end > Transaction::MAX_OBJECT_BYTES)
        }
        Mutation::Truncate { size, .. } => *size > Transaction::MAX_OBJECT_BYTES,
        Mutation::SetAttribute { key, value, .. } => is_ours(*key) || value.len() > Transaction::MAX_ATTRIBUTE_BYTES,
        _ => false,
    };
    let position = transaction.mutations.iter().position(is_refused)?;
    let mut refused = std::mem::take(transaction);
    refused.mutations.truncate(position + 1);
    // An attribute of the wrapper would be accepted there: no object has such an id.
    refused.mutations.push(Mutation::Remove { object: ObjectId(0) });
    if let Mutation::SetAttribute { value, .. } = &mut refused.mutations[position] {
        value.resize(Transaction::MAX_ATTRIBUTE_BYTES + 1, 0);
    }
    Some(refused)
}

/// The same for a wrapper that has objects of its own, too, which no host sees: a mutation that
/// `is_own` is refused as one of an object that is not there, or cannot be made.
pub(crate) fn refused_of_own(
    transaction: &mut Transaction,
    is_own: impl Fn(&Mutation) -> bool,
    is_ours: impl Fn(AttributeKey) -> bool,
) -> Option<Transaction> {
    let position = transaction.mutations.iter().position(is_own);
    if let Some(position) = position {
        let is_made = matches!(transaction.mutations[position], Mutation::Create { .. });
        let object = ObjectId(0);
        transaction.mutations.truncate(position);
        transaction.mutations.push(match is_made {
            true => Mutation::Create { object, hints: Hints::default() },
            false => Mutation::Remove { object },
        });
    }
    refused(transaction, is_ours).or_else(|| position.map(|_| std::mem::take(transaction)))
}

/// What an attribute with a value of so many bytes takes of a transaction that a full device has to
/// take (N7).
pub(crate) const fn cost(bytes: usize) -> i64 {
    KEY_BYTES + bytes as i64
}

/// How many punches pay for attributes that grow by so many bytes; none for what does not grow.
pub(crate) fn punches_for(growth: i64) -> usize {
    (growth.max(0) as usize).div_ceil(CUT_BYTES as usize)
}

/// Punches of nothing, each of which gives a transaction what a cut does.
pub(crate) fn empty_punches(object: ObjectId, count: usize) -> impl Iterator<Item = Mutation> {
    std::iter::repeat_n(Mutation::Punch { object, offset: 0, length: 0 }, count)
}

/// Writes one after the other as one.
pub(crate) fn joined(mut writes: Vec<(u64, Vec<u8>)>) -> Vec<(u64, Vec<u8>)> {
    writes.sort_by_key(|(offset, _)| *offset);
    let mut joined: Vec<(u64, Vec<u8>)> = Vec::with_capacity(writes.len());
    for (offset, data) in writes {
        match joined.last_mut() {
            Some((start, last)) if *start + last.len() as u64 == offset && last.len() < JOINED_BYTES => {
                last.extend_from_slice(&data);
            }
            _ => joined.push((offset, data)),
        }
    }
    joined
}
