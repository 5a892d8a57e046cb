//! What objects hold: content without a place yet, reads of it and of what has one, copies on
//! request.

pub mod buffers;
pub mod pending;
pub mod place;
pub mod placing;
pub mod plan;
pub mod promote;
pub mod ranges;
pub mod read;
pub mod reader;
pub mod spilled;
pub mod tail_cache;
