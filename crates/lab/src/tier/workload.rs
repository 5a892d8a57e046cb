//! The workloads, the same for every file system.

use super::files::Files;
use super::recording::Done;
use crate::stream::Operation;
use crate::stream::generate::PostMark;
use onode::Result;
use onode_base::Prng;

/// The disk of the peers, and the fast disk of ours.
pub(super) const DISK_BYTES: u64 = 2 << 30;
/// Transactions of PostMark that are measured; the files are there before.
const TRANSACTIONS: u64 = 2000;
/// Programs at the same time.
pub(super) const PROGRAMS: usize = 16;
/// The same where nothing is durable at once.
const NATURAL_TRANSACTIONS: u64 = 10_000;
/// So much is written between two syncs there.
const NATURAL_BYTES: u64 = 1 << 20;
/// The file sizes of paper 4, Figures 7 to 18.
pub(super) const SIZES: [u64; 7] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20];
/// The numbers of files of Figure 19.
pub(super) const FILES: [u64; 4] = [1000, 5000, 10_000, 20_000];
const LARGE: u64 = 256 << 20;
const MEBIBYTE: u64 = 1 << 20;
/// Programs that write through the C library write so much at once.
const CALL: u64 = 4096;

/// A workload by name.
pub(super) struct Workload {
    pub(super) name: &'static str,
    /// They are mounted with `-o sync` and asked for nothing else.
    pub(super) is_mounted_sync: bool,
    /// Several programs run at the same time, so flushes must take some.
    pub(super) has_slow_flushes: bool,
    pub(super) run: fn(&mut dyn Files) -> Result<()>,
}

const fn recorded(name: &'static str, run: fn(&mut dyn Files) -> Result<()>) -> Workload {
    Workload { name, is_mounted_sync: false, has_slow_flushes: false, run }
}

const fn mounted_sync(name: &'static str, run: fn(&mut dyn Files) -> Result<()>) -> Workload {
    Workload { is_mounted_sync: true, ..recorded(name, run) }
}

const fn at_once(name: &'static str, run: fn(&mut dyn Files) -> Result<()>) -> Workload {
    Workload { has_slow_flushes: true, ..recorded(name, run) }
}

/// All of them.
pub(super) const WORKLOADS: [Workload; 21] = [
    recorded("postmark-1000", |files| postmark(files, 1000, MEBIBYTE)),
    recorded("postmark-5000", |files| postmark(files, 5000, MEBIBYTE)),
    recorded("postmark-10000", |files| postmark(files, 10_000, MEBIBYTE)),
    recorded("postmark-20000", |files| postmark(files, 20_000, MEBIBYTE)),
    mounted_sync("sync-postmark-1000", |files| postmark(files, 1000, CALL)),
    mounted_sync("sync-postmark-5000", |files| postmark(files, 5000, CALL)),
    mounted_sync("sync-postmark-10000", |files| postmark(files, 10_000, CALL)),
    mounted_sync("sync-postmark-20000", |files| postmark(files, 20_000, CALL)),
    at_once("together-1000", |files| together(files, 1000)),
    at_once("together-5000", |files| together(files, 5000)),
    at_once("together-10000", |files| together(files, 10_000)),
    at_once("together-20000", |files| together(files, 20_000)),
    recorded("natural-1000", |files| natural(files, 1000)),
    recorded("natural-5000", |files| natural(files, 5000)),
    recorded("natural-10000", |files| natural(files, 10_000)),
    recorded("natural-20000", |files| natural(files, 20_000)),
    recorded("sequential", sequential),
    recorded("random-write", random_write),
    recorded("iozone", iozone),
    recorded("template", template),
    recorded("bonnie", bonnie),
];

/// The one of that name.
pub(super) fn named(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|one| one.name == name)
}

/// What makes the files, and the transactions on them.
fn split(files: u64, transactions: u64) -> (Vec<Operation>, Vec<Operation>) {
    let stream = PostMark { seed: 42, files, transactions, reads_in_ten: 5 }.operations();
    let (mut made, mut rest) = (stream, Vec::new());
    rest.extend(made.drain(files as usize..));
    // The end of the stream deletes what is left.
    let tail = rest.iter().rev().take_while(|one| matches!(one, Operation::Delete(..))).count();
    rest.truncate(rest.len() - tail);
    (made, rest)
}

