//! The disks of a volume, each behind a lock of its own, so that one thread reads while another
//! waits for a flush.

pub mod fast_disk;
pub mod read_plan;
pub mod waiting;

use crate::disks::fast_disk::FastDisk;
use crate::disks::read_plan::{PlannedRun, RunPart, read_beside, read_runs};
use crate::disks::waiting::{Next, Waiting};
use crate::fast::Piece;
use crate::medium::errors::{bug, from_media, within, within_mut};
use crate::medium::layout::BLOCK;
use crate::space::extent::Extent;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::checksum::crc32c;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::{Mutex, rank};
use onode_media::{BlockDev, Gap, IoTag, Seam, SharedDisk};
use onode_object::Result;

/// The disks.
pub struct Disks {
    /// The big disk.
    pub big: Mutex<Box<dyn BlockDev>, rank::TierBig>,
    /// Who reads the big disk beside its owner, if it lets others do that.
    big_reader: Option<Arc<dyn SharedDisk>>,
    /// The fast disk.
    pub fast: Mutex<FastDisk, rank::TierFast>,
    /// How requests reach the big disk, as it was at the mount.
    pub big_way: Option<&'static str>,
    /// What the big disk is still to write.
    pub waiting: Mutex<Waiting, rank::TierWaiting>,
    /// Who writes a part of it: nothing is written twice, and nothing when it may be somebody
    /// else's place already.
    writing: Mutex<(), rank::TierWriting>,
    /// Who is told that a disk works.
    seam: Option<Seam>,
}

impl Disks {
    /// The disks at a mount.
    #[must_use]
    pub fn new(big: Box<dyn BlockDev>, fast: FastDisk, seam: Option<Seam>) -> Self {
        let big_way = big.way();
        Self {
            big_reader: big.shared(),
            big: Mutex::new(big),
            fast: Mutex::new(fast),
            big_way,
            waiting: Mutex::default(),
            writing: Mutex::default(),
            seam,
        }
    }

    /// A disk works from here on: others may come before.
    pub fn let_others(&self) {
        if let Some(seam) = &self.seam {
            seam.at(Gap::Works);
        }
    }

    /// Whether nobody works with a disk now.
    #[must_use]
    pub fn are_free(&self) -> bool {
        self.writing.try_lock().is_some()
            && self.big.try_lock().is_some()
            && self.fast.try_lock().is_some()
            && self.waiting.try_lock().is_some()
    }

