//! What cuts of a recorded run of a memory leave: the run is done again on [`SimPmem`], which knows
//! what of it is durable, and every cut on the way asks it.
//!
//! Where stores are durable at once all of them are done there. Else only those whose lines are
//! flushed at some later time are, so that what the device never means to be durable does not drown
//! what it does. Such stores are in no image but three: in *everything* they are all there, and in
//! the two with *garbage* the lines that the device called volatile hold random bytes.

use crate::medium::Walk;
use crate::medium::memory::{Event, MemoryImage, MemoryTrace, NEVER, SOON, lines};
use onode_base::Prng;
use onode_media::pmem::LINE_BYTES;
use onode_media::sim::{Fate, PmemLatency, Survival};
use onode_media::{Domain, Pmem, PmemOptions, SimPmem};
use std::collections::HashMap;
use std::ops::Range;

/// Nothing survives that need not.
const NOTHING: usize = 0;
/// Everything that was stored is there.
const EVERYTHING: usize = 1;
/// Nothing survives, and what is volatile is garbage.
const NOTHING_AND_GARBAGE: usize = 2;
/// Everything survives, and what is volatile is garbage.
const EVERYTHING_AND_GARBAGE: usize = 3;
/// Each word of each line by itself, as drawn.
const WORDS: Range<usize> = 4..7;
/// The same, and what is volatile is garbage.
const WORDS_AND_GARBAGE: usize = 7;
/// From here on: of the lines to be durable soon those whose bit is set, if they are not more than
/// 8; else as many as drawn.
const SUBSETS: usize = 8;
/// Lines of which all subsets are tried.
const MOST_LINES: usize = 8;
/// Subsets tried of more lines.
const SAMPLED: usize = 32;
/// From here on, where stores are durable at once: so many words of the store that is cut.
const PREFIXES: usize = SUBSETS + (1 << MOST_LINES);

/// What multiplies with the cut of another medium: nothing, everything, a mix.
pub const SETTLED: [usize; 3] = [NOTHING, EVERYTHING, WORDS.start];

pub(super) fn name_of(variant: usize) -> String {
    match variant {
        NOTHING => "nothing survives that need not".into(),
        EVERYTHING => "everything survives".into(),
        NOTHING_AND_GARBAGE => "nothing survives, what is volatile is garbage".into(),
        EVERYTHING_AND_GARBAGE => "everything survives, what is volatile is garbage".into(),
        WORDS_AND_GARBAGE => "some words survive, what is volatile is garbage".into(),
        one if WORDS.contains(&one) => format!("some words survive ({one})"),
        one if one < PREFIXES => format!("of the lines to be durable those of {:#010b} survive", one - SUBSETS),
        one => format!("{} words of the store are done", one - PREFIXES),
    }
}

/// A run that is done again up to some position.
pub struct MemoryWalk<'a> {
    trace: &'a MemoryTrace,
    memory: SimPmem,
    /// What programs saw.
    seen: Vec<u8>,
    position: usize,
    /// Of each line the next flush after its last store.
    flushed_at: HashMap<u64, u32>,
    /// Of each line its last flush.
    last_flush: HashMap<u64, usize>,
}

impl<'a> MemoryWalk<'a> {
    pub(super) fn new(trace: &'a MemoryTrace) -> Self {
        let options = PmemOptions { domain: trace.begin.domain, latency: PmemLatency::NONE, ..PmemOptions::default() };
        Self {
            trace,
            memory: SimPmem::from_image(trace.begin.bytes.clone(), options),
            seen: trace.begin.bytes.clone(),
            position: 0,
            flushed_at: HashMap::new(),
            last_flush: HashMap::new(),
        }
    }

