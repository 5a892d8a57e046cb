//! The adaptor: what the kernel asks of files becomes calls of the file system. Both ways on which
//! requests come call it; nothing here knows them.
//!
//! Where this mount is the only writer of its volume the kernel may remember names, attributes and
//! content as long as it likes, and files are not opened at all: every request names its inode, and
//! a file without a name lives until the kernel forgets it. What holds elsewhere is said by
//! `opening`. Permissions are the kernel's business (`default_permissions`); what the file system
//! must know of the caller travels in [`Caller`]. Content is in `request::content`.

use crate::request::answer::{Entry, Listed, Value};
use crate::request::commands::keys;
use crate::request::commands::transactions::NAME as TRANSACTIONS;
use crate::request::convert::{allocation, errno, errno_of, no_attributes, xattr_flags};
use crate::request::credentials::{Who, caller, caller_with_groups, names_shown};
use crate::request::directory;
use crate::request::faces::Faces;
use crate::request::place::Place;
use crate::request::place::numbers::state;
use crate::request::place::numbers::transaction::{FOLDER, owns};
use crate::request::set_id::SetId;
use crate::request::snapshots::Folder;
use crate::serving::{Adaptor, SEND_VIEW, VIEW_PREFIX};
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

fn entry(place: &Place<'_>, made: onode_fs::Result<Attributes>) -> Result<Entry, Errno> {
    told(made).map(|made| place.entry(&made))
}

