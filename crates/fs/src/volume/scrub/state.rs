//! What a file system has in memory of its scrubs.

use crate::volume::scrub::record::ScrubRecord;
use std::collections::BTreeMap;

/// Who scrubs: a number that a program chose for itself, or [`BACKGROUND`](Self::BACKGROUND).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubOwner(pub u64);

impl ScrubOwner {
    /// The work in the background of a mount; programs go before it.
    pub const BACKGROUND: Self = Self(0);
}

/// The state.
#[derive(Debug, Default)]
pub(crate) struct ScrubState {
    /// What is kept, once it was read.
    pub record: Option<ScrubRecord>,
    /// Who is at it.
    pub owner: Option<ScrubOwner>,
    /// When it was at it last, in seconds.
    pub touched: i64,
    /// A step is under way.
    pub is_working: bool,
    /// When the record was kept last, in seconds.
    pub kept: i64,
    /// There is more to keep.
    pub is_changed: bool,
    /// Why the record could not be kept.
    pub unkept: Option<String>,
    /// The device's count of moved bytes when somebody looked last.
    pub moved: Option<u64>,
    /// Bytes that programs read and wrote until somebody looked last.
    pub used: u64,
    /// Files with damage by their numbers, as far as they were looked up.
    pub names: BTreeMap<u64, String>,
}
