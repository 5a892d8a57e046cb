//! The vocabulary of the file system's interface: numbers, kinds, attributes and flags.

use onode_base::Timestamp;
use onode_object::ObjectId;

/// Names a file. It is the id of the file's object and never used for a second file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InodeNumber(pub u64);

impl InodeNumber {
    /// The root directory.
    pub const ROOT: Self = Self(1);

    /// The object that is the file.
    #[must_use]
    pub const fn object(self) -> ObjectId {
        ObjectId(self.0)
    }
}

impl std::fmt::Display for InodeNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "inode {}", self.0)
    }
}

/// One open of a file; remembers which write-back errors its holder has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileHandle(pub u64);

/// What a file is. The values are those of the format; POSIX closes the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FileType {
    /// A named pipe.
    Fifo = 1,
    /// A character device node.
    CharacterDevice = 2,
    /// A directory.
    Directory = 4,
    /// A block device node.
    BlockDevice = 6,
    /// A file with bytes.
    Regular = 8,
    /// A symbolic link.
    SymbolicLink = 10,
    /// A socket.
    Socket = 12,
}

impl FileType {
    /// Every type.
    pub const ALL: [Self; 7] = [
        Self::Fifo,
        Self::CharacterDevice,
        Self::Directory,
        Self::BlockDevice,
        Self::Regular,
        Self::SymbolicLink,
        Self::Socket,
    ];

    /// The type a byte of the format stands for (the same numbers as `d_type` of a directory
    /// entry).
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Fifo),
            2 => Some(Self::CharacterDevice),
            4 => Some(Self::Directory),
            6 => Some(Self::BlockDevice),
            8 => Some(Self::Regular),
            10 => Some(Self::SymbolicLink),
            12 => Some(Self::Socket),
            _ => None,
        }
    }

    /// The `S_IFMT` bits of `st_mode`.
    #[must_use]
    pub const fn mode_bits(self) -> u32 {
        (self as u32) << 12
    }

    /// The type in the `S_IFMT` bits of a mode.
    #[must_use]
    pub const fn from_mode(mode: u32) -> Option<Self> {
        Self::from_byte(((mode >> 12) & 0xf) as u8)
    }
}

/// What `stat` tells about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attributes {
    /// Which file.
    pub inode: InodeNumber,
    /// Tells apart two files that had the same number across a crash (for NFS).
    pub generation: u32,
    /// What it is.
    pub file_type: FileType,
    /// Permission bits, setuid, setgid and sticky: 12 bits.
    pub permissions: u16,
    /// Names that lead to it; for a directory 2 and one for each directory in it.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a device node.
    pub device: u64,
    /// Bytes; for a directory the number of entries in it.
    pub size: u64,
    /// Units of 512 bytes that hold it; holes do not count.
    pub blocks: u64,
    /// Last read.
    pub accessed: Timestamp,
    /// Last change of the content.
    pub modified: Timestamp,
    /// Last change of anything.
    pub changed: Timestamp,
    /// When it was made.
    pub created: Timestamp,
}

/// A new value for a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// The present moment.
    Now,
    /// That moment.
    At(Timestamp),
}

/// What to change with `set_attributes`; `None` leaves a thing as it is.
///
/// A change that names nothing is what Linux makes of `chown(path, -1, -1)`: it renews the change
/// time and, as every chown of a file does, clears setuid and setgid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttributes {
    /// Permission bits (12 bits).
    pub permissions: Option<u16>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size: truncates or extends.
    pub size: Option<u64>,
    /// Last read.
    pub accessed: Option<SetTime>,
    /// Last change of the content.
    pub modified: Option<SetTime>,
    /// Last change of anything; normally set by the change itself.
    pub changed: Option<Timestamp>,
}

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// Bits to take from the mode of a new file, unless its directory has a default ACL.
    pub umask: u32,
    /// Supplementary groups, if known. `None` means that whoever called has already dropped a
    /// setgid bit the caller may not set (the kernel does under `default_permissions`).
    pub groups: Option<Vec<u32>>,
    /// It is held to limits of users and groups although it is the super-user: who really asks is
    /// not known.
    pub is_held: bool,
}

