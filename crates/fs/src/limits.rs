//! What a name, a link and the number of links may be at most, and bits of a mode that more than
//! one room looks at.

/// Longest name in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Longest target of a symbolic link in bytes.
pub const TARGET_BYTES_MAX: usize = 4095;
/// Most hard links to a file.
pub const LINKS_MAX: u32 = 65_000;
/// Space in bytes that writes leave for names and inodes.
pub(crate) const MARGIN_BYTES: u64 = 8192;

/// Set-user-id.
pub(crate) const SET_USER: u16 = 0o4000;
/// Set-group-id.
pub(crate) const SET_GROUP: u16 = 0o2000;
/// The group may execute.
pub(crate) const GROUP_EXECUTE: u16 = 0o010;
