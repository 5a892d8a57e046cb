//! Checkpoints of a large memory after scattered changes, beside a copy of all of it and a clone by
//! the kernel (xfs).
//!
//! The pause is the time in which the program may not store: the freeze. It is taken twice, once
//! with a program that stands still and once with one that goes on storing while its changes are
//! copied ahead.
#![allow(clippy::disallowed_methods, reason = "the lab measures how long things take")]

use super::Measuring;
use super::files::{Scratch, failed};
use onode::Result;
use onode_heap::{Arena, Heap, Ref};
use rustix::fs::{fsync, ioctl_ficlone};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PAGE_BYTES: usize = 4096;
const MILLISECONDS: &str = "ms";
/// What a program that goes on storing does between two stores.
const BETWEEN_STORES: Duration = Duration::from_micros(100);

/// So many pages, of which so many change.
#[derive(Clone, Copy)]
struct Size {
    pages: usize,
    writes: usize,
}

/// Different pages all over the memory; `pages` is a power of two.
fn scattered(size: Size, round: usize) -> impl Iterator<Item = usize> {
    (0..size.writes).map(move |i| (i.wrapping_mul(2_654_435_761) + round * 97) % size.pages)
}

/// Pages in a block of an arena.
struct Pages<'a> {
    arena: &'a Arena,
    first: u64,
}

impl Pages<'_> {
    fn store(&self, page: usize, value: u8) {
        let at = Ref::<[u8; PAGE_BYTES]>::at(self.first + (page * PAGE_BYTES) as u64);
        assert!(at.set(self.arena, [value; PAGE_BYTES]), "page {page} lies in the block");
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[derive(Clone, Copy)]
struct Times {
    pause: f64,
    whole: f64,
    bytes_per_dirty: f64,
}

/// One checkpoint after `writes` scattered stores; `goes_on` while it is made.
fn round(heap: &Heap, pages: &Pages<'_>, size: Size, number: usize, goes_on: bool) -> Result<Times> {
    let went = |error: onode_heap::Error| failed("a checkpoint failed", error);
    let logged = || {
        let counters = heap.files().device().inspect().map(|inspect| inspect.counters()).unwrap_or_default();
        counters.into_iter().find(|(name, _)| name == "bytes_logged").map_or(0, |(_, bytes)| bytes)
    };
    for page in scattered(size, number) {
        pages.store(page, number as u8 + 1);
    }
    let before = logged();
    let program = Mutex::new(());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if goes_on {
            scope.spawn(|| {
                for page in scattered(Size { writes: size.pages, ..size }, number + 1) {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let whole = program.lock();
                    pages.store(page, 0xee);
                    drop(whole);
                    std::thread::sleep(BETWEEN_STORES);
                }
            });
        }
        let begin = Instant::now();
        let ahead = pages.arena.copy_ahead();
        let stands_still = program.lock();
        let paused = Instant::now();
        let frozen = pages.arena.freeze();
        let pause = paused.elapsed();
        drop(stands_still);
        let report = frozen.and_then(|frozen| frozen.commit(b"measured"));
        let whole = begin.elapsed();
        stop.store(true, Ordering::Relaxed);
        ahead.map_err(went)?;
        let report = report.map_err(went)?;
        let bytes = report.bytes_written + (logged() - before);
        let bytes_per_dirty = bytes as f64 / (report.pages.max(1) * PAGE_BYTES as u64) as f64;
        Ok(Times { pause: milliseconds(pause), whole: milliseconds(whole), bytes_per_dirty })
    })
}

/// The best of each.
fn best(all: &[Times]) -> Times {
    let least = |value: fn(&Times) -> f64| all.iter().map(value).fold(f64::MAX, f64::min);
    let most = all.iter().map(|times| times.bytes_per_dirty).fold(0.0, f64::max);
    Times { pause: least(|times| times.pause), whole: least(|times| times.whole), bytes_per_dirty: most }
}

/// What it takes to copy all to a file in memory.
fn full_copy(size: Size) -> Result<f64> {
    let went = |error: std::io::Error| failed("a copy of all failed", error);
    let memory = vec![1; size.pages * PAGE_BYTES];
    let place = Scratch::new("copy");
    let begin = Instant::now();
    let file = File::create(&place.0).map_err(went)?;
    file.write_all_at(&memory, 0).map_err(went)?;
    Ok(milliseconds(begin.elapsed()))
}

/// A file system that clones files, on a loop device over a file in memory; unmounted at the end.
struct Xfs {
    mount: PathBuf,
    _image: Scratch,
}

