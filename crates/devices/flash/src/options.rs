//! Options of a flash volume: those fixed by formatting and those chosen at each mount.

use crate::medium::format::{
    FEATURE_ACCESS_TIMES, FEATURE_CLASSES, FEATURE_WEAR_DYNAMIC, FEATURE_WEAR_OFF, FEATURE_WEAR_STATIC, Superblock,
};
use crate::medium::layout::Layout;
use crate::policy::{Placement, Stream, VictimPolicy, WearPolicy};
use alloc::format;
use onode_base::ErrorKind;
use onode_media::Geometry;
use onode_object::{Error, Result};

/// Pages of content in a row with parity, unless the medium is small: a 16th of the medium is
/// parity then.
const ROW_PAGES: u64 = 15;

/// What is fixed when a volume is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatOptions {
    /// The volume's unique number.
    pub uuid: [u8; 16],
    /// Only so many erase blocks of the medium are used; `None` is all. The volume can grow into
    /// the others later.
    pub blocks: Option<u32>,
    /// Erase blocks of a segment; `None` chooses by the geometry (paper 1: 256 KiB).
    pub blocks_per_segment: Option<u16>,
    /// Pages of parity in each row of pages, 0 to 3: so many lost pages of a row, or lost erase
    /// blocks of a segment, lose nothing.
    pub parity_pages: u8,
    /// Whether objects choose by hint how many pages of parity the rows with their whole pages
    /// have, up to `parity_pages`; if so, how many those have that wish nothing.
    pub chosen_parity: Option<u8>,
    /// Those that hold unless a mount says otherwise; what is `None` is left to the device.
    pub policies: Policies,
}

impl Default for FormatOptions {
    fn default() -> Self {
        Self {
            uuid: *b"onode unnamed   ",
            blocks: None,
            blocks_per_segment: None,
            parity_pages: 0,
            chosen_parity: None,
            policies: Policies::default(),
        }
    }
}

impl FormatOptions {
    /// Segment size in erase blocks for `shape`: 256 KiB as in paper 1, more where that made over
    /// 1,536 segments, less where that made under 64, and no more than 1 GiB or the pages that a
    /// segment may have. On tiny media up to a 32nd of all, so that some tree nodes fit side by
    /// side. Always a multiple of the chips, over which the pages of a segment are divided. With
    /// parity at least 15 blocks and those of parity, where at least 64 segments are left.
    #[must_use]
    pub fn blocks_per_segment(&self, shape: &Geometry) -> u16 {
        let block_bytes = (u64::from(shape.page_bytes) * u64::from(shape.pages_per_block)).max(1);
        self.blocks_per_segment.unwrap_or_else(|| {
            let segment_bytes = (block_bytes * u64::from(shape.blocks) / 1536).max(256 << 10);
            let by_size = (segment_bytes / block_bytes).max(1);
            let by_count = u64::from(shape.blocks / 64).max(1);
            let by_nodes = (8 * 2048_u64).div_ceil(block_bytes).min(u64::from(shape.blocks / 32));
            let parity_pages = u64::from(self.parity_pages);
            let by_rows = match parity_pages {
                0 => 0,
                pages => (ROW_PAGES + pages).min(by_count).max(pages + 2),
            };
            let chips = u64::from(shape.chips).max(1);
            let by_pages = u64::from(Layout::MOST_SEGMENT_PAGES / shape.pages_per_block.max(1));
            let by_bytes = (Layout::MOST_SEGMENT_BYTES / block_bytes).max(1);
            let most = by_pages.min(by_bytes).min(1024).max(chips);
            let wanted = by_size.min(by_count).max(by_nodes).max(by_rows).max(chips).next_multiple_of(chips);
            wanted.min(most / chips * chips) as u16
        })
    }
}

/// The policies that a volume works by; `None` is what suits it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    /// Where content goes.
    pub placement: Option<Placement>,
    /// Which segment the cleaner takes.
    pub victim: Option<VictimPolicy>,
    /// How wear is spread.
    pub wear: Option<WearPolicy>,
}

