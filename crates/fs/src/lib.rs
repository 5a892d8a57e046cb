//! The host file system of Onode: POSIX names, directories, inodes, handles and write clustering
//! over any [`ObjectDevice`](onode_object::ObjectDevice).
//!
//! A file is an object; its inode number is the object's id. Names, inodes and extended attributes
//! are attributes of objects, so create, rename and unlink are one transaction each and there is no
//! journal here. The file system knows files and objects and never the medium.
//!
//! | folder | what it holds |
//! |---|---|
//! | `names` | directories: entries, paths, rename, hard and symbolic links |
//! | `inodes` | inodes, attributes, access control lists, extended attributes |
//! | `content` | bytes of files: write-clustering cache, write-back, sizes, files as memory |
//! | `state` | what is held in memory: nodes, handles, what the kernel knows |
//! | `quota` | limits of directory trees, users and groups |
//! | `volume` | settings of a volume, check and repair, orphans, hints, placement, scrubs, several processes, transactions |
//!
//! What is promised after a crash: `docs/semantics.md`. What is stored: `docs/format/fs.md`.
#![forbid(unsafe_code)]

mod content;
pub mod error;
mod file_system;
pub mod inodes;
mod limits;
mod names;
pub mod options;
pub mod quota;
mod state;
pub mod types;
pub mod volume;

pub use error::{Error, Result};
pub use file_system::FileSystem;
pub use inodes::merge::merge_inodes;
pub use inodes::xattr::{XATTR_NAME_BYTES_MAX, XATTR_VALUE_BYTES_MAX};
pub use inodes::{Inodes, attachment, inode};
pub use limits::{LINKS_MAX, NAME_BYTES_MAX, TARGET_BYTES_MAX};
pub use names::path::{self, Follow};
pub use names::rename::RenameEnd;
pub use onode_base::ErrorKind;
pub use options::{AccessTimes, FormatOptions, Options, WriteMode};
pub use quota::count::QuotaCount;
pub use quota::record::merge_quotas;
pub use quota::told::{QUOTA, QUOTA_COUNT, QUOTA_FROM, QuotaLine, QuotaRequest};
pub use quota::{Quota, QuotaLimits, QuotaSubject, QuotaUse};
pub use state::shared_space::SharedSpace;
pub use types::{
    Allocate, Attributes, Block, Caller, DirectoryEntry, FileHandle, FileType, InodeNumber, OpenFlags, RenameFlags,
    Seek, SetAttributes, SetTime, StatFs, Statistics, XattrFlags,
};
pub use volume::explain::{Explanation, GivenHint, Origin, WHY};
pub use volume::hints::Hint;
pub use volume::label::{LABEL, check_label};
pub use volume::rewrite::REWRITE;
pub use volume::size::replace::{REPLACE, REPLACE_FURTHER, STOP_REPLACING};
pub use volume::size::{DISK, SHRINK_FURTHER, SIZE, STOP_SHRINKING};
pub use volume::staging::{ViewStart, name_of_entry};
pub use volume::tuning::{KEPT_OPTIONS_BYTES_MAX, NewTuning, TUNING, Tuning};
pub use volume::{FORMAT_VERSION, Features, VolumeInfo, check, format, placement, scrub};
