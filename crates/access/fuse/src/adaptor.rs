//! The adaptor: what the kernel asks of files becomes calls of the file system. Both ways on which
//! requests come call it; nothing here knows them.
//!
//! Where this mount is the only writer of its volume the kernel may remember names, attributes and
//! content as long as it likes, and files are not opened at all: every request names its inode, and
//! a file without a name lives until the kernel forgets it. What holds elsewhere is said by
//! `opening`. Permissions are the kernel's business (`default_permissions`); what the file system
//! must know of the caller travels in [`Caller`]. Content is in `request::content`.

use crate::request::answer::{Entry, Listed, Value};
use crate::request::convert::{allocation, attributes, errno, errno_of, inode, no_attributes, sought, xattr_flags};
use crate::request::credentials::{Who, caller, caller_with_groups, names_shown};
use crate::request::directory;
use crate::request::faces::Faces;
use crate::serving::{Adaptor, VIEW_PREFIX};
use fuser::{Errno, FileAttr, FopenFlags, Generation, INodeNo, OpenAccMode, OpenFlags, RenameFlags};
use onode_base::ErrorKind;
use onode_fs::{Attributes, Caller, RenameEnd, SetAttributes, StatFs};
use std::time::Duration;

const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
const CAPABILITIES: &[u8] = b"security.capability";

/// A name in a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'a> {
    pub(crate) parent: INodeNo,
    pub(crate) name: &'a [u8],
}

/// What becomes the mode of something new.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    pub(crate) mode: u32,
    pub(crate) umask: u32,
}

impl Mode {
    const fn permissions(self) -> u16 {
        (self.mode & 0o7777) as u16
    }
}

/// An attribute of a file to be set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Xattr<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) flags: i32,
}

/// A range of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

fn told<T>(result: onode_fs::Result<T>) -> Result<T, Errno> {
    result.map_err(|error| errno(&error))
}

fn entry(made: onode_fs::Result<Attributes>) -> Result<Entry, Errno> {
    told(made).map(|made| Entry::from(&made))
}

impl Adaptor {
    fn unguarded(&self, of: Name<'_>) -> Result<(), Errno> {
        if self.faces.guards(of.parent, of.name) { Err(Errno::EPERM) } else { Ok(()) }
    }

    pub(crate) fn lookup(&self, of: Name<'_>) -> Result<Entry, Errno> {
        if self.faces.guards(of.parent, of.name) {
            let attributes = self.faces.lookup(of.parent, of.name)?;
            return Ok(Entry { attributes, generation: Generation(0) });
        }
        match self.files.lookup(inode(of.parent), of.name) {
            // The kernel remembers that there is none.
            Err(error) if error.kind == ErrorKind::NotFound => {
                Ok(Entry { attributes: no_attributes(), generation: Generation(0) })
            }
            result => entry(result),
        }
    }

    pub(crate) fn forget(&self, number: INodeNo, count: u64) {
        if !Faces::owns(number) {
            self.files.forget(inode(number), count);
        }
    }

    pub(crate) fn attributes(&self, number: INodeNo) -> Result<FileAttr, Errno> {
        if Faces::owns(number) {
            return self.faces.attributes(number);
        }
        told(self.files.attributes(inode(number))).map(|found| attributes(&found))
    }

    pub(crate) fn set_attributes(&self, who: Who, number: INodeNo, to: &SetAttributes) -> Result<FileAttr, Errno> {
        if Faces::owns(number) {
            // A length is ignored, as by a block device; so are times.
            let refused = to.permissions.is_some() || to.uid.is_some() || to.gid.is_some();
            return if refused { Err(Errno::EPERM) } else { self.faces.attributes(number) };
        }
        let is_nothing = *to == SetAttributes { changed: to.changed, ..SetAttributes::default() };
        if is_nothing && self.set_id.was_disarmed(number, who) {
            return self.attributes(number);
        }
        let takes_bits = to.size.is_some() || to.uid.is_some() || to.gid.is_some();
        let caller = if takes_bits { self.set_id.caller(who, number) } else { caller(who, 0) };
        told(self.files.set_attributes(&caller, inode(number), to)).map(|found| attributes(&found))
    }

    pub(crate) fn read_link(&self, number: INodeNo) -> Result<Vec<u8>, Errno> {
        told(self.files.read_link(inode(number)))
    }

