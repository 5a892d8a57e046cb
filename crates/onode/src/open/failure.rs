//! Failures of a medium in words for people, with advice that suits what its path names.

use crate::error::{Class, Error};
use onode_base::size::human_size;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Whether not even the directory is there that a file would be in.
fn has_no_directory(path: &Path) -> bool {
    path.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !parent.exists())
}

/// How long a medium is that was cut short, and how long it was made, as the error says.
fn cut_short(detail: &str) -> Option<(u64, u64)> {
    let (bytes, whole) = detail.rsplit_once(" is cut short: ")?.1.split_once(" bytes of ")?;
    Some((bytes.parse().ok()?, whole.parse().ok()?))
}

/// What to do about that.
fn short_hint(path: &Path, is_device: bool, bytes: u64, whole: u64) -> String {
    let (place, missing) = (path.display(), human_size(whole.saturating_sub(bytes)));
    let again = format!("its last {missing} are missing: copy it again, whole, from where it came");
    match is_device {
        true => format!("{again}, or give the device its {whole} bytes back"),
        false => format!(
            "{again}; or give it its old length back (`truncate -s {whole} {place}`): what was in the rest is lost, and \
             `onode repair` tells what that was"
        ),
    }
}

/// The error for people of a medium at `path`.
pub(crate) fn medium_error(what: String, path: &Path, error: &onode_media::Error) -> Error {
    let made = Error::medium(what, error);
    let place = path.display();
    let is_device = std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.file_type().is_block_device() || metadata.file_type().is_char_device());
    if let Some((bytes, whole)) = cut_short(&error.detail) {
        return made.hint(short_hint(path, is_device, bytes, whole));
    }
    match made.class {
        Class::NotFound if place.to_string().starts_with("/dev/") && !path.starts_with("/dev/shm") => {
            made.hint("`lsblk` and `cat /proc/mtd` list the devices there are")
        }
        Class::NotFound if has_no_directory(path) => {
            made.hint(format!("make its directory first: mkdir -p {}", path.parent().unwrap_or(path).display()))
        }
        Class::NotFound => made.hint("`onode mkfs IMAGE` makes one, `onode up DIR IMAGE` makes and mounts one"),
        Class::NotAnImage if is_device => {
            made.hint(format!("`onode mkfs {place}` makes a volume there; what the device holds is lost then"))
        }
        Class::InUse if is_device => {
            made.hint(format!("unmount it first; `lsblk {place}` or `fuser -v {place}` tells who uses it"))
        }
        Class::Permission if is_device => {
            made.hint(format!("run it as root, or as a member of the group that `ls -l {place}` shows"))
        }
        _ => made,
    }
}
