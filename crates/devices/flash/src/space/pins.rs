//! Pins: segments that somebody reads without the device's lock.
//!
//! It keeps true: a segment that was pinned while something on it was needed is not erased, opened
//! anew or marked bad before the pin goes; the segment table asks here before it hands one out.
//! Pins are taken under the device's lock and go without it, so who holds that lock may wait for
//! them. It does not say what is read there.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::{Mutex, MutexGuard, rank};

/// All pins of a volume.
#[derive(Default)]
pub struct Pins {
    readings: Mutex<Vec<Arc<Reading>>, rank::FlashPins>,
}

/// One read, and what it needs.
struct Reading {
    segments: Vec<u32>,
    /// Locked for as long as it goes on.
    busy: Mutex<(), rank::FlashReading>,
}

/// Segments that are pinned until this is dropped.
pub struct Pinned {
    pins: Arc<Pins>,
    reading: Arc<Reading>,
}

impl Pins {
    /// Pins `segments`.
    pub fn pin(self: &Arc<Self>, segments: Vec<u32>) -> Pinned {
        let reading = Arc::new(Reading { segments, busy: Mutex::new(()) });
        self.readings.lock().push(Arc::clone(&reading));
        Pinned { pins: Arc::clone(self), reading }
    }

    /// The segments that are pinned now; others than those can only come to be pinned while
    /// something on them is needed.
    pub fn segments(&self) -> BTreeSet<u32> {
        let readings = self.readings.lock();
        readings.iter().flat_map(|reading| reading.segments.iter().copied()).collect()
    }

    /// Whether `segment` is pinned.
    pub fn has(&self, segment: u32) -> bool {
        self.readings.lock().iter().any(|reading| reading.segments.contains(&segment))
    }

    /// Waits until one of the reads that go on now is over. Nobody may call it who reads.
    pub fn wait(&self) {
        let reading = self.readings.lock().first().cloned();
        if let Some(reading) = reading {
            drop(reading.busy.lock());
        }
    }
}

impl Pinned {
    /// The read begins, and goes on until what this returns is dropped.
    pub fn begin(&self) -> MutexGuard<'_, ()> {
        self.reading.busy.lock()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let is_alike = |one: &Reading| is_planted(Bug::ManyPinsTogether) && one.segments == self.reading.segments;
        let is_over = |one: &Arc<Reading>| Arc::ptr_eq(one, &self.reading) || is_alike(one);
        self.pins.readings.lock().retain(|one| !is_over(one));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_segment_is_pinned_as_long_as_anybody_reads_it() {
        let pins = Arc::new(Pins::default());
        let (one, other) = (pins.pin(Vec::from([3, 4])), pins.pin(Vec::from([4])));
        assert_eq!(pins.segments(), BTreeSet::from([3, 4]));
        drop(one);
        assert!(!pins.has(3) && pins.has(4));
        drop(other);
        assert!(pins.segments().is_empty());
        // Nothing to wait for.
        pins.wait();
    }

    #[test]
    fn who_waits_goes_on_when_the_read_is_over() {
        let pins = Arc::new(Pins::default());
        thread::scope(|scope| {
            let pinned = pins.pin(Vec::from([7]));
            let busy = pinned.begin();
            let waits = scope.spawn(|| {
                while pins.has(7) {
                    pins.wait();
                }
            });
            assert!(!waits.is_finished());
            drop(busy);
            drop(pinned);
        });
        assert!(!pins.has(7));
    }
}
