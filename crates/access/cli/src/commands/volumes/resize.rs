//! `onode resize`: a volume takes up more of its device, or of an image that is made longer.

use crate::location::{self, Consent};
use onode::{Class, Error, Result, Volume, exact_size, human_size, parse_size};
use onode_console::Output;
use onode_fs::SIZE;
use onode_object::powers::Extent;
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

/// The attribute has four numbers.
const BYTES_MAX: usize = 128;

#[derive(Debug, clap::Args)]
#[command(after_help = "The volume may be mounted and in use. What is in it stays, and it cannot become \
    smaller: `onode send` and `onode cp` bring the files to a smaller one.\n\n\
    Examples:\n  onode resize disk.img 4G      an image of 4 GiB; it is made longer\n  \
    onode resize /mnt +512M       half a GiB more than now, while it is mounted\n  \
    onode resize flash:/dev/sdb1  all that a partition has after it became larger\n  \
    onode resize tier:/dev/sda,/dev/vg/big  all of a big disk that became larger\n  \
    onode resize -n /mnt          what it has, and could have")]
pub struct Arguments {
    /// The directory where the volume is mounted, or an image or device spec.
    target: OsString,
    /// The new size: 4G, or +512M for so much more; without one all that the device has. Of an
    /// image it is what `onode mkfs --size` means, from which the volume's own records go; of two
    /// disks it is that of the big one.
    #[arg(value_parser = parse_new_size)]
    size: Option<NewSize>,
    /// Only tell what the volume has and could have.
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    consent: Consent,
}

/// A size that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NewSize {
    Bytes(u64),
    More(u64),
}

fn parse_new_size(text: &str) -> std::result::Result<NewSize, String> {
    match text.strip_prefix('+') {
        Some(more) => parse_size(more).map(NewSize::More),
        None => parse_size(text).map(NewSize::Bytes),
    }
}

#[derive(Debug, Serialize)]
struct Report {
    target: String,
    /// Bytes of the device or image that the volume had and has.
    before: u64,
    bytes: u64,
    /// Those that there is room for without making it longer.
    most: u64,
    /// Sizes are multiples of this.
    unit: u64,
    dry_run: bool,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, before, bytes, most, dry_run, .. } = self;
        let (was, is) = (human_size(*before), human_size(*bytes));
        match (before == bytes, dry_run) {
            (true, false) => writeln!(f, "{target}: {was} as before")?,
            (true, true) => writeln!(f, "{target}: {was}")?,
            (false, false) => writeln!(f, "{target}: {is}, {was} before")?,
            (false, true) => writeln!(f, "{target}: {was}, would become {is}")?,
        }
        if most > bytes { writeln!(f, "its device has room for {}", human_size(*most)) } else { Ok(()) }
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let target = arguments.target.display().to_string();
    let what = || format!("cannot resize {target}");
    let report = match location::mounted(&arguments.target, "resize")? {
        Some(directory) => resize(arguments, || of_mount(&directory, &what()), |bytes| grow_mount(&directory, bytes)),
        None if arguments.dry_run => {
            let volume = location::open(&arguments.target, true, arguments.consent)?;
            resize(arguments, || of_volume(&volume, &what()), |_| Ok(()))
        }
        None => location::change(&arguments.target, arguments.consent, |volume| {
            let grow = |bytes| volume.files().grow(bytes).map_err(|error| Volume::error(what(), &error));
            resize(arguments, || of_volume(volume, &what()), grow)
        }),
    }?;
    output.report(&report)?;
    Ok(0)
}

/// Has the volume grow, if that is asked for and can be.
fn resize(
    arguments: &Arguments,
    extent: impl Fn() -> Result<Extent>,
    grow: impl FnOnce(u64) -> Result<()>,
) -> Result<Report> {
    let target = arguments.target.display().to_string();
    let before = extent()?;
    let bytes = check(&before, arguments.size, &target)?;
    let Extent { most, unit, .. } = before;
    let after = match (bytes > before.bytes, arguments.dry_run) {
        (true, false) => {
            grow(bytes)?;
            extent()?
        }
        (_, true) => Extent { bytes, most: most.max(bytes), ..before },
        (false, false) => before,
    };
    let Extent { bytes, most, .. } = after;
    Ok(Report { target, before: before.bytes, bytes, most, unit, dry_run: arguments.dry_run })
}

