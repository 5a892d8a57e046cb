//! How a device is made and how it is opened.

use crate::persist::mode::Mode;

/// How to make a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormatOptions {
    /// Its unique number.
    pub uuid: [u8; 16],
    /// Bytes of a chunk of the allocator and of a segment of the log, a power of two from 4 KiB to
    /// 64 KiB; by the size of the memory if `None`.
    pub chunk_bytes: Option<u32>,
    /// What content is worth until it is opened the next time.
    pub mode: Mode,
    /// One process at a time uses it and maps none of its objects: nothing changes but by a
    /// transaction of this process. Content is [`Mode::Atomic`].
    pub exclusive: bool,
}

/// How to open a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct MountOptions {
    /// Accept no changes. The memory is written to all the same, because the index lives in it;
    /// hand in a private copy.
    pub read_only: bool,
    /// Mount although the medium holds less than was promised; otherwise that is refused as `Loss`,
    /// and nothing is changed.
    pub accept_loss: bool,
    /// What content is worth.
    pub mode: Mode,
}
