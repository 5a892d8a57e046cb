//! `mount.onode`: this program as `mount(8)` calls it, for `mount -t onode` and `/etc/fstab`.
//!
//! `mount.onode SPEC DIR [-sfnv] [-N namespace] [-o OPTIONS]`, with the exit codes of mount(8).

use crate::NAME;
use crate::commands::mounts::mount;
use crate::watch::settings::Settings;
use onode::{Class, Error, Result};
use onode_console::Output;
use std::ffi::{OsStr, OsString};
use std::path::Path;

const USAGE: u8 = 1;
const BUG: u8 = 4;
const FAILED: u8 = 32;
/// What mount(8) keeps to itself because it is what mounts usually have; of what is not so it tells
/// the helper. That it keeps `async`, too, is what holds anyway, unless the volume says `sync`.
const USUAL_OF_MOUNT: &str = "suid,dev,exec";

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether the program was called by that name. mount(8) knows a mount that is there already as
/// `fuse.onode` and looks for the helper of that name to change its options.
pub fn is_wanted(name: Option<&OsString>) -> bool {
    let name = name.and_then(|name| Path::new(name).file_name());
    name.is_some_and(|name| name == "mount.onode" || name == "mount.fuse.onode")
}

/// Does it and returns the exit code.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let output = Output::new(NAME, false);
    let outcome = Request::read(arguments.into_iter().skip(1)).and_then(|request| request.run());
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            output.error(&error);
            match error.class {
                Class::Usage | Class::Permission => USAGE,
                Class::Bug => BUG,
                _ => FAILED,
            }
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    operands: Vec<OsString>,
    options: String,
    fake: bool,
}

impl Request {
    fn read(arguments: impl Iterator<Item = OsString>) -> Result<Self> {
        let mut request = Self::default();
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.to_str() {
                Some("-o") => {
                    let list = arguments.next().unwrap_or_default();
                    if !request.options.is_empty() {
                        request.options.push(',');
                    }
                    request.options.push_str(&list.to_string_lossy());
                }
                // The type and namespace are said for helpers that serve several.
                Some("-t" | "-N") => drop(arguments.next()),
                Some(flags) if flags.len() > 1 && flags.starts_with('-') => request.read_flags(flags)?,
                _ => request.operands.push(argument),
            }
        }
        match request.operands.len() {
            2 => Ok(request),
            _ => Err(usage("an image and a directory are needed")),
        }
    }

    fn read_flags(&mut self, flags: &str) -> Result<()> {
        for flag in flags.chars().skip(1) {
            match flag {
                'f' => self.fake = true,
                // Sloppy, no mtab, verbose: nothing to do.
                's' | 'n' | 'v' => {}
                _ => return Err(usage(&format!("`{flags}` is not an option"))),
            }
        }
        Ok(())
    }

    fn run(&self) -> Result<()> {
        let [image, directory] = self.operands.as_slice() else { return Err(usage("an image and a directory")) };
        let (remounts, others): (Vec<_>, Vec<_>) = self.options.split(',').partition(|option| *option == "remount");
        let list = [USUAL_OF_MOUNT].into_iter().filter(|_| is_root()).chain(others).collect::<Vec<_>>().join(",");
        let mut settings = Settings::default();
        settings.apply(&list)?;
        match (self.fake, remounts.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => {
                let output = Output::new(NAME, false);
                mount::in_background(OsStr::new(image), Path::new(directory), &list, &settings, &output)
            }
            (false, false) => onode_fuse::remount(Path::new(directory), &settings.options),
        }
    }
}

fn usage(why: &str) -> Error {
    Error::new(Class::Usage, "cannot mount", why).hint("mount.onode IMAGE DIRECTORY [-sfnv] [-o OPTIONS]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Request> {
        Request::read(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn what_mount_sends_is_understood() {
        let request = read("disk.img /mnt -v -n -t onode -o rw,noatime -s").expect("valid");
        assert_eq!(request.operands, ["disk.img", "/mnt"]);
        assert_eq!(request.options, "rw,noatime");
        assert!(!request.fake);
        assert!(is_wanted(Some(&OsString::from("/sbin/mount.onode"))) && !is_wanted(Some(&OsString::from("onode"))));
        assert!(read("disk.img /mnt -sfn").expect("valid").fake);
    }

    #[test]
    fn what_is_missing_is_said() {
        for line in ["", "disk.img", "a b c", "disk.img /mnt -x"] {
            assert_eq!(read(line).expect_err(line).class, Class::Usage);
        }
    }
}
