//! The record of a mount: a small file that its server keeps locked, from which others learn how
//! the mount ended.
//!
//! Nothing can be returned to umount(8), and a server that was killed says nothing at all. The lock
//! of a record goes with its server: a record that nobody holds and that tells of no end is that of
//! a server that was killed. One of a good end is removed; any other stays until the volume is
//! mounted again, so that the next command can tell.

use onode::{Class, Condition, Error, Health, Result, Severity, Volume};
use onode_fuse::Mounted;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// More than a record ever has.
const BYTES_MAX: u64 = 64 << 10;
const POLL: Duration = Duration::from_millis(10);

/// What stands in a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    /// The device spec.
    spec: String,
    /// The full path of the image, if there is one.
    image: Option<String>,
    /// Where it is mounted.
    directory: String,
    /// How it ended.
    ending: Option<Ending>,
}

/// How a mount ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Ending {
    Saved,
    Failed { exit_code: u8, what: String, why: String, hint: Option<String> },
}

/// The record of the mount that this process serves.
#[derive(Debug)]
pub struct Record {
    file: File,
    path: PathBuf,
    content: Content,
}

/// The record of a mount that somebody else serves or has served.
#[derive(Debug)]
pub struct Other {
    file: File,
    path: PathBuf,
}

/// A mount that did not end well.
#[derive(Debug)]
pub struct Left {
    path: PathBuf,
    /// One sentence.
    pub text: String,
    /// Whether the server told of a failure; else it was killed.
    pub is_failure: bool,
}

