//! Room: the figures by which is decided whether a transaction fits, before it starts.
//!
//! Three figures rule. *Usable* bytes are what users may fill: everything but the segments that
//! checkpoints, recovery and cleaning need to be able to finish. The *reserve* is how many segments
//! must be free on the medium at any moment, so that a recovery from the newest superblock can
//! write its checkpoint. *Gaining* is one round of cleaning and a checkpoint; a foreground
//! operation stops gaining when several rounds in a row bring nothing ([`crate::cleaner::gain`]).
//!
//! They are computed from the log, the index and a few settings, and change nothing.

mod tight;

use crate::index::Index;
use crate::log::Log;
use crate::policy::Stream;
use crate::space::segments::SegmentState;
use onode_object::{Mutation, Space, Transaction};

/// Index bytes that a mutation may add beside its own content: key, extent, onode.
pub const MUTATION_BYTES: u64 = 48;

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

/// Bytes of changed nodes for an extent that moves to another object: its entry in the node that
/// loses it and in the one that gets it, both perhaps partly empty.
const MOVED_EXTENT_BYTES: u64 = 64;

/// No more than this part of what users could fill is left for what other classes leave unfilled.
const UNFILLED_PART: u32 = 8;

/// So many mutations may each change a node of its own before the next checkpoint: what is held for
/// it has room for these.
pub const MUTATIONS_AT_ONCE: usize = 64;

/// What the figures depend on beside the state of the volume.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// An extent may be longer than a page.
    pub has_runs: bool,
    /// Small contents share pages.
    pub packs: bool,
    /// Journal pages after which a checkpoint is due.
    pub checkpoint_pages: u32,
    /// The session has begun to write: nothing is held for the checkpoint before any more.
    pub session_begun: bool,
}

/// The figures of a volume at one moment.
pub struct Room<'a> {
    log: &'a Log,
    index: &'a Index,
    settings: Settings,
    /// Segments that users may fill, if checkpoints need none, and how many of them are bad or will
    /// be.
    segments: u32,
    bad: u32,
    dirty_limit: usize,
}

impl<'a> Room<'a> {
    /// The figures of a volume now.
    pub fn new(log: &'a Log, index: &'a Index, settings: Settings) -> Self {
        let (table, segments) = (log.table(), log.table().planned_segments());
        let bad = if table.has_ended() {
            table.in_state(SegmentState::Bad) + table.in_state(SegmentState::Failing)
        } else {
            table.bad_before(segments)
        };
        let dirty_limit = index.entries().limits().dirty_bytes;
        Self { log, index, settings, segments, bad, dirty_limit }
    }

    /// The figures as they would be with `segments` segments, where nodes that change take at most
    /// `dirty_limit` bytes and a checkpoint is due after `checkpoint_pages`.
    pub fn resized(self, segments: u32, dirty_limit: usize, checkpoint_pages: u32) -> Self {
        let bad = self.log.table().bad_before(segments);
        let settings = Settings { checkpoint_pages, ..self.settings };
        Self { segments, bad, dirty_limit, settings, ..self }
    }

    /// Whether a volume with these figures works, and has room for what there is, and some to move
    /// it.
    pub fn is_enough(&self) -> bool {
        let sound = self.segments.saturating_sub(self.bad);
        let needed = self.used_bytes() + self.used_bytes() / 32 + 2 * self.segment_bytes();
        sound >= self.least_segments() && needed <= self.usable_bytes()
    }

    fn node_bytes(&self) -> usize {
        self.index.entries().limits().node_bytes
    }

    /// Bytes of a segment.
    pub fn segment_bytes(&self) -> u64 {
        self.log.layout().segment_bytes()
    }

    /// Bytes of a segment that are sure to be filled: a tree node is not divided, so up to the
    /// length of one is left at the end, and a share goes to summaries.
    pub fn filled_bytes(&self) -> u64 {
        (self.segment_bytes() - self.node_bytes() as u64) / 32 * 31
    }

