//! Runs a stream of operations through a file system and reports what it cost.

mod latency;

use crate::bench::{Bench, Caches, Durability};
use crate::replay::latency::Latencies;
use crate::report::{Nand, Report, Stall, WearSpread};
use crate::stream::Operation;
use onode::{Class, Error, Result, Spec, Volume};
use onode_base::Prng;
use onode_fs::{AccessTimes, Caller, InodeNumber, OpenFlags};
use onode_media::{Counters, IoTag, OperationCounts};

/// Programs write and read in calls of this size.
const CALL_BYTES: usize = 4096;
/// Content is taken from a pool of this size, from ever different places.
const POOL_BYTES: usize = 1 << 20;

/// What to run on what.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the stream, for the report.
    pub trace: String,
    /// The device.
    pub device: Spec,
    /// When operations are made durable.
    pub durability: Durability,
    /// The device's caches.
    pub caches: Caches,
    /// Which reads renew access times.
    pub access_times: AccessTimes,
}

/// Runs `operations`; the last of them are made durable before the counting ends.
///
/// # Errors
/// `Usage` for a device that cannot be measured or a stream that makes no sense; what the file
/// system reports, with the operation that failed.
pub fn replay(settings: &Settings, operations: &[Operation]) -> Result<Report> {
    replay_and(settings, operations, |_| ()).map(|(report, ())| report)
}

/// As [`replay`]; `look` sees the device at the end.
///
/// # Errors
/// As [`replay`].
pub(crate) fn replay_and<T>(
    settings: &Settings,
    operations: &[Operation],
    look: impl FnOnce(&Bench) -> T,
) -> Result<(Report, T)> {
    let bench =
        Bench::with_access_times(&settings.device, settings.durability, settings.caches, settings.access_times)?;
    let mut run = Run {
        durability: settings.durability,
        pool: content(),
        buffer: vec![0; CALL_BYTES],
        place: Prng::new(1),
        written: 0,
        done: 0,
        ram_peak: 0,
        latencies: Latencies::default(),
        base: Baseline::of(&bench),
        bench,
    };
    let begin = processor_seconds();
    for (index, operation) in operations.iter().enumerate() {
        run.step(operation).map_err(|error| {
            let what = format!("operation {} of {} failed: {operation:?}", index + 1, settings.trace);
            Volume::error(what, &error)
        })?;
    }
    run.bench.files.sync().map_err(|error| Volume::error("the last sync failed", &error))?;
    let processor = processor_seconds() - begin;
    let seen = look(&run.bench);
    Ok((run.report(settings, processor)?, seen))
}

/// Where counting began.
struct Baseline {
    nand: Counters,
    nanoseconds: u64,
    figures: Vec<(String, u64)>,
}

impl Baseline {
    fn of(bench: &Bench) -> Self {
        Self { nand: bench.counters(), nanoseconds: bench.nanoseconds(), figures: bench.figures() }
    }

    fn figure(&self, name: &str) -> u64 {
        self.figures.iter().find(|(one, _)| one == name).map_or(0, |(_, value)| *value)
    }
}

struct Run {
    bench: Bench,
    durability: Durability,
    pool: Vec<u8>,
    buffer: Vec<u8>,
    place: Prng,
    written: u64,
    done: u64,
    ram_peak: u64,
    latencies: Latencies,
    base: Baseline,
}

impl Run {
    fn step(&mut self, operation: &Operation) -> onode_fs::Result<()> {
        if *operation == Operation::Measure {
            self.bench.files.sync()?;
            self.base = Baseline::of(&self.bench);
            self.latencies.clear();
            (self.written, self.done) = (0, 0);
            return Ok(());
        }
        let begin = self.bench.nanoseconds();
        self.perform(operation)?;
        self.bench.files.tick();
        self.latencies.add(self.bench.nanoseconds() - begin);
        self.done += 1;
        self.ram_peak = self.ram_peak.max(self.bench.ram_bytes());
        Ok(())
    }

    fn perform(&mut self, operation: &Operation) -> onode_fs::Result<()> {
        match operation {
            Operation::Create(name, bytes) => {
                let inode = self.bench.files.create(&Caller::root(), InodeNumber::ROOT, name.as_bytes(), 0o644)?.inode;
                self.write(inode, 0, *bytes)?;
                self.let_go(inode)
            }
            Operation::Append(name, bytes) => {
                let found = self.bench.files.lookup(InodeNumber::ROOT, name.as_bytes())?;
                self.write(found.inode, found.size, *bytes)?;
                self.let_go(found.inode)
            }
            Operation::Write(name, offset, bytes) => {
                let found = self.bench.files.lookup(InodeNumber::ROOT, name.as_bytes())?;
                self.write(found.inode, *offset, *bytes)?;
                self.let_go(found.inode)
            }
            Operation::Read(name) => {
                let found = self.bench.files.lookup(InodeNumber::ROOT, name.as_bytes())?;
                self.read(found.inode, 0, found.size)?;
                self.let_go(found.inode)
            }
            Operation::ReadPart(name, offset, bytes) => {
                let found = self.bench.files.lookup(InodeNumber::ROOT, name.as_bytes())?;
                self.read(found.inode, *offset, *bytes)?;
                self.let_go(found.inode)
            }
            Operation::Delete(name) => {
                self.bench.files.unlink(InodeNumber::ROOT, name.as_bytes())?;
                match self.durability {
                    Durability::Operation => self.bench.files.fsync(InodeNumber::ROOT, None, false),
                    Durability::Natural | Durability::Lazy => Ok(()),
                }
            }
            Operation::Measure => Ok(()),
        }
    }