impl Xfs {
    fn new() -> Result<Self> {
        let what = "cannot make an xfs to compare with (root, xfsprogs and a loop device are needed)";
        let image = Scratch::new("xfs.img");
        File::create(&image.0).and_then(|file| file.set_len(1 << 30)).map_err(|error| failed(what, error))?;
        let mount = std::env::temp_dir().join(format!("onode-lab-xfs-{}", std::process::id()));
        fs::create_dir_all(&mount).map_err(|error| failed(what, error))?;
        let xfs = Self { mount, _image: image };
        let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
            let output = Command::new(program).args(arguments).output().map_err(|error| failed(what, error))?;
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            if output.status.success() { Ok(()) } else { Err(failed(what, said)) }
        };
        run("mkfs.xfs", &["-q".as_ref(), "-f".as_ref(), xfs._image.0.as_os_str()])?;
        run("mount", &["-o".as_ref(), "loop".as_ref(), xfs._image.0.as_os_str(), xfs.mount.as_os_str()])?;
        Ok(xfs)
    }

    /// Milliseconds to write back and clone a file of which scattered pages have changed.
    fn clone_after_writes(&self, size: Size) -> Result<f64> {
        let went = |error: std::io::Error| failed("a clone failed", error);
        let path = self.mount.join("memory");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path).map_err(went)?;
        file.write_all_at(&vec![1; size.pages * PAGE_BYTES], 0).map_err(went)?;
        let mut least = f64::MAX;
        for number in 0..2 {
            for page in scattered(size, number) {
                file.write_all_at(&[number as u8 + 2; PAGE_BYTES], (page * PAGE_BYTES) as u64).map_err(went)?;
            }
            let begin = Instant::now();
            let copy = File::create(self.mount.join(format!("clone-{number}"))).map_err(went)?;
            ioctl_ficlone(&copy, &file).map_err(|errno| failed("a clone failed", errno))?;
            fsync(&copy).map_err(|errno| failed("a clone failed", errno))?;
            least = least.min(milliseconds(begin.elapsed()));
        }
        Ok(least)
    }
}

impl Drop for Xfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.mount).output();
        let _ = fs::remove_dir(&self.mount);
    }
}

/// Measures checkpoints.
pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    let quick = measuring.options.quick;
    let size = if quick { Size { pages: 1 << 11, writes: 1 << 9 } } else { Size { pages: 1 << 16, writes: 1 << 14 } };
    let rounds = if quick { 1 } else { 7 };
    let place = Scratch::new("checkpoint");
    let heap = Heap::open(&format!("scm:{},size=1G", place.0.display()));
    let heap = heap.map_err(|error| failed("cannot make a heap", error))?;
    // Room for the allocator's tables beside the pages.
    let bytes = size.pages * PAGE_BYTES + (8 << 20);
    let arena = heap.create_arena(b"lab", bytes).map_err(|error| failed("cannot make an arena", error))?;
    let first = arena.allocate(size.pages * PAGE_BYTES).map_err(|error| failed("no block", error))?;
    let pages = Pages { arena: &arena, first };
    (0..size.pages).for_each(|page| pages.store(page, 1));
    arena.checkpoint(b"measured").map_err(|error| failed("a checkpoint failed", error))?;
    let (mut still, mut busy) = (Vec::new(), Vec::new());
    for number in 1..=rounds {
        measuring.say(&format!("checkpoints, round {number} of {rounds}"));
        still.push(round(&heap, &pages, size, number * 2, false)?);
        busy.push(round(&heap, &pages, size, number * 2 + 1, true)?);
    }
    let (quiet, storing) = (best(&still), best(&busy));
    let what = format!("checkpoint of {} MiB, {} scattered 4 KB writes", (size.pages * PAGE_BYTES) >> 20, size.writes);
    measuring.at_most(format!("{what}, pause"), quiet.pause, MILLISECONDS, 1.0);
    measuring.at_most(format!("{what}, pause while a thread goes on storing"), storing.pause, MILLISECONDS, 1.0);
    measuring.at_most(format!("{what}, bytes written against dirty"), quiet.bytes_per_dirty, "times", 1.1);
    measuring.shown(format!("{what}, from begin to durable"), quiet.whole, MILLISECONDS);
    measuring.shown(format!("{what}, a full copy to tmpfs"), full_copy(size)?, MILLISECONDS);
    if measuring.options.program.is_some() {
        match Xfs::new().and_then(|xfs| xfs.clone_after_writes(size)) {
            Ok(time) => measuring.shown(format!("{what}, xfs reflink and fsync"), time, MILLISECONDS),
            Err(error) => measuring.failures.push(error.to_string()),
        }
    }
    if arena.tracking() == onode_heap::Tracking::Comparison {
        measuring.failures.push(format!("checkpoints: {}", arena.tracking().describe()));
    }
    Ok(())
}
