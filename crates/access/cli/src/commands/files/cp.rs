//! `onode cp`: copies files within an image or between two.

use crate::commands::files::copy::{CopyArguments, Copying, End, InVolume, Side};
use crate::location::expand::{check_names, expand};
use crate::location::{self, Consent};
use onode::{Class, Error, Result, Volume};
use onode_console::Output;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    onode cp disk.img:/a.txt disk.img:/b.txt\n  \
    onode cp -r old.img:/photos new.img:/photos\n  \
    onode cp 'old.img:/logs/*.gz' old.img:/notes new.img:/archive   into a directory\n  \
    onode cp -a --exclude '*.tmp' old.img:/home new.img:/home      with hard links and attributes")]
pub struct Arguments {
    /// What to copy, as IMAGE:/PATH. Wildcards are meant in the image; several files go into a
    /// directory.
    #[arg(required = true)]
    from: Vec<OsString>,
    /// Where to, as IMAGE:/PATH.
    to: OsString,
    #[command(flatten)]
    copy: CopyArguments,
    #[command(flatten)]
    consent: Consent,
}

/// Some files of one volume.
struct Source<'a> {
    /// `None` for the volume that is copied to.
    volume: Option<&'a Volume>,
    path: PathBuf,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let manner = arguments.copy.manner()?;
    let (to_image, to) = split(&arguments.to)?;
    let wanted: Vec<(&OsStr, PathBuf)> = arguments.from.iter().map(|from| split(from)).collect::<Result<_>>()?;
    let mut others: Vec<(&OsStr, Volume)> = Vec::new();
    for (image, _) in &wanted {
        if !same_image(image, to_image) && !others.iter().any(|(open, _)| same_image(open, image)) {
            others.push((image, location::open(image, true, arguments.consent)?));
        }
    }
    let mut copying = Copying::new(&manner, output);
    let mut work = |target: &Volume| {
        let mut sources = Vec::new();
        for (image, path) in &wanted {
            let volume = others.iter().find(|(open, _)| same_image(open, image)).map(|(_, volume)| volume);
            let paths = expand(volume.unwrap_or(target).files(), std::slice::from_ref(path))?;
            sources.extend(paths.into_iter().map(|path| Source { volume, path }));
        }
        copy_all(&sources, target, &to, &mut copying)
    };
    if arguments.copy.is_dry() {
        work(&location::open(to_image, true, arguments.consent)?)?;
    } else {
        location::change(to_image, arguments.consent, work)?;
    }
    copying.report()?;
    Ok(0)
}

/// Copies all of them to a path of `target`; nothing if one of them cannot be meant.
fn copy_all(sources: &[Source<'_>], target: &Volume, to: &Path, copying: &mut Copying<'_>) -> Result<()> {
    let side = InVolume::new(target);
    if sources.len() > 1 {
        if !side.is_directory(to)? {
            let what = format!("cannot copy {} files to {}", sources.len(), to.display());
            return Err(
                Error::new(Class::Usage, what, "it is no directory").hint("make one first: onode mkdir IMAGE DIR")
            );
        }
        check_names(&sources.iter().map(|source| source.path.clone()).collect::<Vec<_>>())?;
    }
    for source in sources.iter().filter(|source| source.volume.is_none()) {
        if to.starts_with(&source.path) {
            let what = format!("cannot copy {} into itself", source.path.display());
            return Err(Error::new(Class::Usage, what, "").hint("choose a target outside of it"));
        }
    }
    for Source { volume, path } in sources {
        let from = InVolume::new(volume.unwrap_or(target));
        copying.copy(End { side: &from, path }, End { side: &side, path: to })?;
    }
    Ok(())
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
