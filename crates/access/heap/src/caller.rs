//! Who runs this process, as files are made for it.

use onode_fs::Caller;
use std::fs::File;
use std::io::Read;

/// The effective user and group of this process with all its groups, and nothing to take from
/// modes: they are said.
pub(crate) fn owner() -> Caller {
    let groups = rustix::process::getgroups().ok();
    Caller {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        umask: 0,
        groups: Some(groups.into_iter().flatten().map(rustix::process::Gid::as_raw).collect()),
        is_held: false,
    }
}

/// Who runs this process: its effective user and group, its groups, and its umask. For the calls
/// that make files ([`Heap::mm_to_file`](crate::Heap::mm_to_file),
/// [`FileSystem::create`](onode_fs::FileSystem::create), ...).
#[must_use]
pub fn caller() -> Caller {
    // Nothing that the process did not want to give away is, if the kernel does not tell.
    Caller { umask: umask().unwrap_or(0o077), ..owner() }
}

/// The umask, which umask(2) tells only to those who change it, for all threads.
fn umask() -> Option<u32> {
    // The second line of some fifty.
    let mut status = [0; 256];
    let length = File::open("/proc/self/status").and_then(|mut file| file.read(&mut status)).ok()?;
    let status = String::from_utf8_lossy(&status[..length]);
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::caller;

    #[test]
    fn a_process_is_who_it_is() {
        let caller = caller();
        assert_eq!(caller.uid, rustix::process::geteuid().as_raw());
        assert_eq!(caller.gid, rustix::process::getegid().as_raw());
        assert!(caller.groups.is_some());
        // A test harness inherits one, and this is the one way to know it without changing it.
        assert!(caller.umask <= 0o777);
    }
}
