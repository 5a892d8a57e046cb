//! The adaptor: FUSE requests in, calls of the file system out. Nothing else that serves
//! files knows the FUSE crate, so another one takes another adaptor.
//!
//! Where this mount is the only writer of its volume the kernel may remember names, attributes and
//! content as long as it likes, and files are not opened at all: every request names its inode, and
//! a file without a name lives until the kernel forgets it. What holds elsewhere is said by
//! `opening`. Permissions are the kernel's business (`default_permissions`); what the file system
//! must know of the caller travels in [`Caller`].

use crate::greeting;
use crate::request::answer::{
    answer_attributes, answer_done, answer_empty, answer_entry, answer_shown, answer_space, answer_value, generation_of,
};
use crate::request::content::Asked;
use crate::request::convert::{
    allocation, attributes, errno, errno_of, inode, no_attributes, set_time, sought, timestamp, xattr_flags,
};
use crate::request::counts::Kind;
use crate::request::credentials::{caller, caller_with_groups, names_shown};
use crate::request::directory;
use crate::request::faces::Faces;
use crate::serving::{Adaptor, VIEW_PREFIX};
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use onode_base::ErrorKind;
use onode_fs::{Caller, RenameEnd, SetAttributes};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

const ACCESS_LIST: &str = "system.posix_acl_access";
const CAPABILITIES: &str = "security.capability";

impl Filesystem for Adaptor {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        self.opening = self.opening.with(config.capabilities(), self.is_shared);
        let mut wanted = self.opening.flags();
        if self.writeback {
            wanted |= InitFlags::FUSE_WRITEBACK_CACHE;
        }
        if self.keeps_links {
            wanted |= InitFlags::FUSE_CACHE_SYMLINKS;
        }
        greeting::agree(wanted, config);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _served = self.serve(Kind::Lookup);
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

    fn forget(&self, request: &Request, number: INodeNo, count: u64) {
        // One request may name many files.
        let _served = self.waiting.is_new(request.unique().0).then(|| self.serve(Kind::Forget));
        if Faces::owns(number) {
            return;
        }
        self.files.forget(inode(number), count);
    }

