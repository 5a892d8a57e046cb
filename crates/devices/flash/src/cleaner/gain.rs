//! Gaining room: whether a transaction fits is decided before it starts, and made true by cleaning.
//!
//! The figures are those of [`crate::space::room`]. The next checkpoint sets an emptied segment
//! free, so nothing is moved as long as a checkpoint alone may be enough.

use crate::cleaner::Cleaner;
use crate::cleaner::pace::AHEAD_SEGMENTS;
use crate::commit::compact::PAGES_MAX;
use crate::space::room::MUTATION_BYTES;
use crate::volume::Volume;
use alloc::collections::BTreeMap;
use alloc::format;
use onode_base::ErrorKind;
use onode_object::validate::Stored;
use onode_object::{Error, Hints, Mutation, ObjectId, Result, Transaction};

/// Rounds without a gain after which a transaction that needs space is refused. By the figures
/// there is room for it, and somebody may have been told so: near the end many segments are moved
/// until one more is empty, and a checkpoint that opens one for itself hides what a round brought.
const FILLING_ROUNDS: u32 = 24;

/// The same for one that only frees space: it tries harder, so that what a volume took it can also
/// let go.
const FREEING_ROUNDS: u32 = 48;

impl Cleaner {
    /// Decides whether `transaction` fits and cleans until it does.
    ///
    /// # Errors
    /// `NoSpace`; nothing has changed that anyone can see.
    pub fn make_room(&mut self, volume: &mut Volume<'_>, transaction: &Transaction, freeing: bool) -> Result<()> {
        let bytes = volume.room().transaction_bytes(transaction);
        if !freeing {
            self.make_memory_room(volume, transaction)?;
            let usable = volume.room().usable_bytes();
            if volume.room().used_bytes() + bytes > usable {
                // What was replaced still counts where it is deferred.
                volume.apply_deferred_in_steps()?;
            }
            if volume.room().used_bytes() + bytes > usable && volume.index.dirty_bytes() > 0 {
                // Changed nodes take more in memory than they will on the medium: what was promised
                // by the figures after a checkpoint is not refused by those before one.
                volume.set_free()?;
            }
            let used = volume.room().used_bytes();
            if used + bytes > usable {
                let replaced = self.replaced_bytes(volume, transaction)?;
                let most = if replaced > 0 { usable + volume.room().replacing_bytes() } else { usable };
                let taken = bytes.saturating_sub(replaced.max(spared_bytes(volume, transaction)?));
                if used + taken > most {
                    return Err(no_space(bytes, usable.saturating_sub(used)));
                }
            }
        }
        let needed = volume.room().needed_segments(transaction);
        if volume.room().has_room(needed) {
            return Ok(());
        }
        volume.apply_deferred_in_steps()?;
        if !freeing && needed > volume.room().most_room() {
            return Err(no_space(bytes, 0));
        }
        self.gain_segments(volume, needed, freeing)?.then_some(()).ok_or_else(|| no_space(bytes, 0))
    }

