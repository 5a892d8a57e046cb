//! Placing: from what the segment table knows of some content to the stream it goes to.
//!
//! The decisions are the policy's ([`Classifier`](crate::policy::Classifier)); here its questions
//! are answered.

use super::Log;
use crate::policy::{Level, Placement, Resident, Stream, WearPolicy};
use onode_object::Hints;

impl Log {
    /// Where content goes.
    pub const fn placement(&self) -> Placement {
        self.placement.placement()
    }

    /// There are so many segments from now on.
    pub const fn set_segments(&mut self, segments: u32) {
        self.placement.set_segments(segments);
    }

    /// Whether content and index share the journal's segments.
    pub fn is_combined(&self) -> bool {
        self.placement() == Placement::Combined
    }

    /// Whether access times go to a log of their own.
    pub fn logs_access_times(&self) -> bool {
        self.placement() == Placement::SplitAtime
    }

    /// Segments that the streams may open at any moment without asking for room: journal, index,
    /// one for each class, and where access times have a log of their own another two.
    pub fn stream_segments(&self) -> u32 {
        // What gives worn segments rest opens one more.
        let resting = u32::from(self.table.wear_policy() == WearPolicy::Static);
        let access_times = if self.logs_access_times() { 2 } else { 0 };
        2 + u32::from(self.placement().classes()) + resting + access_times
    }

    /// The stream for what a user writes to an object with `hints`, over what lies at `old` or
    /// where nothing was. A write that replaces several extents is judged by the first.
    pub fn stream_for_write(&self, hints: &Hints, old: Option<u64>) -> Stream {
        let layout = self.store.layout();
        let old = old.filter(|location| layout.contains(*location, 1));
        let old = old.map(|location| self.resident(layout.segment_of(location)));
        Stream::of_class(self.placement(), self.placement.written(old, Level::of_hints(hints)))
    }

    /// The stream for what survives in `segment`.
    pub fn stream_for_moved(&self, segment: u32) -> Stream {
        Stream::of_class(self.placement(), self.placement.moved(self.resident(segment)))
    }

    /// The stream for what is to give a worn segment rest.
    pub const fn stream_for_resting(&self) -> Stream {
        Stream::resting(self.placement())
    }

    /// What the placement learns from the cleaning of `segment`.
    pub fn learn_from(&mut self, segment: u32) {
        if self.table.get(segment).stream.is_content() {
            let resident = self.resident(segment);
            self.placement.cleaned(resident);
        }
    }

    fn resident(&self, segment: u32) -> Resident {
        let one = self.table.get(segment);
        Resident {
            class: one.stream.class(self.placement()),
            opened: self.table.next_sequence().saturating_sub(one.sequence),
        }
    }
}