impl Adaptor {
    /// The file system in which a name may be given, taken or removed.
    fn unguarded(&self, of: Name<'_>) -> Result<Place<'_>, Errno> {
        if is_folder(of.parent) || self.faces.guards(of.parent, of.name) {
            Err(Errno::EPERM)
        } else {
            self.at(of.parent)
        }
    }

    pub(crate) fn lookup(&self, who: Who, of: Name<'_>) -> Result<Entry, Errno> {
        if self.faces.guards(of.parent, of.name) {
            let is_folder = self.transacted.is_offered() && Faces::is_above(of.parent) && of.name == TRANSACTIONS;
            let attributes =
                if is_folder { self.transacted.folder() } else { self.faces.lookup(of.parent, of.name)? };
            return Ok(Entry { attributes, generation: Generation(0) });
        }
        if of.parent == FOLDER {
            return self.transacted.lookup(who, of.name);
        }
        if let Some(folder) = Folder::of(of.parent) {
            return self.snapshots.lookup(folder, of.name);
        }
        let place = self.at(of.parent)?;
        match place.lookup(place.inode(of.parent), of.name) {
            Err(error) if error.kind == ErrorKind::NotFound => {
                let folder = self.snapshots.folder_named(of.parent, of.name);
                // Of no attributes the kernel remembers that there is none.
                let attributes = folder.map_or_else(no_attributes, |folder| self.snapshots.folder(folder));
                Ok(Entry { attributes, generation: Generation(0) })
            }
            result => entry(&place, result),
        }
    }

    pub(crate) fn forget(&self, number: INodeNo, count: u64) {
        if Faces::owns(number) || is_folder(number) {
            return;
        }
        if state::owns(number) {
            return self.snapshots.forget(number, count);
        }
        // Of a transaction that is over nothing is known any more.
        if let Ok(place) = self.at(number) {
            place.forget(place.inode(number), count);
        }
    }

    pub(crate) fn attributes(&self, number: INodeNo) -> Result<FileAttr, Errno> {
        if Faces::owns(number) {
            return self.faces.attributes(number);
        }
        if number == FOLDER {
            return Ok(self.transacted.folder());
        }
        if let Some(folder) = Folder::of(number) {
            return Ok(self.snapshots.folder(folder));
        }
        let place = self.at(number)?;
        let found = place.attributes(place.inode(number));
        let found = found.or_else(|error| self.root_before.in_place_of(error, &self.files, number));
        told(found).map(|found| place.shown(&found))
    }

    pub(crate) fn set_attributes(&self, who: Who, number: INodeNo, to: &SetAttributes) -> Result<FileAttr, Errno> {
        if Faces::owns(number) {
            // A length is ignored, as by a block device; so are times.
            let refused = to.permissions.is_some() || to.uid.is_some() || to.gid.is_some();
            return if refused { Err(Errno::EPERM) } else { self.faces.attributes(number) };
        }
        if is_folder(number) {
            return Err(Errno::EPERM);
        }
        let is_nothing = *to == SetAttributes { changed: to.changed, ..SetAttributes::default() };
        if is_nothing && self.set_id.was_disarmed(number, who) {
            return self.attributes(number);
        }
        let takes_bits = to.size.is_some() || to.uid.is_some() || to.gid.is_some();
        let place = self.at(number)?;
        let caller = match takes_bits {
            true if place.is_within() => caller_with_groups(who),
            true => SetId::caller(who, number, &place),
            false => caller(who, 0),
        };
        told(place.set_attributes(&caller, place.inode(number), to)).map(|found| place.shown(&found))
    }

    pub(crate) fn read_link(&self, number: INodeNo) -> Result<Vec<u8>, Errno> {
        let place = self.at(number)?;
        told(place.read_link(place.inode(number)))
    }

    pub(crate) fn make_node(&self, who: Who, new: Name<'_>, mode: Mode, device: u32) -> Result<Entry, Errno> {
        let place = self.unguarded(new)?;
        let caller = caller(who, mode.umask);
        entry(&place, place.make_node(&caller, place.inode(new.parent), new.name, mode.mode, u64::from(device)))
    }

    pub(crate) fn make_directory(&self, who: Who, new: Name<'_>, mode: Mode) -> Result<Entry, Errno> {
        if let Some(folder) = Folder::of(new.parent) {
            return self.snapshots.make(folder, new.name);
        }
        let place = self.unguarded(new)?;
        let caller = caller(who, mode.umask);
        entry(&place, place.make_directory(&caller, place.inode(new.parent), new.name, mode.permissions()))
    }

    pub(crate) fn make_symbolic_link(&self, who: Who, new: Name<'_>, target: &[u8]) -> Result<Entry, Errno> {
        let place = self.unguarded(new)?;
        entry(&place, place.make_symbolic_link(&caller(who, 0), place.inode(new.parent), new.name, target))
    }

    /// Makes a file and says how the kernel has opened it.
    pub(crate) fn create(&self, who: Who, new: Name<'_>, mode: Mode) -> Result<(Entry, FopenFlags), Errno> {
        let place = self.unguarded(new)?;
        let caller = caller(who, mode.umask);
        let made = entry(&place, place.create(&caller, place.inode(new.parent), new.name, mode.permissions()))?;
        Ok((made, self.opening().of_file().unwrap_or(FopenFlags::FOPEN_KEEP_CACHE)))
    }

    pub(crate) fn unlink(&self, of: Name<'_>) -> Result<(), Errno> {
        let place = self.unguarded(of)?;
        told(place.unlink(place.inode(of.parent), of.name))
    }

    pub(crate) fn remove_directory(&self, of: Name<'_>) -> Result<(), Errno> {
        if let Some(folder) = Folder::of(of.parent) {
            return self.snapshots.delete(folder, of.name);
        }
        let place = self.unguarded(of)?;
        told(place.remove_directory(place.inode(of.parent), of.name))
    }

    pub(crate) fn rename(&self, who: Who, from: Name<'_>, to: Name<'_>, flags: RenameFlags) -> Result<(), Errno> {
        let (place, other) = (self.unguarded(from)?, self.unguarded(to)?);
        if !place.is_that_of(&other) {
            return Err(Errno::EXDEV);
        }
        let leaves_whiteout = flags.contains(RenameFlags::RENAME_WHITEOUT);
        let how = match flags.difference(RenameFlags::RENAME_WHITEOUT) {
            none if none.is_empty() => onode_fs::RenameFlags::Replace,
            RenameFlags::RENAME_NOREPLACE => onode_fs::RenameFlags::NoReplace,
            RenameFlags::RENAME_EXCHANGE => onode_fs::RenameFlags::Exchange,
            _ => return Err(Errno::EINVAL),
        };
        let from = RenameEnd { directory: place.inode(from.parent), name: from.name };
        let to = RenameEnd { directory: place.inode(to.parent), name: to.name };
        told(if leaves_whiteout {
            place.rename_leaving_whiteout(&caller(who, 0), from, to, how)
        } else {
            place.rename(from.directory, from.name, to.directory, to.name, how)
        })
    }

    pub(crate) fn link(&self, number: INodeNo, new: Name<'_>) -> Result<Entry, Errno> {
        let place = self.unguarded(new)?;
        if Faces::owns(number) || is_folder(number) {
            return Err(Errno::EPERM);
        }
        if !place.is_that_of(&self.at(number)?) {
            return Err(Errno::EXDEV);
        }
        entry(&place, place.link(place.inode(number), place.inode(new.parent), new.name))
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
            (true, false) => {
                let place = self.at(number)?;
                told(place.flush_file(place.inode(number)))
            }
        }
    }

