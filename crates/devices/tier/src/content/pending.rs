//! Content that has no place of its own yet: whole blocks by object and number, in memory or, when
//! that is full, where the log of the fast disk has them.
//!
//! Memory has no zeros behind the content of a block, and lets go of full blocks first: who appends
//! to a file needs the rest of its last block.

use crate::medium::layout::{BLOCK, BLOCK_BYTES};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::planted::{Bug, is_planted};
use onode_object::ObjectId;

/// What an entry takes in memory at least.
const LEAST_BYTES: u64 = 256;

/// Content without the zeros behind it.
#[must_use]
pub fn trimmed(bytes: &[u8]) -> &[u8] {
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.get(..length).unwrap_or_default()
}

/// The whole block of content without the zeros behind it.
#[must_use]
pub fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut block = bytes.to_vec();
    block.resize(BLOCK_BYTES, 0);
    block
}

/// Bytes of memory for content.
#[must_use]
pub const fn weight(bytes: &[u8]) -> u64 {
    let length = bytes.len() as u64;
    if length > LEAST_BYTES { length } else { LEAST_BYTES }
}

/// Where the log of the fast disk has a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The first byte on the disk.
    pub at: u64,
    /// Bytes; those behind them in the block are zeros.
    pub length: u32,
    /// The checksum of the block.
    pub sum: u32,
}

/// Content of a block that a record of the log has.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// The object.
    pub object: u64,
    /// The block of it.
    pub block: u64,
    /// Which of the contents that the block had.
    version: u64,
    /// Where it is; counted from the start of the payload until the record has a place.
    pub logged: Logged,
}

/// A block without a place.
#[derive(Clone, Debug)]
pub enum Held {
    /// In memory, without the zeros behind it.
    Bytes(Vec<u8>),
    /// In the log of the fast disk alone.
    Logged(Logged),
}

/// Blocks that follow each other in an object and are held in the same way.
pub enum PendingRun {
    /// Their bytes.
    Bytes(Vec<u8>),
    /// Where each of them is.
    Logged(Vec<Logged>),
}

/// The blocks, in the order in which they go to the disk.
#[derive(Debug, Default)]
pub struct Pending {
    blocks: BTreeMap<(u64, u64), (Held, u64)>,
    /// Bytes of memory, and blocks that are not there.
    in_memory: u64,
    spilled: u64,
    versions: u64,
    /// What the fast disk has, the oldest first, full blocks and others: memory need not hold it.
    readable: [VecDeque<Content>; 2],
}