    fn getattr(&self, _request: &Request, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        let _served = self.serve(Kind::Getattr);
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
        let _served = self.serve(Kind::Setattr);
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
        let _served = self.serve(Kind::Readlink);
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
        let _served = self.serve(Kind::Mknod);
        if self.faces.guards(parent, name) {
            return reply.error(Errno::EPERM);
        }
        let caller = caller(request, umask);
        let made = self.files.make_node(&caller, inode(parent), name.as_bytes(), mode, u64::from(device));
        answer_entry(&self.ttl, made, reply);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let _served = self.serve(Kind::Mkdir);
        if self.faces.guards(parent, name) {
            return reply.error(Errno::EPERM);
        }
        let permissions = (mode & 0o7777) as u16;
        let caller = caller(request, umask);
        answer_entry(&self.ttl, self.files.make_directory(&caller, inode(parent), name.as_bytes(), permissions), reply);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _served = self.serve(Kind::Unlink);
        if self.faces.guards(parent, name) {
            return reply.error(Errno::EPERM);
        }
        answer_empty(self.files.unlink(inode(parent), name.as_bytes()), reply);
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _served = self.serve(Kind::Rmdir);
        if self.faces.guards(parent, name) {
            return reply.error(Errno::EPERM);
        }
        answer_empty(self.files.remove_directory(inode(parent), name.as_bytes()), reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let _served = self.serve(Kind::Symlink);
        if self.faces.guards(parent, name) {
            return reply.error(Errno::EPERM);
        }
        let target = target.as_os_str().as_bytes();
        let caller = caller(request, 0);
        answer_entry(&self.ttl, self.files.make_symbolic_link(&caller, inode(parent), name.as_bytes(), target), reply);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let _served = self.serve(Kind::Rename);
        if self.faces.guards(parent, name) || self.faces.guards(new_parent, new_name) {
            return reply.error(Errno::EPERM);
        }
        let leaves_whiteout = flags.contains(RenameFlags::RENAME_WHITEOUT);
        let how = match flags.difference(RenameFlags::RENAME_WHITEOUT) {
            none if none.is_empty() => onode_fs::RenameFlags::Replace,
            RenameFlags::RENAME_NOREPLACE => onode_fs::RenameFlags::NoReplace,
            RenameFlags::RENAME_EXCHANGE => onode_fs::RenameFlags::Exchange,
            _ => return reply.error(Errno::EINVAL),
        };
        let from = RenameEnd { directory: inode(parent), name: name.as_bytes() };
        let to = RenameEnd { directory: inode(new_parent), name: new_name.as_bytes() };
        let renamed = if leaves_whiteout {
            self.files.rename_leaving_whiteout(&caller(request, 0), from, to, how)
        } else {
            self.files.rename(from.directory, from.name, to.directory, to.name, how)
        };
        answer_empty(renamed, reply);
    }

    fn link(&self, _request: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _served = self.serve(Kind::Link);
        if Faces::owns(number) || self.faces.guards(parent, name) {
            return reply.error(Errno::EPERM);
        }
        answer_entry(&self.ttl, self.files.link(inode(number), inode(parent), name.as_bytes()), reply);
    }

    fn open(&self, _request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let _served = self.serve(Kind::Open);
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
        let _served = self.serve(Kind::Create);
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
        let _served = self.serve(Kind::Read);
        let asked = Asked { number, offset, flags, owner, takes_bits: false };
        self.read_content(&asked, size as usize, reply);
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
        let _served = self.serve(Kind::Write);
        // The kernel says whether this write takes the set-id bits away.
        let takes_bits = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let asked = Asked { number, offset, flags, owner, takes_bits };
        self.write_content(request, &asked, data, reply);
    }

    fn flush(&self, _request: &Request, number: INodeNo, _handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        let _served = self.serve(Kind::Flush);
        if !self.closing_tells {
            return reply.error(Errno::ENOSYS);
        }
        if Faces::owns(number) {
            return answer_done(self.faces.sync(number), reply);
        }
        answer_empty(self.files.flush_file(inode(number)), reply);
    }

    fn release(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let _served = self.serve(Kind::Release);
        reply.ok();
    }

    fn fsync(&self, _request: &Request, number: INodeNo, _handle: FileHandle, data_only: bool, reply: ReplyEmpty) {
        let _served = self.serve(Kind::Fsync);
        if Faces::owns(number) {
            return answer_done(self.faces.sync(number), reply);
        }
        answer_empty(self.files.fsync(inode(number), None, data_only), reply);
    }

    fn opendir(&self, _request: &Request, _number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let _served = self.serve(Kind::Opendir);
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn releasedir(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        let _served = self.serve(Kind::Releasedir);
        reply.ok();
    }

    fn readdir(&self, _request: &Request, number: INodeNo, _handle: FileHandle, offset: u64, reply: ReplyDirectory) {
        let _served = self.serve(Kind::Readdir);
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
        let _served = self.serve(Kind::Readdirplus);
        if Faces::owns(number) {
            return self.faces.list_plus(number, offset, &self.ttl, reply);
        }
        directory::read_plus(&self.files, number, offset, &self.ttl, reply);
    }

    fn fsyncdir(&self, _request: &Request, number: INodeNo, _handle: FileHandle, data_only: bool, reply: ReplyEmpty) {
        let _served = self.serve(Kind::Fsyncdir);
        if Faces::owns(number) {
            return reply.ok();
        }
        answer_empty(self.files.fsync(inode(number), None, data_only), reply);
    }

    fn statfs(&self, _request: &Request, _number: INodeNo, reply: ReplyStatfs) {
        let _served = self.serve(Kind::Statfs);
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
        let _served = self.serve(Kind::Setxattr);
        if Faces::owns(number) {
            return reply.error(Errno::EPERM);
        }
        let Some(how) = xattr_flags(flags) else { return reply.error(Errno::EINVAL) };
        // An access list sets the mode, too, and whether that may keep its set-group bit the kernel
        // leaves to us.
        let caller = if name == ACCESS_LIST { caller_with_groups(request) } else { caller(request, 0) };
        answer_empty(self.files.set_xattr(&caller, inode(number), name.as_bytes(), value, how), reply);
    }

    fn getxattr(&self, _request: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let _served = self.serve(Kind::Getxattr);
        if Faces::owns(number) {
            return reply.error(errno_of(ErrorKind::NoAttribute));
        }
        let view = name.to_str().and_then(|name| name.strip_prefix(VIEW_PREFIX));
        if let Some(value) =
            view.filter(|_| number == INodeNo::ROOT).and_then(|view| (self.views)(view, &self.requests))
        {
            return answer_value(&value, size, reply);
        }
        match self.files.get_xattr(inode(number), name.as_bytes()) {
            Ok(value) => answer_value(&value, size, reply),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn listxattr(&self, request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let _served = self.serve(Kind::Listxattr);
        if Faces::owns(number) {
            return answer_value(&[], size, reply);
        }
        match self.files.list_xattrs(inode(number)) {
            Ok(names) => answer_value(&names_shown(request, names), size, reply),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn removexattr(&self, request: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _served = self.serve(Kind::Removexattr);
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
        let _served = self.serve(Kind::Access);
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
        let _served = self.serve(Kind::Fallocate);
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
        let _served = self.serve(Kind::Lseek);
        let Some(what) = sought(whence) else { return reply.error(Errno::EINVAL) };
        let Ok(from) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
        let found = match Faces::owns(number) {
            true => self.faces.seek(number, from, whence),
            false => self.files.seek(inode(number), from, what).map_err(|error| errno(&error)),
        };
        match found.and_then(|found| i64::try_from(found).map_err(|_| Errno::EOVERFLOW)) {
            Ok(found) => reply.offset(found),
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
        let _served = self.serve(Kind::CopyFileRange);
        // The kernel then copies through its own cache, which takes no longer and leaves in the
        // cache what was copied.
        reply.error(Errno::ENOSYS);
    }
}
