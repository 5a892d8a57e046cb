//! The single-threaded state machine behind the device: it composes the parts, and is the only one
//! that names all of them.
//!
//! Each part owns its state: [`Log`], [`Index`], [`Checkpoints`], [`Cleaner`], [`Recovery`]. Log,
//! index and checkpoints are lent to those above as a [`Volume`].

mod commit;
mod grow;
mod large;
mod mount;
mod refresh;
mod shrink;

pub use commit::MOVE_UNIT;
pub use mount::mount_beside;

use crate::cleaner::Cleaner;
use crate::commit::checkpoint::Checkpoints;
use crate::commit::compact::Rhythm;
use crate::commit::sync::Ticket;
use crate::index::Index;
use crate::index::beside::FindMemory;
use crate::log::Log;
use crate::options::MountOptions;
use crate::recover::replay::Recovery;
use crate::space::room::Room;
use crate::volume::Volume;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_media::Nand;
use onode_object::{Condition, Result};
use shrink::Shrinking;

/// The device's state.
pub struct Core {
    /// Streams, segments, medium.
    log: Log,
    /// The index.
    index: Index,
    /// Who finds the memory when it is to take part again.
    finder: Option<Arc<dyn FindMemory>>,
    /// What happened to the volume at its mount, for who watches over it.
    events: Vec<Condition>,
    /// The volume was taken up from the memory, and nobody has seen yet that the flash is the one
    /// it belongs to.
    unconfirmed: bool,
    /// Options of this mount.
    options: MountOptions,
    /// What is on the medium, and what may be reused.
    checkpoints: Checkpoints,
    /// What makes room.
    cleaner: Cleaner,
    /// What the mount found behind the newest checkpoint.
    recovery: Recovery,
    /// Whether commits are likely to be synced one by one.
    rhythm: Rhythm,
    /// The last sync that was asked for.
    tickets: Ticket,
    /// The volume is becoming smaller.
    shrinking: Option<Shrinking>,
    /// Transactions committed.
    commits: u64,
    /// Bytes of content that users wrote.
    bytes_written: u64,
}

impl Core {
    /// The figures of the volume now.
    pub fn room(&self) -> Room<'_> {
        Room::new(&self.log, &self.index, self.checkpoints.settings())
    }

    /// Streams, segments, medium.
    pub const fn log(&self) -> &Log {
        &self.log
    }

    /// What finds objects and their content.
    pub const fn index(&self) -> &Index {
        &self.index
    }

    /// What is on the medium, and what may be reused.
    pub const fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }

    /// What makes room.
    pub const fn cleaner(&self) -> &Cleaner {
        &self.cleaner
    }

    /// What the mount found behind the newest checkpoint.
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// What happened to the volume at its mount, and since to its parts.
    pub fn events(&self) -> &[Condition] {
        &self.events
    }

    /// Options of this mount.
    pub const fn options(&self) -> &MountOptions {
        &self.options
    }

    /// The last sync that was asked for.
    pub const fn tickets(&self) -> Ticket {
        self.tickets
    }

    /// Transactions committed, and bytes of content that users wrote.
    pub const fn written(&self) -> (u64, u64) {
        (self.commits, self.bytes_written)
    }

    /// Who finds the memory when it is to take part again.
    pub fn finder(&self) -> Option<Arc<dyn FindMemory>> {
        self.finder.clone()
    }

    /// Says who finds the memory.
    pub fn set_finder(&mut self, finder: Arc<dyn FindMemory>) {
        self.finder = Some(finder);
    }

    /// Asks or changes the index.
    pub fn with_index<T>(&mut self, ask: impl FnOnce(&mut Index, &mut Log) -> T) -> T {
        ask(&mut self.index, &mut self.log)
    }

    /// What a mount found, and the volume that it is about.
    pub fn recovery_parts(&mut self) -> (&mut Recovery, Volume<'_>) {
        let Self { recovery, log, index, checkpoints, .. } = self;
        (recovery, Volume { log, index, checkpoints })
    }

    /// The cleaner, and the volume that it works on.
    pub fn parts(&mut self) -> (&mut Cleaner, Volume<'_>) {
        let Self { cleaner, log, index, checkpoints, .. } = self;
        (cleaner, Volume { log, index, checkpoints })
    }

    /// Log, index and checkpoints.
    pub fn volume(&mut self) -> Volume<'_> {
        self.parts().1
    }

    /// The medium, as it is: what is in memory alone is given up.
    pub fn into_nand(self) -> Box<dyn Nand> {
        self.log.into_nand()
    }

    /// Writes a checkpoint. A `clean` one has everything in the tree.
    pub fn checkpoint(&mut self, clean: bool) -> Result<()> {
        if clean {
            let (cleaner, mut volume) = self.parts();
            while cleaner.move_doubtful(&mut volume)? {}
            self.volume().merge_access_times()?;
            self.volume().apply_deferred_in_steps()?;
        }
        self.checkpoints.write(&mut self.index, &mut self.log, clean)
    }

    /// The first write of a session, see [`Checkpoints::prepare_writing`].
    pub fn prepare_writing(&mut self) -> Result<()> {
        self.checkpoints.prepare_writing(&mut self.index, &mut self.log)
    }

    /// Whether enough has changed for a checkpoint.
    pub fn checkpoint_is_due(&self) -> bool {
        self.checkpoints.is_due(&self.index, &self.log)
    }

    /// Brings everything to a state from which the next mount needs no recovery.
    pub fn close(&mut self) -> Result<()> {
        if self.log.store().latch().why().is_some() {
            return Ok(());
        }
        if self.checkpoints.is_clean() && self.log.doubtful_segment().is_none() {
            return self.checkpoints.close_memory(&mut self.index, &mut self.log);
        }
        self.checkpoint(true)?;
        self.checkpoints.write_last_superblock(&mut self.index, &mut self.log)
    }
}
