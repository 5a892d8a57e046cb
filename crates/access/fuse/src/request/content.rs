//! The content of files: what a read and a write of the kernel come to.
//!
//! Keeps true: nothing that the kernel keeps of a file is older than a write that was answered
//! (`page_cache`), and a write takes away the set-id bits and capabilities that it must.

use crate::opening::Opening;
use crate::request::answer::Answer;
use crate::request::convert::{errno, sought};
use crate::request::credentials::{Who, caller_with_groups};
use crate::request::faces::Faces;
use crate::request::patience;
use crate::request::reply::Reply;
use crate::serving::Adaptor;
use fuser::{Errno, INodeNo, LockOwner, OpenFlags};
use onode_base::ErrorKind;
use onode_fs::{Caller, FileSystem, InodeNumber, Seek};
use std::sync::Arc;

/// What the kernel asks of the content of a file.
pub(crate) struct Asked {
    pub(crate) number: INodeNo,
    pub(crate) offset: u64,
    /// How the program opened the file.
    pub(crate) flags: OpenFlags,
    /// The kernel names the owner of what goes to or comes from a program right away, not of what
    /// it keeps.
    pub(crate) owner: Option<LockOwner>,
    /// A write takes the set-id bits away.
    pub(crate) takes_bits: bool,
    /// It is no write of what the kernel kept of anybody.
    pub(crate) is_of_caller: bool,
}

impl Adaptor {
    /// Reads into `buffer` and says how many bytes.
    pub(crate) fn read(&self, asked: &Asked, buffer: &mut [u8]) -> Result<usize, Errno> {
        let Asked { number, offset, .. } = *asked;
        if asked.owner.is_none() {
            self.page_cache.filled(number);
        }
        let renews = asked.flags.0 & libc::O_NOATIME == 0;
        match (Faces::owns(number), renews) {
            (true, _) => self.faces.read(number, offset, buffer),
            (false, renews) => {
                let place = self.at(number)?;
                let inode = place.inode(number);
                let read = match renews {
                    true => place.read(inode, offset, buffer),
                    false => place.read_noatime(inode, offset, buffer),
                };
                read.map_err(|error| errno(&error))
            }
        }
    }

    /// Writes, and answers at once or from another thread.
    pub(crate) fn write(&self, who: Who, asked: &Asked, data: &[u8], reply: impl Reply<u32>) {
        let Asked { number, offset, owner, .. } = *asked;
        if Faces::owns(number) {
            return reply.now(self.faces.write(number, offset, data));
        }
        let place = match self.at(number) {
            Ok(place) => place,
            Err(errno) => return reply.now(Err(errno)),
        };
        let inode = place.inode(number);
        // One that has an owner passed the kernel's cache, which may still hold what was there
        // before.
        if owner.is_none() {
            self.page_cache.filled(number);
        }
        let page_cache = owner.is_some().then(|| Arc::clone(&self.page_cache));
        let answer = Answer { number, offset, is_whole: !asked.is_of_caller, page_cache, reply };
        // Of a file that it does not keep content of the kernel leaves its capabilities to us.
        if self.opening() == Opening::Direct
            && let Err(error) = place.drop_capabilities(inode)
        {
            return answer.written(Err(error));
        }
        // Where the end is the kernel cannot know if others append, too.
        let appends = self.is_shared && owner.is_some() && asked.flags.0 & libc::O_APPEND != 0;
        let write = |caller: &Caller| {
            let written = match (appends, asked.is_of_caller) {
                (true, _) => place.append(caller, inode, data).map(|range| (range.end - range.start) as usize),
                (false, true) => place.write(caller, inode, offset, data),
                (false, false) => patience::write_whole(offset, data, |at, data| place.write(caller, inode, at, data)),
            };
            (written, caller.clone())
        };
        // Whose write it is that comes from the kernel's cache is unknown, and then limits hold.
        let (written, caller) = match asked.takes_bits {
            true if place.is_within() => write(&caller_with_groups(who)),
            true => self.set_id.taking_bits(who, number, &place, write),
            false => write(&Caller { is_held: who.uid != 0 || !asked.is_of_caller, ..Caller::root() }),
        };
        let may_wait = !appends && place.is_main();
        match written {
            Err(error) if error.kind == ErrorKind::NoSpace && may_wait && self.files.is_space_expected() => {
                patience::write(&self.files, caller, data, answer.later());
            }
            written => answer.written(written),
        }
    }
}

impl Adaptor {
    /// Finds the next content or hole, and answers at once or from another thread: before a range
    /// passes for a hole the kernel writes what it keeps of that.
    pub(crate) fn seek(&self, number: INodeNo, offset: i64, whence: i32, reply: impl Reply<i64>) {
        let Some(what) = sought(whence) else { return reply.now(Err(Errno::EINVAL)) };
        let Ok(from) = u64::try_from(offset) else { return reply.now(Err(Errno::ENXIO)) };
        if Faces::owns(number) {
            return reply.now(self.faces.seek(number, from, whence).map(u64::cast_signed));
        }
        let place = match self.at(number) {
            Ok(place) => place,
            Err(errno) => return reply.now(Err(errno)),
        };
        let inode = place.inode(number);
        let found = find(&place, inode, from, what);
        let end = match &found {
            Ok(data) if *data > offset => Some(*data),
            // None up to the end of the file as it is told here; what the kernel keeps may go on.
            Err(errno) if errno.code() == libc::ENXIO => None,
            _ => return reply.now(found),
        };
        match place.files(&self.files).filter(|_| what == Seek::Data) {
            None => reply.now(found),
            Some(files) => {
                let reply = reply.later();
                let act = move || reply.now(find(&files, inode, from, what));
                self.page_cache.when_written(number, offset, end, act);
            }
        }
    }
}

fn find(files: &FileSystem, inode: InodeNumber, from: u64, what: Seek) -> Result<i64, Errno> {
    let found = files.seek(inode, from, what).map_err(|error| errno(&error))?;
    i64::try_from(found).map_err(|_| Errno::EOVERFLOW)
}
