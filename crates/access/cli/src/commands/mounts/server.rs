//! The server of a mount, as commands tell it what to do: by an attribute of a directory, whose
//! value has a word that this process chose. What came of it is read from another attribute, which
//! that word names; the errors of the host say less.

use onode::{Class, Error, Result, SystemClock};
use onode_base::Clock;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest value an attribute can have.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Where the volume is mounted that a directory is in.
///
/// # Errors
/// `MountPoint` if it is in none that this program mounted; `what` says what cannot be done then.
pub fn mount_above(directory: &Path, what: &dyn Fn() -> String) -> Result<PathBuf> {
    for above in directory.ancestors() {
        match onode_fuse::mounted_at(above)? {
            None => {}
            Some(mounted) if mounted.is_ours() => return Ok(above.to_owned()),
            Some(_) => break,
        }
    }
    Err(onode_fuse::no_mount(what()))
}

/// Has the kernel hand on to the server what it holds back itself: what was stored through
/// mappings.
pub fn flush(mount: &Path) -> rustix::io::Result<()> {
    let (flags, mode) = (OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    rustix::fs::syncfs(rustix::fs::open(mount, flags, mode)?)
}

static WORDS: AtomicU64 = AtomicU64::new(0);

/// A word that hardly any other process has, for the answer of the server of a mount.
pub fn own_word() -> String {
    let now = SystemClock.now();
    let number = WORDS.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{}-{number}", std::process::id(), now.seconds, now.nanoseconds)
}

/// Why there is no answer.
pub enum Unanswered {
    /// The server says no.
    Refused(Error),
    /// It says nothing.
    Failed(Errno),
}

/// Has the server of a mount do what an attribute says, which names `word`; what it answers.
pub fn answered(at: &Path, attribute: &str, value: &[u8], word: &str) -> std::result::Result<String, Unanswered> {
    let done = rustix::fs::setxattr(at, attribute, value, rustix::fs::XattrFlags::empty());
    let mut answer = vec![0; ANSWER_BYTES_MAX];
    let length = rustix::fs::getxattr(at, format!("{attribute}.{word}"), answer.as_mut_slice());
    let answer = length.map(|length| String::from_utf8_lossy(&answer[..length]).into_owned());
    match (done, answer.as_deref().map(|answer| answer.split_once(' '))) {
        (Ok(()), Ok(Some(("0", words)))) => Ok(words.to_owned()),
        (Err(_), Ok(Some((code, words)))) => {
            let (what, why) = words.split_once(": ").unwrap_or((words, ""));
            let class = Class::ALL.into_iter().find(|class| class.exit_code().to_string() == code);
            Err(Unanswered::Refused(Error::new(class.unwrap_or(Class::General), what, why)))
        }
        (Err(errno), _) => Err(Unanswered::Failed(errno)),
        (Ok(()), Err(errno)) => Err(Unanswered::Failed(*errno)),
        (Ok(()), Ok(_)) => Err(Unanswered::Failed(Errno::PROTO)),
    }
}
