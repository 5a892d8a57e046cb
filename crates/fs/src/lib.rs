//! The host file system of Onode: POSIX names, directories, inodes, handles and write clustering over
//! any [`ObjectDevice`](onode_object::ObjectDevice).
//!
//! A file is an object; its inode number is the object's id. Names, inodes and extended attributes are
//! attributes of objects, so create, rename and unlink are one transaction each and there is no journal
//! here. The file system knows files and objects and never the medium.
//!
//! What is promised after a crash: `docs/semantics.md`. What is stored: `docs/format/fs.md`.
#![forbid(unsafe_code)]

mod access;
mod acl;
pub mod attachment;
mod attributes;
pub mod check;
mod cluster;
#[cfg(test)]
mod collision_tests;
mod data;
mod direct;
mod directory;
mod entry;
pub mod error;
mod file_system;
mod handle;
mod handles;
mod hash;
pub mod inode;
pub mod inodes;
mod lookups;
mod memory;
mod names;
mod namespace;
pub mod options;
mod orphan;
pub mod path;
pub mod placement;
mod rename;
mod share;
mod size;
mod slots;
mod state;
pub mod types;
pub mod volume;
mod write_back;
mod xattr;

pub use error::{Error, Result};
pub use file_system::FileSystem;
pub use inodes::Inodes;
pub use memory::Block;
pub use namespace::{LINKS_MAX, NAME_BYTES_MAX, TARGET_BYTES_MAX};
pub use onode_base::ErrorKind;
pub use options::{AccessTimes, FormatOptions, Options, WriteMode};
pub use path::Follow;
pub use types::{
    Allocate, Attributes, Caller, DirectoryEntry, FileHandle, FileType, InodeNumber, OpenFlags, RenameFlags, Seek,
    SetAttributes, SetTime, StatFs, Statistics, XattrFlags,
};
pub use volume::{FORMAT_VERSION, Features, VolumeInfo, format};
pub use xattr::{XATTR_NAME_BYTES_MAX, XATTR_VALUE_BYTES_MAX};
