//! What the log holds: mutations as they came, but large content by the place that it was written
//! to.

use crate::medium::bytes::take_u8;
use crate::space::extent::Extent;
use alloc::vec::Vec;
use onode_base::varint;
use onode_object::wire::mutation;
use onode_object::{Mutation, ObjectId};

/// A code that no mutation has.
const PLACED: u8 = 0x80;

/// One change of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A mutation.
    Plain(Mutation),
    /// Whole blocks of an object that lie at their place already.
    Placed {
        /// The object.
        object: ObjectId,
        /// The first block of it.
        first: u64,
        /// Where they lie, in order.
        extents: Vec<Extent>,
    },
}

impl Change {
    /// Appends the change.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Plain(plain) => mutation::put(out, plain),
            Self::Placed { object, first, extents } => {
                out.push(PLACED);
                varint::put(out, object.0);
                varint::put(out, *first);
                varint::put(out, extents.len() as u64);
                extents.iter().for_each(|extent| out.extend_from_slice(&extent.encode()));
            }
        }
    }

    /// Takes a change off the front of `input`.
    #[must_use]
    pub fn take(input: &mut &[u8]) -> Option<Self> {
        if input.first() != Some(&PLACED) {
            return mutation::take(input).map(Self::Plain);
        }
        take_u8(input)?;
        let (object, first, count) = (ObjectId(varint::take(input)?), varint::take(input)?, varint::take(input)?);
        if first > 1 << 50 || count > 1 << 24 {
            return None;
        }
        let extents = (0..count).map(|_| Extent::take(input)).collect::<Option<Vec<_>>>()?;
        Some(Self::Placed { object, first, extents })
    }
}

/// Appends a transaction; returns where each change ends.
pub fn put_transaction(out: &mut Vec<u8>, changes: &[Change]) -> Vec<usize> {
    varint::put(out, changes.len() as u64);
    let put = |change: &Change| {
        change.put(out);
        out.len()
    };
    changes.iter().map(put).collect()
}

/// Takes a transaction off the front of `input`; with each change how many bytes follow behind it.
#[must_use]
pub fn take_transaction(input: &mut &[u8]) -> Option<Vec<(Change, usize)>> {
    let count = varint::take(input)?;
    if count > input.len() as u64 {
        return None;
    }
    let mut take = || {
        let change = Change::take(input)?;
        Some((change, input.len()))
    };
    (0..count).map(|_| take()).collect()
}
