//! Files of several blocks as one range of memory: the blocks are mapped once more, side by side,
//! and nothing is copied.
//!
//! The kernel maps whole pages, so each block but the last has to end at one, and a hole has no
//! block to map. What cannot be stitched says why; [`Heap::compact`] makes one block of it.

use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::mapping::Mapping;
use onode_base::ErrorKind;
use onode_fs::{Caller, Follow, InodeNumber, OpenFlags};
use onode_media::real::Stitched;
use onode_object::powers::Placed;
use std::ptr::NonNull;
use std::sync::Arc;

const PAGE_BYTES: u64 = 4096;

/// Why parts cannot be one range without a copy.
fn why_not(parts: &[Placed], size: u64) -> Option<&'static str> {
    let mut end = 0;
    let in_order = parts.iter().all(|part| std::mem::replace(&mut end, part.offset + part.length) == part.offset);
    if !in_order || end < size {
        return Some("it has a hole");
    }
    let is_cut = |part: &&Placed| part.offset + part.length < size && !part.length.is_multiple_of(PAGE_BYTES);
    let whole = parts.iter().all(|part| part.address.is_multiple_of(PAGE_BYTES) && !is_cut(&part));
    (!whole).then_some("its blocks do not begin and end at pages")
}

fn cannot_map(path: &[u8]) -> String {
    format!("cannot map {}", String::from_utf8_lossy(path))
}

impl Heap {
    /// A file's content where it lies, as one range; the file stays. One that lies in several
    /// blocks is stitched together from them without a copy.
    ///
    /// What is mapped are the blocks that the file has now. It is theirs to be looked at as long as
    /// the file keeps them: a file that grows, is cut or has a hole made may lie elsewhere
    /// afterwards, and is mapped anew.
    ///
    /// # Errors
    /// `Invalid` if it has holes, or blocks that are no whole pages ([`Heap::compact`] makes them
    /// one); `NotFound`, ...
    pub fn map(&self, path: &[u8]) -> Result<Mapping> {
        let inode = self.files().resolve(path, Follow::Yes);
        let inode = inode.map_err(|error| Error::of_files(&cannot_map(path), &error))?;
        self.map_inode(inode, path)
    }

    /// The same for a file that has holes or lies in blocks that are no whole pages, too: it is
    /// brought together in one block first, where it is, as [`compact`](Self::compact) does.
    ///
    /// # Errors
    /// `NotFound`; those of [`compact`](Self::compact).
    pub fn map_whole(&self, inode: InodeNumber, path: &[u8]) -> Result<Mapping> {
        match self.map_inode(inode, path) {
            Err(error) if error.kind == ErrorKind::Invalid => {
                self.gather(inode, path)?;
                self.map_inode(inode, path)
            }
            other => other,
        }
    }

    /// `path` is for words.
    fn map_inode(&self, inode: InodeNumber, path: &[u8]) -> Result<Mapping> {
        let files = self.files();
        let failed = |error: onode_fs::Error| Error::of_files(&cannot_map(path), &error);
        // Held, so that nobody gathers the blocks meanwhile.
        let mut looks = self.shared().looks();
        // Open, its blocks stay.
        let handle = files.open(&Caller::root(), inode, OpenFlags::default()).map_err(failed)?;
        *looks.entry(inode).or_default() += 1;
        drop(looks);
        let mut mapping = Mapping {
            shared: Arc::clone(self.shared()),
            handle,
            inode,
            address: 0,
            base: self.pointer(0),
            bytes: 0,
            stitched: None,
        };
        let size = files.attributes(inode).map_err(failed)?.size;
        let parts = files.placement(inode).map_err(failed)?;
        mapping.bytes = size as usize;
        match parts[..] {
            [] if size == 0 => {}
            [part] if part.offset == 0 && part.length == size => {
                mapping.address = part.address;
                mapping.base = self.pointer(part.address);
            }
            _ => {
                let refused = |why: &str| Error::new(ErrorKind::Invalid, format!("{}: {why}", cannot_map(path)));
                if let Some(why) = why_not(&parts, size) {
                    return Err(refused(why));
                }
                let stitched = self.stitch(&parts).map_err(|error| refused(&error.to_string()))?;
                mapping.address = parts.first().map_or(0, |part| part.address);
                mapping.base = stitched.address();
                mapping.stitched = Some(stitched);
            }
        }
        Ok(mapping)
    }

    fn stitch(&self, parts: &[Placed]) -> onode_media::Result<Stitched> {
        let memory = self.shared().memory();
        let start = memory.start();
        // Behind its last byte a file's last block goes on at least to the end of the page.
        let whole = |part: &Placed| (start + part.address, part.length.next_multiple_of(PAGE_BYTES));
        memory.region().pmem().stitched(&parts.iter().map(whole).collect::<Vec<_>>())
    }
}

impl Mapping {
    /// Whether the file lies in several blocks that were mapped side by side. Pointers into such a
    /// mapping are none of the heap's: [`Heap::address_of`] does not know them.
    #[must_use]
    pub const fn is_stitched(&self) -> bool {
        self.stitched.is_some()
    }

    /// Where the first byte is.
    #[must_use]
    pub const fn as_ptr(&self) -> NonNull<u8> {
        self.base
    }
}
