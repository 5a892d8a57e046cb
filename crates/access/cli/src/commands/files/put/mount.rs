//! `onode put --atomic` into a mounted volume: the copy goes into the tree of a transaction that
//! the server of the mount keeps.

use super::whole::told;
use crate::commands::files::copy::{CopyManner, Entry, Host, Kind, Side, Special, Xattr};
use crate::commands::mounts::tx::face::TransactionsFace;
use crate::location;
use onode::{Class, Error, Result};
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::Path;

/// Seconds without use after which the server gives it up: this process was killed, or nothing
/// comes from standard input.
const EXPIRY: u64 = 600;

/// A mount that gets files as a whole.
pub struct OnMount(TransactionsFace);

impl OnMount {
    /// That of a directory of a mount, or of an image that is mounted; `None` for an image that is
    /// not.
    pub fn find(target: &OsStr) -> Result<Option<Self>> {
        let path = Path::new(target);
        let is_mounted = || Ok::<_, Error>(onode_fuse::mount_of(&location::spec(target)?).is_some());
        if !path.is_dir() && !onode_fuse::is_dead(path) && !is_mounted()? {
            return Ok(None);
        }
        TransactionsFace::find(target, "copy as a whole to").map(|face| Some(Self(face)))
    }

    /// Has all that `work` does below the directory that it is given happen, durably, or nothing.
    ///
    /// # Errors
    /// Those of the server and of `work`; nothing was changed then.
    pub fn change<T>(&self, manner: &CopyManner, work: impl FnOnce(&dyn Side, &Path) -> Result<T>) -> Result<T> {
        let id = self.0.begin(EXPIRY)?;
        let done = work(&Within, &self.0.named_in(id)).and_then(|done| match manner.stop.asked() {
            Some(why) => Err(Error::new(Class::General, "cannot copy to the end", why).hint("run it again")),
            None if manner.is_dry => Ok(done),
            None => self.0.commit(id).map(|()| done),
        });
        if manner.is_dry || done.is_err() {
            // It expires if that fails, too.
            let _ = self.0.abort(id);
        }
        done.map_err(|error| match error.class {
            // The volume is the host of what is mounted.
            Class::HostFull => told(Error::new(Class::VolumeFull, error.what, error.why)),
            _ => told(error),
        })
    }
}

/// The host below a directory: no symbolic link that stands there is followed, since it may lead
/// out of the transaction.
struct Within;

/// That no symbolic link stands on the way from `top` to a path below it.
///
/// # Errors
/// `Exists` if one does.
pub fn check_way(top: &Path, path: &Path) -> Result<()> {
    path.ancestors().take_while(|way| *way != top).try_for_each(check_no_link)
}

fn check_no_link(path: &Path) -> Result<()> {
    if matches!(Host.entry(path), Ok(Some(Entry { kind: Kind::Link(_), .. }))) {
        let what = format!("cannot write to {}", path.display());
        let hint = "remove the link first, or name the place that it leads to";
        return Err(Error::new(Class::Exists, what, "a symbolic link stands there").hint(hint));
    }
    Ok(())
}

impl Side for Within {
    fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        Host.entry(path)
    }

    fn names(&self, path: &Path) -> Result<Vec<OsString>> {
        Host.names(path)
    }

    fn read(&self, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        Host.read(path, offset, buffer)
    }

    fn data(&self, path: &Path, offset: u64) -> Result<Option<Range<u64>>> {
        Host.data(path, offset)
    }

    fn xattrs(&self, path: &Path) -> Result<Vec<Xattr>> {
        Host.xattrs(path)
    }

    fn make_directory(&self, path: &Path) -> Result<()> {
        check_no_link(path)?;
        Host.make_directory(path)
    }

    fn make_link(&self, path: &Path, target: &OsStr) -> Result<()> {
        Host.make_link(path, target)
    }

    fn make_name(&self, path: &Path, of: &Path) -> Result<()> {
        Host.make_name(path, of)
    }

    fn make_special(&self, path: &Path, special: Special) -> Result<()> {
        Host.make_special(path, special)
    }

    fn make_file(&self, path: &Path) -> Result<()> {
        check_no_link(path)?;
        Host.make_file(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        Host.remove(path)
    }

    fn write(&self, path: &Path, offset: u64, data: &[u8]) -> Result<()> {
        Host.write(path, offset, data)
    }

    fn set_xattr(&self, path: &Path, xattr: &Xattr) -> Result<bool> {
        Host.set_xattr(path, xattr)
    }

    fn finish(&self, path: &Path, entry: &Entry) -> Result<()> {
        Host.finish(path, entry)
    }

    fn name(&self, path: &Path) -> String {
        Host.name(path)
    }
}
