//! The state at a mount and when the fast disk is lost: what is missing, what is damaged, and the
//! log replayed.
//!
//! What it keeps true: what a log holds is checked before it is applied. Nothing is written here.
//!
//! What it does not do: decide which log counts, see [`mount`](crate::recover::mount).

use crate::core::Core;
use crate::log::change::Change;
use crate::medium::errors::damaged;
use crate::recover::recovery::{Recovery, what_is_missing};
use crate::recover::salvage::Salvager;
use crate::space::extent::Extent;
use alloc::string::String;
use onode_object::{Error, ErrorKind, Mutation, ObjectId, Result, Transaction};

impl Core {
    /// What a mount found, for who finds it.
    pub const fn recovery_mut(&mut self) -> &mut Recovery {
        &mut self.recovery
    }

    /// Less is there than was promised, see [`Recovery::miss`].
    ///
    /// # Errors
    /// `Loss` without consent.
    pub fn miss(&mut self, what: String) -> Result<()> {
        self.recovery.miss(what, &mut self.commits)
    }

    /// The fast disk is not there, or not as it was, because of `why`.
    ///
    /// # Errors
    /// `Loss` if it may hold what the big disk has not.
    pub fn miss_fast(&mut self, why: &str) -> Result<()> {
        match what_is_missing(self.checkpoints.superblock(), why) {
            Some(what) => self.miss(what),
            None => Ok(()),
        }
    }

    /// Takes out of the checkpoint what is damaged, and counts what is left.
    ///
    /// # Errors
    /// `Media`, `Corrupt` if the medium reads otherwise than before.
    pub fn drop_damaged(&mut self) -> Result<()> {
        self.salvager().drop_damaged()
    }

    /// What goes on without what is damaged.
    fn salvager(&mut self) -> Salvager<'_> {
        let (applier, recovery) = self.applying();
        Salvager { applier, salvaged: recovery.salvaged_mut() }
    }

    /// Takes over a transaction from the log.
    ///
    /// # Errors
    /// `Corrupt` if it cannot be one that was logged here.
    pub fn replay(&mut self, changes: &[(Change, usize)]) -> Result<()> {
        for (change, _) in changes {
            if let Change::Placed { extents, .. } = change {
                self.take_places(extents)?;
            }
            if let Change::Plain(mutation) = change {
                check_logged(mutation)?;
                if matches!(mutation, Mutation::Create { .. }) {
                    self.index.note_id(mutation.object());
                }
            }
            match self.applier().apply(change) {
                Err(error) if self.options.drop_damaged => self.salvager().redo(change, error)?,
                done => done?,
            }
        }
        self.commits.mark_dirty();
        self.recovery.count_replayed();
        Ok(())
    }

    /// The blocks of these extents are in use from now on.
    fn take_places(&mut self, extents: &[Extent]) -> Result<()> {
        for extent in extents {
            let count = extent.blocks();
            if !self.space.claim(extent.block, count) {
                return Err(damaged("the log names blocks that are in use"));
            }
        }
        Ok(())
    }

    /// A record of so many transactions was replayed. Blocks of replaced nodes stay until the
    /// checkpoint.
    pub fn has_replayed(&mut self, transactions: u32) {
        self.space.give_up_nodes(self.index.take_freed());
        self.commits.replayed(transactions);
    }

    /// A transaction of `changes` was taken from a payload of `length` bytes, which begins at byte
    /// `at` of the fast disk: memory need not hold more of it than it should.
    pub fn let_go_of_replayed(&mut self, changes: &[(Change, usize)], at: u64, length: usize) {
        self.buffers.let_go_of_replayed(changes, at, length);
    }

    /// The log was replayed, and a session begins, later than all before and than `after`.
    pub fn begin_session(&mut self, after: u64) {
        self.checkpoints.begin_session(after);
    }

    /// The log was replayed in memory, and nothing changes any more.
    pub fn stay_read_only(&mut self) {
        self.latch.close();
    }

    /// Whether the fast disk took part until it was lost just now.
    #[must_use]
    pub fn has_lost_fast(&self) -> bool {
        self.checkpoints.superblock().fast.is_attached
            && !self.disks.fast.lock().is_there()
            && self.latch.why().is_none()
    }

    /// What only the log of the fast disk had is gone with it. The big disk has the whole volume of
    /// before that, which the next mount finds.
    ///
    /// # Errors
    /// `Media` if there was anything.
    pub fn let_nothing_be_lost(&mut self) -> Result<()> {
        if self.has_spilled() {
            let why = "the fast disk failed with changes that only its log had; mount the volume again without it";
            return Err(self.latch.fail(Error::new(ErrorKind::Media, why)));
        }
        Ok(())
    }

    /// Whether only the log of the fast disk has some content.
    #[must_use]
    pub fn has_spilled(&self) -> bool {
        self.buffers.pending().is_spilled() || self.disks.waiting.lock().has_far()
    }
}

/// What a log holds was checked before it was written; a forged one must not get further.
fn check_logged(mutation: &Mutation) -> Result<()> {
    let most = Transaction::MAX_OBJECT_BYTES;
    let is_sound = match mutation {
        Mutation::Write { offset, data, .. } => offset.checked_add(data.len() as u64).is_some_and(|end| end <= most),
        Mutation::Truncate { size, .. } => *size <= most,
        Mutation::Move { object, to, .. } => object != to && object.origin() == to.origin(),
        Mutation::SetAttribute { value, .. } => value.len() <= Transaction::MAX_ATTRIBUTE_BYTES,
        _ => true,
    };
    if is_sound && mutation.object() < ObjectId::FIRST_OF_DEVICE {
        return Ok(());
    }
    Err(damaged("the log holds a change that cannot be"))
}
