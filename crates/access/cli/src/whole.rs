//! Files of the host that get their names when they are complete; a device is written as it is.

use onode::{Error, Result};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The name that a file has until it is complete, in the same directory.
pub fn unfinished(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".unfinished");
    path.with_file_name(name)
}

/// Writes a file, or to a device, what `fill` hands on. A file is on the medium when it gets its
/// name, and gone again if anything fails.
pub fn write_whole<T>(path: &Path, fill: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<bool>) -> Result<T>) -> Result<T> {
    let failed = |error| Error::host_file("write", path, &error);
    let is_device = fs::metadata(path).is_ok_and(|there| !there.is_file());
    let place = if is_device { path.to_owned() } else { unfinished(path) };
    let mut file = File::create(&place).map_err(failed)?;
    let filled = fill(&mut |bytes| file.write_all(bytes).map(|()| true).map_err(failed));
    if is_device {
        return filled;
    }
    let named = filled.and_then(|filled| {
        file.sync_all().and_then(|()| fs::rename(&place, path)).map_err(failed)?;
        Ok(filled)
    });
    if named.is_err() {
        // The first error says more than that this could not be removed either.
        let _ = fs::remove_file(&place);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode::Class;

    #[test]
    fn a_file_has_its_name_when_it_is_complete() {
        let folder = std::env::temp_dir().join(format!("onode-whole-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        let refused = write_whole(&path, |put| {
            put(b"a part")?;
            assert!(!path.exists());
            Err::<(), _>(Error::new(Class::General, "cannot", "so"))
        });
        assert!(refused.is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        write_whole(&path, |put| put(b"all")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"all");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_device_stays_one() {
        write_whole(Path::new("/dev/null"), |put| put(b"gone")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
