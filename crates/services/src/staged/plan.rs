//! From what a view has changed to the steps that change the base.

use crate::ranges::Ranges;
use crate::staged::apply::cost;
use crate::staged::check::Merged;
use crate::staged::content::Content;
use crate::staged::record::{Copied, Step};
use crate::staged::shadow::{Shadow, Shadows, Standing};
use onode_object::{Demand, Hints, Mutation, ObjectDevice, ObjectId, Result};

/// The most bytes of one write.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// The steps.
#[derive(Debug, Default)]
pub(crate) struct StagedPlan {
    pub(crate) steps: Vec<Step>,
    /// What they take of a transaction.
    pub(crate) bytes: usize,
    pub(crate) has_copies: bool,
    /// Hidden objects that are seen from then on.
    pub(crate) shown: Vec<ObjectId>,
    /// Hidden objects that nobody needs any more then.
    pub(crate) unneeded: Vec<ObjectId>,
    /// What the device needs for it.
    demands: Vec<Demand>,
}

impl StagedPlan {
    /// What has to be done for the changes of a view; `merged` are attributes to be set to
    /// something else than the view says.
    pub(crate) fn of<D: ObjectDevice + ?Sized>(shadows: &Shadows, merged: &Merged, device: &D) -> Result<Self> {
        let mut plan = Self::default();
        for (object, shadow) in shadows {
            plan.object(*object, shadow, merged, device)?;
        }
        Ok(plan)
    }

    /// Has the device know that an object of that number was there: no other one is to get it.
    pub(crate) fn pass(&mut self, passed: Option<ObjectId>) {
        let made = |step: &Step| match step {
            Step::Change(Mutation::Create { object, .. }) => Some(*object),
            _ => None,
        };
        let known = self.steps.iter().filter_map(made).chain(self.shown.iter().copied()).max();
        let Some(object) = passed.filter(|_| passed > known) else { return };
        self.add(Mutation::Create { object, hints: Hints::default() });
        self.add(Mutation::Remove { object });
    }

    /// How much of the device's space it needs.
    pub(crate) fn needs<D: ObjectDevice + ?Sized>(&self, device: &D) -> u64 {
        self.demands.iter().map(|demand| device.space_for(demand)).sum()
    }

    /// The changes as they are, of a plan without copies.
    pub(crate) fn mutations(&self) -> Vec<Mutation> {
        let change = |step: &Step| match step {
            Step::Change(mutation) => Some(mutation.clone()),
            Step::Copy(_) => None,
        };
        self.steps.iter().filter_map(change).collect()
    }

    /// The changes alone, of a plan without copies.
    pub(crate) fn into_mutations(self) -> Vec<Mutation> {
        let change = |step| match step {
            Step::Change(mutation) => Some(mutation),
            Step::Copy(_) => None,
        };
        self.steps.into_iter().filter_map(change).collect()
    }

    fn add(&mut self, mutation: Mutation) {
        self.bytes += cost(&mutation);
        self.steps.push(Step::Change(mutation));
    }

    fn object<D: ObjectDevice + ?Sized>(
        &mut self,
        object: ObjectId,
        shadow: &Shadow,
        merged: &Merged,
        device: &D,
    ) -> Result<()> {
        if shadow.replaces {
            self.add(Mutation::Remove { object });
        }
        if shadow.standing == Standing::Gone {
            return Ok(());
        }
        let mut demand = Demand { entries: 1, is_new: true, ..Demand::default() };
        let is_own = shadow.content.as_ref().and_then(|content| content.hidden).is_some_and(|it| it.object == object);
        match (shadow.standing, shadow.hints) {
            (Standing::Made, hints) if !is_own => {
                self.add(Mutation::Create { object, hints: hints.unwrap_or_default() })
            }
            (_, Some(hints)) => self.add(Mutation::SetHints { object, hints }),
            (_, None) => {}
        }
        if let Some(content) = &shadow.content {
            let size = match shadow.standing {
                Standing::Changed => device.stat(object)?.size,
                Standing::Made if is_own => content.hidden.map_or(0, |hidden| hidden.size),
                Standing::Made | Standing::Gone => 0,
            };
            self.content(object, content, size, device, &mut demand)?;
        }
        for (key, value) in &shadow.attributes {
            let key = *key;
            match merged.get(&(object, key)).or(value.as_ref()) {
                Some(value) => {
                    (demand.entries, demand.entry_bytes) =
                        (demand.entries + 1, demand.entry_bytes + value.len() as u64);
                    self.add(Mutation::SetAttribute { object, key, value: value.clone() });
                }
                None => self.add(Mutation::RemoveAttribute { object, key }),
            }
        }
        if let Some(time) = shadow.accessed {
            self.add(Mutation::SetAccessTime { object, time });
        }
        self.demands.push(demand);
        Ok(())
    }