    fn go_to(&mut self, position: usize) {
        if position < self.position {
            *self = Self::new(self.trace);
        }
        while self.position < position {
            match self.trace.events[self.position] {
                Event::Store { at, length, data } => {
                    let bytes = &self.trace.data[data..data + length as usize];
                    self.seen[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
                    let flushed_at = self.trace.flushed_at[self.position];
                    if flushed_at != NEVER || self.trace.begin.domain == Domain::Fence {
                        self.memory.write(at, bytes);
                        self.flushed_at.insert(at / LINE_BYTES, flushed_at);
                    }
                }
                Event::Flush { at, length } => {
                    self.memory.flush(at, length);
                    self.last_flush.extend(lines(at, length).map(|line| (line, self.position)));
                }
                Event::Fence => {
                    // No fence of this memory was told to fail.
                    let _ = self.memory.fence();
                }
            }
            self.position += 1;
        }
    }

    /// Lines that are durable soon, by address.
    fn soon(&self) -> Vec<u64> {
        let is_soon = |address: u64| {
            let at = self.flushed_at.get(&(address / LINE_BYTES));
            at.is_some_and(|at| (*at as usize) < self.position + SOON)
        };
        let lines = self.memory.unfenced_lines();
        lines.into_iter().filter(|line| line.is_flushed || is_soon(line.address)).map(|line| line.address).collect()
    }

    /// Fills the lines with random bytes that the device called volatile, if it did not flush them
    /// since.
    fn add_garbage(&self, image: &mut [u8], seed: u64) {
        let notes = &self.trace.notes;
        let last = notes.partition_point(|note| note.position <= self.position);
        let Some(note) = last.checked_sub(1).and_then(|last| notes.get(last)) else { return };
        let mut prng = Prng::new(seed ^ 0x6a7b);
        for range in &note.volatile {
            for line in range.start.div_ceil(LINE_BYTES)..range.end / LINE_BYTES {
                if self.last_flush.get(&line).is_none_or(|flush| *flush < note.position) {
                    let start = (line * LINE_BYTES) as usize;
                    prng.fill(&mut image[start..start + LINE_BYTES as usize]);
                }
            }
        }
    }

    /// The first byte of the ranges that a fence at `position` would not make durable. The fence is
    /// done: what follows is judged as if it had been there.
    pub(super) fn unflushed(&mut self, position: usize, ranges: &[Range<u64>]) -> Option<u64> {
        self.go_to(position);
        let _ = self.memory.fence();
        let durable = self.memory.durable_image();
        let differs = |at: &u64| self.seen[*at as usize] != durable[*at as usize];
        ranges.iter().cloned().flatten().find(differs)
    }

    /// The subset of `count` lines with this number.
    fn subset(number: usize, count: usize, seed: u64) -> impl FnMut(usize) -> bool {
        let mut prng = Prng::new(seed ^ 0x5b5e7);
        // Most of the lines, half of them, or few.
        let of_four = 1 + number as u64 % 3;
        move |line| if count <= MOST_LINES { number >> line & 1 == 1 } else { prng.chance(of_four, 4) }
    }
}

impl Walk for MemoryWalk<'_> {
    type Image = MemoryImage;

    fn variants(&mut self, position: usize, most: usize, is_last: bool, prng: &mut Prng) -> Vec<usize> {
        if self.trace.begin.domain == Domain::Fence {
            let words = match self.trace.events.get(position) {
                Some(Event::Store { length, .. }) => (*length as usize).div_ceil(8),
                _ => 1,
            };
            let garbage = prng.chance(1, 4).then_some(EVERYTHING_AND_GARBAGE);
            return (PREFIXES..PREFIXES + words).filter(|_| prng.chance(1, 3)).chain(garbage).collect();
        }
        self.go_to(position);
        let count = self.soon().len();
        if count == 0 {
            return vec![[NOTHING, NOTHING, EVERYTHING, NOTHING_AND_GARBAGE][prng.below(4) as usize]];
        }
        let subsets = if count <= MOST_LINES { 1 << count } else { SAMPLED };
        let mut all: Vec<usize> = (0..SUBSETS + subsets).collect();
        let is_fence = self.trace.is_fence(position) || is_last;
        let most = match (is_fence, most) {
            (true, 0) => all.len(),
            (true, most) => most,
            (false, 0) => 2,
            (false, _) => 1,
        };
        while all.len() > most {
            let index = prng.below(all.len() as u64) as usize;
            all.swap_remove(index);
        }
        all.sort_unstable();
        all
    }

    fn image(&mut self, position: usize, variant: usize, seed: u64) -> Option<MemoryImage> {
        if position > self.trace.events.len() {
            return None;
        }
        self.go_to(position);
        let all_words = |seed: u64| {
            let mut prng = Prng::new(seed);
            self.memory.crash_image_by(|_| match prng.below(4) {
                0 => Fate::Durable,
                1 => Fate::Visible,
                _ => Fate::Words(prng.next_u64()),
            })
        };
        let mut bytes = match variant {
            NOTHING | NOTHING_AND_GARBAGE => self.memory.durable_image(),
            EVERYTHING => self.seen.clone(),
            EVERYTHING_AND_GARBAGE => self.memory.crash_image(Survival::Everything),
            one if WORDS.contains(&one) || one == WORDS_AND_GARBAGE => all_words(seed),
            one if one < PREFIXES => {
                let soon = self.soon();
                let mut is_in = Self::subset(one - SUBSETS, soon.len(), seed);
                let chosen: Vec<u64> = (0..soon.len()).filter(|line| is_in(*line)).map(|line| soon[line]).collect();
                self.memory.crash_image_by(|line| {
                    if chosen.binary_search(&line.address).is_ok() { Fate::Visible } else { Fate::Durable }
                })
            }
            one => {
                let mut bytes = self.memory.crash_image(Survival::Everything);
                if let Some(Event::Store { at, length, data }) = self.trace.events.get(position) {
                    let at = *at as usize;
                    // Words are aligned, stores need not be.
                    let end = at / 8 * 8 + (one - PREFIXES) * 8;
                    let done = end.saturating_sub(at).min(*length as usize);
                    bytes[at..at + done].copy_from_slice(&self.trace.data[*data..data + done]);
                }
                bytes
            }
        };
        if matches!(variant, NOTHING_AND_GARBAGE | EVERYTHING_AND_GARBAGE | WORDS_AND_GARBAGE) {
            self.add_garbage(&mut bytes, seed);
        }
        Some(MemoryImage { bytes, domain: self.trace.begin.domain })
    }
}
