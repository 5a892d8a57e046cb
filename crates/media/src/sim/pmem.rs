//! Simulated byte-addressable memory that forgets what was not fenced.
//!
//! It keeps exactly the model of [`Pmem`]: it knows of every aligned 8 bytes the durable value and
//! the values since, so that a power cut at any moment can be made of every mix of them; it counts
//! stores, flushed lines and fences; and it tells an observer every moment at which a cut would
//! find something new. All follows from the calls; nothing here is safe from power by accident. It
//! has no address, so whatever runs on it goes through the trait.

mod cells;
pub mod counters;
pub mod crash;
pub mod options;
#[cfg(test)]
mod tests;

use crate::error::{Error, MediaErrorKind, Result};
use crate::pmem::{Domain, LINE_BYTES, Pmem};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use cells::{Cells, WORD_BYTES, index};
use core::ops::Range;
use counters::{FlushedLines, PmemCounters};
use crash::{Event, Fate, Moment, Survival, UnfencedLine};
use onode_base::sync::{Mutex, as_another_thread, rank};
use options::PmemOptions;

/// A write of at most so many bytes may be cut between any two words of it; a longer one between
/// any two lines.
const TORN_BY_WORDS: u64 = 2 * LINE_BYTES;

/// What is called with each [`Moment`].
pub type Observer = Box<dyn FnMut(&Moment<'_>) + Send>;

/// Byte-addressable memory in the process, with power cuts.
pub struct SimPmem {
    options: PmemOptions,
    state: Mutex<PmemState, rank::MediumContent>,
}

struct PmemState {
    cells: Cells,
    /// What the power cut found; from then on only programs see what they store.
    at_cut: Option<Box<Cells>>,
    events: u64,
    cut_at: Option<u64>,
    failing_fence: Option<u64>,
    counters: PmemCounters,
    flushed: FlushedLines,
    exempt: Vec<Range<u64>>,
    observer: Option<Observer>,
}

impl SimPmem {
    /// Memory of `length` bytes, a whole number of lines, that reads as zeros.
    #[must_use]
    pub fn new(length: u64, options: PmemOptions) -> Self {
        Self::of_cells(Cells::new(alloc::vec![0; index(length.next_multiple_of(LINE_BYTES))]), options)
    }

    /// Memory that durably holds `bytes`, filled up to a whole line with zeros.
    #[must_use]
    pub fn from_image(mut bytes: Vec<u8>, options: PmemOptions) -> Self {
        bytes.resize(bytes.len().next_multiple_of(LINE_BYTES as usize), 0);
        Self::of_cells(Cells::new(bytes), options)
    }

    fn of_cells(cells: Cells, options: PmemOptions) -> Self {
        let state = PmemState {
            cells,
            at_cut: None,
            events: 0,
            cut_at: None,
            failing_fence: None,
            counters: PmemCounters::default(),
            flushed: FlushedLines::default(),
            exempt: Vec::new(),
            observer: None,
        };
        Self { options, state: Mutex::new(state) }
    }

    /// What programs see.
    #[must_use]
    pub fn image(&self) -> Vec<u8> {
        self.state.lock().cells.visible().to_vec()
    }

    /// What is there after a power cut if nothing survives that need not.
    #[must_use]
    pub fn durable_image(&self) -> Vec<u8> {
        self.crash_image(Survival::Nothing)
    }

    /// What is there after a power cut now, or at the cut if there was one.
    #[must_use]
    pub fn crash_image(&self, survival: Survival) -> Vec<u8> {
        let state = self.state.lock();
        state.at_cut.as_deref().unwrap_or(&state.cells).crash_image(survival)
    }

    /// What is there after such a cut if `fate` says of each line of
    /// [`unfenced_lines`](Self::unfenced_lines), in their order, what survives of it.
    #[must_use]
    pub fn crash_image_by(&self, fate: impl FnMut(UnfencedLine) -> Fate) -> Vec<u8> {
        let state = self.state.lock();
        state.at_cut.as_deref().unwrap_or(&state.cells).crash_image_by(fate)
    }

    /// Lines of which a cut now, or the one that was, may leave more than one content; in order of
    /// address.
    #[must_use]
    pub fn unfenced_lines(&self) -> Vec<UnfencedLine> {
        let state = self.state.lock();
        state.at_cut.as_deref().unwrap_or(&state.cells).unfenced_lines()
    }

    /// Turns the power off before the event `events` from now on: 0 is the next store, flush, fence
    /// or growth.
    ///
    /// From then on programs still see what they store, so that none waits for ever, but nothing of
    /// it survives, and fences fail.
    pub fn cut_after(&self, events: u64) {
        let mut state = self.state.lock();
        state.cut_at = Some(state.events.saturating_add(events));
    }

    /// Whether the power is off.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.state.lock().at_cut.is_some()
    }

    /// Stores, flushes, fences and growths so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.state.lock().events
    }

    /// Makes the fence after `fences` more of them fail once, with nothing made durable by it.
    pub fn fail_fence_after(&self, fences: u64) {
        self.state.lock().failing_fence = Some(fences);
    }

    /// Has `observer` called before each store, fence and growth while the power is on. It runs
    /// inside the call that it observes and must not use this memory other than through the
    /// [`Moment`].
    pub fn observe(&self, observer: Observer) {
        self.state.lock().observer = Some(observer);
    }

    /// Ends the observation and returns what observed.
    pub fn stop_observing(&self) -> Option<Observer> {
        self.state.lock().observer.take()
    }

    /// The counts since the start or [`reset_counters`](Self::reset_counters).
    #[must_use]
    pub fn counters(&self) -> PmemCounters {
        let state = self.state.lock();
        PmemCounters { distinct_lines_flushed: state.flushed.count(), ..state.counters }
    }

    /// Counts from zero again.
    pub fn reset_counters(&self) {
        let mut state = self.state.lock();
        state.counters = PmemCounters::default();
        state.flushed = FlushedLines::default();
    }

    /// Says that a range holds what need not survive: [`mark_commit`](Self::mark_commit) does not
    /// report it.
    pub fn exempt(&self, range: Range<u64>) {
        self.state.lock().exempt.push(range);
    }

    /// Says that everything stored so far is meant to be durable, and returns the lines that are
    /// not: a flush (`is_flushed` false) or a fence was forgotten.
    #[must_use]
    pub fn mark_commit(&self) -> Vec<UnfencedLine> {
        let state = self.state.lock();
        let is_exempt = |line: &UnfencedLine| state.exempt.iter().any(|range| range.contains(&line.address));
        state.cells.unfenced_lines().into_iter().filter(|line| !is_exempt(line)).collect()
    }

    fn store_bytes(&self, at: u64, bytes: &[u8]) {
        let piece = if bytes.len() as u64 <= TORN_BY_WORDS { WORD_BYTES } else { LINE_BYTES };
        let mut state = self.state.lock();
        state.cells.check(at, bytes.len() as u64);
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let length = (piece - at % piece).min(rest.len() as u64);
            let (now, later) = rest.split_at(index(length));
            state.store(&self.options, at, now);
            (at, rest) = (at + length, later);
        }
    }
}

