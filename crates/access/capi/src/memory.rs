//! Blocks, and the ways between blocks and files.

use crate::arguments::text_of;
use crate::descriptors::{TRIES, at_path};
use crate::error::{Failure, Outcome, answer};
use crate::handle::{Held, InHeap, OnodeHeap, heap_of, is_forgotten};
use onode_base::ErrorKind;
use onode_base::sync::{Mutex, RwLock, rank};
use onode_heap::{Block, Heap, InodeNumber, Mapping, caller};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

/// The file stays, the memory is a look at it.
pub const ONODE_KEEP: c_int = 0;
/// The file is removed, the memory is the caller's.
pub const ONODE_DROP: c_int = 1;

/// The heap of `mm_to_file` and `file_to_mm`, as an address; 0 for none.
static USED: RwLock<usize, rank::CHeap> = RwLock::new(0);

pub(crate) fn block_pointer(pointer: *mut c_void) -> Outcome<NonNull<u8>> {
    NonNull::new(pointer.cast()).ok_or_else(|| Failure::new(ErrorKind::Invalid, "the block is NULL"))
}

/// A block that its owner gives up: its first `bytes`, or as many as it was made for if that is 0.
/// It stays the owner's if this fails.
///
/// # Safety
/// The caller owns `block`, which is one of `heap`, or it is null.
pub(crate) unsafe fn owned_block(heap: &Heap, block: *mut c_void, bytes: usize) -> Outcome<Block> {
    let pointer = block_pointer(block)?;
    if bytes == 0 {
        // SAFETY: the caller's promise.
        return Ok(unsafe { heap.from_raw(pointer) }?);
    }
    // SAFETY: the caller's promise.
    let mut memory = unsafe { heap.from_raw_whole(pointer) }?;
    if bytes > memory.len() {
        let words = format!("the block has {} bytes, not {bytes}", memory.len());
        memory.leave();
        return Err(Failure::new(ErrorKind::Invalid, words));
    }
    memory.shorten(bytes);
    Ok(memory)
}

/// Opens the heap `spec` names, such as "scm:/dev/shm/heap,size=1G", and makes it if there is none;
/// if several processes do that at once, one of them makes it for all. They share it, but not with
/// those who only read it (`onode_open_volume` with O_RDONLY, commands), who are waited for up to
/// two seconds: EBUSY if they stay.
/// What is made in it belongs to the effective user and group of the process. No permissions are
/// asked for: whoever may write to the memory may read and change every file in it.
///
/// # Safety
/// `spec` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_open_heap(spec: *const c_char) -> *mut OnodeHeap {
    answer(|| {
        // SAFETY: the caller's promise.
        let spec = unsafe { text_of(spec) }?;
        let heap = Heap::open(&String::from_utf8_lossy(spec))?;
        OnodeHeap::handed_out(Held::Memory { heap, mappings: Mutex::default() })
    })
}

/// Closes a heap: descriptors are closed, and blocks that no file has are gone. It stays open as it
/// is and this fails with EBUSY as long as tables of slots, arenas or transactions of it are open.
/// After any other failure the pointer is none any more.
///
/// # Safety
/// `heap` came from `onode_open_heap`, and nobody uses it or its blocks any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_close_heap(heap: *mut OnodeHeap) -> c_int {
    answer(|| {
        let no_more_in_use = || {
            let mut used = USED.write();
            if *used == heap as usize {
                *used = 0;
            }
        };
        // SAFETY: the caller's promise.
        if unsafe { is_forgotten(heap) } {
            no_more_in_use();
            return Ok(0);
        }
        // SAFETY: the caller's promise.
        let opened = unsafe { heap_of(heap) }?;
        if opened.heap.users() > 1 + opened.mappings.lock().values().map(Vec::len).sum::<usize>() {
            let words = "tables of slots, arenas or transactions of the heap are open";
            return Err(Failure::new(ErrorKind::Busy, words));
        }
        no_more_in_use();
        // SAFETY: the pointer came from a box, and this is the last use of it.
        let opened = unsafe { Box::from_raw(heap) };
        opened.files.close_all(opened.system());
        if let Held::Memory { heap, mappings } = opened.held {
            drop(mappings);
            heap.close()?;
        }
        Ok(0)
    })
}

/// Makes a heap the one that `mm_to_file` and `file_to_mm` work on.
///
/// # Safety
/// `heap` came from `onode_open_heap` and stays open as long as those are called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_use(heap: *mut OnodeHeap) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        unsafe { heap_of(heap) }?;
        *USED.write() = heap as usize;
        Ok(0)
    })
}

fn used() -> *mut OnodeHeap {
    *USED.read() as *mut OnodeHeap
}

/// A block of at least `bytes`. It holds anything, as that of `malloc` does: a file that is made of
/// it shows what the memory held before wherever nothing was stored since. `onode_calloc` clears
/// it.
///
/// # Safety
/// `heap` is an open heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_alloc(heap: *mut OnodeHeap, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    answer(|| Ok(unsafe { heap_of(heap) }?.heap.allocate_raw(bytes)?.as_ptr().cast()))
}

