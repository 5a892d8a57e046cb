//! The mutations that one object's changes of content are to the wrapped device: what goes, what
//! comes, the size, and the attributes that say which chunks are compressed.
//!
//! What goes is emitted before what comes, so old bytes cannot return and new ones stay. A
//! compressed chunk of which only a part goes keeps its frame: the attributes say what of it
//! counts, so cutting an object never needs space (N7). An attribute that has to grow for it is
//! paid for by punches of nothing, each of which gives the transaction its 16 bytes.

use crate::compressed::Compressed;
use crate::compressed::map::{
    CHUNK_BYTES, Entry, GROUP_CHUNKS, Group, INLINE, group_key, group_of, hole_lists, holes_key,
};
use crate::compressed::policy::Wish;
use crate::compressed::translate::image::Outcome;
use crate::life::Life;
use crate::plan::{Plan, cost, empty_punches, joined, punches_for};
use crate::ranges::Ranges;
use onode_object::{AttributeKey, AttributeKind, Mutation, ObjectDevice, ObjectId, Result};
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::sync::Arc;

/// Attributes that one call asks for.
const FETCHED: usize = 64;

/// The changes of one object as they come together.
struct Settling {
    object: ObjectId,
    /// Groups that were looked at: as they were, if they were there, and as they will be.
    groups: BTreeMap<u64, (Option<Group>, Group)>,
    /// What goes of what the wrapped object has.
    going: Ranges,
    /// What comes.
    coming: Vec<(u64, Vec<u8>)>,
    /// Chunks that nothing is left of in the wrapped object but what comes.
    replaced: BTreeSet<u64>,
    /// Attributes that list holes, and the one that holds a small object.
    others: Vec<Mutation>,
    /// Bytes that these grow by.
    growth: i64,
    has_frames: bool,
}

impl Settling {
    /// Sets an attribute, or removes it, whose value was `before`.
    fn set(&mut self, key: AttributeKey, before: Option<&[u8]>, after: Option<Vec<u8>>) {
        if before == after.as_deref() {
            return;
        }
        let object = self.object;
        self.growth +=
            after.as_ref().map_or(0, |value| cost(value.len())) - before.map_or(0, |value| cost(value.len()));
        self.others.push(match after {
            Some(value) => Mutation::SetAttribute { object, key, value },
            None => Mutation::RemoveAttribute { object, key },
        });
    }
}

impl<D: ObjectDevice + ?Sized> Compressed<D> {
    /// Adds what the changes of an object's content are to a plan.
    pub(crate) fn settle(&self, life: Life<Wish>, plan: &mut Plan<Group>) -> Result<()> {
        let mut it = Settling {
            object: life.object,
            groups: BTreeMap::new(),
            going: life.cleared.clone(),
            coming: Vec::new(),
            replaced: BTreeSet::new(),
            others: Vec::new(),
            growth: 0,
            has_frames: false,
        };
        let head = if life.is_new { None } else { self.group(life.object, 0)? };
        self.settle_patches(&life, &mut it)?;
        if head.is_none() && !it.has_frames {
            plan.mutations.extend(life.into_mutations());
            return Ok(());
        }
        if head.is_some() {
            self.settle_cleared(&life, &mut it)?;
        }
        let hidden_before = head.as_ref().map_or(0, |head| head.hidden());
        self.emit(&life, it, hidden_before, plan)
    }