    /// Cleans until `needed` segments can be opened; false if that does not come to pass.
    pub fn gain_segments(&mut self, volume: &mut Volume<'_>, needed: u32, freeing: bool) -> Result<bool> {
        let (mut without_progress, mut best) = (0, volume.room().free_bytes());
        while !volume.room().has_room(needed) {
            // What was cleaned before may only wait for a checkpoint. Policies look ahead; what
            // gives back most at once is taken when they do not help.
            let waits = without_progress % 2 == 0 && volume.room().may_have_room(needed);
            // Of the reserve only what is cheapest may take.
            let greedy = without_progress > 0 || !volume.room().has_room(0);
            let gained = if waits { volume.set_free()? } else { self.gain(volume, greedy)? };
            let gained = gained && volume.room().free_bytes() > best;
            best = best.max(volume.room().free_bytes());
            without_progress = if gained { 0 } else { without_progress + 1 };
            // What frees space may use the reserve; it is there for that.
            if freeing
                && without_progress > 0
                && volume.log.table().allocatable() > volume.room().checkpoint_cost() + needed + 1
            {
                return Ok(true);
            }
            if without_progress >= if freeing { FREEING_ROUNDS } else { FILLING_ROUNDS } {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes sure that the memory has room for what a transaction may add, unless entries may stay
    /// on flash alone. Only what makes objects is refused: content of those that exist was promised
    /// a place, and if it is worst it is found on flash alone.
    ///
    /// # Errors
    /// `NoSpace`; nothing has changed that anyone can see.
    fn make_memory_room(&mut self, volume: &mut Volume<'_>, transaction: &Transaction) -> Result<()> {
        let mutations = &transaction.mutations;
        if volume.checkpoints.spills()
            || volume.index.entries().memory().is_none()
            || !mutations.iter().any(|one| matches!(one, Mutation::Create { .. }))
        {
            return Ok(());
        }
        // Those of a large transaction mostly go to the same buckets; should they not, they stay on
        // flash alone.
        let changes = mutations.len().min(8);
        let is_full = |volume: &Volume<'_>| volume.index.entries().memory().is_some_and(|bpram| bpram.is_full(changes));
        if is_full(volume) {
            volume.set_free()?;
            if is_full(volume) {
                let detail = "the memory beside the flash is full; remove files, or give it a larger one";
                return Err(Error::new(ErrorKind::NoSpace, detail));
            }
        }
        Ok(())
    }

    /// Bytes that `transaction` gives up for others in their place, content and attributes; 0 if it
    /// adds anything that was not there, so that what is new never takes the room for what
    /// replaces.
    fn replaced_bytes(&mut self, volume: &mut Volume<'_>, transaction: &Transaction) -> Result<u64> {
        let mut bytes = 0;
        if transaction.mutations.iter().any(|one| matches!(one, Mutation::Move { .. })) {
            // What moves away is not given up.
            return Ok(0);
        }
        for mutation in &transaction.mutations {
            bytes += match mutation {
                Mutation::Write { data, .. } if data.is_empty() => 0,
                Mutation::Write { object, offset, data } => {
                    let until = offset.saturating_add(data.len() as u64);
                    let extents = volume.index.extents(volume.log, *object, *offset..until, usize::MAX)?;
                    let held = extents.iter().map(|one| one.end().min(until) - one.offset.max(*offset)).sum::<u64>();
                    if held < data.len() as u64 {
                        return Ok(0);
                    }
                    held
                }
                Mutation::SetAttribute { object, key, value } => {
                    match volume.attribute_bytes(*object, *key)? {
                        Some(held) if held >= value.len() => MUTATION_BYTES + value.len() as u64,
                        // An inode that notes down another time may take some bytes more.
                        Some(held) if value.len() - held <= MUTATION_BYTES as usize => MUTATION_BYTES + held as u64,
                        _ => return Ok(0),
                    }
                }
                Mutation::Create { .. } => return Ok(0),
                _ => MUTATION_BYTES,
            };
        }
        Ok(bytes)
    }

    /// One round: cleans a few segments and writes a checkpoint. False if there was nothing to
    /// clean.
    fn gain(&mut self, volume: &mut Volume<'_>, greedy: bool) -> Result<bool> {
        volume.log.store().latch().check()?;
        let mut cleaned = false;
        for _ in 0..AHEAD_SEGMENTS {
            let reclaimable = volume.log.reclaimable();
            if reclaimable >= AHEAD_SEGMENTS || (cleaned && volume.room().will_have_room(1)) {
                break;
            }
            let (comfortable, tight) =
                (volume.room().comfortable_budget(), volume.room().cleaning_budget(volume.room().checkpoint_cost()));
            // Into the reserve only when nothing else helps, and then one segment at a time.
            if !self.clean_one(volume, greedy, comfortable)? && (cleaned || !self.clean_one(volume, greedy, tight)?) {
                break;
            }
            cleaned = true;
        }
        if !cleaned && volume.log.reclaimable() == 0 {
            // A checkpoint would only fill more.
            return Ok(false);
        }
        Ok(volume.set_free()? || cleaned)
    }
}

/// How many of the bytes that `transaction` writes need no room, as they go to rows with less
/// parity than the most: room is counted in rows with the most.
fn spared_bytes(volume: &mut Volume<'_>, transaction: &Transaction) -> Result<u64> {
    let layout = *volume.log.layout();
    if layout.chosen_parity.is_none() || volume.log.is_combined() {
        return Ok(0);
    }
    let least = u64::from(layout.row_pages(layout.parity_pages as u8));
    let mut wishes: BTreeMap<ObjectId, Hints> = BTreeMap::new();
    let mut spared = 0;
    for mutation in &transaction.mutations {
        match mutation {
            Mutation::Create { object, hints } | Mutation::SetHints { object, hints } => {
                wishes.insert(*object, *hints);
            }
            Mutation::Write { object, data, .. } => {
                // What is short may go to the journal, which has the most.
                let pages = data.len() as u64 / u64::from(layout.payload_bytes);
                if pages <= PAGES_MAX as u64 {
                    continue;
                }
                let hints = match wishes.get(object) {
                    Some(hints) => *hints,
                    None => volume.index.onode(volume.log, *object)?.map_or_else(Hints::default, |onode| onode.hints),
                };
                wishes.insert(*object, hints);
                let columns = u64::from(layout.row_pages(layout.parity_for(hints.parity_pages)));
                let bytes = pages * u64::from(layout.payload_bytes);
                spared += bytes - (bytes * least).div_ceil(columns);
            }
            _ => {}
        }
    }
    Ok(spared)
}

fn no_space(wanted: u64, left: u64) -> Error {
    Error::new(ErrorKind::NoSpace, format!("{wanted} bytes are wanted, {left} are left"))
}
