//! Which free segment is opened next: what spreads wear without moving anything.
//!
//! The wear policy decides, by erases and by how long the content will probably stay. What is
//! pinned waits.

use super::{SegmentState, SegmentTable};
use crate::policy::{Placement, Stream, WearPolicy};
use alloc::collections::BTreeSet;
use onode_base::planted::{Bug, is_planted};

/// How free segments are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// What counts.
    policy: WearPolicy,
    /// Where content goes.
    placement: Placement,
    /// Without levelling: where the next search begins.
    next: u32,
}

impl Choice {
    /// By `policy`, on a volume whose content goes where `placement` says.
    pub const fn new(policy: WearPolicy, placement: Placement) -> Self {
        Self { policy, placement, next: 0 }
    }

    /// The wear policy.
    pub const fn policy(&self) -> WearPolicy {
        self.policy
    }

    /// There are so many segments from now on.
    pub(super) fn keep_within(&mut self, segments: u32) {
        self.next = self.next.min(segments.saturating_sub(1));
    }

    /// Whether what `stream` holds will probably stay for long.
    fn is_long_lived(&self, stream: Stream) -> bool {
        let placement = self.placement;
        stream == Stream::resting(placement)
            || (stream.is_content() && placement.is_long_lived(stream.class(placement)))
    }
}

impl SegmentTable {
    /// The segment that `stream` opens next, if one is free. If others are read in all of them,
    /// waits for the first of those reads: it needs nothing that the caller has.
    pub fn choose_free(&mut self, stream: Stream, before_waiting: impl Fn()) -> Option<u32> {
        loop {
            let pinned = if is_planted(Bug::ManyPinIgnored) { BTreeSet::new() } else { self.pins.segments() };
            let chosen = self.choose_from(stream, &pinned);
            if let Some(chosen) = chosen {
                self.choice.next = (chosen + 1) % self.entries.len() as u32;
                return Some(chosen);
            }
            if pinned.is_empty() || self.in_state(SegmentState::Free) == 0 {
                return None;
            }
            before_waiting();
            self.pins.wait();
        }
    }

    /// Free segments that nobody reads in: whoever opens one waits for nobody.
    pub fn free_beside_pins(&self) -> usize {
        let pinned = self.pins.segments();
        self.usable().filter(|(number, one)| one.state == SegmentState::Free && !pinned.contains(number)).count()
    }

    /// The best free segment for `stream` beside those that are `pinned`.
    fn choose_from(&self, stream: Stream, pinned: &BTreeSet<u32>) -> Option<u32> {
        let Choice { policy, next, .. } = self.choice;
        let long_lived = self.choice.is_long_lived(stream);
        let count = self.entries.len() as u32;
        // In turn: as many steps as it is away from where the search begins.
        let turn = |number: u32| if policy == WearPolicy::Off { (number + count - next) % count } else { 0 };
        self.usable()
            .filter(|(number, one)| one.state == SegmentState::Free && !pinned.contains(number))
            .min_by_key(|(number, one)| {
                let stays = *number < self.planned_end;
                (!stays, policy.rank_free(one.erases, long_lived), turn(*number), *number)
            })
            .map(|(number, _)| number)
    }

    /// Erases of the most worn of the free segments.
    pub fn most_worn_free(&self) -> Option<u32> {
        let free = self.usable().filter(|(_, one)| one.state == SegmentState::Free);
        free.map(|(_, one)| one.erases).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::layout::Layout;
    use onode_media::Geometry;

    /// 31 free segments, of which number n was erased n times.
    fn table(policy: WearPolicy) -> SegmentTable {
        let shape = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 8, blocks: 66, chips: 1 };
        let mut table = SegmentTable::new(&Layout::new(shape, 2).unwrap());
        table.choice = Choice::new(policy, Placement::UserCleaner);
        for segment in 0..31 {
            table.update(segment, |entry| entry.erases = segment);
        }
        table
    }

    #[test]
    fn what_stays_for_long_gets_the_most_worn() {
        for policy in [WearPolicy::Dynamic, WearPolicy::Static] {
            let mut table = table(policy);
            assert_eq!(table.choose_free(Stream::Data, || {}), Some(0));
            assert_eq!(table.choose_free(Stream::Journal, || {}), Some(0));
            assert_eq!(table.choose_free(Stream::Cold, || {}), Some(30));
            assert_eq!(table.most_worn_free(), Some(30));
        }
    }

    #[test]
    fn without_levelling_segments_go_in_turn() {
        let mut table = table(WearPolicy::Off);
        for expected in [0, 1, 2, 3] {
            assert_eq!(table.choose_free(Stream::Cold, || {}), Some(expected));
            table.open(expected, Stream::Cold);
        }
        table.update(1, |entry| entry.state = SegmentState::Free);
        assert_eq!(table.choose_free(Stream::Data, || {}), Some(4), "the turn is not yet at 1 again");
    }

    #[test]
    fn the_wear_of_all_follows_each_change() {
        let mut table = table(WearPolicy::Static);
        assert_eq!((table.wear().erases, table.wear().mean()), (30 * 31 / 2, 15));
        table.update(30, |entry| entry.state = SegmentState::Bad);
        assert_eq!((table.wear().erases, table.wear().segments), (29 * 30 / 2, 30));
        table.update(0, |entry| entry.erases += 60);
        assert_eq!(table.wear().mean(), (29 * 15 + 60) / 30);
    }
}
