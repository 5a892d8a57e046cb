//! `onode resize`: a volume takes up more of its device, or of an image that is made longer, or
//! gives some of it back.

use crate::bar;
use crate::location::{self, Consent};
use crate::signals::Stop;
use onode::{Class, Error, Result, Spec, Volume, exact_size, human_size, parse_size};
use onode_console::Output;
use onode_fs::{DISK, ErrorKind, SHRINK_FURTHER, SIZE, STOP_SHRINKING};
use onode_object::powers::Extent;
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// The attribute has six numbers.
const BYTES_MAX: usize = 192;

#[derive(Debug, clap::Args)]
#[command(after_help = "The volume may be mounted and in use; what is in it stays. One that becomes smaller is in \
    use as before\nwhile everything moves in front of its new end. An interrupt leaves it as large as it was, and so \
    does a\npower cut.\n\n\
    Examples:\n  onode resize disk.img 4G      an image of 4 GiB; it is made longer, or shorter\n  \
    onode resize /mnt +512M       half a GiB more than now, while it is mounted\n  \
    onode resize /mnt -512M       half a GiB less\n  \
    onode resize disk.img least   as small as has room for what is in it\n  \
    onode resize flash:/dev/sdb1  all that a partition has after it became larger\n  \
    onode resize tier:/dev/sda,/dev/vg/big  all of a big disk that became larger\n  \
    onode resize /mnt --add /dev/sdc        all of another disk, too, on which the big one goes on\n  \
    onode resize -n /mnt          what it has, and could have")]
pub struct Arguments {
    /// The directory where the volume is mounted, or an image or device spec.
    target: OsString,
    /// The new size: 4G, +512M for so much more, -512M for so much less, least for as little as has
    /// room for what is there; without one all that the device has. Of an image it is what `onode
    /// mkfs --size` means, from which the volume's own records go; of two disks it is that of the
    /// big one.
    #[arg(value_parser = parse_new_size, allow_hyphen_values = true)]
    size: Option<NewSize>,
    /// A volume on two disks goes on on this one, too: a device that holds nothing, or a file that
    /// is made if it is not there. The spec names it behind the big disk from then on.
    #[arg(long, value_name = "DISK", conflicts_with = "dry_run")]
    add: Option<PathBuf>,
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
    Less(u64),
    Least,
}