impl PmemState {
    /// One event, before it happens: cuts the power if it is time, tells the observer otherwise.
    fn happens(&mut self, event: Event) {
        if self.cut_at == Some(self.events) && self.at_cut.is_none() {
            self.at_cut = Some(Box::new(self.cells.clone()));
        }
        if self.at_cut.is_none()
            && !matches!(event, Event::Flush { .. })
            && let Some(observer) = &mut self.observer
        {
            // It looks at other memories, made of this one as a cut would leave it.
            as_another_thread(|| observer(&Moment::new(event, self.events, &self.cells)));
        }
        self.events += 1;
    }

    fn store(&mut self, options: &PmemOptions, at: u64, bytes: &[u8]) {
        let length = bytes.len() as u64;
        self.happens(Event::Store { at, length });
        self.counters.stores += 1;
        self.counters.bytes_stored += length;
        self.counters.virtual_nanoseconds += options.latency.of_store(at, length);
        self.cells.store(at, bytes, options.domain != Domain::Fence);
    }

    fn loads(&mut self, options: &PmemOptions, at: u64, length: u64) {
        self.counters.loads += 1;
        self.counters.bytes_loaded += length;
        self.counters.virtual_nanoseconds += options.latency.of_load(at, length);
    }
}

impl Pmem for SimPmem {
    fn length(&self) -> u64 {
        self.state.lock().cells.length()
    }

