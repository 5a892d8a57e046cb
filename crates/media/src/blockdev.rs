//! Block devices: sectors that are rewritten in place, behind a cache that forgets.

pub mod joined;
pub mod replace;

use crate::error::{Error, MediaErrorKind, Result};
use crate::tag::IoTag;
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use replace::ReplaceDisk;

/// Offsets and lengths are multiples of this: the sector that devices of today have, or pretend to
/// have eight of.
pub const SECTOR_BYTES: usize = 4096;

/// The unit that a power cut never tears, even on devices that promise the least.
pub const ATOMIC_BYTES: usize = 512;

/// A disk: bytes at offsets.
///
/// **Power cuts.** What was written is durable when a [`flush`](BlockDev::flush) that began after
/// the write has returned. Until then a cut leaves, of each 512 bytes by themselves, what they held
/// at the last flush or what any write since gave them: the device keeps its cache in no order. A
/// cut inside a flush makes some of it durable. What was discarded and not written since may read
/// as anything that was ever there, or as zeros.
///
/// A flush that fails leaves each write since the flush before durable or lost, and the next flush
/// that succeeds says nothing of them: who sees one fail writes again or gives up
/// (`research/reliability.md`, section 4).
pub trait BlockDev: Send {
    /// The device's name, for people.
    fn name(&self) -> &str;

    /// Bytes in all, a multiple of [`SECTOR_BYTES`].
    fn bytes(&self) -> u64;

    /// Reads `out.len()` bytes from `offset` on.
    ///
    /// # Errors
    /// `Uncorrectable` if the device lost them, `OutOfRange`, `Host`.
    fn read_at(&mut self, offset: u64, out: &mut [u8], tag: IoTag) -> Result<()>;

    /// Writes `bytes` from `offset` on.
    ///
    /// # Errors
    /// `ProgramFailed` if the device could not, `HostFull`, `ReadOnly`, `OutOfRange`, `Host`.
    fn write_at(&mut self, offset: u64, bytes: &[u8], tag: IoTag) -> Result<()>;

    /// Writes as [`write_at`](Self::write_at), but need not wait for it: the next flush says if it
    /// failed, and until the device is closed the bytes are read as if it had not. A device that
    /// cannot do that waits.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn post_write(&mut self, offset: u64, bytes: &[u8], tag: IoTag) -> Result<()> {
        self.write_at(offset, bytes, tag)
    }

    /// Makes a range read as zeros, and gives its space back if the device can do that.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn zero(&mut self, offset: u64, bytes: u64) -> Result<()>;

    /// Tells the device that a range holds nothing of value. What it reads as afterwards is the
    /// device's own affair: zeros, what was there, or anything else. A device that cannot be told
    /// does nothing.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn discard(&mut self, offset: u64, bytes: u64) -> Result<()>;

    /// Waits until all that was written survives a power cut.
    ///
    /// # Errors
    /// `Host`, `HostFull`.
    fn flush(&mut self) -> Result<()>;

    /// Begins a flush that goes on while other requests are made. It covers what was written before
    /// it; a power cut until [`flush_is_done`](Self::flush_is_done) says so finds all of that as if
    /// no flush had been asked for. One that is begun while another goes on takes its place. A
    /// device that cannot do that flushes at once.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    fn begin_flush(&mut self) -> Result<()> {
        self.flush()
    }

    /// Whether the flush that was begun last is done; true if there was none. Does not wait;
    /// [`flush`](Self::flush) does.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    fn flush_is_done(&mut self) -> Result<bool> {
        Ok(true)
    }

    /// Whether a write now would wait for requests before it, if the device can tell.
    fn is_busy(&mut self) -> bool {
        false
    }

    /// Bytes that are best written in whole, from a multiple of them on: an erase block, or a
    /// stripe over several disks. `None` if the device does not tell; a power of two otherwise.
    fn stripe_bytes(&self) -> Option<u64> {
        None
    }

    /// What other threads may use at the same time; `None` if all requests have to go through the
    /// owner.
    fn shared(&self) -> Option<Arc<dyn SharedDisk>> {
        None
    }

    /// Several reads that do not wait for one another, for devices that work on more than one at a
    /// time.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at), for the first that fails.
    fn read_batch(&mut self, reads: &mut [(u64, &mut [u8])], tag: IoTag) -> Result<()> {
        reads.iter_mut().try_for_each(|(offset, out)| self.read_at(*offset, out, tag))
    }

    /// Sees how long the device is now, and makes it `bytes` long if it is shorter and can be made
    /// longer, as a file can.
    ///
    /// # Errors
    /// `OutOfRange` if it stays shorter, `HostFull`, `Host`, `ReadOnly`.
    fn grow(&mut self, bytes: u64) -> Result<()> {
        if bytes <= self.bytes() {
            return Ok(());
        }
        Err(too_short(self.name(), self.bytes(), bytes))
    }

    /// Makes the device `bytes` long if it is longer and can be made shorter, as a file can; any
    /// other stays as it is.
    ///
    /// # Errors
    /// `Host`, `ReadOnly`.
    fn shrink(&mut self, bytes: u64) -> Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Goes on on `disk`, from where this one ends now, and has it say so: it is of the volume with
    /// the number `uuid` from now on.
    ///
    /// # Errors
    /// `Invalid` if it can only be one disk, `OutOfRange` if `disk` is too small; its own.
    fn join(&mut self, disk: Box<dyn BlockDev>, uuid: [u8; 16]) -> Result<()> {
        let _ = uuid;
        let why = format!("{} cannot go on on {}", self.name(), disk.name());
        Err(Error::new(MediaErrorKind::Invalid, why))
    }

    /// Gives a part of it another one's place; `None` if it has no parts.
    fn replaceable(&mut self) -> Option<&mut dyn ReplaceDisk> {
        None
    }

    /// How requests reach the device, in a few words for people; `None` if there is nothing to say.
    fn way(&self) -> Option<&'static str> {
        None
    }

    /// What was done since the device was opened, if it counts.
    fn counters(&self) -> Option<BlockCounters> {
        None
    }

    /// Virtual time at which everything begun is done, if the device counts it; else zero.
    fn virtual_nanoseconds(&self) -> u64 {
        self.counters().map_or(0, |counters| counters.virtual_nanoseconds)
    }
}