    /// Reads blocks of the big disk, or what it is still to write there.
    ///
    /// # Errors
    /// The medium's.
    pub fn read(&self, block: u64, out: &mut [u8], tag: IoTag) -> Result<()> {
        self.let_others();
        let count = out.len() as u64 / BLOCK;
        let runs = self.waiting.lock().within(block, count);
        let is_whole = matches!(&runs[..], [(first, run)] if *first <= block
            && block + count <= *first + run.bytes.len() as u64 / BLOCK);
        if !is_whole {
            self.let_others();
            let offset = block * BLOCK;
            let beside = |reader: &Arc<dyn SharedDisk>| reader.read_at(offset, out, tag).is_ok();
            if !self.big_reader.as_ref().is_some_and(beside) {
                let read = self.big.lock().read_at(offset, out, tag);
                read.map_err(|error| from_media("reading the big disk", &error))?;
            }
        }
        for (first, run) in runs {
            let skip = (block.saturating_sub(first) * BLOCK) as usize;
            let into = (first.saturating_sub(block) * BLOCK) as usize;
            let from = within(&run.bytes, skip..run.bytes.len())?;
            let length = out.len();
            let to = within_mut(out, into..length)?;
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
        Ok(())
    }

    /// Reads what the fast disk has of all that is wanted at once, and notes of each block whether
    /// it is there and right. While the disk works, others use it.
    pub fn read_fast(&self, wanted: &mut [PlannedRun]) {
        let mut fast = self.fast.lock();
        let Some(reader) = fast.reader() else { return fast.read(wanted) };
        let parts = fast.find(wanted);
        drop(fast);
        if parts.is_empty() {
            return;
        }
        self.let_others();
        let left = read_beside(reader.as_ref(), wanted, &parts, IoTag::Data);
        let mut is_whole = left.is_empty();
        for part in parts.iter().filter(|part| !left.contains(part)) {
            let Some(it) = wanted.get_mut(part.which) else { continue };
            for number in part.blocks() {
                let is_right = it.verify(number);
                if is_planted(Bug::ManyTierCopyBelieved) {
                    it.note(number, true);
                } else {
                    is_whole &= is_right;
                }
            }
        }
        if !is_whole {
            // A copy may have gone from there meanwhile. Under the lock it is damaged, or nothing.
            self.fast.lock().read(wanted);
        }
    }

    /// Reads parts of what is wanted from the big disk. Returns the blocks that could not be read,
    /// each as its number among those wanted and within.
    pub fn read_big(&self, wanted: &mut [PlannedRun], parts: &[RunPart]) -> Vec<(usize, usize)> {
        let left = match &self.big_reader {
            Some(reader) => read_beside(reader.as_ref(), wanted, parts, IoTag::Data),
            None => parts.to_vec(),
        };
        if left.is_empty() { Vec::new() } else { read_runs(self.big.lock().as_mut(), wanted, &left, IoTag::Data) }
    }

    /// A node of the tree, if the fast disk has a copy of it.
    pub fn copy_of_node(&self, block: u64, crc: u32) -> Option<Vec<u8>> {
        self.let_others();
        let Piece { born, .. } = Piece::of_node(block, crc);
        let mut wanted = [PlannedRun::new(0, Extent { block, born, sums: vec![crc] })];
        self.read_fast(&mut wanted);
        let [found] = wanted;
        (found.is_there == [true]).then_some(found.bytes)
    }

    /// A node of the tree had to be read from the big disk: it may be worth a copy.
    pub fn consider_node(&self, block: u64, crc: u32, node: &[u8]) {
        if crc32c(node) == crc {
            self.let_others();
            self.fast.lock().consider(&Piece::of_node(block, crc), node);
        }
    }

    /// Writes a run of what waits, and offers its content to the fast disk; false if nothing waits.
    ///
    /// # Errors
    /// The medium's.
    pub fn write_waiting(&self) -> Result<bool> {
        self.let_others();
        let _writing = self.writing.lock();
        let Some(next) = self.waiting.lock().first() else { return Ok(false) };
        match next {
            Next::Run(first, run) => {
                self.bring(first, &run.bytes, run.tag, &run.pieces)?;
                self.waiting.lock().remove(first);
            }
            Next::Far(first, far) => {
                let bytes = self.load(&far.logged)?;
                self.bring(first, &bytes, IoTag::Data, &far.pieces)?;
                self.waiting.lock().remove_far(first);
            }
        }
        Ok(true)
    }

    /// Writes the content that commits have placed and not written yet.
    ///
    /// # Errors
    /// The medium's.
    pub fn write_placed(&self) -> Result<()> {
        self.let_others();
        let _writing = self.writing.lock();
        loop {
            let Some((first, run)) = self.waiting.lock().next_placed() else { return Ok(()) };
            self.bring(first, &run.bytes, run.tag, &run.pieces)?;
            self.waiting.lock().remove(first);
        }
    }

    /// Writes a run from block `first` on, and offers its content to the fast disk.
    fn bring(&self, first: u64, bytes: &[u8], tag: IoTag, pieces: &[Piece]) -> Result<()> {
        self.post(first, bytes, tag)?;
        for piece in pieces {
            let skip = piece.block.checked_sub(first).ok_or_else(|| bug("content lies before the run it is in"))?;
            let from = (skip * BLOCK) as usize;
            let content = within(bytes, from..from + piece.blocks as usize * BLOCK as usize)?;
            self.fast.lock().with(|fast| fast.write_back(piece, content).map(|_| ()));
        }
        Ok(())
    }

    /// Blocks of the big disk are free: their copies are worth nothing.
    pub fn forget(&self, freed: &[(u64, u64)]) {
        self.fast.lock().with(|fast| {
            freed.iter().for_each(|(first, count)| fast.forget(*first, *count));
            Ok(())
        });
    }

    /// Begins a flush of the big disk that is not waited for.
    ///
    /// # Errors
    /// The medium's.
    pub fn begin_flush(&self) -> Result<()> {
        self.big.lock().begin_flush().map_err(|error| from_media("flushing the big disk", &error))
    }

    /// Whether that flush is done.
    ///
    /// # Errors
    /// The medium's.
    pub fn flush_is_done(&self) -> Result<bool> {
        self.big.lock().flush_is_done().map_err(|error| from_media("flushing the big disk", &error))
    }

    /// Whether a write of the big disk would wait for others.
    pub fn is_busy(&self) -> bool {
        self.big.try_lock().is_none_or(|mut big| big.is_busy())
    }

    /// Whether somebody works with the big disk now.
    pub fn is_taken(&self) -> bool {
        self.writing.try_lock().is_none() || self.big.try_lock().is_none()
    }

    /// Writes blocks of the big disk.
    ///
    /// # Errors
    /// The medium's.
    pub fn write(&self, block: u64, bytes: &[u8], tag: IoTag) -> Result<()> {
        self.let_others();
        let written = self.big.lock().write_at(block * BLOCK, bytes, tag);
        written.map_err(|error| from_media("writing the big disk", &error))
    }

    /// Writes blocks of the big disk without waiting for it, if it can do that: the next flush says
    /// if that failed.
    ///
    /// # Errors
    /// The medium's.
    pub fn post(&self, block: u64, bytes: &[u8], tag: IoTag) -> Result<()> {
        let written = self.big.lock().post_write(block * BLOCK, bytes, tag);
        written.map_err(|error| from_media("writing the big disk", &error))
    }

    /// Waits until the big disk has made durable what was written.
    ///
    /// # Errors
    /// The medium's.
    pub fn flush(&self) -> Result<()> {
        self.let_others();
        let flushed = self.big.lock().flush();
        // A caller learns that it is over when others have gone on.
        self.let_others();
        flushed.map_err(|error| from_media("flushing the big disk", &error))
    }
}
