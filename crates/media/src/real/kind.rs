//! What kind of medium a path is, from what the kernel says of it.

use super::host::of_open;
use crate::error::Result;
use alloc::string::String;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// What a path is.
///
/// The list is closed: whoever overwrites what is there has to say of every kind how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A block device or a partition.
    Block,
    /// A block device of zones that are written in order.
    Zoned,
    /// A raw NAND chip (`/dev/mtdN`).
    Mtd,
    /// Anything else.
    Other,
}

/// The character devices of the kernel's memory technology devices.
const MTD_MAJOR: u32 = 90;

/// Looks what `path` is; follows links and opens nothing.
///
/// # Errors
/// `NotFound`, `Denied`, `Host`.
pub fn identify(path: &Path) -> Result<Kind> {
    let metadata = fs::metadata(path).map_err(|error| of_open(path, &error))?;
    let what = metadata.file_type();
    let (major, minor) = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
    Ok(if what.is_file() {
        Kind::File
    } else if what.is_block_device() {
        if is_zoned(major, minor) { Kind::Zoned } else { Kind::Block }
    } else if what.is_char_device() && major == MTD_MAJOR {
        Kind::Mtd
    } else {
        Kind::Other
    })
}

fn is_zoned(major: u32, minor: u32) -> bool {
    queue_attribute(major, minor, "zoned").is_some_and(|model| model.starts_with("host-"))
}

/// What the kernel says of the queue of a block device. A partition has none of its own; that of
/// its disk lies one level up.
fn queue_attribute(major: u32, minor: u32, name: &str) -> Option<String> {
    let device = std::format!("/sys/dev/block/{major}:{minor}");
    let read = |queue: &&str| fs::read_to_string(Path::new(&device).join(queue).join(name)).ok();
    ["queue", "../queue"].iter().find_map(read).map(|text| text.trim().into())
}

/// A number that the kernel says of the queue of an open block device.
pub(super) fn queue_limit(file: &fs::File, name: &str) -> Option<u64> {
    let device = file.metadata().ok()?.rdev();
    queue_attribute(rustix::fs::major(device), rustix::fs::minor(device), name)?.parse().ok()
}

/// What the kernel says is best written in whole to an open block device.
pub(super) fn stripe_of_device(file: &fs::File) -> Option<u64> {
    let limit = |name| queue_limit(file, name).unwrap_or(0);
    stripe_of(limit("optimal_io_size"), limit("discard_granularity"))
}

/// The larger of two figures in bytes that can be meant: zero stands for none, sectors and pages
/// are no stripes, and an array of three disks has one that is no power of two.
fn stripe_of(optimal: u64, discard: u64) -> Option<u64> {
    let can_be = |bytes: &u64| bytes.is_power_of_two() && (16 << 10..=16 << 20).contains(bytes);
    [optimal, discard].into_iter().filter(can_be).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::MediaErrorKind;

    #[test]
    fn paths_are_what_they_are() {
        assert_eq!(identify(Path::new("/proc/self/exe")), Ok(Kind::File));
        assert_eq!(identify(Path::new("/dev/null")), Ok(Kind::Other));
        assert_eq!(identify(Path::new("/")), Ok(Kind::Other));
        assert_eq!(identify(Path::new("/no/such/thing")).unwrap_err().kind, MediaErrorKind::NotFound);
    }

    #[test]
    fn a_stripe_is_what_the_kernel_can_mean_by_it() {
        assert_eq!(stripe_of(0, 0), None);
        assert_eq!(stripe_of(0, 4096), None);
        assert_eq!(stripe_of(131_072, 4096), Some(131_072));
        assert_eq!(stripe_of(0, 2 << 20), Some(2 << 20));
        assert_eq!(stripe_of(3 * 65_536, 512), None);
        assert_eq!(stripe_of(3 * 65_536, 65_536), Some(65_536));
        assert_eq!(stripe_of(1 << 31, u64::MAX), None);
    }
}
