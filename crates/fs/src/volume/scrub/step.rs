//! One step of a scrub: verifies some groups or objects of the device, or lets it move what has to
//! be moved. It knows the device and no file; whoever holds the pass decides when and how much.

use crate::volume::scrub::record::{DamagedRange, ScrubFindings, ScrubPass, ScrubPhase};
use onode_base::ErrorKind;
use onode_object::powers::{Scrub, ScrubPart, ScrubReport};
use onode_object::{AttributeKey, AttributeKind, Error, ObjectDevice, ObjectId, Result};

/// Objects that are looked at for one step.
const OBJECTS_AT_ONCE: usize = 64;
/// Of those that are in no list nobody knows the size before they are read.
const HIDDEN_AT_ONCE: usize = 16;
const GROUPS_AT_ONCE: u64 = 4096;
const ATTRIBUTES_AT_ONCE: usize = 64;
const EXTENTS_AT_ONCE: usize = 16;
/// Content that is read with one call, where reading verifies.
const READ_BYTES: u64 = 256 << 10;
/// Units of background work in one step.
const MOVES: u32 = 4;
/// What a step over objects without content counts as: they are read, too.
const OBJECT_BYTES: u64 = 512;

/// A device that is verified.
pub(crate) struct Scrubbed<'a> {
    pub device: &'a dyn ObjectDevice,
    pub power: &'a dyn Scrub,
    /// Nothing may be moved.
    pub is_read_only: bool,
}

