//! A device that other hosts change, too: every call of the file system is one turn at it.
//!
//! While a thread has the lock of the memory it has the device's turn, so what it looked at is true
//! until it commits. If others have committed something since the turn before, what is remembered
//! of names and inodes is looked up again before it is used. Whatever changes goes to the device at
//! once and not to the write-clustering cache; only access times wait, and they are put on top of
//! what others have made of the inode.

use crate::error::Result;
use crate::file_system::FileSystem;
use crate::state::{Node, State};
use crate::types::InodeNumber;
use onode_base::ErrorKind;
use onode_base::sync::MutexGuard;
use onode_object::powers::Share;
use std::ops::{Deref, DerefMut};

/// The memory of a file system and, if others use its device, the turn there.
pub(crate) struct Locked<'a> {
    state: MutexGuard<'a, State>,
    share: Option<&'a dyn Share>,
}

impl Deref for Locked<'_> {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(share) = self.share {
            share.end();
        }
    }
}

impl FileSystem {
    /// The memory, for one call.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn lock(&self) -> Locked<'_> {
        self.take_turn(self.state.lock())
    }

    /// The device's turn for who has the lock of the memory: what only concerns the memory needs
    /// none.
    #[inline]
    pub(crate) fn take_turn<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Locked<'a> {
        let share = self.device.share();
        let seen = match &self.changes_below {
            Some(changes) => changes(),
            None => share.map_or(0, Share::begin),
        };
        if seen != state.seen {
            state.seen = seen;
            self.look_again(&mut state);
        }
        Locked { state, share }
    }

    /// A number that is another one than the time before if others have changed something since.
    pub fn changes_of_others(&self) -> u64 {
        self.lock().seen
    }

    /// Whether every change goes to the device at once.
    pub(crate) fn keeps_nothing_back(&self) -> bool {
        self.writes_through() || self.device.share().is_some()
    }

    /// Others have changed something. What is dirty here is put on top of it now, of a view it
    /// stays as it is; the rest is looked up when it is used.
    #[cold]
    fn look_again(&self, state: &mut State) {
        state.names.clear();
        let dirty: Vec<u64> = state.dirty().collect();
        if self.changes_below.is_some() {
            // What a transaction has changed is its own.
            let seen = state.seen;
            for number in dirty {
                if let Some(node) = state.nodes.get_mut(&number) {
                    node.seen = seen;
                }
            }
            return;
        }
        for number in dirty {
            // What cannot be read now is asked for again when it is used.
            let _ = self.refresh(state, InodeNumber(number));
        }
    }

    /// Brings a file in memory up to what the device has of it.
    #[cold]
    pub(crate) fn refresh(&self, state: &mut State, number: InodeNumber) -> Result<()> {
        let seen = state.seen;
        let Some(node) = state.nodes.get_mut(&number.0).filter(|node| node.seen != seen) else { return Ok(()) };
        if node.removed {
            node.seen = seen;
            return Ok(());
        }
        match self.read_node(number) {
            Ok(found) => {
                let Some(node) = state.nodes.get_mut(&number.0) else { return Ok(()) };
                node.take_over(&found);
                node.seen = seen;
                Ok(())
            }
            Err(error) if error.kind == ErrorKind::Stale => {
                // Somebody else took it away.
                state.clean(number.0);
                let Some(node) = state.nodes.get_mut(&number.0) else { return Ok(()) };
                let was_orphan = std::mem::take(&mut node.is_orphan);
                (node.inode.links, node.removed, node.seen) = (0, true, seen);
                state.orphans = state.orphans.saturating_sub(u64::from(was_orphan));
                if !state.is_referenced(number.0) {
                    state.drop_node(number.0);
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl Node {
    /// Takes over what the device has, under what is not there yet.
    fn take_over(&mut self, found: &Self) {
        // Another process may have given hints: they are asked for again.
        self.advice = None;
        let before = self.inode;
        self.inode = found.inode;
        if self.is_orphan {
            self.inode.links = 0;
        }
        if self.inode_dirty || self.access_dirty {
            self.inode.accessed = before.accessed.max(found.inode.accessed);
        }
        if self.inode_dirty {
            self.inode.modified = before.modified.max(found.inode.modified);
            self.inode.changed = before.changed.max(found.inode.changed);
        }
        self.device_changed();
        self.device_accessed = found.device_accessed;
        self.allocated = found.allocated;
        if self.is_size_kept {
            return;
        }
        if self.dirty.is_empty() {
            (self.size, self.valid) = (found.size, found.size);
        }
        self.device_size = found.device_size;
    }
}
