//! Memory that begins where direct input and output want it.

use crate::error::{Error, MediaErrorKind, Result};
use alloc::vec;
use alloc::vec::Vec;

/// The boundary that every device of today is content with.
pub(super) const ALIGNMENT: usize = 4096;

/// A buffer that grows to what was asked of it and begins at an [`ALIGNMENT`] boundary.
#[derive(Default)]
pub(super) struct AlignedBuffer {
    bytes: Vec<u8>,
}

impl AlignedBuffer {
    /// `length` bytes with any content.
    pub(super) fn get(&mut self, length: usize) -> Result<&mut [u8]> {
        let needed = length.saturating_add(ALIGNMENT);
        if self.bytes.len() < needed {
            self.bytes = vec![0; needed];
        }
        let start = self.bytes.as_ptr().align_offset(ALIGNMENT);
        let found = self.bytes.get_mut(start..start.saturating_add(length));
        found.ok_or_else(|| Error::new(MediaErrorKind::Host, "no aligned memory"))
    }
}

/// Whether direct input and output can use `bytes` themselves.
pub(super) fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(ALIGNMENT) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_at_the_boundary_however_they_grow() {
        let mut buffer = AlignedBuffer::default();
        for length in [0, 512, 4096, 100_000, 4096] {
            let bytes = buffer.get(length).unwrap();
            assert_eq!((bytes.len(), is_aligned(bytes)), (length, true));
        }
        let bytes = buffer.get(8192).unwrap();
        assert!(!is_aligned(&bytes[8..]));
    }
}
