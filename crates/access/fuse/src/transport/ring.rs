//! One request that came by io_uring: what is asked, and the answer in the place of the question.

use crate::adaptor::{Mode, Range, Xattr};
use crate::request::answer::{Entry, Value};
use crate::request::content::Asked;
use crate::request::counts::Kind;
use crate::request::reply::{LateReply, Reply, Told};
use crate::serving::Adaptor;
use crate::transport::encode::Writer;
use crate::transport::operation::{Fields, Head, changes, code, text};
use fuser::{Errno, FileAttr, FopenFlags, LockOwner, OpenFlags, RenameFlags};
use onode_ring::{Message, Outcome, Ticket};
use std::cell::Cell;
use std::time::Duration;

/// A read or write names the owner of what it asks for (`FUSE_READ_LOCKOWNER` and of writes).
const HAS_OWNER: u32 = 1 << 1;
/// A write is of what the kernel kept (`FUSE_WRITE_CACHE`).
const FROM_CACHE: u32 = 1;
/// A write takes the set-id bits away (`FUSE_WRITE_KILL_SUIDGID`).
const TAKES_BITS: u32 = 1 << 2;
/// A sync is for content alone (`FUSE_FSYNC_FDATASYNC`).
const DATA_ONLY: u32 = 1;

/// How many bytes of the payload are the answer.
type Answered = Result<usize, Errno>;

/// Serves a request.
pub(crate) fn serve(adaptor: &Adaptor, message: Message<'_>) -> Outcome {
    let head = Head::of(message.header);
    let Some(kind) = kind(head.code) else {
        let error = if head.code == code::DESTROY { 0 } else { libc::ENOSYS };
        return Outcome::Answered { error, length: 0 };
    };
    let _served = adaptor.serve_on_ring(kind);
    let fields = Fields(message.operation);
    if head.code == code::WRITE {
        return write(adaptor, &head, fields, message);
    }
    if head.code == code::LSEEK {
        return seek(adaptor, &head, fields, message);
    }
    let Message { payload, length, .. } = message;
    let answered = match head.code {
        code::READ | code::READLINK | code::READDIR | code::READDIRPLUS => look(adaptor, &head, fields, payload),
        code::SETXATTR | code::GETXATTR | code::LISTXATTR | code::REMOVEXATTR => {
            xattr(adaptor, &head, fields, payload, length)
        }
        code::LOOKUP | code::SYMLINK | code::MKNOD | code::MKDIR | code::LINK | code::CREATE => {
            name(adaptor, &head, fields, payload, length)
        }
        code::UNLINK | code::RMDIR | code::RENAME | code::RENAME2 => {
            remove(adaptor, &head, fields, &payload[..length]).map(|()| 0)
        }
        _ => file(adaptor, &head, fields, payload),
    };
    outcome(answered)
}

fn outcome(answered: Answered) -> Outcome {
    match answered {
        Ok(length) => Outcome::Answered { error: 0, length },
        Err(errno) => Outcome::Answered { error: errno.code(), length: 0 },
    }
}

/// Under what a request is counted; `None` for what is not offered.
const fn kind(code: u32) -> Option<Kind> {
    Some(match code {
        code::LOOKUP => Kind::Lookup,
        code::GETATTR => Kind::Getattr,
        code::SETATTR => Kind::Setattr,
        code::READLINK => Kind::Readlink,
        code::SYMLINK => Kind::Symlink,
        code::MKNOD => Kind::Mknod,
        code::MKDIR => Kind::Mkdir,
        code::UNLINK => Kind::Unlink,
        code::RMDIR => Kind::Rmdir,
        code::RENAME | code::RENAME2 => Kind::Rename,
        code::LINK => Kind::Link,
        code::OPEN => Kind::Open,
        code::READ => Kind::Read,
        code::WRITE => Kind::Write,
        code::STATFS => Kind::Statfs,
        code::RELEASE => Kind::Release,
        code::FSYNC => Kind::Fsync,
        code::SETXATTR => Kind::Setxattr,
        code::GETXATTR => Kind::Getxattr,
        code::LISTXATTR => Kind::Listxattr,
        code::REMOVEXATTR => Kind::Removexattr,
        code::FLUSH => Kind::Flush,
        code::OPENDIR => Kind::Opendir,
        code::READDIR => Kind::Readdir,
        code::RELEASEDIR => Kind::Releasedir,
        code::FSYNCDIR => Kind::Fsyncdir,
        code::ACCESS => Kind::Access,
        code::CREATE => Kind::Create,
        code::FALLOCATE => Kind::Fallocate,
        code::READDIRPLUS => Kind::Readdirplus,
        code::LSEEK => Kind::Lseek,
        code::COPY_FILE_RANGE => Kind::CopyFileRange,
        _ => return None,
    })
}

