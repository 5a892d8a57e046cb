//! Mounts whose server does not answer. Who asks a server that is stopped, or waits for a disk that
//! hangs, cannot be woken, so a process of its own asks first.

use onode::Result;
use onode_fuse::Mounted;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The code of the condition.
pub const CODE: &str = "server-silent";
/// What to do about it.
pub const REMEDY: &str = "it is stopped (`kill -CONT` continues it) or waits for a device that hangs, which \
    the kernel's log tells (`dmesg`)";

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What is wrong, in words.
pub fn told() -> String {
    format!("the server of the mount does not answer for {} s", PATIENCE.as_secs())
}

/// The same with its code and what to do, where there is one line for a mount.
pub fn state() -> String {
    format!("{CODE}: {}; {REMEDY}", told())
}

/// The mount of ours whose directory is named so. Only the table of mounts is asked, so that
/// nobody waits for a server.
pub fn mount_named(path: &Path) -> Result<Option<Mounted>> {
    let named = std::path::absolute(path).ok();
    let mut mounts = onode_fuse::all_mounts()?.into_iter().rev().filter(Mounted::is_ours);
    Ok(mounts.find(|mounted| named.as_ref() == Some(&mounted.directory)))
}

/// Whether the server of a mount answers in time, if only that it cannot.
pub fn answers(directory: &Path) -> bool {
    let asked = std::env::current_exe().and_then(|program| {
        let mut command = Command::new(program);
        command.args(["health", "--probe"]).arg(directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    });
    // Without a process to ask there is only asking.
    let Ok(mut asking) = asked else { return true };
    for _ in 0..PATIENCE.as_millis() / LOOK_EVERY.as_millis() {
        if !matches!(asking.try_wait(), Ok(None)) {
            return true;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    // It ends as soon as it is answered.
    let _ = asking.kill();
    false
}