    /// Syncs a file or a directory.
    pub(crate) fn sync(&self, number: INodeNo, data_only: bool) -> Result<(), Errno> {
        if Faces::owns(number) {
            return self.faces.sync(number);
        }
        if is_folder(number) {
            return Ok(());
        }
        let place = self.at(number)?;
        told(place.fsync(place.inode(number), None, data_only))
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
            let mut shown = |one: &Listed<'_>| {
                let Listed { cursor, name, ttl, .. } = *one;
                let attributes = match one.entry.attributes.ino {
                    FOLDER => self.transacted.folder(),
                    _ => one.entry.attributes,
                };
                take(&Listed { entry: Entry { attributes, generation: Generation(0) }, cursor, name, ttl })
            };
            self.faces.list(number, offset, self.ttl, &mut shown);
            return Ok(());
        }
        if number == FOLDER {
            self.transacted.list(Faces::above(), offset, take);
            return Ok(());
        }
        if let Some(folder) = Folder::of(number) {
            self.snapshots.list(folder, offset, take);
            return Ok(());
        }
        let place = self.at(number)?;
        directory::list(&place, number, offset, plus.then_some(self.ttl(number)), take)
    }

    /// Space and numbers of the volume, or of the tree with a limit that a file is in.
    pub(crate) fn space(&self, number: INodeNo) -> StatFs {
        match self.at(number) {
            Ok(place) if place.is_main() && !Faces::owns(number) => place.statfs_at(place.inode(number)),
            _ => self.files.statfs(),
        }
    }

    pub(crate) fn set_xattr(&self, who: Who, number: INodeNo, to: Xattr<'_>) -> Result<(), Errno> {
        if Faces::owns(number) {
            return Err(Errno::EPERM);
        }
        if number == FOLDER {
            return self.transacted.command(who, to.name, to.value);
        }
        if let Some(folder) = Folder::of(number) {
            return self.snapshots.command(folder, to.name, to.value);
        }
        let place = self.at(number)?;
        if keys::is_command(to.name) {
            return self.keys.command(who, &place, place.inode(number), to.value);
        }
        let how = xattr_flags(to.flags).ok_or(Errno::EINVAL)?;
        // An access list sets the mode, too, and whether that may keep its set-group bit the kernel
        // leaves to us.
        let caller = if to.name == ACCESS_LIST { caller_with_groups(who) } else { caller(who, 0) };
        told(place.set_xattr(&caller, place.inode(number), to.name, to.value, how))
    }

    pub(crate) fn get_xattr(&self, who: Who, number: INodeNo, name: &[u8], size: u32) -> Result<Value, Errno> {
        if Faces::owns(number) || Folder::of(number).is_some() {
            return Err(errno_of(ErrorKind::NoAttribute));
        }
        if number == FOLDER {
            return value_of(self.transacted.told(name)?, size);
        }
        if state::owns(number)
            && let Some(told) = self.snapshots.told(number, name)
        {
            return value_of(told?, size);
        }
        if let Some(word) = keys::word_of(name) {
            return value_of(self.keys.told(word)?, size);
        }
        let place = self.at(number)?;
        let view = std::str::from_utf8(name).ok().and_then(|name| name.strip_prefix(VIEW_PREFIX));
        let view = view.filter(|_| number == INodeNo::ROOT);
        // A stream has all files, whoever may read them.
        if view.is_some_and(|view| view.starts_with(SEND_VIEW)) && who.uid != 0 {
            return Err(Errno::EPERM);
        }
        let view = view.and_then(|view| (self.views)(view, &self.requests));
        match view {
            Some(value) => value_of(value, size),
            None => value_of(told(place.get_xattr(place.inode(number), name))?, size),
        }
    }

    pub(crate) fn list_xattrs(&self, who: Who, number: INodeNo, size: u32) -> Result<Value, Errno> {
        if Faces::owns(number) || is_folder(number) {
            return value_of(Vec::new(), size);
        }
        let place = self.at(number)?;
        let names = told(place.list_xattrs(place.inode(number)))?;
        value_of(names_shown(who, names), size)
    }

    pub(crate) fn remove_xattr(&self, who: Who, number: INodeNo, name: &[u8]) -> Result<(), Errno> {
        if Faces::owns(number) || is_folder(number) {
            return Err(Errno::EPERM);
        }
        let place = self.at(number)?;
        told(place.remove_xattr(place.inode(number), name))?;
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
        let place = self.at(number)?;
        let allocate = |caller: &Caller| place.allocate(caller, place.inode(number), offset, length, what);
        told(match place.is_within() {
            true => allocate(&caller_with_groups(who)),
            false => self.set_id.taking_bits(who, number, &place, allocate),
        })
    }

    /// How long the kernel may believe what it is told of a file, or of a name in a directory.
    pub(crate) const fn ttl(&self, number: INodeNo) -> Duration {
        if owns(number) || is_folder(number) { Duration::ZERO } else { self.ttl }
    }
}

/// Whether a number is that of a folder that is in no volume.
const fn is_folder(number: INodeNo) -> bool {
    number.0 == FOLDER.0 || Folder::of(number).is_some()
}

/// A value whose length may be asked for first.
fn value_of(value: Vec<u8>, size: u32) -> Result<Value, Errno> {
    match u32::try_from(value.len()) {
        Ok(length) if size == 0 => Ok(Value::Length(length)),
        Ok(length) if length <= size => Ok(Value::Bytes(value)),
        _ => Err(errno_of(ErrorKind::Range)),
    }
}