/// What a read (`fuse_read_in`) or write (`fuse_write_in`) is about.
fn asked(head: &Head, fields: Fields<'_>, takes_bits: bool) -> Asked {
    let flags = fields.u32(20);
    Asked {
        number: head.number,
        offset: fields.u64(8),
        flags: OpenFlags(fields.u32(32).cast_signed()),
        owner: (flags & HAS_OWNER != 0).then(|| LockOwner(fields.u64(24))),
        takes_bits,
        is_of_caller: flags & FROM_CACHE == 0,
    }
}

/// Reads of content, of links and of directories.
fn look(adaptor: &Adaptor, head: &Head, fields: Fields<'_>, payload: &mut [u8]) -> Answered {
    if head.code == code::READLINK {
        let target = adaptor.read_link(head.number)?;
        return encoded(payload, |to| to.bytes(&target));
    }
    let size = (fields.u32(16) as usize).min(payload.len());
    let room = &mut payload[..size];
    if head.code == code::READ {
        return adaptor.read(&asked(head, fields, false), room);
    }
    let plus = head.code == code::READDIRPLUS;
    let mut to = Writer::new(room);
    adaptor.list(head.number, fields.u64(8), plus, &mut |one| to.listed(one, plus))?;
    Ok(to.length())
}

/// The way back to a program: an answer at once, or a ticket for whoever has it later.
struct ByRing<'a, T> {
    at_once: &'a Cell<Option<Result<T, Errno>>>,
    ticket: Ticket,
}

impl<T: Told> Reply<T> for ByRing<'_, T> {
    fn now(self, answer: Result<T, Errno>) {
        self.ticket.give_up();
        self.at_once.set(Some(answer));
    }

    fn later(self) -> LateReply<T> {
        LateReply::Ring(self.ticket)
    }
}

/// Asks for what may be answered later.
fn perhaps_later<T: Told>(message: Message<'_>, ask: impl FnOnce(&[u8], ByRing<'_, T>)) -> Outcome {
    let at_once = Cell::new(None);
    let back = ByRing { at_once: &at_once, ticket: message.ticket() };
    ask(&message.payload[..message.length], back);
    match at_once.take() {
        Some(Ok(answer)) => outcome(encoded(message.payload, |to| to.bytes(&answer.bytes()))),
        Some(Err(errno)) => outcome(Err(errno)),
        None => Outcome::Later,
    }
}

fn write(adaptor: &Adaptor, head: &Head, fields: Fields<'_>, message: Message<'_>) -> Outcome {
    let asked = asked(head, fields, fields.u32(20) & TAKES_BITS != 0);
    perhaps_later(message, |came, back| {
        let size = (fields.u32(16) as usize).min(came.len());
        adaptor.write(head.who, &asked, &came[..size], back);
    })
}

fn seek(adaptor: &Adaptor, head: &Head, fields: Fields<'_>, message: Message<'_>) -> Outcome {
    let (offset, whence) = (fields.u64(8).cast_signed(), fields.u32(16).cast_signed());
    perhaps_later(message, |_, back| adaptor.seek(head.number, offset, whence, back))
}

