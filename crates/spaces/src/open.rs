//! What all handles of one space share: its place in the region, which only its length changes.

use crate::layout::PAGE_BYTES;
use crate::table::{Kind, SpaceInfo};
use alloc::string::String;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What all handles of one space share.
pub(crate) struct Open {
    id: u64,
    name: String,
    kind: Kind,
    read_only: bool,
    start: u64,
    /// In words of the processor, as firmware has no larger atomic ones.
    pages: AtomicUsize,
}

impl Open {
    pub(crate) fn new(info: &SpaceInfo) -> Self {
        Self {
            id: info.id,
            name: info.name.clone(),
            kind: info.kind,
            read_only: info.read_only,
            start: info.start,
            pages: AtomicUsize::new((info.length / PAGE_BYTES) as usize),
        }
    }

    pub(crate) fn set_length(&self, length: u64) {
        self.pages.store((length / PAGE_BYTES) as usize, Ordering::Release);
    }

    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) const fn is_read_only(&self) -> bool {
        self.read_only
    }

    #[inline]
    pub(crate) const fn start(&self) -> u64 {
        self.start
    }

    #[inline]
    pub(crate) fn length(&self) -> u64 {
        self.pages.load(Ordering::Acquire) as u64 * PAGE_BYTES
    }
}

#[cold]
#[inline(never)]
pub(crate) fn outside(at: u64, length: u64, open: &Open) -> ! {
    panic!("bytes {at}..+{length} of {} of space {}", open.length(), open.name)
}
