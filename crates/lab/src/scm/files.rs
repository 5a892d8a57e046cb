//! Files in process: names made, opened, read and written on memory, beside the kernel's tmpfs and
//! ext4 on the same memory.
//!
//! `mem` and `sync` are the modes of those names; in `sync` every line that a commit needs is
//! flushed, though files in memory would not need it. Operations are timed in batches, and of all
//! batches of all rounds the best counts for each subject: what else the machine does makes some
//! slower and none faster.
#![allow(clippy::disallowed_methods, reason = "the lab measures how long things take")]

use super::Measuring;
use onode::{Class, Error, Result};
use onode_fs::{Caller, FileSystem, InodeNumber, OpenFlags};
use onode_heap::Heap;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const TIMES: &str = "times";
const NANOSECONDS: &str = "ns";
const KIB: usize = 1024;

/// Nanoseconds an operation, by its name.
type Table = BTreeMap<&'static str, f64>;

pub(super) fn failed(what: &str, error: impl ToString) -> Error {
    Error::new(Class::General, what, error.to_string())
}

/// Operations of a batch.
const BATCH: usize = 200;

/// Times `count` operations in batches and keeps the best.
fn timed(table: &mut Table, name: &'static str, count: usize, mut work: impl FnMut(usize) -> Result<()>) -> Result<()> {
    let mut done = 0;
    while done < count {
        let end = count.min(done + BATCH);
        let begin = Instant::now();
        for i in done..end {
            work(i)?;
        }
        let each = begin.elapsed().as_nanos() as f64 / (end - done) as f64;
        let best = table.entry(name).or_insert(f64::MAX);
        *best = best.min(each);
        done = end;
    }
    Ok(())
}

/// A file in memory that is gone at the end.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/onode-lab-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let _ = fs::remove_file(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_file(&self.0);
    }
}

/// Our own files, in process.
fn own(options: &str, files: usize, table: &mut Table) -> Result<()> {
    let place = Scratch::new("own");
    let heap = Heap::open(&format!("scm:{},size=1G{options}", place.0.display()));
    let heap = heap.map_err(|error| failed("cannot make a heap", error))?;
    let fs = heap.files();
    let root = Caller::root();
    let went = |error: onode_fs::Error| failed("a call of the file system failed", error);
    let names: Vec<String> = (0..files).map(|i| format!("file-{i:06}")).collect();
    let mut numbers: Vec<InodeNumber> = Vec::with_capacity(files);
    timed(table, "creat", files, |i| {
        let made = fs.create(&root, InodeNumber::ROOT, names[i].as_bytes(), 0o644).map_err(went)?;
        fs.forget(made.inode, 1);
        numbers.push(made.inode);
        Ok(())
    })?;
    let mut handles = Vec::with_capacity(files);
    timed(table, "open", files, |i| {
        let found = fs.lookup(InodeNumber::ROOT, names[i].as_bytes()).map_err(went)?;
        handles.push(fs.open(&root, found.inode, OpenFlags::default()).map_err(went)?);
        fs.forget(found.inode, 1);
        Ok(())
    })?;
    timed(table, "close", files, |i| fs.release(handles[i]).map_err(went))?;
    let content = [7_u8; 4 * KIB];
    let mut buffer = [0_u8; 4 * KIB];
    let write = |fs: &FileSystem, i: usize, at: u64, bytes: usize| {
        fs.write(&root, numbers[i], at, &content[..bytes]).map(drop).map_err(went)
    };
    timed(table, "append 1K", files, |i| write(fs, i, 0, KIB))?;
    timed(table, "append 1K again", files, |i| write(fs, i, KIB as u64, KIB))?;
    timed(table, "overwrite 1K", files, |i| write(fs, i, 0, KIB))?;
    timed(table, "read 1K", files, |i| fs.read(numbers[i], 0, &mut buffer[..KIB]).map(drop).map_err(went))?;
    timed(table, "unlink", files, |i| fs.unlink(InodeNumber::ROOT, names[i].as_bytes()).map_err(went))?;
    timed(table, "put 1K", files, |i| {
        let made = fs.create(&root, InodeNumber::ROOT, names[i].as_bytes(), 0o644).map_err(went)?;
        fs.write(&root, made.inode, 0, &content[..KIB]).map_err(went)?;
        fs.forget(made.inode, 1);
        Ok(())
    })?;
    memory_to_files(&heap, ["mm_to_file 2K", "file_to_mm 2K"], 2 * KIB, files, table)
}

