//! Blocks of 32 bytes up to the whole region (paper 2, section IV).
//!
//! What is free is never written durably: a recovery claims every block that the log names, and the rest is free.

/// The smallest block in bytes.
pub const SMALLEST_BLOCK_BYTES: u64 = 32;
