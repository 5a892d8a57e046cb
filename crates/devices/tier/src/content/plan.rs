//! What a read needs of the disks, and how it gets it without the lock of the state.
//!
//! What it keeps true: whatever comes out has the checksum that the tree had for it when the plan
//! was made. What has not is reported and never returned; whether it is damaged or only gone from
//! there is found out under the lock.

use crate::content::pending::Logged;
use crate::disks::Disks;
use crate::disks::read_plan::{PlannedRun, RunPart};
use crate::fast::Piece;
use crate::medium::errors::{bug, within, within_mut};
use crate::medium::layout::{BLOCK, BLOCK_BYTES};
use crate::space::Space;
use crate::space::extent::Extent;
use alloc::vec;
use alloc::vec::Vec;
use onode_object::{ObjectId, Result};

/// Where content may be read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The fast disk if it has a copy, else the big one.
    Any,
    /// The big disk, to see whether it is sound there.
    Big,
}

/// A read whose rest is on the disks.
pub struct ReadPlan {
    /// The object.
    pub object: ObjectId,
    /// The first byte.
    pub offset: u64,
    /// Bytes that there are.
    pub count: usize,
    /// The object's size.
    pub size: u64,
    /// Its hint.
    pub class: u16,
    /// Stored blocks.
    pub wanted: Vec<PlannedRun>,
    /// Blocks that only the log of the fast disk has.
    pub logged: Vec<(u64, Logged)>,
}

/// A block that could not be read, or has another checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsound {
    /// Of which run that is wanted.
    pub which: usize,
    /// The block within it.
    pub number: usize,
    /// The disk returned something.
    pub is_read: bool,
}

/// What came of reading stored blocks.
#[derive(Default)]
pub struct StoredBlocks {
    /// Blocks that the fast disk had.
    pub on_fast: u64,
    /// What was read from the big disk.
    pub from_big: Vec<RunPart>,
    /// What of that is not as it should be.
    pub unsound: Vec<Unsound>,
}

impl ReadPlan {
    /// A read of one stored run of an object, which begins at block `at` of it; nothing of it goes
    /// to a buffer of the caller.
    #[must_use]
    pub fn of_run(object: ObjectId, class: u16, at: u64, extent: Extent) -> Self {
        let wanted = vec![PlannedRun::new(at, extent)];
        Self { object, offset: at * BLOCK, class, ..Self::of_runs(wanted) }
    }

    /// A read of stored runs, of whatever objects; nothing of it goes to a buffer of the caller.
    #[must_use]
    pub const fn of_runs(wanted: Vec<PlannedRun>) -> Self {
        Self { object: ObjectId(0), offset: 0, count: 0, size: u64::MAX, class: 0, wanted, logged: Vec::new() }
    }

    /// Nobody writes to the stored blocks until they are unpinned.
    pub fn pin(&self, space: &mut Space) {
        self.wanted.iter().for_each(|it| space.pin(it.extent.block, it.extent.blocks()));
    }

    /// They were read. What became free is not looked for here.
    pub fn unpin(&self, space: &mut Space) {
        self.wanted.iter().for_each(|it| space.unpin(it.extent.block, it.extent.blocks()));
    }

    /// Whether the disks are not needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.logged.is_empty()
    }

    /// Copies the stored blocks, all of which were found, into the buffer.
    ///
    /// # Errors
    /// `Bug`.
    pub fn copy_stored(&self, buffer: &mut [u8]) -> Result<()> {
        self.wanted.iter().try_for_each(|it| copy_part(buffer, self.offset, it.at * BLOCK, &it.bytes))
    }

    /// Reads what only the log of the fast disk has.
    ///
    /// # Errors
    /// As [`Disks::load`].
    pub fn load(&self, disks: &Disks, buffer: &mut [u8]) -> Result<()> {
        if self.logged.is_empty() {
            return Ok(());
        }
        let places: Vec<Logged> = self.logged.iter().map(|(_, at)| *at).collect();
        let bytes = disks.load(&places)?;
        let blocks = self.logged.iter().zip(bytes.chunks(BLOCK_BYTES));
        blocks.into_iter().try_for_each(|((block, _), bytes)| copy_part(buffer, self.offset, block * BLOCK, bytes))
    }
}

impl Disks {
    /// Finds all that is wanted: on the fast disk, then in what is still to be written, the rest on
    /// the big disk.
    ///
    /// # Errors
    /// As [`Disks::load`].
    pub fn fetch(&self, wanted: &mut [PlannedRun], source: Source) -> Result<StoredBlocks> {
        let mut found = StoredBlocks::default();
        self.let_others();
        if source == Source::Any {
            self.read_fast(wanted);
            found.on_fast = wanted.iter().flat_map(|it| &it.is_there).filter(|is_there| **is_there).count() as u64;
        }
        let waiting = self.waiting.lock();
        wanted.iter_mut().for_each(|it| waiting.fill(it));
        let far: Vec<Vec<(usize, Logged)>> = wanted.iter().map(|it| waiting.far(it)).collect();
        drop(waiting);
        for (it, far) in wanted.iter_mut().zip(far).filter(|(_, far)| !far.is_empty()) {
            let places: Vec<Logged> = far.iter().map(|(_, at)| *at).collect();
            let bytes = self.load(&places)?;
            for ((number, _), content) in far.iter().zip(bytes.chunks(BLOCK_BYTES)) {
                it.block(*number).ok_or_else(|| bug("a block that is wanted has no place"))?.copy_from_slice(content);
                it.verify(*number);
            }
        }
        found.from_big = wanted.iter().enumerate().flat_map(|(which, it)| it.missing(which)).collect();
        if found.from_big.is_empty() {
            return Ok(found);
        }
        self.let_others();
        let unread = self.read_big(wanted, &found.from_big);
        for part in &found.from_big {
            let it = wanted.get_mut(part.which).ok_or_else(|| bug("a part of nothing that is wanted was read"))?;
            for number in part.blocks() {
                let is_read = !unread.contains(&(part.which, number));
                if !is_read || !it.verify(number) {
                    found.unsound.push(Unsound { which: part.which, number, is_read });
                }
            }
        }
        Ok(found)
    }

    /// What had to be read from the big disk, and is verified, may be worth a copy.
    ///
    /// # Errors
    /// `Bug`.
    pub fn consider(&self, object: ObjectId, class: u16, wanted: &[PlannedRun], read: &[RunPart]) -> Result<()> {
        self.let_others();
        if !self.fast.lock().is_there() {
            return Ok(());
        }
        for part in read {
            let it = wanted.get(part.which).ok_or_else(|| bug("a part of nothing that is wanted was read"))?;
            let (born, index) = (it.extent.born, it.at + part.from as u64);
            let piece = Piece { block: part.block, born, blocks: part.count as u32, object: object.0, index, class };
            let bytes = within(&it.bytes, part.from * BLOCK_BYTES..(part.from + part.count) * BLOCK_BYTES)?;
            self.fast.lock().consider(&piece, bytes);
        }
        Ok(())
    }
}

/// Copies what `bytes`, which lie at `from`, have of the part of the object that begins at
/// `offset`.
///
/// # Errors
/// `Bug`.
pub fn copy_part(buffer: &mut [u8], offset: u64, from: u64, bytes: &[u8]) -> Result<()> {
    let start = offset.max(from);
    let end = (offset + buffer.len() as u64).min(from + bytes.len() as u64);
    if start < end {
        let source = within(bytes, (start - from) as usize..(end - from) as usize)?;
        within_mut(buffer, (start - offset) as usize..(end - offset) as usize)?.copy_from_slice(source);
    }
    Ok(())
}
