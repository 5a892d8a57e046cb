//! Reads of content: planned from the index, copied afterwards, perhaps when nobody holds the index
//! any more.
//!
//! A plan has all bytes that were asked for and that the object shows, in order, holes as zeros. It
//! stays true as long as nothing changes; who copies without the locks sees to that
//! ([`readers`](crate::share::readers)).

use crate::index::Index;
use onode_media::Pmem;
use onode_object::{ObjectId, Result};

/// Bytes that follow each other in an object and in the memory, or in no block.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// `None` for a hole.
    address: Option<u64>,
    length: usize,
}

/// Where the bytes of a read lie.
#[derive(Debug, Default)]
pub(crate) struct ReadPlan {
    bytes: usize,
    /// Most reads have one part: that costs no memory.
    first: Part,
    rest: Vec<Part>,
}

impl ReadPlan {
    fn push(&mut self, part: Part) {
        if self.bytes == 0 {
            self.first = part;
        } else {
            self.rest.push(part);
        }
        self.bytes += part.length;
    }

    /// How many bytes there are.
    #[inline]
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies all bytes to the front of a buffer that has room for them.
    pub(crate) fn copy<P: Pmem + ?Sized>(&self, memory: &P, buffer: &mut [u8]) {
        let mut rest = buffer;
        for Part { address, length } in std::iter::once(&self.first).chain(&self.rest) {
            let Some((piece, others)) = rest.split_at_mut_checked(*length) else { return };
            match address {
                Some(address) => memory.read(*address, piece),
                None => piece.fill(0),
            }
            rest = others;
        }
    }
}

impl<P: Pmem> Index<P> {
    /// Where the bytes of an object from `offset` on lie, at most `length` of them.
    pub(crate) fn plan_read(&self, object: ObjectId, offset: u64, length: usize) -> Result<ReadPlan> {
        let (onode, _) = self.onode(object)?;
        let count = usize::try_from(onode.size.saturating_sub(offset)).unwrap_or(usize::MAX).min(length);
        let end = offset + count as u64;
        let mut plan = ReadPlan::default();
        let mut at = offset;
        while at < end {
            let (address, stop) = match self.extent_at(object, at).filter(|extent| extent.offset < end) {
                Some(extent) if extent.offset <= at => {
                    (Some(extent.address + (at - extent.offset)), extent.end().min(end))
                }
                next => (None, next.map_or(end, |extent| extent.offset)),
            };
            plan.push(Part { address, length: (stop - at) as usize });
            at = stop;
        }
        Ok(plan)
    }
}
