//! The disks of the experiments, and recordings played on them in virtual time.
//!
//! The disks are those of paper 4, Table 1. A solid-state disk begins as one that was full once:
//! every page of it was written, in order, before anything is measured.
//!
//! How requests of a recording overlap. A write is posted: the host goes on when the disk has taken
//! it, and a flush waits until all are done, as file systems wait that make something durable. A
//! read is waited for, except that one which continues the read before it is asked for while that
//! is still under way, as a kernel reads ahead: two of them are under way at any time. What was
//! asked for while a flush was under way is asked for then. The same disks serve our side
//! ([`super::own`]), where the device itself decides what overlaps.

use super::recording::{Done, Event, Recording};
use onode_media::sim::disk::ftl::{LogBlock, PageMap, Translation};
use onode_media::sim::disk::hdd::{Hdd, HddOptions};
use onode_media::sim::disk::model::DiskModel;
use onode_media::sim::disk::ssd::{Ssd, SsdOptions};

/// Spare flash of the page-mapped disk, and log blocks of the other, in percent.
const SPARE_PERCENT: u64 = 25;
const LOG_PERCENT: u64 = 3;

/// A kind of disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Turning platters.
    Hdd,
    /// Flash whose translation layer maps pages.
    PageMapped,
    /// Flash whose translation layer maps blocks, with a log.
    LogBlock,
}

impl Disk {
    /// Both kinds of flash.
    pub const FLASH: [Self; 2] = [Self::PageMapped, Self::LogBlock];

    /// Its name in rows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hdd => "HDD",
            Self::PageMapped => "page-mapped SSD",
            Self::LogBlock => "log-block SSD",
        }
    }

    /// A disk of `bytes`.
    #[must_use]
    pub fn model(self, bytes: u64) -> Box<dyn DiskModel> {
        let options = SsdOptions::iodrive();
        let pages = bytes / options.page_bytes;
        let used = |mut layer: Box<dyn Translation>| {
            for page in 0..pages {
                layer.write(page);
            }
            Box::new(Ssd::new(options, layer))
        };
        match self {
            Self::Hdd => Box::new(Hdd::new(HddOptions::seagate_750())),
            Self::PageMapped => {
                used(Box::new(PageMap::new(pages, options.pages_per_block, SPARE_PERCENT, options.lanes)))
            }
            Self::LogBlock => used(Box::new(LogBlock::new(pages, options.pages_per_block, LOG_PERCENT))),
        }
    }
}

/// What a disk did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests.
    pub reads: u64,
    /// Requests.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes.
    pub bytes_read: u64,
    /// Bytes.
    pub bytes_written: u64,
    /// Pages that the host wrote to flash.
    pub pages: u64,
    /// Pages programmed for them.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
}

impl Requests {
    /// What came after `before`.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            flushes: self.flushes - before.flushes,
            bytes_read: self.bytes_read - before.bytes_read,
            bytes_written: self.bytes_written - before.bytes_written,
            pages: self.pages - before.pages,
            programs: self.programs - before.programs,
            erases: self.erases - before.erases,
        }
    }

    /// With what a model counts.
    #[must_use]
    pub fn with_flash(self, counters: &[(&'static str, u64)]) -> Self {
        let named = |name| counters.iter().find(|(one, _)| *one == name).map_or(0, |(_, value)| *value);
        let (pages, programs) = (named("pages written"), named("pages programmed"));
        Self { pages, programs, erases: named("blocks erased"), ..self }
    }

    /// Pages programmed for each that the host wrote.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        self.programs as f64 / self.pages.max(1) as f64
    }
}

/// What a phase of a workload took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The phase.
    pub name: String,
    /// What the program did.
    pub done: Done,
    /// Virtual time.
    pub nanoseconds: u64,
    /// What each disk did: the fast one first where there are two.
    pub disks: Vec<Requests>,
}

impl Phase {
    /// Operations in a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.done.operations as f64 * 1e9 / self.nanoseconds.max(1) as f64
    }

    /// Millions of bytes in a second.
    #[must_use]
    pub fn megabytes_a_second(&self) -> f64 {
        self.done.bytes as f64 * 1e3 / self.nanoseconds.max(1) as f64
    }
}

struct Replay {
    model: Box<dyn DiskModel>,
    now: u64,
    /// The end of the last read and when it is done, while the next may continue it.
    ahead: Option<(u64, u64)>,
    /// When the flush under way is done.
    flush: Option<u64>,
    requests: Requests,
}

