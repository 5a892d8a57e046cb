//! The onode: size and settings of one object, a value in the tree.

use alloc::vec::Vec;
use onode_base::varint;
use onode_object::wire::hints;
use onode_object::{Hints, Transaction};

/// Most bytes of content that lie in the tree itself.
pub const INLINE_BYTES: u64 = 1000;

/// What the tree knows of an object beside its content and attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Onode {
    /// Bytes.
    pub size: u64,
    /// Access time.
    pub accessed: u64,
    /// Blocks that hold content, pending ones included; 0 if the content is in the tree.
    pub blocks: u64,
    /// The content has blocks of its own.
    pub has_blocks: bool,
    /// The advice.
    pub hints: Hints,
}

impl Onode {
    /// Its value in the tree.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        varint::put(&mut out, self.size);
        varint::put(&mut out, self.accessed);
        varint::put(&mut out, self.blocks);
        out.push(u8::from(self.has_blocks));
        hints::put(&mut out, &self.hints);
        out
    }

    /// The onode that a value in the tree stands for.
    #[must_use]
    pub fn decode(mut value: &[u8]) -> Option<Self> {
        let input = &mut value;
        let (size, accessed, blocks) = (varint::take(input)?, varint::take(input)?, varint::take(input)?);
        let has_blocks = crate::medium::bytes::take_u8(input)? != 0;
        let hints = hints::take(input)?;
        let fits = size <= if has_blocks { Transaction::MAX_OBJECT_BYTES } else { INLINE_BYTES };
        (input.is_empty() && fits).then_some(Self { size, accessed, blocks, has_blocks, hints })
    }
}
