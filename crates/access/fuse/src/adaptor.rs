//! The adaptor: FUSE requests in, calls of the file system out. Nothing else that serves
//! files knows the FUSE crate, so another one takes another adaptor.
//!
//! Where this mount is the only writer of its volume the kernel may remember names, attributes and
//! content as long as it likes, and files are not opened at all: every request names its inode, and a
//! file without a name lives until the kernel forgets it. What holds elsewhere is said by [`Opening`].
//! Permissions are the kernel's business (`default_permissions`); what the file system must know of the
//! caller travels in [`Caller`].

use crate::answer::{
    Answer, answer_attributes, answer_done, answer_empty, answer_entry, answer_shown, answer_space, answer_value,
    generation_of,
};
use crate::convert::{
    allocation, attributes, errno, errno_of, inode, no_attributes, set_time, sought, timestamp, xattr_flags,
};
use crate::credentials::{caller, caller_with_groups, names_shown};
use crate::directory;
use crate::faces::Faces;
use crate::opening::Opening;
use crate::options::{Atime, Options};
use crate::page_cache::PageCache;
use crate::patience;
use crate::set_id::SetId;
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, Notifier, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs,
    ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use onode::Result;
use onode_base::ErrorKind;
use onode_fs::{Caller, FileSystem, SetAttributes};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

/// How long the kernel may believe what it knows; it drops what it changes itself.
const TTL: Duration = Duration::from_secs(3600);
/// The largest request; more pages than the kernel's usual limit bring nothing.
const REQUEST_BYTES_MAX: u32 = 1 << 20;
const ACCESS_LIST: &str = "system.posix_acl_access";
const CAPABILITIES: &str = "security.capability";
/// Attributes of the root directory whose names begin so are views of the mount. They can be read and are
/// not listed.
pub const VIEW_PREFIX: &str = "onode.";

