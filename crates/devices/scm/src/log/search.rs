//! Segments of the log wherever they lie: for a log whose chain is broken.

use crate::medium::format::SegmentHead;
use onode_media::Pmem;
use std::collections::BTreeMap;
use std::ops::Range;

/// Heads of segments by their numbers, with their addresses.
pub(crate) struct FoundSegments(BTreeMap<u64, (u64, SegmentHead)>);

impl FoundSegments {
    /// Looks at each place in the area where a segment may begin.
    pub(crate) fn in_area<P: Pmem + ?Sized>(memory: &P, area: Range<u64>, segment_bytes: u64, salt: u64) -> Self {
        let mut found = BTreeMap::new();
        let mut address = area.start;
        while address.saturating_add(segment_bytes) <= area.end {
            let mut bytes = [0; SegmentHead::BYTES];
            memory.read(address, &mut bytes);
            if let Some(head) = SegmentHead::decode(&bytes, salt) {
                let other = found
                    .get(&head.sequence)
                    .is_some_and(|(_, other): &(u64, SegmentHead)| other.session > head.session);
                if !other {
                    found.insert(head.sequence, (address, head));
                }
            }
            address += segment_bytes;
        }
        Self(found)
    }

    /// The first one from a number on.
    pub(crate) fn first_from(&self, number: u64) -> Option<(u64, SegmentHead)> {
        self.0.range(number..).next().map(|(_, found)| *found)
    }
}
