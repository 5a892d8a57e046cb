//! Superblocks written: two copies at the start of the big disk, one after the other, and one at
//! its end.
//!
//! What it keeps true: one copy is durable before the other is touched, so that a cut never finds
//! both half written. Which is written first alternates. The second write of a time needs no flush:
//! it is over the copy that is not relied upon. Nobody acts on what a superblock is to say before
//! it is durable.

use crate::commit::home::Home;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::Result;

impl Home<'_> {
    /// Writes the superblock and waits for it. The copy that was waited for last is written last.
    ///
    /// # Errors
    /// `Media`.
    pub fn write_superblock(&self) -> Result<()> {
        let (_, first) = self.write_first_copy()?;
        if !is_planted(Bug::TierSuperblocksAtOnce) {
            self.disks.flush()?;
        }
        self.write_second_copy(first)
    }

    /// The same, with the copy at the end of the disk, and waits for all of them.
    ///
    /// # Errors
    /// `Media`.
    pub fn write_all_superblocks(&self) -> Result<()> {
        self.write_superblock()?;
        let disk = self.disks.big.lock().bytes();
        let (far, bytes) = {
            let core = self.volume.core.lock();
            (core.superblock().layout.far_copy(disk), core.superblock().encode())
        };
        match far {
            Some(far) => {
                self.disks.write(far, &bytes, IoTag::Anchor)?;
                self.disks.flush()
            }
            None => Ok(()),
        }
    }

    /// The same for copies that were missing or damaged when the volume was mounted.
    ///
    /// # Errors
    /// `Media`.
    pub fn restore_superblocks(&self) -> Result<()> {
        self.write_all_superblocks().map_err(|error| self.fail(error))
    }

    /// Something changes after the volume was closed: no superblock says that it is, before that
    /// change is durable.
    ///
    /// # Errors
    /// `Media`.
    pub fn reopen(&self) -> Result<()> {
        {
            let core = &mut *self.volume.core.lock();
            if !core.anchors_mut().open() {
                return Ok(());
            }
        }
        self.write_all_superblocks().map_err(|error| self.fail(error))?;
        self.volume.core.lock().anchors_mut().is_opened();
        Ok(())
    }

    /// Says that the volume is closed in order, if the big disk has everything.
    ///
    /// # Errors
    /// `Media`.
    pub fn write_closed(&self) -> Result<()> {
        {
            let (log, core) = (self.volume.log.lock(), &mut *self.volume.core.lock());
            // Somebody may have changed something meanwhile.
            if core.commits().is_dirty() || log.is_under_way() {
                return Ok(());
            }
            core.anchors_mut().close();
        }
        self.write_all_superblocks().map_err(|error| self.fail(error))
    }

    /// Says on the big disk that from now on the fast one may hold changes that were acknowledged
    /// and that it has not.
    ///
    /// # Errors
    /// `Media` of the big disk.
    pub fn lean_on_fast(&self) -> Result<()> {
        {
            let core = &mut *self.volume.core.lock();
            if !core.anchors_mut().lean() {
                return Ok(());
            }
        }
        self.write_superblock()?;
        self.volume.core.lock().anchors_mut().leans();
        Ok(())
    }

    /// Writes a newer superblock over the copy that may not be durable. Returns its sequence, and
    /// which copy that is.
    ///
    /// # Errors
    /// `Media`.
    pub fn write_first_copy(&self) -> Result<(u64, u64)> {
        let (sequence, first, bytes) = self.volume.core.lock().anchors_mut().next_copy();
        self.disks.write(first, &bytes, IoTag::Anchor)?;
        Ok((sequence, first))
    }

    /// The first copy is durable: writes the same over the other.
    ///
    /// # Errors
    /// `Media`.
    pub fn write_second_copy(&self, first: u64) -> Result<()> {
        let bytes = self.volume.core.lock().anchors_mut().copy_is_durable(first);
        self.disks.write(1 - first, &bytes, IoTag::Anchor)
    }
}