/// A read of a disk, and what became of it.
#[derive(Debug)]
pub struct DiskRead<'a> {
    /// The byte of the disk at which it begins.
    pub offset: u64,
    /// Where the bytes go.
    pub out: &'a mut [u8],
    /// Whether it was done. The others of a batch are done all the same.
    pub result: Result<()>,
}

/// What of a disk many threads may use while its owner writes; [`BlockDev::shared`] gives it out.
/// It must not outlive the owner's part by more than the calls under way.
pub trait SharedDisk: Send + Sync {
    /// Whether only the owner reads these bytes right now: he has posted a write of them that the
    /// device does not have yet, or never took.
    fn is_in_the_way(&self, _offset: u64, _bytes: u64) -> bool {
        false
    }

    /// Reads as [`BlockDev::read_at`]. Bytes that the owner writes meanwhile may be read as before,
    /// as after, or mixed.
    ///
    /// # Errors
    /// As [`BlockDev::read_at`]; `Host` for bytes that are in the way.
    fn read_at(&self, offset: u64, out: &mut [u8], tag: IoTag) -> Result<()>;

    /// Several reads that do not wait for one another, each as [`read_at`](Self::read_at) does, and
    /// leaves in each how it ended.
    fn read_batch(&self, reads: &mut [DiskRead<'_>], tag: IoTag) {
        for read in reads {
            read.result = self.read_at(read.offset, read.out, tag);
        }
    }

    /// Waits until all that was written before survives a power cut.
    ///
    /// # Errors
    /// As [`BlockDev::flush`].
    fn flush(&self) -> Result<()>;
}

/// That the device `name` has fewer bytes than are needed.
pub(crate) fn too_short(name: &str, bytes: u64, needed: u64) -> Error {
    Error::new(MediaErrorKind::OutOfRange, format!("{name} has {bytes} bytes, {needed} are needed"))
}

impl<D: BlockDev + ?Sized> BlockDev for Box<D> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8], tag: IoTag) -> Result<()> {
        (**self).read_at(offset, out, tag)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8], tag: IoTag) -> Result<()> {
        (**self).write_at(offset, bytes, tag)
    }

    fn post_write(&mut self, offset: u64, bytes: &[u8], tag: IoTag) -> Result<()> {
        (**self).post_write(offset, bytes, tag)
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> Result<()> {
        (**self).zero(offset, bytes)
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<()> {
        (**self).discard(offset, bytes)
    }

    fn flush(&mut self) -> Result<()> {
        (**self).flush()
    }

    fn begin_flush(&mut self) -> Result<()> {
        (**self).begin_flush()
    }

    fn flush_is_done(&mut self) -> Result<bool> {
        (**self).flush_is_done()
    }

    fn is_busy(&mut self) -> bool {
        (**self).is_busy()
    }

    fn stripe_bytes(&self) -> Option<u64> {
        (**self).stripe_bytes()
    }

    fn shared(&self) -> Option<Arc<dyn SharedDisk>> {
        (**self).shared()
    }

    fn read_batch(&mut self, reads: &mut [(u64, &mut [u8])], tag: IoTag) -> Result<()> {
        (**self).read_batch(reads, tag)
    }

    fn grow(&mut self, bytes: u64) -> Result<()> {
        (**self).grow(bytes)
    }

    fn shrink(&mut self, bytes: u64) -> Result<()> {
        (**self).shrink(bytes)
    }

    fn join(&mut self, disk: Box<dyn BlockDev>, uuid: [u8; 16]) -> Result<()> {
        (**self).join(disk, uuid)
    }

    fn replaceable(&mut self) -> Option<&mut dyn ReplaceDisk> {
        (**self).replaceable()
    }

    fn way(&self) -> Option<&'static str> {
        (**self).way()
    }

    fn counters(&self) -> Option<BlockCounters> {
        (**self).counters()
    }

    fn virtual_nanoseconds(&self) -> u64 {
        (**self).virtual_nanoseconds()
    }
}