    /// The group of a chunk, to be changed.
    fn changing<'a>(&self, it: &'a mut Settling, life: &Life<Wish>, chunk: u64) -> Result<&'a mut Group> {
        let number = chunk / GROUP_CHUNKS;
        let pair = match it.groups.entry(number) {
            btree_map::Entry::Occupied(pair) => pair.into_mut(),
            btree_map::Entry::Vacant(place) => {
                let known = if life.is_new { None } else { self.group(life.object, number)? };
                let before = known.map(|group| (*group).clone());
                let group = before.clone().unwrap_or_default();
                place.insert((before, group))
            }
        };
        Ok(&mut pair.1)
    }

    fn entry_before(&self, life: &Life<Wish>, chunk: u64) -> Result<Entry> {
        if life.is_new { Ok(Entry::PLAIN) } else { self.entry(life.object, chunk) }
    }

    /// Chunks with new bytes.
    fn settle_patches(&self, life: &Life<Wish>, it: &mut Settling) -> Result<()> {
        let mut is_tried = !life.wish.tries_first || self.entry_before(life, 0)?.is_compressed();
        for (&chunk, patch) in &life.patches {
            let entry = self.entry_before(life, chunk)?;
            let outcome = self.outcome(life, chunk, patch, entry, is_tried || chunk == 0)?;
            let base = chunk * CHUNK_BYTES;
            let mut inline = None;
            let mut after = Entry::PLAIN;
            match outcome {
                Outcome::Frame(frame) => {
                    it.coming.push((base, frame));
                    it.has_frames = true;
                    after = Entry::frame(life.end_in(chunk));
                }
                Outcome::Inline(bytes) => {
                    after = Entry::inline(bytes.len() as u64);
                    inline = Some(bytes);
                }
                Outcome::Plain(pieces) | Outcome::Over(pieces) => {
                    it.coming.extend(pieces.into_iter().map(|(at, bytes)| (base + at, bytes)));
                }
            }
            if life.wish.tries_first && chunk == 0 {
                is_tried = after.is_compressed();
            }
            if entry.is_compressed() || after.is_compressed() {
                self.forget_lists(it, chunk, entry)?;
                self.set_inline(it, entry, inline)?;
                self.replace(life, it, chunk, after)?;
            }
        }
        Ok(())
    }

    /// A chunk that was as `before` says has no holes any more.
    fn forget_lists(&self, it: &mut Settling, chunk: u64, before: Entry) -> Result<()> {
        if before.has_holes() {
            for (part, value) in self.hole_lists(it.object, chunk)? {
                it.set(holes_key(chunk, part), Some(&value), None);
            }
        }
        Ok(())
    }

    /// What the attribute holds of a chunk that was as `before` says.
    fn set_inline(&self, it: &mut Settling, before: Entry, after: Option<Vec<u8>>) -> Result<()> {
        let stored = if before.is_inline() { self.inner().attribute(it.object, INLINE)? } else { None };
        it.set(INLINE, stored.as_deref(), after);
        Ok(())
    }

    /// Nothing is left of a chunk as it was before.
    fn forget(&self, life: &Life<Wish>, it: &mut Settling, chunk: u64, before: Entry) -> Result<()> {
        self.forget_lists(it, chunk, before)?;
        self.set_inline(it, before, None)?;
        self.replace(life, it, chunk, Entry::PLAIN)
    }

    /// Nothing is left of a chunk but what comes.
    fn replace(&self, life: &Life<Wish>, it: &mut Settling, chunk: u64, after: Entry) -> Result<()> {
        it.replaced.insert(chunk);
        it.going.add(chunk * CHUNK_BYTES, (chunk + 1) * CHUNK_BYTES);
        self.changing(it, life, chunk)?.set(chunk, after);
        Ok(())
    }

    /// Compressed chunks without new bytes of which something goes.
    fn settle_cleared(&self, life: &Life<Wish>, it: &mut Settling) -> Result<()> {
        let mut parts = BTreeSet::new();
        for (start, end) in life.cleared.iter() {
            let whole = start.div_ceil(CHUNK_BYTES)..end / CHUNK_BYTES;
            if start % CHUNK_BYTES != 0 {
                parts.insert(start / CHUNK_BYTES);
            }
            if end != u64::MAX && end % CHUNK_BYTES != 0 {
                parts.insert(end / CHUNK_BYTES);
            }
            let mut from = whole.start / GROUP_CHUNKS;
            while let Some((number, group)) = self.next_group(life.object, from)? {
                if number * GROUP_CHUNKS >= whole.end {
                    break;
                }
                for (at, entry) in group.compressed() {
                    let chunk = number * GROUP_CHUNKS + at;
                    if whole.contains(&chunk) && !life.patches.contains_key(&chunk) {
                        self.forget(life, it, chunk, entry)?;
                    }
                }
                from = number + 1;
            }
        }
        for chunk in parts {
            if !life.patches.contains_key(&chunk) {
                self.settle_part(life, it, chunk)?;
            }
        }
        Ok(())
    }

    /// The first group at or after a number that an object has.
    fn next_group(&self, object: ObjectId, from: u64) -> Result<Option<(u64, Group)>> {
        let found = self.inner().attributes(object, group_key(from), 1)?;
        let Some((key, value)) = found.into_iter().next() else { return Ok(None) };
        match group_of(key) {
            Some(number) => Ok(Some((number, self.parse(object, number, &value)?))),
            None => Ok(None),
        }
    }

    /// A chunk without new bytes of which a part goes.
    fn settle_part(&self, life: &Life<Wish>, it: &mut Settling, chunk: u64) -> Result<()> {
        let entry = self.entry_before(life, chunk)?;
        if !entry.is_compressed() {
            return Ok(());
        }
        let mut holes = self.holes(life.object, chunk, entry)?;
        let listed = hole_lists(&holes);
        life.cleared_of(chunk).within(0, entry.valid()).for_each(|(start, end)| holes.add(start, end));
        let mut valid = entry.valid();
        if holes.end() >= valid {
            valid = holes.iter().last().map_or(valid, |(start, _)| start);
            holes.remove(valid, CHUNK_BYTES);
        }
        if valid == 0 {
            return self.forget(life, it, chunk, entry);
        }
        let mut lists = hole_lists(&holes);
        for (part, before) in listed {
            it.set(holes_key(chunk, part), Some(&before), lists.remove(&part));
        }
        for (part, list) in lists {
            it.set(holes_key(chunk, part), None, Some(list));
        }
        it.going.remove(chunk * CHUNK_BYTES, (chunk + 1) * CHUNK_BYTES);
        let after = entry.cut(valid, !holes.is_empty());
        self.changing(it, life, chunk)?.set(chunk, after);
        Ok(())
    }

    /// Puts everything in order.
    fn emit(&self, life: &Life<Wish>, mut it: Settling, hidden_before: u64, plan: &mut Plan<Group>) -> Result<()> {
        let (object, first) = (life.object, plan.mutations.len());
        let size_before = if life.is_new { 0 } else { life.size_before + hidden_before };
        let mut size = size_before;
        let mut cuts = 0;
        for (start, end) in it.going.iter().filter(|(start, _)| *start < size_before) {
            cuts += 1;
            plan.mutations.push(if end == u64::MAX {
                size = start;
                Mutation::Truncate { object, size }
            } else {
                Mutation::Punch { object, offset: start, length: end - start }
            });
        }
        let writes = joined(std::mem::take(&mut it.coming));
        let only_cuts = writes.is_empty();
        for (offset, data) in writes {
            size = size.max(offset + data.len() as u64);
            plan.mutations.push(Mutation::Write { object, offset, data });
        }
        let stored_size = self.stored_size(life, &mut it, size_before)?;
        if stored_size != size {
            cuts += 1;
            plan.mutations.push(Mutation::Truncate { object, size: stored_size });
        }
        let (set, removed, growth) = self.emit_groups(life, &mut it, stored_size - life.size, plan)?;
        // As the kind of these attributes has it: there while content is written.
        plan.mutations.splice(first..first, set);
        plan.mutations.extend(removed);
        plan.mutations.append(&mut it.others);
        if only_cuts {
            let wanted = life.cuts + punches_for(growth + it.growth);
            plan.mutations.extend(empty_punches(object, wanted.saturating_sub(cuts)));
        }
        plan.alone.insert(object);
        Ok(())
    }

    /// How large the wrapped object has to be: as large as the object, but the last chunk's frame
    /// must not be cut.
    fn stored_size(&self, life: &Life<Wish>, it: &mut Settling, size_before: u64) -> Result<u64> {
        let last = life.size / CHUNK_BYTES;
        if life.is_new || life.size.is_multiple_of(CHUNK_BYTES) || it.replaced.contains(&last) {
            return Ok(life.size);
        }
        let entry = self.changing(it, life, last)?.entry(last);
        let keeps_frame = entry.is_compressed() && !entry.is_inline();
        let end = (last + 1) * CHUNK_BYTES;
        Ok(if keeps_frame { life.size.max(end.min(size_before)) } else { life.size })
    }

    /// The attributes of the groups that change: what sets some, what removes others, and by how
    /// much they grow.
    fn emit_groups(&self, life: &Life<Wish>, it: &mut Settling, hidden: u64, plan: &mut Plan<Group>) -> Result<Groups> {
        self.changing(it, life, 0)?.set_hidden(hidden);
        let is_any = it.groups.values().any(|(_, group)| !group.is_empty()) || self.has_other_groups(life, it)?;
        let (object, mut set, mut removed, mut growth) = (life.object, Vec::new(), Vec::new(), 0);
        for (number, (before, group)) in std::mem::take(&mut it.groups) {
            let is_needed = if number == 0 { is_any } else { !group.is_empty() };
            if before.as_ref() == Some(&group) && is_needed || before.is_none() && !is_needed {
                continue;
            }
            let key = group_key(number);
            growth -= before.map_or(0, |before| cost(before.value(number).len()));
            if is_needed {
                let value = group.value(number);
                growth += cost(value.len());
                set.push(Mutation::SetAttribute { object, key, value });
            } else {
                removed.push(Mutation::RemoveAttribute { object, key });
            }
            plan.learned.push((object, number, is_needed.then(|| Arc::new(group))));
        }
        Ok((set, removed, growth))
    }

    /// Whether an object has groups beside those that were looked at.
    fn has_other_groups(&self, life: &Life<Wish>, it: &Settling) -> Result<bool> {
        let mut from = Some(group_key(0)).filter(|_| !life.is_new);
        while let Some(start) = from {
            let some = self.inner().attributes(life.object, start, FETCHED)?;
            let mut groups = some.iter().map_while(|(key, _)| group_of(*key));
            if groups.any(|number| !it.groups.contains_key(&number)) {
                return Ok(true);
            }
            let is_service = |key: &AttributeKey| key.kind == AttributeKind::SERVICE;
            from = some.last().map(|(key, _)| *key).filter(is_service).and_then(AttributeKey::next);
        }
        Ok(false)
    }
}

/// Mutations that set attributes of groups, those that remove some, and by how much all grow.
type Groups = (Vec<Mutation>, Vec<Mutation>, i64);