fn encoded(payload: &mut [u8], write: impl FnOnce(&mut Writer<'_>)) -> Answered {
    let mut to = Writer::new(payload);
    write(&mut to);
    Ok(to.length())
}

/// What leads to a name: the answer is what it stands for.
fn name(adaptor: &Adaptor, head: &Head, fields: Fields<'_>, payload: &mut [u8], length: usize) -> Answered {
    let ttl = adaptor.ttl(head.number);
    let (name, rest) = text(&payload[..length])?;
    let of = head.name(name);
    let mut opened: Option<FopenFlags> = None;
    let found: Entry = match head.code {
        code::LOOKUP => adaptor.lookup(head.who, of)?,
        code::SYMLINK => adaptor.make_symbolic_link(head.who, of, text(rest)?.0)?,
        code::MKNOD => {
            let mode = Mode { mode: fields.u32(0), umask: fields.u32(8) };
            adaptor.make_node(head.who, of, mode, fields.u32(4))?
        }
        code::MKDIR => adaptor.make_directory(head.who, of, Mode { mode: fields.u32(0), umask: fields.u32(4) })?,
        code::LINK => adaptor.link(fuser::INodeNo(fields.u64(0)), of)?,
        _ => {
            let mode = Mode { mode: fields.u32(4), umask: fields.u32(8) };
            let (made, flags) = adaptor.create(head.who, of, mode)?;
            opened = Some(flags);
            made
        }
    };
    encoded(payload, |to| {
        to.entry(&found, ttl);
        opened.into_iter().for_each(|flags| to.opened(flags));
    })
}

/// What takes a name away.
fn remove(adaptor: &Adaptor, head: &Head, fields: Fields<'_>, names: &[u8]) -> Result<(), Errno> {
    let (name, rest) = text(names)?;
    let of = head.name(name);
    match head.code {
        code::UNLINK => adaptor.unlink(of),
        code::RMDIR => adaptor.remove_directory(of),
        _ => {
            let flags = if head.code == code::RENAME2 { fields.u32(8) } else { 0 };
            let parent = fuser::INodeNo(fields.u64(0));
            let to = crate::adaptor::Name { parent, name: text(rest)?.0 };
            adaptor.rename(head.who, of, to, RenameFlags::from_bits_retain(flags))
        }
    }
}

fn xattr(adaptor: &Adaptor, head: &Head, fields: Fields<'_>, payload: &mut [u8], length: usize) -> Answered {
    let came = &payload[..length];
    let size = fields.u32(0);
    let value = match head.code {
        code::SETXATTR => {
            let (name, rest) = text(came)?;
            let value = rest.get(..size as usize).ok_or(Errno::EIO)?;
            let to = Xattr { name, value, flags: fields.u32(4).cast_signed() };
            return adaptor.set_xattr(head.who, head.number, to).map(|()| 0);
        }
        code::REMOVEXATTR => return adaptor.remove_xattr(head.who, head.number, text(came)?.0).map(|()| 0),
        code::GETXATTR => adaptor.get_xattr(head.who, head.number, text(came)?.0, size)?,
        _ => adaptor.list_xattrs(head.who, head.number, size)?,
    };
    encoded(payload, |to| match &value {
        Value::Length(length) => to.length_of_value(*length),
        Value::Bytes(bytes) => to.bytes(bytes),
    })
}

/// What concerns a file by its number alone, or the volume.
fn file(adaptor: &Adaptor, head: &Head, fields: Fields<'_>, payload: &mut [u8]) -> Answered {
    let Head { number, who, .. } = *head;
    let ttl: Duration = adaptor.ttl(number);
    let attributes = |payload: &mut [u8], found: &FileAttr| encoded(payload, |to| to.attributes(found, ttl));
    let data_only = fields.u32(8) & DATA_ONLY != 0;
    match head.code {
        code::GETATTR => attributes(payload, &adaptor.attributes(number)?),
        code::SETATTR => attributes(payload, &adaptor.set_attributes(who, number, &changes(fields))?),
        code::OPEN => {
            let flags = adaptor.open(number, OpenFlags(fields.u32(0).cast_signed()))?;
            encoded(payload, |to| to.opened(flags))
        }
        code::OPENDIR => encoded(payload, |to| to.opened(FopenFlags::empty())),
        code::RELEASE | code::RELEASEDIR => Ok(0),
        code::FLUSH => adaptor.flush(number).map(|()| 0),
        code::FSYNC | code::FSYNCDIR => adaptor.sync(number, data_only).map(|()| 0),
        code::STATFS => encoded(payload, |to| to.space(&adaptor.space(number))),
        code::FALLOCATE => {
            let range = Range { offset: fields.u64(8), length: fields.u64(16) };
            adaptor.allocate(who, number, range, fields.u32(24).cast_signed()).map(|()| 0)
        }
        // Of access the kernel has decided already; ranges it then copies through its own cache,
        // which takes no longer and leaves in the cache what was copied.
        _ => Err(Errno::ENOSYS),
    }
}
