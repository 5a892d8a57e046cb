//! Files of a heap or a volume by descriptors, as C programs know them.
//!
//! In a heap every write is durable when it returns; in a transaction when that is committed, in a
//! volume when it was synced.

pub(crate) mod hints;

use crate::arguments::{name_field, place_of, text_of};
use crate::descriptors::{OpenFile, at_path};
use crate::error::{Failure, Outcome, answer};
use crate::handle::{OnodeHeap, files_of};
use onode_base::ErrorKind;
use onode_fs::{FileType, RenameFlags, SetAttributes};
use onode_heap::caller;
use std::ffi::{c_char, c_int, c_long, c_void};
use std::ops::Range;

/// What `onode_stat_path` tells of a file.
#[repr(C)]
pub struct Stat {
    /// Number of the file.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Type and permission bits, as in `st_mode`.
    pub mode: u32,
    /// Names.
    pub links: u32,
    /// Last change of the content: seconds since 1970.
    pub modified_seconds: i64,
    /// And nanoseconds.
    pub modified_nanoseconds: u32,
}

/// A name in a directory.
#[repr(C)]
pub struct Name {
    /// Number of the file.
    pub inode: u64,
    /// Type bits, as in `st_mode`.
    pub mode: u32,
    /// The name, ended by a zero byte.
    pub name: [c_char; 256],
}

fn mode_of(file_type: FileType) -> u32 {
    match file_type {
        FileType::Regular => libc::S_IFREG,
        FileType::Directory => libc::S_IFDIR,
        FileType::SymbolicLink => libc::S_IFLNK,
        FileType::Fifo => libc::S_IFIFO,
        FileType::Socket => libc::S_IFSOCK,
        FileType::CharacterDevice => libc::S_IFCHR,
        FileType::BlockDevice => libc::S_IFBLK,
    }
}

/// Opens a file; `flags` and `mode` as for `open(2)`: a file that is made belongs to the process's
/// effective user and group and has the permissions of `mode` as far as the umask leaves them.
/// O_CREAT, O_EXCL, O_TRUNC, O_APPEND and the access mode count.
///
/// # Safety
/// `heap` is an open heap, `path` a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_open(heap: *mut OnodeHeap, path: *const c_char, flags: c_int, mode: u32) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, path) = unsafe { (files_of(heap)?, text_of(path)?) };
        opened.files.open_path(opened.system(), path, flags, mode)
    })
}

/// Makes a file, or cuts it to nothing, and opens it for writing; `mode` as for `onode_open`.
///
/// # Safety
/// As [`onode_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_creat(heap: *mut OnodeHeap, path: *const c_char, mode: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { onode_open(heap, path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode) }
}

/// Closes a descriptor.
///
/// # Safety
/// `heap` is an open heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_close(heap: *mut OnodeHeap, descriptor: c_int) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { files_of(heap) }?;
        opened.files.close(opened.system(), descriptor)?;
        Ok(0)
    })
}

unsafe fn read_at(opened: &OnodeHeap, file: &OpenFile, to: *mut c_void, bytes: usize, offset: u64) -> Outcome<usize> {
    if file.flags & libc::O_ACCMODE == libc::O_WRONLY {
        return Err(Failure::new(ErrorKind::BadHandle, "the descriptor is for writing only"));
    }
    if bytes == 0 {
        return Ok(0);
    }
    // SAFETY: the caller of the C function gives `bytes` bytes to write to.
    let buffer = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), bytes.min(isize::MAX as usize)) };
    Ok(opened.system().read(file.inode, offset, buffer)?)
}

/// Writes at a place, or behind whatever is there, and tells where that is; `None` if there was
/// nothing to write.
///
/// # Safety
/// `from` has `bytes` bytes.
unsafe fn write_at(
    opened: &OnodeHeap,
    file: &OpenFile,
    from: *const c_void,
    bytes: usize,
    at: Option<u64>,
) -> Outcome<Option<Range<u64>>> {
    check_written(file)?;
    if bytes == 0 {
        return Ok(None);
    }
    // SAFETY: the caller of the C function gives `bytes` bytes to read.
    let data = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes.min(isize::MAX as usize)) };
    Ok(Some(match at {
        Some(at) => at..at + opened.system().write(opened.files.user(), file.inode, at, data)? as u64,
        None => opened.system().append(opened.files.user(), file.inode, data)?,
    }))
}

