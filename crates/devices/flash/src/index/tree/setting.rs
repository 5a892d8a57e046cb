//! A value that a key of the tree gets, and who is shown the one before: whoever needs both
//! searches the tree once.

use onode_engine::Key;

/// A value that a key gets.
pub struct Setting<'a> {
    /// The key.
    pub key: Key,
    /// Its value from now on.
    pub value: &'a [u8],
    /// Sees the value before, if there was one.
    pub replaced: &'a mut dyn FnMut(&[u8]),
}
