//! Access times apart from inodes: the device keeps the time of the last read beside the object, because
//! that alone may cost it less than an inode.
//!
//! The inode has an access time too, of when it was last stored. The later of both counts. If somebody sets a
//! time before the one at the device, that one is taken back with the inode.

use crate::inodes::inode::Inode;
use crate::state::Node;
use crate::types::FileType;
use onode_base::Timestamp;
use onode_object::{ObjectId, Transaction};

const NANOSECONDS_A_SECOND: u64 = 1_000_000_000;

/// Whether the access time of such a file is kept apart. Of directories it is not: nobody asks the device for
/// more than their inode.
pub(crate) const fn is_apart(inode: &Inode) -> bool {
    matches!(inode.file_type, FileType::Regular | FileType::SymbolicLink)
}

/// `time` as the device keeps it: nanoseconds since 1970; 0 if that cannot tell it.
pub(crate) fn device_time(time: Timestamp) -> u64 {
    let seconds = u64::try_from(time.seconds).ok().and_then(|seconds| seconds.checked_mul(NANOSECONDS_A_SECOND));
    seconds.and_then(|time_of| time_of.checked_add(u64::from(time.nanoseconds))).unwrap_or(0)
}

/// The later of an inode's access time and the device's.
pub(crate) fn later(of_inode: Timestamp, of_device: u64) -> Timestamp {
    if of_device > device_time(of_inode) { Timestamp::from_nanoseconds(of_device) } else { of_inode }
}

/// Takes the device's time back if `inode`, which is about to be stored, has an earlier one; returns the device's
/// time afterwards.
pub(crate) fn take_back(transaction: &mut Transaction, object: ObjectId, node: &Node, inode: &Inode) -> u64 {
    if node.device_accessed <= device_time(inode.accessed) {
        return node.device_accessed;
    }
    transaction.set_access_time(object, 0);
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_time_counts_and_what_the_device_cannot_tell_stays_with_the_inode() {
        let time = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
        for one in [time(1, 0), time(0, 1), time(1_790_000_000, 999_999_999), time(1 << 34, 5)] {
            assert_eq!(later(Timestamp::default(), device_time(one)), one);
            assert_eq!(later(one, device_time(one) - 1), one);
        }
        for one in [time(-1, 5), time(0, 0), time(i64::MAX, 0), time(1 << 40, 0)] {
            assert_eq!(device_time(one), 0);
            assert_eq!(later(one, 0), one);
        }
    }
}