fn parse_new_size(text: &str) -> std::result::Result<NewSize, String> {
    match (text, text.strip_prefix('+'), text.strip_prefix('-')) {
        ("least", ..) => Ok(NewSize::Least),
        (_, Some(more), _) => parse_size(more).map(NewSize::More),
        (_, _, Some(less)) => parse_size(less).map(NewSize::Less),
        _ => parse_size(text).map(NewSize::Bytes),
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
    /// About the fewest that have room for what is in the volume.
    fewest: u64,
    /// Sizes are multiples of this.
    unit: u64,
    dry_run: bool,
    /// The spec of the volume, if it goes on on another disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, before, bytes, most, fewest, dry_run, .. } = self;
        let (was, is) = (human_size(*before), human_size(*bytes));
        match (before == bytes, dry_run) {
            (true, false) => writeln!(f, "{target}: {was} as before")?,
            (true, true) => writeln!(f, "{target}: {was}")?,
            (false, false) => writeln!(f, "{target}: {is}, {was} before")?,
            (false, true) => writeln!(f, "{target}: {was}, would become {is}")?,
        }
        if *dry_run && fewest < before {
            writeln!(f, "what is in it has room in {}", human_size(*fewest))?;
        }
        if most > bytes {
            writeln!(f, "its device has room for {}", human_size(*most))?;
        }
        self.spec.iter().try_for_each(|spec| writeln!(f, "from now on it is {spec}"))
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let target = arguments.target.display().to_string();
    let what = || format!("cannot resize {target}");
    let mounted = location::mounted(&arguments.target, "resize")?;
    let disk = arguments
        .add
        .as_deref()
        .map(|disk| std::path::absolute(disk).map_err(|error| Error::host_file("find", disk, &error)));
    let disk = disk.transpose()?;
    let disk = disk.as_deref();
    let spec = disk.map(|disk| longer(arguments, mounted.as_deref(), disk)).transpose()?;
    let mut report = match mounted {
        Some(directory) => resize(arguments, disk, &Mounted { directory: &directory, what: what() }, output),
        None if arguments.dry_run => {
            let volume = location::open_for_states(&arguments.target, true, arguments.consent)?;
            resize(arguments, disk, &Opened { volume: &volume, what: what() }, output)
        }
        None => location::change_states(&arguments.target, arguments.consent, |volume| {
            resize(arguments, disk, &Opened { volume, what: what() }, output)
        }),
    }?;
    report.spec = spec.map(|spec| spec.to_string());
    output.report(&report)?;
    Ok(0)
}

/// The spec of the volume when it goes on on `disk`, which is looked at before anything is done.
fn longer(arguments: &Arguments, mounted: Option<&Path>, disk: &Path) -> Result<Spec> {
    let what = || format!("cannot resize {}", arguments.target.display());
    let spec = match mounted {
        // Disks may have come since it was mounted.
        Some(directory) => location::spec_with_disks(directory, &what())?,
        None => location::spec(&arguments.target)?.again().with_absolute_paths(),
    };
    let longer = spec.going_on_on(disk)?;
    onode::check_empty_disk(disk)?;
    if !disk.exists() && arguments.size.is_none() {
        let why = format!("{} is not there, and how large it is to be made was not said", disk.display());
        return Err(Error::new(Class::Usage, what(), why)
            .hint(format!("say how much larger: `onode resize {} +10G --add FILE`", arguments.target.display())));
    }
    Ok(longer)
}

/// A volume whose size changes: an open one, or one that a server has.
trait Resized {
    /// Goes on on another disk.
    fn take(&self, disk: &str) -> Result<()>;
    fn extent(&self) -> Result<Extent>;
    /// Bytes that are in use.
    fn used(&self) -> u64;
    /// Has more, or begins to shrink.
    fn set(&self, bytes: u64, before: &Extent) -> Result<()>;
    /// Shrinks further.
    fn shrink(&self) -> Result<()>;
    /// Shrinks no further.
    fn stay(&self) -> Result<()>;
}

/// Gives the volume another size, if that is asked for and can be, after it went on on `disk`.
fn resize(arguments: &Arguments, disk: Option<&Path>, subject: &dyn Resized, output: &Output) -> Result<Report> {
    let target = arguments.target.display().to_string();
    if let Some(disk) = disk {
        subject.take(&disk.display().to_string())?;
    }
    let before = subject.extent()?;
    let bytes = check(&before, arguments.size, subject.used(), &target)?;
    if arguments.dry_run {
        check_room(&before, bytes, &target)?;
    }
    let Extent { most, unit, fewest, .. } = before;
    let after = match (bytes != before.bytes, arguments.dry_run) {
        (true, false) => {
            subject.set(bytes, &before).map_err(|error| match (error.class, subject.extent()) {
                (Class::Permission | Class::ReadOnly, _) | (_, Err(_)) => error,
                // After a crash the volume only knows now what is free.
                (_, Ok(now)) => check_room(&now, bytes, &target).err().unwrap_or(error),
            })?;
            if bytes < before.bytes {
                shrink(subject, bytes, &target, output)?;
            }
            subject.extent()?
        }
        (_, true) => Extent { bytes, most: most.max(bytes), ..before },
        (false, false) => before,
    };
    let Extent { bytes, most, .. } = after;
    Ok(Report { target, before: before.bytes, bytes, most, fewest, unit, dry_run: arguments.dry_run, spec: None })
}

/// Steps without anything to move after which somebody else has stopped it: room may have to be
/// made first.
const IDLE_STEPS_MAX: u32 = 100_000;

/// Goes on until the volume has so many bytes, and shows how far it is. After an interrupt or an
/// error it is as large as before.
fn shrink(subject: &dyn Resized, bytes: u64, target: &str, output: &Output) -> Result<()> {
    let stop = Stop::default();
    stop.listen()?;
    let template = "{bar:30} {bytes}/{total_bytes} moved, {binary_bytes_per_sec}, {eta} left";
    let bar = bar::bar(Some(0), template, output);
    let (mut all, mut last, mut idle_steps) = (0, 0, 0);
    let outcome = loop {
        let extent = match subject.extent() {
            // Two disks end in front of pages of the bitmap rather than among them.
            Ok(extent) if extent.bytes <= bytes => break Ok(()),
            Ok(extent) => extent,
            Err(error) => break Err(error),
        };
        idle_steps = if extent.moving == 0 { idle_steps + 1 } else { 0 };
        if idle_steps > IDLE_STEPS_MAX {
            let why = "another command keeps it as large as it is";
            break Err(Error::new(Class::InUse, format!("cannot resize {target}"), why));
        }
        // What comes to lie behind the new end meanwhile is more to be moved.
        all += extent.moving.saturating_sub(last);
        last = extent.moving;
        bar.set_length(all);
        bar.set_position(all - last);
        if let Some(why) = stop.asked() {
            break Err(Error::new(Class::General, format!("cannot resize {target}"), why)
                .hint("it is as large as before, and has everything; the same command begins again"));
        }
        if let Err(error) = subject.shrink() {
            break Err(error);
        }
    };
    bar.finish_and_clear();
    if outcome.is_err() {
        // Whatever is told of that, the first error is the one that counts.
        let _ = subject.stay();
    }
    outcome
}

/// The size that the volume will have.
fn check(extent: &Extent, asked_for: Option<NewSize>, used: u64, target: &str) -> Result<u64> {
    let &Extent { bytes, most, least, unit, fewest, .. } = extent;
    let asked = match asked_for {
        None if most < least => bytes,
        None => most,
        Some(NewSize::Bytes(asked)) => asked,
        Some(NewSize::More(more)) => bytes.saturating_add(more),
        Some(NewSize::Less(less)) => bytes.saturating_sub(less),
        Some(NewSize::Least) => fewest,
    };
    let asked = asked / unit * unit;
    let what = format!("cannot resize {target} to {}", human_size(asked));
    if asked < bytes && fewest == bytes {
        let size = exact_size(bytes);
        let why = format!("it has {size}, {used} bytes are in use, and the least size that it can have now is {size}");
        let hint = "remove files or snapshots; `onode resize -n` tells how small it can become then. Or make a smaller one \
                    and bring the files there: `onode send` and `onode receive`, or `onode cp`";
        return Err(Error::new(Class::BadSize, what, why).hint(hint));
    }
    if asked > bytes && asked < least {
        let why = format!("it has {}, and the next size that it can have is {}", exact_size(bytes), exact_size(least));
        return Err(Error::new(Class::BadSize, what, why));
    }
    Ok(asked)
}

/// Whether there is room for what is in the volume.
fn check_room(extent: &Extent, bytes: u64, target: &str) -> Result<()> {
    if bytes >= extent.fewest {
        return Ok(());
    }
    let what = format!("cannot resize {target} to {}", human_size(bytes));
    let why = format!("what is in it needs about {}", exact_size(extent.fewest));
    Err(Error::new(Class::BadSize, what, why).hint("remove files or snapshots, or choose a larger size"))
}

/// A volume that this process has open.
struct Opened<'a> {
    volume: &'a Volume,
    what: String,
}