fn check_written(file: &OpenFile) -> Outcome<()> {
    if file.flags & libc::O_ACCMODE == libc::O_RDONLY {
        return Err(Failure::new(ErrorKind::BadHandle, "the descriptor is for reading only"));
    }
    Ok(())
}

/// Reads from where the descriptor stands.
///
/// # Safety
/// `heap` is an open heap, and `to` has room for `bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_read(heap: *mut OnodeHeap, descriptor: c_int, to: *mut c_void, bytes: usize) -> isize {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { files_of(heap) }?;
        let file = opened.files.get(descriptor)?;
        // SAFETY: the caller's promise.
        let count = unsafe { read_at(opened, &file, to, bytes, file.offset) }?;
        opened.files.seek_to(descriptor, file.offset + count as u64);
        Ok(count as isize)
    })
}

/// Reads from `offset`.
///
/// # Safety
/// As [`onode_read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_pread(
    heap: *mut OnodeHeap,
    descriptor: c_int,
    to: *mut c_void,
    bytes: usize,
    offset: u64,
) -> isize {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { files_of(heap) }?;
        let file = opened.files.get(descriptor)?;
        // SAFETY: the caller's promise.
        Ok(unsafe { read_at(opened, &file, to, bytes, offset) }? as isize)
    })
}

/// Writes where the descriptor stands. With O_APPEND that is the end of the file, found and written
/// to in one step: what several threads and processes append comes to lie behind one another.
///
/// # Safety
/// `heap` is an open heap, and `from` has `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_write(
    heap: *mut OnodeHeap,
    descriptor: c_int,
    from: *const c_void,
    bytes: usize,
) -> isize {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { files_of(heap) }?;
        let file = opened.files.get(descriptor)?;
        let at = (file.flags & libc::O_APPEND == 0).then_some(file.offset);
        // SAFETY: the caller's promise.
        let written = unsafe { write_at(opened, &file, from, bytes, at) }?;
        let Some(written) = written else { return Ok(0) };
        opened.files.seek_to(descriptor, written.end);
        Ok((written.end - written.start) as isize)
    })
}

/// Writes at `offset`.
///
/// # Safety
/// As [`onode_write`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_pwrite(
    heap: *mut OnodeHeap,
    descriptor: c_int,
    from: *const c_void,
    bytes: usize,
    offset: u64,
) -> isize {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { files_of(heap) }?;
        let file = opened.files.get(descriptor)?;
        // SAFETY: the caller's promise.
        let written = unsafe { write_at(opened, &file, from, bytes, Some(offset)) }?;
        Ok(written.map_or(0, |range| (range.end - range.start) as isize))
    })
}

/// Moves where a descriptor stands; `whence` as for `lseek(2)`: SEEK_SET, SEEK_CUR, SEEK_END.
///
/// # Safety
/// `heap` is an open heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_lseek(heap: *mut OnodeHeap, descriptor: c_int, offset: i64, whence: c_int) -> i64 {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { files_of(heap) }?;
        let file = opened.files.get(descriptor)?;
        let from = match whence {
            libc::SEEK_SET => 0,
            libc::SEEK_CUR => file.offset,
            libc::SEEK_END => opened.system().attributes(file.inode)?.size,
            _ => return Err(Failure::new(ErrorKind::Invalid, format!("{whence} is no place to seek from"))),
        };
        let wrong = || Failure::new(ErrorKind::Invalid, "a seek before the start or past all numbers");
        let to = from.checked_add_signed(offset).and_then(|to| i64::try_from(to).ok()).ok_or_else(wrong)?;
        opened.files.seek_to(descriptor, to as u64);
        Ok(to)
    })
}

/// Sets the size of an open file. EBADF if the descriptor is for reading only.
///
/// # Safety
/// `heap` is an open heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_truncate(heap: *mut OnodeHeap, descriptor: c_int, size: u64) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { files_of(heap) }?;
        let file = opened.files.get(descriptor)?;
        check_written(&file)?;
        let change = SetAttributes { size: Some(size), ..SetAttributes::default() };
        opened.system().set_attributes(opened.files.user(), file.inode, &change)?;
        Ok(0)
    })
}