/// Requests counted for one purpose or in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

impl RequestCounts {
    /// Both together.
    #[must_use]
    pub const fn with(self, other: &Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            bytes_read: self.bytes_read + other.bytes_read,
            bytes_written: self.bytes_written + other.bytes_written,
        }
    }
}

/// What a disk did, by purpose, and the virtual time it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockCounters {
    by_tag: [RequestCounts; IoTag::ALL.len()],
    /// Flushes.
    pub flushes: u64,
    /// Bytes discarded.
    pub bytes_discarded: u64,
    /// Requests that did not begin where the one before ended.
    pub jumps: u64,
    /// Virtual time in nanoseconds.
    pub virtual_nanoseconds: u64,
}

impl BlockCounters {
    /// The counts of one purpose.
    #[must_use]
    pub const fn of(&self, tag: IoTag) -> RequestCounts {
        self.by_tag[tag as usize]
    }

    /// The counts of one purpose, to be increased.
    pub fn of_mut(&mut self, tag: IoTag) -> &mut RequestCounts {
        &mut self.by_tag[tag as usize]
    }

    /// These and those of another device; virtual time is that of the later one.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        for (sum, one) in self.by_tag.iter_mut().zip(&other.by_tag) {
            *sum = sum.with(one);
        }
        self.flushes += other.flushes;
        self.bytes_discarded += other.bytes_discarded;
        self.jumps += other.jumps;
        self.virtual_nanoseconds = self.virtual_nanoseconds.max(other.virtual_nanoseconds);
        self
    }

    /// The counts of all purposes together.
    #[must_use]
    pub fn total(&self) -> RequestCounts {
        self.by_tag.iter().fold(RequestCounts::default(), RequestCounts::with)
    }
}

/// Checks that a request of `length` bytes at `offset` fits sectors and a device of `bytes`.
///
/// # Errors
/// `OutOfRange`.
pub fn check_request(name: &str, bytes: u64, offset: u64, length: u64) -> Result<()> {
    let aligned = (offset | length).is_multiple_of(SECTOR_BYTES as u64);
    if aligned && offset.checked_add(length).is_some_and(|end| end <= bytes) {
        return Ok(());
    }
    let detail = format!("bytes {offset} to {} of {name} with {bytes}", offset.saturating_add(length));
    Err(Error::new(MediaErrorKind::OutOfRange, detail))
}