    /// Segments that the most expensive checkpoint may fill.
    pub fn checkpoint_segments(&self) -> u32 {
        self.segments_for_nodes(self.dirty_limit + self.dirty_limit / 2)
    }

    /// Segments that a checkpoint of what has changed by now may fill.
    pub fn checkpoint_cost(&self) -> u32 {
        self.segments_for_nodes(self.index.dirty_bytes() + self.index.deferred_stored_bytes())
    }

    /// Segments that a checkpoint with `node_bytes` of changed nodes and the whole segment table
    /// may fill.
    fn segments_for_nodes(&self, node_bytes: usize) -> u32 {
        let table = self.log.table().pieces().len() * self.log.table().piece_bytes();
        // A long table is written in rounds, each of which ends in a segment of its own.
        let rounds = if self.log.table().is_long() { 4 } else { 1 };
        (((node_bytes + table) as u64).div_ceil(self.filled_bytes()) + rounds) as u32
    }

    /// Segments that must be free on the medium at any moment.
    pub fn reserve_segments(&self) -> u32 {
        self.checkpoint_segments() + self.log.stream_segments()
    }

    /// Segments that users can never fill: the reserve, what waits for a checkpoint to be reusable,
    /// the journal since the last one, and working room for the cleaner.
    pub fn overhead_segments(&self) -> u32 {
        // Where everything goes to the journal, as many pages without records as with some.
        let pages = self.settings.checkpoint_pages * if self.log.is_combined() { 2 } else { 1 };
        let journal = pages.div_ceil(self.log.layout().segment_pages) + 1;
        self.reserve_segments() + self.checkpoint_segments() + journal + 2
    }

    /// Bytes beyond what users may fill, which only what replaces content may: a full volume still
    /// takes that, and parts of what it replaces have extents of their own. Whole segments would be
    /// a good part of a small volume; but of short ones, which nodes fill badly, it is one at
    /// least. So is what other classes leave unfilled.
    pub fn replacing_bytes(&self) -> u64 {
        const LEAST_BYTES: u64 = 64 << 10;
        let share = u64::from(self.segments) * self.filled_bytes() / 128;
        share.max(self.filled_bytes().min(LEAST_BYTES)) + self.unfilled_bytes()
    }

    /// Bytes that may be free in open segments of classes to which nobody writes just now. Small
    /// volumes have no more than some of that to give.
    fn unfilled_bytes(&self) -> u64 {
        let most = self.segments.saturating_sub(self.bad + self.overhead_segments()) / UNFILLED_PART;
        u64::from(self.log.unfilled_segments().min(most)) * self.filled_bytes()
    }

    /// Bytes that users may fill.
    pub fn usable_bytes(&self) -> u64 {
        let segments = self.segments.saturating_sub(self.bad + self.overhead_segments());
        (u64::from(segments) * self.filled_bytes()).saturating_sub(self.replacing_bytes())
    }

    /// Bytes that are filled: what is referred to, what the next checkpoint writes, and the room
    /// that each extent takes in a summary.
    pub fn used_bytes(&self) -> u64 {
        let index_bytes = self.log.table().index_bytes() + self.index.dirty_bytes() as u64;
        // Who cleans a segment of nodes writes those above them, too: where the index is a good
        // part of what there is, more than is gained before segments are filled to the end.
        let above = index_bytes.saturating_sub(self.usable_bytes() / INDEX_PART);
        self.log.table().packed_bytes()
            + self.index.dirty_bytes() as u64
            + above
            + self.index.counts().extents * self.extent_bytes()
    }

    /// Bytes that an extent takes beside its content and its entry of the index.
    fn extent_bytes(&self) -> u64 {
        if self.log.is_combined() || !self.settings.packs { EXTENT_MIXED_BYTES } else { EXTENT_ITEM_BYTES }
    }

    /// Bytes that a page of content takes beside itself if each has an extent.
    fn page_extent_bytes(&self) -> u64 {
        self.extent_bytes() + PAGE_ENTRY_BYTES
    }