fn perform(files: &mut dyn Files, operation: &Operation, call: u64, durable: bool, done: &mut Done) -> Result<()> {
    let (operations, bytes) = match operation {
        Operation::Create(name, bytes) => files.create(name, *bytes, call, durable).map(|()| (1, *bytes))?,
        Operation::Append(name, bytes) => files.append(name, *bytes, call, durable).map(|()| (1, *bytes))?,
        Operation::Delete(name) => files.delete(name, durable).map(|()| (1, 0))?,
        Operation::Read(name) => files.read(name, 0, MEBIBYTE, MEBIBYTE).map(|_| (0, 0))?,
        Operation::Write(..) | Operation::ReadPart(..) | Operation::Measure => (0, 0),
    };
    done.operations += operations;
    done.bytes += bytes;
    Ok(())
}

fn populate(files: &mut dyn Files, made: &[Operation]) -> Result<()> {
    made.iter().try_for_each(|operation| perform(files, operation, MEBIBYTE, false, &mut Done::default()))?;
    files.sync()
}

/// Each change is durable before the next; changes count as operations, and bytes written.
fn postmark(files: &mut dyn Files, count: u64, call: u64) -> Result<()> {
    let (made, transactions) = split(count, TRANSACTIONS);
    populate(files, &made)?;
    files.begin("transactions");
    let mut done = Done::default();
    transactions.iter().try_for_each(|operation| perform(files, operation, call, true, &mut done))?;
    files.end(done);
    Ok(())
}

/// The same by [`PROGRAMS`] programs at a time: each does a change, and all go on when all are
/// durable.
fn together(files: &mut dyn Files, count: u64) -> Result<()> {
    let (made, transactions) = split(count, TRANSACTIONS);
    populate(files, &made)?;
    files.begin("transactions");
    let (mut done, mut changes) = (Done::default(), Vec::<Operation>::new());
    for operation in transactions {
        let (name, bytes) = match &operation {
            Operation::Create(name, bytes) | Operation::Append(name, bytes) => (name, *bytes),
            Operation::Delete(name) => (name, 0),
            _ => continue,
        };
        // Programs do not share files.
        let is_other = |one: &Operation| match one {
            Operation::Create(other, _) | Operation::Append(other, _) | Operation::Delete(other) => other != name,
            _ => true,
        };
        if changes.len() == PROGRAMS || !changes.iter().all(is_other) {
            files.at_once(&std::mem::take(&mut changes))?;
        }
        done.operations += 1;
        done.bytes += bytes;
        changes.push(operation);
    }
    files.at_once(&changes)?;
    files.end(done);
    Ok(())
}

/// The same, made durable whenever 1 MiB was written, and at the end.
fn natural(files: &mut dyn Files, count: u64) -> Result<()> {
    let (made, transactions) = split(count, NATURAL_TRANSACTIONS);
    populate(files, &made)?;
    files.begin("transactions");
    let (mut done, mut synced) = (Done::default(), 0);
    for operation in &transactions {
        perform(files, operation, MEBIBYTE, false, &mut done)?;
        if done.bytes - synced >= NATURAL_BYTES {
            files.sync()?;
            synced = done.bytes;
        }
    }
    files.sync()?;
    files.end(done);
    Ok(())
}

/// Begins a phase, does `count` times what `work` says, ends it.
fn phase(files: &mut dyn Files, name: &str, done: Done, work: impl FnOnce(&mut dyn Files) -> Result<()>) -> Result<()> {
    files.begin(name);
    work(files)?;
    files.end(done);
    Ok(())
}

/// Written a MiB at a time; read four at a time, so that a kernel's reading ahead is no advantage.
fn sequential(files: &mut dyn Files) -> Result<()> {
    let done = Done { operations: LARGE / MEBIBYTE, bytes: LARGE };
    phase(files, "write", done, |files| {
        files.create("large", 0, MEBIBYTE, false)?;
        files.write("large", 0, LARGE, MEBIBYTE, true)
    })?;
    files.remount()?;
    phase(files, "read", done, |files| files.read("large", 0, LARGE, 4 * MEBIBYTE).map(|_| ()))
}

/// Single blocks anywhere in a large file, each durable.
fn random_write(files: &mut dyn Files) -> Result<()> {
    const WRITES: u64 = 8000;
    files.create("large", 0, MEBIBYTE, false)?;
    files.write("large", 0, LARGE, MEBIBYTE, true)?;
    files.sync()?;
    let mut place = Prng::new(7);
    phase(files, "write", Done { operations: WRITES, bytes: WRITES * 4096 }, |files| {
        (0..WRITES).try_for_each(|_| files.write("large", place.below(LARGE / 4096) * 4096, 4096, 4096, true))
    })
}

