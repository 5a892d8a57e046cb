//! The folders of a mount in which its snapshots and clones are directories, and what is the same
//! of both.

use crate::commands::files::ls::date;
use crate::commands::state::ask;
use crate::location::{self, Consent};
use crate::signals;
use onode::{Class, Error, Result, Snapshots, Volume};
use onode_base::Timestamp;
use onode_console::{Output, quote};
use rustix::fs::{AtFlags, CWD, Mode};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Steps between two looks at whether somebody wants an end.
const STEPS: u32 = 64;

/// Of what.
#[derive(Debug, clap::Args)]
pub struct Of {
    /// The directory where the volume is mounted, or an image or device spec.
    #[arg(value_name = "DIR|IMAGE")]
    pub target: OsString,
    #[command(flatten)]
    pub consent: Consent,
}

/// One of the folders.
#[derive(Clone, Copy, Debug)]
pub struct StateFolder {
    /// Its name in the topmost directory.
    pub name: &'static str,
    /// What one that stands in it is called.
    pub noun: &'static str,
}

/// What a folder says of one that stands in it.
pub struct Stands<const N: usize> {
    pub name: String,
    /// Seconds since 1970.
    pub created: i64,
    /// The attributes that were asked for.
    pub told: [String; N],
}

impl StateFolder {
    /// Where it is if the volume is mounted.
    pub fn of(self, target: &OsStr) -> Result<Option<PathBuf>> {
        let mounted = location::mounted(target, &format!("use {}s of", self.noun))?;
        Ok(mounted.map(|directory| directory.join(self.name)))
    }

    /// Makes one of all files as they are now.
    pub fn make(self, folder: &Path, verb: &str, name: &str) -> Result<()> {
        let path = folder.join(plain(name)?);
        // What the kernel keeps of files, through mappings or with `writeback`, the server does not
        // have yet. If it cannot be written, whoever wrote it is told by fsync.
        if let Some(Ok(mount)) = folder.parent().map(File::open) {
            let _ = rustix::fs::syncfs(&mount);
        }
        rustix::fs::mkdir(&path, Mode::from(0o755)).map_err(|errno| self.refused(verb, &path, errno))
    }

    /// Deletes some, on a mount or in an image by `delete`; then what they kept is removed, too.
    /// `later` is said where that goes on in the background.
    pub fn delete_all(
        self,
        of: &Of,
        names: &[String],
        delete: &dyn Fn(&Volume, &str) -> Result<()>,
        later: &str,
        output: &Output,
    ) -> Result<()> {
        if let Some(folder) = self.of(&of.target)? {
            for name in names {
                let path = folder.join(plain(name)?);
                let deleted = rustix::fs::unlinkat(CWD, &path, AtFlags::REMOVEDIR);
                deleted.map_err(|errno| self.refused("delete", &path, errno))?;
            }
            output.note(later);
            return Ok(());
        }
        let (sender, events) = channel();
        signals::forward(sender, |why| why)?;
        location::change_states(&of.target, of.consent, |volume| {
            names.iter().try_for_each(|name| delete(volume, name))?;
            clean(snapshots(volume)?, &events, output)
        })
    }

    /// Those that stand in it, with when they were created and what these attributes say. The names
    /// of attributes begin with `user.onode.` and the noun.
    pub fn list<const N: usize>(self, folder: &Path, attributes: [&str; N]) -> Result<Vec<Stands<N>>> {
        let what = || format!("cannot list {}", folder.display());
        let mut all = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(|error| Error::host(what(), &error))? {
            let entry = entry.map_err(|error| Error::host(what(), &error))?;
            let told = |attribute: &str| told(&entry.path(), &format!("user.onode.{}.{attribute}", self.noun));
            // One that was deleted meanwhile is none.
            let (Some(created), Some(told)) =
                (told("created"), attributes.map(told).into_iter().collect::<Option<Vec<_>>>())
            else {
                continue;
            };
            let created = created.split('.').next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(told) = told.try_into() else { continue };
            all.push(Stands { name, created, told });
        }
        Ok(all)
    }

    /// What the server of a mount would say in words comes as a number.
    pub fn refused(self, verb: &str, path: &Path, errno: Errno) -> Error {
        let noun = self.noun;
        let what = format!("cannot {verb} the {noun} {}", path.display());
        // It stands in the folder, and that in the topmost directory.
        let mount = path.parent().and_then(Path::parent);
        if let Some(error) = mount.and_then(|mount| ask::changeless(&what, mount, errno)) {
            return error;
        }
        match errno {
            Errno::EXIST => Error::new(Class::Exists, what, "there is a snapshot or a clone of that name")
                .hint("choose another name"),
            Errno::NOENT => {
                let why = format!("there is no such {noun}, or snapshot for it, or the volume can have none");
                let hint = "`onode snapshot list` and `onode clone list` show those that there are; a volume on \
                    storage-class memory has none unless it is exclusive (`onode tune`)";
                Error::new(Class::NotFound, what, why).hint(hint)
            }
            Errno::ACCESS | Errno::PERM => {
                Error::new(Class::Permission, what, "only root and the owner of the topmost directory may")
            }
            Errno::ROFS => Error::new(Class::ReadOnly, what, "it is mounted read-only"),
            Errno::NOSPC => {
                Error::new(Class::VolumeFull, what, "the volume is full").hint("delete a snapshot, or files")
            }
            Errno::BUSY => Error::new(Class::InUse, what, "a clone was made of it and needs it")
                .hint("`onode clone list` shows which; delete the clone first"),
            Errno::INVAL => Error::new(Class::Usage, what, "a name has at most 255 bytes and no control characters"),
            errno => Error::host(&what, &errno.into()),
        }
    }
}

/// When one was created, in words.
pub fn day(created: i64) -> String {
    date(Timestamp { seconds: created, nanoseconds: 0 })
}

/// What an attribute of a snapshot or clone says.
pub fn told(path: &Path, name: &str) -> Option<String> {
    // A name of a snapshot has at most so many bytes, and nothing else is longer.
    let mut value = vec![0; 255];
    let length = rustix::fs::getxattr(path, name, value.as_mut_slice()).ok()?;
    value.truncate(length);
    String::from_utf8(value).ok()
}

/// The snapshots of a volume that can have some.
pub fn snapshots(volume: &Volume) -> Result<&Snapshots> {
    let lacking = || Snapshots::lacking(volume.spec(), format!("cannot use snapshots of {}", volume.spec()));
    volume.snapshots().map(AsRef::as_ref).ok_or_else(lacking)
}

/// A name that leads nowhere else in a path.
pub fn plain(name: &str) -> Result<&OsStr> {
    if name.is_empty() || name == "." || name == ".." || name.contains('/') {
        let why = "names of snapshots and clones are those of directories";
        return Err(Error::new(Class::Usage, format!("`{}` names none", quote::message(name)), why));
    }
    Ok(OsStr::from_bytes(name.as_bytes()))
}

/// Removes what deleted ones kept. It can be interrupted: the next mount goes on.
fn clean(all: &Snapshots, events: &Receiver<&'static str>, output: &Output) -> Result<()> {
    let mut steps = 0_u64;
    while all.clean(STEPS)? {
        steps += u64::from(STEPS);
        output.progress(&format!("removing what they kept: {steps} steps"));
        if !matches!(events.try_recv(), Err(TryRecvError::Empty)) {
            output.note("interrupted: the rest of what they kept is removed by the next mount");
            return Ok(());
        }
    }
    Ok(())
}
