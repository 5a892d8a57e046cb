//! The parts of a device behind one lock: who composes them, and who asks several of them at once.
//!
//! Whenever nobody holds the lock, the index agrees with the log and the space with both. Each part
//! keeps its own state; transactions are in [`commit`], and what processes tell each other in
//! [`handover`].

pub mod commit;
pub mod handover;

use crate::clean::Cleaner;
use crate::commit::lists::Lists;
use crate::index::Index;
use crate::log::losses::Losses;
use crate::persist::Persistence;
use crate::persist::mode::Mode;
use crate::recover::open::Opened;
use crate::share::words::SharedWords;
use crate::space::Blocks;
use onode_media::Pmem;
use onode_object::{Maintenance, Result, Space};
use std::sync::Arc;

/// The parts.
pub(crate) struct Core<P: Pmem> {
    memory: Arc<P>,
    index: Index<P>,
    store: Persistence<P>,
    cleaner: Cleaner,
    /// Lists for the next transaction, if none has them.
    lists: Option<Box<Lists>>,
    shared: SharedWords,
    /// How often it was found that others had committed something.
    others_commits: u64,
    /// How often a process died with the lock and another made everything anew.
    recoveries: u64,
    /// What was missing or damaged when it was opened.
    losses: Losses,
}

impl<P: Pmem> Core<P> {
    /// Of what a device begins with.
    pub(crate) fn new(memory: Arc<P>, opened: Opened, blocks: Blocks<P>, mode: Mode) -> Self {
        let Opened { superblock, tree, objects, log, losses } = opened;
        Self {
            index: Index::new(Arc::clone(&memory), tree, objects, superblock.next_id),
            store: Persistence::new(Arc::clone(&memory), superblock, log, blocks, mode),
            memory,
            cleaner: Cleaner::default(),
            lists: None,
            shared: SharedWords::unknown(),
            others_commits: 0,
            recoveries: 0,
            losses,
        }
    }

    /// The memory.
    pub(crate) const fn memory(&self) -> &Arc<P> {
        &self.memory
    }

    /// Where things are.
    #[inline]
    pub(crate) const fn index(&self) -> &Index<P> {
        &self.index
    }

    /// What is durable.
    #[inline]
    pub(crate) const fn store(&self) -> &Persistence<P> {
        &self.store
    }

    /// The same to change it, which concerns no object.
    #[inline]
    pub(crate) const fn store_mut(&mut self) -> &mut Persistence<P> {
        &mut self.store
    }

    /// What cleaned the log.
    pub(crate) const fn cleaner(&self) -> &Cleaner {
        &self.cleaner
    }

    /// What was missing or damaged when it was opened.
    pub(crate) const fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Makes a mounted device one that accepts changes: what is damaged in its log goes, and the
    /// log has its usual room.
    pub(crate) fn begin_changes(&mut self) -> Result<()> {
        if self.losses.is_loss() {
            self.cleaner.rewrite_damaged(&self.index, &mut self.store)?;
        }
        self.cleaner.make_log_room(&self.index, &mut self.store)
    }

    /// The room of the device.
    pub(crate) fn room(&self) -> Space {
        self.store.room(self.index.objects())
    }

    /// Frees what dead processes have left.
    pub(crate) fn sweep_dead(&self) {
        self.store.blocks().sweep_dead();
    }

    /// Does what nobody waits for, at most `budget` segments of it.
    pub(crate) fn maintain(&mut self, budget: u32) -> Result<Maintenance> {
        self.store.latch().check()?;
        self.sweep_dead();
        // Nobody waits now, and a heap may be short of what transactions gave up.
        if budget > 0 && self.store.space().has_deferred() {
            self.store.release_all_deferred()?;
        }
        let mut done = 0;
        let spared = 4 * self.store.chunk_bytes();
        while done < budget
            && self.store.log().surplus_bytes() > spared
            && self.cleaner.clean_segment(&self.index, &mut self.store)?
        {
            done += 1;
        }
        Ok(Maintenance { done, more: done == budget && budget > 0 })
    }
}
