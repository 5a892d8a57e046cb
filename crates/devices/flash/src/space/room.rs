//! Room: whether a transaction fits is decided before it starts, and made true by cleaning.
//!
//! Three figures rule. *Usable* bytes are what users may fill: everything but the segments that
//! checkpoints, recovery and cleaning need to be able to finish. The *reserve* is how many segments
//! must be free on the medium at any moment, so that a recovery from the newest superblock can
//! write its checkpoint. *Gaining* is one round of cleaning and a checkpoint; a foreground
//! operation stops gaining when several rounds in a row bring nothing. The next checkpoint sets an
//! emptied segment free, so nothing is moved as long as a checkpoint alone may be enough.

use crate::cleaner::pace::AHEAD_SEGMENTS;
use crate::core::Core;
use crate::policy::{Placement, Stream};
use crate::space::segments::SegmentState;
use alloc::format;
use onode_base::ErrorKind;
use onode_object::validate::Stored;
use onode_object::{AttributeKey, Error, Mutation, ObjectId, Result, Space, Transaction};

/// Index bytes that a mutation may add beside its own content: key, extent, onode.
const MUTATION_BYTES: u64 = 48;

/// Rounds without a gain after which a transaction that needs space is refused. By the figures
/// there is room for it, and somebody may have been told so: near the end many segments are moved
/// until one more is empty, and a checkpoint that opens one for itself hides what a round brought.
const FILLING_ROUNDS: u32 = 24;

/// The same for one that only frees space: it tries harder, so that what a volume took it can also
/// let go.
const FREEING_ROUNDS: u32 = 48;

/// Bytes that an extent takes in a segment summary, and its share of the nodes that its move
/// changes: whoever cleans a segment of tiny contents writes a good part of what that gains as
/// index.
const EXTENT_ITEM_BYTES: u64 = 40;

/// The same where nodes lie among content, or where contents that were never packed together have
/// no order: a segment that is cleaned gets back the nodes that its content changes, so tiny
/// contents have to leave more room.
const EXTENT_MIXED_BYTES: u64 = 64;

/// The index beyond this part of what users may fill counts twice.
const INDEX_PART: u64 = 4;

/// Bytes of the index for an extent of one page, if each has its own: key and value in a node that
/// splits have left partly empty.
const PAGE_ENTRY_BYTES: u64 = 24;

impl Core {
    pub fn segment_bytes(&self) -> u64 {
        self.log.store.layout.segment_bytes()
    }

    /// Bytes of a segment that are sure to be filled: a tree node is not divided, so up to the
    /// length of one is left at the end, and a share goes to summaries.
    pub fn filled_bytes(&self) -> u64 {
        (self.segment_bytes() - self.node_bytes as u64) / 32 * 31
    }

    /// Segments that the most expensive checkpoint may fill.
    pub fn checkpoint_segments(&self) -> u32 {
        self.segments_for_nodes(self.dirty_limit + self.dirty_limit / 2)
    }

    /// Segments that a checkpoint of what has changed by now may fill.
    pub fn checkpoint_cost(&self) -> u32 {
        self.segments_for_nodes(self.dirty_bytes() + self.deferred.memory_bytes())
    }

    /// Segments that a checkpoint with `node_bytes` of changed nodes and the whole segment table
    /// may fill.
    fn segments_for_nodes(&self, node_bytes: usize) -> u32 {
        let table = self.log.table.pieces().len() * self.log.table.piece_bytes();
        (((node_bytes + table) as u64).div_ceil(self.filled_bytes()) + 1) as u32
    }

    /// Segments that must be free on the medium at any moment.
    pub fn reserve_segments(&self) -> u32 {
        self.checkpoint_segments() + self.stream_segments()
    }

    /// Segments that users can never fill: the reserve, what waits for a checkpoint to be reusable,
    /// the journal since the last one, and working room for the cleaner.
    pub fn overhead_segments(&self) -> u32 {
        // Where everything goes to the journal, as many pages without records as with some.
        let pages = self.checkpoint_pages * if self.is_combined() { 2 } else { 1 };
        let journal = pages.div_ceil(self.log.store.layout.segment_pages) + 1;
        self.reserve_segments() + self.checkpoint_segments() + journal + 2
    }

    /// Bytes beyond what users may fill, which only what replaces content may: a full volume still
    /// takes that, and parts of what it replaces have extents of their own. Whole segments would be
    /// a good part of a small volume; but of short ones, which nodes fill badly, it is one at
    /// least.
    fn replacing_bytes(&self) -> u64 {
        const LEAST_BYTES: u64 = 64 << 10;
        let share = u64::from(self.log.store.layout.segments) * self.filled_bytes() / 128;
        share.max(self.filled_bytes().min(LEAST_BYTES))
    }

