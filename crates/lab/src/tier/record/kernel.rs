//! A file system of the kernel on a loop device over a file that logs, as [`Files`].

use super::logged::{self, Log};
use crate::stream::Operation;
use crate::tier::failed;
use crate::tier::files::{Files, content};
use crate::tier::recording::{Done, Recording};
use fuser::BackgroundSession;
use onode::Result;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file system, mounted; dropping it takes everything away.
pub(super) struct Kernel {
    kind: &'static str,
    options: &'static str,
    place: PathBuf,
    device: String,
    session: Option<BackgroundSession>,
    log: Log,
    bytes: u64,
    content: Vec<u8>,
    buffer: Vec<u8>,
}

fn run(program: &str, arguments: &[&OsStr]) -> Result<String> {
    let what = format!("{program} failed");
    let output = Command::new(program).args(arguments).output().map_err(|error| failed(&what, error))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(failed(&what, String::from_utf8_lossy(&output.stderr).trim()))
    }
}

fn went(error: std::io::Error) -> onode::Error {
    failed("a system call failed", error)
}

impl Kernel {
    /// Makes a file system of `kind` of `bytes` in memory and mounts it with further `options`.
    pub(super) fn new(kind: &'static str, options: &'static str, bytes: u64, slow: bool) -> Result<Self> {
        let place = Path::new("/dev/shm").join(format!("onode-record-{}-{kind}", std::process::id()));
        for folder in ["file", "mount"] {
            fs::create_dir_all(place.join(folder)).map_err(went)?;
        }
        let log = Log::default();
        let mut kernel = Self {
            kind,
            options,
            place,
            device: String::new(),
            session: None,
            log,
            bytes,
            content: content(),
            buffer: vec![0; 4 << 20],
        };
        let backing = kernel.place.join("backing");
        let backing = File::options().read(true).write(true).create(true).truncate(true).open(backing).map_err(went)?;
        backing.set_len(bytes).map_err(went)?;
        let folder = kernel.place.join("file");
        kernel.session = Some(logged::serve(backing, bytes, &folder, &kernel.log, slow)?);
        let file = folder.join(logged::NAME);
        let arguments = ["--direct-io=on", "-f", "--show"].map(OsStr::new);
        kernel.device = run("losetup", &[&arguments[..], &[file.as_os_str()]].concat())?;
        let quiet: &[&OsStr] = if kind == "xfs" { &[] } else { &["-F".as_ref()] };
        run(&format!("mkfs.{kind}"), &[&["-q".as_ref()], quiet, &[kernel.device.as_ref()]].concat())?;
        kernel.mount()?;
        Ok(kernel)
    }

    fn root(&self) -> PathBuf {
        self.place.join("mount")
    }

    fn mount(&self) -> Result<()> {
        let options = ["noatime", self.options].into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>().join(",");
        let root = self.root();
        let arguments = ["-t", self.kind, "-o", &options, &self.device].map(OsStr::new);
        run("mount", &[&arguments[..], &[root.as_os_str()]].concat()).map(|_| ())
    }

    fn unmount(&self) -> Result<()> {
        run("umount", &[self.root().as_os_str()]).map(|_| ())
    }

    /// What happened on the disk, to the unmounting of the file system.
    pub(super) fn finish(self) -> Result<Recording> {
        self.unmount()?;
        Ok(Recording { disk_bytes: self.bytes, events: self.log.take() })
    }

    /// The file and its name are durable when this returns; a mount with `sync` sees to that
    /// itself.
    fn make_durable(&self, file: &File, path: &str, is_new: bool, durable: bool) -> Result<()> {
        if durable && self.options != "sync" {
            file.sync_all().map_err(went)?;
            if is_new {
                self.sync_parent(path)?;
            }
        }
        Ok(())
    }

    fn sync_parent(&self, path: &str) -> Result<()> {
        let full = self.root().join(path);
        let parent = full.parent().unwrap_or(&full);
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(went)
    }

