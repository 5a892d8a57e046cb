//! What the superblocks of a mounted volume say: the content of the newest one, which of the two
//! copies at the start is surely durable, and what it tells of this session.
//!
//! What it keeps true: the copy that is written first is never the one that is surely durable. The
//! volume counts as open, or as leaning on the fast disk, only when that was written and waited
//! for.
//!
//! What it does not do: write. Who has the right to write to the big disk does that.

use crate::fast::format::Division;
use crate::log::need::Need;
use crate::medium::layout::Layout;
use crate::medium::superblock::{FastState, Mark, Superblock};
use alloc::string::String;
use alloc::vec::Vec;

/// What the superblock will say.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// The checkpoint.
    pub checkpoint: u64,
    /// The division of the disk from this checkpoint on.
    pub layout: Layout,
    /// Block and checksum of the root.
    pub root: (u64, u32),
    /// Nodes of the tree.
    pub nodes: u64,
    /// Objects.
    pub objects: u64,
    /// The first id that was never handed out.
    pub next_id: u64,
    /// Digest of the bitmap.
    pub bitmap_digest: u32,
    /// Commits in it.
    pub commits: u64,
}

/// The superblocks.
#[derive(Debug)]
pub struct Anchors {
    /// What is written next.
    superblock: Superblock,
    /// The block of the copy that is surely durable.
    durable_copy: u64,
    /// The superblock on the disk says that the volume is in use.
    is_open: bool,
    /// The superblock on the disk says that the fast disk may have what the big one lacks.
    may_lean: bool,
}

impl Anchors {
    /// The superblock that a mount found in this block.
    #[must_use]
    pub const fn new(superblock: Superblock, copy: u64) -> Self {
        Self { superblock, durable_copy: copy, is_open: false, may_lean: false }
    }

    /// What the superblock says, or will say when it is written next.
    #[must_use]
    pub const fn get(&self) -> &Superblock {
        &self.superblock
    }

    /// Its block.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.superblock.encode()
    }

    /// Whether the copy at the end of the disk is all that was found. From now on those at the
    /// start are written.
    pub fn leaves_the_end(&mut self) -> bool {
        let is_at_end = self.durable_copy > 1;
        self.durable_copy = self.durable_copy.min(1);
        is_at_end
    }

    /// A session begins, later than all before and than `after`.
    pub fn begin_session(&mut self, after: u64) {
        self.superblock.session = self.superblock.session.max(after) + 1;
        self.superblock.is_closed = false;
    }

    /// No record of an earlier format is behind the checkpoint.
    pub const fn renew_format(&mut self) {
        self.superblock.version = Superblock::version_for(&self.superblock.layout);
    }

    /// Everything of a checkpoint is durable, and the logs go on behind these marks; for the fast
    /// disk's with its last durable record.
    pub fn set_checkpoint(&mut self, snapshot: &Snapshot, tail: Mark, fast: Option<(Mark, Mark)>) {
        let superblock = &mut self.superblock;
        superblock.tail = tail;
        if let Some((tail, last)) = fast {
            (superblock.fast.tail, superblock.fast.last) = (tail, last);
        }
        (superblock.checkpoint, superblock.layout) = (snapshot.checkpoint, snapshot.layout);
        (superblock.root, superblock.root_crc) = snapshot.root;
        (superblock.nodes, superblock.objects) = (snapshot.nodes, snapshot.objects);
        (superblock.next_id, superblock.bitmap_digest) = (snapshot.next_id, snapshot.bitmap_digest);
        self.renew_format();
    }

    /// The fast disk of this number takes part, in this session; its log goes on at `tail`, behind
    /// `last`.
    pub fn attach_fast(&mut self, uuid: [u8; 16], tail: Mark, last: Mark) {
        self.superblock.fast = FastState {
            is_attached: true,
            is_known: true,
            leans: false,
            uuid,
            session: self.superblock.session,
            tail,
            last,
            detached_at: 0,
        };
        self.may_lean = false;
    }

    /// The fast disk takes no part from record `newest` on.
    pub const fn detach_fast(&mut self, newest: u64) {
        let fast = &mut self.superblock.fast;
        (fast.is_attached, fast.leans, fast.detached_at) = (false, false, newest);
    }

    /// How the fast disk is divided.
    pub fn set_division(&mut self, names: Vec<String>, division: Division) {
        (self.superblock.sections, self.superblock.division) = (names, Some(division));
    }

    /// Whether a superblock on the disk says that the volume is in use.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// The next superblock says that the volume is in use; false if those on the disk do.
    pub const fn open(&mut self) -> bool {
        if !self.is_open {
            self.superblock.is_closed = false;
        }
        !self.is_open
    }

    /// They say so now.
    pub const fn is_opened(&mut self) {
        self.is_open = true;
    }

    /// The next superblock says that the volume is closed in order.
    pub const fn close(&mut self) {
        (self.superblock.is_closed, self.superblock.fast.leans) = (true, false);
        (self.is_open, self.may_lean) = (false, false);
    }

    /// Whether the big disk has to say first that the fast one, which takes part if `has_fast`, may
    /// have what it lacks.
    #[must_use]
    pub const fn must_lean(&self, has_fast: bool, need: Need) -> bool {
        need.either && has_fast && self.superblock.fast.is_attached && !self.may_lean
    }

    /// The next superblock says so; false if there is no fast disk, or if those on the disk do.
    pub const fn lean(&mut self) -> bool {
        let begins = self.superblock.fast.is_attached && !self.may_lean;
        if begins {
            self.superblock.fast.leans = true;
        }
        begins
    }

    /// They say so now.
    pub const fn leans(&mut self) {
        self.may_lean = true;
    }

    /// The next superblock: its sequence, the copy that it is written to first, and its bytes.
    pub fn next_copy(&mut self) -> (u64, u64, Vec<u8>) {
        self.superblock.sequence += 1;
        (self.superblock.sequence, 1 - self.durable_copy, self.encode())
    }

    /// That copy is durable; returns the bytes for the other one.
    pub fn copy_is_durable(&mut self, copy: u64) -> Vec<u8> {
        self.durable_copy = copy;
        self.encode()
    }
}
