//! Our file system on a device over simulated disks of one host, as [`Files`].
//!
//! Disks and host share a clock: what one disk does while another works costs no time, and the
//! processor none at all. A program reads and writes by calls of the file system in this process.
//! Through a mount, the kernel would remember what was written and read, as it does for its own
//! file systems, and ask for it once only; so do we: a file that was made or read whole since the
//! last mount is not read again. What is read in order it reads ahead, two requests at a time.

use super::files::{CONTENT_BYTES, Files, content};
use super::model::{Phase, Requests};
use super::recording::Done;
use crate::stream::Operation;
use onode::{Error, Result, Volume};
use onode_base::{Clock, Prng, Timestamp};
use onode_fs::{Caller, FileSystem, FormatOptions, InodeNumber, OpenFlags, Options};
use onode_media::BlockDev;
use onode_media::sim::disk::{HostClock, SimDisk};
use onode_object::ObjectDevice;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Where virtual time begins; far enough from 1970 that nothing is near zero.
const EPOCH_NANOSECONDS: u64 = 1_000_000_000_000_000_000;
const HASH_KEY: [u8; 16] = *b"onode lab names.";
/// What a kernel reads ahead in one request.
const AHEAD_BYTES: u64 = 128 << 10;
const UUID: [u8; 16] = *b"onode lab volume";

/// Opens the device on the disks: a new one, or the one that is there.
pub(super) type Open = dyn Fn(&[SimDisk], bool) -> Result<Arc<dyn ObjectDevice>>;

struct VirtualTime(HostClock);

impl Clock for VirtualTime {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanoseconds(EPOCH_NANOSECONDS + self.0.now())
    }
}

/// The file system, its disks, and what its phases took.
pub(super) struct Own {
    clock: HostClock,
    disks: Vec<SimDisk>,
    open: Box<Open>,
    files: FileSystem,
    directories: HashMap<String, InodeNumber>,
    /// Files that the kernel would have in its memory.
    remembered: HashSet<String>,
    pool: Vec<u8>,
    place: Prng,
    buffer: Vec<u8>,
    begun: Option<(String, u64, Vec<Requests>)>,
    phases: Vec<Phase>,
}

fn went(error: onode_fs::Error) -> Error {
    Volume::error("a call of the file system failed", &error)
}

fn options() -> Options {
    Options { write_cache_bytes: 1 << 20, stream_bytes: 1 << 20, write_back_age_seconds: 5, ..Options::default() }
}

impl Own {
    /// A new file system on `disks`, which share `clock`.
    pub(super) fn new(disks: Vec<SimDisk>, clock: &HostClock, open: Box<Open>) -> Result<Self> {
        let device = open(&disks, true)?;
        let time = Arc::new(VirtualTime(clock.clone()));
        let format = FormatOptions { uuid: UUID, hash_key: HASH_KEY, ..FormatOptions::default() };
        onode_fs::format(device.as_ref(), &format, time.now()).map_err(went)?;
        let files = FileSystem::mount(device, time, options()).map_err(went)?;
        Ok(Self {
            clock: clock.clone(),
            disks,
            open,
            files,
            directories: HashMap::new(),
            remembered: HashSet::new(),
            pool: content(),
            place: Prng::new(1),
            buffer: vec![0; 4 << 20],
            begun: None,
            phases: Vec::new(),
        })
    }

    /// The phases so far.
    pub(super) fn take_phases(&mut self) -> Vec<Phase> {
        std::mem::take(&mut self.phases)
    }

    /// The file system.
    pub(super) const fn files(&self) -> &FileSystem {
        &self.files
    }

    /// Virtual time.
    pub(super) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// What each disk did so far.
    pub(super) fn requests(&self) -> Vec<Requests> {
        self.disks.iter().map(requests_of).collect()
    }

