//! The values of entries: onodes and extents.
//!
//! They are records, and bytes that make no sense are refused. Whether an onode and the extents of
//! its object fit is not theirs to say.

use crate::log::record::Piece;
use alloc::vec::Vec;
use onode_base::varint;
use onode_engine::Key;
use onode_object::Hints;
use onode_object::wire::hints;
/// The device's own record of an object (paper 1, section III.B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Onode {
    /// Size in bytes.
    pub size: u64,
    /// Bytes that its extents hold.
    pub allocated: u64,
    /// Advice.
    pub hints: Hints,
    /// Access time; 0 for none.
    pub accessed: u64,
}

impl Onode {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        self.put(&mut out);
        out
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        varint::put(out, self.size);
        varint::put(out, self.allocated);
        hints::put(out, &self.hints);
        if self.accessed != 0 {
            varint::put(out, self.accessed);
        }
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let size = varint::take(&mut bytes)?;
        let allocated = varint::take(&mut bytes)?;
        let hints = hints::take(&mut bytes)?;
        let has_time = !bytes.is_empty();
        let accessed = if has_time { varint::take(&mut bytes)? } else { 0 };
        let sound = bytes.is_empty() && has_time == (accessed != 0);
        sound.then_some(Self { size, allocated, hints, accessed })
    }
}

/// A run of an object's bytes and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte in the object.
    pub offset: u64,
    /// Where it lies.
    pub piece: Piece,
}

impl Extent {
    /// The byte after the last.
    pub const fn end(&self) -> u64 {
        self.offset + self.piece.length as u64
    }

    pub(crate) fn encode(piece: Piece) -> Vec<u8> {
        let mut out = Vec::with_capacity(10);
        Self::put(piece, &mut out);
        out
    }

    pub(crate) fn put(piece: Piece, out: &mut Vec<u8>) {
        varint::put(out, u64::from(piece.length));
        varint::put(out, piece.location);
    }

    /// The extent behind an entry of the tree.
    pub(crate) fn decode(key: &Key, mut bytes: &[u8]) -> Option<Self> {
        let length = u32::try_from(varint::take(&mut bytes)?).ok()?;
        let location = varint::take(&mut bytes)?;
        let sound = bytes.is_empty() && length > 0 && key.index.checked_add(u64::from(length))? <= 1 << 63;
        sound.then_some(Self { offset: key.index, piece: Piece { location, length } })
    }
}
