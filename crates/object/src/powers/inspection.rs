//! What a look inside a device shows, as values: the segment map and the counters of one moment.
//!
//! Nothing here refers to the device, so a view can keep it, send it elsewhere or compare it with
//! an earlier one. Names of streams and tags are the device's own; a view shows them and does not
//! need to know them.

use alloc::string::String;
use alloc::vec::Vec;

/// Everything that a device tells about its inside at one moment. A device without segments or
/// without pages leaves those parts empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The segments or other allocation units, in address order.
    pub segments: Vec<SegmentInfo>,
    /// Whether segments are erased before they are written again, and wear out by it.
    pub wears: bool,
    /// Operations on the medium since the device was opened, by what they were for.
    pub tags: Vec<TagCounts>,
    /// Time that the medium has spent, if it keeps a virtual time.
    pub virtual_nanoseconds: u64,
    /// Bytes of content that users wrote.
    pub bytes_written: u64,
    /// Bytes of content that the cleaner moved.
    pub bytes_moved: u64,
    /// Segments that the cleaner emptied.
    pub segments_cleaned: u64,
    /// Memory that the device holds, by part.
    pub ram: Vec<(String, u64)>,
    /// The objects that cost the most programs since the device was opened, the costliest first; a
    /// device that keeps no such count leaves it empty.
    pub costliest: Vec<ObjectPrograms>,
    /// The policies that the device works by: what each decides, and its name.
    pub policies: Vec<(String, String)>,
}

/// Erases of the sound segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WearSpread {
    /// Of the least erased one.
    pub min: u32,
    /// On average.
    pub mean: f64,
    /// Of the most erased one.
    pub max: u32,
}

/// Pages programmed for one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectPrograms {
    /// The object's id.
    pub object: u64,
    /// Pages that its content and attributes filled, moves by the cleaner included.
    pub pages: u64,
    /// By so many at most `pages` may be too high: a device need not count every object exactly.
    pub over: u64,
}

/// Operations on the medium for one purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagCounts {
    /// The purpose: `data`, `journal`, `index`, `cleaning`, ...
    pub tag: String,
    /// Page reads.
    pub reads: u64,
    /// Page programs.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
    /// Bytes of the pages read.
    pub bytes_read: u64,
    /// Bytes of the pages programmed.
    pub bytes_programmed: u64,
}

/// One segment or other allocation unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its number.
    pub segment: u32,
    /// What it is used for.
    pub state: SegmentState,
    /// What it holds: `journal`, `data`, `cold`, `index`, ...; empty if nothing.
    pub stream: String,
    /// Bytes that are still needed.
    pub live_bytes: u64,
    /// Bytes it can hold.
    pub capacity_bytes: u64,
    /// Times erased.
    pub erases: u32,
    /// Segments opened since it was; 0 if it holds nothing.
    pub age: u32,
}

/// What a segment is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SegmentState {
    /// It can be filled.
    Free,
    /// Nothing on it is needed, but it must stay until the next checkpoint.
    Held,
    /// It is being filled.
    Open,
    /// It was filled.
    Full,
    /// It is retired.
    Bad,
}

/// Segments whose erase counts lie in one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WearStep {
    /// The least erase count of the range.
    pub from: u32,
    /// The most.
    pub to: u32,
    /// How many segments.
    pub segments: u32,
}

impl SegmentState {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Free, Self::Held, Self::Open, Self::Full, Self::Bad];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Held => "held",
            Self::Open => "open",
            Self::Full => "full",
            Self::Bad => "bad",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl SegmentInfo {
    /// The live share in thousandths, at most 1,000.
    #[must_use]
    pub fn live_in_1000(&self) -> u32 {
        let share = self.live_bytes.saturating_mul(1000).checked_div(self.capacity_bytes).unwrap_or(0);
        share.min(1000) as u32
    }
}

