//! The names under which other programs call this one: `mkfs.onode` for mkfs(8), `fsck.onode` for
//! fsck(8), `mount.onode` for mount(8). They are links to it, and speak the language of those.

mod fsck;
mod mkfs;

use crate::commands::mounts::mount_helper;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A helper's whole work: from the arguments, its own name among them, to the exit code.
type Helper = fn(Vec<OsString>) -> u8;

/// Does what the name of the program asks for and returns the exit code; nothing if that is the
/// command itself.
pub fn run(arguments: &[OsString]) -> Option<u8> {
    let helper = helper_of(arguments.first()?)?;
    Some(helper(arguments.to_vec()))
}

fn helper_of(name: &OsStr) -> Option<Helper> {
    match Path::new(name).file_name()?.to_str()? {
        mkfs::NAME => Some(mkfs::run),
        fsck::NAME => Some(fsck::run),
        _ => mount_helper::is_wanted(Some(&name.to_owned())).then_some(mount_helper::run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_part_of_the_name_counts() {
        for name in ["mkfs.onode", "/sbin/mkfs.onode", "/usr/sbin/fsck.onode", "mount.onode", "mount.fuse.onode"] {
            assert!(helper_of(OsStr::new(name)).is_some(), "{name}");
        }
        for name in ["onode", "/opt/mkfs.onode/onode", "mkfs", "fsck.onode.old", ""] {
            assert!(helper_of(OsStr::new(name)).is_none(), "{name}");
        }
        assert!(run(&[]).is_none());
    }
}
