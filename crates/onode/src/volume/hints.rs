//! Hints of files by path: how long they stay, how often they are used, how they are compressed and
//! placed. Values are the words of `onode set` and of the attributes of a mount.

#[cfg(feature = "tier")]
pub(super) mod mapped;

use crate::error::{Class, Error, Result};
use crate::volume::Volume;
use onode_base::ErrorKind;
use onode_fs::{Explanation, Follow, Hint, InodeNumber};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

impl Volume {
    /// The value of a hint; of a directory, that of what is made in it.
    ///
    /// # Errors
    /// `NotFound`; `Usage` for `compress` and `placement` on a volume that has no such choice.
    pub fn hint(&self, path: impl AsRef<Path>, hint: Hint) -> Result<String> {
        self.ask(path.as_ref(), "tell a hint of", |number| self.files().hint(number, hint))
    }

    /// Sets a hint for what is written from now on; of a directory, for what is made in it from now
    /// on.
    ///
    /// # Errors
    /// `NotFound`, `ReadOnly`; `Usage` for a value that it does not take; as [`hint`](Self::hint).
    ///
    /// ```
    /// use onode::{Hint, Volume};
    /// let volume = Volume::open_or_create("ram:size=4M")?;
    /// volume.create_dir_all("/tmp")?;
    /// volume.set_hint("/tmp", Hint::Lifetime, "short")?;
    /// volume.write("/tmp/scratch", "gone soon")?;
    /// assert_eq!(volume.hint("/tmp/scratch", Hint::Lifetime)?, "short");
    /// # onode::Result::Ok(())
    /// ```
    pub fn set_hint(&self, path: impl AsRef<Path>, hint: Hint, value: &str) -> Result<()> {
        self.ask(path.as_ref(), "set a hint of", |number| self.files().set_hint(number, hint, value))
    }

    /// What was said of a file or directory, and what its device makes of it.
    ///
    /// # Errors
    /// `NotFound`; `Usage` for what is neither file nor directory.
    pub fn explain(&self, path: impl AsRef<Path>) -> Result<Explanation> {
        self.ask(path.as_ref(), "explain", |number| self.files().explain(number))
    }

    fn ask<T>(&self, path: &Path, doing: &str, ask: impl FnOnce(InodeNumber) -> onode_fs::Result<T>) -> Result<T> {
        let number = self.files().resolve(path.as_os_str().as_bytes(), Follow::Yes);
        number.and_then(ask).map_err(|error| {
            let what = format!("cannot {doing} {}", path.display());
            match error.kind {
                ErrorKind::Invalid | ErrorKind::NotSupported => Error::new(Class::Usage, what, error.detail.clone()),
                _ => Self::error(what, &error),
            }
        })
    }
}
