//! The fast disk: attached, or lost for a reason.
//!
//! Whatever fails on the fast disk makes it lost. What it keeps true: nothing depends on it but
//! what its log alone has, for the big disk has everything else.

use crate::disks::read_plan::{PlannedRun, RunPart, read_runs};
use crate::fast::{Fast, Piece};
use crate::medium::layout::BLOCK_BYTES;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_media::{IoTag, SharedDisk};
use onode_object::{ObjectId, Placement, Result};

/// Copies made since the mount that do not match their checksums until the fast disk is given up.
/// Older ones are dropped, and the blocks written anew.
const MOST_MISMATCHES: u32 = 64;

/// The fast disk, if there is one.
#[derive(Default)]
pub struct FastDisk {
    fast: Option<Fast>,
    /// Why it is away, if it was there in this session.
    pub lost: Option<String>,
    /// Copies that did not match their checksums.
    pub mismatches: u32,
    /// Those of them that were made since the mount.
    new_mismatches: u32,
}

impl FastDisk {
    /// The fast disk takes its place.
    #[must_use]
    pub const fn of(fast: Fast) -> Self {
        Self { fast: Some(fast), lost: None, mismatches: 0, new_mismatches: 0 }
    }

    /// The fast disk.
    pub const fn get(&mut self) -> Option<&mut Fast> {
        self.fast.as_mut()
    }

    /// Whether it is there.
    #[must_use]
    pub const fn is_there(&self) -> bool {
        self.fast.is_some()
    }

    /// Does something with the fast disk. If that fails, the disk is away from then on.
    pub fn with<R>(&mut self, act: impl FnOnce(&mut Fast) -> Result<R>) -> Option<R> {
        match act(self.fast.as_mut()?) {
            Ok(result) => Some(result),
            Err(error) => {
                self.lose(format!("{error}"));
                None
            }
        }
    }

    /// The fast disk is not used any more.
    pub fn lose(&mut self, why: String) {
        self.fast = None;
        self.lost = Some(why);
    }

    /// Who reads it without its lock, if it is there and lets others do that.
    #[must_use]
    pub fn reader(&self) -> Option<Arc<dyn SharedDisk>> {
        self.fast.as_ref()?.reader().cloned()
    }

    /// Where it has what is wanted and not there yet. What waits in memory to be written is there
    /// then.
    pub fn find(&mut self, wanted: &mut [PlannedRun]) -> Vec<RunPart> {
        let mut parts: Vec<RunPart> = Vec::new();
        let Some(fast) = self.fast.as_mut() else { return parts };
        for (which, it) in wanted.iter_mut().enumerate() {
            let mut from = 0;
            while from < it.is_there.len() {
                if it.is_there.get(from) == Some(&true) {
                    from += 1;
                    continue;
                }
                let (block, born) = (it.extent.block + from as u64, it.extent.born);
                let mut count = 1;
                if let Some((place, blocks)) = fast.lookup(block, born) {
                    count = (blocks as usize).clamp(1, it.is_there.len() - from);
                    let part = RunPart { which, from, count, block: place };
                    if !parts.last_mut().is_some_and(|last| last.goes_on(&part)) {
                        parts.push(part);
                    }
                } else if it.block(from).is_some_and(|bytes| fast.read_collected(block, born, bytes)) {
                    it.verify(from);
                }
                from += count;
            }
        }
        parts
    }

    /// Reads what it has of all that is wanted at once, and notes of each block whether it is there
    /// and right.
    pub fn read(&mut self, wanted: &mut [PlannedRun]) {
        let parts = self.find(wanted);
        let Some(fast) = self.fast.as_mut() else { return };
        let unread = read_runs(fast.disk(), wanted, &parts, IoTag::Data);
        for part in parts {
            let Some(it) = wanted.get_mut(part.which) else { continue };
            for number in part.blocks() {
                let is_read = !unread.contains(&(part.which, number));
                if is_read && is_planted(Bug::TierCopyBelieved) {
                    it.note(number, true);
                } else if !is_read || !it.verify(number) {
                    self.mismatch(it.extent.block + number as u64);
                }
            }
        }
    }

    fn mismatch(&mut self, block: u64) {
        let is_new = self.fast.as_mut().is_some_and(|fast| fast.damaged(block));
        self.mismatches += 1;
        self.new_mismatches += u32::from(is_new);
        if self.new_mismatches >= MOST_MISMATCHES {
            self.lose(format!("{} copies did not match their checksums", self.new_mismatches));
        }
    }

    /// The placement of an object changes from the class `before` to `after`: what is there is
    /// pinned, or not, from now on.
    pub fn pin_as_placed(&mut self, object: ObjectId, before: u16, after: u16) {
        let [before, after] = [before, after].map(|class| Placement::from_class(class).pinned);
        if before != after
            && let Some(fast) = self.get()
        {
            fast.pin(object.0, after);
        }
    }

    /// Content was read from the big disk: copies it if that is worth it.
    pub fn consider(&mut self, piece: &Piece, content: &[u8]) {
        for (part, content) in piece.parts().zip(content.chunks(Piece::MOST_BLOCKS as usize * BLOCK_BYTES)) {
            self.with(|fast| match fast.missed(&part) {
                Ok(()) => fast.promote(&part, content, false).map(|_| ()),
                Err(_) => Ok(()),
            });
        }
    }
}
