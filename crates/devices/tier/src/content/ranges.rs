//! Which ranges of an object hold data, stored and pending blocks together.

use crate::content::pending::Pending;
use crate::index::Index;
use crate::medium::layout::BLOCK;
use alloc::vec::Vec;
use onode_object::{ObjectId, Result};

/// The ranges that hold data at or after `offset`, at most `limit`.
///
/// # Errors
/// `NotFound`, `Corrupt`.
pub fn data_ranges(
    index: &mut Index,
    pending: &Pending,
    object: ObjectId,
    offset: u64,
    limit: usize,
) -> Result<Vec<(u64, u64)>> {
    let onode = index.known(object)?;
    let mut out: Vec<(u64, u64)> = Vec::new();
    if offset >= onode.size || limit == 0 {
        return Ok(out);
    }
    if !onode.has_blocks {
        let stored = index.inline(object)?.len() as u64;
        if stored > offset {
            out.push((offset, stored - offset));
        }
        return Ok(out);
    }
    let mut push = |from: u64, to: u64| {
        let (from, to) = (from.max(offset), to.min(onode.size));
        match out.last_mut() {
            Some((start, length)) if *start + *length == from => *length = to.saturating_sub(*start),
            _ if from < to => out.push((from, to - from)),
            _ => {}
        }
        out.len() > limit
    };
    let last = onode.size.div_ceil(BLOCK);
    let mut at = offset / BLOCK;
    while at < last {
        // A window of the object at a time, so that nothing is read that is not asked for.
        let stored = index.next_extent(object, at, last)?;
        let window = stored.as_ref().map_or(last, |(first, extent)| (first + extent.blocks()).min(last));
        let mut parts: Vec<(u64, u64)> = pending.range(object.0, at, window).map(|(it, _)| (it, it + 1)).collect();
        parts.extend(stored.map(|(first, extent)| (first.max(at), first + extent.blocks())));
        parts.sort_unstable();
        if parts.into_iter().any(|(from, to)| push(from * BLOCK, to * BLOCK)) {
            break;
        }
        at = window;
    }
    out.truncate(limit);
    Ok(out)
}