impl Caller {
    /// The super-user, with no umask.
    #[must_use]
    pub const fn root() -> Self {
        Self { uid: 0, gid: 0, umask: 0, groups: None, is_held: false }
    }

    /// Whether limits of users and groups do not hold the caller.
    pub(crate) const fn is_unlimited(&self) -> bool {
        self.uid == 0 && !self.is_held
    }

    /// Whether the caller may give a file of group `gid` the setgid bit.
    pub(crate) fn may_set_group_bit(&self, gid: u32) -> bool {
        self.uid == 0 || self.groups.as_ref().is_none_or(|groups| self.gid == gid || groups.contains(&gid))
    }
}

/// How to open a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// Writes are allowed (refused on a read-only mount).
    pub write: bool,
    /// The content is cut to nothing first.
    pub truncate: bool,
}

/// How to rename.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenameFlags {
    /// Replaces what has the new name.
    #[default]
    Replace,
    /// Fails with `Exists` if the new name is taken.
    NoReplace,
    /// Both names must exist; they swap.
    Exchange,
}

/// How to set an extended attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XattrFlags {
    /// Makes or replaces it.
    #[default]
    Any,
    /// Fails with `Exists` if there is one.
    Create,
    /// Fails with `NoAttribute` if there is none.
    Replace,
}

/// What to do to a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocate {
    /// Checks that there is space and extends the size over the range.
    Extend,
    /// Checks that there is space; the size stays.
    KeepSize,
    /// Makes the range a hole; the size stays.
    PunchHole,
    /// The range reads as zeros; the size grows over it.
    ZeroRange,
    /// The range reads as zeros; the size stays.
    ZeroRangeKeepSize,
}

/// What to look for from an offset on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// The first byte that is data.
    Data,
    /// The first byte that is in a hole; the end of the file counts as one.
    Hole,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectoryEntry {
    /// Which file.
    pub inode: InodeNumber,
    /// What it is.
    pub file_type: FileType,
    /// Where to go on after this entry. Below 2^63.
    pub cursor: u64,
    /// The name.
    pub name: Vec<u8>,
    /// What `stat` would tell; only from `read_directory_plus`, and not for `.` and `..`.
    pub attributes: Option<Attributes>,
}

/// Space and numbers of the whole volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatFs {
    /// Unit of the next two.
    pub block_bytes: u32,
    /// All that users could fill.
    pub blocks: u64,
    /// What is left of it, after what is still in the cache.
    pub blocks_free: u64,
    /// Files there are and could be.
    pub files: u64,
    /// Files there could still be.
    pub files_free: u64,
    /// Longest name.
    pub name_bytes_max: u32,
}

/// Figures about what happens inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Calls of the interface that changed something.
    pub changes: u64,
    /// Transactions given to the device.
    pub transactions: u64,
    /// Bytes users wrote.
    pub written_bytes: u64,
    /// Bytes of file content given to the device.
    pub written_back_bytes: u64,
    /// Bytes users read.
    pub read_bytes: u64,
    /// Bytes in the write-clustering cache now.
    pub dirty_bytes: u64,
    /// Bytes that never had to be written: overwritten, cut or deleted in the cache.
    pub dropped_bytes: u64,
    /// Inodes in memory now.
    pub cached_inodes: u64,
    /// Bytes of the name cache now.
    pub name_cache_bytes: u64,
    /// Names found in the name cache.
    pub name_cache_hits: u64,
    /// Names that were looked up at the device.
    pub name_cache_misses: u64,
    /// Write-backs in the background that failed.
    pub write_back_errors: u64,
}

/// A block of the device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it begins, in bytes from the start of the memory.
    pub address: u64,
    /// So many of its bytes count.
    pub bytes: u64,
    /// The bytes are durable already.
    pub is_durable: bool,
}
