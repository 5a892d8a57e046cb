//! The metadata of paper 3 as the paper has it (Figure 3): validity marker, device and object
//! records with their page tables, the page tree, and hybrid coding.
//!
//! Kept as they are, for comparison: 16-bit page numbers, which end at 65,535 pages; no size of a
//! file, which the figure lost; no checksum. [`Object::encode`] refuses what does not fit.

mod hybrid;
mod pat;
mod raw;

pub use hybrid::Hybrid;
pub use pat::PageTree;
pub use raw::{OBJECT_BYTES, PARTITION_BYTES, PAT_BYTES};

/// `CMFS_validitymarker`: whether the rest may be believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValidityMarker {
    /// The records of objects are of the last update.
    pub records: bool,
    /// No page has been written since.
    pub data: bool,
}

/// State of an erase block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockState {
    /// Nothing is in it.
    #[default]
    Empty,
    /// Pages are being given out from it.
    Allocating,
    /// All its pages were given out.
    Full,
}

/// Block information of `CMFS_device`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// State.
    pub state: BlockState,
    /// Pages in use.
    pub pages_in_use: u16,
    /// Pages of files that were removed and not yet given up.
    pub soft_deletions: u16,
    /// Sequence number; 0 if it is empty.
    pub sequence: u32,
}

/// `CMFS_device`: partition information in the order of the figure, and the blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// `structType` to `oldestDirtySequence`.
    pub partition: [u32; 10],
    /// One for each erase block.
    pub blocks: Vec<Block>,
}

/// `CMFS_object`: a file or directory and where its pages are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// `objectId`.
    pub id: u32,
    /// `parentId`.
    pub parent: u32,
    /// `hdrChunk`: the page with name and attributes; 0 for none.
    pub header: u32,
    /// `variantType`, three bits.
    pub kind: u8,
    /// `deleted`, `softDeleted`, `unlinked`, `fake`, `renameAllowed`, `unlinkAllowed`, from the
    /// lowest bit on.
    pub flags: u8,
    /// `serial`.
    pub serial: u8,
    /// The page of the medium for each page of the object; 0 for a hole. The last one is none.
    pub pages: Vec<u32>,
}
