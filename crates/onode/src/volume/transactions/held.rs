//! One open transaction: its view, the volume on that, who is in it and when it was last used.

use crate::volume::Volume;
use crate::volume::transactions::{TransactionInfo, TransactionOptions};
use onode_base::Timestamp;
use onode_base::sync::{Condvar, Mutex, rank};
use onode_fs::{FileSystem, FileType, InodeNumber, Options, ViewStart, WriteMode};
use onode_object::ObjectDevice;
use onode_services::View;
use std::sync::Arc;

/// A file system within a transaction keeps back no more than that: there may be many of them.
const CACHE_BYTES: usize = 2 << 20;
const STREAM_BYTES: usize = 1 << 20;
const CACHED_INODES: usize = 4096;
const NAME_CACHE_BYTES: usize = 1 << 20;
/// Directories above one another, at most, that a path is looked for in.
const DEPTH_MAX: usize = 256;
/// Files that are looked at, at most, to find the path of one.
const WALKED_MAX: u32 = 100_000;

/// How a transaction mounts the volume that is mounted so.
pub(super) fn options(of: &Options) -> Options {
    Options {
        // What is done in it is durable when it is committed.
        write_mode: WriteMode::WriteBack,
        access_times: onode_fs::AccessTimes::Never,
        write_cache_bytes: CACHE_BYTES,
        stream_bytes: STREAM_BYTES,
        cached_inodes: CACHED_INODES.min(of.cached_inodes),
        name_cache_bytes: NAME_CACHE_BYTES.min(of.name_cache_bytes),
        ..of.clone()
    }
}

/// What a transaction sees.
pub(super) struct Viewed {
    pub(super) view: Arc<View<dyn ObjectDevice>>,
    pub(super) volume: Volume,
    /// How the volume stood when it began.
    pub(super) start: ViewStart,
}

/// Who is in a transaction.
struct Gate {
    users: usize,
    used: Timestamp,
    /// It is about to end.
    is_closed: bool,
}

/// The transaction.
pub(super) struct Held {
    id: u64,
    options: TransactionOptions,
    begun: Timestamp,
    viewed: Viewed,
    gate: Mutex<Gate, rank::TransactionUse>,
    left: Condvar,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("id", &self.id).field("options", &self.options).finish_non_exhaustive()
    }
}

/// Seconds from one moment to another; none if a clock was set back.
fn seconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.seconds.saturating_sub(from.seconds)).unwrap_or(0)
}

impl Held {
    pub(super) fn new(id: u64, options: TransactionOptions, now: Timestamp, viewed: Viewed) -> Self {
        let gate = Gate { users: 0, used: now, is_closed: false };
        Self { id, options, begun: now, viewed, gate: Mutex::new(gate), left: Condvar::new() }
    }

    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    pub(super) const fn uid(&self) -> u32 {
        self.options.uid
    }

    pub(super) const fn expiry_seconds(&self) -> u64 {
        self.options.expiry_seconds
    }

    pub(super) const fn volume(&self) -> &Volume {
        &self.viewed.volume
    }

    pub(super) const fn view(&self) -> &Arc<View<dyn ObjectDevice>> {
        &self.viewed.view
    }

    pub(super) const fn start(&self) -> ViewStart {
        self.viewed.start
    }

    pub(super) fn info(&self, now: Timestamp) -> TransactionInfo {
        TransactionInfo {
            id: self.id,
            uid: self.options.uid,
            age_seconds: seconds(self.begun, now),
            idle_seconds: seconds(self.gate.lock().used, now),
            expiry_seconds: self.options.expiry_seconds,
            bytes: self.viewed.view.bytes() as u64 + self.volume().files().statistics().dirty_bytes,
        }
    }

    /// Whether nobody used it for too long.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        let gate = self.gate.lock();
        let (expiry, is_idle) = (self.options.expiry_seconds, gate.users == 0 && !gate.is_closed);
        expiry > 0 && is_idle && seconds(gate.used, now) >= expiry
    }

    /// Begins a use; whether that is possible.
    pub(super) fn enter(&self, now: Timestamp) -> bool {
        let mut gate = self.gate.lock();
        if !gate.is_closed {
            gate.users += 1;
            gate.used = now;
        }
        !gate.is_closed
    }

    /// Ends a use.
    pub(super) fn leave(&self) {
        let mut gate = self.gate.lock();
        gate.users = gate.users.saturating_sub(1);
        if gate.users == 0 {
            self.left.notify_all();
        }
    }

    /// Notes that it is used.
    pub(super) fn touch(&self, now: Timestamp) {
        self.gate.lock().used = now;
    }

    /// Lets nobody in any more and waits until all have left; whether this call was the one that
    /// closed it.
    pub(super) fn close(&self) -> bool {
        let mut gate = self.gate.lock();
        if std::mem::replace(&mut gate.is_closed, true) {
            return false;
        }
        while gate.users > 0 {
            self.left.wait(&mut gate);
        }
        true
    }

    /// It goes on.
    pub(super) fn reopen(&self, now: Timestamp) {
        let mut gate = self.gate.lock();
        (gate.is_closed, gate.used) = (false, now);
    }

    /// A path to a file within the transaction.
    pub(super) fn path_of(&self, inode: InodeNumber) -> Option<String> {
        path_in(self.volume().files(), inode)
    }
}

/// The path of a file: of a directory soon found, of others if they are among the first files of
/// the volume.
pub(super) fn path_in(files: &FileSystem, inode: InodeNumber) -> Option<String> {
    let is_directory = files.attributes(inode).ok()?.file_type == FileType::Directory;
    if is_directory { path_upward(files, inode) } else { path_downward(files, inode) }
}

fn path_downward(files: &FileSystem, inode: InodeNumber) -> Option<String> {
    let (mut found, mut seen) = (None, 0);
    let stop = || Err(onode_fs::Error::from(onode_fs::ErrorKind::Busy));
    let walked = files.walk(b"/", &mut |path, attributes| {
        seen += 1;
        if attributes.inode == inode {
            found = Some(String::from_utf8_lossy(path).into_owned());
        }
        if found.is_some() || seen > WALKED_MAX { stop() } else { Ok(true) }
    });

    drop(walked);
    found
}

fn path_upward(files: &FileSystem, inode: InodeNumber) -> Option<String> {
    let mut parts = Vec::new();
    let mut at = inode;
    for _ in 0..DEPTH_MAX {
        if at == InodeNumber::ROOT {
            parts.reverse();
            return Some(format!("/{}", parts.join("/")));
        }
        let above = files.lookup(at, b"..").ok()?.inode;
        files.forget(above, 1);
        let mut name = None;
        let listed = files.read_directory(above, 0, &mut |entry| {
            let is_it = entry.inode == at && entry.name != b"." && entry.name != b"..";
            if is_it {
                name = Some(String::from_utf8_lossy(&entry.name).into_owned());
            }
            !is_it
        });
        listed.ok()?;
        parts.push(name?);
        at = above;
    }
    None
}