    /// What has to be done for content, of an object that has `size` bytes now.
    fn content<D: ObjectDevice + ?Sized>(
        &mut self,
        object: ObjectId,
        content: &Content,
        size: u64,
        device: &D,
        demand: &mut Demand,
    ) -> Result<()> {
        let hidden = content.hidden.map(|hidden| hidden.object);
        let is_own = hidden == Some(object);
        let mut end = size;
        if !is_own && content.base_end < end {
            end = content.base_end;
            self.add(Mutation::Truncate { object, size: end });
        }
        let mut copies = Ranges::default();
        match hidden {
            Some(_) if is_own => self.shown.push(object),
            Some(from) => {
                self.unneeded.push(from);
                copies = waiting(content, from, device)?;
            }
            None => {}
        }
        if !is_own {
            // What is said to be nothing, and is not past the end of what is there.
            let mut holes = Ranges::default();
            content.said.within(0, end).for_each(|(start, end)| holes.add(start, end));
            copies.iter().for_each(|(start, end)| holes.remove(start, end));
            content.pieces.iter().for_each(|(start, data)| holes.remove(start, start + data.len() as u64));
            for (start, end) in holes.iter() {
                self.add(Mutation::Punch { object, offset: start, length: end - start });
            }
        }
        let mut count = |offset: u64, length: u64| {
            demand.ranges += 1;
            demand.bytes += length;
            demand.blocks += (offset + length).div_ceil(Demand::BLOCK_BYTES) - offset / Demand::BLOCK_BYTES;
        };
        for (start, data) in content.pieces.iter() {
            count(start, data.len() as u64);
            for (part, offset) in data.chunks(WRITE_BYTES_MAX).zip((start..).step_by(WRITE_BYTES_MAX)) {
                self.add(Mutation::Write { object, offset, data: part.to_vec() });
            }
            end = end.max(start + data.len() as u64);
        }
        for (start, until) in copies.iter() {
            count(start, until - start);
            let copied = Copied { from: hidden.unwrap_or(object), to: object, offset: start, length: until - start };
            self.steps.push(Step::Copy(copied));
            self.has_copies = true;
            end = end.max(until);
        }
        if content.size != end {
            self.add(Mutation::Truncate { object, size: content.size });
        }
        (demand.object_bytes, demand.is_new) = (content.size.max(size), size == 0);
        Ok(())
    }
}

/// What waits in a hidden object and is not in memory anew.
fn waiting<D: ObjectDevice + ?Sized>(content: &Content, hidden: ObjectId, device: &D) -> Result<Ranges> {
    let mut found = Ranges::default();
    let mut from = 0;
    loop {
        let extents = device.extents(hidden, from, Content::extents_at_once())?;
        let Some((start, length)) = extents.last() else { break };
        from = start + length;
        for (start, length) in extents {
            content.said.within(start, start + length).for_each(|(start, end)| found.add(start, end));
        }
    }
    content.pieces.iter().for_each(|(start, data)| found.remove(start, start + data.len() as u64));
    Ok(found)
}