impl Scrubbed<'_> {
    /// Bytes that a whole pass verifies, about.
    ///
    /// # Errors
    /// The device's errors.
    pub(crate) fn total(&self) -> Result<u64> {
        let space = self.device.space();
        let used = space.total.saturating_sub(space.available);
        let has_groups = self.power.scrub_groups(0, 0)?.all > 0;
        Ok(used * if has_groups { 2 } else { 1 })
    }

    /// Goes on by about `budget` bytes; true at the end of the pass.
    ///
    /// # Errors
    /// Only if the scrub cannot go on; what is damaged is found.
    pub(crate) fn advance(&self, pass: &mut ScrubPass, budget: u64) -> Result<bool> {
        match pass.phase {
            ScrubPhase::Groups => self.groups(pass, budget)?,
            ScrubPhase::Objects => self.objects(pass, budget)?,
            ScrubPhase::Moving => return self.moves(),
        }
        Ok(false)
    }

    /// Groups come first: once their pages were moved they would look as if nothing had been wrong.
    fn groups(&self, pass: &mut ScrubPass, budget: u64) -> Result<()> {
        let all = self.power.scrub_groups(0, 0)?.all;
        if pass.group >= all {
            pass.phase = ScrubPhase::Objects;
            return Ok(());
        }
        let space = self.device.space();
        // Groups that hold nothing cost nothing, so those that do are larger than they count.
        let (group, counted) = (space.total / all, space.total.saturating_sub(space.available) / all);
        let limit = (budget / group.max(1)).clamp(1, GROUPS_AT_ONCE) as u32;
        let step = self.power.scrub_groups(pass.group, limit)?;
        let found = &mut pass.found;
        found.groups += step.groups;
        found.rebuilt += step.rebuilt;
        found.lost += step.lost;
        found.unprotected += step.unprotected;
        pass.done += step.groups * counted;
        match step.next {
            Some(next) => pass.group = next,
            None => (pass.group, pass.phase) = (all, ScrubPhase::Objects),
        }
        Ok(())
    }

    fn objects(&self, pass: &mut ScrubPass, budget: u64) -> Result<()> {
        let step = self.objects_step(pass, budget);
        match step {
            // Behind a damaged node of the index nothing is found.
            Err(error) if error.kind == ErrorKind::Corrupt => {
                pass.found.add_damage(damaged_range(&error, pass.object));
                (pass.found.is_cut, pass.phase) = (true, ScrubPhase::Moving);
                Ok(())
            }
            other => other,
        }
    }

    fn objects_step(&self, pass: &mut ScrubPass, budget: u64) -> Result<()> {
        let listed = self.device.list(ObjectId(pass.object), OBJECTS_AT_ONCE)?;
        let Some(first) = listed.first().copied() else { return self.behind(pass) };
        if first.0 != pass.object {
            (pass.object, pass.offset) = (first.0, 0);
        }
        // What cannot be told is small enough: the device says what is damaged.
        let size = |object: ObjectId| self.device.stat(object).map_or(0, |stat| stat.allocated);
        if pass.offset > 0 || size(first) > budget {
            return self.part(pass, budget);
        }
        let mut bytes = 0;
        let fitting = listed.iter().take_while(|object| {
            bytes += size(**object) + OBJECT_BYTES;
            bytes <= budget
        });
        let limit = fitting.count().max(1);
        self.verify(pass, first, limit)
    }

    /// Objects that are in no list and come behind all that are: what snapshots keep.
    fn behind(&self, pass: &mut ScrubPass) -> Result<()> {
        self.verify(pass, ObjectId(pass.object), HIDDEN_AT_ONCE)
    }

    /// Whole objects from `first` on.
    fn verify(&self, pass: &mut ScrubPass, first: ObjectId, limit: usize) -> Result<()> {
        let report = self.power.scrub(first, limit)?;
        take_report(pass, &report);
        pass.done += report.objects * OBJECT_BYTES;
        match report.next {
            Some(next) => (pass.object, pass.offset) = (next.0, 0),
            None => pass.phase = ScrubPhase::Moving,
        }
        Ok(())
    }

    /// A part of an object that is too large for one step.
    fn part(&self, pass: &mut ScrubPass, budget: u64) -> Result<()> {
        let object = ObjectId(pass.object);
        let part = match self.power.scrub_part(object, pass.offset, budget) {
            Ok(None) => self.read(object, pass.offset, budget),
            Ok(Some(part)) => Ok(part),
            Err(error) => Err(error),
        };
        let ScrubPart { found, next } = match part {
            // It was removed meanwhile.
            Err(error) if error.kind == ErrorKind::NotFound => ScrubPart::default(),
            part => part?,
        };
        take_report(pass, &found);
        match next {
            Some(next) => pass.offset = next,
            None => (pass.object, pass.offset) = (pass.object.saturating_add(1), 0),
        }
        Ok(())
    }

    /// The same where a plain read verifies. What the device still has in memory of what was read
    /// lately was verified then.
    fn read(&self, object: ObjectId, from: u64, budget: u64) -> Result<ScrubPart> {
        let mut part = ScrubPart::default();
        let mut buffer = vec![0; READ_BYTES.min(budget.max(1)) as usize];
        let end = from.saturating_add(budget.max(1));
        let mut at = from;
        let mut sound: Option<u64> = None;
        loop {
            let extents = match self.device.extents(object, at, EXTENTS_AT_ONCE) {
                Err(error) if error.kind == ErrorKind::Corrupt => {
                    part.found.damaged.push(error.about(object));
                    break;
                }
                extents => extents?,
            };
            if extents.is_empty() {
                break;
            }
            for (start, length) in extents {
                let behind = start.saturating_add(length);
                at = at.max(start);
                while at < behind {
                    if at >= end {
                        part.next = Some(at);
                        return Ok(part);
                    }
                    let piece = (sound.unwrap_or(behind).min(behind) - at).min(buffer.len() as u64);
                    let Some(bytes) = buffer.get_mut(..piece as usize) else { break };
                    match self.device.read(object, at, bytes) {
                        Ok(0) => (at, sound) = (behind, None),
                        Ok(read) => {
                            part.found.bytes += read as u64;
                            at += read as u64;
                            sound = sound.filter(|sound| at < *sound);
                        }
                        Err(error) if error.kind == ErrorKind::Corrupt => {
                            let range = error.range.clone().unwrap_or(at..at + piece);
                            // What lies before it is read for itself: it may be damaged, too.
                            if at < range.start && range.start < at + piece {
                                sound = Some(range.start);
                                continue;
                            }
                            part.found.damaged.push(error.about(object));
                            (at, sound) = (range.end.max(at + 1), None);
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        self.read_attributes(object, &mut part.found)?;
        part.found.objects = 1;
        Ok(part)
    }

    fn read_attributes(&self, object: ObjectId, found: &mut ScrubReport) -> Result<()> {
        let mut from = Some(AttributeKey::new(AttributeKind(0), 0));
        while let Some(key) = from {
            match self.device.attributes(object, key, ATTRIBUTES_AT_ONCE) {
                Ok(batch) => from = batch.last().and_then(|(key, _)| key.next()),
                Err(error) if error.kind == ErrorKind::Corrupt => {
                    found.damaged.push(error.about(object));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Background work, as long as there is some; true when there is none.
    fn moves(&self) -> Result<bool> {
        if self.is_read_only {
            return Ok(true);
        }
        Ok(!self.device.maintain(MOVES)?.more)
    }

    /// Bytes of content that were ever moved.
    pub(crate) fn moved(&self) -> u64 {
        let counters = self.device.inspect().map(|inspect| inspect.counters()).unwrap_or_default();
        counters.iter().find(|(name, _)| name == "bytes_moved").map_or(0, |(_, value)| *value)
    }
}

fn take_report(pass: &mut ScrubPass, report: &ScrubReport) {
    let found = &mut pass.found;
    found.objects += report.objects;
    found.bytes += report.bytes;
    found.repaired += report.repaired;
    pass.done += report.bytes;
    for error in &report.damaged {
        found.add_damage(damaged_range(error, pass.object));
    }
}

/// What an error says is damaged.
fn damaged_range(error: &Error, object: u64) -> DamagedRange {
    let object = error.object.map_or(object, |object| object.0);
    let (start, end) = error.range.as_ref().map_or((0, 0), |range| (range.start, range.end.max(range.start)));
    DamagedRange { object, start, end }
}

/// The findings of a pass with the objects of inodes as the files that they are of.
pub(crate) fn as_files(found: &mut ScrubFindings, file_of: impl Fn(ObjectId) -> Option<ObjectId>) {
    for range in &mut found.damaged {
        let object = Some(ObjectId(range.object)).filter(|object| !object.is_version());
        if let Some(file) = object.and_then(&file_of) {
            *range = DamagedRange { object: file.0, start: 0, end: 0 };
        }
    }
}
