//! Whom a limit is for, as the command line says it.

use crate::location::parts;
use nix::unistd::{Group, User};
use onode::{Class, Error, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One of three.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct WhomSaid {
    /// A directory of the volume with all that is in it; its path from the top of the volume on.
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
    /// A user, by name or number.
    #[arg(long, value_name = "NAME|UID")]
    user: Option<String>,
    /// A group, by name or number.
    #[arg(long, value_name = "NAME|GID")]
    group: Option<String>,
}

/// Whom it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// A directory, by its path from the top of the volume on, without a slash before it.
    Directory(PathBuf),
    User(u32),
    Group(u32),
}

impl WhomSaid {
    /// Whom it means; names are those of this computer.
    pub fn found(&self) -> Result<Whom> {
        let unknown = |what: &str, name: &str| {
            let hint = format!("`getent {what}` lists those that there are; a number works, too");
            let (title, why) = (format!("cannot find the {what} `{name}`"), "this computer knows none of that name");
            Error::new(Class::Usage, title, why).hint(hint.replace("getent user", "getent passwd"))
        };
        match self {
            Self { user: Some(name), .. } => {
                let number = || User::from_name(name).ok().flatten().map(|user| user.uid.as_raw());
                name.parse().ok().or_else(number).map(Whom::User).ok_or_else(|| unknown("user", name))
            }
            Self { group: Some(name), .. } => {
                let number = || Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw());
                name.parse().ok().or_else(number).map(Whom::Group).ok_or_else(|| unknown("group", name))
            }
            Self { dir, .. } => {
                let path = dir.as_deref().unwrap_or_else(|| Path::new("/"));
                Ok(Whom::Directory(parts(path)?.into_iter().map(OsStr::from_bytes).collect()))
            }
        }
    }
}

impl Whom {
    /// What people call it.
    pub fn name(&self) -> String {
        match self {
            Self::Directory(path) => format!("/{}", path.display()),
            Self::User(uid) => format!("user {}", user_name(*uid)),
            Self::Group(gid) => format!("group {}", group_name(*gid)),
        }
    }
}

/// The name of a user, or the number.
pub fn user_name(uid: u32) -> String {
    User::from_uid(uid.into()).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}

/// The name of a group, or the number.
pub fn group_name(gid: u32) -> String {
    Group::from_gid(gid.into()).ok().flatten().map_or_else(|| gid.to_string(), |group| group.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_mean_the_same() {
        let user = |name: &str| WhomSaid { dir: None, user: Some(name.into()), group: None }.found();
        assert_eq!(user("root").map_err(|error| error.class), Ok(Whom::User(0)));
        assert_eq!(user("1000").map_err(|error| error.class), Ok(Whom::User(1000)));
        assert_eq!(user("nobody at all").map_err(|error| error.class), Err(Class::Usage));
        let group = |name: &str| WhomSaid { dir: None, user: None, group: Some(name.into()) }.found();
        assert_eq!(group("0").map_err(|error| error.class), Ok(Whom::Group(0)));
        assert_eq!(group("nobody at all").map_err(|error| error.class), Err(Class::Usage));
        let dir = |path: &str| WhomSaid { dir: Some(path.into()), user: None, group: None }.found();
        assert_eq!(dir("/a/./b/").map_err(|error| error.class), Ok(Whom::Directory("a/b".into())));
        assert_eq!(dir("/a/../b").map_err(|error| error.class), Err(Class::Usage));
        assert_eq!((dir("/").unwrap().name(), Whom::User(0).name()), ("/".into(), "user root".into()));
    }
}