impl Policies {
    /// What these say, and `others` where these say nothing.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            placement: self.placement.or(others.placement),
            victim: self.victim.or(others.victim),
            wear: self.wear.or(others.wear),
        }
    }

    /// Those that a superblock tells. What a later version stored and this one does not know is
    /// taken for nothing: policies never decide what can be read.
    pub fn stored(superblock: &Superblock) -> Self {
        let placement = superblock.placement.checked_sub(1).and_then(Placement::from_byte);
        let victim = superblock.victim.checked_sub(1).and_then(VictimPolicy::from_byte);
        let wear = wear_of(superblock.compatible.get());
        Self { placement, victim, wear }
    }

    /// The bytes that stand for them in a superblock.
    pub fn bytes(self) -> (u8, u8) {
        (self.placement.map_or(0, |one| one as u8 + 1), self.victim.map_or(0, |one| one.byte() + 1))
    }

    /// Where content goes.
    pub fn placement(self) -> Placement {
        self.placement.unwrap_or(Placement::UserCleaner)
    }

    /// Which segment the cleaner takes.
    pub fn victim(self) -> VictimPolicy {
        self.victim.unwrap_or(VictimPolicy::CostBenefit)
    }

    /// How wear is spread.
    pub fn wear(self) -> WearPolicy {
        self.wear.unwrap_or_default()
    }

    /// Compatible features of a volume that works by them.
    pub const fn compatible(self) -> u32 {
        match self.wear {
            None => 0,
            Some(WearPolicy::Off) => FEATURE_WEAR_OFF,
            Some(WearPolicy::Dynamic) => FEATURE_WEAR_DYNAMIC,
            Some(WearPolicy::Static) => FEATURE_WEAR_STATIC,
        }
    }

    /// Incompatible features of a volume that works by them.
    pub fn features(self) -> u32 {
        let rests_in = Stream::resting(self.placement());
        let rests_in_class = self.wear() == WearPolicy::Static && !rests_in.is_basic();
        let classes = if self.placement().classes() > 2 || rests_in_class { FEATURE_CLASSES } else { 0 };
        let access_times = if self.placement() == Placement::SplitAtime { FEATURE_ACCESS_TIMES } else { 0 };
        classes | access_times
    }
}

/// What is chosen at a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// Change nothing on the medium; the journal is replayed in memory only.
    pub read_only: bool,
    /// Mount although the medium holds less than was promised; otherwise that is refused as `Loss`,
    /// and nothing is changed.
    pub accept_loss: bool,
    /// Memory for clean tree nodes, in bytes (paper 1, section V: 50 KB for 128 MB).
    pub node_cache_bytes: usize,
    /// Memory for tree nodes that wait for the next checkpoint, in bytes; `None` chooses by the
    /// size of the medium. More memory means fewer index pages and a longer replay.
    pub dirty_node_bytes: Option<usize>,
    /// Memory for pages read, in bytes (paper 1: 10 KB of onodes).
    pub page_cache_bytes: usize,
    /// Memory in which each stream but the journal collects pages, in bytes: one page at least.
    pub write_buffer_bytes: usize,
    /// Journal pages between two checkpoints; `None` chooses by the size of the medium. It bounds
    /// the page reads of a mount after a crash.
    pub checkpoint_pages: Option<u32>,
    /// Bytes of the journal after which a checkpoint is written although more pages are allowed.
    /// Room is reckoned as without it, so that a later mount finds what it needs.
    pub checkpoint_bytes: Option<u64>,
    /// Segments beyond the point where commits wait at which cleaning begins; `None` chooses by the
    /// size of the medium, and fewer are not heeded.
    pub clean_ahead: Option<u32>,
    /// Those from now on; `None` keeps what the volume was made with.
    pub policies: Policies,
    /// Runs of pages are one entry of the index. Off, every page has its own: the comparison of
    /// paper 1, section V.C.
    pub extents: bool,
    /// Access times in memory that no onode has yet, under the placement *split+atime*; with more,
    /// the onodes take over all of them.
    pub pending_access_times: usize,
    /// Small contents and directory entries of several commits share pages. Off, each takes pages
    /// of its own: the comparison of paper 1, section V.D.
    pub small_object_buffer: bool,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            accept_loss: false,
            node_cache_bytes: 4 << 20,
            dirty_node_bytes: None,
            page_cache_bytes: 256 << 10,
            write_buffer_bytes: 256 << 10,
            checkpoint_pages: None,
            checkpoint_bytes: None,
            clean_ahead: None,
            policies: Policies::default(),
            extents: true,
            pending_access_times: 1024,
            small_object_buffer: true,
        }
    }
}

impl MountOptions {
    /// The options of paper 1, section V: 50 KB of nodes and 10 KB of pages.
    #[must_use]
    pub fn paper() -> Self {
        Self { node_cache_bytes: 50 << 10, page_cache_bytes: 10 << 10, write_buffer_bytes: 0, ..Self::default() }
    }

    /// Checks that the budgets are ones that can work.
    ///
    /// # Errors
    /// `Invalid` with the option that is wrong.
    pub fn validate(&self) -> Result<()> {
        if self.checkpoint_pages.is_some_and(|pages| pages == 0) {
            return Err(Error::new(ErrorKind::Invalid, "checkpoint_pages must be at least 1"));
        }
        if let Some(bytes) = self.dirty_node_bytes.filter(|&bytes| bytes < 16 << 10) {
            return Err(Error::new(ErrorKind::Invalid, format!("dirty_node_bytes = {bytes} is below 16 KiB")));
        }
        Ok(())
    }
}

/// The wear policy that `compatible` features name, if they name just one.
const fn wear_of(compatible: u32) -> Option<WearPolicy> {
    match compatible & (FEATURE_WEAR_OFF | FEATURE_WEAR_DYNAMIC | FEATURE_WEAR_STATIC) {
        FEATURE_WEAR_OFF => Some(WearPolicy::Off),
        FEATURE_WEAR_DYNAMIC => Some(WearPolicy::Dynamic),
        FEATURE_WEAR_STATIC => Some(WearPolicy::Static),
        _ => None,
    }
}
