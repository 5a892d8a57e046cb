//! What kind of medium a path is, from what the kernel says of it.

use super::host::of_open;
use crate::error::Result;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// What a path is.
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

/// A partition has no queue of its own; the queue of its disk lies one level up.
fn is_zoned(major: u32, minor: u32) -> bool {
    let device = std::format!("/sys/dev/block/{major}:{minor}");
    let model = ["queue/zoned", "../queue/zoned"]
        .iter()
        .find_map(|tail| fs::read_to_string(Path::new(&device).join(tail)).ok());
    model.is_some_and(|model| model.trim().starts_with("host-"))
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
}
