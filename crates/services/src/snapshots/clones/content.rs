//! What a transaction does to the content of an object of which a clone has a part.
//!
//! A version of the clone has data in whole blocks: a device may have no smaller ones and says of
//! all of one of which a part has data that it has. So a block of which a part is written is filled
//! with what was there. What is taken away is a hole of the version, told by an attribute where the
//! snapshot has content, and its size is that of the object.

use crate::life::Life;
use crate::plan::joined;
use crate::ranges::Ranges;
use crate::snapshots::clones::change::Subject;
use crate::snapshots::version::{Completeness, GRAIN_BYTES, Version};
use onode_base::planted::{Bug, is_planted};
use onode_object::{Mutation, ObjectDevice, Result};

impl Subject {
    /// The mutations of the version for all changes of content of its object; none but the size for
    /// a version that is just made.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn content<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        life: Option<Life<()>>,
    ) -> Result<Vec<Mutation>> {
        let object = self.id;
        let mut size = self.version.map_or(0, |version| version.size);
        let mut mutations = Vec::new();
        let Some(life) = life else {
            let below = self.below.as_ref().map_or(0, |below| below.size());
            if self.version.is_none() && below > 0 {
                mutations.push(Mutation::Truncate { object, size: below });
            }
            return Ok(mutations);
        };
        for (start, end) in life.cleared.within(0, size) {
            mutations.push(if end < size {
                Mutation::Punch { object, offset: start, length: end - start }
            } else {
                size = start;
                Mutation::Truncate { object, size }
            });
        }
        let writes = self.writes(device, &life)?;
        let own = self.own(device, life.size);
        mutations.extend(self.holes(device, &own, &life, &writes)?);
        for (offset, data) in joined(writes) {
            mutations.extend(self.told(device, &own, offset, data.len() as u64)?);
            size = size.max(offset + data.len() as u64);
            mutations.push(Mutation::Write { object, offset, data });
        }
        if size != life.size {
            mutations.push(Mutation::Truncate { object, size: life.size });
        }
        Ok(mutations)
    }

    /// What is written: whole blocks, or parts of those that the version has already.
    fn writes<D: ObjectDevice + ?Sized>(&self, device: &D, life: &Life<()>) -> Result<Vec<(u64, Vec<u8>)>> {
        let mut writes = Vec::new();
        let before = self.before();
        for (block, patch) in &life.patches {
            let (start, length) = (block * GRAIN_BYTES, life.end_in(*block));
            let had = life.size_before.saturating_sub(start).min(GRAIN_BYTES);
            if patch.fresh().covers(0, length) || self.has(device, start, start + had)? {
                let parts = patch.fresh().iter();
                writes.extend(parts.map(|(from, until)| (start + from, patch.get(from, until).to_vec())));
                continue;
            }
            let mut data = vec![0; GRAIN_BYTES as usize];
            if let Some(before) = before.as_ref().filter(|_| !is_planted(Bug::CloneBlockNotFilled)) {
                before.read(device, start, &mut data[..had as usize])?;
            }
            life.cleared_of(*block).iter().for_each(|(from, until)| data[from as usize..until as usize].fill(0));
            for (from, until) in patch.fresh().iter() {
                data[from as usize..until as usize].copy_from_slice(patch.get(from, until));
            }
            data.truncate(length as usize);
            writes.push((start, data));
        }
        Ok(writes)
    }

    /// The version, which may only be made.
    fn own<D: ObjectDevice + ?Sized>(&self, device: &D, size: u64) -> Version {
        let is_told = self.version.map_or_else(|| !device.extents_are_exact(), |version| version.is_told);
        Version { id: self.id, standing: Completeness::Part, size, is_told }
    }

    /// What says that the version has content in a range of which it may have some.
    fn told<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        own: &Version,
        offset: u64,
        length: u64,
    ) -> Result<Vec<Mutation>> {
        let mut mutations = Vec::new();
        let mut missing = Ranges::of(offset, offset + length);
        if let Some(version) = self.version.as_ref().filter(|version| version.is_told) {
            let data = version.data_in(device, offset, offset + length)?;
            data.iter().for_each(|(from, until)| missing.remove(from, until));
        }
        for (start, end) in missing.iter() {
            mutations.extend(own.with_data(device, start, end)?);
        }
        Ok(mutations)
    }

    /// Whether the version has all of a range that is not empty.
    fn has<D: ObjectDevice + ?Sized>(&self, device: &D, start: u64, end: u64) -> Result<bool> {
        match &self.version {
            Some(version) if start < end => Ok(version.data_in(device, start, end)?.covers(start, end)),
            _ => Ok(false),
        }
    }

    /// What says that there is a hole where the snapshot has content, or may have some.
    fn holes<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        own: &Version,
        life: &Life<()>,
        writes: &[(u64, Vec<u8>)],
    ) -> Result<Vec<Mutation>> {
        let below = self.below.as_ref().map_or(0, |below| below.size());
        let mut wanted = Ranges::default();
        life.cleared.within(0, below).for_each(|(start, end)| wanted.add(start, end));
        for (offset, data) in writes {
            wanted.remove(*offset, offset + data.len() as u64);
        }
        if is_planted(Bug::CloneHoleForgotten) {
            return Ok(Vec::new());
        }
        let mut mutations = Vec::new();
        for (start, end) in wanted.iter() {
            let mut missing = Ranges::of(start, end);
            if let Some(version) = &self.version {
                version.holes_in(device, start, end)?.iter().for_each(|(from, until)| missing.remove(from, until));
            }
            for (start, end) in missing.iter() {
                mutations.extend(own.with_hole(device, start, end)?);
            }
        }
        Ok(mutations)
    }
}
