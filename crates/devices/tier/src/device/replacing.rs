//! A disk of a mounted volume takes the place of another one.
//!
//! Of the big disk, or of those on which it goes on, what is in use is copied; how that is safe at
//! any moment stands in `onode_media::blockdev::joined`. The fast disk is a cache and a log: it is
//! detached, which brings everything to the big one, and an empty one is attached.

use super::TierDevice;
use crate::device::attach::FindDisks;
use crate::fast::FastOptions;
use crate::medium::errors::{from_media, invalid};
use crate::medium::layout::{BLOCK, Layout, SUPERBLOCKS};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use onode_media::blockdev::replace::{ReplaceDisk, ReplaceProgress, Replacement};
use onode_media::{Error as MediumError, MediaErrorKind};
use onode_object::powers::{Copying, Replace, ReplaceState, Replaced};
use onode_object::{Error, ErrorKind, Result};

/// Blocks that are looked at in a step: 4 MiB.
const STEP_BLOCKS: u64 = 1024;

/// Where superblocks stand.
fn superblocks(layout: &Layout) -> Vec<Range<u64>> {
    let first = (0..SUPERBLOCKS).map(|block| block * BLOCK..(block + 1) * BLOCK);
    let end = layout.blocks * BLOCK;
    first.chain(core::iter::once(end..end + BLOCK)).collect()
}

fn refused(error: &MediumError) -> Error {
    match error.kind {
        MediaErrorKind::OutOfRange | MediaErrorKind::Invalid => invalid(error.detail.clone()),
        MediaErrorKind::NotFound => Error::new(ErrorKind::NotFound, error.detail.clone()),
        _ => from_media("copying to the new disk", error),
    }
}

impl TierDevice {
    fn with_parts<R>(&self, act: impl FnOnce(&mut dyn ReplaceDisk) -> onode_media::Result<R>) -> Result<R> {
        let disks = Arc::clone(self.volume.core.lock().disks());
        let mut big = disks.big.lock();
        let parts = big.replaceable().ok_or_else(|| {
            Error::new(ErrorKind::NotSupported, "this big disk was not opened as one that can be replaced")
        })?;
        act(parts).map_err(|error| refused(&error))
    }

    /// Copies what is in use of the next blocks; false if there are no more.
    fn copy_some(&self) -> Result<bool> {
        let Some(range) = self.with_parts(|parts| parts.advance(STEP_BLOCKS * BLOCK))? else { return Ok(false) };
        // What comes into use from here on is written to both disks.
        let in_use = self.volume.core.lock().space().in_use(range.start / BLOCK..range.end.div_ceil(BLOCK));
        for blocks in in_use {
            let bytes = (blocks.start * BLOCK).max(range.start)..(blocks.end * BLOCK).min(range.end);
            self.with_parts(|parts| parts.copy(bytes))?;
        }
        Ok(true)
    }

    /// The new disk has the old one's place.
    fn end_replacing(&self) -> Result<Replaced> {
        let home = self.volume.home();
        let former = self.with_parts(|parts| parts.finish())?;
        // One that the old disk could not read is written again.
        home.write_all_superblocks().map_err(|error| home.fail(error))?;
        let unreadable = former.unreadable();
        let not_cleared = former.wipe().err().map(|error| format!("{error}"));
        Ok(Replaced { unreadable, not_cleared })
    }

    /// The fast disk goes with everything brought home, and an empty one at `new` comes.
    fn replace_fast(&self, finder: &dyn FindDisks, new: &str) -> Result<()> {
        let (before, bytes) = {
            let core = self.volume.core.lock();
            core.check_writable()?;
            let mut fast = core.disks().fast.lock();
            (core.superblock().division.as_ref().map(FastOptions::of), fast.get().map(|fast| fast.disk().bytes()))
        };
        let empty = finder.fast_at(new, bytes, before)?;
        if bytes.is_some() {
            self.detach_fast()?;
        }
        self.attach_new_fast(empty).inspect_err(|_| {
            // The volume is whole without one; with the old one it is as fast as before.
            _ = finder.known().and_then(|old| self.attach_fast(old));
        })?;
        finder.fast_is_at(new);
        *self.replaced.lock() = Some(Replaced::default());
        Ok(())
    }

    fn check_size_stays(&self) -> Result<()> {
        if self.volume.core.lock().is_shrinking() {
            return Err(invalid("the volume becomes smaller just now; its disks stay until that is over"));
        }
        Ok(())
    }

    /// Refuses whoever would give the volume another size while a disk is replaced.
    pub(super) fn check_disks_stay(&self) -> Result<()> {
        match self.replace_state() {
            ReplaceState::Copying(_) => {
                Err(invalid("a disk of the volume is being replaced; its size stays until that is over"))
            }
            ReplaceState::Idle | ReplaceState::Done(_) => Ok(()),
        }
    }

    /// Who finds disks.
    pub(super) fn disk_finder(&self) -> Result<Arc<dyn FindDisks>> {
        let finder = self.finder.lock().clone();
        finder.ok_or_else(|| Error::new(ErrorKind::NotSupported, "nobody knows where other disks are"))
    }
}

impl Replace for TierDevice {
    fn disks(&self) -> Vec<String> {
        let fast = self.disk_finder().ok().and_then(|finder| finder.fast_name());
        let big = self.with_parts(|parts| Ok(parts.disk_names())).unwrap_or_default();
        fast.into_iter().chain(big).collect()
    }

    fn begin_replacing(&self, old: &str, new: &str) -> Result<()> {
        let finder = self.disk_finder()?;
        let _alone = self.replacing.lock();
        self.replaced.lock().take();
        if finder.fast_name().is_some_and(|fast| fast == old) {
            return self.replace_fast(&*finder, new);
        }
        if !self.disks().iter().any(|disk| disk == old) {
            return Err(Error::new(ErrorKind::NotFound, format!("{old} is no disk of this volume")));
        }
        self.check_size_stays()?;
        let home = self.volume.home();
        let (uuid, layout) = {
            let core = self.volume.core.lock();
            core.check_writable()?;
            (core.superblock().uuid, core.index().layout())
        };
        let (new, old, bytes) = (finder.another(new, uuid)?, String::from(old), (layout.blocks + 1) * BLOCK);
        let last = superblocks(&layout);
        self.with_parts(|parts| parts.begin(Replacement { old, new, uuid, bytes, last }))?;
        drop(home);
        // Who has it shrink looks whether a disk is replaced after that was begun.
        self.check_size_stays().inspect_err(|_| self.stop_replacing())
    }

    fn replace_some(&self) -> Result<()> {
        let _alone = self.replacing.lock();
        if self.copy_some()? {
            return Ok(());
        }
        let replaced = self.end_replacing()?;
        *self.replaced.lock() = Some(replaced);
        Ok(())
    }

    fn stop_replacing(&self) {
        // What cannot be replaced is not under way either.
        let _ = self.with_parts(|parts| {
            parts.stop();
            Ok(())
        });
    }

    fn replace_state(&self) -> ReplaceState {
        if let Some(ReplaceProgress { done, total, unreadable }) =
            self.with_parts(|parts| Ok(parts.progress())).ok().flatten()
        {
            return ReplaceState::Copying(Copying { done, total, unreadable });
        }
        self.replaced.lock().clone().map_or(ReplaceState::Idle, ReplaceState::Done)
    }
}
