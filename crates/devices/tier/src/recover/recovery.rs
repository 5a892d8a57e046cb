//! What a mount found: what is missing and was consented to, what people should know, and what was
//! dropped because it is damaged.
//!
//! The big disk knows whether the fast one may hold changes that were acknowledged and never came
//! home: it says so, durably, before the first of them is acknowledged, and takes it back when the
//! volume is closed in order. Whoever mounts and cannot have them is told what is missing, before
//! anything is changed.
//!
//! What it does not do: look at the disks, or decide which log counts.

use crate::log::commits::Commits;
use crate::medium::superblock::Superblock;
use crate::recover::salvaged::Salvaged;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_object::{Condition, Error, ErrorKind, Result, Severity};

/// Figures of a mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryFigures {
    /// Records of the log that only the fast disk had.
    pub recovered_from_fast: u64,
    /// Records of the fast disk that belong to another history and were dropped.
    pub records_dropped: u64,
    /// Times that a disk was found not to have what it said it had.
    pub lies: u64,
    /// Commits found in the log.
    pub replayed: u64,
}

/// What a mount found.
#[derive(Debug, Default)]
pub struct Recovery {
    /// Less than was promised is consented to.
    accepts_loss: bool,
    /// What people should know.
    reports: Vec<Condition>,
    /// What was dropped because it is damaged.
    salvaged: Salvaged,
    figures: RecoveryFigures,
}

impl Recovery {
    /// Nothing yet; a loss is consented to if `accepts_loss`.
    #[must_use]
    pub fn new(accepts_loss: bool) -> Self {
        Self { accepts_loss, ..Self::default() }
    }

    /// Figures of the mount.
    #[must_use]
    pub const fn figures(&self) -> &RecoveryFigures {
        &self.figures
    }

    /// What people should know.
    #[must_use]
    pub fn reports(&self) -> &[Condition] {
        &self.reports
    }

    /// What was dropped because it is damaged.
    #[must_use]
    pub const fn salvaged(&self) -> &Salvaged {
        &self.salvaged
    }

    /// The same, for who drops something.
    pub const fn salvaged_mut(&mut self) -> &mut Salvaged {
        &mut self.salvaged
    }

    /// People should know this.
    pub fn report(&mut self, told: Condition) {
        self.reports.push(told);
    }

    /// Only the fast disk had so many records.
    pub const fn count_from_fast(&mut self, records: u64) {
        self.figures.recovered_from_fast = records;
    }

    /// A transaction of the log was applied.
    pub const fn count_replayed(&mut self) {
        self.figures.replayed += 1;
    }

    /// A disk does not have what it said it had.
    pub const fn count_lie(&mut self) {
        self.figures.lies += 1;
    }

    /// So many records of the fast disk do not count.
    pub fn drop_records(&mut self, count: u64, why: &str) {
        if count > 0 {
            self.figures.records_dropped += count;
            let text = format!("{count} records of the fast disk were dropped: {why}");
            self.report(Condition::new("records-dropped", Severity::Notice, text));
        }
    }

    /// Less is there than was promised: an error, or a note if that is consented to. Then there is
    /// something for a checkpoint among the `commits`: what else stands in the logs is asked for
    /// once.
    ///
    /// # Errors
    /// `Loss`.
    pub fn miss(&mut self, what: String, commits: &mut Commits) -> Result<()> {
        if !self.accepts_loss {
            return Err(Error::new(ErrorKind::Loss, what));
        }
        let text = format!("mounted with consent to this loss: {what}");
        self.report(Condition::new("loss-accepted", Severity::Notice, text));
        commits.mark_dirty();
        Ok(())
    }
}

/// What a mount without the fast disk would lack; `None` if the big disk has everything.
#[must_use]
pub fn what_is_missing(superblock: &Superblock, why: &str) -> Option<String> {
    let fast = &superblock.fast;
    (fast.is_attached && fast.leans).then(|| {
        let (session, newest) = (fast.session, superblock.tail.sequence);
        format!(
            "{why}; since session {session} it has taken changes that were acknowledged as soon as it had them, and the volume \
             was not closed since: how many of them the big disk has not is not known (the last checkpoint has {newest} records)"
        )
    })
}