impl Replay {
    /// Waits for what was read ahead.
    fn settle(&mut self) {
        if let Some((_, done)) = self.ahead.take() {
            self.now = self.now.max(done);
        }
    }

    fn read(&mut self, offset: u64, length: u64) {
        match self.ahead {
            Some((end, _)) if end == offset => {}
            _ => self.settle(),
        }
        let done = self.model.read(self.now, offset, length);
        // The one before must be there before a third is asked for.
        self.settle();
        self.ahead = Some((offset + length, done));
        self.requests.reads += 1;
        self.requests.bytes_read += length;
    }

    fn change(&mut self, event: &Event) {
        match event {
            Event::Read(offset, length) => self.read(*offset, *length),
            Event::Write(offset, length) => {
                self.settle();
                self.now = self.now.max(self.model.write(self.now, *offset, *length));
                self.requests.writes += 1;
                self.requests.bytes_written += length;
            }
            Event::Discard(offset, length) => {
                self.settle();
                self.model.discard(*offset, *length);
            }
            Event::FlushBegin => {
                self.settle();
                self.flush = Some(self.model.flush(self.now));
            }
            Event::Flush => {
                self.settle();
                let done = self.flush.take().unwrap_or_else(|| self.model.flush(self.now));
                self.now = self.now.max(done);
                self.requests.flushes += 1;
            }
            Event::Begin(_) | Event::End(_) => self.settle(),
        }
    }

    fn requests(&self) -> Requests {
        self.requests.with_flash(&self.model.counters())
    }
}

/// What the phases of a recording take on a disk.
#[must_use]
pub fn replay(recording: &Recording, disk: Disk) -> Vec<Phase> {
    let model = disk.model(recording.disk_bytes);
    let mut replay = Replay { model, now: 0, ahead: None, flush: None, requests: Requests::default() };
    let (mut phases, mut begun) = (Vec::new(), None);
    for event in &recording.events {
        replay.change(event);
        match event {
            Event::Begin(name) => begun = Some((name.clone(), replay.now, replay.requests())),
            Event::End(done) => {
                if let Some((name, begin, before)) = begun.take() {
                    let disks = vec![replay.requests().since(before)];
                    phases.push(Phase { name, done: *done, nanoseconds: replay.now - begin, disks });
                }
            }
            _ => (),
        }
    }
    phases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tier::Recordings;

    fn of(events: &[Event]) -> Vec<Phase> {
        let mut all = vec![Event::Begin("all".to_owned())];
        all.extend_from_slice(events);
        all.push(Event::End(Done { operations: 1, bytes: 4096 }));
        replay(&Recording { disk_bytes: 64 << 20, events: all }, Disk::PageMapped)
    }

    #[test]
    fn equal_recordings_take_equal_time() {
        let events: Vec<Event> =
            (0..500).flat_map(|turn| [Event::Write(turn * 7919 % 8000 * 4096, 4096), Event::Flush]).collect();
        assert_eq!(of(&events), of(&events));
        assert_eq!(of(&events)[0].disks[0].flushes, 500);
    }

    #[test]
    fn what_xfs_asked_for_takes_the_same_time_twice() {
        let recording = Recordings::Embedded.find("xfs-sequential").expect("sound").expect("a recording");
        let phases = replay(&recording, Disk::Hdd);
        assert_eq!(phases, replay(&recording, Disk::Hdd));
        let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["write", "read"]);
        // All of it went to the disk and came from there.
        assert!(phases[0].disks[0].bytes_written >= 256 << 20 && phases[1].disks[0].bytes_read >= 256 << 20);
        assert!(phases.iter().all(|phase| (50.0..110.0).contains(&phase.megabytes_a_second())), "{phases:?}");
    }

    #[test]
    fn reads_in_order_overlap_and_others_do_not() {
        let read = |stride: u64| (0..64).map(|at| Event::Read(at * stride, 4096)).collect::<Vec<_>>();
        let (in_order, apart) = (of(&read(4096)), of(&read(8192)));
        assert!(in_order[0].nanoseconds * 10 < apart[0].nanoseconds * 6, "{in_order:?} {apart:?}");
    }

    #[test]
    fn a_flush_waits_for_writes() {
        let write = [Event::Write(0, 4096)];
        let flushed = [Event::Write(0, 4096), Event::Flush];
        assert!(of(&flushed)[0].nanoseconds > of(&write)[0].nanoseconds);
    }
}
