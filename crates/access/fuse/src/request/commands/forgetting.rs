//! Having the kernel forget what it knows of files.

use crate::transport::late::LateNotifier;
use fuser::INodeNo;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long a command waits for the kernel to forget. It forgets in any case; a mount with one
/// thread would wait for itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// A file, and names in it that are to be looked up again.
pub(super) struct Forgotten {
    pub(super) number: INodeNo,
    pub(super) names: Vec<Vec<u8>>,
}

/// Has the kernel forget files. It may wait for requests of others that this server has to answer,
/// so a thread of its own does it.
pub(super) fn forget(notifier: &LateNotifier, files: Vec<Forgotten>) {
    let (notifier, (done, is_done)) = (Arc::clone(notifier), channel());
    let thread = std::thread::Builder::new().name("changed files".to_owned()).spawn(move || {
        let Some(notifier) = notifier.get() else { return };
        for Forgotten { number, names } in files {
            // A kernel that knows nothing of a file has nothing to forget.
            for name in names {
                let _ = notifier.inval_entry(number, OsStr::from_bytes(&name));
            }
            let _ = notifier.inval_inode(number, 0, 0);
        }
        let _ = done.send(());
    });
    if thread.is_ok() {
        let _ = is_done.recv_timeout(PATIENCE);
    }
}