    /// Space as users see it, with content of at most `allowed` bytes more. Where objects choose
    /// their parity, it is that of content with the usual one.
    pub fn space(&self, allowed: u64) -> Space {
        let total = self.usable_bytes();
        let used = self.used_bytes();
        let left = total.saturating_sub(used);
        // Held back: the index of what is still to come.
        let available = if self.settings.has_runs {
            left - left / 256
        } else {
            let page_bytes = u64::from(self.log.layout().payload_bytes);
            left / (page_bytes + self.page_extent_bytes()) * page_bytes
        };
        let usual = |bytes| self.log.layout().chosen().map_or(bytes, |chosen| chosen.bytes_of_usual(bytes));
        let (total, available) = (usual(total), usual(available).min(allowed));
        Space { total, available, objects: self.index.object_count() }
    }

    /// The most bytes that `transaction` may fill.
    pub fn transaction_bytes(&self, transaction: &Transaction) -> u64 {
        let content = |one: &Mutation| if let Mutation::Write { data, .. } = one { data.len() as u64 } else { 0 };
        self.index_bytes(transaction) + transaction.mutations.iter().map(content).sum::<u64>()
    }

    /// The most bytes that `transaction` may leave empty at the ends of pages where nothing shares
    /// them, until the cleaner packs what is in front of them.
    pub fn padding_bytes(&self, transaction: &Transaction) -> u64 {
        if self.settings.packs {
            return 0;
        }
        let writes = transaction.mutations.iter().filter(|one| matches!(one, Mutation::Write { .. })).count();
        // A page for each, and the one of the record.
        (writes as u64 + 1) * u64::from(self.log.layout().payload_bytes)
    }

    /// The most bytes that `transaction` may add to the index.
    fn index_bytes(&self, transaction: &Transaction) -> u64 {
        let added = |one: &Mutation| match one {
            // Content takes an extent in each segment, or page, that it fills.
            Mutation::Write { data, .. } if self.settings.has_runs => {
                MUTATION_BYTES * (1 + data.len() as u64 / self.segment_bytes())
            }
            Mutation::Write { data, .. } => {
                let pages = data.len() as u64 / u64::from(self.log.layout().payload_bytes);
                MUTATION_BYTES + pages * self.page_extent_bytes()
            }
            Mutation::SetAttribute { value, .. } => MUTATION_BYTES + value.len() as u64,
            // Two onodes, and extents that are cut at both ends. The others only change places.
            Mutation::Move { .. } => 4 * MUTATION_BYTES,
            _ => MUTATION_BYTES,
        };
        transaction.mutations.iter().map(added).sum()
    }

    /// Bytes of nodes that change with so many extents that move, where they were and where they
    /// come to be.
    pub const fn moved_node_bytes(extents: u64) -> u64 {
        extents * MOVED_EXTENT_BYTES
    }

    /// The most extents that one transaction may move: no more than a checkpoint has room for.
    pub fn moved_extents_max(&self) -> u64 {
        self.dirty_limit as u64 / MOVED_EXTENT_BYTES
    }

    /// Whether a transaction that moves so many extents can follow what has changed by now before
    /// the next checkpoint.
    pub fn can_move(&self, extents: u64) -> bool {
        self.index.dirty_bytes() as u64 + Self::moved_node_bytes(extents) <= self.dirty_limit as u64
    }

    /// Whether there will be room for `needed` segments after a checkpoint.
    pub fn will_have_room(&self, needed: u32) -> bool {
        let table = self.log.table();
        let reclaimable = table.reclaimable(self.log.journal_position().1);
        table.allocatable().saturating_sub(self.checkpoint_cost()) + reclaimable >= self.reserve_segments() + needed
    }

    /// Segments beyond the reserve that there would be if everything were packed without a gap.
    pub fn most_room(&self) -> u32 {
        let live = self.log.table().packed_bytes().div_ceil(self.segment_bytes()) as u32;
        self.segments.saturating_sub(self.bad + live + self.reserve_segments())
    }