/// Makes a file durable; in a heap, and in a volume that was opened with O_SYNC, it is already,
/// unless the host is behind.
///
/// # Safety
/// `heap` is an open heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_fsync(heap: *mut OnodeHeap, descriptor: c_int) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { files_of(heap) }?;
        let (inode, handle) = opened.files.handle_of(descriptor)?;
        opened.system().fsync(inode, Some(handle), false)?;
        Ok(0)
    })
}

/// Removes the name of a file; EISDIR for a directory.
///
/// # Safety
/// As [`onode_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_unlink(heap: *mut OnodeHeap, path: *const c_char) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, path) = unsafe { (files_of(heap)?, text_of(path)?) };
        let (parent, name) = opened.system().resolve_parent(path)?;
        opened.system().unlink(parent, name)?;
        Ok(0)
    })
}

/// Makes a directory; `mode` as for `onode_open`.
///
/// # Safety
/// As [`onode_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_mkdir(heap: *mut OnodeHeap, path: *const c_char, mode: u32) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, path) = unsafe { (files_of(heap)?, text_of(path)?) };
        let files = opened.system();
        let (parent, name) = files.resolve_parent(path)?;
        let made = files.make_directory(&caller(), parent, name, (mode & 0o7777) as u16)?;
        files.forget(made.inode, 1);
        Ok(0)
    })
}

/// Removes a directory. ENOTEMPTY if anything is in it, ENOTDIR for a file.
///
/// # Safety
/// As [`onode_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_rmdir(heap: *mut OnodeHeap, path: *const c_char) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, path) = unsafe { (files_of(heap)?, text_of(path)?) };
        let (parent, name) = opened.system().resolve_parent(path)?;
        opened.system().remove_directory(parent, name)?;
        Ok(0)
    })
}

/// Gives a file another name, in place of what has it.
///
/// # Safety
/// As [`onode_open`], for both paths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_rename(heap: *mut OnodeHeap, from: *const c_char, to: *const c_char) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, from, to) = unsafe { (files_of(heap)?, text_of(from)?, text_of(to)?) };
        let files = opened.system();
        let (old_parent, old_name) = files.resolve_parent(from)?;
        let (new_parent, new_name) = files.resolve_parent(to)?;
        files.rename(old_parent, old_name, new_parent, new_name, RenameFlags::default())?;
        Ok(0)
    })
}

/// Tells about a file.
///
/// # Safety
/// As [`onode_open`]; `stat` is a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_stat_path(heap: *mut OnodeHeap, path: *const c_char, stat: *mut Stat) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, path) = unsafe { (files_of(heap)?, text_of(path)?) };
        let files = opened.system();
        let attributes = at_path(files, path, |inode| Ok(files.attributes(inode)?))?;
        // SAFETY: the caller's promise.
        *unsafe { place_of(stat) }? = Stat {
            inode: attributes.inode.0,
            size: attributes.size,
            mode: mode_of(attributes.file_type) | u32::from(attributes.permissions),
            links: attributes.links,
            modified_seconds: attributes.modified.seconds,
            modified_nanoseconds: attributes.modified.nanoseconds,
        };
        Ok(0)
    })
}

/// One name of a directory and the cursor of the next; `cursor` is 0 for the first. Returns the
/// next cursor, 0 at the end, -1 on failure.
///
/// # Safety
/// As [`onode_open`]; `name` is a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_readdir(
    heap: *mut OnodeHeap,
    path: *const c_char,
    cursor: c_long,
    name: *mut Name,
) -> c_long {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, path) = unsafe { (files_of(heap)?, text_of(path)?) };
        let files = opened.system();
        let mut found = None;
        at_path(files, path, |directory| {
            found = None;
            Ok(files.read_directory(directory, cursor as u64, &mut |entry| {
                let takes = found.is_none();
                if takes {
                    found = Some(entry.clone());
                }
                takes
            })?)
        })?;
        let Some(entry) = found else { return Ok(0) };
        // SAFETY: the caller's promise.
        *unsafe { place_of(name) }? =
            Name { inode: entry.inode.0, mode: mode_of(entry.file_type), name: name_field(&entry.name) };
        Ok(entry.cursor as c_long)
    })
}
