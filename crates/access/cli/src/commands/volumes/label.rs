//! `onode label`: shows or changes the name that a volume has for people.

use crate::commands::state::ask;
use crate::location::{self, Consent};
use onode::{Class, Error, Result, Volume};
use onode_console::{Output, quote};
use onode_fs::{LABEL, check_label};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

const BYTES_MAX: usize = 256;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  onode label /mnt             show it\n  onode label /mnt Photos      change it, also while mounted\n  \
    onode label disk.img \"\"      take it away\n  onode mount LABEL=Photos /mnt   on whichever device it is"
)]
pub struct Arguments {
    /// The directory where the volume is mounted, or an image or device spec.
    target: OsString,
    /// The new label: text of up to 255 bytes; nothing between quotes takes it away.
    label: Option<String>,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, Serialize)]
struct Report {
    target: String,
    label: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", quote::message(&self.label))
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let target = arguments.target.display().to_string();
    if let Some(label) = &arguments.label {
        let refused = |error: onode_fs::Error| Error::new(Class::Usage, format!("cannot label {target}"), error.detail);
        check_label(label).map_err(refused)?;
    }
    let directory = location::mounted(&arguments.target, "label")?;
    let label = match (&arguments.label, directory) {
        (None, Some(directory)) => of_mount(&directory)?,
        (None, None) => {
            let volume = location::open(&arguments.target, true, arguments.consent)?;
            volume
                .files()
                .label()
                .map_err(|error| Volume::error(format!("cannot read the label of {target}"), &error))?
        }
        (Some(label), Some(directory)) => {
            let set = rustix::fs::setxattr(&directory, LABEL, label.as_bytes(), XattrFlags::empty());
            set.map_err(|errno| refused(&directory, errno))?;
            return Ok(0);
        }
        (Some(label), None) => {
            let what = || format!("cannot label {target}");
            location::change(&arguments.target, arguments.consent, |volume| {
                volume.files().set_label(label).map_err(|error| Volume::error(what(), &error))
            })?;
            return Ok(0);
        }
    };
    output.report(&Report { target, label })?;
    Ok(0)
}

/// The label of the volume that is mounted at `directory`.
fn of_mount(directory: &Path) -> Result<String> {
    let mut value = vec![0; BYTES_MAX];
    let length = rustix::fs::getxattr(directory, LABEL, value.as_mut_slice());
    value.truncate(length.map_err(|errno| refused(directory, errno))?);
    Ok(String::from_utf8_lossy(&value).into_owned())
}

fn refused(directory: &Path, errno: Errno) -> Error {
    let what = format!("cannot label {}", directory.display());
    if let Some(error) = ask::changeless(&what, directory, errno) {
        return error;
    }
    match errno {
        Errno::PERM => Error::new(Class::Permission, what, "only root and the owner of the volume may"),
        Errno::ROFS => Error::new(Class::ReadOnly, what, "it is mounted read-only"),
        Errno::NODATA | Errno::OPNOTSUPP => {
            Error::new(Class::General, what, "its server is of another version, which does not do this")
                .hint("unmount it and mount it again")
        }
        errno => Error::host(&what, &errno.into()),
    }
}
