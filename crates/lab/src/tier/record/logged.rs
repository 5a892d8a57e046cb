//! A file that logs what is done with it: the medium of a loop device whose requests are to be
//! recorded.
//!
//! A FUSE file system with one file, `disk`, over a sparse file of the host. One thread serves it,
//! so the log has requests in the order in which the kernel handed them over.

use crate::tier::failed;
use crate::tier::recording::{Done, Event};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use onode::Result;
use rustix::fs::{FallocateFlags, fallocate};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

/// The name of the file in the mount.
pub(super) const NAME: &str = "disk";
const INODE: INodeNo = INodeNo(2);
const TTL: Duration = Duration::from_secs(3600);
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Between the time of a flush on flash and on platters.
const FLUSH_TIME: Duration = Duration::from_millis(3);

/// What was done so far; clones are the same log.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<Event>>>);

impl Log {
    fn push(&self, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    pub(super) fn begin(&self, phase: &str) {
        self.push(Event::Begin(phase.to_owned()));
    }

    pub(super) fn end(&self, done: Done) {
        self.push(Event::End(done));
    }

    pub(super) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Logged {
    backing: File,
    bytes: u64,
    log: Log,
    /// Where flushes are answered that take time; others are done at once.
    slow: Option<Sender<ReplyEmpty>>,
}

/// Answers flushes, each after a time in which other programs hand requests over, as on a disk that
/// is not infinitely fast. The kernel has one under way at a time.
fn answer_slowly(flushes: &Receiver<ReplyEmpty>, log: &Log) {
    for flush in flushes {
        std::thread::sleep(FLUSH_TIME);
        log.push(Event::Flush);
        flush.ok();
    }
}

impl Logged {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_file = inode == INODE;
        FileAttr {
            ino: inode,
            size: if is_file { self.bytes } else { 0 },
            blocks: if is_file { self.bytes / 512 } else { 0 },
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

fn wrong(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_i32)
}

impl Filesystem for Logged {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for wanted in [InitFlags::FUSE_MAX_PAGES, InitFlags::FUSE_ASYNC_DIO, InitFlags::FUSE_BIG_WRITES] {
            // A kernel without it sends smaller requests.
            let _ = config.add_capabilities(wanted);
        }
        let _ = config.set_max_write(REQUEST_BYTES_MAX);
        Ok(())
    }

    fn lookup(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            reply.entry(&TTL, &self.attributes(INODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attributes(inode));
    }

    fn open(&self, _request: &Request, _inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let length = u64::from(size).min(self.bytes.saturating_sub(offset));
        self.log.push(Event::Read(offset, length));
        let mut buffer = vec![0; length as usize];
        match self.backing.read_exact_at(&mut buffer, offset) {
            Ok(()) => reply.data(&buffer),
            Err(error) => reply.error(wrong(&error)),
        }
    }

    fn write(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.log.push(Event::Write(offset, data.len() as u64));
        match self.backing.write_all_at(data, offset) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(wrong(&error)),
        }
    }

    fn fsync(&self, _request: &Request, _inode: INodeNo, _handle: FileHandle, _data_only: bool, reply: ReplyEmpty) {
        let Some(slow) = &self.slow else {
            self.log.push(Event::Flush);
            return reply.ok();
        };
        self.log.push(Event::FlushBegin);
        // Nobody takes it when the mount is ending.
        let _ = slow.send(reply);
    }

    fn fallocate(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let flags = FallocateFlags::from_bits_retain(mode as u32);
        if flags.contains(FallocateFlags::PUNCH_HOLE) {
            self.log.push(Event::Discard(offset, length));
        } else {
            self.log.push(Event::Write(offset, length));
        }
        match fallocate(&self.backing, flags, offset, length) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(Errno::from_i32(error.raw_os_error())),
        }
    }
}

/// Serves a file of `bytes` over `backing` in the directory `mount` until it is dropped; `slow`:
/// flushes take time.
pub(super) fn serve(backing: File, bytes: u64, mount: &Path, log: &Log, slow: bool) -> Result<BackgroundSession> {
    let slow = slow.then(|| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let log = log.clone();
        std::thread::spawn(move || answer_slowly(&receiver, &log));
        sender
    });
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("onode-lab".to_owned())];
    fuser::spawn_mount(Logged { backing, bytes, log: log.clone(), slow }, mount, &config)
        .map_err(|error| failed("cannot mount the file whose requests are logged (FUSE and root are needed)", error))
}
