//! When a commit is safe: what a durable one promises, and what a sync covers.

use crate::id::ObjectId;

/// What a returned commit promises (N1, N2 of `docs/semantics.md`).
///
/// Access times stand outside of N2 and N3: after a crash an object has any one of those that it
/// was given since the last one covered, with or without what else their transactions did. A
/// durable commit covers them only if it sets one itself, a sync always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// In the device's buffers: after a crash it may be gone, together with all that came later.
    Buffered,
    /// On the medium: it survives any crash, and so does every earlier commit.
    Durable,
}

/// What a sync covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncScope {
    /// Every commit so far.
    All,
    /// Every commit so far that touched this object, and all that came before the last of them.
    Object(ObjectId),
}
