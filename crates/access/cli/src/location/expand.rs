//! What a path with wildcards means in a volume.
//!
//! Each part of a path is a pattern of its own and never reaches over a slash. A name that is there
//! as it was written wins over what its pattern matches, so that a name with a star in it can be
//! used. As in shells, a name that begins with a dot is matched only by a pattern that does.

use super::pattern::Pattern;
use super::{entries, find, parts};
use onode::{Class, Error, Result};
use onode_fs::{FileSystem, FileType};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a path of a command line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// This path, whether there is something or not.
    This(PathBuf),
    /// What its pattern matches: at least one path.
    Matches(Vec<PathBuf>),
}

/// What `path` means; an error if it is a pattern that nothing matches.
pub fn meaning(files: &FileSystem, path: &Path) -> Result<Meaning> {
    let wanted = parts(path)?;
    if !wanted.iter().any(|part| Pattern::is_meant(part)) {
        return Ok(Meaning::This(path.to_owned()));
    }
    let mut reached = vec![PathBuf::from("/")];
    for part in &wanted {
        let mut next = Vec::new();
        for directory in &reached {
            look_in(files, directory, part, &mut next)?;
        }
        reached = next;
    }
    match reached.as_slice() {
        [] => {
            let what = format!("cannot find {} in the volume", path.display());
            let why = format!("no such file: nothing matches {}", path.display());
            Err(Error::new(Class::NotFound, what, why).hint("`onode ls IMAGE [PATH]` lists what there is"))
        }
        [one] if parts(one)? == wanted => Ok(Meaning::This(path.to_owned())),
        _ => Ok(Meaning::Matches(reached)),
    }
}

/// All that these paths mean, each once, in their order.
pub fn expand(files: &FileSystem, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in paths {
        match meaning(files, path)? {
            Meaning::This(path) => all.push(path),
            Meaning::Matches(matches) => all.extend(matches),
        }
    }
    let mut seen = HashSet::new();
    all.retain(|path| seen.insert(path.clone()));
    Ok(all)
}

/// That no two of these paths end with the same name: put into one directory, one would replace the
/// other.
pub fn check_names(paths: &[PathBuf]) -> Result<()> {
    let mut seen = HashMap::new();
    for path in paths {
        if let Some(other) = seen.insert(path.file_name(), path) {
            let what = format!("cannot put {} and {} into one directory", other.display(), path.display());
            return Err(Error::new(Class::Usage, what, "they have the same name").hint("name them one by one"));
        }
    }
    Ok(())
}

/// What in a directory a part of a path means.
fn look_in(files: &FileSystem, directory: &Path, part: &[u8], next: &mut Vec<PathBuf>) -> Result<()> {
    let Some(node) = find(files, directory)?.filter(|node| node.attributes().file_type == FileType::Directory) else {
        return Ok(());
    };
    let itself = directory.join(OsStr::from_bytes(part));
    if find(files, &itself)?.is_some() {
        next.push(itself);
    } else if Pattern::is_meant(part) {
        let pattern = Pattern::new(part);
        let is_shown = |name: &[u8]| !name.starts_with(b".") || part.starts_with(b".");
        let found = entries(files, node.inode(), directory)?.into_iter();
        let matching = found.filter(|entry| is_shown(&entry.name) && pattern.matches(&entry.name));
        next.extend(matching.map(|entry| directory.join(OsStr::from_bytes(&entry.name))));
    }
    Ok(())
}
