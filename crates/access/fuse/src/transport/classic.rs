//! The usual way: requests are read from the device of FUSE, and answers are written to it. Every
//! kernel has it. Nothing else that serves files knows how that crate answers.

use crate::adaptor::{Mode, Name, Range, Xattr};
use crate::request::answer::{Entry, Value};
use crate::request::content::Asked;
use crate::request::convert::{set_time, timestamp};
use crate::request::counts::Kind;
use crate::request::credentials::Who;
use crate::request::reply::{LateReply, Reply, Told};
use crate::serving::Adaptor;
use crate::transport::greeting;
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, FopenFlags, INodeNo, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use onode_fs::SetAttributes;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

thread_local! {
    /// What a thread reads into; as large as its largest read so far.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A mount as the crate wants it.
pub(crate) struct Classic(pub(crate) Arc<Adaptor>);

impl Deref for Classic {
    type Target = Adaptor;

    fn deref(&self) -> &Adaptor {
        &self.0
    }
}

fn who(request: &Request) -> Who {
    Who { uid: request.uid(), gid: request.gid(), pid: request.pid() }
}

fn name(parent: INodeNo, name: &OsStr) -> Name<'_> {
    Name { parent, name: name.as_bytes() }
}

fn answer_entry(ttl: Duration, made: Result<Entry, Errno>, reply: ReplyEntry) {
    match made {
        Ok(made) => reply.entry(&ttl, &made.attributes, made.generation),
        Err(errno) => reply.error(errno),
    }
}

fn answer_attributes(ttl: Duration, found: Result<fuser::FileAttr, Errno>, reply: ReplyAttr) {
    match found {
        Ok(found) => reply.attr(&ttl, &found),
        Err(errno) => reply.error(errno),
    }
}