/// The size that the volume will have.
fn check(extent: &Extent, asked_for: Option<NewSize>, target: &str) -> Result<u64> {
    let &Extent { bytes, most, least, unit } = extent;
    let asked = match asked_for {
        None if most < least => bytes,
        None => most,
        Some(NewSize::Bytes(asked)) => asked,
        Some(NewSize::More(more)) => bytes.saturating_add(more),
    };
    let asked = asked / unit * unit;
    let what = format!("cannot resize {target} to {}", human_size(asked));
    if asked < bytes {
        let why = format!("it has {}, and a volume cannot become smaller", exact_size(bytes));
        let hint = "make a smaller one and bring the files there: `onode send` and `onode receive`, or `onode cp`";
        return Err(Error::new(Class::BadSize, what, why).hint(hint));
    }
    if asked > bytes && asked < least {
        let why = format!("it has {}, and the next size that it can have is {}", exact_size(bytes), exact_size(least));
        return Err(Error::new(Class::BadSize, what, why));
    }
    Ok(asked)
}

fn of_volume(volume: &Volume, what: &str) -> Result<Extent> {
    let extent = volume.files().extent();
    extent.map_err(|error| match volume.device().growth() {
        Some(_) => Volume::error(what, &error),
        None => Error::new(Class::Usage, what, error.detail).hint(GROWS_NOT),
    })
}

const GROWS_NOT: &str = "volumes on flash and on two disks do: image files and block devices. One on storage-class \
    memory takes up a space or file that became longer when it is mounted (`onode spaces resize`)";

/// What the volume that is mounted at `directory` has.
fn of_mount(directory: &Path, what: &str) -> Result<Extent> {
    let mut value = [0; BYTES_MAX];
    let length = rustix::fs::getxattr(directory, SIZE, &mut value[..]).map_err(|errno| match errno {
        Errno::OPNOTSUPP | Errno::NODATA => {
            Error::new(Class::Usage, what, "a volume on this kind of device does not grow").hint(GROWS_NOT)
        }
        errno => Error::host(what, &errno.into()),
    })?;
    let text = String::from_utf8_lossy(value.get(..length).unwrap_or_default()).into_owned();
    let mut numbers = text.split(' ').map(|number| number.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    let extent = Extent { bytes: next(), most: next(), least: next(), unit: next() };
    if extent.unit == 0 {
        let why = format!("its server tells a size that makes no sense: {text:?}");
        return Err(Error::new(Class::General, what, why).hint("unmount it and mount it again"));
    }
    Ok(extent)
}

fn grow_mount(directory: &Path, bytes: u64) -> Result<()> {
    let what = format!("cannot resize {}", directory.display());
    let set = rustix::fs::setxattr(directory, SIZE, bytes.to_string().as_bytes(), XattrFlags::empty());
    // What the file system would say in words comes as a number through the mount.
    set.map_err(|errno| match errno {
        Errno::PERM => Error::new(Class::Permission, what, "only root and the owner of the volume may"),
        Errno::ROFS => Error::new(Class::ReadOnly, what, "it is mounted read-only"),
        Errno::NOSPC => Error::new(Class::HostFull, what, "the file system that holds the image has no room"),
        Errno::INVAL => Error::new(Class::BadSize, what, "its device cannot be so large, or it cannot grow as it is")
            .hint("`onode resize -n` tells what there is room for"),
        errno => Error::host(&what, &errno.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_checked_before_anything_is_done() {
        let extent = Extent { bytes: 1000, most: 3050, least: 1200, unit: 100 };
        let check = |asked_for| check(&extent, asked_for, "disk").map_err(|error| error.class);
        assert_eq!(check(None), Ok(3000));
        assert_eq!(check(Some(NewSize::Bytes(1099))), Ok(1000));
        assert_eq!(check(Some(NewSize::Bytes(1100))), Err(Class::BadSize));
        assert_eq!(check(Some(NewSize::Bytes(999))), Err(Class::BadSize));
        assert_eq!(check(Some(NewSize::More(250))), Ok(1200));
        assert_eq!(check(Some(NewSize::More(u64::MAX))), Ok(u64::MAX / 100 * 100));
        assert_eq!(parse_new_size("+1K"), Ok(NewSize::More(1024)));
        assert!(parse_new_size("-1K").is_err() && parse_new_size("+").is_err());
    }

    #[test]
    fn a_device_that_has_no_more_leaves_the_volume_as_it_is() {
        let extent = Extent { bytes: 1000, most: 1000, least: 1200, unit: 100 };
        assert_eq!(check(&extent, None, "disk").map_err(|error| error.class), Ok(1000));
    }
}