thread_local! {
    /// What a thread reads into; as large as its largest read so far.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes the view of a name, which comes without [`VIEW_PREFIX`]; `None` if there is no such view.
pub type Views = Box<dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync>;

/// The way to tell the kernel something it did not ask for; there once the session is.
pub(crate) type LateNotifier = Arc<OnceLock<Notifier>>;

pub(crate) struct Adaptor {
    files: Arc<FileSystem>,
    views: Views,
    faces: Faces,
    writeback: bool,
    is_shared: bool,
    /// Every read of a link comes here, too.
    keeps_links: bool,
    /// How long the kernel may believe what it knows. Where others change the files without it: not at all.
    ttl: Duration,
    opening: Opening,
    page_cache: Arc<PageCache>,
    set_id: SetId,
}

impl Adaptor {
    pub(crate) fn new(
        files: Arc<FileSystem>,
        options: &Options,
        views: Views,
        faces: Faces,
        notifier: LateNotifier,
    ) -> Result<Self> {
        let is_shared = files.device().share().is_some();
        let opening = Opening::wanted(is_shared, options);
        Ok(Self {
            writeback: options.writeback && !is_shared,
            is_shared,
            keeps_links: !is_shared && (options.atime != Atime::Strict || options.read_only),
            ttl: if is_shared { Duration::ZERO } else { TTL },
            opening,
            page_cache: Arc::new(PageCache::start(&files, Arc::clone(&notifier))?),
            set_id: SetId::new(&files, notifier),
            files,
            views,
            faces,
        })
    }
}

impl Filesystem for Adaptor {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let mut wanted = InitFlags::FUSE_ASYNC_READ
            | InitFlags::FUSE_BIG_WRITES
            | InitFlags::FUSE_MAX_PAGES
            | InitFlags::FUSE_DONT_MASK
            | InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_EXPORT_SUPPORT
            | InitFlags::FUSE_POSIX_ACL
            | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
        if self.writeback {
            wanted |= InitFlags::FUSE_WRITEBACK_CACHE;
        }
        if self.keeps_links {
            wanted |= InitFlags::FUSE_CACHE_SYMLINKS;
        }
        self.opening = self.opening.with(config.capabilities(), self.is_shared);
        wanted |= self.opening.flags();
        // What an older kernel does not know it does not need.
        let offered = wanted & config.capabilities();
        let _ = config.add_capabilities(offered);
        let _ = config.set_max_write(REQUEST_BYTES_MAX);
        if let Err(most) = config.set_max_readahead(REQUEST_BYTES_MAX) {
            let _ = config.set_max_readahead(most);
        }
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if self.faces.guards(parent, name) {
            return match self.faces.lookup(parent, name) {
                Ok(found) => reply.entry(&self.ttl, &found, Generation(0)),
                Err(errno) => reply.error(errno),
            };
        }
        match self.files.lookup(inode(parent), name.as_bytes()) {
            // The kernel remembers that there is none.
            Err(error) if error.kind == ErrorKind::NotFound => reply.entry(&self.ttl, &no_attributes(), Generation(0)),
            result => answer_entry(&self.ttl, result, reply),
        }
    }

    fn forget(&self, _request: &Request, number: INodeNo, count: u64) {
        if Faces::owns(number) {
            return;
        }
        self.files.forget(inode(number), count);
    }

    fn getattr(&self, _request: &Request, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        if Faces::owns(number) {
            return answer_shown(&self.ttl, self.faces.attributes(number), reply);
        }
        answer_attributes(&self.ttl, self.files.attributes(inode(number)), reply);
    }

    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        changed: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _changed_flags: Option<SystemTime>,
        _backed_up: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if Faces::owns(number) {
            // A length is ignored, as by a block device; so are times.
            let refused = mode.is_some() || uid.is_some() || gid.is_some();
            return answer_shown(
                &self.ttl,
                if refused { Err(Errno::EPERM) } else { self.faces.attributes(number) },
                reply,
            );
        }
        if (mode, uid, gid, size) == (None, None, None, None)
            && accessed.is_none()
            && modified.is_none()
            && self.set_id.was_disarmed(number, request)
        {
            return answer_attributes(&self.ttl, self.files.attributes(inode(number)), reply);
        }
        let change = SetAttributes {
            permissions: mode.map(|mode| (mode & 0o7777) as u16),
            uid,
            gid,
            size,
            accessed: accessed.map(set_time),
            modified: modified.map(set_time),
            changed: changed.map(timestamp),
        };
        let takes_bits = size.is_some() || uid.is_some() || gid.is_some();
        let caller = if takes_bits { self.set_id.caller(request, number) } else { caller(request, 0) };
        answer_attributes(&self.ttl, self.files.set_attributes(&caller, inode(number), &change), reply);
    }

    fn readlink(&self, _request: &Request, number: INodeNo, reply: ReplyData) {
        match self.files.read_link(inode(number)) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        if self.faces.guards(parent, name) {
            return reply.error(Errno::EPERM);
        }
        let caller = caller(request, umask);
        let made = self.files.make_node(&caller, inode(parent), name.as_bytes(), mode, u64::from(device));
        answer_entry(&self.ttl, made, reply);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        if self.faces.guards(parent, name) {
            return reply.error(Errno::EPERM);
        }
        let permissions = (mode & 0o7777) as u16;
        let caller = caller(request, umask);
        answer_entry(&self.ttl, self.files.make_directory(&caller, inode(parent), name.as_bytes(), permissions), reply);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if self.faces.guards(parent, name) {
            return reply.error(Errno::EPERM);
        }
        answer_empty(self.files.unlink(inode(parent), name.as_bytes()), reply);
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if self.faces.guards(parent, name) {
            return reply.error(Errno::EPERM);
        }
        answer_empty(self.files.remove_directory(inode(parent), name.as_bytes()), reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        if self.faces.guards(parent, name) {
            return reply.error(Errno::EPERM);
        }
        let target = target.as_os_str().as_bytes();
        let caller = caller(request, 0);
        answer_entry(&self.ttl, self.files.make_symbolic_link(&caller, inode(parent), name.as_bytes(), target), reply);
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if self.faces.guards(parent, name) || self.faces.guards(new_parent, new_name) {
            return reply.error(Errno::EPERM);
        }
        let how = if flags.is_empty() {
            onode_fs::RenameFlags::Replace
        } else if flags == RenameFlags::RENAME_NOREPLACE {
            onode_fs::RenameFlags::NoReplace
        } else if flags == RenameFlags::RENAME_EXCHANGE {
            onode_fs::RenameFlags::Exchange
        } else {
            return reply.error(Errno::EINVAL);
        };
        let (from, to) = (inode(parent), inode(new_parent));
        answer_empty(self.files.rename(from, name.as_bytes(), to, new_name.as_bytes(), how), reply);
    }

    fn link(&self, _request: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if Faces::owns(number) || self.faces.guards(parent, name) {
            return reply.error(Errno::EPERM);
        }
        answer_entry(&self.ttl, self.files.link(inode(number), inode(parent), name.as_bytes()), reply);
    }

    fn open(&self, _request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.opening.of_file() {
            // After this answer the kernel never asks again and keeps what it has cached.
            None => reply.error(Errno::ENOSYS),
            Some(_) if Faces::owns(number) => reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE),
            // Closing what was only read has nothing to tell.
            Some(of_file) if flags.acc_mode() == OpenAccMode::O_RDONLY => {
                reply.opened(FileHandle(0), of_file | FopenFlags::FOPEN_NOFLUSH);
            }
            Some(flags) => reply.opened(FileHandle(0), flags),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        if self.faces.guards(parent, name) {
            return reply.error(Errno::EPERM);
        }
        let permissions = (mode & 0o7777) as u16;
        match self.files.create(&caller(request, umask), inode(parent), name.as_bytes(), permissions) {
            Ok(made) => {
                let flags = self.opening.of_file().unwrap_or(FopenFlags::FOPEN_KEEP_CACHE);
                reply.created(&self.ttl, &attributes(&made), generation_of(&made), FileHandle(0), flags);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn read(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        // The kernel names the owner of what goes to a program right away, not of what it keeps.
        if owner.is_none() {
            self.page_cache.filled(number);
        }
        let renews = flags.0 & libc::O_NOATIME == 0;
        BUFFER.with_borrow_mut(|buffer| {
            let size = size as usize;
            if buffer.len() < size {
                buffer.resize(size, 0);
            }
            let read = match Faces::owns(number) {
                true => self.faces.read(number, offset, &mut buffer[..size]),
                false => {
                    let buffer = &mut buffer[..size];
                    let read = match renews {
                        true => self.files.read(inode(number), offset, buffer),
                        false => self.files.read_noatime(inode(number), offset, buffer),
                    };
                    read.map_err(|error| errno(&error))
                }
            };
            match read {
                Ok(length) => reply.data(&buffer[..length]),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn write(
        &self,
        request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if Faces::owns(number) {
            return match self.faces.write(number, offset, data) {
                Ok(written) => reply.written(written),
                Err(errno) => reply.error(errno),
            };
        }
        // The kernel says whether this write takes the set-id bits away; the caller of a write from
        // its cache is unknown.
        let takes_bits = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        // One that has an owner passed the kernel's cache, which may still hold what was there before.
        if owner.is_none() {
            self.page_cache.filled(number);
        }
        let page_cache = owner.is_some().then(|| Arc::clone(&self.page_cache));
        let answer = Answer { number, offset, page_cache, reply };
        // Of a file that it does not keep content of the kernel leaves its capabilities to us.
        if self.opening == Opening::Direct
            && let Err(error) = self.files.drop_capabilities(inode(number))
        {
            return answer.written(Err(error));
        }
        // Where the end is the kernel cannot know if others append, too.
        let appends = self.is_shared && owner.is_some() && flags.0 & libc::O_APPEND != 0;
        let write = |caller: &Caller| {
            let written = match appends {
                true => self.files.append(caller, inode(number), data),
                false => self.files.write(caller, inode(number), offset, data),
            };
            (written, caller.clone())
        };
        let (written, caller) =
            if takes_bits { self.set_id.taking_bits(request, number, write) } else { write(&Caller::root()) };
        match written {
            Err(error) if error.kind == ErrorKind::NoSpace && !appends && self.files.is_space_expected() => {
                patience::write(&self.files, caller, data, answer);
            }
            written => answer.written(written),
        }
    }

    fn flush(&self, _request: &Request, number: INodeNo, _handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        if Faces::owns(number) {
            return answer_done(self.faces.sync(number), reply);
        }
        answer_empty(self.files.flush_file(inode(number)), reply);
    }

    fn fsync(&self, _request: &Request, number: INodeNo, _handle: FileHandle, data_only: bool, reply: ReplyEmpty) {
        if Faces::owns(number) {
            return answer_done(self.faces.sync(number), reply);
        }
        answer_empty(self.files.fsync(inode(number), None, data_only), reply);
    }

    fn readdir(&self, _request: &Request, number: INodeNo, _handle: FileHandle, offset: u64, reply: ReplyDirectory) {
        if Faces::owns(number) {
            return self.faces.list(number, offset, reply);
        }
        directory::read(&self.files, number, offset, reply);
    }

    fn readdirplus(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        if Faces::owns(number) {
            return self.faces.list_plus(number, offset, &self.ttl, reply);
        }
        directory::read_plus(&self.files, number, offset, &self.ttl, reply);
    }

    fn fsyncdir(&self, _request: &Request, number: INodeNo, _handle: FileHandle, data_only: bool, reply: ReplyEmpty) {
        if Faces::owns(number) {
            return reply.ok();
        }
        answer_empty(self.files.fsync(inode(number), None, data_only), reply);
    }

    fn statfs(&self, _request: &Request, _number: INodeNo, reply: ReplyStatfs) {
        answer_space(&self.files.statfs(), reply);
    }

    fn setxattr(
        &self,
        request: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        if Faces::owns(number) {
            return reply.error(Errno::EPERM);
        }
        let Some(how) = xattr_flags(flags) else { return reply.error(Errno::EINVAL) };
        // An access list sets the mode, too, and whether that may keep its set-group bit the kernel leaves to us.
        let caller = if name == ACCESS_LIST { caller_with_groups(request) } else { caller(request, 0) };
        answer_empty(self.files.set_xattr(&caller, inode(number), name.as_bytes(), value, how), reply);
    }

    fn getxattr(&self, _request: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        if Faces::owns(number) {
            return reply.error(errno_of(ErrorKind::NoAttribute));
        }
        let view = name.to_str().and_then(|name| name.strip_prefix(VIEW_PREFIX));
        if let Some(value) = view.filter(|_| number == INodeNo::ROOT).and_then(|view| (self.views)(view)) {
            return answer_value(&value, size, reply);
        }
        match self.files.get_xattr(inode(number), name.as_bytes()) {
            Ok(value) => answer_value(&value, size, reply),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn listxattr(&self, request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        if Faces::owns(number) {
            return answer_value(&[], size, reply);
        }
        match self.files.list_xattrs(inode(number)) {
            Ok(names) => answer_value(&names_shown(request, names), size, reply),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn removexattr(&self, request: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if Faces::owns(number) {
            return reply.error(Errno::EPERM);
        }
        let removed = self.files.remove_xattr(inode(number), name.as_bytes());
        if removed.is_ok() && name == CAPABILITIES {
            self.set_id.disarm(number, request);
        }
        answer_empty(removed, reply);
    }

    fn access(&self, _request: &Request, _number: INodeNo, _mask: AccessFlags, reply: ReplyEmpty) {
        // The kernel has decided already and does not ask again.
        reply.error(Errno::ENOSYS);
    }

    fn fallocate(
        &self,
        request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if Faces::owns(number) {
            return answer_done(self.faces.allocate(number, offset, length, mode), reply);
        }
        let Some(what) = allocation(mode) else { return reply.error(Errno::EOPNOTSUPP) };
        let allocate = |caller: &Caller| self.files.allocate(caller, inode(number), offset, length, what);
        answer_empty(self.set_id.taking_bits(request, number, allocate), reply);
    }

    fn lseek(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let Some(what) = sought(whence) else { return reply.error(Errno::EINVAL) };
        let Ok(from) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
        let found = match Faces::owns(number) {
            true => self.faces.seek(number, from, whence),
            false => self.files.seek(inode(number), from, what).map_err(|error| errno(&error)),
        };
        match found.map(i64::try_from) {
            Ok(Ok(found)) => reply.offset(found),
            Ok(Err(_)) => reply.error(Errno::EOVERFLOW),
            Err(errno) => reply.error(errno),
        }
    }

    fn copy_file_range(
        &self,
        _request: &Request,
        _from: INodeNo,
        _from_handle: FileHandle,
        _from_offset: u64,
        _to: INodeNo,
        _to_handle: FileHandle,
        _to_offset: u64,
        _length: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        // The kernel then copies through its own cache, which takes no longer and leaves in the cache what was copied.
        reply.error(Errno::ENOSYS);
    }
}
