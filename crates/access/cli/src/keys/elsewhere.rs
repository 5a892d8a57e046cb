//! Keys for a process that works in another directory, as the server of a mount does: each path is
//! given to it in a form that holds there, and none in another form as well.

use super::{KeyArguments, STANDARD_INPUT, VARIABLE, unlocks};
use onode::keys::Anchor;
use onode::{Error, Result};
use std::ffi::OsString;
use std::path::PathBuf;

/// The options of `-o` that concern keys.
const OPTIONS: [&str; 5] = ["key-file", "passphrase-file", "keyring", "unlock", "expect-anchor"];

impl KeyArguments {
    /// The same as flags for a process that works in another directory. Standard input it gets
    /// anew.
    ///
    /// # Errors
    /// If the working directory is gone.
    pub fn as_flags(&self) -> Result<Vec<OsString>> {
        unlocks::note();
        let mut flags = Vec::new();
        let of_volume = [("--key-file", &self.key_file), ("--passphrase-file", &self.passphrase_file)];
        let of_directories = self.unlock.iter().map(|path| ("--unlock", Some(path)));
        for (flag, path) in of_volume.map(|(flag, path)| (flag, path.as_ref())).into_iter().chain(of_directories) {
            if let Some(path) = path {
                let path =
                    if path.as_os_str() == STANDARD_INPUT { Ok(path.clone()) } else { std::path::absolute(path) };
                let path = path.map_err(|error| Error::host("cannot find the working directory", &error))?;
                flags.extend([flag.into(), path.into_os_string()]);
            }
        }
        flags.extend(self.keyring.iter().flat_map(|name| ["--keyring".into(), name.into()]));
        let anchor = self.expect_anchor.iter().map(Anchor::to_string);
        flags.extend(anchor.flat_map(|anchor| ["--expect-anchor".into(), anchor.into()]));
        Ok(flags)
    }

    /// A list for `-o` without what [`apply`](Self::apply) took in of it: that is handed on as
    /// [flags](Self::as_flags), whose paths hold in any directory.
    #[must_use]
    pub fn without_keys(list: &str) -> String {
        let is_of_keys = |option: &&str| OPTIONS.contains(&option.split_once('=').map_or(*option, |(name, _)| name));
        list.split(',').filter(|option| !is_of_keys(option)).collect::<Vec<_>>().join(",")
    }
}

/// The variable for a process that works in another directory, if it names a key file by a path
/// that holds in this one only.
///
/// # Errors
/// If the working directory is gone.
pub fn variable_elsewhere() -> Result<Option<(&'static str, PathBuf)>> {
    let Some(path) = std::env::var_os(VARIABLE).map(PathBuf::from).filter(|path| path.is_relative()) else {
        return Ok(None);
    };
    let absolute = std::path::absolute(&path).map_err(|error| Error::host_file("use", &path, &error))?;
    Ok(Some((VARIABLE, absolute)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_on_has_no_options_of_keys() {
        let list = "ro,unlock=k,key-file=./k,compress=fast,passphrase-file=p,keyring=n,expect-anchor=7,unlocked=1,";
        assert_eq!(KeyArguments::without_keys(list), "ro,compress=fast,unlocked=1,");
        assert_eq!(KeyArguments::without_keys(""), "");
    }
}
