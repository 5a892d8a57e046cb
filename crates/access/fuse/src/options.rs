//! The options of a mount: what `-o` understands, and what holds when nothing is said.
//!
//! Options that only tell `mount(8)` or `fstab` what to do (`noauto`, `nofail`, `x-...`) are
//! accepted and left alone; anything else that is unknown is an error and never ignored.

use onode::{Class, Compression, Error, Result, Settings, WearPolicy, human_size, parse_size, wear_of};
use std::time::Duration;

/// Threads that read from the device if nothing is said: one for each processor, but at least so
/// many, so that one that waits for the medium does not stop all others, and at most so many.
const THREADS_LEAST: usize = 2;
const THREADS_MOST: usize = 8;
const SPIN_MAX: u64 = 1000;

/// When reading sets the access time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Atime {
    /// Never: a read costs no write.
    #[default]
    Never,
    /// If it is not newer than the last change, or a day old.
    Relative,
    /// At every read.
    Strict,
}

/// Whether requests come by io_uring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoUring {
    /// Where it can be had.
    #[default]
    Auto,
    /// In any case.
    On,
    /// Never.
    Off,
}

/// The options of one mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Nothing may change.
    pub read_only: bool,
    /// The volume is opened although it holds less than it promised.
    pub accept_loss: bool,
    /// Access times.
    pub atime: Atime,
    /// Set-user-id and set-group-id bits have their effect.
    pub suid: bool,
    /// Device nodes work.
    pub dev: bool,
    /// Programs can be started.
    pub exec: bool,
    /// Every change is on the medium when its call returns.
    pub sync: bool,
    /// All users reach the mount; permissions are checked by the kernel.
    pub allow_other: bool,
    /// The kernel gathers writes before it hands them over.
    pub writeback: bool,
    /// The kernel tells of each close of a file, so that a close can tell of a write-back that
    /// failed, and commits a file that was cut and written anew; `None` where nothing else would do
    /// what a close does.
    pub flush: Option<bool>,
    /// Threads that serve requests; `None` for as many as suit the way requests come.
    pub threads: Option<usize>,
    /// How long a server thread looks for the next request before it goes to sleep, while requests
    /// keep coming.
    pub spin: Duration,
    /// How many bytes the kernel reads ahead of a program that reads one after another. Where root
    /// does not mount, it is left as it is.
    pub read_ahead: u64,
    /// Whether requests come by io_uring.
    pub io_uring: IoUring,
    /// How content is compressed that is written from now on.
    pub compression: Compression,
    /// How the device spreads wear from now on; `None` keeps what the volume was made with.
    pub wear: Option<WearPolicy>,
    /// How long a scrub in the background takes over all that is stored; `None` for no scrubs.
    pub scrub: Option<Duration>,
    /// The snapshot or clone of this name is mounted, not the volume itself.
    pub state: Option<String>,
    /// Memory that was chosen; what was not suits the computer.
    pub memory: Memory,
}

/// Memory of a mount, as far as it was chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of what was written and the device does not have yet.
    pub write_cache: Option<u64>,
    /// Seconds after which what was written goes to the device.
    pub write_back_seconds: Option<u32>,
    /// Bytes of names.
    pub name_cache: Option<u64>,
    /// Inodes beyond those in use.
    pub inode_cache: Option<u32>,
    /// Memory of the device.
    pub device: Settings,
}

/// What memory can be chosen, from least to most.
const LEAST_BYTES: u64 = 64 << 10;
const LEAST_WRITE_BYTES: u64 = 1 << 20;
const MOST_BYTES: u64 = 1 << 40;
const MOST_SECONDS: u32 = 3600;
const MOST_SEGMENTS: u32 = 1 << 20;
/// How far the kernel reads ahead: usually, which halves the time of a long sequential read against
/// what FUSE offers at the start, and at most.
const READ_AHEAD: u64 = 1 << 20;
const READ_AHEAD_MOST: u64 = 1 << 30;
/// Requests after which even a disk that is to last long should have a copy.
const ADMIT_MOST: u64 = 9;
/// The longest period of scrubs in seconds.
const LONGEST_SCRUB: u64 = 3650 * 86_400;

