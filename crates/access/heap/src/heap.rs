//! The heap: blocks, names, and the ways between them.

use crate::block::{Block, BlockError};
use crate::caller::owner;
use crate::error::{Error, Result, misuse};
use crate::process::Opener;
use crate::shared::Shared;
use crate::shared::cache::{release, with_cache};
use onode::{MountOptions, Spec, UserTransaction, Volume};
use onode_base::ErrorKind;
use onode_fs::{Caller, FileHandle, FileSystem, Follow, InodeNumber, WriteMode};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

/// A volume on memory, open in this process.
#[derive(Clone)]
pub struct Heap {
    shared: Arc<Shared>,
}

/// Whether a spec is of a device that is no memory, be it part of this build or not.
fn names_another(spec: &str) -> bool {
    spec.split_once(':').is_none_or(|(kind, _)| ["flash", "flash+scm", "tier", "pool"].contains(&kind))
}

impl Heap {
    /// Opens the heap of a spec such as `scm:/dev/shm/heap,size=1G`; makes it if there is none.
    ///
    /// # Errors
    /// `Invalid` for a spec that is no memory; in use, damaged, no space on the host: in words.
    pub fn open(spec: &str) -> Result<Self> {
        let failed = |error: onode::Error| {
            let kind = match error.class {
                onode::Class::InUse => ErrorKind::Busy,
                onode::Class::NotFound => ErrorKind::NotFound,
                onode::Class::HostFull => ErrorKind::HostFull,
                onode::Class::VolumeFull => ErrorKind::NoSpace,
                onode::Class::Damaged => ErrorKind::Corrupt,
                onode::Class::Loss => ErrorKind::Loss,
                onode::Class::Permission => ErrorKind::AccessDenied,
                onode::Class::ReadOnly => ErrorKind::ReadOnly,
                _ => ErrorKind::Invalid,
            };
            Error::new(kind, error.to_string())
        };
        // A build that has no other devices would say that, as if they could be a heap.
        let spec = match Spec::parse(spec) {
            Ok(parsed @ Spec::Scm(_)) => parsed,
            Err(error) if !names_another(spec) => return Err(failed(error)),
            _ => {
                let why = "it is no memory; use for example scm:/dev/shm/heap,size=1G";
                return Err(Error::new(ErrorKind::Invalid, format!("cannot use {spec} as a heap: {why}")));
            }
        };
        if spec.image_path().is_some_and(|path: &Path| !path.exists()) {
            let Caller { uid, gid, .. } = owner();
            let options = onode::CreateOptions { uid, gid, ..onode::CreateOptions::default() };
            match Volume::create(&spec, &options) {
                // Somebody else made it meanwhile, and has it be used by all.
                Err(error) if error.class == onode::Class::Exists => {}
                made => made.map_err(failed)?,
            }
        }
        // Every call is durable when it returns.
        let options = MountOptions { write_mode: WriteMode::WriteThrough, ..MountOptions::default() };
        let (volume, memory) = Volume::open_memory(&spec, options).map_err(failed)?;
        Ok(Self { shared: Shared::new(memory, volume)? })
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &FileSystem {
        self.shared.files()
    }

    /// Begins a transaction of files: what is done with its files happens when it is committed, all
    /// of it or nothing. As long as one is open, blocks cannot become files nor files blocks.
    ///
    /// # Errors
    /// `Busy` if other processes use the memory, or too many are open; `ReadOnly`.
    pub fn begin(&self) -> Result<UserTransaction> {
        self.shared.opener().check()?;
        self.shared.begin().map_err(|error| {
            let kind = match error.class {
                onode::Class::InUse => ErrorKind::Busy,
                onode::Class::ReadOnly => ErrorKind::ReadOnly,
                onode::Class::VolumeFull => ErrorKind::NoSpace,
                _ => ErrorKind::Media,
            };
            Error::new(kind, error.to_string())
        })
    }

    /// A block of at least one byte.
    ///
    /// # Errors
    /// `NoSpace`.
    pub fn allocate(&self, bytes: usize) -> Result<Block> {
        let address = self.allocate_address(bytes)?;
        Ok(Block { shared: Arc::clone(&self.shared), address, bytes })
    }

    /// The same, all zeros: nothing that the memory held before is in it, nor in a file that is
    /// made of it.
    ///
    /// # Errors
    /// `NoSpace`.
    pub fn allocate_zeroed(&self, bytes: usize) -> Result<Block> {
        let mut block = self.allocate(bytes)?;
        block.fill(0);
        Ok(block)
    }

    #[inline]
    fn allocate_address(&self, bytes: usize) -> Result<u64> {
        self.shared.opener().check()?;
        match with_cache(&self.shared, |cache| self.shared.blocks().allocate_cached(cache, bytes.max(1) as u64)) {
            Some(address) => Ok(address),
            None => self.allocate_at_last(bytes),
        }
    }

    /// Files that are gone may hold their blocks until somebody asks for them.
    #[cold]
    fn allocate_at_last(&self, bytes: usize) -> Result<u64> {
        // If it fails, there is no more room than before.
        let _ = self.files().maintain(1);
        with_cache(&self.shared, |cache| self.shared.blocks().allocate_cached(cache, bytes.max(1) as u64))
            .ok_or_else(|| Error::new(ErrorKind::NoSpace, format!("no block of {bytes} bytes is left in the heap")))
    }

    /// As [`allocate`](Self::allocate), for a program that keeps pointers itself.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn allocate_raw(&self, bytes: usize) -> Result<NonNull<u8>> {
        let address = self.allocate_address(bytes)?;
        self.shared.sizes().note(address, bytes);
        Ok(self.shared.pointer(address))
    }

