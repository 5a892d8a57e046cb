//! Access times that no onode has yet (paper 1, section IV: *split+atime*).
//!
//! They are kept in memory, one for each object, and in a log ([`crate::log::access`]). They go
//! over into the onodes when an onode changes anyway, and all of them when there are too many, when
//! their log has grown long, and before a clean close. Like a move of the cleaner that changes the
//! index without a record: until a checkpoint has written the onodes, the log still has the times.
//!
//! After a cut an object has any of the times set since the last one covered: a time that an onode
//! took over may not have reached the log.

use crate::core::Core;
use crate::index::apply::Onode;
use crate::medium::format::{ACCESS_ENTRY_BYTES, PageKind};
use crate::medium::layout::SegmentPage;
use crate::medium::page::PageFault;
use crate::medium::pages::VerifiedPage;
use crate::policy::{Placement, Stream};
use crate::space::segments::SegmentState;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::{Mutation, ObjectId, Result, SyncScope, Transaction};

/// Access times that no onode has yet.
pub type Pending = BTreeMap<ObjectId, u64>;

impl Core {
    /// Whether access times go to a log of their own.
    pub fn logs_access_times(&self) -> bool {
        self.placement.placement() == Placement::SplitAtime
    }

    /// Memory that access times take.
    pub fn access_bytes(&self) -> usize {
        // About what an entry takes in the map.
        self.pending_access.len() * 32 + self.log.access.memory_bytes()
    }

    /// Takes an access time that was just set.
    pub fn note_access_time(&mut self, object: ObjectId, time: u64) -> Result<()> {
        self.pending_access.insert(object, time);
        self.log.append_access_time(object, time)
    }

    /// Programs the access times that `scope` covers.
    pub fn sync_access_times(&mut self, scope: SyncScope) -> Result<()> {
        let object = match scope {
            SyncScope::All => None,
            SyncScope::Object(object) => Some(object),
        };
        if self.log.access.waits(object) && !is_planted(Bug::AccessTimesUnsynced) {
            self.log.store.check_writable()?;
            self.log.program_access_times()?;
        }
        Ok(())
    }

    /// Lets the onodes take over what has become too much.
    pub fn shed_access_times(&mut self) -> Result<()> {
        let is_long = self.log.access.is_long();
        if !is_long && self.pending_access.len() <= self.options.pending_access_times {
            return Ok(());
        }
        self.merge_access_times()?;
        if is_long { self.checkpoint(false) } else { Ok(()) }
    }

    /// Lets the onodes take over everything, with checkpoints in between as the cleaner has them.
    pub fn merge_access_times(&mut self) -> Result<()> {
        while let Some((&object, _)) = self.pending_access.first_key_value() {
            if self.dirty_bytes() > self.cleaning_dirty_limit() {
                self.checkpoint(false)?;
            }
            match self.onode(object) {
                Ok(Some(onode)) => self.set_onode(object, &onode)?,
                Ok(None) if is_planted(Bug::AccessTimeOfRemoved) => self.set_onode(object, &Onode::default())?,
                // An onode that cannot be read takes nothing.
                Ok(None) => {}
                Err(error) if error.kind == ErrorKind::Corrupt => {}
                Err(error) => return Err(error),
            }
            self.pending_access.remove(&object);
        }
        Ok(())
    }

    /// Ends the log if it may have times of an object that `transaction` makes again: the new one
    /// was never read, and a mount could not tell them apart.
    pub fn forget_times_of_remade(&mut self, transaction: &Transaction) -> Result<()> {
        let names = |object: &ObjectId| self.log.access.names_gone(*object) || removes(transaction, *object);
        let all = &transaction.mutations;
        let again = || all.iter().any(|one| matches!(one, Mutation::Create { object, .. } if names(object)));
        if !self.log.access.names_any() || !again() || is_planted(Bug::AccessTimeOfRemade) {
            return Ok(());
        }
        self.prepare_writing()?;
        self.log.access.end();
        self.shed_access_times()
    }

    /// Whether an access time that `transaction` sets goes to the log: there it could be taken for
    /// one of the object that was there before.
    pub fn logs_access_time(&self, object: ObjectId, remade: &[ObjectId]) -> bool {
        self.logs_access_times() && !remade.contains(&object)
    }

    /// Whether `transaction` sets an access time.
    pub fn sets_access_times(transaction: &Transaction) -> bool {
        transaction.mutations.iter().any(|one| matches!(one, Mutation::SetAccessTime { .. }))
    }

    /// Reads the log of access times.
    pub fn replay_access_times(&mut self) -> Result<()> {
        let is_log = |state| matches!(state, SegmentState::Open | SegmentState::Failing);
        let table = self.log.table.iter();
        let mut segments: Vec<(u32, u32)> = table
            .filter(|(_, one)| one.stream == Stream::Atime && is_log(one.state))
            .map(|(segment, one)| (one.sequence, segment))
            .collect();
        segments.sort_unstable();
        let mut found = Pending::new();
        for &(sequence, segment) in &segments {
            for page in 0..self.access_pages(segment, sequence)? {
                let Ok(page) = self.access_page(segment, sequence, page)? else { continue };
                let entries = page.payload.chunks_exact(ACCESS_ENTRY_BYTES).map(entry);
                found.extend(entries.filter(|(object, _)| *object != 0).map(|(object, time)| (ObjectId(object), time)));
            }
        }
        for (object, time) in found {
            if is_planted(Bug::AccessTimeOfRemoved) || self.onode(object)?.is_some() {
                self.pending_access.insert(object, time);
            }
        }
        self.log.access.resume(segments.into_iter().map(|(_, segment)| segment).collect());
        Ok(())
    }

    /// The page after the last one of a segment of the log that was programmed.
    fn access_pages(&mut self, segment: u32, sequence: u32) -> Result<u32> {
        let (mut low, mut high) = (0, self.log.store.layout.segment_pages);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.access_page(segment, sequence, middle)? {
                Err(PageFault::Erased | PageFault::Sequence { .. }) => high = middle,
                _ => low = middle + 1,
            }
        }
        Ok(low)
    }

    fn access_page(
        &mut self,
        segment: u32,
        sequence: u32,
        page: u32,
    ) -> Result<core::result::Result<VerifiedPage, PageFault>> {
        let address = self.log.store.layout.address(SegmentPage { segment, page });
        let found = self.log.store.examine(address, Some(sequence), IoTag::Recovery)?;
        // Whatever else stands there is not of this log.
        Ok(found.and_then(|page| if page.info.kind == PageKind::Atime { Ok(page) } else { Err(PageFault::Erased) }))
    }
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
