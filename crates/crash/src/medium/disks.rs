//! A fast and a big disk, cut together: each keeps, of what it was not told to flush, any of the
//! units that it does not tear, and the fast one may be lost altogether or show what it held some
//! time before.
//!
//! Positions count the changes of both in the order in which they were made.

use crate::medium::{Budget, Medium, Trace, Walk};
use onode_base::Prng;
use onode_base::sync::{Mutex, rank};
use onode_media::blockdev::SECTOR_BYTES;
use onode_media::sim::disk::SimDisk;
use onode_media::sim::disk::cache::Cached;
use onode_media::sim::disk::log::{DiskEvent, DiskLog, DiskOperation};
use onode_media::{BlockDev, Seam};
use std::collections::VecDeque;
use std::sync::Arc;

/// The number of the big disk.
const BIG: usize = 0;
/// The number of the fast disk.
const FAST: usize = 1;

/// Both at rest.
#[derive(Clone)]
pub struct DisksImage {
    /// Bytes of the big disk and of the fast one.
    pub bytes: [u64; 2],
    /// What they hold.
    pub content: [Cached; 2],
    /// Acknowledged changes survive the loss of the fast disk.
    pub survives_loss: bool,
}

impl DisksImage {
    /// Empty disks.
    #[must_use]
    pub fn blank(big: u64, fast: u64, survives_loss: bool) -> Self {
        let content = [Cached::default(), Cached::default()].map(Cached::with_arbitrary_discards);
        Self { bytes: [big, fast], content, survives_loss }
    }
}

struct DisksInner {
    begin: DisksImage,
    log: DiskLog,
    is_recording: bool,
}

/// A shared handle to both.
#[derive(Clone)]
pub struct Disks {
    disks: [SimDisk; 2],
    seam: Seam,
    inner: Arc<Mutex<DisksInner, rank::MediumWork>>,
}

impl Disks {
    /// The big disk.
    #[must_use]
    pub fn big(&self) -> Box<dyn BlockDev> {
        Box::new(self.disks[BIG].clone())
    }

    /// The fast disk.
    #[must_use]
    pub fn fast(&self) -> Box<dyn BlockDev> {
        Box::new(self.disks[FAST].clone())
    }

    /// Whether the fast disk is blank.
    #[must_use]
    pub fn is_fast_lost(&self) -> bool {
        let mut first = [0; SECTOR_BYTES];
        self.disks[FAST].content().read(0, &mut first);
        first.iter().all(|byte| *byte == 0)
    }

    fn record(&self, log: &DiskLog) {
        self.disks.iter().enumerate().for_each(|(number, disk)| disk.record(log, number));
    }
}

impl Medium for Disks {
    type Image = DisksImage;
    type Trace = DisksTrace;

    fn new(image: DisksImage, is_recording: bool) -> Self {
        let disk =
            |number: usize, name| SimDisk::from_content(name, image.bytes[number], image.content[number].clone());
        let disks = [disk(BIG, "big"), disk(FAST, "fast")];
        let log = DiskLog::default();
        let inner = DisksInner { begin: image, log: log.clone(), is_recording };
        let this = Self { disks, seam: Seam::default(), inner: Arc::new(Mutex::new(inner)) };
        if is_recording {
            this.record(&log);
        }
        this
    }

    fn image(&self) -> DisksImage {
        let inner = self.inner.lock();
        DisksImage { content: [BIG, FAST].map(|number| self.disks[number].content().settled()), ..inner.begin.clone() }
    }

    fn position(&self) -> usize {
        self.inner.lock().log.mark()
    }

    fn take_trace(&self) -> DisksTrace {
        let next = DisksImage {
            content: [BIG, FAST].map(|number| self.disks[number].content()),
            ..self.inner.lock().begin.clone()
        };
        let mut inner = self.inner.lock();
        let log = DiskLog::default();
        if inner.is_recording {
            self.record(&log);
        }
        let events = std::mem::replace(&mut inner.log, log).events();
        DisksTrace { begin: std::mem::replace(&mut inner.begin, next), events }
    }

    // A device has a disk's lock while that works: it tells before it takes it.
    fn seam(&self) -> Option<Seam> {
        Some(self.seam.clone())
    }
}

/// Every change of a run on either disk.
pub struct DisksTrace {
    begin: DisksImage,
    events: Vec<DiskEvent>,
}

/// What a cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Both have exactly what they flushed.
    Flushed,
    /// Both have everything, the operation itself included.
    Everything,
    /// Each unit by itself.
    Torn,
    /// Each write by itself, whole.
    Writes,
    /// Of what was not flushed the last write of each and nothing before it.
    Last,
    /// The big disk everything, the fast one what it flushed.
    BigAhead,
    /// The fast disk everything, the big one what it flushed.
    FastAhead,
    /// The fast disk is gone; another blank one stands in its place.
    Lost,
    /// The fast disk shows what it held some flushes ago.
    RolledBack,
}