    /// Frees a block by its pointer.
    ///
    /// # Errors
    /// `Invalid`, and nothing happened: not a block of this heap, freed before, or a file's.
    ///
    /// # Safety
    /// Nobody uses the block any more.
    #[inline]
    pub unsafe fn free(&self, pointer: NonNull<u8>) -> Result<()> {
        match self.shared.address_of(pointer) {
            Some(address) => release(&self.shared, address),
            None => Err(Error::new(ErrorKind::Invalid, format!("cannot free {pointer:p}: it is not of this heap"))),
        }
    }

    /// The block behind a pointer that [`allocate_raw`](Self::allocate_raw) or [`Block::into_raw`]
    /// gave, with as many bytes as were asked for then.
    ///
    /// # Errors
    /// As [`from_raw_whole`](Self::from_raw_whole).
    ///
    /// # Safety
    /// The caller owns the block.
    pub unsafe fn from_raw(&self, pointer: NonNull<u8>) -> Result<Block> {
        // SAFETY: the caller's promise.
        let mut block = unsafe { self.from_raw_whole(pointer) }?;
        let asked = self.shared.sizes().get(block.address);
        if asked > 0 {
            block.shorten(usize::try_from(asked).unwrap_or(usize::MAX));
        }
        Ok(block)
    }

    /// The same with all the bytes that the block has, which may be more than were asked for.
    ///
    /// # Errors
    /// `Invalid` if no block of the heap begins there, it was freed before, or it belongs to a
    /// file.
    ///
    /// # Safety
    /// The caller owns the block.
    pub unsafe fn from_raw_whole(&self, pointer: NonNull<u8>) -> Result<Block> {
        let foreign = || Error::new(ErrorKind::Invalid, format!("no block of the heap begins at {pointer:p}"));
        let address = self.shared.address_of(pointer).ok_or_else(foreign)?;
        let bytes = self.shared.blocks().check_owned(address).map_err(|why| misuse("use", address, why))?;
        Ok(Block { shared: Arc::clone(&self.shared), address, bytes: bytes as usize })
    }

    /// A block of another size with the same bytes at its start; where it is, if that is possible.
    ///
    /// # Errors
    /// `NoSpace`, and the block is as it was: it comes back with the error.
    pub fn reallocate(&self, mut block: Block, bytes: usize) -> std::result::Result<Block, BlockError> {
        let usable = self.shared.blocks().usable_bytes(block.bytes.max(1) as u64) as usize;
        if bytes <= usable && bytes * 4 >= usable
            || bytes > block.bytes
                && self.shared.blocks().try_extend(block.address, block.bytes.max(1) as u64, bytes as u64)
        {
            block.bytes = bytes;
            return Ok(block);
        }
        match self.allocate(bytes) {
            Ok(mut moved) => {
                let count = bytes.min(block.bytes);
                moved[..count].copy_from_slice(&block[..count]);
                Ok(moved)
            }
            Err(error) => Err(BlockError::new(block, error)),
        }
    }

    /// Start and length of the block that holds an address.
    #[must_use]
    pub fn block_of(&self, address: u64) -> Option<(u64, u64)> {
        self.shared.blocks().block_of(address)
    }