    fn split<'a>(&mut self, path: &'a str) -> Result<(InodeNumber, &'a [u8])> {
        let Some((parent, name)) = path.rsplit_once('/') else { return Ok((InodeNumber::ROOT, path.as_bytes())) };
        Ok((self.directory(parent)?, name.as_bytes()))
    }

    fn directory(&mut self, path: &str) -> Result<InodeNumber> {
        if let Some(known) = self.directories.get(path) {
            return Ok(*known);
        }
        let (parent, name) = self.split(path)?;
        let found = self.files.lookup(parent, name).map_err(went)?.inode;
        self.directories.insert(path.to_owned(), found);
        Ok(found)
    }

    fn read_plain(&mut self, inode: InodeNumber, range: Range<u64>, call: u64) -> Result<u64> {
        let mut at = range.start;
        while at < range.end {
            let part = call.min(range.end - at).min(self.buffer.len() as u64) as usize;
            let buffer = self.buffer.get_mut(..part).unwrap_or_default();
            let got = self.files.read(inode, at, buffer).map_err(went)? as u64;
            if got == 0 {
                break;
            }
            at += got;
        }
        Ok(at - range.start)
    }

    /// In calls smaller than what a kernel asks for: it begins with four calls, and then asks for
    /// twice as much each time.
    fn read_ahead(&mut self, inode: InodeNumber, range: Range<u64>, call: u64) -> Result<u64> {
        let (mut at, mut asked, mut window) = (range.start, range.start, AHEAD_BYTES.min(4 * call));
        let mut under_way = VecDeque::new();
        loop {
            while under_way.len() < 2 && asked < range.end {
                let part = window.min(range.end - asked);
                let buffer = self.buffer.get_mut(..part as usize).unwrap_or_default();
                let (got, ready) = self.clock.beside(|| self.files.read(inode, asked, buffer));
                let got = got.map_err(went)? as u64;
                if got == 0 {
                    break;
                }
                (asked, window) = (asked + got, (window * 2).min(AHEAD_BYTES));
                under_way.push_back((asked, ready));
            }
            let Some((end, ready)) = under_way.pop_front() else { return Ok(at - range.start) };
            self.clock.wait(ready);
            at = end;
        }
    }

    /// Writes and gives back the use of the inode.
    fn put(&mut self, inode: InodeNumber, offset: u64, bytes: u64, call: u64, durable: bool) -> Result<()> {
        let (files, root) = (&self.files, Caller::root());
        let handle = files.open(&root, inode, OpenFlags { write: true, truncate: false }).map_err(went)?;
        let mut done = 0;
        while done < bytes {
            let part = (bytes - done).min(call).min(1 << 20) as usize;
            let from = self.place.below((CONTENT_BYTES - part) as u64) as usize;
            let piece = self.pool.get(from..from + part).unwrap_or_default();
            done += files.write(&root, inode, offset + done, piece).map_err(went)? as u64;
        }
        if durable {
            files.fsync(inode, Some(handle), false).map_err(went)?;
        }
        files.flush(handle).and_then(|()| files.release(handle)).map_err(went)?;
        files.forget(inode, 1);
        files.tick();
        Ok(())
    }
}

/// What a disk did so far.
fn requests_of(disk: &SimDisk) -> Requests {
    let counters = disk.counters().unwrap_or_default();
    let all = counters.total();
    let requests = Requests {
        reads: all.reads,
        writes: all.writes,
        flushes: counters.flushes,
        bytes_read: all.bytes_read,
        bytes_written: all.bytes_written,
        ..Requests::default()
    };
    requests.with_flash(&disk.model_counters())
}

impl Files for Own {
    fn make_directory(&mut self, path: &str) -> Result<()> {
        let (parent, name) = self.split(path)?;
        let made = self.files.make_directory(&Caller::root(), parent, name, 0o755).map_err(went)?;
        self.directories.insert(path.to_owned(), made.inode);
        Ok(())
    }

    fn create(&mut self, path: &str, bytes: u64, call: u64, durable: bool) -> Result<()> {
        let (parent, name) = self.split(path)?;
        let made = self.files.create(&Caller::root(), parent, name, 0o644).map_err(went)?;
        self.remembered.insert(path.to_owned());
        self.put(made.inode, 0, bytes, call, durable)
    }

    fn write(&mut self, path: &str, offset: u64, bytes: u64, call: u64, durable: bool) -> Result<()> {
        let (parent, name) = self.split(path)?;
        let found = self.files.lookup(parent, name).map_err(went)?;
        self.put(found.inode, offset, bytes, call, durable)
    }

    fn append(&mut self, path: &str, bytes: u64, call: u64, durable: bool) -> Result<()> {
        let (parent, name) = self.split(path)?;
        let found = self.files.lookup(parent, name).map_err(went)?;
        self.put(found.inode, found.size, bytes, call, durable)
    }

