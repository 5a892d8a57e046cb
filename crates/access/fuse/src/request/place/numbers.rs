//! The numbers by which the kernel knows files: those of the mounted volume as they are, and others
//! with something above them that tells which tree they are in.

use fuser::INodeNo;
use onode_fs::InodeNumber;

/// Trees of transactions: numbers from here on, the first of which is the folder that they are in.
pub(crate) mod transaction {
    use super::{INodeNo, InodeNumber};

    const FIRST: u64 = 1 << 63;
    /// Where the number of the transaction stands.
    const SHIFT: u32 = 48;
    const SERIALS: u64 = (1 << 15) - 1;
    /// The folder.
    pub(crate) const FOLDER: INodeNo = INodeNo(FIRST);

    /// Whether a number is that of the folder or of a file within a transaction.
    pub(crate) const fn owns(number: INodeNo) -> bool {
        number.0 >= FIRST
    }

    /// The number of a file within a transaction.
    pub(crate) const fn inode(number: INodeNo) -> InodeNumber {
        InodeNumber(number.0 & ((1 << SHIFT) - 1))
    }

    /// What stands above the numbers of files in a transaction.
    pub(crate) const fn tag_of(id: u64) -> u64 {
        FIRST | ((id - 1) % SERIALS + 1) << SHIFT
    }

    /// The same of a number that is one of those.
    pub(crate) const fn tag_in(number: INodeNo) -> u64 {
        number.0 >> SHIFT << SHIFT
    }
}

/// Trees of snapshots and clones, and the folders that they are in. No snapshot and no clone has
/// the number 0.
pub(crate) mod state {
    use super::{INodeNo, InodeNumber};

    /// The first number, which with those behind it is that of a folder, and the last one.
    pub(crate) const FIRST: u64 = 1 << 61;
    const LAST: u64 = (1 << 62) - 1;
    /// Where the number of the snapshot or clone stands.
    const SHIFT: u32 = 39;

    /// Whether a number is that of a folder or of a file in one.
    pub(crate) const fn owns(number: INodeNo) -> bool {
        number.0 >= FIRST && number.0 <= LAST
    }

    /// The number of a file in a snapshot or clone.
    pub(crate) const fn inode(number: INodeNo) -> InodeNumber {
        InodeNumber(number.0 & ((1 << SHIFT) - 1))
    }

    /// What stands above the numbers of files of a snapshot or clone.
    pub(crate) const fn tag_of(generation: u32) -> u64 {
        FIRST | (generation as u64) << SHIFT
    }

    /// The snapshot or clone of a file.
    pub(crate) const fn generation_of(number: INodeNo) -> u32 {
        ((number.0 - FIRST) >> SHIFT) as u32
    }
}