impl Options {
    /// What holds when nothing is said. Root's mounts are for everybody, as those of other file
    /// systems are: permissions are always checked.
    #[must_use]
    pub fn new() -> Self {
        Self {
            read_only: false,
            accept_loss: false,
            atime: Atime::default(),
            suid: false,
            dev: false,
            exec: true,
            sync: false,
            allow_other: rustix::process::geteuid().is_root(),
            writeback: false,
            flush: None,
            threads: None,
            spin: Duration::ZERO,
            read_ahead: READ_AHEAD,
            io_uring: IoUring::default(),
            compression: Compression::Never,
            wear: None,
            scrub: None,
            state: None,
            memory: Memory::default(),
        }
    }

    /// Threads that read requests from the device of FUSE.
    pub(crate) fn device_threads(&self) -> usize {
        let usual = || std::thread::available_parallelism().map_or(1, usize::from).clamp(THREADS_LEAST, THREADS_MOST);
        self.threads.unwrap_or_else(usual)
    }

    /// Whether the close of a file is heard of: it may be the moment to commit what was written, or
    /// to tell that a write-back failed. It costs each close a request, so it is a choice. Where
    /// nothing is written, or each write returns when it is on the medium, there is nothing to do.
    #[must_use]
    pub const fn hears_closes(&self) -> bool {
        matches!(self.flush, Some(true)) && !self.read_only && !self.sync
    }

    /// Takes in a comma-separated list as `-o` has it; later ones win.
    ///
    /// # Errors
    /// `Usage`, quoting the option that is unknown or has a wrong value.
    pub fn apply(&mut self, list: &str) -> Result<()> {
        for option in list.split(',').filter(|option| !option.is_empty()) {
            self.apply_one(option)?;
        }
        Ok(())
    }

    fn apply_one(&mut self, option: &str) -> Result<()> {
        match option {
            "ro" => self.read_only = true,
            "rw" => self.read_only = false,
            "accept-loss" => self.accept_loss = true,
            "noatime" => self.atime = Atime::Never,
            "relatime" | "atime" => self.atime = Atime::Relative,
            "strictatime" => self.atime = Atime::Strict,
            "suid" => self.suid = true,
            "nosuid" => self.suid = false,
            "dev" => self.dev = true,
            "nodev" => self.dev = false,
            "exec" => self.exec = true,
            "noexec" => self.exec = false,
            // What changes names alone is not told apart from what changes content.
            "sync" | "dirsync" => self.sync = true,
            "async" => self.sync = false,
            "allow_other" => self.allow_other = true,
            "noallow_other" => self.allow_other = false,
            "writeback" => self.writeback = true,
            "nowriteback" => self.writeback = false,
            "flush" => self.flush = Some(true),
            "noflush" => self.flush = Some(false),
            "defaults"
            | "default_permissions"
            | "auto"
            | "noauto"
            | "nofail"
            | "_netdev"
            | "user"
            | "nouser"
            | "users"
            | "owner"
            | "group"
            | "diratime"
            | "nodiratime"
            | "silent"
            | "loud"
            | "lazytime"
            | "nolazytime"
            // What is done anyway.
            | "discard"
            | "errors=remount-ro" => {}
            _ => return self.apply_value(option),
        }
        Ok(())
    }

