//! When hardly a segment is free: what a checkpoint can still write, and which segment gives back
//! more than it costs.
//!
//! Whoever moves content changes nodes, and the checkpoint writes them anew: of tiny files about as
//! much as the content itself. So on a full volume of them moving content gains nothing at once,
//! and may take the segments without which nothing can be moved any more. Nodes cost no more than
//! their bytes, and while they are written one after another, the open segment of the index takes
//! them.

use super::Room;
use crate::policy::{Candidate, Stream};

/// Nodes that change with another one: those above it, and one that is divided.
const PATH_NODES: u64 = 4;

impl Room<'_> {
    /// Bytes of nodes that a checkpoint can write and leave `spare` segments free.
    pub fn index_fits(&self, spare: u32) -> u64 {
        let is_shared = Stream::of_index(self.log.placement()) != Stream::Index && self.has_room(1);
        let open = if is_shared { 0 } else { self.log.index_room() };
        let table = self.log.table().pieces().len() * self.log.table().piece_bytes();
        let free = u64::from(self.log.table().allocatable().saturating_sub(spare));
        (open + free * self.filled_bytes()).saturating_sub(table as u64)
    }

    /// Whether a checkpoint can write what has changed and `more_bytes` of nodes with what lies
    /// above them, and leave `spare` segments free.
    pub fn can_write_nodes(&self, more_bytes: u64, spare: u32) -> bool {
        let path_bytes = PATH_NODES * self.node_bytes() as u64;
        self.index.dirty_bytes() as u64 + more_bytes + path_bytes <= self.index_fits(spare)
    }

    /// The cheapest of `candidates` to be emptied, nodes that change included, of those that give
    /// back more than that and are not too dear: with at most `budget_bytes` to be moved, or with
    /// so little that the next checkpoint still has its segments. What needs the last free one is
    /// taken only if there is nothing else, and what gives back nothing at once only if the reserve
    /// is there.
    pub fn cheapest(&self, candidates: impl Iterator<Item = Candidate>, budget_bytes: u64) -> Option<Candidate> {
        let table = self.log.table();
        let index_bytes = table.index_bytes();
        let content_bytes = table.packed_bytes().saturating_sub(index_bytes).max(1);
        let is_index = |one: &Candidate| one.stream == Stream::Index;
        let nodes_of = |one: &Candidate| {
            let live = u64::from(one.live_bytes);
            if is_index(one) { live } else { live * index_bytes / content_bytes }
        };
        let cost = |one: &Candidate| nodes_of(one) + if is_index(one) { 0 } else { u64::from(one.live_bytes) };
        let moving_room = self.log.moving_room();
        let affords = |one: &Candidate, spare: u32| {
            let opens = !is_index(one) && u64::from(one.live_bytes) > moving_room;
            self.can_write_nodes(nodes_of(one), spare + u32::from(opens))
        };
        let worth = |one: &Candidate| cost(one) < self.filled_bytes();
        let may_lose = self.has_room(0);
        let ranked = |one: &Candidate| {
            if !may_lose && !worth(one) {
                return None;
            }
            let is_cheap = u64::from(one.live_bytes) <= budget_bytes || affords(one, 1);
            (is_cheap || affords(one, 0)).then(|| (!worth(one), !is_cheap, cost(one)))
        };
        candidates.filter_map(|one| Some((ranked(&one)?, one))).min_by_key(|(rank, _)| *rank).map(|(_, one)| one)
    }

    /// Bytes of changed nodes at which the cleaner stops for a checkpoint: so few while few
    /// segments are free that the checkpoint itself always fits, but on a full volume more than
    /// usual, up to a segment. Each checkpoint writes inner nodes and the segment table again;
    /// after every few nodes that costs as much as cleaning segments of the index gains.
    pub fn cleaning_dirty_limit(&self) -> usize {
        let free = self.log.table().allocatable();
        if free > self.overhead_segments() {
            return self.dirty_limit;
        }
        let fits = (u64::from(free.saturating_sub(3)) * self.filled_bytes() / 2).max(self.index_fits(1) / 2);
        let fits = usize::try_from(fits.min(self.segment_bytes())).unwrap_or(usize::MAX);
        if free > self.checkpoint_segments() { fits.max(self.dirty_limit) } else { fits.max(4 * self.node_bytes()) }
    }

    /// Bytes of changed nodes at which the cleaner stops for a checkpoint while it empties a
    /// segment. Below the reserve it goes on as long as a checkpoint can write them: each one
    /// writes the nodes above and the segment table again.
    pub fn emptying_dirty_limit(&self) -> usize {
        let usual = self.cleaning_dirty_limit();
        if self.log.table().allocatable() >= self.reserve_segments() {
            return usual;
        }
        let most = 2 * self.segment_bytes();
        usual.max(usize::try_from(self.index_fits(0).min(most)).unwrap_or(usize::MAX))
    }
}
