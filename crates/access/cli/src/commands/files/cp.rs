//! `onode cp`: copies files within an image or between two.

use crate::commands::files::copy::{End, InVolume, copy};
use crate::location::{self, Consent};
use onode::{Class, Error, Result};
use onode_console::Output;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    onode cp disk.img:/a.txt disk.img:/b.txt\n  \
    onode cp -r old.img:/photos new.img:/photos")]
pub struct Arguments {
    /// What to copy, as IMAGE:/PATH.
    from: OsString,
    /// Where to, as IMAGE:/PATH.
    to: OsString,
    /// Copy directories with all they hold.
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    consent: Consent,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let (from_image, from) = split(&arguments.from)?;
    let (to_image, to) = split(&arguments.to)?;
    let copied = if same_image(from_image, to_image) {
        if to.starts_with(&from) {
            let what = format!("cannot copy {} into itself", from.display());
            return Err(Error::new(Class::Usage, what, "").hint("choose a target outside of it"));
        }
        location::change(to_image, arguments.consent, |volume| {
            let side = InVolume(volume);
            copy(End { side: &side, path: &from }, End { side: &side, path: &to }, arguments.recursive, output)
        })?
    } else {
        let source = location::open(from_image, true, arguments.consent)?;
        location::change(to_image, arguments.consent, |target| {
            let from = End { side: &InVolume(&source), path: &from };
            copy(from, End { side: &InVolume(target), path: &to }, arguments.recursive, output)
        })?
    };
    output.report(&copied)?;
    Ok(0)
}

/// Splits `IMAGE:/PATH` at the last colon before a slash; specs may have colons of their own.
fn split(argument: &OsStr) -> Result<(&OsStr, PathBuf)> {
    let bytes = argument.as_bytes();
    let colon = bytes.windows(2).rposition(|pair| pair == b":/").filter(|colon| *colon > 0);
    let (image, path) = colon.map_or((bytes, &[][..]), |colon| bytes.split_at(colon));
    if path.is_empty() || image == b"flash" {
        let what = format!("cannot understand {}", argument.display());
        return Err(Error::new(Class::Usage, what, "it is not of the form IMAGE:/PATH")
            .hint("use `onode get` and `onode put` to copy from and to the host"));
    }
    Ok((OsStr::from_bytes(image), PathBuf::from(OsStr::from_bytes(path.get(1..).unwrap_or_default()))))
}

fn same_image(one: &OsStr, other: &OsStr) -> bool {
    let real = |image: &OsStr| Path::new(image).canonicalize().ok();
    one == other || (real(one).is_some() && real(one) == real(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_split_at_the_last_colon() {
        let split = |text: &str| {
            split(OsStr::new(text)).map(|(image, path)| (image.to_owned(), path)).map_err(|error| error.class)
        };
        let expected = |image: &str, path: &str| Ok((OsString::from(image), PathBuf::from(path)));
        assert_eq!(split("a.img:/b/c"), expected("a.img", "/b/c"));
        assert_eq!(split("flash:/x/a.img:/b"), expected("flash:/x/a.img", "/b"));
        assert_eq!(split("a.img"), Err(Class::Usage));
        assert_eq!(split("flash:/a.img"), Err(Class::Usage));
        assert_eq!(split(":/a"), Err(Class::Usage));
    }
}