    /// Whether content and index share the journal's segments.
    pub fn is_combined(&self) -> bool {
        self.placement.placement() == Placement::Combined
    }

    /// Bytes that users may fill.
    fn usable_bytes(&self) -> u64 {
        let table = &self.log.table;
        let bad = table.in_state(SegmentState::Bad) + table.in_state(SegmentState::Failing);
        let segments = self.log.store.layout.segments.saturating_sub(bad + self.overhead_segments());
        (u64::from(segments) * self.filled_bytes()).saturating_sub(self.replacing_bytes())
    }

    /// Bytes that are filled: what is referred to, what the next checkpoint writes, and the room
    /// that each extent takes in a summary.
    fn used_bytes(&self) -> u64 {
        let index_bytes = self.log.table.index_bytes() + self.dirty_bytes() as u64;
        // Who cleans a segment of nodes writes those above them, too: where the index is a good
        // part of what there is, more than is gained before segments are filled to the end.
        let above = index_bytes.saturating_sub(self.usable_bytes() / INDEX_PART);
        self.log.table.live_bytes() + self.dirty_bytes() as u64 + above + self.extents * self.extent_bytes()
    }

    /// Bytes that an extent takes beside its content and its entry of the index.
    fn extent_bytes(&self) -> u64 {
        if self.is_combined() || !self.options.small_object_buffer { EXTENT_MIXED_BYTES } else { EXTENT_ITEM_BYTES }
    }

    /// Bytes that a page of content takes beside itself if each has an extent.
    fn page_extent_bytes(&self) -> u64 {
        self.extent_bytes() + PAGE_ENTRY_BYTES
    }

    /// Space as users see it.
    pub fn space(&self) -> Space {
        let total = self.usable_bytes();
        let used = self.used_bytes();
        let left = total.saturating_sub(used);
        // Held back: the index of what is still to come.
        let available = if self.options.extents {
            left - left / 256
        } else {
            let page_bytes = u64::from(self.log.store.layout.payload_bytes);
            left / (page_bytes + self.page_extent_bytes()) * page_bytes
        };
        let available = available.min(self.memory_allows());
        Space { total, available, objects: self.object_count() }
    }

    /// Decides whether `transaction` fits and cleans until it does.
    ///
    /// # Errors
    /// `NoSpace`; nothing has changed that anyone can see.
    pub fn make_room(&mut self, transaction: &Transaction, freeing: bool) -> Result<()> {
        let bytes = self.transaction_bytes(transaction);
        if !freeing {
            self.make_memory_room(transaction)?;
            let usable = self.usable_bytes();
            if self.used_bytes() + bytes > usable {
                // What was replaced still counts where it is deferred.
                self.settle_in_steps()?;
            }
            if self.used_bytes() + bytes > usable && self.dirty_bytes() > 0 {
                // Changed nodes take more in memory than they will on the medium: what was promised
                // by the figures after a checkpoint is not refused by those before one.
                self.set_free()?;
            }
            let used = self.used_bytes();
            if used + bytes > usable {
                let replaced = self.replaced_bytes(transaction)?;
                let most = if replaced > 0 { usable + self.replacing_bytes() } else { usable };
                if used + bytes.saturating_sub(replaced) > most {
                    return Err(no_space(bytes, usable.saturating_sub(used)));
                }
            }
        }
        let filled = bytes + self.padding_bytes(transaction) + self.node_room(transaction);
        let needed = filled.div_ceil(self.filled_bytes()) as u32;
        if self.has_room(needed) {
            return Ok(());
        }
        self.settle_in_steps()?;
        if !freeing && needed > self.most_room() {
            return Err(no_space(bytes, 0));
        }
        let (mut without_progress, mut best) = (0, self.free_bytes());
        while !self.has_room(needed) {
            // What was cleaned before may only wait for a checkpoint. Policies look ahead; what
            // gives back most at once is taken when they do not help.
            let waits = without_progress % 2 == 0 && self.may_have_room(needed);
            // Of the reserve only what is cheapest may take.
            let greedy = without_progress > 0 || !self.has_room(0);
            let gained = if waits { self.set_free()? } else { self.gain(greedy)? };
            let gained = gained && self.free_bytes() > best;
            best = best.max(self.free_bytes());
            without_progress = if gained { 0 } else { without_progress + 1 };
            // What frees space may use the reserve; it is there for that.
            if freeing && without_progress > 0 && self.log.table.allocatable() > self.checkpoint_cost() + needed + 1 {
                return Ok(());
            }
            if without_progress >= if freeing { FREEING_ROUNDS } else { FILLING_ROUNDS } {
                return Err(no_space(bytes, 0));
            }
        }
        Ok(())
    }