impl Pending {
    /// Blocks.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Bytes of memory.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.in_memory
    }

    /// Whether some of it is in the log of the fast disk alone.
    #[must_use]
    pub const fn is_spilled(&self) -> bool {
        self.spilled > 0
    }

    /// A block.
    #[must_use]
    pub fn get(&self, object: u64, block: u64) -> Option<&Held> {
        self.blocks.get(&(object, block)).map(|(held, _)| held)
    }

    /// Puts a block; says whether it is a new one.
    pub fn put(&mut self, object: u64, block: u64, mut bytes: Vec<u8>) -> bool {
        self.versions += 1;
        bytes.truncate(trimmed(&bytes).len());
        bytes.shrink_to_fit();
        self.insert(object, block, Held::Bytes(bytes))
    }

    fn insert(&mut self, object: u64, block: u64, held: Held) -> bool {
        match &held {
            Held::Bytes(bytes) => self.in_memory += weight(bytes),
            Held::Logged(_) => self.spilled += 1,
        }
        let before = self.blocks.insert((object, block), (held, self.versions));
        self.count_gone(before.as_ref());
        before.is_none()
    }

    fn count_gone(&mut self, gone: Option<&(Held, u64)>) {
        match gone {
            Some((Held::Bytes(bytes), _)) => self.in_memory -= weight(bytes),
            Some((Held::Logged(_), _)) => self.spilled -= 1,
            None => {}
        }
    }

    /// The blocks of an object in `from..end`.
    pub fn range(&self, object: u64, from: u64, end: u64) -> impl Iterator<Item = (u64, &Held)> {
        let range = (object, from)..(object, end.max(from));
        self.blocks.range(range).map(|((_, block), (held, _))| (*block, held))
    }

    /// Drops the blocks of an object in `from..end`; returns how many there were.
    pub fn remove(&mut self, object: u64, from: u64, end: u64) -> u64 {
        let gone: Vec<u64> = self.range(object, from, end).map(|(block, _)| block).collect();
        for block in &gone {
            let gone = self.blocks.remove(&(object, *block));
            self.count_gone(gone.as_ref());
        }
        gone.len() as u64
    }

    /// Gives the blocks of an object in `blocks` to another object, which has none there; returns
    /// how many there were.
    pub fn move_to(&mut self, object: u64, to: u64, blocks: Range<u64>) -> u64 {
        let all: Vec<u64> = self.range(object, blocks.start, blocks.end).map(|(block, _)| block).collect();
        for block in &all {
            if let Some(held) = self.blocks.remove(&(object, *block)) {
                self.blocks.insert((to, *block), held);
            }
        }
        all.len() as u64
    }

    /// What of a block that was just written a record can be asked for: `data`, from the start of
    /// the block on, lies at byte `at` of the payload. `None` if the block has more than that.
    fn content(&self, object: u64, block: u64, data: &[u8], at: u64) -> Option<Content> {
        let (Held::Bytes(bytes), version) = self.blocks.get(&(object, block))? else { return None };
        let is_all = bytes[..] == *trimmed(data);
        let sum = || onode_base::checksum::crc32c(&padded(bytes));
        let content = || Logged { at, length: data.len() as u32, sum: sum() };
        is_all.then(|| Content { object, block, version: *version, logged: content() })
    }

    /// Which blocks a payload has, in which the data of a write end at byte `end`.
    pub fn contents(&self, object: ObjectId, offset: u64, data: &[u8], end: usize, out: &mut Vec<Content>) {
        let begin = (end - data.len()) as u64;
        let skip = offset.next_multiple_of(BLOCK) - offset;
        let blocks = data.get(skip as usize..).unwrap_or_default().chunks(BLOCK_BYTES);
        for (number, content) in (0..).zip(blocks) {
            let (block, at) = ((offset + skip) / BLOCK + number, begin + skip + number * BLOCK);
            out.extend(self.content(object.0, block, content, at));
        }
    }

    /// The fast disk has this in its log, where it can be read.
    pub fn note_readable(&mut self, contents: impl IntoIterator<Item = Content>) {
        for content in contents {
            let [full, others] = &mut self.readable;
            if u64::from(content.logged.length) == BLOCK { full } else { others }.push_back(content);
        }
    }

    /// Lets go of memory above `most` bytes as far as the fast disk has its content.
    pub fn spill(&mut self, most: u64) {
        while self.bytes() > most
            && let Some(content) = self.readable.iter_mut().find_map(VecDeque::pop_front)
        {
            if let Some((held @ Held::Bytes(_), version)) = self.blocks.get_mut(&(content.object, content.block))
                && (*version == content.version || is_planted(Bug::TierSpilledStale))
            {
                let before = core::mem::replace(held, Held::Logged(content.logged));
                self.spilled += 1;
                self.count_gone(Some(&(before, 0)));
            }
        }
    }

    /// Takes the first run off: blocks of one object that follow each other and are held in the
    /// same way, `most` at most.
    pub fn take_run(&mut self, most: u64) -> Option<(u64, u64, PendingRun)> {
        self.readable.iter_mut().for_each(VecDeque::clear);
        let ((object, first), (held, version)) = self.blocks.pop_first()?;
        let mut run = match &held {
            Held::Bytes(bytes) => PendingRun::Bytes(padded(bytes)),
            Held::Logged(logged) => PendingRun::Logged(vec![*logged]),
        };
        self.count_gone(Some(&(held, version)));
        let mut taken = 1;
        while taken < most
            && let Some((next, _)) = self.blocks.get(&(object, first + taken))
        {
            match (&mut run, next) {
                (PendingRun::Bytes(all), Held::Bytes(bytes)) => {
                    all.extend_from_slice(bytes);
                    all.resize((taken as usize + 1) * BLOCK_BYTES, 0);
                }
                (PendingRun::Logged(all), Held::Logged(logged)) => all.push(*logged),
                _ => break,
            }
            let gone = self.blocks.remove(&(object, first + taken));
            self.count_gone(gone.as_ref());
            taken += 1;
        }
        Some((object, first, run))
    }

    /// Puts back what was taken off and found no place.
    pub fn put_run(&mut self, object: u64, first: u64, run: PendingRun) {
        let all: Vec<Held> = match run {
            PendingRun::Bytes(bytes) => {
                bytes.chunks(BLOCK_BYTES).map(|bytes| Held::Bytes(trimmed(bytes).to_vec())).collect()
            }
            PendingRun::Logged(all) => all.into_iter().map(Held::Logged).collect(),
        };
        for (block, held) in (first..).zip(all) {
            self.insert(object, block, held);
        }
    }
}
