//! What a mount would lose, and whether that is consented to.
//!
//! The big disk knows whether the fast one may hold changes that were acknowledged and never came
//! home: it says so, durably, before the first of them is acknowledged, and takes it back when the
//! volume is closed in order. Whoever mounts and cannot have them is told what is missing, before
//! anything is changed.

use crate::core::Core;
use crate::medium::superblock::Superblock;
use alloc::format;
use alloc::string::String;
use onode_object::{Acknowledge, Condition, Error, ErrorKind, Result, Severity};

impl Core {
    /// Less is there than was promised: an error, or a note if that is consented to.
    ///
    /// # Errors
    /// `Loss`.
    pub fn miss(&mut self, what: String) -> Result<()> {
        if !self.options.accept_loss {
            return Err(Error::new(ErrorKind::Loss, what));
        }
        let text = format!("mounted with consent to this loss: {what}");
        self.reports.push(Condition::new("loss-accepted", Severity::Notice, text));
        // A checkpoint of what there is: what else stands in the logs is asked for once.
        self.commits.mark_dirty();
        Ok(())
    }

    /// The fast disk is not there, or not as it was, because of `why`.
    ///
    /// # Errors
    /// `Loss` if it may hold what the big disk has not.
    pub fn miss_fast(&mut self, why: &str) -> Result<()> {
        match what_is_missing(self.anchors.get(), why) {
            Some(what) => self.miss(what),
            None => Ok(()),
        }
    }

    /// Whether changes of the whole volume return as soon as the fast disk has them.
    #[must_use]
    pub fn leans_on_fast(&self) -> bool {
        let rules = [self.options.acknowledge, self.anchors.get().acknowledge];
        rules.into_iter().find(|rule| *rule != Acknowledge::Volume) == Some(Acknowledge::Either)
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
