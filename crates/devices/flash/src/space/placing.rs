//! Placing: from what the index and the segment table know of some content to the stream it goes
//! to.
//!
//! The decisions are the policy's ([`Classifier`](crate::policy::Classifier)); here its questions
//! are answered. A write that replaces several extents is judged by the first.

use crate::core::Core;
use crate::index::apply::Onode;
use crate::policy::{Level, Resident, Stream, WearPolicy};
use onode_object::{ObjectId, Result};

impl Core {
    /// Segments that the streams may open at any moment without asking for room: journal, index,
    /// one for each class, and where access times have a log of their own another two.
    pub fn stream_segments(&self) -> u32 {
        // What gives worn segments rest opens one more.
        let resting = u32::from(self.log.table.choice.policy() == WearPolicy::Static);
        let access_times = if self.logs_access_times() { 2 } else { 0 };
        2 + u32::from(self.placement.placement().classes()) + resting + access_times
    }

    /// The stream for what a user writes to `object` at `offset`.
    pub fn stream_for_write(&mut self, object: ObjectId, onode: &Onode, offset: u64) -> Result<Stream> {
        let placement = self.placement.placement();
        let level = Level::of_hints(&onode.hints);
        let replaces = placement.asks_the_past() && onode.allocated > 0 && offset < onode.size;
        let old = if replaces { self.extents(object, offset, offset + 1, 1)?.pop() } else { None };
        let layout = self.log.store.layout;
        let old = old
            .filter(|extent| layout.contains(extent.piece.location, 1))
            .map(|extent| self.resident(layout.segment_of(extent.piece.location)));
        Ok(Stream::of_class(placement, self.placement.written(old, level)))
    }

    /// The stream for what survives in `segment`.
    pub fn stream_for_moved(&self, segment: u32) -> Stream {
        Stream::of_class(self.placement.placement(), self.placement.moved(self.resident(segment)))
    }

    /// The stream for what is to give a worn segment rest.
    pub const fn stream_for_resting(&self) -> Stream {
        Stream::resting(self.placement.placement())
    }

    /// What the placement learns from the cleaning of `segment`.
    pub fn learn_from(&mut self, segment: u32) {
        if self.log.table.get(segment).stream.is_content() {
            self.placement.cleaned(self.resident(segment));
        }
    }

    fn resident(&self, segment: u32) -> Resident {
        let one = self.log.table.get(segment);
        Resident {
            class: one.stream.class(self.placement.placement()),
            opened: self.log.table.next_sequence.saturating_sub(one.sequence),
        }
    }
}