    fn read(&mut self, path: &str, offset: u64, bytes: u64, call: u64) -> Result<u64> {
        if self.remembered.contains(path) {
            return Ok(bytes);
        }
        let (parent, name) = self.split(path)?;
        let inode = self.files.lookup(parent, name).map_err(went)?.inode;
        let handle = self.files.open(&Caller::root(), inode, OpenFlags::default()).map_err(went)?;
        let range = offset..offset.saturating_add(bytes);
        let done = match call < bytes.min(AHEAD_BYTES) {
            true => self.read_ahead(inode, range, call)?,
            false => self.read_plain(inode, range, call)?,
        };
        self.files.release(handle).map_err(went)?;
        self.files.forget(inode, 1);
        if offset == 0 && done < bytes {
            self.remembered.insert(path.to_owned());
        }
        Ok(done)
    }

    fn delete(&mut self, path: &str, durable: bool) -> Result<()> {
        let (parent, name) = self.split(path)?;
        self.files.unlink(parent, name).map_err(went)?;
        self.remembered.remove(path);
        if durable {
            self.files.fsync(parent, None, false).map_err(went)?;
        }
        self.files.tick();
        Ok(())
    }

    /// The first finds the log idle and is made durable by itself; the others wait for it and share
    /// what comes then.
    fn at_once(&mut self, changes: &[Operation]) -> Result<()> {
        for (at, change) in changes.iter().enumerate() {
            let alone = at == 0;
            match change {
                Operation::Create(name, bytes) => self.create(name, *bytes, u64::MAX, alone)?,
                Operation::Append(name, bytes) => self.append(name, *bytes, u64::MAX, alone)?,
                Operation::Delete(name) => self.delete(name, alone)?,
                _ => (),
            }
        }
        self.sync()
    }

    fn sync(&mut self) -> Result<()> {
        self.files.sync().map_err(went)
    }

    fn remount(&mut self) -> Result<()> {
        self.files.unmount().map_err(went)?;
        self.directories.clear();
        self.remembered.clear();
        let device = (self.open)(&self.disks, false)?;
        let time = Arc::new(VirtualTime(self.clock.clone()));
        self.files = FileSystem::mount(device, time, options()).map_err(went)?;
        Ok(())
    }

    fn begin(&mut self, phase: &str) {
        self.begun = Some((phase.to_owned(), self.clock.now(), self.requests()));
    }

    fn end(&mut self, done: Done) {
        let Some((name, begin, before)) = self.begun.take() else { return };
        let disks = self.requests().into_iter().zip(before).map(|(now, before)| now.since(before)).collect();
        self.phases.push(Phase { name, done, nanoseconds: self.clock.now() - begin, disks });
    }
}

#[cfg(test)]
mod tests {
    use crate::tier::devices::Ours;
    use crate::tier::files::Files;
    use crate::tier::model::Disk;
    use crate::tier::recording::Done;
    use crate::tier::workload::Workload;
    use onode::Result;

    fn some(files: &mut dyn Files) -> Result<()> {
        files.make_directory("d")?;
        files.begin("write");
        for number in 0..20 {
            files.create(&format!("d/{number}"), 9000, 4096, true)?;
        }
        files.append("d/7", 100, 4096, true)?;
        assert_eq!(files.read("d/7", 0, 1 << 20, 4096)?, 1 << 20, "it is in the kernel's memory");
        files.end(Done { operations: 21, bytes: 20 * 9000 + 100 });
        files.remount()?;
        files.begin("read");
        assert_eq!(files.read("d/7", 0, 1 << 20, 4096)?, 9100);
        files.end(Done { operations: 1, bytes: 9100 });
        files.delete("d/7", true)?;
        assert!(files.read("d/7", 0, 1, 1).is_err());
        Ok(())
    }

    #[test]
    fn equal_runs_take_equal_time() {
        let workload = Workload { name: "some", is_mounted_sync: false, has_slow_flushes: false, run: some };
        let phases = Ours::Alone(Disk::Hdd).run(&workload).expect("a run");
        assert_eq!(phases, Ours::Alone(Disk::Hdd).run(&workload).expect("another run"));
        assert!(phases[0].disks[0].flushes >= 21 && phases[1].disks[0].reads > 0, "{phases:?}");
        assert!(phases.iter().all(|phase| phase.nanoseconds > 0));
    }
}
