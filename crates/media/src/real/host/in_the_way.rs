//! Bytes of a device that only its owner reads right: writes of them are under way, or were not
//! taken by the device and are in the owner's memory.
//!
//! It keeps true: a range is noted before its write is begun, and goes after the device took it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::sync::{Mutex, rank};

/// The ranges.
#[derive(Default)]
pub(super) struct InTheWay(Mutex<Ranges, rank::MediumNotes>);

#[derive(Default)]
struct Ranges {
    /// By their first bytes; no two have a byte in common.
    under_way: BTreeMap<u64, u64>,
    lost: Vec<Range<u64>>,
}

impl InTheWay {
    /// A write is to be begun. Nothing of the range is under way.
    pub(super) fn begin(&self, offset: u64, bytes: usize) {
        self.0.lock().under_way.insert(offset, offset + bytes as u64);
    }

    /// The write that begins there is over: the device has the bytes, or they are `lost`.
    pub(super) fn end(&self, offset: u64, lost: bool) {
        let mut ranges = self.0.lock();
        if let Some(end) = ranges.under_way.remove(&offset)
            && lost
        {
            ranges.lost.push(offset..end);
        }
    }

    /// Whether any of these bytes are in the way.
    pub(super) fn has(&self, offset: u64, bytes: u64) -> bool {
        let ranges = self.0.lock();
        let end = offset + bytes;
        let before = ranges.under_way.range(..end).next_back();
        before.is_some_and(|(_, last)| *last > offset)
            || ranges.lost.iter().any(|lost| lost.start < end && offset < lost.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_stays_in_the_way() {
        let ranges = InTheWay::default();
        ranges.begin(100, 50);
        ranges.begin(200, 50);
        let has = |from: u64, end: u64| ranges.has(from, end - from);
        assert!(has(0, 101) && has(149, 160) && has(120, 130) && has(50, 300));
        assert!(!has(0, 100) && !has(150, 200) && !has(250, 300));
        ranges.end(100, false);
        ranges.end(200, true);
        assert!(!has(0, 200) && has(210, 211));
        ranges.begin(200, 10);
        ranges.end(200, false);
        assert!(has(200, 201) && has(249, 250));
    }
}
