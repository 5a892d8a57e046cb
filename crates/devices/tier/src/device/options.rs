//! How a volume is made and mounted.

use crate::fast::{FastOptions, FastSettings};
use alloc::boxed::Box;
use onode_media::{BlockDev, Seam};
use onode_object::Acknowledge;

/// How a volume is made.
#[derive(Clone, Debug)]
pub struct FormatOptions {
    /// The volume's unique number.
    pub uuid: [u8; 16],
    /// Bytes of the big disk that the volume has at first; `None` for all of them.
    pub bytes: Option<u64>,
    /// Bytes of the log ring on the big disk; `None` for 4 MiB, less on a small disk, up to 64 MiB
    /// on a large one.
    pub log_bytes: Option<u64>,
    /// Bytes left out in it behind each record that somebody waited for, so that the next one does
    /// not wait for a turn of the disk; `None` for 32 KiB in a ring of at least 16 MiB and none in
    /// a smaller one.
    pub log_gap_bytes: Option<u64>,
    /// When durable commits return for objects whose placement does not say it; the volume's own
    /// setting means safe.
    pub acknowledge: Acknowledge,
}

impl Default for FormatOptions {
    fn default() -> Self {
        Self {
            uuid: *b"onode unnamed   ",
            bytes: None,
            log_bytes: None,
            log_gap_bytes: None,
            acknowledge: Acknowledge::Safe,
        }
    }
}

/// A disk that becomes the fast disk of a volume.
pub struct NewFast {
    /// The disk.
    pub disk: Box<dyn BlockDev>,
    /// Its own number.
    pub uuid: [u8; 16],
    /// How it is divided.
    pub options: FastOptions,
}

/// How a volume is mounted. All of it may differ from mount to mount.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Nothing is written, the log is replayed in memory only.
    pub read_only: bool,
    /// Mount although the medium holds less than was promised; otherwise that is refused as `Loss`,
    /// and nothing is changed.
    pub accept_loss: bool,
    /// Drop what is damaged in the tree, so that the rest can be used; otherwise a mount that needs
    /// it is refused as `Corrupt`.
    pub drop_damaged: bool,
    /// Another rule than the volume's for when durable commits return, as long as it is mounted.
    pub acknowledge: Acknowledge,
    /// How the fast disk is used.
    pub fast: FastSettings,
    /// Memory for nodes of the tree that could be read again.
    pub node_cache_bytes: u64,
    /// Memory for content that the log has and that has no place of its own yet; as much again
    /// while a checkpoint brings that home.
    pub pending_bytes: u64,
    /// Memory for last blocks of files that went home lately, so that appending to them reads
    /// nothing.
    pub tail_bytes: u64,
    /// Bytes of the log that the big disk may lack in the class [`Acknowledge::Either`] before a
    /// checkpoint begins, and again while it is under way.
    pub either_bytes: u64,
    /// The big disk is told of blocks that nobody needs any more ([`FastSettings::discard`] is for
    /// the fast one).
    pub discard: bool,
    /// A write of more content than this goes to its place before the log names it.
    pub place_above_bytes: usize,
    /// Where somebody is told that a disk works for a call, before its lock is taken.
    pub seam: Option<Seam>,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            accept_loss: false,
            drop_damaged: false,
            acknowledge: Acknowledge::Volume,
            fast: FastSettings::default(),
            node_cache_bytes: 16 << 20,
            pending_bytes: 32 << 20,
            tail_bytes: 32 << 20,
            either_bytes: 32 << 20,
            discard: true,
            place_above_bytes: 64 << 10,
            seam: None,
        }
    }
}
