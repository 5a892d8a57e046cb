//! What the tests of the command share: a directory of their own, the command, and a clean end.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

static NUMBER: AtomicU32 = AtomicU32::new(0);
/// How often to look for something that must come soon.
const POLL: Duration = Duration::from_millis(20);
/// Looks until a test gives up: 20 seconds.
const POLLS: u32 = 1000;

/// A directory that is gone at the end, together with everything mounted in it.
pub struct Place {
    root: PathBuf,
}

impl Place {
    pub fn new(name: &str) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("onode-cli-{}-{number}-{name}", std::process::id()));
        fs::create_dir_all(&root).expect("temporary directory");
        Self { root: root.canonicalize().expect("real path") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).expect("directory");
        path
    }

    pub fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("file");
        path
    }

    /// A copy of the command. Another process makes it: a program that some process has open to
    /// write cannot be run, and what other tests start meanwhile has our open files for a moment.
    pub fn command(&self) -> PathBuf {
        let path = self.path("onode");
        assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_onode")).arg(&path).status().expect("cp").success());
        path
    }

    /// A new image of 64 MiB.
    pub fn image(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        onode().arg("mkfs").args(["--size", "64M"]).arg(&path).succeeds();
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for path in mounts_below(&self.root) {
            let _ = Command::new("umount").arg("-l").arg(path).status();
        }
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn mounts_below(root: &Path) -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
    let mut found: Vec<PathBuf> = points.filter(|point| point.starts_with(root)).collect();
    found.reverse();
    found
}

pub fn is_mounted(path: &Path) -> bool {
    mounts_below(path).iter().any(|point| point == path)
}

/// The command.
pub fn onode() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onode"));
    command.stdin(Stdio::null());
    command
}

/// Runs `onode` with arguments of several types.
macro_rules! onode {
    ($($argument:expr),* $(,)?) => {{
        let mut command = $crate::common::onode();
        $(command.arg($argument);)*
        command
    }};
}

/// What is expected of a command that runs to its end.
pub trait Expect {
    fn succeeds(&mut self) -> String;
    fn fails(&mut self, code: i32) -> String;
}

impl Expect for Command {
    /// Exit code 0; returns standard output.
    fn succeeds(&mut self) -> String {
        let output = self.output().expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{self:?}: {}", both(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// That exit code and a message with its parts; returns standard error.
    fn fails(&mut self, code: i32) -> String {
        let output = self.output().expect("it starts");
        assert_eq!(output.status.code(), Some(code), "{self:?}: {}", both(&output));
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(!error.contains("panicked") && !error.contains("internal error"), "{error}");
        error
    }
}

fn both(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Unmounts a directory. A process that another test is just starting has our open files until it
/// has begun its own program, so the mount may be in use for a moment.
pub fn unmount(directory: &Path) {
    for _ in 0..50 {
        let output = onode().arg("umount").arg(directory).output().expect("it starts");
        if output.status.success() {
            return;
        }
        assert!(both(&output).contains("files in it are open"), "{}", both(&output));
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    onode().arg("umount").arg(directory).succeeds();
}

/// That a message is one sentence with a hint.
pub fn is_clear(error: &str, quoted: impl AsRef<OsStr>) {
    let quoted = quoted.as_ref().to_string_lossy();
    assert!(error.starts_with("onode: cannot "), "no clear sentence: {error}");
    assert!(error.contains(&*quoted), "{quoted} is not named: {error}");
    assert!(error.lines().count() >= 2 && error.contains("\nhint: "), "no hint: {error}");
}

/// Whether mounts work here; says so if not.
pub fn has_fuse() -> bool {
    let there = Path::new("/dev/fuse").exists();
    if !there {
        eprintln!("skipped: no /dev/fuse");
    }
    there
}

/// Whether the test runs as root; says so if not.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    let root = fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0);
    if !root {
        eprintln!("skipped: not root");
    }
    root
}

/// Waits until `condition` holds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..POLLS {
        if condition() {
            return;
        }
        sleep(POLL);
    }
    panic!("waited in vain: {what}");
}

/// A command that runs while the test goes on; killed if the test fails.
pub struct Running {
    child: Option<Child>,
    seen: Vec<u8>,
    seen_errors: Vec<u8>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        Self { child: Some(child), seen: Vec::new(), seen_errors: Vec::new() }
    }

    /// `onode up`, live when it returns.
    pub fn up(directory: &Path, image: &Path) -> Self {
        let running = Self::start(&mut onode!("up", directory, image));
        wait_until("the mount is live", || is_mounted(directory));
        running
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.as_ref().expect("running").id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().expect("kill");
        assert!(sent.success());
    }

    /// Waits until it has printed this.
    pub fn wait_for(&mut self, text: &str) {
        let output = self.child.as_mut().and_then(|child| child.stdout.as_mut()).expect("running");
        let mut byte = [0];
        while !self.seen.ends_with(text.as_bytes()) && output.read(&mut byte).expect("its output") == 1 {
            self.seen.push(byte[0]);
        }
    }

    /// Waits until it has told a line with this on standard error.
    pub fn wait_for_error(&mut self, text: &str) {
        let output = self.child.as_mut().and_then(|child| child.stderr.as_mut()).expect("running");
        let mut byte = [0];
        while !self.seen_errors.ends_with(text.as_bytes()) && output.read(&mut byte).expect("its output") == 1 {
            self.seen_errors.push(byte[0]);
        }
    }

    /// Waits for its end.
    pub fn end(mut self) -> Output {
        let mut output = self.child.take().expect("running").wait_with_output().expect("it ends");
        output.stdout.splice(..0, self.seen.drain(..));
        output.stderr.splice(..0, self.seen_errors.drain(..));
        output
    }

    /// Waits for its end, which must be a good one; returns standard output.
    pub fn ends_well(self) -> String {
        let output = self.end();
        assert_eq!(output.status.code(), Some(0), "{}", both(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Bytes that do not shrink, other ones for each seed.
pub fn bytes(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}