    /// Where the memory begins in this process; addresses count from here. It stays there while the
    /// heap is open.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.pointer(0)
    }

    /// Where an address of the memory lies in this process. The address has to lie in a block.
    pub(crate) fn pointer(&self, address: u64) -> NonNull<u8> {
        self.shared.pointer(address)
    }

    /// Where an address of the memory lies in this process; `None` if no block holds it.
    #[must_use]
    pub fn pointer_at(&self, address: u64) -> Option<NonNull<u8>> {
        self.block_of(address).map(|_| self.pointer(address))
    }

    /// The address of a pointer, which holds in every process and every run; `None` if it is not of
    /// this heap.
    #[must_use]
    pub fn address_of(&self, pointer: NonNull<u8>) -> Option<u64> {
        self.shared.address_of(pointer)
    }

    /// Makes a block a file of the first `bytes` of it (paper 2, Table 1). No byte is copied; name
    /// and content are durable when this returns, and the memory is the file's.
    ///
    /// # Errors
    /// `Exists`, `NotFound`, `NoSpace`, ...: the block comes back with the error.
    pub fn mm_to_file(
        &self,
        block: Block,
        path: &[u8],
        caller: &Caller,
        permissions: u16,
    ) -> std::result::Result<InodeNumber, BlockError> {
        if !Arc::ptr_eq(&block.shared, &self.shared) {
            let why = "the block is one of another heap: a file and its memory lie in the same one";
            return Err(BlockError::new(block, Error::new(ErrorKind::CrossDevice, why)));
        }
        if let Err(error) = self.shared.opener().check() {
            return Err(BlockError::new(block, error));
        }
        let content = onode_fs::Block { address: block.address, bytes: block.bytes as u64, is_durable: false };
        let files = self.files();
        let made = files
            .resolve_parent(path)
            .and_then(|(parent, name)| files.publish(caller, parent, name, permissions, content));
        match made {
            Ok(inode) => {
                block.leave();
                Ok(inode)
            }
            Err(error) => {
                let what = format!("cannot make the memory the file {}", String::from_utf8_lossy(path));
                Err(BlockError::new(block, Error::of_files(&what, &error)))
            }
        }
    }

    /// Takes a file's content as a block and removes the file: the way back, and no byte is copied
    /// either.
    ///
    /// # Errors
    /// `Busy` if the file is open or has other names, `Invalid` if it lies in several blocks
    /// ([`Heap::compact`] makes them one), `NotFound`, ...
    pub fn file_to_mm(&self, path: &[u8]) -> Result<Block> {
        self.shared.opener().check()?;
        self.taken(
            path,
            self.files().resolve_parent(path).and_then(|(parent, name)| self.files().withdraw(parent, name)),
        )
    }

    /// The same for a file that the caller has open: the handle goes with the file, and stays open
    /// if this fails.
    ///
    /// # Errors
    /// As [`file_to_mm`](Self::file_to_mm), but `Busy` only if others have the file open; `Stale`
    /// if `path` leads to another file by now.
    pub fn open_file_to_mm(&self, path: &[u8], handle: FileHandle) -> Result<Block> {
        self.shared.opener().check()?;
        let parent = self.files().resolve_parent(path);
        self.taken(path, parent.and_then(|(parent, name)| self.files().withdraw_open(parent, name, handle)))
    }

    fn taken(&self, path: &[u8], block: onode_fs::Result<onode_fs::Block>) -> Result<Block> {
        let block = block.map_err(|error| Self::failed("make the file memory", path, &error))?;
        // From now on it dies with this process, unless it lies among blocks of another one.
        let _ = self.shared.blocks().unpublish(block.address);
        // The block is whole chunks or one of a class; it may hold more than the file had.
        Ok(Block { shared: Arc::clone(&self.shared), address: block.address, bytes: block.bytes as usize })
    }

    /// Has a file that has holes or lies in several blocks lie in one. It stays the same file with
    /// all its names, attributes and times, and whoever has it open goes on reading and writing it.
    ///
    /// # Errors
    /// `Busy` if this process looks at the file as memory; `NoSpace` if there is no such block
    /// beside those that hold it; `NotFound`, ...
    pub fn compact(&self, path: &[u8]) -> Result<()> {
        let inode = self.files().resolve(path, Follow::Yes);
        self.gather(inode.map_err(|error| Self::failed("compact", path, &error))?, path)
    }

    /// The same; `path` is for words.
    pub(crate) fn gather(&self, inode: InodeNumber, path: &[u8]) -> Result<()> {
        self.shared.opener().check()?;
        // Held, so that nobody begins to look at blocks that are about to be free.
        let looks = self.shared.looks();
        if looks.contains_key(&inode) {
            let path = String::from_utf8_lossy(path);
            let why = format!("cannot compact {path}: a program looks at it where it lies");
            return Err(Error::new(ErrorKind::Busy, why));
        }
        self.files().gather(inode).map_err(|error| Self::failed("compact", path, &error))
    }

    fn failed(what: &str, path: &[u8], error: &onode_fs::Error) -> Error {
        Error::of_files(&format!("cannot {what} {}", String::from_utf8_lossy(path)), error)
    }

    /// How many handles, blocks, mappings and transactions keep it open, this one included.
    #[must_use]
    pub fn users(&self) -> usize {
        Arc::strong_count(&self.shared)
    }

    /// Which process opened it.
    #[must_use]
    pub fn opener(&self) -> Opener {
        self.shared.opener()
    }

    /// Closes the heap: blocks that no file has are gone. Fails, and closes nothing, while blocks
    /// or mappings are in use. In a child of the process that opened it nothing of the memory
    /// changes.
    ///
    /// # Errors
    /// `Busy`; the device's errors.
    pub fn close(self) -> Result<()> {
        if !self.shared.opener().is_here() {
            return Ok(());
        }
        let gate = Arc::clone(self.shared.gate());
        // While the gate is held, no thread that ends looks at the heap, so the heap may be moved.
        let mut open = gate.lock();
        match Arc::try_unwrap(self.shared) {
            Ok(shared) => {
                *open = false;
                drop(open);
                let closed = shared.close();
                closed.map_err(|error| Error::new(ErrorKind::Media, error.to_string()))
            }
            Err(_) => Err(Error::new(ErrorKind::Busy, "blocks, mappings or other handles of the heap are in use")),
        }
    }
}