fn answer_empty(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

fn answer_value(found: Result<Value, Errno>, reply: ReplyXattr) {
    match found {
        Ok(Value::Length(length)) => reply.size(length),
        Ok(Value::Bytes(value)) => reply.data(&value),
        Err(errno) => reply.error(errno),
    }
}

/// The way back by the classic transport.
struct ByDevice<T: Told>(T::Classic);

impl<T: Told> Reply<T> for ByDevice<T> {
    fn now(self, answer: Result<T, Errno>) {
        T::tell(self.0, answer);
    }

    fn later(self) -> LateReply<T> {
        LateReply::Classic(self.0)
    }
}

impl Filesystem for Classic {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = self.agree(config.capabilities());
        greeting::agree(wanted, config);
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, of: &OsStr, reply: ReplyEntry) {
        let _served = self.serve(Kind::Lookup);
        answer_entry(self.ttl(parent), self.0.lookup(who(request), name(parent, of)), reply);
    }

    fn forget(&self, request: &Request, number: INodeNo, count: u64) {
        // One request may name many files.
        let _served = self.waiting.is_new(request.unique().0).then(|| self.serve(Kind::Forget));
        self.0.forget(number, count);
    }

    fn getattr(&self, _request: &Request, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        let _served = self.serve(Kind::Getattr);
        answer_attributes(self.ttl(number), self.attributes(number), reply);
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
        let to = SetAttributes {
            permissions: mode.map(|mode| (mode & 0o7777) as u16),
            uid,
            gid,
            size,
            accessed: accessed.map(set_time),
            modified: modified.map(set_time),
            changed: changed.map(timestamp),
        };
        answer_attributes(self.ttl(number), self.set_attributes(who(request), number, &to), reply);
    }

    fn readlink(&self, _request: &Request, number: INodeNo, reply: ReplyData) {
        let _served = self.serve(Kind::Readlink);
        match self.read_link(number) {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(errno),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        new: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let _served = self.serve(Kind::Mknod);
        let made = self.make_node(who(request), name(parent, new), Mode { mode, umask }, device);
        answer_entry(self.ttl(parent), made, reply);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, new: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let _served = self.serve(Kind::Mkdir);
        let made = self.make_directory(who(request), name(parent, new), Mode { mode, umask });
        answer_entry(self.ttl(parent), made, reply);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, of: &OsStr, reply: ReplyEmpty) {
        let _served = self.serve(Kind::Unlink);
        answer_empty(self.0.unlink(name(parent, of)), reply);
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, of: &OsStr, reply: ReplyEmpty) {
        let _served = self.serve(Kind::Rmdir);
        answer_empty(self.remove_directory(name(parent, of)), reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, new: &OsStr, target: &Path, reply: ReplyEntry) {
        let _served = self.serve(Kind::Symlink);
        let target = target.as_os_str().as_bytes();
        answer_entry(self.ttl(parent), self.make_symbolic_link(who(request), name(parent, new), target), reply);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        old: &OsStr,
        new_parent: INodeNo,
        new: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let _served = self.serve(Kind::Rename);
        answer_empty(self.0.rename(who(request), name(parent, old), name(new_parent, new), flags), reply);
    }

    fn link(&self, _request: &Request, number: INodeNo, parent: INodeNo, new: &OsStr, reply: ReplyEntry) {
        let _served = self.serve(Kind::Link);
        answer_entry(self.ttl(parent), self.0.link(number, name(parent, new)), reply);
    }

    fn open(&self, _request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let _served = self.serve(Kind::Open);
        match self.0.open(number, flags) {
            Ok(flags) => reply.opened(FileHandle(0), flags),
            Err(errno) => reply.error(errno),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        new: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let _served = self.serve(Kind::Create);
        match self.0.create(who(request), name(parent, new), Mode { mode, umask }) {
            Ok((made, flags)) => {
                reply.created(&self.ttl(parent), &made.attributes, made.generation, FileHandle(0), flags);
            }
            Err(errno) => reply.error(errno),
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
        let asked = Asked { number, offset, flags, owner, takes_bits: false, is_of_caller: true };
        BUFFER.with_borrow_mut(|buffer| {
            let size = size as usize;
            if buffer.len() < size {
                buffer.resize(size, 0);
            }
            match self.0.read(&asked, &mut buffer[..size]) {
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
        let _served = self.serve(Kind::Write);
        // The kernel says whether this write takes the set-id bits away.
        let takes_bits = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let is_of_caller = !write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let asked = Asked { number, offset, flags, owner, takes_bits, is_of_caller };
        self.0.write(who(request), &asked, data, ByDevice(reply));
    }

    fn flush(&self, _request: &Request, number: INodeNo, _handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        let _served = self.serve(Kind::Flush);
        answer_empty(self.0.flush(number), reply);
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
        answer_empty(self.sync(number, data_only), reply);
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

    fn readdir(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let _served = self.serve(Kind::Readdir);
        let listed = self.list(number, offset, false, &mut |one| {
            let shown = &one.entry.attributes;
            !reply.add(shown.ino, one.cursor, shown.kind, OsStr::from_bytes(one.name))
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdirplus(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let _served = self.serve(Kind::Readdirplus);
        let listed = self.list(number, offset, true, &mut |one| {
            let Entry { attributes, generation } = &one.entry;
            let name = OsStr::from_bytes(one.name);
            !reply.add(attributes.ino, one.cursor, name, &one.ttl, attributes, *generation)
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn fsyncdir(&self, _request: &Request, number: INodeNo, _handle: FileHandle, data_only: bool, reply: ReplyEmpty) {
        let _served = self.serve(Kind::Fsyncdir);
        answer_empty(self.sync(number, data_only), reply);
    }

    fn statfs(&self, _request: &Request, number: INodeNo, reply: ReplyStatfs) {
        let _served = self.serve(Kind::Statfs);
        let stat = self.space(number);
        reply.statfs(
            stat.blocks,
            stat.blocks_free,
            stat.blocks_free,
            stat.files,
            stat.files_free,
            stat.block_bytes,
            stat.name_bytes_max,
            stat.block_bytes,
        );
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
        let to = Xattr { name: name.as_bytes(), value, flags };
        answer_empty(self.set_xattr(who(request), number, to), reply);
    }

    fn getxattr(&self, request: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let _served = self.serve(Kind::Getxattr);
        answer_value(self.get_xattr(who(request), number, name.as_bytes(), size), reply);
    }

    fn listxattr(&self, request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let _served = self.serve(Kind::Listxattr);
        answer_value(self.list_xattrs(who(request), number, size), reply);
    }

    fn removexattr(&self, request: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _served = self.serve(Kind::Removexattr);
        answer_empty(self.remove_xattr(who(request), number, name.as_bytes()), reply);
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
        answer_empty(self.allocate(who(request), number, Range { offset, length }, mode), reply);
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
        self.seek(number, offset, whence, ByDevice(reply));
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
