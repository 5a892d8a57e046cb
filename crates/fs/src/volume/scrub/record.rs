//! What is kept of scrubs on the volume object: how the last one ended, and how far one has come
//! that is not at its end. One attribute has it; programs that do not know it leave it alone.
//!
//! It is no setting of the volume: if it is damaged or lost, the next scrub begins anew.

use onode_base::{Timestamp, varint};
use onode_object::{AttributeKey, AttributeKind, Transaction};

/// Where it is.
pub(crate) const KEY: AttributeKey = AttributeKey::new(AttributeKind::VOLUME, 1);
/// The form of it that this code writes and reads.
const FORM: u8 = 1;
/// Damaged ranges that are kept; more are only counted.
pub const DAMAGED_RANGES_MAX: usize = 64;

/// Bytes of a file that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DamagedRange {
    /// The number of the file, or of another object.
    pub object: u64,
    /// From the first byte on; the same as `end` if not content but what belongs to it is damaged.
    pub start: u64,
    /// Up to before this byte.
    pub end: u64,
}

/// What a scrub found, so far or in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubFindings {
    /// Objects verified.
    pub objects: u64,
    /// Bytes of content verified.
    pub bytes: u64,
    /// Groups of pages with parity verified.
    pub groups: u64,
    /// Pages that cannot be read and were found again from parity.
    pub rebuilt: u64,
    /// Pages that cannot be read and cannot be found again, in use or not.
    pub lost: u64,
    /// Groups whose parity was damaged or missing.
    pub unprotected: u64,
    /// Bytes that were damaged and written again from a good copy.
    pub repaired: u64,
    /// Bytes of content that background work moved meanwhile.
    pub moved: u64,
    /// Ranges that are damaged: the first [`DAMAGED_RANGES_MAX`].
    pub damaged: Vec<DamagedRange>,
    /// Ranges that are damaged and not among them.
    pub more_damaged: u64,
    /// Objects from the last range on could not be found at all: the index is damaged there.
    pub is_cut: bool,
}

/// What a scrub verifies now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScrubPhase {
    /// Groups of pages with parity.
    #[default]
    Groups,
    /// Objects with their content.
    Objects,
    /// Nothing any more: background work moves what has to be moved.
    Moving,
}

/// A scrub that is not at its end, with all it takes to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubPass {
    /// When it began.
    pub started: Timestamp,
    /// What it verifies now.
    pub phase: ScrubPhase,
    /// The next group.
    pub group: u64,
    /// The next object.
    pub object: u64,
    /// How far it is in that object, in the device's own count.
    pub offset: u64,
    /// Bytes it has verified, groups and content, for people who wait.
    pub done: u64,
    /// What it found.
    pub found: ScrubFindings,
}

/// A scrub that came to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FinishedScrub {
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// What it found.
    pub found: ScrubFindings,
}

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScrubRecord {
    /// The last scrub that came to its end.
    pub last: Option<FinishedScrub>,
    /// One that did not.
    pub pass: Option<ScrubPass>,
}

impl ScrubFindings {
    /// Whether something cannot be read.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        !self.damaged.is_empty() || self.is_cut
    }

    /// Counts a damaged range; neighbours are one.
    pub(crate) fn add_damage(&mut self, range: DamagedRange) {
        let has_room = self.damaged.len() < DAMAGED_RANGES_MAX;
        match self.damaged.last_mut() {
            Some(last) if last.object == range.object && last.end == range.start && range.start < range.end => {
                last.end = range.end;
            }
            Some(last) if *last == range => {}
            _ if has_room => self.damaged.push(range),
            _ => self.more_damaged += 1,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let counts = [self.objects, self.bytes, self.groups, self.rebuilt, self.lost, self.unprotected];
        counts.into_iter().for_each(|count| varint::put(out, count));
        let counts = [self.repaired, self.moved, self.more_damaged, u64::from(self.is_cut), self.damaged.len() as u64];
        counts.into_iter().for_each(|count| varint::put(out, count));
        for DamagedRange { object, start, end } in &self.damaged {
            varint::put(out, *object);
            varint::put(out, *start);
            varint::put(out, end - start);
        }
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let mut found = Self::default();
        let Self { objects, bytes, groups, rebuilt, lost, unprotected, repaired, moved, .. } = &mut found;
        for count in [objects, bytes, groups, rebuilt, lost, unprotected, repaired, moved] {
            *count = varint::take(input)?;
        }
        found.more_damaged = varint::take(input)?;
        found.is_cut = varint::take(input)? != 0;
        let ranges = usize::try_from(varint::take(input)?).ok().filter(|count| *count <= DAMAGED_RANGES_MAX)?;
        for _ in 0..ranges {
            let (object, start) = (varint::take(input)?, varint::take(input)?);
            let end = start.checked_add(varint::take(input)?)?;
            found.damaged.push(DamagedRange { object, start, end });
        }
        Some(found)
    }
}

impl ScrubPhase {
    /// All of them, in their order.
    pub const ALL: [Self; 3] = [Self::Groups, Self::Objects, Self::Moving];

    /// One word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Groups => "groups",
            Self::Objects => "objects",
            Self::Moving => "moving",
        }
    }
}