const ALL: [Left; 9] = [
    Left::Flushed,
    Left::Everything,
    Left::Torn,
    Left::Writes,
    Left::Last,
    Left::BigAhead,
    Left::FastAhead,
    Left::Lost,
    Left::RolledBack,
];
/// Those of [`ALL`] that leave the fast disk as it said that it was.
const HONEST: usize = 7;
/// Of [`Left::Torn`] and [`Left::Writes`] there are so many with different choices.
const CHOICES: usize = 3;
/// How many flushes a disk may be rolled back by.
const REMEMBERED: usize = 6;

impl Trace for DisksTrace {
    type Image = DisksImage;
    type Walk<'a> = DisksWalk<'a>;

    fn operations(&self) -> usize {
        self.events.len()
    }

    fn wraps(&self) -> u64 {
        let written = self.events.iter().map(|event| match &event.operation {
            DiskOperation::Write { bytes, .. } if event.disk == BIG => bytes.len() as u64,
            _ => 0,
        });
        written.sum::<u64>() * 100 / self.begin.bytes[BIG].max(1)
    }

    fn places(&self, budget: &Budget) -> Vec<usize> {
        let each = if budget.variants == 0 { ALL.len() as u64 } else { budget.variants as u64 };
        let expected = self.events.len() as u64 * each;
        let mut prng = Prng::new(budget.seed ^ 0xd15c5);
        let wanted = |_: &usize| expected <= budget.states || prng.chance(budget.states.max(1), expected);
        let mut all: Vec<usize> = (0..self.events.len()).filter(wanted).collect();
        all.push(self.events.len());
        all
    }

    fn walk(&self) -> DisksWalk<'_> {
        DisksWalk { trace: self, position: 0, content: self.begin.content.clone(), before: VecDeque::new() }
    }

    fn check_commits(&self) -> Result<(), String> {
        Ok(())
    }

    fn describe(&self, position: usize) -> String {
        let Some(DiskEvent { disk, operation }) = self.events.get(position) else { return "the end".into() };
        let name = if *disk == BIG { "big" } else { "fast" };
        match operation {
            DiskOperation::Write { offset, bytes } => format!("{name}: write {} bytes at {offset:#x}", bytes.len()),
            DiskOperation::Discard { offset, length } => format!("{name}: discard {length} bytes at {offset:#x}"),
            DiskOperation::Flush => format!("{name}: flush"),
            DiskOperation::FlushBegin => format!("{name}: a flush begins"),
            DiskOperation::FlushEnd => format!("{name}: the flush is done"),
        }
    }

    fn describe_variant(&self, _position: usize, variant: usize) -> String {
        let left = ALL.get(variant / CHOICES).copied().unwrap_or(Left::Flushed);
        format!("{left:?} {}", variant % CHOICES)
    }
}

/// Goes through both together.
pub struct DisksWalk<'a> {
    trace: &'a DisksTrace,
    position: usize,
    content: [Cached; 2],
    /// What the fast disk held after its last flushes, the oldest first.
    before: VecDeque<Cached>,
}

impl DisksWalk<'_> {
    fn go_to(&mut self, position: usize) {
        if position < self.position {
            *self = self.trace.walk();
        }
        for event in &self.trace.events[self.position..position] {
            if event.disk == FAST && matches!(event.operation, DiskOperation::Flush) {
                self.before.push_back(self.content[FAST].after_cut(|_, _| false));
                if self.before.len() > REMEMBERED {
                    self.before.pop_front();
                }
            }
            event.operation.apply(&mut self.content[event.disk]);
        }
        self.position = position;
    }
}

