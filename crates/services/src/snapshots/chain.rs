//! One object as a snapshot or a clone has it: a chain of versions, of which the first that says
//! something is right, and behind them the object itself.

use crate::ranges::Ranges;
use crate::snapshots::merge::Merge;
use crate::snapshots::version::{Version, data_of};
use onode_object::{AttributeKey, ObjectDevice, ObjectId, ObjectStat, Result};

/// Content whose places are looked up at once.
const WINDOW_BYTES: u64 = 4 << 20;

/// The chain of an object.
pub(super) struct VersionChain {
    pub(super) object: ObjectId,
    pub(super) versions: Vec<Version>,
    /// What is in no version is in the object itself, which has this size.
    pub(super) live_size: Option<u64>,
}

impl VersionChain {
    /// The size of the object.
    pub(super) fn size(&self) -> u64 {
        self.versions.first().map_or(self.live_size.unwrap_or(0), |first| first.size)
    }

    fn live(&self) -> Option<ObjectId> {
        self.live_size.map(|_| self.object)
    }

    /// Reads content as [`ObjectDevice::read`] does.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn read<D: ObjectDevice + ?Sized>(&self, device: &D, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let count = (buffer.len() as u64).min(self.size().saturating_sub(offset));
        let buffer = &mut buffer[..count as usize];
        if self.versions.is_empty() {
            return device.read(self.object, offset, buffer);
        }
        buffer.fill(0);
        for (id, ranges) in self.places(device, offset, offset + count)? {
            for (from, until) in ranges.iter() {
                let part = &mut buffer[(from - offset) as usize..(until - offset) as usize];
                device.read(id, from, part)?;
            }
        }
        Ok(count as usize)
    }

    /// The value of an attribute.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn attribute<D: ObjectDevice + ?Sized>(&self, device: &D, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        for version in &self.versions {
            if let Some(kept) = version.attribute(device, key)? {
                return Ok(kept);
            }
        }
        self.live().map_or(Ok(None), |object| device.attribute(object, key))
    }

    /// Attributes from a key on.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn attributes<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        from: AttributeKey,
        limit: usize,
    ) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        Merge::new(device, &self.versions, self.live(), from).take(limit)
    }

    /// Size and settings.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn stat<D: ObjectDevice + ?Sized>(&self, device: &D) -> Result<ObjectStat> {
        let Some(first) = self.versions.first() else { return device.stat(self.object) };
        let stat = device.stat(first.id)?;
        let mut allocated = stat.allocated;
        for id in self.versions.iter().skip(1).map(|one| one.id).chain(self.live()) {
            allocated += device.stat(id)?.allocated;
        }
        // Later content may lie in what was a hole then, or behind the end.
        Ok(ObjectStat { size: first.size, allocated: allocated.min(first.size), ..stat })
    }

    /// Ranges with data, as [`ObjectDevice::extents`] tells them.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn extents<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>> {
        if self.versions.is_empty() {
            return device.extents(self.object, offset, limit);
        }
        let mut all = Ranges::default();
        let mut at = offset;
        while all.count() < limit
            && let Some(start) = self.next_data(device, at)?
        {
            at = (start + WINDOW_BYTES).min(self.size());
            for (_, ranges) in self.places(device, start, at)? {
                ranges.iter().for_each(|(from, until)| all.add(from, until));
            }
        }
        Ok(all.iter().take(limit).map(|(from, until)| (from, until - from)).collect())
    }

    /// Where the content in a range lies, by objects, as far as there is any.
    fn places<D: ObjectDevice + ?Sized>(&self, device: &D, start: u64, end: u64) -> Result<Vec<(ObjectId, Ranges)>> {
        let mut left = Ranges::of(start, end);
        let mut places = Vec::new();
        for version in &self.versions {
            // What lay behind the end of a version was gone when it was made.
            left.remove(version.size, u64::MAX);
            if left.is_empty() {
                return Ok(places);
            }
            let covered = version.covers(device, start, left.end())?;
            let mut found = Ranges::default();
            for (from, until) in covered.data.iter() {
                left.within(from, until).for_each(|(from, until)| found.add(from, until));
            }
            covered.leave_out(&mut left);
            places.push((version.id, found));
        }
        if let Some(size) = self.live_size {
            left.remove(size, u64::MAX);
            let data =
                if left.is_empty() { Ranges::default() } else { data_of(device, self.object, start, left.end())? };
            let mut found = Ranges::default();
            for (from, until) in data.iter() {
                left.within(from, until).for_each(|(from, until)| found.add(from, until));
            }
            places.push((self.object, found));
        }
        Ok(places)
    }

    /// Where the next content may begin, at or after `from`; `None` if there is none.
    fn next_data<D: ObjectDevice + ?Sized>(&self, device: &D, from: u64) -> Result<Option<u64>> {
        let mut next = None;
        for id in self.versions.iter().map(|version| version.id).chain(self.live()) {
            if let Some((start, _)) = device.extents(id, from, 1)?.first() {
                let start = (*start).max(from);
                next = Some(next.map_or(start, |next: u64| next.min(start)));
            }
        }
        Ok(next.filter(|next| *next < self.size()))
    }
}
