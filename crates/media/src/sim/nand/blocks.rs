//! The erase blocks of a simulated NAND: content shared between clones until one of them changes
//! it.
//!
//! Pages are immutable once programmed, so a block is a list of shared page contents, an erased
//! block is no list at all, and a clone of a whole medium copies one pointer a block.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Content of one page; `None` is erased.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageContent {
    pub(crate) data: Option<Arc<[u8]>>,
    pub(crate) spare: Option<Arc<[u8]>>,
}

/// What is wrong with a block that an interrupted erase left looking erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WeakBlock {
    /// Programs report failure.
    ProgramFails,
    /// Programs report success, and the page is unreadable afterwards.
    ContentLost,
}

/// What is wrong with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Every read fails.
    Uncorrectable,
    /// Reads are good `reads_left` times, then as `later` says.
    Unstable { reads_left: u32, later: Later, seed: u64 },
}

/// What an unstable page reads as after its good reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Later {
    /// With other wrong bits at each read, and no error.
    Different,
    /// Not at all.
    Uncorrectable,
}

/// One erase block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pages: Option<Arc<Vec<PageContent>>>,
    pub(crate) erases: u32,
    /// Reads of its pages since it was erased, if they disturb it.
    pub(crate) reads: u32,
    /// The lowest page that may be programmed next.
    pub(crate) next_page: u32,
    pub(crate) bad: bool,
    pub(crate) weak: Option<WeakBlock>,
}

impl Block {
    pub(crate) fn fresh(bad: bool) -> Self {
        Self { bad, ..Self::default() }
    }

    pub(crate) fn page(&self, index: u32) -> Option<&PageContent> {
        self.pages.as_ref()?.get(index as usize)
    }

    pub(crate) fn set_page(&mut self, index: u32, content: PageContent) {
        let pages = Arc::make_mut(self.pages.get_or_insert_default());
        if pages.len() <= index as usize {
            pages.resize_with(index as usize + 1, PageContent::default);
        }
        pages[index as usize] = content;
    }

    pub(crate) fn clear(&mut self) {
        self.pages = None;
        self.reads = 0;
        self.next_page = 0;
        self.weak = None;
    }
}

/// Pages that are not as they should be; few, so that healthy media clone in no time.
pub(crate) type Conditions = BTreeMap<u64, Condition>;
