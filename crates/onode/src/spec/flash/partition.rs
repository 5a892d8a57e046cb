//! Partitions of raw flash by name: a board's numbers move when one is added, names stay.
//!
//! The kernel lists them in `/sys/class/mtd`: a directory for each device with its name in the file
//! `name`. What has the wanted name must be one device; which one of two was meant, nobody can
//! tell.

use crate::error::{Class, Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the kernel lists memory technology devices.
pub(crate) const CLASS: &str = "/sys/class/mtd";

/// The path that a place of a spec names: a path, or `mtd:` and the name of a partition.
pub(super) fn path_of(place: &str, what: &str) -> Result<PathBuf> {
    match place.strip_prefix("mtd:") {
        Some(name) => device_of(Path::new(CLASS), name, what),
        None => Ok(PathBuf::from(place)),
    }
}

/// The device file of the partition called `name` among those that `class` lists; `what` is what
/// cannot be done.
pub(crate) fn device_of(class: &Path, name: &str, what: &str) -> Result<PathBuf> {
    let all = list(class);
    let named: Vec<&str> = all.iter().filter(|(_, one)| one == name).map(|(device, _)| device.as_str()).collect();
    match named[..] {
        [device] => Ok(Path::new("/dev").join(device)),
        [] => {
            let error = Error::new(Class::NotFound, what, format!("there is no raw flash partition called `{name}`"));
            let names: Vec<String> = all.iter().map(|(_, one)| format!("`{one}`")).collect();
            Err(error.hint(match names.len() {
                0 => "the kernel knows no raw flash at all; `cat /proc/mtd` lists what it knows".to_owned(),
                _ => format!("the partitions are {}", names.join(", ")),
            }))
        }
        _ => Err(Error::new(Class::Usage, what, format!("{} are all called `{name}`", named.join(", ")))
            .hint(format!("name the device itself, for example /dev/{}", named[0]))),
    }
}

/// Device and name of every partition, in the order of their numbers. One that cannot be read is
/// none.
fn list(class: &Path) -> Vec<(String, String)> {
    let mut all: Vec<(u32, String)> = fs::read_dir(class)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let device = entry.ok()?.file_name().into_string().ok()?;
            // Each has a second entry for its read-only device, `mtd0ro`.
            let number = device.strip_prefix("mtd")?.parse().ok()?;
            let name = fs::read_to_string(class.join(&device).join("name")).ok()?;
            Some((number, name.trim_end_matches('\n').to_owned()))
        })
        .collect();
    all.sort_unstable();
    all.into_iter().map(|(number, name)| (format!("mtd{number}"), name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder like the kernel's, gone at the end.
    struct Listing(PathBuf);

    impl Listing {
        fn of(test: &str, names: &[(&str, &str)]) -> Self {
            let class = std::env::temp_dir().join(format!("onode-mtd-{test}-{}", std::process::id()));
            fs::create_dir_all(&class).unwrap();
            for (device, name) in names {
                fs::create_dir_all(class.join(device)).unwrap();
                fs::write(class.join(device).join("name"), format!("{name}\n")).unwrap();
            }
            Self(class)
        }
    }

    impl Drop for Listing {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_partition_is_found_by_its_whole_name() {
        let listing =
            Listing::of("whole", &[("mtd0", "boot"), ("mtd2", "root fs"), ("mtd10", "root"), ("mtd3", "root fs 2")]);
        // The devices for reading alone have no name of their own.
        fs::create_dir_all(listing.0.join("mtd2ro")).unwrap();
        let find = |name| device_of(&listing.0, name, "cannot");
        assert_eq!(find("root fs"), Ok(PathBuf::from("/dev/mtd2")));
        assert_eq!(find("root"), Ok(PathBuf::from("/dev/mtd10")));
        let error = find("roo").unwrap_err();
        assert_eq!(error.class, Class::NotFound);
        assert_eq!(error.hint.as_deref(), Some("the partitions are `boot`, `root fs`, `root fs 2`, `root`"));
        assert_eq!(find("").unwrap_err().class, Class::NotFound);
    }

    #[test]
    fn one_name_for_two_is_refused() {
        let listing = Listing::of("two", &[("mtd0", "data"), ("mtd1", "data")]);
        let error = device_of(&listing.0, "data", "cannot").unwrap_err();
        assert_eq!(error.class, Class::Usage);
        assert!(error.why.contains("mtd0, mtd1"), "{error}");
    }

    #[test]
    fn a_machine_without_raw_flash_says_so() {
        let error = device_of(Path::new("/no/such/class"), "data", "cannot").unwrap_err();
        assert_eq!(error.class, Class::NotFound);
        assert!(error.hint.unwrap().contains("no raw flash"));
    }
}
