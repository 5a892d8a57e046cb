//! Mount points: what is there now, whether it can be used, and how to take a dead mount away.
//!
//! The truth is the kernel's table of mounts. A mount whose process died still stands there and
//! answers every call with "Transport endpoint is not connected"; it is recognised and removed.

use crate::options::Options;
use onode::{Class, Error, Result, Spec};
use rustix::mount::{MountFlags, UnmountFlags, mount_remount, unmount};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name by which the kernel shows our mounts.
pub const TYPE_NAME: &str = "fuse.onode";

/// One line of the kernel's table of mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// Where.
    pub directory: PathBuf,
    /// What kind of file system.
    pub type_name: String,
    /// What was mounted: for our mounts the device spec.
    pub source: OsString,
    /// Major and minor number of the device, as `0:42`.
    pub device: String,
    /// The user who mounted it, if the file system tells.
    pub owner: Option<u32>,
    /// The kernel's options of it, as `rw,nosuid,noatime`.
    pub options: String,
}

/// How the specs of devices with a path begin.
const KINDS: [&[u8]; 4] = [b"flash:", b"scm:", b"flash+scm:", b"tier:"];

impl Mounted {
    /// Whether it is a mount of Onode.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.type_name == TYPE_NAME
    }

    /// The image file of a mount of ours.
    #[must_use]
    pub fn image_path(&self) -> Option<PathBuf> {
        let source = self.source.as_bytes();
        let of_kind = |kind: &&[u8]| source.strip_prefix(*kind);
        let path = self.is_ours().then(|| KINDS.iter().find_map(of_kind))??;
        // A name of a file that is there may have commas; others end at one.
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        if path.exists() {
            return Some(path);
        }
        Spec::parse(self.source.to_str()?).ok()?.image_path().map(Path::to_owned)
    }
}

/// What is mounted right at `directory` now; the last one if there are several.
///
/// # Errors
/// If the kernel's table cannot be read.
pub fn mounted_at(directory: &Path) -> Result<Option<Mounted>> {
    let directory = absolute(directory)?;
    Ok(all_mounts()?.into_iter().rev().find(|mounted| mounted.directory == directory))
}

/// Our mount at a directory; `what` cannot be done without it.
///
/// # Errors
/// `MountPoint` if there is none.
pub fn our_mount_at(directory: &Path, what: String) -> Result<Mounted> {
    mounted_at(directory)?.filter(Mounted::is_ours).ok_or_else(|| no_mount(what))
}

/// That `what` cannot be done because none of our volumes is mounted there.
#[must_use]
pub fn no_mount(what: String) -> Error {
    Error::new(Class::MountPoint, what, "no Onode volume is mounted there")
        .hint("`findmnt -t fuse.onode` lists the mounts")
}

/// Every mount.
///
/// # Errors
/// If the kernel's table cannot be read.
pub fn all_mounts() -> Result<Vec<Mounted>> {
    const TABLE: &str = "/proc/self/mountinfo";
    let table = std::fs::read(TABLE).map_err(|error| Error::host_file("read", Path::new(TABLE), &error))?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(parse_line).collect())
}

/// The mount that serves the volume of `spec` now, if there is one.
#[must_use]
pub fn mount_of(spec: &Spec) -> Option<Mounted> {
    let wanted = spec.image_path()?.canonicalize().ok()?;
    let mut mounts = all_mounts().ok()?.into_iter().filter(Mounted::is_ours);
    mounts.find(|mounted| mounted.image_path().is_some_and(|path| path == wanted))
}

/// `36 35 0:42 / /mnt rw,noatime shared:1 - fuse.onode disk.img rw`: the fields before the lone
/// dash vary in number.
fn parse_line(line: &[u8]) -> Option<Mounted> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let dash = fields.iter().position(|field| *field == b"-")?;
    Some(Mounted {
        directory: PathBuf::from(unescape(fields.get(4)?)),
        type_name: String::from_utf8_lossy(fields.get(dash + 1)?).into_owned(),
        source: unescape(fields.get(dash + 2)?),
        device: String::from_utf8_lossy(fields.get(2)?).into_owned(),
        owner: fields.get(dash + 3).and_then(|options| owner_in(options)),
        options: String::from_utf8_lossy(fields.get(5)?).into_owned(),
    })
}