impl Resized for Opened<'_> {
    fn take(&self, disk: &str) -> Result<()> {
        self.volume.files().take_disk(disk).map_err(|error| match error.kind {
            ErrorKind::Invalid => Error::new(Class::Usage, self.what.as_str(), error.detail),
            _ => Volume::error(self.what.as_str(), &error),
        })
    }

    fn extent(&self) -> Result<Extent> {
        let extent = self.volume.files().extent();
        extent.map_err(|error| match self.volume.device().resizing() {
            Some(_) => Volume::error(self.what.as_str(), &error),
            None => Error::new(Class::Usage, self.what.as_str(), error.detail).hint(NOT_RESIZED),
        })
    }

    fn used(&self) -> u64 {
        let space = self.volume.device().space();
        space.total.saturating_sub(space.available)
    }

    fn set(&self, bytes: u64, before: &Extent) -> Result<()> {
        let set = match self.volume.device().resizing() {
            // Not by the files, which may be there in part and wait for room.
            Some(device) if bytes > before.bytes => device.grow(bytes).map_err(onode_fs::Error::from),
            _ => self.volume.files().begin_shrinking(bytes),
        };
        set.map_err(|error| Volume::error(self.what.as_str(), &error))
    }

    fn shrink(&self) -> Result<()> {
        self.volume.files().shrink_some().map(|_| ()).map_err(|error| Volume::error(self.what.as_str(), &error))
    }

    fn stay(&self) -> Result<()> {
        self.volume.files().stop_shrinking().map_err(|error| Volume::error(self.what.as_str(), &error))
    }
}