/// Blocks become files and blocks again.
fn memory_to_files(
    heap: &Heap,
    [to, back]: [&'static str; 2],
    bytes: usize,
    count: usize,
    table: &mut Table,
) -> Result<()> {
    let root = Caller::root();
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let mut block = heap.allocate(bytes).map_err(|error| failed("no block", error))?;
        block[0] = 1;
        blocks.push(block);
    }
    let paths: Vec<String> = (0..count).map(|i| format!("/memory-{i}")).collect();
    timed(table, to, count, |i| {
        let Some(block) = blocks.pop() else { return Ok(()) };
        let made = heap.mm_to_file(block, paths[i].as_bytes(), &root, 0o644);
        made.map(drop).map_err(|error| failed("mm_to_file", error))
    })?;
    timed(table, back, count, |i| {
        blocks.push(heap.file_to_mm(paths[i].as_bytes()).map_err(|error| failed("file_to_mm", error))?);
        Ok(())
    })
}

/// One block of `bytes`, in a memory of its own, which becomes a file and a block again.
fn one_large(bytes: usize, table: &mut Table) -> Result<()> {
    let place = Scratch::new("large");
    let heap = Heap::open(&format!("scm:{},size={},mode=mem", place.0.display(), 5 * bytes / 2));
    let heap = heap.map_err(|error| failed("cannot make a heap", error))?;
    for _ in 0..20 {
        memory_to_files(&heap, ["mm_to_file large", "file_to_mm large"], bytes, 1, table)?;
    }
    Ok(())
}

/// The same by system calls in a directory of the kernel; `syncs` after each write.
fn kernel(directory: &Path, files: usize, syncs: bool, table: &mut Table) -> Result<()> {
    let went = |error: std::io::Error| failed("a system call failed", error);
    let names: Vec<PathBuf> = (0..files).map(|i| directory.join(format!("file-{i:06}"))).collect();
    let content = [7_u8; 4 * KIB];
    let mut buffer = [0_u8; 4 * KIB];
    let mut open = Vec::with_capacity(files);
    let sync = |file: &File| if syncs { file.sync_all().map_err(went) } else { Ok(()) };
    timed(table, "creat", files, |i| {
        open.push(File::create(&names[i]).map_err(went)?);
        Ok(())
    })?;
    timed(table, "close", files, |_| {
        drop(open.pop());
        Ok(())
    })?;
    timed(table, "open", files, |i| {
        open.push(File::options().read(true).write(true).open(&names[i]).map_err(went)?);
        Ok(())
    })?;
    timed(table, "append 1K", files, |i| {
        open[i].write_all_at(&content[..KIB], 0).map_err(went)?;
        sync(&open[i])
    })?;
    timed(table, "append 1K again", files, |i| {
        open[i].write_all_at(&content[..KIB], KIB as u64).map_err(went)?;
        sync(&open[i])
    })?;
    timed(table, "overwrite 1K", files, |i| {
        open[i].write_all_at(&content[..KIB], 0).map_err(went)?;
        sync(&open[i])
    })?;
    timed(table, "read 1K", files, |i| open[i].read_exact_at(&mut buffer[..KIB], 0).map_err(went))?;
    open.clear();
    timed(table, "unlink", files, |i| fs::remove_file(&names[i]).map_err(went))?;
    for (name, bytes) in [("put 1K", KIB), ("put 2K", 2 * KIB)] {
        timed(table, name, files, |i| {
            let mut file = File::create(&names[i]).map_err(went)?;
            file.write_all(&content[..bytes]).map_err(went)?;
            sync(&file)
        })?;
        names.iter().try_for_each(fs::remove_file).map_err(went)?;
    }
    Ok(())
}

/// What the kernel has for the same purpose: a name for an unnamed file that is mapped already.
fn kernel_link(directory: &Path, bytes: u64, table: &mut Table) -> Result<()> {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, ftruncate, linkat, open};
    let went = |error: rustix::io::Errno| failed("a system call failed", error);
    for round in 0..20 {
        let file = open(directory, OFlags::TMPFILE | OFlags::RDWR, Mode::from_raw_mode(0o644)).map_err(went)?;
        ftruncate(&file, bytes).map_err(went)?;
        let file = File::from(file);
        file.write_all_at(&[1; 4096], 0).map_err(|error| failed("a system call failed", error))?;
        let from = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let from = CString::new(from).map_err(|error| failed("a name", error))?;
        let to = directory.join(format!("linked-{round}"));
        timed(table, "linkat", 1, |_| linkat(CWD, &from, CWD, &to, AtFlags::SYMLINK_FOLLOW).map_err(went))?;
        fs::remove_file(&to).map_err(|error| failed("a system call failed", error))?;
    }
    Ok(())
}