fn owner_in(options: &[u8]) -> Option<u32> {
    let owner = options.split(|byte| *byte == b',').find_map(|option| option.strip_prefix(b"user_id="))?;
    std::str::from_utf8(owner).ok()?.parse().ok()
}

/// Blanks and backslashes stand as `\ooo` in the table.
fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let code = if *first == b'\\' { tail.get(..3).and_then(octal) } else { None };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { tail.get(3..).unwrap_or_default() } else { tail };
    }
    OsString::from_vec(bytes)
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

/// The path without links and dots. The last part may be a dead mount, so only what leads to it is
/// resolved by asking the file system.
fn absolute(path: &Path) -> Result<PathBuf> {
    let wrong = |error: &io::Error| {
        let hint = format!("make it first: mkdir -p {}", path.display());
        Error::new(Class::MountPoint, format!("cannot use {} as a mount point", path.display()), error.to_string())
            .hint(hint)
    };
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(error) if is_disconnected(&error) => {
            let whole = std::path::absolute(path).map_err(|error| wrong(&error))?;
            match (whole.parent().map(Path::canonicalize), whole.file_name()) {
                (Some(Ok(parent)), Some(name)) => Ok(parent.join(name)),
                _ => Ok(whole),
            }
        }
        Err(error) => Err(wrong(&error)),
    }
}

/// Whether an error says that the server of a mount is gone.
#[must_use]
pub fn is_disconnected(error: &io::Error) -> bool {
    // Where requests come by io_uring, the connection is cut a moment after the process is gone,
    // and what was asked meanwhile is cancelled.
    let told = [libc::ENOTCONN, libc::ECONNABORTED, libc::ECANCELED];
    error.raw_os_error().is_some_and(|number| told.contains(&number))
}

/// Whether a mount without a living process stands at `directory`. Attributes may come from the
/// kernel's memory; the figures of a file system never do.
#[must_use]
pub fn is_dead(directory: &Path) -> bool {
    rustix::fs::statfs(directory).is_err_and(|errno| is_disconnected(&errno.into()))
}

/// Makes sure that something can be mounted at `directory`: it exists, is a directory, is empty and
/// nothing is mounted there. A dead mount of ours is taken away first; returns whether there was
/// one.
///
/// # Errors
/// `MountPoint` with what stands in the way.
pub fn prepare(directory: &Path) -> Result<bool> {
    let refuse = |why: &str, hint: String| {
        let what = format!("cannot use {} as a mount point", directory.display());
        Err(Error::new(Class::MountPoint, what, why).hint(hint))
    };
    let was_dead = is_dead(directory);
    if was_dead {
        detach(directory)?;
    }
    match std::fs::metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return refuse("there is no such directory", format!("make it first: mkdir -p {}", directory.display()));
        }
        Err(error) => return refuse(&error.to_string(), "choose a directory that you can reach".to_owned()),
        Ok(metadata) if !metadata.is_dir() => {
            return refuse("it is not a directory", "choose an empty directory".to_owned());
        }
        Ok(_) => {}
    }
    if let Some(mounted) = mounted_at(directory)? {
        let why = format!("{} is mounted there already", mounted.source.to_string_lossy());
        return refuse(&why, format!("unmount it first: onode umount {}", directory.display()));
    }
    match std::fs::read_dir(directory).map(|mut entries| entries.next().is_some()) {
        Ok(false) => Ok(was_dead),
        Ok(true) => refuse("it is not empty", "choose an empty directory; its files would be hidden".to_owned()),
        Err(error) => refuse(&error.to_string(), "choose a directory that you can read".to_owned()),
    }
}

