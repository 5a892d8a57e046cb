//! Entries that tell of every block whether it is there, for volumes that are authenticated.
//!
//! Elsewhere an entry outlives its block: what was taken away is a hole of the wrapped object and
//! needs none. Who can change the medium could make such holes, so here the entry goes with the
//! block, and a block that an entry tells of and that is not there is damage.

use crate::encrypted::Encrypted;
use crate::encrypted::map::{BLOCK_BYTES, BlockEntry, BlockGroup, GROUP_BLOCKS, Head, group_key, group_of};
use crate::encrypted::settle::Sealing;
use onode_object::{ObjectDevice, ObjectId, Result};
use std::ops::{ControlFlow, Range};

/// Groups that are asked for at once.
const AT_ONCE: usize = 64;

impl<D: ObjectDevice + ?Sized> Encrypted<D> {
    /// Whether entries do so.
    pub(super) const fn tells_holes(&self) -> bool {
        self.header().is_authenticated()
    }

    /// Takes away the entries of blocks that go and have no new bytes.
    pub(super) fn settle_told(&self, it: &mut Sealing<'_>) -> Result<()> {
        // One that is new, or has no content, has no entries.
        if it.head_before.is_none() {
            return Ok(());
        }
        for (start, end) in it.going.iter().collect::<Vec<_>>() {
            let (first, behind) = (start / BLOCK_BYTES, end / BLOCK_BYTES);
            if first == 0 {
                self.take_entry(it, 0)?;
            }
            let mut numbers = Vec::new();
            self.each_group(it.life.object, first / GROUP_BLOCKS..behind.div_ceil(GROUP_BLOCKS), |number, _| {
                numbers.push(number);
                Ok(ControlFlow::Continue(()))
            })?;
            for number in numbers {
                let blocks = number * GROUP_BLOCKS..(number + 1) * GROUP_BLOCKS;
                for block in blocks.start.max(first).max(1)..blocks.end.min(behind) {
                    self.take_entry(it, block)?;
                }
            }
        }
        Ok(())
    }

    fn take_entry(&self, it: &mut Sealing<'_>, block: u64) -> Result<()> {
        if it.life.patches.contains_key(&block) {
            return Ok(());
        }
        let entry = self.entry(it, block)?;
        if !entry.is_absent() {
            self.forget(it, block, entry)?;
            self.set_entry(it, block, BlockEntry::default())?;
        }
        Ok(())
    }

    /// Looks at the groups that an object has from one to before another, as they are stored, until
    /// it is told to stop.
    fn each_group(
        &self,
        object: ObjectId,
        groups: Range<u64>,
        mut look: impl FnMut(u64, Vec<u8>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut from = Some(group_key(groups.start));
        while let Some(start) = from {
            let some = self.inner().attributes(object, start, AT_ONCE)?;
            from = some.last().and_then(|(key, _)| key.next());
            for (key, value) in some {
                let Some(number) = group_of(key).filter(|number| *number < groups.end) else { return Ok(()) };
                if look(number, value)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Blocks that entries tell of from an offset on, joined, at most `limit` ranges.
    pub(super) fn told_extents(
        &self,
        object: ObjectId,
        head: &Head,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>> {
        let mut all: Vec<(u64, u64)> = Vec::new();
        let mut add = |block: u64, entry: BlockEntry| {
            let (start, end) = ((block * BLOCK_BYTES).max(offset), ((block + 1) * BLOCK_BYTES).min(head.size));
            if entry.is_absent() || start >= end {
                return true;
            }
            let is_full = all.len() >= limit;
            match all.last_mut() {
                Some((last, length)) if *last + *length == start => *length += end - start,
                _ if is_full => return false,
                _ => all.push((start, end - start)),
            }
            true
        };
        if !add(0, head.first) {
            return Ok(all);
        }
        let groups = offset / BLOCK_BYTES / GROUP_BLOCKS..head.size.div_ceil(GROUP_BLOCKS * BLOCK_BYTES);
        self.each_group(object, groups, |number, value| {
            let parsed = BlockGroup::parse(object, number, &value, head.key(object)?);
            let group = parsed.map_err(|why| self.lost_part(object, number, why))?;
            let mut blocks = (number * GROUP_BLOCKS).max(1)..(number + 1) * GROUP_BLOCKS;
            let goes_on = blocks.all(|block| add(block, group.entry(block)));
            Ok(if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(all)
    }
}
