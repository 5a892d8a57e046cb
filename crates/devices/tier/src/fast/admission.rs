//! Admission: what is worth a write to the fast disk.
//!
//! Content that is read comes to the fast disk when it was asked for a second time within a window
//! (or as often as its owner says), as part of a long sequential read once more if something must
//! go for it that was asked for, and only as long as the bytes that may be written a day last.
//! Every refusal has a reason that is counted. Pure: time is handed in.

use super::options::FastSettings;
use super::piece::{Piece, Refusal};
use crate::medium::layout::BLOCK;
use crate::policy::queue::Remembered;
use alloc::vec::Vec;

/// Objects whose sequential reads are followed at the same time.
const STREAMS: usize = 64;

const DAY_NANOSECONDS: u64 = 86_400_000_000_000;

/// A number for what begins at a block: the same block born again is something else.
const fn content_key(block: u64, born: u64) -> u64 {
    block ^ born.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The day of a moment.
pub(super) const fn day(now: u64) -> u64 {
    now / DAY_NANOSECONDS
}

/// What decides.
pub(super) struct Admission {
    asked: Remembered,
    /// The request that counts; 0 if none does.
    admit: u32,
    window_blocks: u64,
    streams: Vec<Stream>,
    sequential_blocks: u64,
    budget: Budget,
    refused: [u64; Refusal::ALL.len()],
    last: Remembered,
}

struct Stream {
    object: u64,
    next_index: u64,
    blocks: u64,
}

/// The bytes that may be written in a day.
struct Budget {
    daily_bytes: Option<u64>,
    day: u64,
    spent_bytes: u64,
}

impl Admission {
    pub fn new(window_blocks: u64, settings: &FastSettings) -> Self {
        let FastSettings { daily_bytes, sequential_bytes, admit, .. } = *settings;
        let sequential_blocks = sequential_bytes / BLOCK;
        Self {
            asked: Remembered::default(),
            admit,
            window_blocks,
            streams: Vec::new(),
            sequential_blocks,
            budget: Budget { daily_bytes, day: 0, spent_bytes: 0 },
            refused: [0; Refusal::ALL.len()],
            last: Remembered::default(),
        }
    }

    /// Says whether a piece that was read from the big disk is worth being copied. `is_free`:
    /// nothing has to go for it that anybody asked for.
    pub fn asked(&mut self, piece: &Piece, is_free: bool) -> Result<(), Refusal> {
        let is_sequential = self.follow(piece) > self.sequential_blocks;
        let Some(before) = self.admit.checked_sub(1) else { return Err(Refusal::Unasked) };
        let key = content_key(piece.block, piece.born);
        let noted = self.asked.note(key);
        self.asked.take(key);
        let times = noted.map_or(0, |again| again + 1);
        // The big disk is good at long reads, so what must go for one waits for another request.
        if times >= before.saturating_add(u32::from(is_sequential && !is_free)) {
            return Ok(());
        }
        self.asked.push(key, u64::from(piece.blocks), times, self.window_blocks);
        Err(if is_sequential { Refusal::Sequential } else { Refusal::FirstHit })
    }

    /// A copy of `blocks` goes for want of room. Who asks for it soon does so again.
    pub fn goes(&mut self, block: u64, born: u64, blocks: u32) {
        // As if it had been asked for once less than is enough.
        let times = self.admit.saturating_sub(2);
        self.asked.push(content_key(block, born), u64::from(blocks), times, self.window_blocks);
    }

    /// How many blocks were read in a row up to the end of this piece.
    fn follow(&mut self, piece: &Piece) -> u64 {
        let blocks = u64::from(piece.blocks);
        let at = self.streams.iter().position(|stream| stream.object == piece.object);
        let mut stream = match at {
            Some(at) => self.streams.remove(at),
            None => Stream { object: piece.object, next_index: piece.index, blocks: 0 },
        };
        stream.blocks = if stream.next_index == piece.index { stream.blocks + blocks } else { blocks };
        stream.next_index = piece.index.saturating_add(blocks);
        let in_a_row = stream.blocks;
        if self.streams.len() == STREAMS {
            self.streams.remove(0);
        }
        self.streams.push(stream);
        in_a_row
    }

    /// Whether so many bytes may be written at `now`.
    pub fn affords(&mut self, bytes: u64, now: u64) -> bool {
        let day = day(now);
        if day != self.budget.day {
            self.budget.day = day;
            self.budget.spent_bytes = 0;
        }
        self.budget.daily_bytes.is_none_or(|daily| self.budget.spent_bytes.saturating_add(bytes) <= daily)
    }

    /// So many bytes are written.
    pub fn spend(&mut self, bytes: u64) {
        self.budget.spent_bytes = self.budget.spent_bytes.saturating_add(bytes);
    }

    /// Bytes written today.
    pub const fn spent(&self) -> u64 {
        self.budget.spent_bytes
    }

    /// Counts a refusal and remembers it for who asks why.
    pub fn refuse(&mut self, piece: &Piece, refusal: Refusal) -> Refusal {
        if let Some(count) = self.refused.get_mut(refusal as usize) {
            *count += 1;
        }
        self.last.push(piece.block, 1, refusal as u32, REMEMBERED_REASONS);
        refusal
    }

    /// Why the piece at `block` was refused last.
    pub fn last_refusal(&self, block: u64) -> Option<Refusal> {
        let number = self.last.note(block)?;
        Refusal::ALL.get(number as usize).copied()
    }

    /// How often each reason was given.
    pub fn refusals(&self) -> impl Iterator<Item = (Refusal, u64)> {
        Refusal::ALL.into_iter().zip(self.refused)
    }
}

/// Refusals that can be explained later.
const REMEMBERED_REASONS: u64 = 16_384;
