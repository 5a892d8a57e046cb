//! Times file operations in a directory: `mount_bench DIRECTORY`, one `NAME MICROSECONDS` a line.
//!
//! The figures are wall time for one operation, with what is needed to reach the medium included for
//! writes (`fsync` at the end) and with cold caches for reads. `tests/bench/mount.sh` runs it on several
//! file systems and compares; it needs root to empty the kernel's caches.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

const FILES: u64 = 10_000;
const SMALL_BYTES: u64 = 32 << 20;
const LARGE_BYTES: u64 = 128 << 20;

fn main() -> io::Result<()> {
    let Some(directory) = std::env::args_os().nth(1) else {
        return Err(io::Error::other("usage: mount_bench DIRECTORY"));
    };
    let root = PathBuf::from(directory).join("mount-bench");
    fs::create_dir(&root)?;
    names(&root)?;
    content(&root)?;
    fs::remove_dir_all(&root)
}

/// Runs `work`, which does `count` operations, and prints the time of one.
fn time(name: &str, count: u64, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let begin = Instant::now();
    work()?;
    println!("{name} {:.4}", begin.elapsed().as_secs_f64() * 1e6 / count as f64);
    Ok(())
}

/// Makes the kernel forget what it has cached of every file system.
fn forget(root: &Path) -> io::Result<()> {
    File::open(root)?.sync_all()?;
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3")
}

fn names(root: &Path) -> io::Result<()> {
    let name = |index: u64| root.join(format!("file-{index}"));
    time("create+close", FILES, || (0..FILES).try_for_each(|index| File::create_new(name(index)).map(drop)))?;
    time("open+close", FILES, || (0..FILES).try_for_each(|index| File::open(name(index)).map(drop)))?;
    forget(root)?;
    time("readdir of 10,000, an entry", FILES, || {
        let found = fs::read_dir(root)?.count() as u64;
        if found == FILES { Ok(()) } else { Err(io::Error::other(format!("{found} entries"))) }
    })?;
    forget(root)?;
    time("readdir+stat, an entry", FILES, || {
        fs::read_dir(root)?.try_for_each(|entry| entry?.metadata().map(drop))
    })?;
    time("unlink", FILES, || (0..FILES).try_for_each(|index| fs::remove_file(name(index))))?;
    time("create+4K+close", FILES / 5, || {
        let piece = vec![0x5a; 4096];
        (0..FILES / 5).try_for_each(|index| File::create_new(name(index))?.write_all(&piece))
    })?;
    time("open+4K read+close", FILES / 5, || {
        let mut piece = vec![0; 4096];
        (0..FILES / 5).try_for_each(|index| File::open(name(index))?.read_exact(&mut piece))
    })?;
    (0..FILES / 5).try_for_each(|index| fs::remove_file(name(index)))
}

fn content(root: &Path) -> io::Result<()> {
    let path = root.join("content");
    for (name, bytes, total) in
        [("4K", 4096, SMALL_BYTES), ("128K", 128 << 10, LARGE_BYTES), ("1M", 1 << 20, LARGE_BYTES)]
    {
        let mut piece: Vec<u8> = (0..bytes).map(|index| (index * 31 % 251) as u8).collect();
        let calls = total / bytes as u64;
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        time(&format!("write {name}"), calls, || {
            (0..calls).try_for_each(|_| file.write_all(&piece))?;
            file.sync_all()
        })?;
        forget(root)?;
        let mut file = File::open(&path)?;
        time(&format!("read {name}"), calls, || (0..calls).try_for_each(|_| file.read_exact(&mut piece)))?;
    }
    let file = OpenOptions::new().read(true).write(true).open(&path)?;
    let piece = vec![0xa5; 4096];
    let calls = SMALL_BYTES / 4096;
    // Visits every piece once in an order without neighbours.
    let place = |index: u64| index * 4093 % calls * 4096;
    time("random write 4K", calls, || {
        (0..calls).try_for_each(|index| file.write_all_at(&piece, place(index)))?;
        file.sync_all()
    })?;
    time("write 4K + fsync", 500, || {
        (0..500).try_for_each(|index| file.write_all_at(&piece, place(index)).and_then(|()| file.sync_all()))
    })?;
    forget(root)?;
    let mut piece = vec![0; 4096];
    time("random read 4K", calls, || (0..calls).try_for_each(|index| file.read_exact_at(&mut piece, place(index))))
}
