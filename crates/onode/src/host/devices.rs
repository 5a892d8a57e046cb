//! Block devices of the computer that hold a volume, found by what is on them: their label or their
//! unique number.

use crate::error::{Class, Error, Result};
use crate::host::signature;
use crate::spec::Spec;
use crate::volume::{MountOptions, Volume};
use std::fs;
use std::path::{Path, PathBuf};

/// The block devices that the kernel knows, with partitions.
const TABLE: &str = "/proc/partitions";

/// A device or image that holds a volume, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundVolume {
    /// Where.
    pub path: PathBuf,
    /// What its first bytes tell.
    pub what: &'static str,
}

/// A number in the usual form: `01234567-89ab-cdef-0123-456789abcdef`.
#[must_use]
pub fn uuid_text(bytes: [u8; 16]) -> String {
    let mut text = String::new();
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// What a device or image holds, if that is a volume or a part of one.
///
/// # Errors
/// If it cannot be read.
pub fn volume_on(path: &Path) -> Result<Option<FoundVolume>> {
    let what = signature::of_device(path).map_err(|error| Error::host_file("read", path, &error))?;
    let what = what.filter(|what| what.contains("Onode"));
    Ok(what.map(|what| FoundVolume { path: path.to_owned(), what }))
}

/// All block devices that hold a volume, or a part of one. What this user may not read, and what
/// has no medium in it, is passed over.
///
/// # Errors
/// If the kernel's table cannot be read.
pub fn volumes() -> Result<Vec<FoundVolume>> {
    let table = fs::read_to_string(TABLE).map_err(|error| Error::host_file("read", Path::new(TABLE), &error))?;
    Ok(names(&table).filter_map(|path| volume_on(&path).ok().flatten()).collect())
}

/// `   8        1     976762 sda1`, after a line of titles.
fn names(table: &str) -> impl Iterator<Item = PathBuf> {
    let name = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [major, _, blocks, name] if major.parse::<u32>().is_ok() && blocks != "0" => Some(Path::new("/dev").join(name)),
        _ => None,
    };
    table.lines().filter_map(name)
}

/// The device that `LABEL=NAME` or `UUID=NUMBER` names; `None` if the text names nothing that way.
///
/// # Errors
/// `NotFound` if there is no such device, `Usage` if there are several.
pub fn named(text: &str) -> Result<Option<PathBuf>> {
    let Some((kind @ ("LABEL" | "UUID"), wanted)) = text.split_once('=') else { return Ok(None) };
    let (by_label, wanted) = (kind == "LABEL", wanted.trim_matches('"'));
    let is_wanted = |found: &FoundVolume| {
        let spec = Spec::from_argument(found.path.as_os_str()).ok()?;
        let volume = Volume::open(&spec, MountOptions { read_only: true, ..MountOptions::default() }).ok()?;
        let is_it = if by_label {
            volume.files().label().is_ok_and(|label| label == wanted)
        } else {
            uuid_text(volume.files().volume().uuid).eq_ignore_ascii_case(wanted)
        };
        Some(is_it)
    };
    let all = volumes()?;
    let what = format!("cannot find {text}");
    let matching: Vec<&FoundVolume> = all.iter().filter(|found| is_wanted(found) == Some(true)).collect();
    match &matching[..] {
        [one] => Ok(Some(one.path.clone())),
        [] => {
            let why = format!("none of {} block devices with a volume of Onode is it", all.len());
            Err(Error::new(Class::NotFound, what, why)
                .hint("`onode list`, as root, shows them; one that is mounted is not looked at"))
        }
        several => {
            let paths: Vec<String> = several.iter().map(|found| found.path.display().to_string()).collect();
            let why = format!("it is on several devices: {}", paths.join(", "));
            Err(Error::new(Class::Usage, what, why).hint("name the device, or give one of them another: onode label"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_names_devices() {
        let table = "major minor  #blocks  name\n\n   8        0  976762584 sda\n   8        1     524288 sda1\n  11        0          0 sr0\n";
        assert!(names(table).eq(["/dev/sda", "/dev/sda1"].map(PathBuf::from)));
        assert_eq!(names("").count(), 0);
    }

    #[test]
    fn numbers_have_the_usual_form() {
        let bytes = std::array::from_fn(|at| at as u8 * 17);
        assert_eq!(uuid_text(bytes), "00112233-4455-6677-8899-aabbccddeeff");
    }

    #[test]
    fn what_is_no_name_is_left_alone_and_an_unknown_name_is_told() {
        assert_eq!(named("disk.img").unwrap(), None);
        let error = named("LABEL=no volume of this name").unwrap_err();
        assert_eq!(error.class, Class::NotFound);
        assert!(error.hint.is_some_and(|hint| hint.contains("onode list")));
    }
}