    /// Whether there may be room for `needed` segments after a checkpoint, without any cleaning.
    pub fn may_have_room(&self, needed: u32) -> bool {
        let table = self.log.table();
        let reclaimable = table.reclaimable(self.log.journal_position().1);
        reclaimable > 0 && table.allocatable() + reclaimable >= self.reserve_segments() + needed
    }

    /// Bytes of nodes that a large transaction changes before the next checkpoint can write them:
    /// one for each mutation, but no more than there are and come to be.
    pub fn node_room(&self, transaction: &Transaction) -> u64 {
        let mutations = transaction.mutations.len().saturating_sub(MUTATIONS_AT_ONCE) as u64;
        if mutations == 0 {
            return 0;
        }
        let entries = self.index_bytes(transaction);
        let index: u64 = self
            .log
            .table()
            .iter()
            .filter(|(_, one)| one.stream == Stream::Index || (self.log.is_combined() && one.stream == Stream::Journal))
            .map(|(_, one)| u64::from(one.live_bytes))
            .sum();
        (mutations * self.node_bytes() as u64).min(2 * (index + self.index.dirty_bytes() as u64 + entries))
    }

    /// Segments that `transaction` may fill.
    pub fn needed_segments(&self, transaction: &Transaction) -> u32 {
        let bytes = self.transaction_bytes(transaction);
        let filled = bytes + self.padding_bytes(transaction) + self.node_room(transaction);
        filled.div_ceil(self.filled_bytes()) as u32
    }

    /// Whether `needed` segments can be opened and the reserve stays.
    pub fn has_room(&self, needed: u32) -> bool {
        let table = self.log.table();
        // What a mount found held is free as soon as its session begins to write.
        let held = if self.settings.session_begun { 0 } else { table.in_state(SegmentState::Held) };
        table.allocatable() + held >= self.reserve_segments() + needed
    }

    /// Bytes on segments that are free now or after a checkpoint, and in open ones of the cleaner.
    pub fn free_bytes(&self) -> u64 {
        let table = self.log.table();
        let segments = table.allocatable() + table.reclaimable(self.log.journal_position().1);
        u64::from(segments) * self.segment_bytes() + self.log.moving_room()
    }

    /// Bytes that the cleaner may move and leave `reserve` segments free.
    pub fn cleaning_budget(&self, reserve: u32) -> u64 {
        match self.log.table().allocatable().checked_sub(reserve) {
            // What the open cold segment takes costs no free one.
            Some(free) => (u64::from(free) * self.segment_bytes() + self.log.moving_room()) / 4 * 3,
            None => 0,
        }
    }

    /// Bytes that the cleaner may move and leave room for any checkpoint.
    pub fn comfortable_budget(&self) -> u64 {
        self.cleaning_budget(self.checkpoint_segments() + 1)
    }

    /// The fewest segments that a volume of this layout works with.
    pub fn least_segments(&self) -> u32 {
        self.overhead_segments() + 4
    }

    /// Whether segments are so few that those of the journal have to be set free as soon as
    /// planned.
    pub fn is_tight(&self) -> bool {
        !self.log.is_combined() && self.log.table().allocatable() <= 2 * self.overhead_segments()
    }

    /// Bytes of segments in use that nobody needs.
    pub fn stale_bytes(&self) -> u64 {
        let table = self.log.table();
        let used = table.usable_segments() - table.allocatable() - table.in_state(SegmentState::Bad);
        (u64::from(used) * self.segment_bytes()).saturating_sub(table.packed_bytes())
    }

    /// Whether segments are so few that background cleaning may be useful: less than an eighth of
    /// them is free.
    pub fn wants_cleaning(&self) -> bool {
        let table = self.log.table();
        table.allocatable() < self.overhead_segments() + table.usable_segments() / 8
    }
}