/// Unmounts `directory`.
///
/// # Errors
/// `InUse` if files in it are open, `Permission`, `MountPoint` if nothing is mounted there.
pub fn release(directory: &Path) -> Result<()> {
    take_away(directory, UnmountFlags::empty())
}

/// Takes the mount at `directory` out of sight at once; it ends when its last file is closed.
///
/// # Errors
/// `Permission`, `MountPoint` if nothing is mounted there.
pub fn detach(directory: &Path) -> Result<()> {
    take_away(directory, UnmountFlags::DETACH)
}

/// The same for a mount that nobody serves any more: whoever waits for it gets an error.
pub(crate) fn abort(directory: &Path) {
    if unmount(directory, UnmountFlags::DETACH | UnmountFlags::FORCE).is_err() {
        // If it cannot be taken out of sight either, it is a dead mount, which the next one clears.
        let _ = detach(directory);
    }
}

/// Gives a mount of ours the kernel's part of `options`: read-only, set-id bits, devices, programs.
/// Access times stay what its server was told.
///
/// # Errors
/// `MountPoint` if no volume of ours is mounted there, `Permission`, `InUse` if files are open for
/// writing that may not change any more.
pub fn remount(directory: &Path, options: &Options) -> Result<()> {
    let what = format!("cannot change the mount at {}", directory.display());
    let mounted = our_mount_at(directory, what.clone())?;
    let has = |option| mounted.options.split(',').any(|one| one == option);
    let access_times = match (has("noatime"), has("relatime")) {
        (true, _) => MountFlags::NOATIME,
        (false, true) => MountFlags::RELATIME,
        (false, false) => MountFlags::STRICTATIME,
    };
    mount_again(directory, options, access_times, what)
}

/// Has the kernel's table tell that every read renews the access time. Only root may; without it
/// everything works as well.
pub(crate) fn show_strict_access_times(directory: &Path, options: &Options) {
    let _ = mount_again(directory, options, MountFlags::STRICTATIME, String::new());
}

fn mount_again(directory: &Path, options: &Options, access_times: MountFlags, what: String) -> Result<()> {
    let mut flags = access_times;
    for (wanted, flag) in [
        (options.read_only, MountFlags::RDONLY),
        (!options.suid, MountFlags::NOSUID),
        (!options.dev, MountFlags::NODEV),
        (!options.exec, MountFlags::NOEXEC),
        (options.sync, MountFlags::SYNCHRONOUS),
    ] {
        flags.set(flag, wanted);
    }
    mount_remount(directory, flags, c"").map_err(|errno| match errno {
        rustix::io::Errno::BUSY => Error::new(Class::InUse, what, "files in it are open for writing"),
        other => Error::host(what, &io::Error::from(other)),
    })
}

fn take_away(directory: &Path, flags: UnmountFlags) -> Result<()> {
    let what = format!("cannot unmount {}", directory.display());
    let Err(errno) = unmount(directory, flags) else { return Ok(()) };
    match errno {
        rustix::io::Errno::PERM => with_helper(directory, flags, what),
        rustix::io::Errno::BUSY => {
            Err(Error::new(Class::InUse, what, "files in it are open or it is a working directory").hint(format!(
                "find who uses it with `fuser -vm {0}`, or use `onode umount --lazy {0}`",
                directory.display()
            )))
        }
        rustix::io::Errno::INVAL => Err(Error::new(Class::MountPoint, what, "nothing is mounted there")
            .hint("`findmnt -t fuse.onode` lists the mounts")),
        rustix::io::Errno::NOENT => Err(Error::new(Class::MountPoint, what, "there is no such directory")),
        other => Err(Error::host(what, &io::Error::from(other))),
    }
}

/// Users other than root unmount through the setuid helper of FUSE.
fn with_helper(directory: &Path, flags: UnmountFlags, what: String) -> Result<()> {
    let mut why = "you are not root, and the program fusermount3 is not there".to_owned();
    for program in ["fusermount3", "fusermount"] {
        let mut command = Command::new(program);
        command.arg("-u");
        if flags.contains(UnmountFlags::DETACH) {
            command.arg("-z");
        }
        match command.arg("--").arg(directory).output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                let class = if why.contains("busy") { Class::InUse } else { Class::Permission };
                return Err(Error::new(class, what, why));
            }
            Err(_) => {}
        }
    }
    Err(Error::new(Class::Permission, what, why).hint("run it as root, or install the package fuse3"))
}