impl Walk for DisksWalk<'_> {
    type Image = DisksImage;

    fn variants(&mut self, position: usize, most: usize, _is_last: bool, prng: &mut Prng) -> Vec<usize> {
        self.go_to(position);
        let waiting = [BIG, FAST].map(|number| self.content[number].pending().len());
        let is_write = self.trace.events.get(position).is_some_and(|event| {
            matches!(event.operation, DiskOperation::Write { .. } | DiskOperation::Discard { .. })
        });
        let pending = waiting[BIG] + waiting[FAST] + usize::from(is_write);
        let mut all = Vec::new();
        for (number, left) in ALL.into_iter().enumerate() {
            let choices = match left {
                Left::Flushed => 1,
                Left::Everything | Left::Last => usize::from(pending > 0),
                Left::Torn | Left::Writes => {
                    if pending > 1 {
                        CHOICES
                    } else {
                        pending
                    }
                }
                Left::BigAhead | Left::FastAhead => usize::from(waiting[BIG] > 0 && waiting[FAST] > 0),
                Left::Lost => usize::from(self.trace.begin.survives_loss),
                Left::RolledBack => usize::from(self.trace.begin.survives_loss && !self.before.is_empty()),
            };
            // Nothing is lost with a fast disk that is found again: now and then is enough.
            if number < HONEST || prng.chance(1, 4) {
                all.extend((0..choices).map(|choice| number * CHOICES + choice));
            }
        }
        while most > 0 && all.len() > most {
            all.swap_remove(prng.below(all.len() as u64) as usize);
        }
        all
    }

    fn image(&mut self, position: usize, variant: usize, seed: u64) -> Option<DisksImage> {
        if position > self.trace.events.len() {
            return None;
        }
        self.go_to(position);
        let left = *ALL.get(variant / CHOICES)?;
        let mut content = self.content.clone();
        // The operation itself may have got through, in part or as a whole; a flush then makes part
        // of it durable.
        if let Some(event) = self.trace.events.get(position)
            && !event.operation.is_flush()
        {
            event.operation.apply(&mut content[event.disk]);
        }
        let mut prng = Prng::new(seed);
        let back = prng.below(self.before.len().max(1) as u64) as usize;
        let mut cut = |number: usize, left: Left| {
            let of = &content[number];
            let last = of.pending().len().saturating_sub(1);
            match left {
                Left::Flushed => of.after_cut(|_, _| false),
                Left::Everything => of.after_cut(|_, _| true),
                Left::Last => of.after_cut(|write, _| write == last),
                Left::Writes => {
                    let survives: Vec<bool> = of.pending().iter().map(|_| prng.chance(1, 2)).collect();
                    of.after_cut(|write, _| survives[write])
                }
                // Some lose half of what waits, some a little, some nearly all.
                _ => {
                    let of_eight = [4, 7, 1][variant % CHOICES];
                    of.after_cut(|_, _| prng.chance(of_eight, 8))
                }
            }
        };
        let content = match left {
            Left::BigAhead => [cut(BIG, Left::Everything), cut(FAST, Left::Flushed)],
            Left::FastAhead => [cut(BIG, Left::Flushed), cut(FAST, Left::Everything)],
            Left::Lost => [cut(BIG, Left::Torn), Cached::default().with_arbitrary_discards()],
            Left::RolledBack => [cut(BIG, Left::Torn), self.before.get(back).cloned().unwrap_or_default()],
            other => [cut(BIG, other), cut(FAST, other)],
        };
        Some(DisksImage { content, ..self.trace.begin.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_media::IoTag;

    fn read(content: &Cached, at: u64) -> u8 {
        let mut sector = [0; 4096];
        content.read(at, &mut sector);
        sector[0]
    }

    /// Both disks write and flush; then the fast one writes again.
    fn recorded() -> DisksTrace {
        let disks = Disks::new(DisksImage::blank(1 << 20, 1 << 20, true), true);
        for (mut disk, byte) in [(disks.big(), 1), (disks.fast(), 2)] {
            disk.write_at(0, &[byte; 4096], IoTag::Data).expect("write");
            disk.flush().expect("flush");
        }
        disks.fast().write_at(0, &[3; 4096], IoTag::Data).expect("write");
        disks.take_trace()
    }

    #[test]
    fn a_cut_leaves_what_was_flushed_and_perhaps_more() {
        let trace = recorded();
        assert_eq!(trace.operations(), 5);
        let mut walk = trace.walk();
        let variant = |left: Left| ALL.iter().position(|one| *one == left).expect("there") * CHOICES;
        let mut fast = |position, left| {
            let image = walk.image(position, variant(left), 7).expect("a position");
            read(&image.content[FAST], 0)
        };
        assert_eq!(fast(5, Left::Flushed), 2);
        assert_eq!(fast(5, Left::Everything), 3);
        assert_eq!(fast(4, Left::Last), 3, "the operation itself may have got through");
        assert_eq!(fast(5, Left::Lost), 0);
        assert_eq!(fast(5, Left::RolledBack), 0);
        assert_eq!(fast(3, Left::Flushed), 0);
        assert_eq!(fast(3, Left::Everything), 2);
    }

    #[test]
    fn only_a_volume_that_survives_it_loses_its_fast_disk() {
        let mut trace = recorded();
        let mut prng = Prng::new(1);
        let mut worst = |trace: &DisksTrace| {
            let variants = (0..64).flat_map(|_| trace.walk().variants(5, 0, true, &mut prng)).max();
            variants.map(|variant| ALL[variant / CHOICES])
        };
        assert_eq!(worst(&trace), Some(Left::RolledBack));
        trace.begin.survives_loss = false;
        assert_ne!(worst(&trace).map(|left| matches!(left, Left::Lost | Left::RolledBack)), Some(true));
    }
}
