//! The cleaner of the log: what the oldest segment still says is said again at the end, then the
//! segment is free.
//!
//! A segment goes only when all that it still says is durable elsewhere, so that a crash at any
//! moment finds every item at least once. It decides when to clean and for whom; what counts of a
//! segment is decided in [`segment`], and how much room the log keeps in
//! [`log::room`](crate::log::room).

pub mod segment;

use crate::clean::segment::{Live, LiveEntry, Repeated, Segment};
use crate::index::Index;
use crate::index::node::Value;
use crate::log::chain::Chain;
use crate::log::place::Place;
use crate::log::room::KEPT_SEGMENTS;
use crate::medium::errors::{damaged, no_space};
use crate::medium::format::salt_of;
use crate::persist::Persistence;
use onode_media::Pmem;
use onode_object::{Mutation, Result, Transaction};

/// The cleaner, and what it did since the device was opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cleaner {
    /// The log is read as far as it is sound: what was lost in it is consented to.
    salvages: bool,
    bytes_moved: u64,
    segments_cleaned: u64,
}

impl Cleaner {
    /// Bytes of items that were said again.
    pub(crate) const fn bytes_moved(&self) -> u64 {
        self.bytes_moved
    }

    pub(crate) const fn segments_cleaned(&self) -> u64 {
        self.segments_cleaned
    }

    /// Cleans while the log is too long, at most a few segments a time.
    pub(crate) fn shorten_log<P: Pmem>(&mut self, index: &Index<P>, store: &mut Persistence<P>) -> Result<()> {
        let mut rounds = 0;
        while rounds < 2 && store.log().is_long() {
            if !self.clean_segment(index, store)? {
                break;
            }
            rounds += 1;
        }
        if store.log().spare() < KEPT_SEGMENTS {
            store.refill_log();
        }
        Ok(())
    }

    /// Frees the oldest segment; false if that is not possible now.
    pub(crate) fn clean_segment<P: Pmem>(&mut self, index: &Index<P>, store: &mut Persistence<P>) -> Result<bool> {
        if store.log().segments().len() <= 1 {
            return Ok(false);
        }
        let (oldest, length) = (store.log().segments().first(), store.chunk_bytes());
        let salt = salt_of(&store.superblock().uuid);
        let mut live = Live::default();
        store.begin(&mut live.batch);
        let segment = Segment::read(store.memory(), oldest, length, salt)?;
        let next = live.add(index, &segment, salt, self.salvages)?;
        let after = Segment::read(store.memory(), Chain::after(store.memory(), oldest), length, salt)?;
        if next < after.first_record() && !self.salvages {
            // What cannot be read must not be let go.
            return Err(damaged(format!("record {next} of the log, in the segment at byte {oldest}")));
        }
        let Live { mut batch, mut repeated } = live;
        // Without a segment in store the log goes on in the one that this frees, once it is free.
        let (log, is_lent) = (store.log(), store.log().is_oldest_lent());
        let in_store = log.spare() + usize::from(!is_lent);
        if log.segments_for(&batch) > log.spare() && log.exact_segments_for(&batch) > in_store {
            return Ok(false);
        }
        if !batch.is_empty() {
            store.append_repeated(&mut batch, (!is_lent).then_some(oldest), |number, place| {
                if let Some(item) = repeated.get_mut(number) {
                    item.now = place;
                }
            })?;
        }
        self.publish(index, store, &repeated);
        self.segments_cleaned += 1;
        store.retire_oldest()?;
        Ok(true)
    }

    /// Has the index refer to the items where they were said again.
    fn publish<P: Pmem>(&mut self, index: &Index<P>, store: &mut Persistence<P>, repeated: &[Repeated]) {
        for Repeated { entry, now } in repeated {
            if let Some(LiveEntry { key, before, second }) = entry {
                index.replace(*key, Value(now.0, *second));
                // An item is shorter where it need not name its object.
                store.count_repeated(before.bytes(), now.bytes());
            }
        }
        self.bytes_moved += repeated.iter().map(|item: &Repeated| Place::bytes(item.now)).sum::<u64>();
    }

    /// Cleans until `is_enough`; reads no segment twice.
    fn clean_until<P: Pmem>(
        &mut self,
        index: &Index<P>,
        store: &mut Persistence<P>,
        is_enough: impl Fn(&Persistence<P>) -> bool,
    ) -> Result<()> {
        for _ in 0..store.log().segments().len() {
            if is_enough(store) || !self.clean_segment(index, store)? {
                break;
            }
        }
        Ok(())
    }

    /// Cleans until the usual number of segments is in store, for what may not be refused.
    pub(crate) fn fill_store<P: Pmem>(&mut self, index: &Index<P>, store: &mut Persistence<P>) -> Result<()> {
        self.clean_until(index, store, |store| store.log().spare() >= KEPT_SEGMENTS)
    }

    /// Has the log get its usual room in a memory that was full when it was opened.
    pub(crate) fn make_log_room<P: Pmem>(&mut self, index: &Index<P>, store: &mut Persistence<P>) -> Result<()> {
        if store.log().is_oldest_lent() && !self.clean_segment(index, store)? {
            return Err(no_space("no room is left for the log"));
        }
        self.fill_store(index, store)
    }

    /// Says again all that counts of a log in which something was lost, with consent: it has no
    /// damage afterwards.
    pub(crate) fn rewrite_damaged<P: Pmem>(&mut self, index: &Index<P>, store: &mut Persistence<P>) -> Result<()> {
        self.salvages = true;
        for _ in 1..store.log().segments().len() {
            if !self.clean_segment(index, store)? {
                return Err(no_space("no room is left to say again what the damaged log says"));
            }
        }
        self.salvages = false;
        Ok(())
    }

    /// Space that a fence or a cleaning can give back now for a transaction; whether there was any.
    pub(crate) fn gain_space<P: Pmem>(
        &mut self,
        index: &Index<P>,
        store: &mut Persistence<P>,
        transaction: &Transaction,
    ) -> Result<bool> {
        let (free, spare) = (store.blocks().free_bytes(), store.log().spare());
        store.release_all_deferred()?;
        store.trim_log();
        let (for_all, for_log) = (store.log().surplus(true), store.log().surplus(false));
        let bytes: usize = transaction.mutations.iter().map(content_bytes).sum();
        let segments = 2 + bytes as u64 / store.chunk_bytes();
        if for_all > 0 {
            let enough = store.blocks().free_bytes() + segments.min(for_all) * store.chunk_bytes();
            self.clean_until(index, store, |store| store.blocks().free_bytes() >= enough)?;
        } else if for_log > 0 {
            let enough = KEPT_SEGMENTS + segments.min(for_log) as usize;
            self.clean_until(index, store, |store| store.log().spare() >= enough)?;
        }
        store.release_all_deferred()?;
        store.refill_log();
        Ok(store.blocks().free_bytes() > free || store.log().spare() > spare)
    }
}

/// Bytes that a mutation brings.
fn content_bytes(mutation: &Mutation) -> usize {
    match mutation {
        Mutation::Write { data, .. } => data.len(),
        Mutation::SetAttribute { value, .. } => value.len(),
        _ => 0,
    }
}