    pub(crate) fn make_node(&self, who: Who, new: Name<'_>, mode: Mode, device: u32) -> Result<Entry, Errno> {
        self.unguarded(new)?;
        let caller = caller(who, mode.umask);
        entry(self.files.make_node(&caller, inode(new.parent), new.name, mode.mode, u64::from(device)))
    }

    pub(crate) fn make_directory(&self, who: Who, new: Name<'_>, mode: Mode) -> Result<Entry, Errno> {
        self.unguarded(new)?;
        let caller = caller(who, mode.umask);
        entry(self.files.make_directory(&caller, inode(new.parent), new.name, mode.permissions()))
    }

    pub(crate) fn make_symbolic_link(&self, who: Who, new: Name<'_>, target: &[u8]) -> Result<Entry, Errno> {
        self.unguarded(new)?;
        entry(self.files.make_symbolic_link(&caller(who, 0), inode(new.parent), new.name, target))
    }

    /// Makes a file and says how the kernel has opened it.
    pub(crate) fn create(&self, who: Who, new: Name<'_>, mode: Mode) -> Result<(Entry, FopenFlags), Errno> {
        self.unguarded(new)?;
        let caller = caller(who, mode.umask);
        let made = entry(self.files.create(&caller, inode(new.parent), new.name, mode.permissions()))?;
        Ok((made, self.opening().of_file().unwrap_or(FopenFlags::FOPEN_KEEP_CACHE)))
    }

    pub(crate) fn unlink(&self, of: Name<'_>) -> Result<(), Errno> {
        self.unguarded(of)?;
        told(self.files.unlink(inode(of.parent), of.name))
    }

    pub(crate) fn remove_directory(&self, of: Name<'_>) -> Result<(), Errno> {
        self.unguarded(of)?;
        told(self.files.remove_directory(inode(of.parent), of.name))
    }

    pub(crate) fn rename(&self, who: Who, from: Name<'_>, to: Name<'_>, flags: RenameFlags) -> Result<(), Errno> {
        self.unguarded(from)?;
        self.unguarded(to)?;
        let leaves_whiteout = flags.contains(RenameFlags::RENAME_WHITEOUT);
        let how = match flags.difference(RenameFlags::RENAME_WHITEOUT) {
            none if none.is_empty() => onode_fs::RenameFlags::Replace,
            RenameFlags::RENAME_NOREPLACE => onode_fs::RenameFlags::NoReplace,
            RenameFlags::RENAME_EXCHANGE => onode_fs::RenameFlags::Exchange,
            _ => return Err(Errno::EINVAL),
        };
        let from = RenameEnd { directory: inode(from.parent), name: from.name };
        let to = RenameEnd { directory: inode(to.parent), name: to.name };
        told(if leaves_whiteout {
            self.files.rename_leaving_whiteout(&caller(who, 0), from, to, how)
        } else {
            self.files.rename(from.directory, from.name, to.directory, to.name, how)
        })
    }

    pub(crate) fn link(&self, number: INodeNo, new: Name<'_>) -> Result<Entry, Errno> {
        self.unguarded(new)?;
        if Faces::owns(number) {
            return Err(Errno::EPERM);
        }
        entry(self.files.link(inode(number), inode(new.parent), new.name))
    }

    pub(crate) fn open(&self, number: INodeNo, flags: OpenFlags) -> Result<FopenFlags, Errno> {
        match self.opening().of_file() {
            // After this answer the kernel never asks again and keeps what it has cached.
            None => Err(Errno::ENOSYS),
            Some(_) if Faces::owns(number) => Ok(FopenFlags::FOPEN_KEEP_CACHE),
            // Closing what was only read has nothing to tell.
            Some(of_file) if flags.acc_mode() == OpenAccMode::O_RDONLY => Ok(of_file | FopenFlags::FOPEN_NOFLUSH),
            Some(flags) => Ok(flags),
        }
    }

    pub(crate) fn flush(&self, number: INodeNo) -> Result<(), Errno> {
        match (self.closing_tells, Faces::owns(number)) {
            (false, _) => Err(Errno::ENOSYS),
            (true, true) => self.faces.sync(number),
            (true, false) => told(self.files.flush_file(inode(number))),
        }
    }