const NOT_RESIZED: &str = "volumes on flash, and pools of such, become larger and smaller, those on two disks larger: image files and \
    block devices. One on storage-class memory takes up a space or file that became longer when it is mounted \
    (`onode spaces resize`)";

/// A volume that is mounted.
struct Mounted<'a> {
    directory: &'a Path,
    what: String,
}

impl Mounted<'_> {
    fn send(&self, text: &str, explain: impl FnOnce(Errno) -> Option<Error>) -> Result<()> {
        self.send_as(SIZE, text, explain)
    }

    fn send_as(&self, name: &str, text: &str, explain: impl FnOnce(Errno) -> Option<Error>) -> Result<()> {
        let set = rustix::fs::setxattr(self.directory, name, text.as_bytes(), XattrFlags::empty());
        // What the file system would say in words comes as a number through the mount.
        set.map_err(|errno| match (explain(errno), errno) {
            (Some(error), _) => error,
            (_, Errno::PERM) => self.error(Class::Permission, "only root and the owner of the volume may"),
            (_, Errno::ROFS) => self.error(Class::ReadOnly, "it is mounted read-only"),
            (_, errno) => Error::host(&self.what, &errno.into()),
        })
    }

    fn error(&self, class: Class, why: &str) -> Error {
        Error::new(class, self.what.as_str(), why)
    }
}