/// An ext4 file system on a loop device over a file in memory; unmounted at the end.
struct Ext4 {
    mount: PathBuf,
    _image: Scratch,
}

impl Ext4 {
    fn new() -> Result<Self> {
        let what = "cannot make an ext4 file system to compare with (root, e2fsprogs and a loop device are needed)";
        let image = Scratch::new("ext4.img");
        File::create(&image.0).and_then(|file| file.set_len(512 << 20)).map_err(|error| failed(what, error))?;
        let mount = std::env::temp_dir().join(format!("onode-lab-ext4-{}", std::process::id()));
        fs::create_dir_all(&mount).map_err(|error| failed(what, error))?;
        let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
            let output = Command::new(program).args(arguments).output().map_err(|error| failed(what, error))?;
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            if output.status.success() { Ok(()) } else { Err(failed(what, said)) }
        };
        run("mkfs.ext4", &["-q".as_ref(), "-F".as_ref(), image.0.as_os_str()])?;
        run("mount", &["-o".as_ref(), "loop".as_ref(), image.0.as_os_str(), mount.as_os_str()])?;
        Ok(Self { mount, _image: image })
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.mount).output();
        let _ = fs::remove_dir(&self.mount);
    }
}

/// Measures all that there is to compare with.
pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    let (files, rounds) = if measuring.options.quick { (50, 1) } else { (4000, 5) };
    let (large, large_bytes) = if measuring.options.quick { ("64M", 64 << 20) } else { ("1G", 1 << 30) };
    let [mut mem, mut sync, mut tmpfs, mut ext4] = [const { Table::new() }; 4];
    let place = Scratch::new("tmpfs");
    fs::create_dir_all(&place.0).map_err(|error| failed("cannot use /dev/shm", error))?;
    // Without others, only what needs nothing installed.
    let other = match measuring.options.program.as_ref().map(|_| Ext4::new()) {
        None => None,
        Some(Ok(other)) => Some(other),
        Some(Err(error)) => {
            measuring.failures.push(error.to_string());
            None
        }
    };
    for round in 1..=rounds {
        measuring.say(&format!("files in memory, round {round} of {rounds}"));
        own(",mode=mem", files, &mut mem)?;
        own(",mode=sync,flush=on", files, &mut sync)?;
        kernel(&place.0, files, false, &mut tmpfs)?;
        one_large(large_bytes, &mut mem)?;
        kernel_link(&place.0, large_bytes as u64, &mut tmpfs)?;
        if let Some(other) = &other {
            kernel(&other.mount, files.min(300), true, &mut ext4)?;
        }
    }
    let ratio = |peer: &Table, own: &Table, theirs: &str, ours: &str| match (peer.get(theirs), own.get(ours)) {
        (Some(theirs), Some(ours)) => theirs / ours,
        _ => f64::NAN,
    };
    for (what, reach) in [("creat", 5.0), ("open", 4.0), ("close", 15.0), ("read 1K", 8.0), ("overwrite 1K", 5.0)] {
        measuring.at_least(format!("{what}, mem, faster than tmpfs"), ratio(&tmpfs, &mem, what, what), TIMES, reach);
    }
    measuring.at_least("creat, sync, faster than tmpfs", ratio(&tmpfs, &sync, "creat", "creat"), TIMES, 3.0);
    if other.is_some() {
        for (what, reach) in [("append 1K", 80.0), ("put 1K", 60.0)] {
            let name = format!("{what} durable, sync, faster than ext4 write+fsync");
            measuring.at_least(name, ratio(&ext4, &sync, what, what), TIMES, reach);
        }
    }
    let small = ratio(&tmpfs, &mem, "put 2K", "mm_to_file 2K");
    measuring.at_least("mm_to_file 2K, faster than tmpfs creat+write", small, TIMES, 6.0);
    let linked = ratio(&tmpfs, &mem, "linkat", "mm_to_file large");
    measuring.at_least(format!("mm_to_file {large}, faster than linkat of a mapped file"), linked, TIMES, 6.0);
    for (what, of_small, of_large) in
        [("mm_to_file", "mm_to_file 2K", "mm_to_file large"), ("file_to_mm", "file_to_mm 2K", "file_to_mm large")]
    {
        measuring.at_most(format!("{what} {large} against 2K"), ratio(&mem, &mem, of_large, of_small), TIMES, 2.0);
    }
    for (who, table) in [("onode, mem", &mem), ("onode, sync", &sync), ("tmpfs", &tmpfs), ("ext4+fsync", &ext4)] {
        for (what, value) in table {
            let what = what.replace("large", large);
            measuring.shown(format!("{what}, {who}"), *value, NANOSECONDS);
        }
    }
    Ok(())
}
