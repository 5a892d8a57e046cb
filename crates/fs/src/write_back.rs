//! Writing back: what is dirty becomes few large transactions.
//!
//! What is dirty of one file goes out together - a truncation first, then the bytes in file order, then
//! the inode - in one transaction if it fits into what the device likes to take at once. So a file cut
//! to nothing and written anew is, after a crash, the old one or the new one, never an empty one. Small
//! files that are due together share a transaction.
//!
//! A write-back that fails loses nothing: the data stays dirty, the file remembers the failure, and
//! every handle of it hears of it once.

use crate::access;
use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::inodes::Inodes;
use crate::state::{Node, State};
use crate::types::InodeNumber;
use onode_base::{ErrorKind, Timestamp};
use onode_object::{Mutation, Transaction};
use std::ops::Range;

/// What a range in the cache may cost the device besides its bytes.
const RANGE_COST_BYTES: u64 = 128;
/// Memory that a dirty file takes besides its bytes.
const FILE_COST_BYTES: usize = 512;
/// Space that writes leave for names and inodes.
pub(crate) const MARGIN_BYTES: u64 = 8192;
const MARGIN_PART: u64 = 64;
/// A write that does not fit is cut to a multiple of this.
const SHORT_WRITE_BYTES: u64 = 4096;

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

fn plan(inodes: Inodes, number: InodeNumber, node: &Node, limit: usize) -> Plan {
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
        let take = data.len().min(limit.saturating_sub(bytes));
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
        loop {
            let Some(node) = state.nodes.get(&number.0) else { return Ok(()) };
            if !node.is_dirty() {
                state.clean(number.0);
                return Ok(());
            }
            let before = node.device_accessed;
            let mut plan = plan(self.inodes, number, node, self.transaction_bytes);
            let is_access_only = matches!(&plan.mutations[..], [Mutation::SetAccessTime { .. }]);
            match self.commit(state, Transaction { mutations: std::mem::take(&mut plan.mutations) }) {
                Ok(()) => {}
                // Nobody hears of a read on a full device.
                Err(error) if is_access_only && error.kind == ErrorKind::NoSpace => plan.accessed = before,
                Err(error) => return Err(error),
            }
            written_back(state, number, &plan);
            if plan.complete {
                return Ok(());
            }
        }
    }

    /// Writes out all that is dirty; goes on after a failure and returns the first.
    pub(crate) fn write_back_all(&self, state: &mut State) -> Result<()> {
        let due: Vec<InodeNumber> = state.dirty().map(InodeNumber).collect();
        self.write_back_batch(state, &due)
    }

    /// Writes out what has been dirty for too long; tells whether there was anything.
    pub(crate) fn write_back_aged(&self, state: &mut State, now: Timestamp) -> bool {
        let due: Vec<InodeNumber> = state
            .dirty()
            .take_while(|number| {
                let since = state.nodes.get(number).and_then(|node| node.dirty_since);
                since.is_none_or(|(since, _)| self.is_aged(since, now))
            })
            .map(InodeNumber)
            .collect();
        // Failures are remembered by the files.
        let _ = self.write_back_batch(state, &due);
        !due.is_empty()
    }

    /// Writes out files, small ones together.
    fn write_back_batch(&self, state: &mut State, files: &[InodeNumber]) -> Result<()> {
        let mut result = Ok(());
        let mut rest = files;
        while !rest.is_empty() {
            let mut transaction = Transaction::new();
            let mut plans = Vec::new();
            let mut bytes = 0;
            while let Some((&number, others)) = rest.split_first() {
                let Some(node) = state.nodes.get(&number.0) else {
                    rest = others;
                    continue;
                };
                if !plans.is_empty() && bytes + node.dirty.bytes() > self.transaction_bytes {
                    break;
                }
                let mut plan = plan(self.inodes, number, node, self.transaction_bytes);
                bytes += plan.bytes;
                transaction.mutations.append(&mut plan.mutations);
                plans.push((number, plan));
                rest = others;
            }
            let together = self.commit(state, transaction);
            for (number, plan) in plans {
                let done = if together.is_ok() {
                    written_back(state, number, &plan);
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

    /// Sets space aside for a write of `bytes`; returns how many of them fit.
    ///
    /// So `write` says that there is no space, not a later `fsync`.
    pub(crate) fn reserve(&self, state: &mut State, bytes: usize) -> Result<usize> {
        let cost = bytes as u64 + RANGE_COST_BYTES;
        if cost > state.space_budget {
            self.refresh_budget(state);
        }
        if cost > state.space_budget && state.dirty_files() > 0 {
            // What is dirty may be overwrites and truncations that need no space in the end.
            self.write_back_all(state)?;
            self.refresh_budget(state);
        }
        if cost <= state.space_budget {
            state.space_budget -= cost;
            return Ok(bytes);
        }
        let part = state.space_budget.saturating_sub(RANGE_COST_BYTES) / SHORT_WRITE_BYTES * SHORT_WRITE_BYTES;
        if part == 0 {
            return Err(Error::new(ErrorKind::NoSpace, ""));
        }
        state.space_budget = 0;
        Ok(part as usize)
    }

    fn refresh_budget(&self, state: &mut State) {
        let ranges: u64 =
            state.dirty().filter_map(|number| state.nodes.get(&number)).map(|node| node.dirty.count() as u64 + 1).sum();
        let available = self.device.space().available;
        let promised = state.dirty_bytes as u64 + ranges * RANGE_COST_BYTES;
        state.space_budget = available.saturating_sub(available / MARGIN_PART + MARGIN_BYTES).saturating_sub(promised);
    }
}

/// Takes into memory what a plan's commit did.
fn written_back(state: &mut State, number: InodeNumber, plan: &Plan) {
    let Some(node) = state.nodes.get_mut(&number.0) else { return };
    node.device_size = plan.device_size;
    node.valid = plan.device_size;
    node.device_changed();
    state.statistics.written_back_bytes += plan.bytes as u64;
    if plan.complete {
        node.device_accessed = plan.accessed;
        state.clean(number.0);
        return;
    }
    let before = node.dirty.bytes();
    for range in &plan.written {
        node.dirty.discard(range.clone());
    }
    state.dirty_bytes -= before - node.dirty.bytes();
}