    fn apply_value(&mut self, option: &str) -> Result<()> {
        fn refused<T>(why: String) -> Result<T> {
            Err(Error::new(Class::Usage, "cannot mount", why).hint(
                "the options are ro, rw, noatime, relatime, strictatime, atime=never|relative|strict, suid, dev, noexec, sync, allow_other, noallow_other, \
                 writeback, flush, noflush, threads=N, spin=MICROSECONDS, io-uring=auto|on|off, compress=none|fast|small|auto, \
                 write-cache=SIZE, write-back=SECONDS, name-cache=SIZE, inode-cache=COUNT, node-cache=SIZE, \
                 page-cache=SIZE, checkpoint=SIZE, clean-ahead=SEGMENTS, fast-daily=SIZE, fast-sequential=SIZE, fast-collect=SECONDS, fast-admit=REQUESTS, read-ahead=SIZE, wear=POLICY, scrub=PERIOD, snapshot=NAME, clone=NAME, accept-loss, log=FILE, log-level=LEVEL, metrics=FILE and hook=PROGRAM",
            ))
        }
        let bytes = |value: &str, least: u64| match parse_size(value) {
            Ok(bytes) if (least..=MOST_BYTES).contains(&bytes) => Ok(Some(bytes)),
            Ok(_) => refused(format!("`{option}`: it is between {} and {}", human_size(least), human_size(MOST_BYTES))),
            Err(why) => refused(format!("`{option}`: {why}")),
        };
        let count = |value: &str, most: u32| match value.parse() {
            Ok(count) if (1..=most).contains(&count) => Ok(Some(count)),
            _ => refused(format!("`{option}`: it is a number between 1 and {most}")),
        };
        match option.split_once('=') {
            Some(("write-cache", value)) => self.memory.write_cache = bytes(value, LEAST_WRITE_BYTES)?,
            Some(("name-cache", value)) => self.memory.name_cache = bytes(value, LEAST_BYTES)?,
            Some(("node-cache", value)) => self.memory.device.node_cache_bytes = bytes(value, LEAST_BYTES)?,
            Some(("page-cache", value)) => self.memory.device.page_cache_bytes = bytes(value, LEAST_BYTES)?,
            Some(("checkpoint", value)) => self.memory.device.checkpoint_bytes = bytes(value, LEAST_BYTES)?,
            Some(("clean-ahead", value)) => {
                self.memory.device.clean_ahead = count(value, MOST_SEGMENTS)?.map(u64::from);
            }
            Some(("fast-daily", value)) => self.memory.device.fast_daily_bytes = bytes(value, LEAST_WRITE_BYTES)?,
            Some(("fast-sequential", value)) => self.memory.device.fast_sequential_bytes = bytes(value, 0)?,
            Some(("fast-collect", value)) => {
                self.memory.device.fast_collect_seconds = count(value, MOST_SECONDS)?.map(u64::from);
            }
            Some(("fast-admit", value)) => match value.parse() {
                Ok(admit @ 0..=ADMIT_MOST) => self.memory.device.fast_admit = Some(admit),
                _ => return refused(format!("`{option}`: it is the first to the {ADMIT_MOST}th request, or 0")),
            },
            Some(("read-ahead", value)) => match parse_size(value) {
                Ok(bytes @ 0..=READ_AHEAD_MOST) => self.read_ahead = bytes,
                _ => return refused(format!("`{option}`: the kernel reads 0 to 1 GiB ahead")),
            },
            Some(("inode-cache", value)) => self.memory.inode_cache = count(value, u32::MAX)?,
            Some(("write-back", value)) => self.memory.write_back_seconds = count(value, MOST_SECONDS)?,
            Some(("threads", value)) => match value.parse() {
                Ok(threads @ 1..=64) => self.threads = Some(threads),
                _ => return refused(format!("`{option}`: the number of threads is between 1 and 64")),
            },
            Some(("spin", value)) => match value.parse() {
                Ok(microseconds @ 0..=SPIN_MAX) => self.spin = Duration::from_micros(microseconds),
                _ => return refused(format!("`{option}`: a server thread looks for 0 to {SPIN_MAX} microseconds")),
            },
            Some(("io-uring", value)) => match value {
                "auto" => self.io_uring = IoUring::Auto,
                "on" => self.io_uring = IoUring::On,
                "off" => self.io_uring = IoUring::Off,
                _ => return refused(format!("`{option}`: requests come by io_uring auto, on or off")),
            },
            Some(("atime", value)) => match value {
                "never" => self.atime = Atime::Never,
                "relative" => self.atime = Atime::Relative,
                "strict" => self.atime = Atime::Strict,
                _ => return refused(format!("`{option}`: reading sets access times never, relative or strict")),
            },
            Some(("compress", value)) => match Compression::from_name(value) {
                Some(compression) => self.compression = compression,
                None => return refused(format!("`{option}`: content is compressed as none, fast, small or auto")),
            },
            Some(("scrub", value)) => match period_of(value) {
                Ok(period) => self.scrub = period,
                Err(why) => return refused(format!("`{option}`: {why}")),
            },
            Some(("snapshot", name)) if !name.is_empty() => {
                self.state = Some(name.to_owned());
                self.read_only = true;
            }
            Some(("clone", name)) if !name.is_empty() => self.state = Some(name.to_owned()),
            Some(("wear", value)) => self.wear = Some(wear_of("cannot mount", value)?),
            // What mount(8) repeats from the kernel's table when it changes a mount.
            Some(("comment" | "user_id" | "group_id" | "rootmode" | "max_read" | "blksize" | "subtype", _)) => {}
            _ if option.starts_with("x-") || option.starts_with("X-") => {}
            _ => return refused(format!("`{option}` is not an option")),
        }
        Ok(())
    }
}

