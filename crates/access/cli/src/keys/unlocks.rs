//! Whether what `--unlock` names was used at all: a command that opens no volume itself, but asks
//! the server of a mount, leaves directories as they are, and says so.

use crate::keys::KeyArguments;
use onode_console::Output;
use std::sync::atomic::{AtomicBool, Ordering};

/// Something was opened with it, or it was handed on to who does.
static USED: AtomicBool = AtomicBool::new(false);

/// Notes that it is used.
pub(super) fn note() {
    USED.store(true, Ordering::Relaxed);
}

/// Tells whoever has named something to unlock with, and for nothing.
pub fn warn_of_unused(arguments: &KeyArguments, output: &Output) {
    if arguments.unlock.is_empty() || USED.load(Ordering::Relaxed) {
        return;
    }
    output.warning(
        "--unlock was not used: it unlocks directories of an encrypted volume that the command itself opens; \
         `onode key unlock DIRECTORY` unlocks one of a mounted volume",
    );
}