    fn domain(&self) -> Domain {
        self.options.domain
    }

    fn load(&self, at: u64) -> u64 {
        let mut state = self.state.lock();
        state.loads(&self.options, at, WORD_BYTES);
        state.cells.word(at)
    }

    fn store(&self, at: u64, value: u64) {
        let mut state = self.state.lock();
        // Aligned and inside, or it panics before anything happened.
        state.cells.word(at);
        state.store(&self.options, at, &value.to_le_bytes());
    }

    fn compare_exchange(&self, at: u64, current: u64, new: u64) -> core::result::Result<u64, u64> {
        let mut state = self.state.lock();
        state.loads(&self.options, at, WORD_BYTES);
        let found = state.cells.word(at);
        if found != current {
            return Err(found);
        }
        state.store(&self.options, at, &new.to_le_bytes());
        Ok(found)
    }

    fn read(&self, at: u64, buffer: &mut [u8]) {
        let mut state = self.state.lock();
        let length = buffer.len() as u64;
        state.cells.check(at, length);
        state.loads(&self.options, at, length);
        buffer.copy_from_slice(&state.cells.visible()[index(at)..index(at + length)]);
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        self.store_bytes(at, bytes);
    }

    fn zero(&self, at: u64, length: u64) {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut done = 0;
        while done < length {
            // Whole lines at a time, as a long write would be.
            let piece = (ZEROS.len() as u64 - (at + done) % LINE_BYTES).min(length - done);
            self.store_bytes(at + done, &ZEROS[..index(piece)]);
            done += piece;
        }
    }

    fn flush(&self, at: u64, length: u64) {
        let mut state = self.state.lock();
        state.cells.check(at, length);
        if length == 0 {
            return;
        }
        state.happens(Event::Flush { at, length });
        for line in at / LINE_BYTES..(at + length).div_ceil(LINE_BYTES) {
            state.counters.lines_flushed += 1;
            state.counters.virtual_nanoseconds += self.options.latency.flush_nanoseconds;
            state.flushed.insert(line);
            if !state.cells.flush(line) {
                state.counters.clean_lines_flushed += 1;
            }
        }
    }

    fn fence(&self) -> Result<()> {
        let mut state = self.state.lock();
        state.happens(Event::Fence);
        state.counters.fences += 1;
        state.counters.virtual_nanoseconds += self.options.latency.fence_nanoseconds;
        let fails = state.failing_fence == Some(0);
        state.failing_fence = state.failing_fence.and_then(|fences| fences.checked_sub(1));
        if fails {
            return Err(Error::new(MediaErrorKind::Host, "this fence was made to fail"));
        }
        state.cells.fence();
        if state.at_cut.is_some() {
            return Err(Error::new(MediaErrorKind::Host, "the power is off"));
        }
        Ok(())
    }

    fn grow(&self, length: u64) -> Result<()> {
        let mut state = self.state.lock();
        if length <= state.cells.length() {
            return Ok(());
        }
        let (length, most) = (length.next_multiple_of(LINE_BYTES), self.options.grows_to);
        if length > most {
            let detail = format!("it grows to {most} bytes at most, {length} are wanted");
            return Err(Error::new(MediaErrorKind::HostFull, detail));
        }
        state.happens(Event::Grow { length });
        if state.at_cut.is_some() {
            return Err(Error::new(MediaErrorKind::Host, "the power is off"));
        }
        state.cells.grow(length);
        Ok(())
    }
}
