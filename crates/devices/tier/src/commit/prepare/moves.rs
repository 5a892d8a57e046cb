//! What content needs that changes its object: all nodes that have its extents, and those that get
//! them.
//!
//! It keeps true: what an object was given or wrote earlier in the same transaction it may give on,
//! so all objects of a family that give something count each time.

use super::Preparation;
use crate::commit::room::{Cost, EXTENT_BYTES};
use crate::index::onode::INLINE_BYTES;
use crate::medium::layout::BLOCK;
use crate::space::extent::Extent;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use core::ops::Range;
use onode_engine::Key;
use onode_object::{Error, ErrorKind, ObjectId, Result};

/// Extents that move in one transaction at most: all their entries are in memory until the next
/// checkpoint.
const MOST_EXTENTS: u64 = 16_384;

/// Who gives content in a transaction, by the object of which they are versions.
#[derive(Default)]
pub(super) struct Families {
    givers: BTreeMap<ObjectId, BTreeSet<ObjectId>>,
    extents: u64,
}

impl Preparation<'_> {
    /// Prepares that `object` gives bytes to another one.
    ///
    /// # Errors
    /// `NoSpace` if they lie in too many pieces; `Corrupt`, `Media`.
    pub(super) fn prepare_move(
        &mut self,
        families: &mut Families,
        object: ObjectId,
        range: Range<u64>,
        to: ObjectId,
        cost: &mut Cost,
    ) -> Result<()> {
        for key in [Key::onode(to), Key::inline(to)] {
            self.reader.index.way(&key, true, &mut cost.ways)?;
        }
        let givers = families.givers.entry(object.origin()).or_default();
        givers.extend([object, to]);
        let family = givers.clone();
        for giver in family {
            let onode = self.reader.index.onode(giver)?.unwrap_or_default();
            let end = range.end.min(onode.size.max(range.start));
            let blocks = range.start / BLOCK..end.div_ceil(BLOCK);
            self.prefetch(giver, range.start..end, blocks.clone(), cost)?;
            for (at, extent) in self.reader.index.extents(giver, blocks.start, blocks.end)? {
                families.extents += 1;
                if families.extents > MOST_EXTENTS {
                    let detail = format!("content in more than {MOST_EXTENTS} pieces moves at once; move it in parts");
                    return Err(Error::of(ErrorKind::NoSpace, object, detail));
                }
                self.reader.index.way(&Key::extent(to, at), true, &mut cost.ways)?;
                self.reader.index.way(&Key::extent(giver, at), true, &mut cost.ways)?;
                cost.puts += 1;
                cost.bytes += bytes_of(&extent);
            }
            if !onode.has_blocks {
                cost.grows_inline = true;
                cost.bytes += INLINE_BYTES;
            }
        }
        // Parts of blocks at both ends, of both, and what was in the tree of both.
        cost.blocks += 6;
        cost.puts += 12;
        cost.bytes += 12 * EXTENT_BYTES;
        Ok(())
    }
}

/// Bytes of an entry of the tree, with its key.
fn bytes_of(extent: &Extent) -> u64 {
    EXTENT_BYTES + 4 * extent.blocks()
}
