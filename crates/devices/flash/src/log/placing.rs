//! Placing: from what the segment table knows of some content to the stream it goes to.
//!
//! The decisions are the policy's ([`Classifier`](crate::policy::Classifier)); here its questions
//! are answered.

use super::Log;
use crate::medium::layout::SegmentPage;
use crate::policy::{Level, Placement, Resident, Stream, WearPolicy};
use onode_base::planted::{Bug, is_planted};
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
    /// one for each class and each unusual number of pages of parity, and where access times have a
    /// log of their own another two.
    pub fn stream_segments(&self) -> u32 {
        // What gives worn segments rest opens one more.
        let resting = u32::from(self.table.wear_policy() == WearPolicy::Static);
        let access_times = if self.logs_access_times() { 2 } else { 0 };
        let unusual = if self.is_combined() { 0 } else { self.store.layout().unusual_parities() };
        2 + u32::from(self.placement().classes()) + resting + access_times + unusual
    }

    /// Segments whose worth of room may lie in open segments of other classes, of no use to who
    /// writes: one for each class beyond those of users and of the cleaner.
    pub fn unfilled_segments(&self) -> u32 {
        u32::from(self.placement().classes()).saturating_sub(2)
    }

    /// The stream for what a user writes to an object with `hints`, over what lies at `old` or
    /// where nothing was. A write that replaces several extents is judged by the first.
    pub fn stream_for_write(&self, hints: &Hints, old: Option<u64>) -> Stream {
        if let Some(stream) = self.unusual_stream(hints) {
            return stream;
        }
        let layout = self.store.layout();
        let old = old.filter(|location| layout.contains(*location, 1));
        let old = old.map(|location| self.resident(layout.segment_of(location)));
        Stream::of_class(self.placement(), self.placement.written(old, Level::of_hints(hints)))
    }

    /// The stream for content of an object with `hints` if that wishes another number of pages of
    /// parity than is usual, and has it: where everything goes to the journal, all have the same.
    fn unusual_stream(&self, hints: &Hints) -> Option<Stream> {
        let layout = self.store.layout();
        let chooses = !self.is_combined() && !is_planted(Bug::WishIgnored);
        let usual = layout.chosen_parity.filter(|_| chooses)?;
        let parity = layout.parity_for(hints.parity_pages);
        (parity != usual).then(|| Stream::of_parity(parity))
    }

    /// Whether an object with `hints` wishes another parity than what it has at `location`. What
    /// the journal has of it is covered by the most that there is.
    pub fn has_other_parity(&self, location: u64, hints: &Hints) -> bool {
        let layout = self.layout();
        if layout.chosen_parity.is_none() {
            return false;
        }
        let (has, wishes) = (layout.parity_at(location), layout.parity_for(hints.parity_pages));
        let stream = self.table().get(layout.segment_of(location)).stream;
        has < wishes || (stream.is_content() && has != wishes) || layout.parity_of(stream) != has
    }

    /// The stream for what survives in `segment` of an object with `hints`.
    pub fn stream_for_moved(&self, segment: u32, hints: &Hints) -> Stream {
        if let Some(stream) = self.unusual_stream(hints) {
            return stream;
        }
        Stream::of_class(self.placement(), self.placement.moved(self.resident(segment)))
    }

    /// The stream for what is to give a worn segment rest, of an object with `hints`.
    pub fn stream_for_resting(&self, hints: &Hints) -> Stream {
        self.unusual_stream(hints).unwrap_or_else(|| Stream::resting(self.placement()))
    }

    /// What the placement learns from the cleaning of `segment`.
    pub fn learn_from(&mut self, segment: u32) {
        let stream = self.table.get(segment).stream;
        if stream.is_content() && stream.wished_parity().is_none() {
            let resident = self.resident(segment);
            self.placement.cleaned(resident);
        }
    }

    /// Page 0 of `segment`.
    pub fn page(&self, segment: u32) -> SegmentPage {
        self.store.layout().page(self.table.get(segment).stream, segment, 0)
    }

    /// The payload address of the first byte of `segment`.
    pub fn start_of(&self, segment: u32) -> u64 {
        self.store.layout().location(self.page(segment), 0)
    }

    fn resident(&self, segment: u32) -> Resident {
        let one = self.table.get(segment);
        Resident {
            class: one.stream.class(self.placement()),
            opened: self.table.next_sequence().saturating_sub(one.sequence),
        }
    }
}
