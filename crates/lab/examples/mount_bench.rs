//! Times file operations in a directory: `mount_bench DIRECTORY [SERVER]`, one `NAME WALL
//! PROCESSOR` a line, tabs between.
//!
//! The figures are microseconds for one operation: wall time, and processor time of this process
//! and of the process SERVER together (kernel threads are not seen). What is needed to reach the
//! medium is included for writes (`fsync` at the end); reads begin with cold caches.
//! `tests/bench/mount.sh` runs it on several file systems and compares; it needs root to empty the
//! kernel's caches.

#![expect(clippy::disallowed_methods, reason = "it measures wall time")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const FILES: u64 = 10_000;
const SMALL_BYTES: u64 = 32 << 20;
const LARGE_BYTES: u64 = 128 << 20;

fn main() -> io::Result<()> {
    let Some(directory) = std::env::args_os().nth(1) else {
        return Err(io::Error::other("usage: mount_bench DIRECTORY"));
    };
    let server = std::env::args().nth(2);
    let root = PathBuf::from(directory).join("mount-bench");
    fs::create_dir(&root)?;
    let bench = Bench { server };
    bench.names(&root)?;
    bench.content(&root)?;
    fs::remove_dir_all(&root)
}

/// Makes the kernel forget what it has cached of every file system.
fn forget(root: &Path) -> io::Result<()> {
    File::open(root)?.sync_all()?;
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3")?;
    // A FUSE server hears of it later and must not pay for it in the next figure.
    std::thread::sleep(Duration::from_millis(300));
    Ok(())
}

struct Bench {
    server: Option<String>,
}

impl Bench {
    /// Runs `work`, which does `count` operations, and prints the time of one.
    fn time(&self, name: &str, count: u64, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let (begin, processor) = (Instant::now(), self.processor_nanoseconds()?);
        work()?;
        let wall = begin.elapsed().as_secs_f64() * 1e6 / count as f64;
        let processor = (self.processor_nanoseconds()? - processor) as f64 / 1e3 / count as f64;
        println!("{name}\t{wall:.4}\t{processor:.4}");
        Ok(())
    }

    fn processor_nanoseconds(&self) -> io::Result<u64> {
        let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let mut sum = own.tv_sec as u64 * 1_000_000_000 + own.tv_nsec as u64;
        let Some(server) = &self.server else { return Ok(sum) };
        for task in fs::read_dir(format!("/proc/{server}/task"))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let first = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
            sum += first.ok_or_else(|| io::Error::other("no processor time in schedstat"))?;
        }
        Ok(sum)
    }

    fn names(&self, root: &Path) -> io::Result<()> {
        let name = |index: u64| root.join(format!("file-{index}"));
        self.time("create+close", FILES, || (0..FILES).try_for_each(|index| File::create_new(name(index)).map(drop)))?;
        self.time("open+close", FILES, || (0..FILES).try_for_each(|index| File::open(name(index)).map(drop)))?;
        forget(root)?;
        self.time("readdir of 10,000, an entry", FILES, || {
            let found = fs::read_dir(root)?.count() as u64;
            if found == FILES { Ok(()) } else { Err(io::Error::other(format!("{found} entries"))) }
        })?;
        forget(root)?;
        self.time("readdir+stat, an entry", FILES, || {
            fs::read_dir(root)?.try_for_each(|entry| entry?.metadata().map(drop))
        })?;
        self.time("unlink", FILES, || (0..FILES).try_for_each(|index| fs::remove_file(name(index))))?;
        self.time("create+4K+close", FILES / 5, || {
            let piece = vec![0x5a; 4096];
            (0..FILES / 5).try_for_each(|index| File::create_new(name(index))?.write_all(&piece))
        })?;
        self.time("open+4K read+close", FILES / 5, || {
            let mut piece = vec![0; 4096];
            (0..FILES / 5).try_for_each(|index| File::open(name(index))?.read_exact(&mut piece))
        })?;
        (0..FILES / 5).try_for_each(|index| fs::remove_file(name(index)))
    }

    fn content(&self, root: &Path) -> io::Result<()> {
        let path = root.join("content");
        for (name, bytes, total) in
            [("4K", 4096, SMALL_BYTES), ("128K", 128 << 10, LARGE_BYTES), ("1M", 1 << 20, LARGE_BYTES)]
        {
            let mut piece: Vec<u8> = (0..bytes).map(|index| (index * 31 % 251) as u8).collect();
            let calls = total / bytes as u64;
            let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
            self.time(&format!("write {name}"), calls, || {
                (0..calls).try_for_each(|_| file.write_all(&piece))?;
                file.sync_all()
            })?;
            forget(root)?;
            let mut file = File::open(&path)?;
            self.time(&format!("read {name}"), calls, || (0..calls).try_for_each(|_| file.read_exact(&mut piece)))?;
        }
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let piece = vec![0xa5; 4096];
        let calls = SMALL_BYTES / 4096;
        // Visits every piece once in an order without neighbours.
        let place = |index: u64| index * 4093 % calls * 4096;
        self.time("random write 4K", calls, || {
            (0..calls).try_for_each(|index| file.write_all_at(&piece, place(index)))?;
            file.sync_all()
        })?;
        self.time("write 4K + fsync", 2000, || {
            (0..2000).try_for_each(|index| file.write_all_at(&piece, place(index)).and_then(|()| file.sync_all()))
        })?;
        forget(root)?;
        let mut piece = vec![0; 4096];
        self.time("random read 4K", calls, || {
            (0..calls).try_for_each(|index| file.read_exact_at(&mut piece, place(index)))
        })
    }
}