    fn put(&self, file: &File, offset: u64, bytes: u64, call: u64) -> Result<()> {
        let mut done = 0;
        while done < bytes {
            let part = call.min(bytes - done).min(self.content.len() as u64);
            let piece = self.content.get(..part as usize).unwrap_or_default();
            file.write_all_at(piece, offset + done).map_err(went)?;
            done += part;
        }
        Ok(())
    }
}

impl Kernel {
    fn change(&self, change: &Operation) -> Result<()> {
        match change {
            Operation::Create(path, bytes) => self.make(path, *bytes, u64::MAX, true),
            Operation::Append(path, bytes) => self.extend(path, *bytes, u64::MAX, true),
            Operation::Delete(path) => self.remove(path, true),
            _ => Ok(()),
        }
    }

    fn make(&self, path: &str, bytes: u64, call: u64, durable: bool) -> Result<()> {
        let file = File::create(self.root().join(path)).map_err(went)?;
        self.put(&file, 0, bytes, call)?;
        self.make_durable(&file, path, true, durable)
    }

    fn extend(&self, path: &str, bytes: u64, call: u64, durable: bool) -> Result<()> {
        let file = File::options().write(true).open(self.root().join(path)).map_err(went)?;
        let offset = file.metadata().map_err(went)?.len();
        self.put(&file, offset, bytes, call)?;
        self.make_durable(&file, path, false, durable)
    }

    fn remove(&self, path: &str, durable: bool) -> Result<()> {
        fs::remove_file(self.root().join(path)).map_err(went)?;
        if durable && self.options != "sync" { self.sync_parent(path) } else { Ok(()) }
    }
}

impl Files for Kernel {
    fn make_directory(&mut self, path: &str) -> Result<()> {
        fs::create_dir_all(self.root().join(path)).map_err(went)
    }

    fn create(&mut self, path: &str, bytes: u64, call: u64, durable: bool) -> Result<()> {
        self.make(path, bytes, call, durable)
    }

    fn write(&mut self, path: &str, offset: u64, bytes: u64, call: u64, durable: bool) -> Result<()> {
        let file = File::options().write(true).open(self.root().join(path)).map_err(went)?;
        self.put(&file, offset, bytes, call)?;
        self.make_durable(&file, path, false, durable)
    }

    fn append(&mut self, path: &str, bytes: u64, call: u64, durable: bool) -> Result<()> {
        self.extend(path, bytes, call, durable)
    }

    fn read(&mut self, path: &str, offset: u64, bytes: u64, call: u64) -> Result<u64> {
        let file = File::open(self.root().join(path)).map_err(went)?;
        let mut done = 0;
        while done < bytes {
            let part = call.min(bytes - done).min(self.buffer.len() as u64);
            let got = file.read_at(self.buffer.get_mut(..part as usize).unwrap_or_default(), offset + done);
            let got = got.map_err(went)? as u64;
            if got == 0 {
                break;
            }
            done += got;
        }
        Ok(done)
    }

    fn delete(&mut self, path: &str, durable: bool) -> Result<()> {
        self.remove(path, durable)
    }

    fn at_once(&mut self, changes: &[Operation]) -> Result<()> {
        let kernel = &*self;
        std::thread::scope(|scope| {
            let one = |change| scope.spawn(move || kernel.change(change));
            let programs: Vec<_> = changes.iter().map(one).collect();
            programs.into_iter().try_for_each(|one| one.join().unwrap_or_else(|_| Err(failed("a program", "panicked"))))
        })
    }

    fn sync(&mut self) -> Result<()> {
        let root = File::open(self.root()).map_err(went)?;
        rustix::fs::syncfs(root).map_err(|error| went(error.into()))
    }

    fn remount(&mut self) -> Result<()> {
        self.unmount()?;
        self.mount()
    }

    fn begin(&mut self, phase: &str) {
        self.log.begin(phase);
    }

    fn end(&mut self, done: Done) {
        self.log.end(done);
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // Each step is worth trying whatever became of the one before.
        let _ = Command::new("umount").arg(self.root()).output();
        if !self.device.is_empty() {
            let _ = Command::new("losetup").args(["-d", &self.device]).output();
        }
        if let Some(session) = self.session.take() {
            let _ = session.umount_and_join();
        }
        let _ = fs::remove_dir_all(&self.place);
    }
}
