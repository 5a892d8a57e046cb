//! The single-threaded state machine behind the device: the log, the tree over it, and the numbers
//! that a checkpoint writes down.

use crate::cleaner::Cleaning;
use crate::cleaner::levelling::Levelling;
use crate::commit::access::Pending;
use crate::commit::sync::Ticket;
use crate::index::attach::FindMemory;
use crate::index::bpram::Bpram;
use crate::index::bpram::buffer::HeldPage;
use crate::index::deferred::Deferred;
use crate::index::tree::{Child, Key, Node, NodeSource, Tree};
use crate::log::Log;
use crate::log::compact::Rhythm;
use crate::medium::errors::damaged;
use crate::medium::format::{BlobReference, References};
use crate::medium::ring::Ring;
use crate::options::{MountOptions, Policies};
use crate::policy::{Chooser, Classifier};
use crate::recover::replay::Recovery;
use crate::space::costliest::Costliest;
use crate::space::items::Owner;
use crate::space::stall::Stalls;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::evict::Lru;
use onode_media::IoTag;
use onode_object::{Condition, Result};

/// What the device did beside what was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Transactions committed.
    pub commits: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Segments cleaned.
    pub segments_cleaned: u64,
    /// Bytes of content that the cleaner moved.
    pub bytes_moved: u64,
    /// Segments whose content was moved for the sake of wear, and its bytes; they count as cleaned
    /// and moved too.
    pub segments_levelled: u64,
    /// See `segments_levelled`.
    pub bytes_levelled: u64,
    /// Bytes of tree nodes that the cleaner had written elsewhere.
    pub node_bytes_moved: u64,
    /// Bytes of content that users wrote.
    pub bytes_written: u64,
    /// Journal records replayed by the mount.
    pub records_replayed: u64,
    /// Journal pages read by the mount.
    pub pages_replayed: u64,
    /// Checkpoints that went to the memory beside the flash, too.
    pub folds: u64,
}

/// The numbers of a checkpoint, as every superblock that describes it repeats them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointState {
    /// Root of the tree, and its level.
    pub root: (BlobReference, u8),
    /// Nothing follows in the journal.
    pub clean: bool,
    /// Segment at which a replay starts.
    pub journal_segment: u32,
    /// Page of that segment.
    pub journal_page: u32,
    /// Its sequence number.
    pub journal_sequence: u32,
    /// The journal segment after it, and its sequence number.
    pub journal_next: (u32, u32),
    /// The next sequence number.
    pub next_sequence: u32,
    /// The next object id.
    pub next_object: u64,
    /// Commits so far.
    pub transaction: u64,
    /// Objects that exist.
    pub objects: u64,
    /// Extents that exist.
    pub extents: u64,
    /// To the segment table, deferred changes and copies of pages.
    pub references: References,
}