/// Lets the kernel read so many bytes ahead. Only root may; without it everything works as well.
pub(crate) fn set_read_ahead(directory: &Path, bytes: u64) {
    if let Ok(Some(mounted)) = mounted_at(directory) {
        let setting = format!("/sys/class/bdi/{}/read_ahead_kb", mounted.device);
        let _ = std::fs::write(setting, (bytes / 1024).to_string());
    }
}

/// What the kernel's table shows as the source of a mount: the spec to mount it with again.
pub(crate) fn source_name(spec: &Spec) -> String {
    let text = spec.clone().again().to_string();
    let line = text.split('\n').next().unwrap_or_default();
    if rustix::process::geteuid().is_root() {
        return line.to_owned();
    }
    // The helper of FUSE gets it in a list with commas.
    line.chars().flat_map(|char| ['\\', char].into_iter().skip(usize::from(!matches!(char, ',' | '\\')))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_table_are_read() {
        let line =
            br"36 35 0:42 / /mnt/with\040blank rw,noatime shared:1 - fuse.onode a\134b.img rw,user_id=7,group_id=0";
        let mounted = parse_line(line).expect("a line");
        assert_eq!(mounted.directory, Path::new("/mnt/with blank"));
        assert_eq!(mounted.source, OsString::from(r"a\b.img"));
        assert_eq!((mounted.device.as_str(), mounted.owner), ("0:42", Some(7)));
        assert_eq!(mounted.options, "rw,noatime");
        assert!(mounted.is_ours());
        assert_eq!(parse_line(b"36 35 0:42 / /mnt"), None);
        assert_eq!(parse_line(b""), None);
    }

    #[test]
    fn the_source_leads_to_the_image() {
        let of = |source: &str| {
            let line = format!("36 35 0:42 / /mnt rw,noatime shared:1 - fuse.onode {source} rw");
            parse_line(line.as_bytes()).unwrap().image_path()
        };
        assert_eq!(of("flash:/x/disk.img"), Some(PathBuf::from("/x/disk.img")));
        assert_eq!(of("flash+scm:/x/disk.img,/x/index,buffer=on"), Some(PathBuf::from("/x/disk.img")));
        assert_eq!(of("tier:/x/ssd,/x/hdd,fast=none"), Some(PathBuf::from("/x/hdd")));
        assert_eq!(of("scm:/x/heap,mode=mem"), Some(PathBuf::from("/x/heap")));
        assert_eq!(of("ram:size=16777216"), None);
        let file = std::env::temp_dir().join(format!("onode,comma,{}", std::process::id()));
        std::fs::write(&file, b"").unwrap();
        assert_eq!(of(&format!("flash:{}", file.display())).as_ref(), Some(&file));
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn the_root_is_mounted() {
        assert!(mounted_at(Path::new("/")).expect("table").is_some_and(|mounted| !mounted.is_ours()));
    }

    #[test]
    fn what_cannot_be_a_mount_point_is_said() {
        let directory = std::env::temp_dir().join(format!("onode-mountpoint-{}", std::process::id()));
        let class = |path: &Path| prepare(path).expect_err("refused").class;
        assert_eq!(class(&directory), Class::MountPoint);
        std::fs::create_dir_all(directory.join("full")).expect("create");
        assert_eq!(class(&directory), Class::MountPoint);
        assert_eq!(prepare(&directory.join("full")), Ok(false));
        std::fs::write(directory.join("file"), b"").expect("write");
        assert_eq!(class(&directory.join("file")), Class::MountPoint);
        assert_eq!(class(Path::new("/")), Class::MountPoint);
        std::fs::remove_dir_all(&directory).expect("remove");
    }
}
