//! Writing back: what is dirty becomes few large transactions.
//!
//! What is dirty of one file goes out together - a truncation first, then the bytes in file order,
//! then the inode - in one transaction if it fits into what the device likes to take at once. So a
//! file cut to nothing and written anew is, after a crash, the old one or the new one, never an
//! empty one. Small files that are due together share a transaction.
//!
//! A write-back that fails loses nothing: the data stays dirty, the file remembers the failure, and
//! every handle of it hears of it once.

use crate::error::{Error, Result};
use crate::file_system::{BLOCK_BYTES, FileSystem};
use crate::inodes::Inodes;
use crate::inodes::access;
use crate::limits::MARGIN_BYTES;
use crate::state::{Node, State};
use crate::types::InodeNumber;
use crate::volume::share::Locked;
use onode_base::{ErrorKind, Timestamp};
use onode_object::{Demand, Mutation, Transaction};
use std::ops::Range;

/// Memory that a dirty file takes besides its bytes.
const FILE_COST_BYTES: usize = 512;
const MARGIN_PART: u64 = 64;
/// A write that does not fit is cut to a multiple of this.
pub(crate) const SHORT_WRITE_BYTES: usize = 4096;
const EXTENTS_AT_ONCE: usize = 64;

/// One transaction's worth of one dirty file.
struct Plan {
    mutations: Vec<Mutation>,
    written: Vec<Range<u64>>,
    bytes: usize,
    /// The object's size afterwards.
    device_size: u64,
    /// The access time at the device afterwards.
    accessed: u64,
    /// Nothing is dirty afterwards.
    complete: bool,
}

/// A transaction carries `limit` bytes, in no more ranges than such a write of whole blocks has: a
/// device may store a block, or more, for each.
fn plan(inodes: Inodes, number: InodeNumber, node: &Node, limit: usize) -> Plan {
    let most_ranges = (limit / BLOCK_BYTES as usize).max(1);
    let object = number.object();
    let mut transaction = Transaction::new();
    let mut written = Vec::new();
    let mut bytes = 0;
    let mut device_size = node.valid;
    let mut complete = true;
    let mut accessed = node.device_accessed;
    if node.valid < node.device_size {
        transaction.truncate(object, node.valid);
    }
    for (start, data) in node.dirty.iter() {
        let left = if written.len() < most_ranges { limit.saturating_sub(bytes) } else { 0 };
        let take = data.len().min(left);
        if take > 0 {
            transaction.write(object, start, data[..take].to_vec());
            written.push(start..start + take as u64);
            bytes += take;
            device_size = device_size.max(start + take as u64);
        }
        if take < data.len() {
            complete = false;
            break;
        }
    }
    if complete {
        if node.size > device_size {
            transaction.truncate(object, node.size);
            device_size = node.size;
        }
        if node.inode_dirty {
            accessed = access::take_back(&mut transaction, object, node, &node.inode);
            inodes.store(&mut transaction, object, &node.inode);
        } else if node.access_dirty {
            accessed = access::device_time(node.inode.accessed);
            transaction.set_access_time(object, accessed);
        }
    }
    Plan { mutations: transaction.mutations, written, bytes, device_size, accessed, complete }
}

impl FileSystem {
    /// Writes out all that is dirty of a file.
    pub(crate) fn write_back_file(&self, state: &mut State, number: InodeNumber) -> Result<()> {
        while self.write_back_part(state, number)? {}
        Ok(())
    }

    /// Writes out one transaction's worth of a file and tells whether it has more.
    fn write_back_part(&self, state: &mut State, number: InodeNumber) -> Result<bool> {
        let Some(node) = state.nodes.get(&number.0) else { return Ok(false) };
        if !node.is_dirty() {
            state.clean(number.0);
            return Ok(false);
        }
        let before = node.device_accessed;
        let mut plan = plan(self.inodes, number, node, self.transaction_bytes);
        let is_access_only = matches!(&plan.mutations[..], [Mutation::SetAccessTime { .. }]);
        match self.commit_promised(state, Transaction { mutations: std::mem::take(&mut plan.mutations) }) {
            Ok(()) => {}
            // Nobody hears of a read on a full device.
            Err(error) if is_access_only && error.kind == ErrorKind::NoSpace => plan.accessed = before,
            Err(error) => return Err(error),
        }
        self.written_back(state, number, &plan);
        Ok(!plan.complete)
    }