impl ScrubRecord {
    /// The record as an attribute holds it: ranges for which it has no room are only counted.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut record = self.clone();
        loop {
            let bytes = record.encode_all();
            let found = record.last.as_mut().map(|last| &mut last.found);
            let found = found.into_iter().chain(record.pass.as_mut().map(|pass| &mut pass.found));
            let longest = found.max_by_key(|found| found.damaged.len()).filter(|found| !found.damaged.is_empty());
            let Some(longest) = longest.filter(|_| bytes.len() > Transaction::MAX_ATTRIBUTE_BYTES) else {
                return bytes;
            };
            longest.damaged.pop();
            longest.more_damaged += 1;
        }
    }

    fn encode_all(&self) -> Vec<u8> {
        let mut out = vec![FORM, u8::from(self.last.is_some()), u8::from(self.pass.is_some())];
        if let Some(last) = &self.last {
            put_time(&mut out, last.started);
            put_time(&mut out, last.ended);
            last.found.encode(&mut out);
        }
        if let Some(pass) = &self.pass {
            put_time(&mut out, pass.started);
            let numbers = [pass.phase as u64, pass.group, pass.object, pass.offset, pass.done];
            numbers.into_iter().for_each(|number| varint::put(&mut out, number));
            pass.found.encode(&mut out);
        }
        out
    }

    /// What is kept; `None` if it is damaged or of another form.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[form, has_last, has_pass], mut rest) = bytes.split_first_chunk::<3>()?;
        if form != FORM || has_last > 1 || has_pass > 1 {
            return None;
        }
        let input = &mut rest;
        let mut record = Self::default();
        if has_last == 1 {
            let (started, ended) = (take_time(input)?, take_time(input)?);
            record.last = Some(FinishedScrub { started, ended, found: ScrubFindings::decode(input)? });
        }
        if has_pass == 1 {
            let mut pass = ScrubPass { started: take_time(input)?, ..ScrubPass::default() };
            pass.phase = *ScrubPhase::ALL.get(usize::try_from(varint::take(input)?).ok()?)?;
            let ScrubPass { group, object, offset, done, .. } = &mut pass;
            for number in [group, object, offset, done] {
                *number = varint::take(input)?;
            }
            pass.found = ScrubFindings::decode(input)?;
            record.pass = Some(pass);
        }
        input.is_empty().then_some(record)
    }
}

fn put_time(out: &mut Vec<u8>, time: Timestamp) {
    varint::put(out, time.seconds as u64);
}

fn take_time(input: &mut &[u8]) -> Option<Timestamp> {
    Some(Timestamp { seconds: varint::take(input)? as i64, nanoseconds: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> ScrubFindings {
        let mut found =
            ScrubFindings { objects: 7, bytes: 1 << 40, rebuilt: 3, moved: 300, ..ScrubFindings::default() };
        for (object, start, end) in [(64, 0, 4096), (64, 4096, 8192), (65, 0, 0), (65, 0, 0), (66, 4096, 4097)] {
            found.add_damage(DamagedRange { object, start, end });
        }
        found
    }

    #[test]
    fn what_is_kept_comes_back_and_cuts_are_refused() {
        let time = |seconds| Timestamp { seconds, nanoseconds: 0 };
        let last = FinishedScrub { started: time(-5), ended: time(9), found: found() };
        let pass =
            ScrubPass { started: time(11), phase: ScrubPhase::Moving, object: 77, offset: 5, ..ScrubPass::default() };
        for record in [
            ScrubRecord::default(),
            ScrubRecord { last: Some(last.clone()), pass: None },
            ScrubRecord { last: None, pass: Some(pass.clone()) },
            ScrubRecord { last: Some(last), pass: Some(pass) },
        ] {
            let bytes = record.encode();
            assert_eq!(ScrubRecord::decode(&bytes), Some(record));
            for length in 0..bytes.len() {
                assert_eq!(ScrubRecord::decode(&bytes[..length]), None);
            }
            assert_eq!(ScrubRecord::decode(&[&[2], &bytes[1..]].concat()), None, "of a later form");
        }
    }

    #[test]
    fn a_record_fits_its_attribute_however_much_is_damaged() {
        let mut found = ScrubFindings::default();
        for object in 0..64 {
            let start = (1 << 40) + object;
            found.add_damage(DamagedRange { object: (1 << 30) + 2 * object, start, end: start + (1 << 33) });
        }
        let last = FinishedScrub { found: found.clone(), ..FinishedScrub::default() };
        let pass = ScrubPass { found, ..ScrubPass::default() };
        let bytes = ScrubRecord { last: Some(last), pass: Some(pass) }.encode();
        assert!(bytes.len() <= Transaction::MAX_ATTRIBUTE_BYTES, "{} bytes", bytes.len());
        let kept = ScrubRecord::decode(&bytes).unwrap().last.unwrap().found;
        assert_eq!(kept.damaged.len() as u64 + kept.more_damaged, 64);
        assert!(!kept.damaged.is_empty());
    }

    #[test]
    fn neighbours_are_one_range_and_the_list_ends() {
        let mut found = found();
        let ranges: Vec<_> = found.damaged.iter().map(|range| (range.object, range.start, range.end)).collect();
        assert_eq!(ranges, [(64, 0, 8192), (65, 0, 0), (66, 4096, 4097)]);
        for object in 100..200 {
            found.add_damage(DamagedRange { object, start: 0, end: 1 });
        }
        assert_eq!((found.damaged.len(), found.more_damaged), (DAMAGED_RANGES_MAX, 39));
        assert!(found.is_damaged() && !ScrubFindings::default().is_damaged());
    }
}
