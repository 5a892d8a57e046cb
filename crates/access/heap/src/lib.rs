//! Storage-class memory for programs (paper 2, section IV): a block of memory becomes a file by
//! getting a name, and a file a block by losing it; no byte is copied.
//!
//! A [`Heap`] is a volume on memory, `scm:/dev/shm/heap,size=1G`, in this process.
//! [`Heap::allocate`] hands out blocks from 32 bytes up to all there is; they are gone with the
//! process unless [`Heap::mm_to_file`] makes them files. [`Heap::file_to_mm`] is the way back, and
//! [`Heap::map`] looks at a file where it lies. Files are those of the file system: a mount shows
//! the same ones. A [`Ref`] is a pointer that holds wherever the memory is mapped, so linked
//! structures can be saved as they are, and [`Heap::set_root`] names the entry of one. An [`Arena`]
//! is memory that is saved as it is at a moment ([`checkpoint`]).
//!
//! It keeps true: a block has one owner, a program or a file, and what returned from `mm_to_file`
//! is durable. It does not keep a program from following a pointer into a block that it gave away.
//!
//! A heap belongs to the process that opened it. In a child that inherited it by `fork` blocks are
//! refused and files must not be used, and what is dropped or closed leaves the memory as it is.
//! The child opens the heap again.

mod block;
mod caller;
pub mod checkpoint;
mod error;
mod heap;
mod mapping;
mod process;
mod reference;
mod roots;
mod shared;
mod slots;
mod stitched;
mod whole;

pub use block::{Block, BlockError};
pub use caller::caller;
pub use checkpoint::{Arena, Checkpoint, Frozen, Report, Tracking};
pub use error::{Error, Result};
pub use heap::Heap;
pub use mapping::Mapping;
pub use onode::{Class, UserTransaction};
pub use onode_base::ErrorKind;
pub use onode_fs::{Attributes, Caller, DirectoryEntry, FileHandle, FileSystem, InodeNumber};
pub use onode_heap_derive::Plain;
pub use process::Opener;
#[doc(hidden)]
pub use reference::layout_of;
pub use reference::{BlockMemory, Plain, Ref};
pub use roots::Kind;
pub use slots::Slots;
