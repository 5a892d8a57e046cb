//! How far the commits of a volume are: which have a record, and on which disk they are durable.
//!
//! What it keeps true: a commit counts as durable on a disk only when that disk was flushed behind
//! its record, or when a durable checkpoint has it. None of the numbers goes back.

use crate::log::need::Need;

/// How far the commits are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// The newest commit that has a record.
    appended: u64,
    /// The newest commit that is durable on the big disk.
    on_big: u64,
    /// The newest commit that is durable on the fast disk, or needs not be there.
    on_fast: u64,
}

impl Progress {
    /// Whether a commit has a record that is as durable as this says.
    #[must_use]
    pub const fn has(&self, commit: u64, need: Need) -> bool {
        commit <= self.appended
            && (!need.big || commit <= self.on_big)
            && (!need.fast || commit <= self.on_fast)
            && (!need.either || commit <= self.on_big || commit <= self.on_fast)
    }

    /// The newest commit that has a record.
    #[must_use]
    pub const fn appended(&self) -> u64 {
        self.appended
    }

    /// Whether the big disk has not made durable all that has a record.
    #[must_use]
    pub const fn lacks_on_big(&self) -> bool {
        self.on_big < self.appended
    }

    /// Commits up to this one have a record.
    pub const fn append(&mut self, commits: u64) {
        self.appended = commits;
    }

    /// The big disk has made commits up to this one durable.
    pub fn is_on_big(&mut self, commits: u64) {
        self.on_big = self.on_big.max(commits);
    }

    /// The fast disk has made durable all that has a record.
    pub const fn all_on_fast(&mut self) {
        self.on_fast = self.appended;
    }

    /// A checkpoint that has commits up to this one is durable.
    pub fn covers(&mut self, commits: u64) {
        self.appended = self.appended.max(commits);
        self.on_big = self.on_big.max(commits);
        self.on_fast = self.on_fast.max(commits);
    }
}