/// As IOzone with `-e`: records of 4 KB, each file made durable when it is written. Of small files
/// there are several.
fn iozone(files: &mut dyn Files) -> Result<()> {
    for size in SIZES {
        let kilobytes = size >> 10;
        let count = ((4 << 20) / size).clamp(1, 64);
        let done = Done { operations: count * size / 4096, bytes: count * size };
        let name = |number| format!("iozone{kilobytes}-{number}");
        phase(files, &format!("write {kilobytes}K"), done, |files| {
            (0..count).try_for_each(|number| {
                files.create(&name(number), 0, CALL, false)?;
                files.write(&name(number), 0, size, 4096, true)
            })
        })?;
        phase(files, &format!("rewrite {kilobytes}K"), done, |files| {
            (0..count).try_for_each(|number| files.write(&name(number), 0, size, 4096, true))
        })?;
        files.remount()?;
        phase(files, &format!("read {kilobytes}K"), done, |files| {
            (0..count).try_for_each(|number| files.read(&name(number), 0, size, 4096).map(|_| ()))
        })?;
        (0..count).try_for_each(|number| files.delete(&name(number), false))?;
        files.sync()?;
    }
    Ok(())
}

/// Directories up to ten deep; a file is changed after each 16 KB, and the next is one anywhere.
fn template(files: &mut dyn Files) -> Result<()> {
    const PIECE: u64 = 16 << 10;
    const DEPTH_MAX: u64 = 10;
    let mut prng = Prng::new(11);
    let mut directories = vec![String::new()];
    while directories.len() < 60 {
        let parent = &directories[prng.below(directories.len() as u64) as usize];
        if parent.matches('/').count() as u64 <= DEPTH_MAX {
            let made = format!("{parent}d{}/", directories.len());
            files.make_directory(made.trim_end_matches('/'))?;
            directories.push(made);
        }
    }
    for size in SIZES {
        let kilobytes = size >> 10;
        let file_bytes = (size / 256).clamp(PIECE, 1 << 20);
        let count = size / file_bytes;
        let home = |prng: &mut Prng, number| {
            let directory = &directories[prng.below(directories.len() as u64) as usize];
            format!("{directory}template{kilobytes}-{number}")
        };
        let names: Vec<String> = (0..count).map(|number| home(&mut prng, number)).collect();
        // Which file comes when; a file grows from its beginning on.
        let mut order: Vec<usize> =
            (0..count as usize).flat_map(|file| vec![file; (file_bytes / PIECE) as usize]).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, prng.below(at as u64 + 1) as usize);
        }
        let mut next = vec![0; count as usize];
        let pieces: Vec<(&str, u64)> = order
            .into_iter()
            .map(|file| {
                next[file] += PIECE;
                (names[file].as_str(), next[file] - PIECE)
            })
            .collect();
        let done = Done { operations: pieces.len() as u64, bytes: size };
        phase(files, &format!("write {kilobytes}K"), done, |files| {
            pieces.iter().try_for_each(|(name, offset)| {
                if *offset == 0 {
                    files.create(name, PIECE, PIECE, true)
                } else {
                    files.append(name, PIECE, PIECE, true)
                }
            })
        })?;
        phase(files, &format!("rewrite {kilobytes}K"), done, |files| {
            pieces.iter().try_for_each(|(name, offset)| files.write(name, *offset, PIECE, PIECE, true))
        })?;
        files.remount()?;
        phase(files, &format!("read {kilobytes}K"), done, |files| {
            pieces.iter().try_for_each(|(name, offset)| files.read(name, *offset, PIECE, PIECE).map(|_| ()))
        })?;
        names.iter().try_for_each(|name| files.delete(name, false))?;
        files.sync()?;
    }
    Ok(())
}

/// As Bonnie++ with `-b`: pieces of 16 KB of a large file.
fn bonnie(files: &mut dyn Files) -> Result<()> {
    const PIECE: u64 = 16 << 10;
    let done = Done { operations: LARGE / PIECE, bytes: LARGE };
    phase(files, "write", done, |files| {
        files.create("large", 0, MEBIBYTE, false)?;
        files.write("large", 0, LARGE, PIECE, true)
    })?;
    files.remount()?;
    phase(files, "rewrite", done, |files| {
        for at in 0..LARGE / PIECE {
            files.read("large", at * PIECE, PIECE, PIECE)?;
            files.write("large", at * PIECE, PIECE, PIECE, false)?;
        }
        files.sync()
    })?;
    files.remount()?;
    phase(files, "read", done, |files| files.read("large", 0, LARGE, PIECE).map(|_| ()))
}
