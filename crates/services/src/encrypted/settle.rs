//! The mutations that one object's changes of content are to the wrapped device: what goes, what
//! comes, and the attributes that tell how to open it.
//!
//! A block of which only a part goes stays as it is sealed: its entry says how many bytes of it
//! count, or an attribute says which are holes, so cutting an object never needs space (N7). An
//! attribute that grows for it is paid for by punches of nothing, each of which gives the
//! transaction its 16 bytes.

use crate::encrypted::Encrypted;
use crate::encrypted::cipher::{Context, OVERHEAD_BYTES, What};
use crate::encrypted::map::{
    BLOCK_BYTES, BlockEntry, BlockGroup, DataKey, GROUP_BLOCKS, HEAD, HEAD_PART, Head, INLINE_KEY, MapPart, group_key,
    holes_key,
};
use crate::encrypted::read::value_of;
use crate::life::{Life, Patch};
use crate::plan::{Plan, cost, empty_punches, joined, punches_for};
use crate::ranges::Ranges;
use onode_base::planted::{Bug, is_planted};
use onode_object::validate::REPLACED_BYTES_MAX;
use onode_object::{AttributeKey, Mutation, ObjectDevice, Result};
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::ops::Range;
use std::sync::Arc;

const BLOCK: usize = BLOCK_BYTES as usize;

/// The changes of one object as they come together.
pub(super) struct Sealing<'a> {
    pub(super) life: &'a Life<()>,
    pub(super) head_before: Option<Head>,
    head: Head,
    /// Groups that were looked at: as they were, if they were there, and as they will be.
    groups: BTreeMap<u64, (Option<BlockGroup>, BlockGroup)>,
    /// What goes of what the wrapped object has.
    pub(super) going: Ranges,
    /// What comes.
    coming: Vec<(u64, Vec<u8>)>,
    /// How large the wrapped object may be before something comes.
    trimmed: Option<u64>,
    /// Attributes that say what of a block is a hole, and the one that holds a small object.
    others: Vec<Mutation>,
    /// Bytes that attributes grow by.
    growth: i64,
}

impl Sealing<'_> {
    /// Sets an attribute, which had `before` bytes if it was there, or removes it.
    fn set(&mut self, key: AttributeKey, before: Option<usize>, after: Option<Vec<u8>>) {
        let object = self.life.object;
        self.growth += after.as_ref().map_or(0, |value| cost(value.len())) - before.map_or(0, cost);
        match after {
            Some(value) => self.others.push(Mutation::SetAttribute { object, key, value }),
            None if before.is_some() => self.others.push(Mutation::RemoveAttribute { object, key }),
            None => {}
        }
    }

    fn key(&self) -> Result<&Arc<DataKey>> {
        self.head.key(self.life.object)
    }
}

impl<D: ObjectDevice + ?Sized> Encrypted<D> {
    /// Adds what the changes of an object's content are to a plan; some have begun a head for it.
    /// On a full device they may be such that it has to take, if `is_frugal`.
    pub(super) fn settle(
        &self,
        life: &Life<()>,
        begun: Option<Head>,
        is_frugal: bool,
        plan: &mut Plan<MapPart>,
    ) -> Result<()> {
        let object = life.object;
        let head_before = if life.is_new { None } else { self.head(object)? };
        let is_changed = !life.patches.is_empty() || !life.cleared.is_empty() || life.size != life.size_before;
        let has_none = head_before.is_none() && life.patches.is_empty() && life.size == 0;
        if begun.is_none() && (!is_changed || has_none) {
            let cuts = if is_frugal { life.cuts } else { 0 };
            plan.mutations.extend(empty_punches(object, cuts));
            return Ok(());
        }
        let mut head = match begun.or_else(|| head_before.clone()) {
            Some(head) => head,
            None => Head::new(DataKey::new(self.keys().data_key()?)),
        };
        head.size = life.size;
        let mut it = Sealing {
            life,
            head_before,
            head,
            groups: BTreeMap::new(),
            going: Ranges::default(),
            coming: Vec::new(),
            trimmed: None,
            others: Vec::new(),
            growth: 0,
        };
        self.settle_cleared(&mut it)?;
        for (&block, patch) in &life.patches {
            self.settle_patch(&mut it, block, patch)?;
        }
        self.emit(it, is_frugal, plan)
    }

