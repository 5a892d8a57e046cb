//! Access times that no onode has yet (paper 1, section IV: *split+atime*).
//!
//! They are kept in memory, one for each object, and in a log ([`crate::log::access`]). They go
//! over into the onodes when an onode changes anyway, and all of them when there are too many, when
//! their log has grown long, and before a clean close. Like a move of the cleaner that changes the
//! index without a record: until a checkpoint has written the onodes, the log still has the times.
//!
//! After a cut an object has any of the times set since the last one covered: a time that an onode
//! took over may not have reached the log.

use crate::index::Index;
use crate::index::apply::{AccessTimes, Onode};
use crate::log::Log;
use crate::medium::format::{ACCESS_ENTRY_BYTES, PageKind};
use crate::medium::page::{Examined, PageFault};
use crate::medium::pages::VerifiedPage;
use crate::policy::Stream;
use crate::space::segments::SegmentState;
use crate::volume::Volume;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_object::{Mutation, ObjectId, Result, SyncScope, Transaction};

impl Volume<'_> {
    /// Lets the onodes take over what has become too much: more than `most` times.
    pub fn shed_access_times(&mut self, most: usize) -> Result<()> {
        let is_long = self.log.access().is_long();
        if !is_long && self.index.access_times().len() <= most {
            return Ok(());
        }
        self.merge_access_times()?;
        if is_long { self.checkpoint() } else { Ok(()) }
    }

    /// Lets the onodes take over everything, with checkpoints in between as the cleaner has them.
    pub fn merge_access_times(&mut self) -> Result<()> {
        while let Some((&object, _)) = self.index.access_times().first_key_value() {
            if self.index.dirty_bytes() > self.room().cleaning_dirty_limit() {
                self.checkpoint()?;
            }
            match self.index.onode(self.log, object) {
                Ok(Some(onode)) => self.index.set_onode(self.log, object, &onode)?,
                Ok(None) if is_planted(Bug::AccessTimeOfRemoved) => {
                    self.index.set_onode(self.log, object, &Onode::default())?;
                }
                // An onode that cannot be read takes nothing.
                Ok(None) => {}
                Err(error) if error.kind == ErrorKind::Corrupt => {}
                Err(error) => return Err(error),
            }
            self.index.access_times_mut().remove(&object);
        }
        Ok(())
    }

    /// Ends the log if it may have times of an object that `transaction` makes again: the new one
    /// was never read, and a mount could not tell them apart. `most` is as above.
    pub fn forget_times_of_remade(&mut self, transaction: &Transaction, most: usize) -> Result<()> {
        let names = |object: &ObjectId| self.log.access().names_gone(*object) || removes(transaction, *object);
        let all = &transaction.mutations;
        let again = || all.iter().any(|one| matches!(one, Mutation::Create { object, .. } if names(object)));
        if !self.log.access().names_any() || !again() || is_planted(Bug::AccessTimeOfRemade) {
            return Ok(());
        }
        self.prepare_writing()?;
        self.log.access_mut().end();
        self.shed_access_times(most)
    }

    /// Takes an access time that was just set.
    pub fn note_access_time(&mut self, object: ObjectId, time: u64) -> Result<()> {
        self.index.access_times_mut().insert(object, time);
        self.log.append_access_time(object, time)
    }

    /// Programs the access times that `scope` covers.
    pub fn sync_access_times(&mut self, scope: SyncScope) -> Result<()> {
        let object = match scope {
            SyncScope::All => None,
            SyncScope::Object(object) => Some(object),
        };
        if self.log.access().waits(object) && !is_planted(Bug::AccessTimesUnsynced) {
            self.log.store().latch().check()?;
            self.log.program_access_times()?;
        }
        Ok(())
    }

    /// Whether an access time that `transaction` sets goes to the log: there it could be taken for
    /// one of the object that was there before.
    pub fn logs_access_time(&self, object: ObjectId, remade: &[ObjectId]) -> bool {
        self.log.logs_access_times() && !remade.contains(&object)
    }

    /// Reads the log of access times.
    pub fn replay_access_times(&mut self) -> Result<()> {
        let is_log = |state| matches!(state, SegmentState::Open | SegmentState::Failing);
        let table = self.log.table().iter();
        let mut segments: Vec<(u32, u32)> = table
            .filter(|(_, one)| one.stream == Stream::Atime && is_log(one.state))
            .map(|(segment, one)| (one.sequence, segment))
            .collect();
        segments.sort_unstable();
        let mut found = AccessTimes::new();
        for &(sequence, segment) in &segments {
            for page in 0..self.access_pages(segment, sequence)? {
                let Examined::Sound(page) = self.access_page(segment, sequence, page)? else { continue };
                let entries = page.payload.chunks_exact(ACCESS_ENTRY_BYTES).map(entry);
                found.extend(entries.filter(|(object, _)| *object != 0).map(|(object, time)| (ObjectId(object), time)));
            }
        }
        for (object, time) in found {
            if is_planted(Bug::AccessTimeOfRemoved) || self.index.onode(self.log, object)?.is_some() {
                self.index.access_times_mut().insert(object, time);
            }
        }
        self.log.access_mut().resume(segments.into_iter().map(|(_, segment)| segment).collect());
        Ok(())
    }

    /// The page after the last one of a segment of the log that was programmed.
    fn access_pages(&mut self, segment: u32, sequence: u32) -> Result<u32> {
        let (mut low, mut high) = (0, self.log.layout().segment_pages);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.access_page(segment, sequence, middle)? {
                Examined::Unsound(PageFault::Erased | PageFault::Sequence { .. }) => high = middle,
                _ => low = middle + 1,
            }
        }
        Ok(low)
    }

    fn access_page(&mut self, segment: u32, sequence: u32, page: u32) -> Result<Examined<VerifiedPage>> {
        let found = self.log.examine(self.log.layout().page(Stream::Atime, segment, page), Some(sequence))?;
        Ok(match found {
            // Whatever else stands there is not of this log.
            Examined::Sound(page) if page.info.kind != PageKind::Atime => Examined::Unsound(PageFault::Erased),
            found => found,
        })
    }
}

/// Memory that access times take.
pub fn access_bytes(index: &Index, log: &Log) -> usize {
    // About what an entry takes in the map.
    index.access_times().len() * 32 + log.access().memory_bytes()
}

/// Whether `transaction` sets an access time.
pub fn sets_access_times(transaction: &Transaction) -> bool {
    transaction.mutations.iter().any(|one| matches!(one, Mutation::SetAccessTime { .. }))
}

/// Whether `transaction` removes `object`.
fn removes(transaction: &Transaction, object: ObjectId) -> bool {
    transaction.mutations.iter().any(|one| matches!(one, Mutation::Remove { object: gone } if *gone == object))
}

/// The objects that `transaction` removes and makes again.
pub fn remade(transaction: &Transaction) -> Vec<ObjectId> {
    let made = transaction.mutations.iter().filter_map(|one| match one {
        Mutation::Create { object, .. } => Some(*object),
        _ => None,
    });
    made.filter(|object| removes(transaction, *object)).collect()
}

fn entry(bytes: &[u8]) -> (u64, u64) {
    let number = |from: usize| {
        let part = bytes.get(from..from + 8).and_then(|part| part.try_into().ok());
        part.map_or(0, u64::from_le_bytes)
    };
    (number(0), number(8))
}