    /// Syncs a file or a directory.
    pub(crate) fn sync(&self, number: INodeNo, data_only: bool) -> Result<(), Errno> {
        if Faces::owns(number) {
            return self.faces.sync(number);
        }
        told(self.files.fsync(inode(number), None, data_only))
    }

    /// Hands the entries of a directory from `offset` on to `take` until it refuses one, with
    /// attributes if they are wanted.
    pub(crate) fn list(
        &self,
        number: INodeNo,
        offset: u64,
        plus: bool,
        take: &mut dyn FnMut(&Listed<'_>) -> bool,
    ) -> Result<(), Errno> {
        if Faces::owns(number) {
            self.faces.list(number, offset, self.ttl, take);
            return Ok(());
        }
        directory::list(&self.files, number, offset, plus.then_some(self.ttl), take)
    }

    pub(crate) fn space(&self) -> StatFs {
        self.files.statfs()
    }

    pub(crate) fn set_xattr(&self, who: Who, number: INodeNo, to: Xattr<'_>) -> Result<(), Errno> {
        if Faces::owns(number) {
            return Err(Errno::EPERM);
        }
        let how = xattr_flags(to.flags).ok_or(Errno::EINVAL)?;
        // An access list sets the mode, too, and whether that may keep its set-group bit the kernel
        // leaves to us.
        let caller = if to.name == ACCESS_LIST { caller_with_groups(who) } else { caller(who, 0) };
        told(self.files.set_xattr(&caller, inode(number), to.name, to.value, how))
    }

    pub(crate) fn get_xattr(&self, number: INodeNo, name: &[u8], size: u32) -> Result<Value, Errno> {
        if Faces::owns(number) {
            return Err(errno_of(ErrorKind::NoAttribute));
        }
        let view = std::str::from_utf8(name).ok().and_then(|name| name.strip_prefix(VIEW_PREFIX));
        let view = view.filter(|_| number == INodeNo::ROOT).and_then(|view| (self.views)(view, &self.requests));
        match view {
            Some(value) => value_of(value, size),
            None => value_of(told(self.files.get_xattr(inode(number), name))?, size),
        }
    }

    pub(crate) fn list_xattrs(&self, who: Who, number: INodeNo, size: u32) -> Result<Value, Errno> {
        if Faces::owns(number) {
            return value_of(Vec::new(), size);
        }
        let names = told(self.files.list_xattrs(inode(number)))?;
        value_of(names_shown(who, names), size)
    }

    pub(crate) fn remove_xattr(&self, who: Who, number: INodeNo, name: &[u8]) -> Result<(), Errno> {
        if Faces::owns(number) {
            return Err(Errno::EPERM);
        }
        told(self.files.remove_xattr(inode(number), name))?;
        if name == CAPABILITIES {
            self.set_id.disarm(number, who);
        }
        Ok(())
    }

    pub(crate) fn allocate(&self, who: Who, number: INodeNo, range: Range, mode: i32) -> Result<(), Errno> {
        let Range { offset, length } = range;
        if Faces::owns(number) {
            return self.faces.allocate(number, offset, length, mode);
        }
        let what = allocation(mode).ok_or(Errno::EOPNOTSUPP)?;
        let allocate = |caller: &Caller| self.files.allocate(caller, inode(number), offset, length, what);
        told(self.set_id.taking_bits(who, number, allocate))
    }

    pub(crate) fn seek(&self, number: INodeNo, offset: i64, whence: i32) -> Result<i64, Errno> {
        let what = sought(whence).ok_or(Errno::EINVAL)?;
        let from = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
        let found = match Faces::owns(number) {
            true => self.faces.seek(number, from, whence),
            false => told(self.files.seek(inode(number), from, what)),
        }?;
        i64::try_from(found).map_err(|_| Errno::EOVERFLOW)
    }

    /// How long the kernel may believe what it is told.
    pub(crate) const fn ttl(&self) -> Duration {
        self.ttl
    }
}

/// A value whose length may be asked for first.
fn value_of(value: Vec<u8>, size: u32) -> Result<Value, Errno> {
    match u32::try_from(value.len()) {
        Ok(length) if size == 0 => Ok(Value::Length(length)),
        Ok(length) if length <= size => Ok(Value::Bytes(value)),
        _ => Err(errno_of(ErrorKind::Range)),
    }
}
