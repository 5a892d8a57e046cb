//! Byte-addressable memory that a device owns while the explorer keeps a hand on it.
//!
//! To the device it is plain memory that forgets nothing. While recording is on it keeps every
//! store with its bytes, every flush and every fence; what a cut among them leaves is for `walk`,
//! which has [`SimPmem`](onode_media::SimPmem) say it.

pub mod walk;

use crate::medium::{Budget, Medium, Trace};
use onode_base::Prng;
use onode_base::sync::{Mutex, rank};
use onode_media::pmem::LINE_BYTES;
use onode_media::{Domain, Pmem, Result};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use walk::MemoryWalk;

/// Memory at rest.
#[derive(Clone, Debug)]
pub struct MemoryImage {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What makes stores durable on it.
    pub domain: Domain,
}

/// Something that happened to the memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// Bytes of one line, which lie in the trace from `data` on, were stored.
    Store { at: u64, length: u32, data: usize },
    /// Lines were flushed.
    Flush { at: u64, length: u64 },
    /// A fence.
    Fence,
}

/// What the device said of its memory at some moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Note {
    /// Events before it.
    pub(super) position: usize,
    pub(super) volatile: Vec<Range<u64>>,
    durable: Vec<Range<u64>>,
}

/// Every store, flush and fence of a run.
#[derive(Clone, Debug)]
pub struct MemoryTrace {
    pub(super) begin: MemoryImage,
    pub(super) events: Vec<Event>,
    pub(super) data: Vec<u8>,
    pub(super) notes: Vec<Note>,
    /// Of each store, the next flush of its line; [`NEVER`] if there is none.
    pub(super) flushed_at: Vec<u32>,
}

/// No event.
pub(super) const NEVER: u32 = u32::MAX;
/// Stores that are flushed within so many events are meant to be durable soon.
pub(super) const SOON: usize = 512;
/// Of stores one after another every so many is a place for a cut.
const STRIDE: usize = 8;
/// The same of all stores, where none has to be flushed.
const WIDE_STRIDE: usize = 16;

struct Recording {
    begin: MemoryImage,
    events: Vec<Event>,
    data: Vec<u8>,
    notes: Vec<Note>,
}

struct MemoryInner {
    bytes: Vec<u8>,
    domain: Domain,
    recording: Option<Recording>,
    position: usize,
}

/// A shared handle; clones are the same memory.
#[derive(Clone)]
pub struct Memory(Arc<Mutex<MemoryInner, rank::MediumContent>>);

impl Medium for Memory {
    type Image = MemoryImage;
    type Trace = MemoryTrace;

    fn new(image: MemoryImage, recording: bool) -> Self {
        let recording = recording.then(|| Recording::from(image.clone()));
        let MemoryImage { bytes, domain } = image;
        Self(Arc::new(Mutex::new(MemoryInner { bytes, domain, recording, position: 0 })))
    }

    fn image(&self) -> MemoryImage {
        let inner = self.0.lock();
        MemoryImage { bytes: inner.bytes.clone(), domain: inner.domain }
    }

    fn position(&self) -> usize {
        self.0.lock().position
    }

    fn take_trace(&self) -> MemoryTrace {
        let image = self.image();
        let mut inner = self.0.lock();
        let next = inner.recording.is_some().then(|| Recording::from(image.clone()));
        let recording = std::mem::replace(&mut inner.recording, next).unwrap_or_else(|| Recording::from(image));
        MemoryTrace::new(recording)
    }
}

impl From<MemoryImage> for Recording {
    fn from(begin: MemoryImage) -> Self {
        Self { begin, events: Vec::new(), data: Vec::new(), notes: Vec::new() }
    }
}

impl Memory {
    /// The device says which parts of the memory it makes anew anyway, and which make up what it
    /// shows.
    pub fn note(&self, volatile: Vec<Range<u64>>, durable: Vec<Range<u64>>) {
        if let Some(recording) = &mut self.0.lock().recording {
            let position = recording.events.len();
            recording.notes.push(Note { position, volatile, durable });
        }
    }
}

impl MemoryInner {
    fn event(&mut self, event: Event) {
        self.position += 1;
        if let Some(recording) = &mut self.recording {
            recording.events.push(event);
        }
    }

    fn store(&mut self, at: u64, bytes: &[u8]) {
        let start = at as usize;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let length = (LINE_BYTES - at % LINE_BYTES).min(rest.len() as u64);
            let (now, later) = rest.split_at(length as usize);
            let mut data = 0;
            if let Some(recording) = &mut self.recording {
                data = recording.data.len();
                recording.data.extend_from_slice(now);
            }
            self.event(Event::Store { at, length: length as u32, data });
            (at, rest) = (at + length, later);
        }
    }

    fn word(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[at as usize..at as usize + 8]);
        u64::from_le_bytes(word)
    }
}

impl Pmem for Memory {
    fn length(&self) -> u64 {
        self.0.lock().bytes.len() as u64
    }

    fn domain(&self) -> Domain {
        self.0.lock().domain
    }

    fn load(&self, at: u64) -> u64 {
        self.0.lock().word(at)
    }

    fn store(&self, at: u64, value: u64) {
        self.0.lock().store(at, &value.to_le_bytes());
    }

    fn compare_exchange(&self, at: u64, current: u64, new: u64) -> std::result::Result<u64, u64> {
        let mut inner = self.0.lock();
        let found = inner.word(at);
        if found != current {
            return Err(found);
        }
        inner.store(at, &new.to_le_bytes());
        Ok(found)
    }