/// The device's state.
pub struct Core {
    /// Streams, segments, medium.
    pub log: Log,
    /// The index.
    pub tree: Tree,
    /// The index of content in a memory beside the flash, if there is one.
    pub bpram: Option<Bpram>,
    /// Why it was given up, if it was.
    pub memory_lost: Option<String>,
    /// Who finds the memory when it is to take part again.
    pub finder: Option<Arc<dyn FindMemory>>,
    /// Entries that the memory has no room for stay on flash alone.
    pub spills: bool,
    /// Syncs end in the memory's write buffer, if it has one.
    pub buffers: bool,
    /// What a mount found there, until it is replayed.
    pub held: Option<HeldPage>,
    /// That was the page at which the journal on flash ends.
    pub held_fits: bool,
    /// What happened to the volume at its mount, for who watches over it.
    pub events: Vec<Condition>,
    /// The volume was taken up from the memory, and nobody has seen yet that the flash is the one
    /// it belongs to.
    pub unconfirmed: bool,
    /// Clean nodes in memory, by location.
    pub nodes: Lru<u64, Arc<Node>>,
    /// Superblocks.
    pub ring: Ring,
    /// The volume.
    pub uuid: [u8; 16],
    /// Options of this mount.
    pub options: MountOptions,
    /// Policies as they were chosen.
    pub policies: Policies,
    /// Where content goes.
    pub placement: Classifier,
    /// What the cleaner takes.
    pub victim: Chooser,
    /// Features without which the medium cannot be used at all.
    pub incompatible: u32,
    /// Bytes of a tree node.
    pub node_bytes: usize,
    /// Bytes of changed nodes at which a checkpoint is due.
    pub dirty_limit: usize,
    /// Journal pages after which a checkpoint is due.
    pub checkpoint_pages: u32,
    /// The next object id.
    pub next_object: u64,
    /// Objects that exist.
    pub objects: u64,
    /// Extents that exist: each will need an item in a summary.
    pub extents: u64,
    /// Access times that no onode has yet.
    pub pending_access: Pending,
    /// What the newest superblock says beside the root.
    pub checkpoint_state: CheckpointState,
    /// Whether the newest superblock describes the present state and nothing was logged since.
    pub clean: bool,
    /// Whether this session's sequence numbers are reserved on the medium.
    pub session_begun: bool,
    /// The segment that is being cleaned.
    pub cleaning: Option<Cleaning>,
    /// Segments that the cleaner emptied but for pieces of the segment table, which the next
    /// checkpoint moves.
    pub emptied: BTreeSet<u32>,
    /// Segments that the cleaner could not empty because something on them is damaged.
    pub stuck: BTreeSet<u32>,
    /// Where and how the journal is damaged, if it is.
    pub journal_damage: Option<String>,
    /// That it ends before what was durable once, if it does: nothing follows that could be damaged
    /// by going on.
    pub journal_short: Option<String>,
    /// What a replay left to be done.
    pub pending: Recovery,
    /// Whether commits are likely to be synced one by one.
    pub rhythm: Rhythm,
    /// The last sync that was asked for.
    pub tickets: Ticket,
    /// What the journal held and the index does not have yet.
    pub deferred: Deferred,
    /// What was done.
    pub statistics: Statistics,
    /// How long commits waited for the cleaner.
    pub stalls: Stalls,
    /// Static wear levelling.
    pub levelling: Levelling,
    /// The objects that cost the most programs.
    pub costliest: Costliest,
}

/// The tree's view of the log.
pub struct Source<'a> {
    /// Streams and segments.
    pub log: &'a mut Log,
    /// Clean nodes.
    pub nodes: &'a mut Lru<u64, Arc<Node>>,
    /// What reads are for.
    pub tag: IoTag,
}

impl Core {
    /// The tree and what it stands on, borrowed side by side.
    pub fn index(&mut self) -> (&mut Tree, Source<'_>) {
        (&mut self.tree, Source { log: &mut self.log, nodes: &mut self.nodes, tag: IoTag::Index })
    }

    /// Gives the cache of clean nodes what changed nodes leave of the memory for both.
    pub fn share_memory(&mut self) {
        let spare = self.dirty_limit.saturating_sub(self.dirty_bytes());
        self.nodes.set_budget(self.options.node_cache_bytes + spare);
    }

    /// Bytes of changed nodes in memory.
    pub fn dirty_bytes(&self) -> usize {
        self.tree.dirty_bytes()
    }
}

impl NodeSource for Source<'_> {
    fn load(&mut self, reference: BlobReference, level: u8) -> Result<Arc<Node>> {
        let location = reference.location.get();
        if let Some(node) = self.nodes.get(&location)
            && node.level == level
        {
            return Ok(node.clone());
        }
        let bytes = self.log.read_blob(reference, self.tag)?;
        let node = Node::decode(&bytes, level)
            .filter(|node| level == 0 || node.entries_from(0).all(|(_, value)| is_written_child(value)))
            .ok_or_else(|| damaged(format!("the tree node at {location} is malformed")))?;
        let node = Arc::new(node);
        self.nodes.insert(location, node.clone(), node.memory_bytes());
        Ok(node)
    }

    fn release(&mut self, reference: BlobReference) {
        self.nodes.remove(&reference.location.get());
        self.log.release(reference.location.get(), u64::from(reference.length.get()));
    }

    fn store(&mut self, bytes: &[u8], level: u8, key: Key) -> Result<BlobReference> {
        self.log.write_blob(bytes, Owner::Node { key, level })
    }

    fn keep(&mut self, reference: BlobReference, node: Node) {
        let bytes = node.memory_bytes();
        self.nodes.insert(reference.location.get(), Arc::new(node), bytes);
    }
}

/// Whether a child reference read from the medium names a place on it, and not a slot of memory.
fn is_written_child(value: &[u8]) -> bool {
    matches!(Child::decode(value), Ok(Child::Clean(_)))
}