impl Inspection {
    /// Bytes programmed for each byte that users wrote; `None` while they wrote nothing, and for a
    /// device whose medium does not count.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let programmed: u64 = self.tags.iter().map(|one| one.bytes_programmed).sum();
        (self.bytes_written > 0 && !self.tags.is_empty()).then(|| programmed as f64 / self.bytes_written as f64)
    }

    /// The memory of all parts.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        self.ram.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Erases of the least, the average and the most erased of the sound segments; `None` without
    /// any.
    #[must_use]
    pub fn wear_spread(&self) -> Option<WearSpread> {
        let sound = || self.segments.iter().filter(|one| one.state != SegmentState::Bad).map(|one| one.erases);
        let (min, max) = (sound().min()?, sound().max()?);
        if !self.wears {
            return None;
        }
        let mean = sound().map(f64::from).sum::<f64>() / sound().count() as f64;
        Some(WearSpread { min, mean, max })
    }

    /// How many sound segments lie in each of at most `most` equal ranges of erase counts, from the
    /// least to the most erased one.
    #[must_use]
    pub fn wear(&self, most: u32) -> Vec<WearStep> {
        if self.wears { wear_histogram(&self.segments, most) } else { Vec::new() }
    }
}

fn wear_histogram(segments: &[SegmentInfo], most: u32) -> Vec<WearStep> {
    let sound = || segments.iter().filter(|one| one.state != SegmentState::Bad).map(|one| one.erases);
    let (Some(least), Some(greatest)) = (sound().min(), sound().max()) else { return Vec::new() };
    let range = u64::from(greatest - least) + 1;
    let width = range.div_ceil(u64::from(most.max(1)));
    let mut steps: Vec<WearStep> = (0..range.div_ceil(width))
        .map(|step| {
            let from = u64::from(least) + step * width;
            WearStep { from: from as u32, to: (from + width - 1).min(u64::from(greatest)) as u32, segments: 0 }
        })
        .collect();
    for erases in sound() {
        if let Some(step) = steps.get_mut((u64::from(erases - least) / width) as usize) {
            step.segments += 1;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn worn(erases: u32, state: SegmentState) -> SegmentInfo {
        SegmentInfo { segment: 0, state, stream: String::new(), live_bytes: 30, capacity_bytes: 40, erases, age: 0 }
    }

    #[test]
    fn the_histogram_counts_every_sound_segment_once() {
        let segments: Vec<_> = (3..=12).chain([12]).map(|erases| worn(erases, SegmentState::Full)).collect();
        let mut all = Inspection { segments, wears: true, ..Inspection::default() };
        all.segments.push(worn(u32::MAX, SegmentState::Bad));
        let step = |from, to, segments| WearStep { from, to, segments };
        assert_eq!(all.wear(3), vec![step(3, 6, 4), step(7, 10, 4), step(11, 12, 3)]);
        assert_eq!(all.wear(0), vec![step(3, 12, 11)]);
        assert_eq!(all.wear(100).len(), 10);
        assert_eq!(Inspection::default().wear(8), vec![]);
        let extremes = [worn(0, SegmentState::Free), worn(u32::MAX, SegmentState::Free)];
        assert_eq!(wear_histogram(&extremes, 2).iter().map(|step| step.segments).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn shares_and_sums() {
        assert_eq!(worn(0, SegmentState::Full).live_in_1000(), 750);
        assert_eq!(SegmentInfo { capacity_bytes: 0, ..worn(0, SegmentState::Full) }.live_in_1000(), 0);
        let tag = |bytes_programmed| TagCounts { bytes_programmed, ..TagCounts::default() };
        let mut all = Inspection { tags: vec![tag(300), tag(200)], ..Inspection::default() };
        assert_eq!(all.write_amplification(), None);
        all.bytes_written = 250;
        assert_eq!(all.write_amplification(), Some(2.0));
        for state in SegmentState::ALL {
            assert_eq!(SegmentState::from_name(state.name()), Some(state));
        }
    }
}
