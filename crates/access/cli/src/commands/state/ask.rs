//! Asking for the figures of a volume: an open volume, or the mount that has it open.
//!
//! A mount is asked through read-only attributes of its root directory that no listing shows, see
//! [`views`](crate::commands::mounts::views).

use crate::figures::{Figures, Segment};
use crate::location::{self, Consent};
use crate::watch::health::HealthReport;
use onode::{Class, Error, Result, Volume};
use onode_object::powers::SegmentInfo;
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::path::Path;

/// The condition of a volume that accepts no more changes.
const READ_ONLY: &str = "read-only";
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

/// That `what` was refused for a reason that the server of the mount at `directory` knows better
/// than its number says: the volume accepts no more changes. Nothing if that is not so.
pub fn changeless(what: &str, directory: &Path, errno: Errno) -> Option<Error> {
    let may_be = [Errno::ROFS, Errno::NOSPC, Errno::IO].contains(&errno);
    let health = may_be.then(|| health_of(directory).ok())??;
    let told = health.conditions.into_iter().find(|one| one.code == READ_ONLY)?;
    let is_host_full = told.text.contains(onode_base::ErrorKind::HostFull.describe());
    let class = if is_host_full { Class::HostFull } else { Class::ReadOnly };
    let next = format!("onode health {}", directory.display());
    let hint = told.remedy.map_or_else(|| next.clone(), |remedy| format!("{remedy}; all that is wrong: {next}"));
    Some(Error::new(class, what, told.text).hint(hint))
}

/// What the mount at `directory` answers when asked for a view.
pub fn fetch<T: DeserializeOwned>(directory: &Path, view: &str) -> Result<T> {
    let what = format!("cannot show {}", directory.display());
    let value = value_of(&what, directory, view)?;
    parse(what, &value)
}

/// The same of a view that not every volume has, nor every server knows.
pub fn view<T: DeserializeOwned>(directory: &Path, view: &str) -> Result<Option<T>> {
    let what = format!("cannot show {}", directory.display());
    match read(directory, view) {
        Err(Errno::OPNOTSUPP | Errno::NODATA) => Ok(None),
        value => parse(what.clone(), &value.map_err(|errno| unread(&what, directory, errno))?).map(Some),
    }
}

/// The same, as it came; `what` says what cannot be done without.
pub fn value_of(what: &str, directory: &Path, view: &str) -> Result<Vec<u8>> {
    read(directory, view).map_err(|errno| unread(what, directory, errno))
}

fn parse<T: DeserializeOwned>(what: String, value: &[u8]) -> Result<T> {
    serde_json::from_slice(value)
        .map_err(|error| Error::new(Class::General, what, format!("the mount answers strangely: {error}")))
}

fn read(directory: &Path, view: &str) -> rustix::io::Result<Vec<u8>> {
    let name = format!("{}{view}", onode_fuse::VIEW_PREFIX);
    let mut value = vec![0; VIEW_BYTES_MAX];
    let length = rustix::fs::getxattr(directory, name, value.as_mut_slice())?;
    value.truncate(length);
    Ok(value)
}

/// Why a view was not read.
fn unread(what: &str, directory: &Path, errno: Errno) -> Error {
    match errno {
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
    }
}