    /// The lock, with no more than a transaction's worth of a file dirty: what is more was written
    /// out before, with the lock let go after each transaction, so that others need not wait for
    /// all of it. What is left, and a failure, is for [`write_back_file`](Self::write_back_file).
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn lock_written_ahead(&self, number: InodeNumber) -> Locked<'_> {
        let parts = |state: &State| match state.nodes.get(&number.0) {
            Some(node) if !node.removed => node.dirty.bytes() / self.transaction_bytes,
            _ => 0,
        };
        let mut state = self.lock();
        // As many parts as there are now: somebody may go on writing.
        for _ in 0..parts(&state) {
            if parts(&state) == 0 || self.write_back_part(&mut state, number).is_err() {
                break;
            }
            drop(state);
            state = self.lock();
        }
        state
    }

    /// Writes out all that is dirty; goes on after a failure and returns the first.
    pub(crate) fn write_back_all(&self, state: &mut State) -> Result<()> {
        let due: Vec<InodeNumber> = state.dirty().map(InodeNumber).collect();
        let (mut rest, mut result) = (&due[..], Ok(()));
        while !rest.is_empty() {
            result = result.and(self.write_back_some(state, &mut rest));
        }
        result
    }

    /// Writes out all that is dirty now, with the lock let go after each transaction. As
    /// [`write_back_all`](Self::write_back_all) it goes on after a failure.
    pub(crate) fn write_back_in_turn(&self) -> Result<()> {
        let due: Vec<InodeNumber> = self.lock().dirty().map(InodeNumber).collect();
        self.each_in_turn(&due)
    }

    /// Writes out what has been dirty for too long, as
    /// [`write_back_in_turn`](Self::write_back_in_turn); tells whether there was anything.
    pub(crate) fn write_back_aged(&self, now: Timestamp) -> bool {
        let due: Vec<InodeNumber> = {
            let state = self.lock();
            let is_due = |number: &u64| {
                let since = state.nodes.get(number).and_then(|node| node.dirty_since);
                since.is_none_or(|(since, _)| self.is_aged(since, now))
            };
            state.dirty().take_while(is_due).map(InodeNumber).collect()
        };
        // Failures are remembered by the files.
        let _ = self.each_in_turn(&due);
        !due.is_empty()
    }

    fn each_in_turn(&self, files: &[InodeNumber]) -> Result<()> {
        let (mut rest, mut result) = (files, Ok(()));
        while let Some(first) = rest.first() {
            let state = &mut *self.lock_written_ahead(*first);
            result = result.and(self.write_back_some(state, &mut rest));
        }
        result
    }

    /// Writes out the first of some files, or several small ones in one transaction, and takes them
    /// off the list.
    fn write_back_some(&self, state: &mut State, files: &mut &[InodeNumber]) -> Result<()> {
        let mut transaction = Transaction::new();
        let mut plans = Vec::new();
        let mut bytes = 0;
        while let Some((&number, others)) = files.split_first() {
            let Some(node) = state.nodes.get(&number.0) else {
                *files = others;
                continue;
            };
            if !plans.is_empty() && bytes + node.dirty.bytes() > self.transaction_bytes {
                break;
            }
            let mut plan = plan(self.inodes, number, node, self.transaction_bytes);
            bytes += plan.bytes;
            transaction.mutations.append(&mut plan.mutations);
            plans.push((number, plan));
            *files = others;
        }
        let together = self.commit_promised(state, transaction);
        let mut result = Ok(());
        for (number, plan) in plans {
            let done = if together.is_ok() {
                self.written_back(state, number, &plan);
                if plan.complete { Ok(()) } else { self.write_back_file(state, number) }
            } else {
                // One file's failure must not be every file's.
                self.write_back_file(state, number)
            };
            if let Err(error) = done {
                self.remember_failure(state, number, error.kind);
                result = result.and(Err(error));
            }
        }
        result
    }

    /// Notes a failed write-back, to be told by every handle's next `fsync` or close.
    pub(crate) fn remember_failure(&self, state: &mut State, number: InodeNumber, kind: ErrorKind) {
        state.statistics.write_back_errors += 1;
        let now = self.now();
        let Some(node) = state.nodes.get_mut(&number.0) else { return };
        node.failures += 1;
        node.failure = Some(kind);
        // It queues up again at the end.
        if state.unmark_dirty(number.0) {
            state.mark_dirty(number.0, now);
        }
    }

    /// Makes room in the cache for `bytes` more.
    pub(crate) fn make_cache_room(&self, state: &mut State, bytes: usize) {
        let mut tries = state.dirty_files();
        let held = |state: &State| state.dirty_bytes + state.dirty_files() * FILE_COST_BYTES;
        while held(state) + bytes > self.options.write_cache_bytes && tries > 0 {
            tries -= 1;
            let Some(oldest) = state.dirty().next() else { break };
            if let Err(error) = self.write_back_file(state, InodeNumber(oldest)) {
                self.remember_failure(state, InodeNumber(oldest), error.kind);
            }
        }
    }

    /// Finds room for a write of `length` bytes; returns how many of them fit.
    ///
    /// So `write` says that there is no space, not a later `fsync`: what the device needs for all
    /// that is dirty stays set aside until it has it, and a name or another write gets only what is
    /// left ([`leave_room`](Self::leave_room)).
    pub(crate) fn reserve(&self, state: &mut State, number: InodeNumber, offset: u64, length: usize) -> Result<usize> {
        if !state.shares_space() && self.fits(state, number, offset, length) {
            return Ok(length);
        }
        self.refresh_space(state);
        if !self.fits(state, number, offset, length) && state.dirty_files() > 0 {
            // What is dirty may be overwrites and truncations that need no space in the end.
            self.write_back_all(state)?;
            self.refresh_space(state);
        }
        let mut part = length;
        while part > 0 && !self.fits(state, number, offset, part) {
            part = part / 2 / SHORT_WRITE_BYTES * SHORT_WRITE_BYTES;
        }
        let is_refused = part == 0 && (length > 0 || !self.fits(state, number, offset, 0));
        if is_refused { Err(Error::new(ErrorKind::NoSpace, "")) } else { Ok(part) }
    }

    /// Whether a write has room beside all that is dirty.
    fn fits(&self, state: &State, number: InodeNumber, offset: u64, length: usize) -> bool {
        let Some(node) = state.nodes.get(&number.0) else { return false };
        let needs = self.device.space_for(&node.demand(Some((offset, length))));
        needs.saturating_sub(node.promised) <= state.budget()
    }

    /// Whether a change of a file that puts as much in the place of what is there, or takes some
    /// away (`cut` bytes), can wait in memory: where something is kept of it, that has room beside
    /// all that is dirty. If not, the device is to have the change at once, and who asks for it
    /// hears.
    pub(crate) fn can_wait(&self, state: &mut State, number: InodeNumber, cut: u64) -> bool {
        let needs = self.device.space_to_replace(cut);
        let lacks = |state: &State| {
            let promised = state.nodes.get(&number.0).map_or(0, |node| node.promised);
            needs.saturating_sub(promised) > state.budget()
        };
        if needs > 0 && (lacks(state) || state.shares_space()) {
            self.refresh_space(state);
        }
        needs == 0 || !lacks(state)
    }

    /// Leaves room for what is dirty before a change that takes something away, or puts as much in
    /// its place: where something is kept of it the dirty files go first if there is little.
    ///
    /// # Errors
    /// `NoSpace` if there is too little beside what other file systems on the device have set
    /// aside: their files cannot go first.
    pub(crate) fn leave_room_beside(&self, state: &mut State, transaction: &Transaction) -> Result<()> {
        if self.device.space_to_replace(0) == 0 {
            return Ok(());
        }
        let cut = |mutation: &Mutation| match mutation {
            Mutation::Remove { object } | Mutation::Truncate { object, .. } => {
                self.device.stat(*object).map_or(0, |stat| stat.allocated)
            }
            Mutation::Punch { length, .. } => *length,
            _ => 0,
        };
        let needs = transaction.mutations.iter().map(|one| self.device.space_to_replace(cut(one))).sum::<u64>();
        if state.is_any_set_aside() {
            self.find_room(state, needs);
        }
        if needs > state.budget() && state.set_aside_by_others() > 0 {
            return Err(Error::new(ErrorKind::NoSpace, ""));
        }
        state.space = state.space.saturating_sub(needs);
        Ok(())
    }

    /// Leaves room for what is dirty before a change that the device gets at once: if that is not
    /// there any more the dirty files go first.
    pub(crate) fn leave_room(&self, state: &mut State, demand: &Demand) -> Result<()> {
        let needs = self.device.space_for(demand);
        self.find_room(state, needs);
        // With nothing set aside the device knows best.
        if needs > state.budget() && state.is_any_set_aside() {
            return Err(Error::new(ErrorKind::NoSpace, ""));
        }
        state.space = state.space.saturating_sub(needs);
        Ok(())
    }

    /// Looks for so much room beside what is set aside: if it is not there the dirty files go
    /// first.
    fn find_room(&self, state: &mut State, needs: u64) {
        if needs > state.budget() || state.shares_space() {
            self.refresh_space(state);
        }
        if needs > state.budget() && state.dirty_files() > 0 {
            // Who is refused hears of it from the file.
            let _ = self.write_back_all(state);
            self.refresh_space(state);
        }
    }

    /// Whether the device has content in the whole range, so that writing there needs no more space
    /// than there was.
    pub(crate) fn is_stored(&self, state: &State, number: InodeNumber, offset: u64, length: usize) -> Result<bool> {
        let end = offset + length as u64;
        let is_inside = |node: &Node| node.is_as_on_device() && end <= node.size;
        if !state.nodes.get(&number.0).is_some_and(|node| is_inside(node)) {
            return Ok(false);
        }
        let mut position = offset;
        while position < end {
            let extents = self.device.extents(number.object(), position, EXTENTS_AT_ONCE)?;
            let before = position;
            for (start, length) in extents {
                if start > position {
                    break;
                }
                position = position.max(start.saturating_add(length));
            }
            if position == before {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn refresh_space(&self, state: &mut State) {
        let available = self.device.promisable().saturating_sub(state.set_aside_by_others());
        state.space = available.saturating_sub(available / MARGIN_PART + MARGIN_BYTES);
    }

    /// Takes into memory what a plan's commit did.
    fn written_back(&self, state: &mut State, number: InodeNumber, plan: &Plan) {
        let Some(node) = state.nodes.get_mut(&number.0) else { return };
        node.device_size = plan.device_size;
        node.valid = plan.device_size;
        node.device_changed();
        state.statistics.written_back_bytes += plan.bytes as u64;
        if plan.complete {
            node.device_accessed = plan.accessed;
            node.rewritten &= self.options.closes_are_heard;
            state.space = state.space.saturating_sub(node.promised);
            state.clean(number.0);
            return;
        }
        let before = node.dirty.bytes();
        for range in &plan.written {
            node.dirty.discard(range.clone());
        }
        state.dirty_bytes -= before - node.dirty.bytes();
        state.keep_promise(self.device.as_ref(), number.0);
    }
}