    /// The group of a block, to be changed.
    fn changing<'a>(&self, it: &'a mut Sealing<'_>, block: u64) -> Result<&'a mut BlockGroup> {
        let number = block / GROUP_BLOCKS;
        let (object, is_new, key) = (it.life.object, it.head_before.is_none(), Arc::clone(it.key()?));
        let pair = match it.groups.entry(number) {
            btree_map::Entry::Occupied(pair) => pair.into_mut(),
            btree_map::Entry::Vacant(place) => {
                let before = if is_new { None } else { self.group(object, number, &key)? };
                let after = before.clone().unwrap_or_default();
                place.insert((before, after))
            }
        };
        Ok(&mut pair.1)
    }

    pub(super) fn entry(&self, it: &mut Sealing<'_>, block: u64) -> Result<BlockEntry> {
        if block == 0 {
            return Ok(it.head.first);
        }
        Ok(self.changing(it, block)?.entry(block))
    }

    pub(super) fn set_entry(&self, it: &mut Sealing<'_>, block: u64, entry: BlockEntry) -> Result<()> {
        if block == 0 {
            it.head.first = entry;
        } else {
            self.changing(it, block)?.set(block, entry);
        }
        Ok(())
    }

    /// Blocks without new bytes of which something goes. Those of which nothing is left become
    /// holes of the wrapped object, and their entries stay: a hole has nothing to be opened.
    fn settle_cleared(&self, it: &mut Sealing<'_>) -> Result<()> {
        let mut edges = BTreeSet::new();
        for (start, end) in it.life.cleared.iter() {
            if start % BLOCK_BYTES != 0 {
                edges.insert(start / BLOCK_BYTES);
            }
            if end != u64::MAX && end % BLOCK_BYTES != 0 {
                edges.insert(end / BLOCK_BYTES);
            }
            let until = if end == u64::MAX { end } else { end / BLOCK_BYTES * BLOCK_BYTES };
            it.going.add(start.next_multiple_of(BLOCK_BYTES), until);
        }
        if self.tells_holes() {
            self.settle_told(it)?;
        }
        for block in edges.into_iter().filter(|block| !it.life.patches.contains_key(block)) {
            self.settle_edge(it, block)?;
        }
        // The attribute is no part of the wrapped content.
        if it.head.first.is_inline() && it.going.covers(0, BLOCK_BYTES) && !it.life.patches.contains_key(&0) {
            self.forget(it, 0, it.head.first)?;
            it.head.first = BlockEntry::default();
        }
        Ok(())
    }

