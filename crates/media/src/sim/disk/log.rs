//! Records the changes of one or several disks in the order in which they were made.
//!
//! The crash explorer plays a prefix of them onto empty [`Cached`] contents and cuts the power
//! there: of each disk by itself, any of what it had not flushed may be lost.

use super::cache::Cached;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::sync::{Mutex, rank};

/// A change of a disk.
#[derive(Clone, Debug)]
pub enum DiskOperation {
    /// Sectors were written.
    Write {
        /// The first byte.
        offset: u64,
        /// What was written.
        bytes: Arc<[u8]>,
    },
    /// Sectors were given up.
    Discard {
        /// The first byte.
        offset: u64,
        /// Bytes in all.
        length: u64,
    },
    /// All before it became durable.
    Flush,
    /// A flush was begun.
    FlushBegin,
    /// All before the flush that was begun last became durable.
    FlushEnd,
}

impl DiskOperation {
    /// Does the same to `content`.
    pub fn apply(&self, content: &mut Cached) {
        match self {
            Self::Write { offset, bytes } => content.write(*offset, Arc::clone(bytes)),
            Self::Discard { offset, length } => content.discard(*offset, *length),
            Self::Flush => content.flush(),
            Self::FlushBegin => content.begin_flush(),
            Self::FlushEnd => content.end_flush(),
        }
    }

    /// Whether it only says what of the changes is durable.
    #[must_use]
    pub const fn is_flush(&self) -> bool {
        matches!(self, Self::Flush | Self::FlushBegin | Self::FlushEnd)
    }
}

/// One change and the disk that it was made on.
#[derive(Clone, Debug)]
pub struct DiskEvent {
    /// The number under which the disk records.
    pub disk: usize,
    /// The change.
    pub operation: DiskOperation,
}

/// The changes so far; clones are the same log.
#[derive(Clone, Debug, Default)]
pub struct DiskLog(Arc<Mutex<Vec<DiskEvent>, rank::MediumNotes>>);

impl DiskLog {
    pub(super) fn push(&self, disk: usize, operation: DiskOperation) {
        self.0.lock().push(DiskEvent { disk, operation });
    }

    /// The number of changes recorded: what happens next has this index.
    #[must_use]
    pub fn mark(&self) -> usize {
        self.0.lock().len()
    }

    /// A copy of the changes; their content is shared.
    #[must_use]
    pub fn events(&self) -> Vec<DiskEvent> {
        self.0.lock().clone()
    }
}