impl Resized for Mounted<'_> {
    fn take(&self, disk: &str) -> Result<()> {
        self.send_as(DISK, disk, |errno| match errno {
            Errno::PERM => {
                Some(self.error(Class::Permission, "only root may give it another disk while it is mounted"))
            }
            Errno::OPNOTSUPP => {
                let why = "it lies on one medium, or its server is older than this command";
                Some(self.error(Class::Usage, why))
            }
            Errno::INVAL => {
                let why = format!("its server cannot use {disk}: it is not empty, too small, or of another kind");
                Some(self.error(Class::Usage, &why).hint("unmounted, the same command with the spec says more"))
            }
            Errno::BUSY | Errno::AGAIN => Some(self.error(Class::InUse, &format!("{disk} is in use"))),
            _ => None,
        })
    }

    fn extent(&self) -> Result<Extent> {
        let mut value = [0; BYTES_MAX];
        let length = rustix::fs::getxattr(self.directory, SIZE, &mut value[..]).map_err(|errno| match errno {
            Errno::OPNOTSUPP | Errno::NODATA => {
                self.error(Class::Usage, "a volume on this kind of device has one size").hint(NOT_RESIZED)
            }
            errno => Error::host(&self.what, &errno.into()),
        })?;
        let text = String::from_utf8_lossy(value.get(..length).unwrap_or_default()).into_owned();
        let mut numbers = text.split(' ').map(|number| number.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        let extent =
            Extent { bytes: next(), most: next(), least: next(), unit: next(), fewest: next(), moving: next() };
        if extent.unit == 0 || extent.fewest == 0 {
            let why = format!("its server tells a size that makes no sense: {text:?}");
            return Err(self.error(Class::General, &why).hint("unmount it and mount it again"));
        }
        Ok(extent)
    }

    fn used(&self) -> u64 {
        let counted = rustix::fs::statvfs(self.directory);
        counted.map_or(0, |space| space.f_blocks.saturating_sub(space.f_bfree).saturating_mul(space.f_frsize))
    }

    fn set(&self, bytes: u64, before: &Extent) -> Result<()> {
        let shrinks = bytes < before.bytes;
        self.send(&bytes.to_string(), |errno| match errno {
            Errno::NOSPC if shrinks => Some(self.no_room()),
            Errno::NOSPC => Some(self.error(Class::HostFull, "the file system that holds the image has no room")),
            Errno::INVAL => {
                let why = "its device cannot have that size, or the volume cannot change as it is";
                Some(self.error(Class::BadSize, why).hint("`onode resize -n` tells what there is room for"))
            }
            _ => None,
        })
    }

    fn shrink(&self) -> Result<()> {
        self.send(SHRINK_FURTHER, |errno| match errno {
            Errno::NOSPC => Some(self.no_room()),
            Errno::IO | Errno::UCLEAN => {
                let why = "something that would have to move is damaged; it stays where it is";
                Some(self.error(Class::Damaged, why).hint("`onode scrub` names the files"))
            }
            _ => None,
        })
    }

    fn stay(&self) -> Result<()> {
        self.send(STOP_SHRINKING, |_| None)
    }
}

impl Mounted<'_> {
    fn no_room(&self) -> Error {
        let why = "what is in it, or is being written, has no room in a volume of that size";
        self.error(Class::VolumeFull, why).hint("`onode resize -n` tells about how much is needed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_checked_before_anything_is_done() {
        let extent = Extent { bytes: 1000, most: 3050, least: 1200, unit: 100, fewest: 400, moving: 0 };
        let check = |asked_for| check(&extent, asked_for, 300, "disk").map_err(|error| error.class);
        assert_eq!(check(None), Ok(3000));
        assert_eq!(check(Some(NewSize::Bytes(1099))), Ok(1000));
        assert_eq!(check(Some(NewSize::Bytes(1100))), Err(Class::BadSize));
        assert_eq!(check(Some(NewSize::Bytes(999))), Ok(900));
        assert_eq!(check_room(&extent, 399, "disk").map_err(|error| error.class), Err(Class::BadSize));
        assert_eq!(check_room(&extent, 400, "disk").map_err(|error| error.class), Ok(()));
        assert_eq!(check(Some(NewSize::Less(550))), Ok(400));
        assert_eq!(check(Some(NewSize::Less(u64::MAX))), Ok(0));
        assert_eq!(check(Some(NewSize::Least)), Ok(400));
        assert_eq!(check(Some(NewSize::More(250))), Ok(1200));
        assert_eq!(check(Some(NewSize::More(u64::MAX))), Ok(u64::MAX / 100 * 100));
        assert_eq!(parse_new_size("+1K"), Ok(NewSize::More(1024)));
        assert_eq!(parse_new_size("-1K"), Ok(NewSize::Less(1024)));
        assert_eq!(parse_new_size("least"), Ok(NewSize::Least));
        assert!(parse_new_size("-").is_err() && parse_new_size("+").is_err());
    }

    #[test]
    fn a_device_that_has_no_more_leaves_the_volume_as_it_is() {
        let extent = Extent { bytes: 1000, most: 1000, least: 1200, unit: 100, fewest: 1000, moving: 0 };
        let check = |asked_for| check(&extent, asked_for, 300, "disk").map_err(|error| error.class);
        assert_eq!(check(None), Ok(1000));
        // Nor can it become smaller.
        assert_eq!(check(Some(NewSize::Least)), Ok(1000));
        assert_eq!(check(Some(NewSize::Bytes(900))), Err(Class::BadSize));
    }
}