    /// A block without new bytes of which a part goes.
    fn settle_edge(&self, it: &mut Sealing<'_>, block: u64) -> Result<()> {
        let entry = self.entry(it, block)?;
        let Range { start, end } = entry.counting();
        let gone = it.life.cleared_of(block);
        if entry.is_absent() || gone.within(start, end).next().is_none() {
            return Ok(());
        }
        let object = it.life.object;
        let mut left = Ranges::of(start, end);
        if entry.has_holes() {
            let holes = self.holes(object, it.head_before.as_ref().unwrap_or(&it.head), block)?;
            holes.iter().for_each(|(start, end)| left.remove(start, end));
        }
        let listed = entry.has_holes().then(|| sealed_bytes(&gaps(&left)));
        gone.iter().for_each(|(start, end)| left.remove(start, end));
        let Some((first, _)) = left.iter().next() else {
            self.forget(it, block, entry)?;
            it.going.add(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
            return self.set_entry(it, block, BlockEntry::default());
        };
        let holes = gaps(&left);
        let value = if holes.is_empty() {
            None
        } else {
            let context = Context::new(What::Holes, object, block);
            Some(it.key()?.cipher.seal_value(&self.keys().nonce()?, &context, &value_of(&holes)))
        };
        it.set(holes_key(block), listed, value);
        let after = entry.cut(first..left.end(), !holes.is_empty());
        self.set_entry(it, block, if is_planted(Bug::EncryptedHoleForgotten) { entry } else { after })
    }

    /// What a block has in attributes of its own is needed no more.
    pub(super) fn forget(&self, it: &mut Sealing<'_>, block: u64, entry: BlockEntry) -> Result<()> {
        let object = it.life.object;
        for (is_there, key) in [(entry.has_holes(), holes_key(block)), (entry.is_inline(), INLINE_KEY)] {
            if is_there {
                let before = self.inner().attribute(object, key)?.map_or(0, |value| value.len());
                it.set(key, Some(before), None);
            }
        }
        Ok(())
    }

    /// A block with new bytes.
    fn settle_patch(&self, it: &mut Sealing<'_>, block: u64, patch: &Patch) -> Result<()> {
        let (life, object) = (it.life, it.life.object);
        let entry = self.entry(it, block)?;
        let mut plain = vec![0; BLOCK];
        let valid = self.patched(it, block, patch, &mut plain)?;
        let nonce = self.keys().nonce()?;
        let is_small = block == 0 && life.size <= BLOCK_BYTES;
        let sealed = BlockEntry::sealed(nonce, [0; 16], valid, false);
        let mut after = if is_small { sealed } else { sealed.in_full() };
        let is_inline = is_small && self.goes_inline(life, entry, after)?;
        self.forget(it, block, entry)?;
        if is_inline {
            let context = Context::new(What::Inline, object, block);
            let value = it.key()?.cipher.seal_value(&nonce, &context, &plain[..valid as usize]);
            it.set(INLINE_KEY, None, Some(value));
            it.going.add(0, BLOCK_BYTES);
            return self.set_entry(it, block, BlockEntry::sealed(nonce, [0; 16], valid, true));
        }
        plain.truncate(after.stored_bytes(block) as usize);
        after.tag = it.key()?.cipher.seal(&nonce, &Context::new(What::Block, object, block), &mut plain);
        if is_small {
            it.trimmed = Some(after.stored_bytes(block));
        }
        it.coming.push((block * BLOCK_BYTES, plain));
        self.set_entry(it, block, after)
    }

    /// Puts a block as it is with the new bytes into `plain`; returns how many of them count.
    fn patched(&self, it: &mut Sealing<'_>, block: u64, patch: &Patch, plain: &mut [u8]) -> Result<u64> {
        let entry = self.entry(it, block)?;
        let (life, end) = (it.life, it.life.end_in(block));
        let mut valid = end;
        if !patch.fresh().covers(0, end) {
            let gone = life.cleared_of(block);
            let mut left = Ranges::of(entry.counting().start, entry.counting().end);
            gone.iter().for_each(|(start, end)| left.remove(start, end));
            let is_left = !left.is_empty() && !is_planted(Bug::EncryptedRestForgotten);
            if let Some(head) = it.head_before.as_ref().filter(|_| is_left) {
                self.load(life.object, head, block, plain)?;
                gone.iter().for_each(|(start, end)| plain[start as usize..(end as usize).min(BLOCK)].fill(0));
            }
            valid = left.end().max(patch.fresh().end());
        }
        for (start, end) in patch.fresh().iter() {
            plain[start as usize..end as usize].copy_from_slice(patch.get(start, end));
        }
        Ok(valid)
    }

    /// Whether all of a small object, whose bytes are replaced by as many, goes to an attribute: a
    /// full device has to take that, and takes content only in the place of as much content.
    fn goes_inline(&self, life: &Life<()>, before: BlockEntry, after: BlockEntry) -> Result<bool> {
        let is_replaced = life.size == life.size_before
            && life.size <= REPLACED_BYTES_MAX as u64
            && !before.is_absent()
            && life.patches.get(&0).is_some_and(|patch| patch.fresh().covers(0, life.size));
        if !is_replaced || life.is_new {
            return Ok(false);
        }
        let is_alike = before.units == after.units && !before.is_inline() && !before.has_holes();
        Ok(!is_alike || self.inner().stat(life.object)?.size != after.stored_bytes(0))
    }

    /// Puts everything in order.
    fn emit(&self, mut it: Sealing<'_>, is_frugal: bool, plan: &mut Plan<MapPart>) -> Result<()> {
        let (life, object) = (it.life, it.life.object);
        // As the kind of these attributes has it: there while content is written.
        self.emit_maps(&mut it, plan)?;
        // What only adds to an object need not know how large the wrapped one is.
        let only_adds = it.going.is_empty() && it.trimmed.is_none();
        let mut size = if life.is_new || only_adds { 0 } else { self.inner().stat(object)?.size };
        let mut cuts = 0;
        for (start, end) in it.going.iter().filter(|(start, _)| *start < size).collect::<Vec<_>>() {
            cuts += 1;
            plan.mutations.push(if end == u64::MAX {
                size = start;
                Mutation::Truncate { object, size }
            } else {
                Mutation::Punch { object, offset: start, length: end - start }
            });
        }
        if let Some(trimmed) = it.trimmed.filter(|trimmed| *trimmed < size) {
            cuts += 1;
            plan.mutations.push(Mutation::Truncate { object, size: trimmed });
        }
        for (offset, data) in joined(std::mem::take(&mut it.coming)) {
            plan.mutations.push(Mutation::Write { object, offset, data });
        }
        plan.mutations.append(&mut it.others);
        if is_frugal {
            let wanted = life.cuts + punches_for(it.growth);
            plan.mutations.extend(empty_punches(object, wanted.saturating_sub(cuts)));
        }
        plan.alone.insert(object);
        Ok(())
    }

    /// The head and the groups that change.
    fn emit_maps(&self, it: &mut Sealing<'_>, plan: &mut Plan<MapPart>) -> Result<()> {
        let object = it.life.object;
        let is_same = |before: &Head| before.size == it.head.size && before.first == it.head.first;
        if !it.head_before.as_ref().is_some_and(is_same) {
            let value = it.head.value(object, self.keys())?;
            it.growth += cost(value.len()) - it.head_before.as_ref().map_or(0, |_| cost(value.len()));
            plan.mutations.push(Mutation::SetAttribute { object, key: HEAD, value });
            plan.learned.push((object, HEAD_PART, Some(Arc::new(MapPart::Head(it.head.clone())))));
        }
        for (number, (before, group)) in std::mem::take(&mut it.groups) {
            if before.as_ref() == Some(&group) || (before.is_none() && group == BlockGroup::default()) {
                continue;
            }
            if self.tells_holes() && group == BlockGroup::default() {
                it.growth -= before.map_or(0, |before| cost(before.stored_bytes()));
                plan.mutations.push(Mutation::RemoveAttribute { object, key: group_key(number) });
                plan.learned.push((object, number, None));
                continue;
            }
            let value = group.value(object, number, it.key()?, &self.keys().nonce()?);
            it.growth += cost(value.len()) - before.map_or(0, |before| cost(before.stored_bytes()));
            plan.mutations.push(Mutation::SetAttribute { object, key: group_key(number), value });
            plan.learned.push((object, number, Some(Arc::new(MapPart::Group(Box::new(group))))));
        }
        Ok(())
    }
}

/// What lies between ranges.
fn gaps(ranges: &Ranges) -> Ranges {
    let mut gaps = Ranges::of(ranges.iter().next().map_or(0, |(start, _)| start), ranges.end());
    ranges.iter().for_each(|(start, end)| gaps.remove(start, end));
    gaps
}

/// Bytes of the attribute that lists these holes.
fn sealed_bytes(holes: &Ranges) -> usize {
    value_of(holes).len() + OVERHEAD_BYTES
}
