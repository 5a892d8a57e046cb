//! The content of a file where it lies.

use crate::shared::Shared;
use onode_fs::InodeNumber;
use onode_media::real::Stitched;
use std::ptr::NonNull;
use std::sync::Arc;

/// A file's bytes in memory. The file stays what it is, and others may write to it meanwhile: what
/// is read is only as steady as they are. It keeps the file open, so its blocks stay.
pub struct Mapping {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: onode_fs::FileHandle,
    pub(crate) inode: InodeNumber,
    /// Of the first block, in the heap.
    pub(crate) address: u64,
    pub(crate) base: NonNull<u8>,
    pub(crate) bytes: usize,
    /// The blocks side by side, if there are several.
    pub(crate) stitched: Option<Stitched>,
}

// SAFETY: the pointer is into memory that the value keeps mapped, and who may touch it is settled
// by the file's users.
unsafe impl Send for Mapping {}
// SAFETY: as for Send.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// How many bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The file.
    #[must_use]
    pub const fn inode(&self) -> InodeNumber {
        self.inode
    }

    /// The bytes.
    ///
    /// # Safety
    /// Nobody writes to the file while the slice is used.
    #[must_use]
    pub unsafe fn as_slice(&self) -> &[u8] {
        // SAFETY: the bytes are those of the file's blocks, which stay mapped and owned while the
        // file is open; that nobody writes is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.as_ptr().as_ptr(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let mut looks = self.shared.looks();
        if let Some(count) = looks.get_mut(&self.inode) {
            *count -= 1;
            if *count == 0 {
                looks.remove(&self.inode);
            }
        }
        drop(looks);
        // The handle is this value's own.
        let _ = self.shared.files().release(self.handle);
    }
}