    /// The most bytes that `transaction` may fill.
    pub fn transaction_bytes(&self, transaction: &Transaction) -> u64 {
        let content = |one: &Mutation| if let Mutation::Write { data, .. } = one { data.len() as u64 } else { 0 };
        self.index_bytes(transaction) + transaction.mutations.iter().map(content).sum::<u64>()
    }

    /// Bytes that `transaction` gives up for others in their place, content and attributes; 0 if it
    /// adds anything that was not there, so that what is new never takes the room for what
    /// replaces.
    fn replaced_bytes(&mut self, transaction: &Transaction) -> Result<u64> {
        let mut bytes = 0;
        for mutation in &transaction.mutations {
            bytes += match mutation {
                Mutation::Write { data, .. } if data.is_empty() => 0,
                Mutation::Write { object, offset, data } => {
                    let until = offset.saturating_add(data.len() as u64);
                    let extents = self.extents(*object, *offset, until, usize::MAX)?;
                    let held = extents.iter().map(|one| one.end().min(until) - one.offset.max(*offset)).sum::<u64>();
                    if held < data.len() as u64 {
                        return Ok(0);
                    }
                    held
                }
                Mutation::SetAttribute { object, key, value } => {
                    match self.attribute_bytes(*object, *key)? {
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

    /// The most bytes that `transaction` may leave empty at the ends of pages where nothing shares
    /// them, until the cleaner packs what is in front of them.
    fn padding_bytes(&self, transaction: &Transaction) -> u64 {
        if self.options.small_object_buffer {
            return 0;
        }
        let writes = transaction.mutations.iter().filter(|one| matches!(one, Mutation::Write { .. })).count();
        // A page for each, and the one of the record.
        (writes as u64 + 1) * u64::from(self.log.store.layout.payload_bytes)
    }

    /// The most bytes that `transaction` may add to the index.
    fn index_bytes(&self, transaction: &Transaction) -> u64 {
        let added = |one: &Mutation| match one {
            // Content takes an extent in each segment, or page, that it fills.
            Mutation::Write { data, .. } if self.options.extents => {
                MUTATION_BYTES * (1 + data.len() as u64 / self.segment_bytes())
            }
            Mutation::Write { data, .. } => {
                let pages = data.len() as u64 / u64::from(self.log.store.layout.payload_bytes);
                MUTATION_BYTES + pages * self.page_extent_bytes()
            }
            Mutation::SetAttribute { value, .. } => MUTATION_BYTES + value.len() as u64,
            _ => MUTATION_BYTES,
        };
        transaction.mutations.iter().map(added).sum()
    }

    /// Whether there will be room for `needed` segments after a checkpoint.
    fn will_have_room(&self, needed: u32) -> bool {
        let table = &self.log.table;
        let reclaimable = table.reclaimable(self.log.journal_position().1);
        table.allocatable().saturating_sub(self.checkpoint_cost()) + reclaimable >= self.reserve_segments() + needed
    }

    /// Segments beyond the reserve that there would be if everything were packed without a gap.
    fn most_room(&self) -> u32 {
        let table = &self.log.table;
        let bad = table.in_state(SegmentState::Bad) + table.in_state(SegmentState::Failing);
        let live = table.live_bytes().div_ceil(self.segment_bytes()) as u32;
        self.log.store.layout.segments.saturating_sub(bad + live + self.reserve_segments())
    }

    /// Whether there may be room for `needed` segments after a checkpoint, without any cleaning.
    fn may_have_room(&self, needed: u32) -> bool {
        let table = &self.log.table;
        let reclaimable = table.reclaimable(self.log.journal_position().1);
        reclaimable > 0 && table.allocatable() + reclaimable >= self.reserve_segments() + needed
    }

    /// Bytes of nodes that a large transaction changes before the next checkpoint can write them:
    /// one for each mutation, but no more than there are and come to be.
    fn node_room(&self, transaction: &Transaction) -> u64 {
        let mutations = transaction.mutations.len().saturating_sub(64) as u64;
        if mutations == 0 {
            return 0;
        }
        let entries = self.index_bytes(transaction);
        let index: u64 = self
            .log
            .table
            .iter()
            .filter(|(_, one)| one.stream == Stream::Index || (self.is_combined() && one.stream == Stream::Journal))
            .map(|(_, one)| u64::from(one.live_bytes))
            .sum();
        (mutations * self.node_bytes as u64).min(2 * (index + self.dirty_bytes() as u64 + entries))
    }

    /// Whether `needed` segments can be opened and the reserve stays.
    pub fn has_room(&self, needed: u32) -> bool {
        let table = &self.log.table;
        // What a mount found held is free as soon as its session begins to write.
        let held = if self.session_begun { 0 } else { table.in_state(SegmentState::Held) };
        table.allocatable() + held >= self.reserve_segments() + needed
    }

    /// Bytes on segments that are free now or after a checkpoint, and in open ones of the cleaner.
    pub fn free_bytes(&self) -> u64 {
        let table = &self.log.table;
        let segments = table.allocatable() + table.reclaimable(self.log.journal_position().1);
        u64::from(segments) * self.segment_bytes() + self.moving_room()
    }

    /// Bytes that what the cleaner writes takes before it opens a segment.
    pub fn moving_room(&self) -> u64 {
        self.log.moving_room(self.placement.placement())
    }

    /// Bytes that the cleaner may move and leave `reserve` segments free.
    fn cleaning_budget(&self, reserve: u32) -> u64 {
        match self.log.table.allocatable().checked_sub(reserve) {
            // What the open cold segment takes costs no free one.
            Some(free) => (u64::from(free) * self.segment_bytes() + self.moving_room()) / 4 * 3,
            None => 0,
        }
    }

    /// Bytes that the cleaner may move and leave room for any checkpoint.
    pub fn comfortable_budget(&self) -> u64 {
        self.cleaning_budget(self.checkpoint_segments() + 1)
    }

    /// One round: cleans a few segments and writes a checkpoint. False if there was nothing to
    /// clean.
    fn gain(&mut self, greedy: bool) -> Result<bool> {
        self.log.store.check_writable()?;
        let mut cleaned = false;
        for _ in 0..AHEAD_SEGMENTS {
            let reclaimable = self.log.table.reclaimable(self.log.journal_position().1);
            if reclaimable >= AHEAD_SEGMENTS || (cleaned && self.will_have_room(1)) {
                break;
            }
            let (comfortable, tight) = (self.comfortable_budget(), self.cleaning_budget(self.checkpoint_cost()));
            // Into the reserve only when nothing else helps, and then one segment at a time.
            if !self.clean_one(greedy, comfortable)? && (cleaned || !self.clean_one(greedy, tight)?) {
                break;
            }
            cleaned = true;
        }
        if !cleaned && self.log.table.reclaimable(self.log.journal_position().1) == 0 {
            // A checkpoint would only fill more.
            return Ok(false);
        }
        Ok(self.set_free()? || cleaned)
    }

    /// A checkpoint, which sets free what the cleaner emptied. False if no segment is free after
    /// it.
    pub fn set_free(&mut self) -> Result<bool> {
        self.prepare_writing()?;
        self.checkpoint(false)?;
        Ok(self.log.table.allocatable() > 0)
    }

    /// The fewest segments that a volume of this layout works with.
    pub fn least_segments(&self) -> u32 {
        self.overhead_segments() + 4
    }

    /// Whether segments are so few that those of the journal have to be set free as soon as
    /// planned.
    pub fn is_tight(&self) -> bool {
        let splits = self.placement.placement() != Placement::Combined;
        splits && self.log.table.allocatable() <= 2 * self.overhead_segments()
    }

    /// Whether background cleaning is useful: less than an eighth of the segments is free.
    pub fn wants_cleaning(&self) -> bool {
        let layout = &self.log.store.layout;
        self.log.table.allocatable() < self.overhead_segments() + layout.segments / 8
    }
}

impl Stored for Core {
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>> {
        self.entry(&crate::index::tree::Key::attribute(object, key), <[u8]>::len)
    }

    fn solid_bytes(&mut self, object: ObjectId) -> Result<Option<u64>> {
        let onode = self.onode(object)?.filter(|onode| onode.allocated == onode.size);
        Ok(onode.map(|onode| onode.size))
    }
}

fn no_space(wanted: u64, left: u64) -> Error {
    Error::new(ErrorKind::NoSpace, format!("{wanted} bytes are wanted, {left} are left"))
}