    fn read(&self, at: u64, buffer: &mut [u8]) {
        let start = at as usize;
        buffer.copy_from_slice(&self.0.lock().bytes[start..start + buffer.len()]);
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        self.0.lock().store(at, bytes);
    }

    fn zero(&self, at: u64, length: u64) {
        self.0.lock().store(at, &vec![0; length as usize]);
    }

    fn flush(&self, at: u64, length: u64) {
        if length > 0 {
            self.0.lock().event(Event::Flush { at, length });
        }
    }

    fn fence(&self) -> Result<()> {
        self.0.lock().event(Event::Fence);
        Ok(())
    }

    fn grow(&self, length: u64) -> Result<()> {
        let mut inner = self.0.lock();
        if length <= inner.bytes.len() as u64 {
            return Ok(());
        }
        let detail = format!("this memory has {} bytes for good", inner.bytes.len());
        inner.position += 1;
        Err(onode_media::Error::new(onode_media::MediaErrorKind::HostFull, detail))
    }
}

pub(super) fn lines(at: u64, length: u64) -> Range<u64> {
    at / LINE_BYTES..(at + length).div_ceil(LINE_BYTES)
}

impl MemoryTrace {
    fn new(recording: Recording) -> Self {
        let Recording { begin, events, data, notes } = recording;
        let mut flushed_at = vec![NEVER; events.len()];
        let mut next = HashMap::new();
        for (position, event) in events.iter().enumerate().rev() {
            match *event {
                Event::Store { at, .. } => {
                    flushed_at[position] = next.get(&(at / LINE_BYTES)).copied().unwrap_or(NEVER);
                }
                Event::Flush { at, length } => {
                    next.extend(lines(at, length).map(|line| (line, position as u32)));
                }
                Event::Fence => {}
            }
        }
        Self { begin, events, data, notes, flushed_at }
    }

    /// Whether the store at `position` is meant to be durable soon.
    pub(super) fn is_meant(&self, position: usize) -> bool {
        self.flushed_at.get(position).is_some_and(|at| *at != NEVER && (*at as usize) < position + SOON)
    }

    pub(super) fn is_fence(&self, position: usize) -> bool {
        matches!(self.events.get(position), Some(Event::Fence))
    }
}

impl Trace for MemoryTrace {
    type Image = MemoryImage;
    type Walk<'a> = MemoryWalk<'a>;

    fn operations(&self) -> usize {
        self.events.len()
    }

    fn wraps(&self) -> u64 {
        let flushed: u64 = self
            .events
            .iter()
            .map(|event| match *event {
                Event::Flush { at, length } => lines(at, length).count() as u64,
                _ => 0,
            })
            .sum();
        flushed * LINE_BYTES * 100 / (self.begin.bytes.len() as u64).max(1)
    }

    /// All flushes and fences, what comes right after a fence, and stores that are flushed soon:
    /// the first of a row and every eighth. What is stored elsewhere cannot be told from what was
    /// there, unless stores are durable at once.
    fn places(&self, budget: &Budget) -> Vec<usize> {
        let mut all = Vec::new();
        let mut row = 0;
        let mut expected = 0;
        for (position, event) in self.events.iter().enumerate() {
            let after_fence = position.checked_sub(1).is_some_and(|before| self.is_fence(before));
            let wanted = match event {
                Event::Flush { .. } | Event::Fence => true,
                Event::Store { .. } if self.is_meant(position) => row % STRIDE == 0,
                Event::Store { .. } => self.begin.domain == Domain::Fence && position % WIDE_STRIDE == 0,
            };
            row = if matches!(event, Event::Store { .. }) && self.is_meant(position) { row + 1 } else { 0 };
            if wanted || after_fence {
                all.push(position);
                expected += match (self.is_fence(position), budget.variants) {
                    (false, 0) => 2,
                    (false, _) => 1,
                    (true, 0) => 24,
                    (true, most) => most as u64,
                };
            }
        }
        all.push(self.events.len());
        let mut prng = Prng::new(budget.seed ^ 0x91ace);
        all.retain(|_| expected <= budget.states || prng.chance(budget.states.max(1), expected));
        all
    }

    fn walk(&self) -> MemoryWalk<'_> {
        MemoryWalk::new(self)
    }

    /// At the end of each call a fence would make everything durable that the device shows: no
    /// flush was forgotten.
    fn check_commits(&self) -> std::result::Result<(), String> {
        let mut walk = self.walk();
        for note in &self.notes {
            if let Some(at) = walk.unflushed(note.position, &note.durable) {
                return Err(format!("byte {at} is in use and was not flushed before operation {}", note.position));
            }
        }
        Ok(())
    }

    fn describe(&self, position: usize) -> String {
        match self.events.get(position) {
            Some(Event::Store { at, length, .. }) => {
                let meant = if self.is_meant(position) { "" } else { " (not flushed soon)" };
                format!("store {length} bytes at {at:#x}{meant}")
            }
            Some(Event::Flush { at, length }) => format!("flush {length} bytes at {at:#x}"),
            Some(Event::Fence) => "fence".into(),
            None => "the end".into(),
        }
    }

    fn describe_variant(&self, _position: usize, variant: usize) -> String {
        walk::name_of(variant)
    }
}