impl Record {
    /// Begins the record of the volume `spec` mounted at `directory`.
    ///
    /// # Errors
    /// If there is no place where it can be kept.
    pub fn begin(spec: &str, image: Option<&Path>, directory: &Path) -> Result<Self> {
        let what = "cannot keep a record of the mount";
        let mounted = onode_fuse::mounted_at(directory)?;
        let number = mounted.map_or_else(|| "0:0".to_owned(), |mounted| mounted.device);
        let name = format!("{}-{}", file_name(&number), std::process::id());
        let path = own_directory()?.join(name);
        let mut file = File::from(
            open(&path, OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::from_raw_mode(0o644))
                .map_err(|errno| Error::host_file("make", &path, &errno.into()))?,
        );
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| Error::host(what, &errno.into()))?;
        let image = image.map(|path| identity(path).to_string_lossy().into_owned());
        let directory = directory.to_string_lossy().into_owned();
        let content = Content { spec: spec.to_owned(), image, directory, ending: None };
        write(&mut file, &content).map_err(|error| Error::host_file("write", &path, &error))?;
        Ok(Self { file, path, content })
    }

    /// Says how the mount ended, to whoever waits for it and to the next command.
    pub fn end(mut self, outcome: Option<&Error>) {
        self.content.ending = Some(match outcome {
            None => Ending::Saved,
            Some(error) => Ending::Failed {
                exit_code: error.class.exit_code(),
                what: error.what.clone(),
                why: error.why.clone(),
                hint: error.hint.clone(),
            },
        });
        // If it cannot be written, it reads as that of a server that was killed: never as a good
        // end.
        if write(&mut self.file, &self.content).is_ok() && outcome.is_none() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Other {
    /// The record of a mount that is there now. `None` if its server keeps none.
    pub fn of(mounted: &Mounted) -> Option<Self> {
        let start = format!("{}-", file_name(&mounted.device));
        all(mounted.owner).find(|other| {
            let name = other.path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&start) && other.is_held()
        })
    }

    /// Waits until the server has ended, and tells how. `waiting` is called every now and then.
    ///
    /// # Errors
    /// What the server could not save; that it ended without a word.
    pub fn wait(mut self, mut waiting: impl FnMut(Duration)) -> Result<()> {
        let mut waited = Duration::ZERO;
        while self.is_held() {
            std::thread::sleep(POLL);
            waited += POLL;
            waiting(waited);
        }
        let content = self.read();
        match content.as_ref().and_then(|content| content.ending.clone()) {
            Some(Ending::Saved) => Ok(()),
            Some(Ending::Failed { exit_code, what, why, hint }) => Err(Error::told(exit_code, what, why, hint)),
            None => Err(killed(content.as_ref().map_or("the volume", |content| &content.spec))),
        }
    }

    fn is_held(&self) -> bool {
        let held = flock(&self.file, FlockOperation::NonBlockingLockShared).is_err();
        if !held {
            // Who looks does not keep others from it.
            let _ = flock(&self.file, FlockOperation::Unlock);
        }
        held
    }

    fn read(&mut self) -> Option<Content> {
        self.file.rewind().ok()?;
        let mut bytes = Vec::new();
        (&self.file).take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

impl Left {
    /// As a condition: failed as long as nobody used the volume since, then a notice.
    pub fn as_condition(&self, severity: Severity) -> Condition {
        let code = if self.is_failure { "last-unmount-failed" } else { "last-mount-killed" };
        let condition = Condition::new(code, severity, self.text.clone());
        if severity > Severity::Notice {
            condition.remedy("the next mount goes on with what was synced")
        } else {
            condition
        }
    }

    /// What is left of mounts of `image` that did not end well.
    pub fn of(image: Option<&Path>) -> Vec<Self> {
        let Some(image) = image.map(|path| identity(path).to_string_lossy().into_owned()) else { return Vec::new() };
        let left = |mut other: Other| {
            let content = (!other.is_held()).then(|| other.read())??;
            if content.image.as_ref() != Some(&image) {
                return None;
            }
            let directory = &content.directory;
            let (text, is_failure) = match content.ending {
                Some(Ending::Saved) => return None,
                Some(Ending::Failed { why, .. }) => (
                    format!(
                        "the last mount at {directory} could not save everything: {why}; what was not synced is lost"
                    ),
                    true,
                ),
                None => (
                    format!(
                        "the server of the last mount at {directory} ended without unmounting; what was not synced is lost"
                    ),
                    false,
                ),
            };
            Some(Self { path: other.path, text, is_failure })
        };
        all(None).filter_map(left).collect()
    }

    /// It was told, and the volume is in use again.
    pub fn forget(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The error of a server that ended without a word.
pub fn killed(spec: &str) -> Error {
    let what = format!("cannot tell that {spec} was saved");
    Error::new(Class::General, what, "its server was killed; what was not synced is lost")
        .hint("the next mount recovers what was synced; `onode check` verifies it")
}

/// Removes records that nobody can ask for any more: of images that are gone, and of volumes
/// without one.
pub fn sweep() {
    for mut other in all(None) {
        let is_asked_for = |content: Content| content.image.is_some_and(|image| Path::new(&image).exists());
        if !other.is_held() && !other.read().is_some_and(is_asked_for) {
            let _ = fs::remove_file(&other.path);
        }
    }
}

/// By which name a file is known, whatever leads to it.
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn file_name(device: &str) -> String {
    device.replace(':', "-")
}

fn write(file: &mut File, content: &Content) -> std::io::Result<()> {
    let bytes = serde_json::to_vec(content)?;
    file.rewind()?;
    file.write_all(&bytes)?;
    file.set_len(bytes.len() as u64)
}

/// Where a user's records may be, the best place first.
fn places(user: u32) -> Vec<PathBuf> {
    let mut places = Vec::new();
    if user == 0 {
        places.push(PathBuf::from("/run/onode"));
    } else {
        if user == geteuid().as_raw()
            && let Some(directory) = std::env::var_os("XDG_RUNTIME_DIR").filter(|directory| !directory.is_empty())
        {
            places.push(Path::new(&directory).join("onode"));
        }
        places.push(PathBuf::from(format!("/run/user/{user}/onode")));
    }
    places.push(PathBuf::from(format!("/tmp/onode-{user}")));
    places
}

/// The first place that can be used, made if it is not there.
fn own_directory() -> Result<PathBuf> {
    let user = geteuid().as_raw();
    let mode = if user == 0 { 0o755 } else { 0o700 };
    let is_made = |place: &PathBuf| {
        // It is there already, most of the time; if it cannot be made, it is not trusted either.
        let _ = DirBuilder::new().mode(mode).create(place);
        is_trusted(place, user) && rustix::fs::access(place, rustix::fs::Access::WRITE_OK).is_ok()
    };
    let what = "cannot keep a record of the mount";
    places(user)
        .into_iter()
        .find(is_made)
        .ok_or_else(|| Error::new(Class::General, what, "no directory can be written"))
}

/// Whether only `user` can put something there.
fn is_trusted(place: &Path, user: u32) -> bool {
    fs::symlink_metadata(place)
        .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user && metadata.mode() & 0o022 == 0)
}

/// Every record that can be read: of this user, of root, and of `owner`.
fn all(owner: Option<u32>) -> impl Iterator<Item = Other> {
    let mut users = vec![geteuid().as_raw(), 0];
    users.extend(owner);
    users.sort_unstable();
    users.dedup();
    users.into_iter().flat_map(|user| {
        let trusted = places(user).into_iter().filter(move |place| is_trusted(place, user));
        let names = trusted.flat_map(|place| {
            let entries = fs::read_dir(&place).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        });
        names.filter_map(opened)
    })
}

fn opened(path: PathBuf) -> Option<Other> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(&path, flags, Mode::empty()).ok()?);
    file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(Other { file, path })
}

/// The health of a volume that is not mounted.
pub fn health_at_rest(volume: &Volume) -> Health {
    let mut health = volume.health();
    health.conditions.extend(past_conditions(volume.spec().image_path()));
    health
}

/// What mounts left that did not end well: nobody used the volume since.
pub fn past_conditions(image: Option<&Path>) -> impl Iterator<Item = Condition> {
    Left::of(image).into_iter().map(|left| {
        let severity = if left.is_failure { Severity::Failed } else { Severity::Notice };
        left.as_condition(severity)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_once() {
        let image = std::env::temp_dir().join(format!("onode-record-{}", std::process::id()));
        fs::write(&image, b"").expect("file");
        let left = |image: &Path| Left::of(Some(image));
        let begin = || Record::begin("flash:x", Some(&image), Path::new("/")).expect("begun");
        let record = begin();
        assert!(left(&image).is_empty(), "it is being served");
        drop(record);
        let killed = left(&image);
        assert!(killed.len() == 1 && !killed[0].is_failure && killed[0].text.contains("without unmounting"));
        begin().end(Some(&Error::new(Class::HostFull, "cannot close", "no space\nleft")));
        let failed = left(&image);
        assert!(failed.len() == 1 && failed[0].is_failure && failed[0].text.contains("no space"));
        failed[0].forget();
        assert!(left(&image).is_empty());
        begin().end(None);
        assert!(left(&image).is_empty());
        fs::remove_file(&image).expect("cleaned");
        drop(begin());
        sweep();
        assert!(all(None).all(|mut other| other.read().is_none_or(|content| content.spec != "flash:x")));
    }
}
