//! A spec that names several media must not name one twice.

use crate::error::{Class, Error, Result};
use crate::spec::Spec;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Refuses a spec of whose media two are one, by whatever names: each would overwrite the other.
///
/// # Errors
/// Usage.
pub(crate) fn check_distinct(action: &str, spec: &Spec) -> Result<()> {
    let paths = spec.said().all_paths();
    let pairs = paths.iter().enumerate().flat_map(|(index, one)| paths[..index].iter().map(move |other| (other, one)));
    let Some((one, other)) = pairs.into_iter().find(|(one, other)| is_one_place(one, other)) else { return Ok(()) };
    let why = format!("{} and {} are the same", one.display(), other.display());
    Err(Error::new(Class::Usage, format!("cannot {action} {spec}"), why).hint("name two files or devices"))
}

/// Whether two paths lead to one file or device, which need not be there yet.
fn is_one_place(one: &Path, other: &Path) -> bool {
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => {
            let is_device =
                |file: &std::fs::Metadata| file.file_type().is_block_device() || file.file_type().is_char_device();
            (one.dev(), one.ino()) == (other.dev(), other.ino())
                || is_device(&one) && one.file_type() == other.file_type() && one.rdev() == other.rdev()
        }
        (Err(_), Err(_)) => place_of(one).is_some_and(|place| Some(place) == place_of(other)),
        _ => false,
    }
}

/// Where a file that is not there would be, whatever links lead to its directory.
fn place_of(path: &Path) -> Option<PathBuf> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    Some(directory.canonicalize().ok()?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn one_place_by_two_names_is_found() {
        let place = std::env::temp_dir().join(format!("onode-distinct-{}", std::process::id()));
        fs::create_dir_all(place.join("d")).expect("directory");
        let [new, same, link, hard, other] = ["new", "d/../new", "link", "hard", "other"].map(|name| place.join(name));
        assert!(is_one_place(&new, &same) && !is_one_place(&new, &other));
        fs::write(&new, b"").expect("file");
        std::os::unix::fs::symlink(&new, &link).expect("link");
        fs::hard_link(&new, &hard).expect("hard link");
        assert!(is_one_place(&new, &same) && is_one_place(&new, &link) && is_one_place(&hard, &link));
        assert!(!is_one_place(&new, &other));
        fs::write(&other, b"").expect("file");
        assert!(!is_one_place(&new, &other));
        fs::remove_dir_all(&place).expect("cleaned");
    }
}
