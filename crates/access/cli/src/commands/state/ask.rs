//! Asking for the figures of a volume: an open volume, or the mount that has it open.
//!
//! A mount is asked through read-only attributes of its root directory that no listing shows, see
//! [`views`](crate::commands::mounts::views).

use crate::figures::{Figures, Segment};
use crate::location::{self, Consent};
use crate::watch::health::HealthReport;
use onode::{Class, Error, Result, SystemClock, Volume};
use onode_base::Clock;
use onode_object::powers::SegmentInfo;
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest value an attribute can have.
pub const VIEW_BYTES_MAX: usize = 64 << 10;

/// The figures of an image, a spec or the directory of a mount.
pub fn of(target: &OsStr, consent: Consent) -> Result<Figures> {
    ask(target, consent, Figures::at_rest, |directory| fetch(directory, "report"))
}

/// The figures and the segment map of an image, a spec or the directory of a mount.
pub fn with_segments(target: &OsStr) -> Result<(Figures, Vec<SegmentInfo>)> {
    let from_volume = |volume: &Volume| {
        let segments = volume.device().inspect().map(|inspect| inspect.segments());
        (Figures::at_rest(volume), segments.unwrap_or_default())
    };
    ask(target, Consent::default(), from_volume, |directory| {
        let figures = fetch(directory, "report")?;
        let mut segments: Vec<SegmentInfo> = Vec::new();
        loop {
            let piece: Vec<Segment> = fetch(directory, &format!("segments.{}", segments.len()))?;
            if piece.is_empty() {
                return Ok((figures, segments));
            }
            segments.extend(piece.into_iter().map(SegmentInfo::from));
        }
    })
}

/// Asks the mount if `target` is mounted or is where something is mounted, else the volume itself.
pub fn ask<T>(
    target: &OsStr,
    consent: Consent,
    volume: impl FnOnce(&Volume) -> T,
    mount: impl FnOnce(&Path) -> Result<T>,
) -> Result<T> {
    let directory = Path::new(target);
    if directory.is_dir() || onode_fuse::is_dead(directory) {
        onode_fuse::our_mount_at(directory, format!("cannot show {}", directory.display()))?;
        return mount(directory);
    }
    match location::open(target, true, consent) {
        Ok(opened) => Ok(volume(&opened)),
        Err(error) if error.class == Class::InUse => match onode_fuse::mount_of(&location::spec(target)?) {
            Some(mounted) => mount(&mounted.directory),
            None => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// The health of the volume that is mounted at `directory`.
pub fn health_of(directory: &Path) -> Result<HealthReport> {
    fetch(directory, "health")
}

/// What the mount at `directory` answers when asked for a view.
pub fn fetch<T: DeserializeOwned>(directory: &Path, view: &str) -> Result<T> {
    let what = format!("cannot show {}", directory.display());
    serde_json::from_slice(&value_of(&what, directory, view)?)
        .map_err(|error| Error::new(Class::General, what, format!("the mount answers strangely: {error}")))
}

/// The same of a view that not every volume has.
pub fn view<T: DeserializeOwned>(directory: &Path, view: &str) -> Result<Option<T>> {
    // A server of an earlier version has none either, and its volumes had no such thing.
    let name = format!("{}{view}", onode_fuse::VIEW_PREFIX);
    match rustix::fs::getxattr(directory, name, &mut [0; 0][..]) {
        Err(Errno::OPNOTSUPP | Errno::NODATA) => Ok(None),
        _ => fetch(directory, view).map(Some),
    }
}

/// The same, as it came; `what` says what cannot be done without.
pub fn value_of(what: &str, directory: &Path, view: &str) -> Result<Vec<u8>> {
    let name = format!("{}{view}", onode_fuse::VIEW_PREFIX);
    let mut value = vec![0; VIEW_BYTES_MAX];
    let length = rustix::fs::getxattr(directory, name, value.as_mut_slice()).map_err(|errno| match errno {
        Errno::OPNOTSUPP | Errno::NODATA => {
            Error::new(Class::General, what, "its server is of another version, which does not tell this")
                .hint(format!("unmount it and mount it again: onode umount {}", directory.display()))
        }
        Errno::PERM | Errno::ACCESS => Error::new(Class::Permission, what, "only root may ask its server for that"),
        errno if onode_fuse::is_disconnected(&errno.into()) => {
            Error::new(Class::General, what, "its server was killed")
                .hint(format!("take the dead mount away: onode umount {}", directory.display()))
        }
        errno => Error::host(what, &errno.into()),
    })?;
    value.truncate(length);
    Ok(value)
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
    let mut answer = vec![0; VIEW_BYTES_MAX];
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
