//! How much of a memory is set apart for its write buffer.

use super::buffer::Area;
use crate::medium::layout::Layout;
use alloc::format;
use onode_base::ErrorKind;
use onode_object::{Error, Result};

/// The buffer that `wanted` asks for in a memory of so many bytes.
///
/// # Errors
/// `Invalid` if the memory has no room for it.
pub fn area_for(memory_bytes: u64, layout: &Layout, wanted: Option<u64>) -> Result<Area> {
    Area::new(memory_bytes, layout.journal_bytes(), wanted).ok_or_else(|| {
        let detail = format!("a memory of {memory_bytes} bytes has no room for a write buffer; give it a larger one");
        Error::new(ErrorKind::Invalid, detail)
    })
}
