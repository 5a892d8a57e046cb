//! A device that is missing is refused: nothing is made where the kernel's devices stand.
//!
//! A file in `/dev` lies in memory and hides the device when it comes. A mistyped name, or a disk
//! that was not found when the machine started, would take everything that is written to it into
//! the next restart.

use crate::error::{Class, Error, Result};
use crate::spec::Spec;
use rustix::fs::{major, minor};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Links that lead to links, until they are taken for a circle.
const LINKS_MAX: u32 = 40;

/// Refuses a spec that names a device which is not there.
///
/// # Errors
/// `NotFound`.
pub(crate) fn refuse_missing_devices(what: &str, spec: &Spec) -> Result<()> {
    spec.said().all_paths().into_iter().try_for_each(|path| refuse_missing(what, path))
}

/// Refuses to make a file at `path` if only a device can have its place and none does.
///
/// # Errors
/// `NotFound`.
pub(crate) fn refuse_missing(what: &str, path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    let place = end_of_links(path);
    match is_among_devices(&place) {
        false => Ok(()),
        true => Err(Error::new(Class::NotFound, what, format!("there is no device {}", path.display())).hint(
            "`lsblk`, `cat /proc/mtd` and `ls /dev/dax*` list the devices there are; a file in /dev would be lost with the next \
             start (files in memory belong in /dev/shm)",
        )),
    }
}

/// Where a file would come into being that is made under this name.
fn end_of_links(path: &Path) -> PathBuf {
    let mut place = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = fs::read_link(&place) else { break };
        place = place.parent().unwrap_or(Path::new("/")).join(target);
    }
    place
}

/// Whether `place` lies below `/dev`, but not in its place for files, or in devices that are
/// mounted elsewhere.
fn is_among_devices(place: &Path) -> bool {
    let Ok(place) = std::path::absolute(place) else { return false };
    // The directories on the way need not be there either: of those that are, the last says where
    // it is.
    let Some(there) = place.ancestors().skip(1).find_map(|directory| directory.canonicalize().ok()) else {
        return false;
    };
    let is_below_dev = there.starts_with("/dev") && !there.starts_with("/dev/shm");
    is_below_dev || fs::metadata(&there).is_ok_and(|metadata| is_of_devices(metadata.dev()))
}

/// Whether the file system with this number has the kernel's devices. To statfs it looks like any
/// other in memory.
fn is_of_devices(number: u64) -> bool {
    let number = format!("{}:{}", major(number), minor(number));
    let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
    table.split(|byte| *byte == b'\n').any(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        fields.nth(2) == Some(number.as_bytes())
            && fields.skip_while(|field| *field != b"-").nth(1) == Some(b"devtmpfs".as_slice())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_devices_are_refused() {
        let check = |path: &str| refuse_missing("cannot make it", Path::new(path));
        for missing in ["/dev/onode-none", "/dev/../dev/onode-none", "/dev/disk/onode-none/1", "/dev/shm/../onode-none"]
        {
            let error = check(missing).expect_err(missing);
            assert_eq!(error.class, Class::NotFound);
            assert!(error.hint.is_some_and(|hint| hint.contains("lsblk")), "{missing}");
        }
        for file in ["/dev/null", "/dev/shm/onode-none", "/tmp/onode-none", "onode-none", "/nowhere/onode-none"] {
            assert_eq!(check(file), Ok(()), "{file}");
        }
    }

    #[test]
    fn a_link_to_a_missing_device_is_refused() {
        let link = std::env::temp_dir().join(format!("onode-missing-{}", std::process::id()));
        std::os::unix::fs::symlink("/dev/onode-none", &link).expect("link");
        let checked = refuse_missing("cannot make it", &link);
        fs::remove_file(&link).expect("cleaned");
        assert_eq!(checked.expect_err("refused").class, Class::NotFound);
    }
}
