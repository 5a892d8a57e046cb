//! One mutation, or a list of them, as bytes: a code, the object, then the fields in order.

use super::{hints, take_byte};
use crate::id::{AttributeKey, AttributeKind, ObjectId};
use crate::transaction::Mutation;
use alloc::vec::Vec;
use onode_base::varint;

const CREATE: u8 = 1;
const REMOVE: u8 = 2;
const WRITE: u8 = 3;
const TRUNCATE: u8 = 4;
const PUNCH: u8 = 5;
const SET_ATTRIBUTE: u8 = 6;
const REMOVE_ATTRIBUTE: u8 = 7;
const SET_HINTS: u8 = 8;
const SET_ACCESS_TIME: u8 = 9;
const MOVE: u8 = 10;

/// The fewest bytes a mutation takes: its code and a small object id.
const LEAST_BYTES: usize = 2;

/// Appends one mutation.
pub fn put(out: &mut Vec<u8>, mutation: &Mutation) {
    let code = match mutation {
        Mutation::Create { .. } => CREATE,
        Mutation::Remove { .. } => REMOVE,
        Mutation::Write { .. } => WRITE,
        Mutation::Truncate { .. } => TRUNCATE,
        Mutation::Punch { .. } => PUNCH,
        Mutation::SetAttribute { .. } => SET_ATTRIBUTE,
        Mutation::RemoveAttribute { .. } => REMOVE_ATTRIBUTE,
        Mutation::SetHints { .. } => SET_HINTS,
        Mutation::SetAccessTime { .. } => SET_ACCESS_TIME,
        Mutation::Move { .. } => MOVE,
    };
    out.push(code);
    varint::put(out, mutation.object().0);
    match mutation {
        Mutation::Create { hints, .. } | Mutation::SetHints { hints, .. } => hints::put(out, hints),
        Mutation::Remove { .. } => {}
        Mutation::Write { offset, data, .. } => {
            varint::put(out, *offset);
            varint::put_bytes(out, data);
        }
        Mutation::Truncate { size, .. } => varint::put(out, *size),
        Mutation::Punch { offset, length, .. } => {
            varint::put(out, *offset);
            varint::put(out, *length);
        }
        Mutation::Move { offset, length, to, .. } => {
            for number in [*offset, *length, to.0] {
                varint::put(out, number);
            }
        }
        Mutation::SetAttribute { key, value, .. } => {
            put_key(out, *key);
            varint::put_bytes(out, value);
        }
        Mutation::RemoveAttribute { key, .. } => put_key(out, *key),
        Mutation::SetAccessTime { time, .. } => varint::put(out, *time),
    }
}

/// Takes one mutation off the front of `input`; `None` if it is cut short, unknown or not in its
/// one form. Whether it can apply is for [`validate`](crate::validate::validate) to say.
pub fn take(input: &mut &[u8]) -> Option<Mutation> {
    let code = take_byte(input)?;
    let object = ObjectId(varint::take(input)?);
    Some(match code {
        CREATE => Mutation::Create { object, hints: hints::take(input)? },
        REMOVE => Mutation::Remove { object },
        WRITE => {
            let offset = varint::take(input)?;
            Mutation::Write { object, offset, data: varint::take_bytes(input)?.to_vec() }
        }
        TRUNCATE => Mutation::Truncate { object, size: varint::take(input)? },
        PUNCH => {
            let offset = varint::take(input)?;
            Mutation::Punch { object, offset, length: varint::take(input)? }
        }
        SET_ATTRIBUTE => {
            let key = take_key(input)?;
            Mutation::SetAttribute { object, key, value: varint::take_bytes(input)?.to_vec() }
        }
        REMOVE_ATTRIBUTE => Mutation::RemoveAttribute { object, key: take_key(input)? },
        SET_HINTS => Mutation::SetHints { object, hints: hints::take(input)? },
        SET_ACCESS_TIME => Mutation::SetAccessTime { object, time: varint::take(input)? },
        MOVE => {
            let (offset, length) = (varint::take(input)?, varint::take(input)?);
            Mutation::Move { object, offset, length, to: ObjectId(varint::take(input)?) }
        }
        _ => return None,
    })
}

/// Appends the number of mutations and each of them.
pub fn put_list(out: &mut Vec<u8>, mutations: &[Mutation]) {
    varint::put(out, mutations.len() as u64);
    for mutation in mutations {
        put(out, mutation);
    }
}

/// Takes a list off the front of `input`.
pub fn take_list(input: &mut &[u8]) -> Option<Vec<Mutation>> {
    let count = usize::try_from(varint::take(input)?).ok()?;
    if count > input.len() / LEAST_BYTES {
        return None;
    }
    // A mutation in memory is larger than its bytes; the list grows only as they are really there.
    let mut mutations = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        mutations.push(take(input)?);
    }
    Some(mutations)
}

/// Appends an attribute key.
pub fn put_key(out: &mut Vec<u8>, key: AttributeKey) {
    out.push(key.kind.0);
    varint::put(out, key.index);
}

/// Takes an attribute key off the front of `input`.
pub fn take_key(input: &mut &[u8]) -> Option<AttributeKey> {
    let kind = AttributeKind(take_byte(input)?);
    Some(AttributeKey { kind, index: varint::take(input)? })
}

#[cfg(test)]
pub(crate) mod tests;