/// A block for `count` things of `bytes` each, all zeros.
///
/// # Safety
/// `heap` is an open heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_calloc(heap: *mut OnodeHeap, count: usize, bytes: usize) -> *mut c_void {
    answer(|| {
        // SAFETY: the caller's promise.
        let heap = &unsafe { heap_of(heap) }?.heap;
        let too_many =
            || Failure::new(ErrorKind::NoSpace, format!("{count} times {bytes} bytes are more than there are"));
        let whole = count.checked_mul(bytes).ok_or_else(too_many)?;
        Ok(heap.allocate_zeroed(whole)?.into_raw().as_ptr().cast())
    })
}

/// Another size for a block, which may move; NULL with the block as it was if there is no room.
///
/// # Safety
/// `heap` is an open heap, `block` NULL or a block of it that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_realloc(heap: *mut OnodeHeap, block: *mut c_void, bytes: usize) -> *mut c_void {
    if block.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { onode_alloc(heap, bytes) };
    }
    answer(|| {
        // SAFETY: the caller's promise.
        let heap = &unsafe { heap_of(heap) }?.heap;
        // SAFETY: the caller's promise. All of it is kept: a program may have asked how much there
        // is.
        let block = unsafe { heap.from_raw_whole(block_pointer(block)?) }?;
        match heap.reallocate(block, bytes) {
            Ok(block) => Ok(block.into_raw().as_ptr().cast()),
            Err(refused) => {
                let (block, error) = refused.into_parts();
                block.leave();
                Err(error.into())
            }
        }
    })
}

/// Frees a block; NULL is nothing.
///
/// # Safety
/// `heap` is an open heap, and nobody uses the block any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_free(heap: *mut OnodeHeap, block: *mut c_void) -> c_int {
    if block.is_null() {
        return 0;
    }
    answer(|| {
        // SAFETY: the caller's promise.
        unsafe { heap_of(heap)?.heap.free(block_pointer(block)?)? };
        Ok(0)
    })
}

/// Bytes of the block that begins at a pointer, which may be more than were asked for; 0 if none
/// does.
///
/// # Safety
/// `heap` is an open heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_block_size(heap: *mut OnodeHeap, block: *const c_void) -> usize {
    answer(|| {
        // SAFETY: the caller's promise.
        let heap = &unsafe { heap_of(heap) }?.heap;
        let address = heap.address_of(block_pointer(block.cast_mut())?);
        let found = address.and_then(|address| heap.block_of(address).filter(|(start, _)| *start == address));
        found.map(|(_, bytes)| bytes as usize).ok_or_else(|| Failure::new(ErrorKind::Invalid, "no block begins there"))
    })
}

/// Where a heap begins in this process: what `ONODE_REF` counts from.
///
/// # Safety
/// `heap` is an open heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_heap_start(heap: *mut OnodeHeap) -> *mut c_void {
    // SAFETY: the caller's promise.
    answer(|| Ok(unsafe { heap_of(heap) }?.heap.start().as_ptr().cast()))
}

/// Where a pointer into the heap points, counted from the heap's start: what to store in place of
/// the pointer. 0 for NULL and for pointers elsewhere.
///
/// # Safety
/// `heap` is an open heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_offset(heap: *mut OnodeHeap, pointer: *const c_void) -> u64 {
    let Some(pointer) = NonNull::new(pointer.cast_mut().cast::<u8>()) else { return 0 };
    answer(|| {
        // SAFETY: the caller's promise.
        let offset = unsafe { heap_of(heap) }?.heap.address_of(pointer);
        offset.ok_or_else(|| Failure::new(ErrorKind::Invalid, "the pointer is not of this heap"))
    })
}

/// The pointer that an offset stands for; NULL for 0, and for an offset that lies in no block.
///
/// # Safety
/// `heap` is an open heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_pointer(heap: *mut OnodeHeap, offset: u64) -> *mut c_void {
    if offset == 0 {
        return std::ptr::null_mut();
    }
    answer(|| {
        // SAFETY: the caller's promise.
        let heap = &unsafe { heap_of(heap) }?.heap;
        let pointer = heap.pointer_at(offset);
        let pointer = pointer.ok_or_else(|| Failure::new(ErrorKind::Invalid, "no block holds this offset"))?;
        Ok(pointer.as_ptr().cast())
    })
}

/// Makes the first `bytes` of a block a file, as many as were asked for if 0, and returns a
/// descriptor of the file. No byte is copied, and the file is durable, name and content, on return.
/// It belongs to the process's effective user and group, with the permissions 0666 as far as the
/// umask leaves them. `flags` as for `open`; the file must not be there.
///
/// # Safety
/// `heap` is an open heap, `path` a string, and nobody uses the block through its pointer any more
/// unless this fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_mm_to_file(
    heap: *mut OnodeHeap,
    block: *mut c_void,
    bytes: usize,
    path: *const c_char,
    flags: c_int,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, path) = unsafe { (heap_of(heap)?, text_of(path)?) };
        // SAFETY: the caller's promise.
        let memory = unsafe { owned_block(opened.heap, block, bytes) }?;
        match opened.heap.mm_to_file(memory, path, &caller(), 0o666) {
            Ok(inode) => opened.files.open_made(opened.heap.files(), inode, path, flags),
            Err(refused) => {
                let (memory, error) = refused.into_parts();
                memory.leave();
                Err(error.into())
            }
        }
    })
}

