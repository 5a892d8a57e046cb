//! The content of the simulated memory: what is visible, what is durable, and what is in between.
//!
//! A line is kept apart as long as it is stored to and not fenced. It knows its durable content,
//! each value that a word of it had since, and its content at the last flush, which the next fence
//! makes durable. Lines that are not kept apart are durable as they are visible.

use super::crash::{Fate, Survival, UnfencedLine};
use crate::pmem::LINE_BYTES;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use onode_base::Prng;

pub(super) const WORD_BYTES: u64 = 8;
const WORDS: usize = (LINE_BYTES / WORD_BYTES) as usize;
/// Values of a line that are remembered; of more, the oldest are forgotten. Only words that are
/// stored to over and over without a fence, which are not meant to survive, have as many.
const VALUES_MAX: usize = 256;

/// An address as an index; one that no memory has if it does not fit.
pub(super) fn index(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

type Words = [u64; WORDS];

#[derive(Clone)]
pub(super) struct Cells {
    visible: Vec<u8>,
    lines: BTreeMap<u64, Line>,
    /// Lines flushed since the last fence.
    flushed: Vec<u64>,
}

#[derive(Clone)]
struct Line {
    durable: Words,
    /// The content when it was flushed last, until a fence.
    flushed: Option<Words>,
    /// Values of words since the durable content and until the last flush.
    before_flush: Values,
    /// Values of words since the last flush.
    after_flush: Values,
    /// Stored to since the last flush, be it the same value again.
    is_dirty: bool,
}

#[derive(Clone, Default)]
struct Values {
    list: Vec<(u8, u64)>,
    next: usize,
}

impl Values {
    fn push(&mut self, word: u8, value: u64) {
        if self.list.len() < VALUES_MAX {
            if self.list.len() < 16 || !self.list.contains(&(word, value)) {
                self.list.push((word, value));
            }
        } else {
            self.list[self.next % VALUES_MAX] = (word, value);
            self.next += 1;
        }
    }
}

impl Line {
    fn is_unfenced(&self) -> bool {
        !self.before_flush.list.is_empty() || !self.after_flush.list.is_empty()
    }

    /// One of the values that a word may have after a cut.
    fn any_value(&self, word: usize, prng: &mut Prng) -> u64 {
        let values = || {
            let all = self.before_flush.list.iter().chain(&self.after_flush.list);
            all.filter(|(of, _)| usize::from(*of) == word).map(|(_, value)| *value)
        };
        match prng.below(1 + values().count() as u64) {
            0 => self.durable[word],
            chosen => values().nth(chosen as usize - 1).unwrap_or(self.durable[word]),
        }
    }
}

impl Cells {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { visible: bytes, lines: BTreeMap::new(), flushed: Vec::new() }
    }

    pub(super) fn visible(&self) -> &[u8] {
        &self.visible
    }

    pub(super) fn length(&self) -> u64 {
        self.visible.len() as u64
    }

    /// Panics unless the range is inside.
    pub(super) fn check(&self, at: u64, length: u64) {
        let end = at.checked_add(length);
        assert!(end.is_some_and(|end| end <= self.length()), "bytes {at}..+{length} of {}", self.length());
    }

    /// The word at an aligned address.
    pub(super) fn word(&self, at: u64) -> u64 {
        assert!(at.is_multiple_of(WORD_BYTES), "address {at} is not a multiple of 8");
        self.check(at, WORD_BYTES);
        let mut bytes = [0; WORD_BYTES as usize];
        bytes.copy_from_slice(&self.visible[index(at)..index(at + WORD_BYTES)]);
        u64::from_le_bytes(bytes)
    }

    fn words(&self, line: u64) -> Words {
        core::array::from_fn(|word| self.word(line * LINE_BYTES + word as u64 * WORD_BYTES))
    }

    /// Stores bytes of one line; they are durable at once unless `is_volatile`.
    pub(super) fn store(&mut self, at: u64, bytes: &[u8], is_volatile: bool) {
        let line = at / LINE_BYTES;
        let old = self.words(line);
        self.visible[index(at)..index(at) + bytes.len()].copy_from_slice(bytes);
        let new = self.words(line);
        let kept = self.lines.entry(line).or_insert_with(|| Line {
            durable: old,
            flushed: None,
            before_flush: Values::default(),
            after_flush: Values::default(),
            is_dirty: false,
        });
        kept.is_dirty = true;
        if !is_volatile {
            kept.durable = new;
            return;
        }
        for (word, value) in new.iter().enumerate().filter(|(word, value)| old[*word] != **value) {
            kept.after_flush.push(word as u8, *value);
        }
    }

    /// Whether there was anything to flush.
    pub(super) fn flush(&mut self, line: u64) -> bool {
        let words = self.words(line);
        let Some(kept) = self.lines.get_mut(&line).filter(|line| line.is_dirty) else { return false };
        if kept.flushed.is_none() {
            self.flushed.push(line);
        }
        kept.flushed = Some(words);
        kept.is_dirty = false;
        for (word, value) in core::mem::take(&mut kept.after_flush).list {
            kept.before_flush.push(word, value);
        }
        true
    }

    pub(super) fn fence(&mut self) {
        for line in core::mem::take(&mut self.flushed) {
            let Some(kept) = self.lines.get_mut(&line) else { continue };
            if let Some(words) = kept.flushed.take() {
                kept.durable = words;
                kept.before_flush = Values::default();
            }
            if !kept.is_dirty {
                self.lines.remove(&line);
            }
        }
    }

    pub(super) fn grow(&mut self, length: u64) {
        self.visible.resize(index(length), 0);
    }

    pub(super) fn unfenced_lines(&self) -> Vec<UnfencedLine> {
        let unfenced = self.lines.iter().filter(|(_, line)| line.is_unfenced());
        unfenced.map(|(line, kept)| UnfencedLine { address: line * LINE_BYTES, is_flushed: !kept.is_dirty }).collect()
    }

    pub(super) fn crash_image(&self, survival: Survival) -> Vec<u8> {
        let mut prng = match survival {
            Survival::Words(seed) => Prng::new(seed),
            _ => Prng::new(0),
        };
        let mut number = 0;
        self.crash_image_by(|_| {
            number += 1;
            match survival {
                Survival::Everything => Fate::Visible,
                Survival::Nothing => Fate::Durable,
                Survival::Lines(mask) if number <= 64 && mask >> (number - 1) & 1 == 1 => Fate::Visible,
                Survival::Lines(_) => Fate::Durable,
                // Whole lines often, as processors write them.
                Survival::Words(_) => match prng.below(4) {
                    0 => Fate::Durable,
                    1 => Fate::Visible,
                    _ => Fate::Words(prng.next_u64()),
                },
            }
        })
    }

    /// What a cut leaves if `fate` says it of each line.
    pub(super) fn crash_image_by(&self, mut fate: impl FnMut(UnfencedLine) -> Fate) -> Vec<u8> {
        let mut image = self.visible.clone();
        for (line, kept) in self.lines.iter().filter(|(_, line)| line.is_unfenced()) {
            let words = match fate(UnfencedLine { address: line * LINE_BYTES, is_flushed: !kept.is_dirty }) {
                Fate::Durable => kept.durable,
                Fate::Visible => continue,
                Fate::Words(seed) => {
                    let mut prng = Prng::new(seed);
                    core::array::from_fn(|word| kept.any_value(word, &mut prng))
                }
            };
            let at = index(line * LINE_BYTES);
            for (bytes, word) in image[at..].chunks_exact_mut(WORD_BYTES as usize).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
        image
    }
}