    /// Open, write in calls, make durable if every operation must be, close.
    fn write(&mut self, inode: InodeNumber, offset: u64, bytes: u64) -> onode_fs::Result<()> {
        let files = &self.bench.files;
        let handle = files.open(&Caller::root(), inode, OpenFlags { write: true, truncate: false })?;
        let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut at = offset;
        while left > 0 {
            let take = left.min(CALL_BYTES);
            let from = self.place.below((POOL_BYTES - CALL_BYTES) as u64) as usize;
            let piece = self.pool.get(from..from + take).unwrap_or_default();
            let done = files.write(&Caller::root(), inode, at, piece)?;
            at += done as u64;
            left -= done;
        }
        self.written += bytes;
        match self.durability {
            Durability::Operation => files.fsync(inode, Some(handle), false)?,
            Durability::Natural | Durability::Lazy => (),
        }
        files.flush(handle)?;
        files.release(handle)
    }

    fn read(&mut self, inode: InodeNumber, offset: u64, bytes: u64) -> onode_fs::Result<()> {
        let files = &self.bench.files;
        let handle = files.open(&Caller::root(), inode, OpenFlags::default())?;
        let mut at = offset;
        while at < offset + bytes {
            let wanted = usize::try_from(offset + bytes - at).unwrap_or(usize::MAX).min(CALL_BYTES);
            let got = files.read(inode, at, self.buffer.get_mut(..wanted).unwrap_or_default())?;
            if got == 0 {
                break;
            }
            at += got as u64;
        }
        files.release(handle)
    }

    /// Gives back the use that `create` and `lookup` count.
    fn let_go(&self, inode: InodeNumber) -> onode_fs::Result<()> {
        self.bench.files.forget(inode, 1);
        Ok(())
    }

    fn report(self, settings: &Settings, processor: f64) -> Result<Report> {
        let end = Baseline::of(&self.bench);
        let since = |name: &str| end.figure(name) - self.base.figure(name);
        let difference = |now: OperationCounts, then: OperationCounts| Nand {
            reads: now.reads - then.reads,
            programs: now.programs - then.programs,
            erases: now.erases - then.erases,
        };
        let nand = difference(end.nand.total(), self.base.nand.total());
        let by_tag = IoTag::ALL
            .into_iter()
            .map(|tag| (tag.name(), difference(end.nand.of(tag), self.base.nand.of(tag))))
            .filter(|(_, nand)| *nand != Nand::default())
            .collect();
        if self.done == 0 {
            return Err(Error::new(Class::Usage, "there is nothing to measure", "the stream has no operations"));
        }
        let (wear, blocks) = self.bench.wear();
        let spent = end.nanoseconds - self.base.nanoseconds;
        let programmed = nand.programs * u64::from(self.bench.page_bytes());
        Ok(Report {
            trace: settings.trace.clone(),
            device: settings.device.to_string(),
            durability: settings.durability.name(),
            ops: self.done,
            user_bytes_written: self.written,
            nand,
            by_tag,
            segments_cleaned: since("segments_cleaned"),
            bytes_moved: since("bytes_moved"),
            node_bytes_moved: since("node_bytes_moved"),
            virtual_s: spent as f64 / 1e9,
            write_amplification: if self.written == 0 { 0.0 } else { programmed as f64 / self.written as f64 },
            wear: WearSpread { min: wear.least, mean: wear.total as f64 / f64::from(blocks), max: wear.most },
            segment_wear: self.bench.segment_wear(),
            ram_peak_bytes: self.ram_peak,
            cpu_s: processor,
            latency_us: self.latencies.percentiles(),
            stall_us: Stall {
                p50: end.figure("stall_us.p50"),
                p99: end.figure("stall_us.p99"),
                max: end.figure("stall_us.max"),
            },
        })
    }
}

/// Random printable text, as PostMark writes it.
fn content() -> Vec<u8> {
    let mut prng = Prng::new(95);
    (0..POOL_BYTES).map(|_| b' ' + prng.below(95) as u8).collect()
}

/// Processor time of this process.
pub(crate) fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