/// The content of a file as memory. With ONODE_DROP the file is removed, its descriptor closed, and
/// the block is the caller's; with ONODE_KEEP the file stays and the memory is given back with
/// `onode_unmap`. A file that is not in one piece, as those are that were blocks, is brought
/// together first, where it is: it stays the same file, and a hole becomes zeros. With ONODE_DROP
/// the name of a file that was renamed since it was opened, or opened by a symbolic link, is looked
/// for among all files of the heap; ENOENT if it has none, EBUSY if it has several. If the call
/// fails the file and the descriptor are as they were.
///
/// # Safety
/// `heap` is an open heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_file_to_mm(heap: *mut OnodeHeap, descriptor: c_int, flags: c_int) -> *mut c_void {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { heap_of(heap) }?;
        if flags == ONODE_DROP {
            let block = opened.taken(descriptor)?;
            opened.files.forget(descriptor);
            return Ok(block.into_raw().as_ptr().cast());
        }
        let file = opened.files.get(descriptor)?;
        opened.map(file.inode, &file.path)
    })
}

/// The content of the file at `path` as memory, which stays the same file; `bytes` gets its size.
/// One that is not in one piece is brought together first, as with `onode_file_to_mm`. Given back
/// with `onode_unmap`. The memory is that of the file as long as its size stays and no hole is made
/// in it.
///
/// # Safety
/// `heap` is an open heap, `path` a string, `bytes` NULL or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_map(heap: *mut OnodeHeap, path: *const c_char, bytes: *mut usize) -> *mut c_void {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, path) = unsafe { (heap_of(heap)?, text_of(path)?) };
        let pointer = at_path(opened.heap.files(), path, |inode| opened.map(inode, path))?;
        // SAFETY: the caller's promise.
        if let Some(bytes) = unsafe { bytes.as_mut() } {
            *bytes = opened.mapped_bytes(pointer);
        }
        Ok(pointer)
    })
}

/// Gives back memory that `onode_map` or `onode_file_to_mm` with ONODE_KEEP returned.
///
/// # Safety
/// `heap` is an open heap, and nobody uses the memory any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_unmap(heap: *mut OnodeHeap, memory: *mut c_void) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { heap_of(heap) }?;
        let mut mappings = opened.mappings.lock();
        let known = mappings.get_mut(&(memory as usize)).and_then(Vec::pop);
        known.ok_or_else(|| Failure::new(ErrorKind::Invalid, "no file is mapped there"))?;
        Ok(0)
    })
}

impl InHeap<'_> {
    /// The block of an open file, which is removed.
    fn taken(&self, descriptor: c_int) -> Outcome<Block> {
        let (_, handle) = self.files.handle_of(descriptor)?;
        let mut tries = 1..TRIES;
        loop {
            let path = self.files.path_of(self.heap.files(), descriptor)?;
            let block = match self.heap.open_file_to_mm(&path, handle) {
                Err(error) if error.kind == ErrorKind::Invalid => {
                    self.heap.compact(&path).and_then(|()| self.heap.open_file_to_mm(&path, handle))
                }
                other => other,
            };
            match block {
                // Renamed since its name was found.
                Err(error)
                    if matches!(error.kind, ErrorKind::Stale | ErrorKind::NotFound) && tries.next().is_some() => {}
                other => return Ok(other?),
            }
        }
    }

    fn map(&self, inode: InodeNumber, path: &[u8]) -> Outcome<*mut c_void> {
        let mapping = self.heap.map_whole(inode, path)?;
        let pointer = mapping.as_ptr().as_ptr();
        let mut mappings = self.mappings.lock();
        mappings.entry(pointer as usize).or_default().push(mapping);
        Ok(pointer.cast())
    }

    fn mapped_bytes(&self, pointer: *mut c_void) -> usize {
        let mappings = self.mappings.lock();
        mappings.get(&(pointer as usize)).and_then(|all| all.last()).map_or(0, Mapping::len)
    }
}

/// Paper 2, Table 1: makes a block of the heap in use a file and returns its descriptor.
///
/// # Safety
/// As [`onode_mm_to_file`]; `onode_use` was called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mm_to_file(block: *mut c_void, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { onode_mm_to_file(used(), block, 0, path, flags) }
}

/// Paper 2, Table 1: makes the content of a file of the heap in use memory.
///
/// # Safety
/// As [`onode_file_to_mm`]; `onode_use` was called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn file_to_mm(descriptor: c_int, flags: c_int) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { onode_file_to_mm(used(), descriptor, flags) }
}