/// The period of scrubs in words: a number and a unit, or `off`.
fn period_of(text: &str) -> std::result::Result<Option<Duration>, String> {
    let wrong = "a scrub takes a number and a unit: s, m, h, d or w, for example 30d or 12h; or off";
    if text == "off" {
        return Ok(None);
    }
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(wrong.to_owned()),
    };
    let period = digits.parse::<u64>().map_err(|_| wrong.to_owned())?.saturating_mul(seconds);
    match period {
        1..=LONGEST_SCRUB => Ok(Some(Duration::from_secs(period))),
        _ => Err("a scrub takes between 1s and 3650d".to_owned()),
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_options_win() {
        let mut options = Options::new();
        options
            .apply("ro,strictatime,atime=never,dev,,threads=4,x-systemd.automount,wear=off,noflush,spin=7,io-uring=off,rw,wear=static,compress=small,compress=fast")
            .expect("valid");
        assert_eq!(options.wear, Some(WearPolicy::Static));
        assert_eq!(options.compression, Compression::Fast);
        assert!(!options.read_only && options.dev && !options.suid);
        assert_eq!((options.atime, options.threads), (Atime::Never, Some(4)));
        assert_eq!(
            (options.flush, options.spin, options.io_uring),
            (Some(false), Duration::from_micros(7), IoUring::Off)
        );
        let text = "write-cache=64M,node-cache=1G,page-cache=64K,write-back=30,name-cache=1M,inode-cache=7,node-cache=2G,\
             checkpoint=1M,clean-ahead=20,fast-daily=10G,fast-sequential=0,fast-collect=9,fast-admit=0,read-ahead=0,scrub=off,scrub=30d";
        options.apply(text).expect("valid");
        let device = Settings {
            node_cache_bytes: Some(2 << 30),
            page_cache_bytes: Some(64 << 10),
            checkpoint_bytes: Some(1 << 20),
            clean_ahead: Some(20),
            fast_daily_bytes: Some(10 << 30),
            fast_sequential_bytes: Some(0),
            fast_collect_seconds: Some(9),
            fast_admit: Some(0),
        };
        let memory = Memory {
            write_cache: Some(64 << 20),
            write_back_seconds: Some(30),
            name_cache: Some(1 << 20),
            inode_cache: Some(7),
            device,
        };
        assert_eq!((options.memory, options.read_ahead), (memory, 0));
        assert_eq!(options.scrub, Some(Duration::from_secs(30 * 86_400)));
        for (text, seconds) in [("1s", 1), ("15m", 900), ("12h", 43_200), ("2w", 1_209_600), ("3650d", 315_360_000)] {
            assert_eq!(period_of(text), Ok(Some(Duration::from_secs(seconds))), "{text}");
        }
        options.apply("scrub=off").expect("valid");
        let usual = Options::new();
        assert_eq!((options.scrub, usual.scrub), (None, None));
        assert!(
            usual.flush.is_none()
                && usual.spin.is_zero()
                && (THREADS_LEAST..=THREADS_MOST).contains(&usual.device_threads())
        );
    }

    #[test]
    fn unknown_options_are_errors() {
        for list in [
            "colour",
            "threads=0",
            "threads=many",
            "spin=1001",
            "spin=-1",
            "io-uring=yes",
            "checkpoint=1K",
            "clean-ahead=0",
            "read-ahead=2G",
            "ro=1",
            "wear=none",
            "compress=zip",
            "atime=often",
            "write-cache=4K",
            "node-cache=",
            "page-cache=2T",
            "inode-cache=0",
            "write-back=1d",
            "scrub=30",
            "scrub=d",
            "scrub=0d",
            "scrub=-1d",
            "scrub=1 d",
            "scrub=1y",
            "scrub=3651d",
            "scrub=99999999999999999999d",
            "scrub=on",
            "scrub=",
        ] {
            let error = Options::new().apply(list).expect_err(list);
            assert!(error.why.contains(list.strip_prefix("wear=").unwrap_or(list)), "{error}");
            assert_eq!(error.class, Class::Usage);
        }
    }
}
