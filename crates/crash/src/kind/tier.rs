//! The device of a fast and a big disk.

use crate::kind::geometry::DisksShape;
use crate::kind::{Begun, Failures, Kind, Rest};
use crate::medium::Medium;
use crate::medium::disks::{Disks, DisksImage};
use crate::object::clients::{Freedom, Standing};
use crate::object::profile::GROWING;
use crate::object::workload::unexpected;
use crate::violation::Violation;
use onode_fs::Inodes;
use onode_object::{Acknowledge, Durability, ErrorKind, ObjectDevice, Transaction};
use onode_tier::fast::{FastOptions, SectionOptions};
use onode_tier::{FormatOptions, MountOptions, NewFast, TierDevice};

/// The device on one shape.
#[derive(Clone, Copy, Debug)]
pub struct Tier {
    shape: DisksShape,
    inodes: Inodes,
    /// A fast disk that was lost is replaced by a new one.
    replaces: bool,
    /// Bytes that the volume has at first, if the big disk has more.
    at_first: Option<u64>,
}

/// A volume of so many bytes has nearly all blocks that one page of the bitmap tells of. What comes
/// to it begins with another page, and lies in another block group, where new content goes.
const NEARLY_A_PAGE: u64 = 32_500 << 12;
/// What comes to it.
const ANOTHER_GROUP: u64 = 4 << 20;

impl Tier {
    /// As runs of `workload` with `seed` use it: every second file system on it keeps its inodes
    /// apart, and every second volume that grows has two pages of the bitmap then.
    #[must_use]
    pub fn new(shape: DisksShape, workload: &str, seed: u64) -> Self {
        let is_even = seed.is_multiple_of(2);
        let inodes = if is_even { Inodes::Embedded } else { Inodes::Separate };
        let (at_first, big_bytes) = match workload {
            GROWING if is_even => (Some(shape.big_bytes / 2), shape.big_bytes),
            GROWING => (Some(NEARLY_A_PAGE), NEARLY_A_PAGE + ANOTHER_GROUP),
            _ => (None, shape.big_bytes),
        };
        Self { shape: DisksShape { big_bytes, ..shape }, inodes, replaces: seed % 3 != 2, at_first }
    }

    const EXTENT_BYTES: u64 = 16 << 10;

    fn new_fast(&self, medium: &Disks, uuid: [u8; 16]) -> NewFast {
        let stripe_bytes = Self::EXTENT_BYTES;
        let sections = vec![SectionOptions::new("default", 1, Self::EXTENT_BYTES)];
        let options = FastOptions { ring_bytes: self.shape.log_bytes, stripe_bytes, sections };
        NewFast { disk: medium.fast(), uuid, options }
    }

    fn mount_options(&self, read_only: bool) -> MountOptions {
        MountOptions {
            read_only,
            // What a cache remembers proves nothing.
            node_cache_bytes: 0,
            // Some of them are read again.
            tail_bytes: self.shape.log_bytes / 16,
            // With less, what only the fast disk acknowledges is let go of, and the log of the big
            // one falls behind.
            pending_bytes: self.shape.log_bytes / if self.shape.acknowledge == Acknowledge::Either { 16 } else { 2 },
            either_bytes: self.shape.log_bytes / 8,
            // Of two blocks, one goes to its place at once: writes of the workloads are small.
            place_above_bytes: 4 << 10,
            ..MountOptions::default()
        }
    }
}

impl Kind for Tier {
    type Medium = Disks;
    type Device = TierDevice;

    fn format(&self, _failures: Failures) -> Result<DisksImage, Violation> {
        let DisksShape { big_bytes, fast_bytes, acknowledge, .. } = self.shape;
        let survives_loss = fast_bytes > 0 && acknowledge != Acknowledge::Either;
        let medium = Disks::new(DisksImage::blank(big_bytes, fast_bytes, survives_loss), false);
        let format = FormatOptions {
            uuid: *b"crash explorer  ",
            bytes: self.at_first,
            log_bytes: Some(self.shape.log_bytes),
            log_gap_bytes: Some(self.shape.log_gap_bytes),
            acknowledge,
        };
        let fast = (fast_bytes > 0).then(|| self.new_fast(&medium, *b"a fast disk     "));
        let device = TierDevice::format(medium.big(), fast, &format, &self.mount_options(false));
        let device = device.map_err(unexpected("format"))?;
        device.close().map_err(unexpected("close after format"))?;
        drop(device);
        Ok(medium.image())
    }

    /// A fast disk that is blank is made a new one, or left away: what people do about a dead one.
    fn mount(&self, medium: &Disks, read_only: bool) -> onode_object::Result<TierDevice> {
        let options = MountOptions { seam: medium.seam(), ..self.mount_options(read_only) };
        if self.shape.fast_bytes == 0 {
            return TierDevice::mount(medium.big(), None, &options);
        }
        match TierDevice::mount(medium.big(), Some(medium.fast()), &options) {
            Err(error) if error.kind == ErrorKind::WrongPart && medium.is_fast_lost() => {
                if self.replaces && !read_only {
                    TierDevice::attach(medium.big(), self.new_fast(medium, *b"another fast one"), &options)
                } else {
                    TierDevice::mount(medium.big(), None, &options)
                }
            }
            mounted => mounted,
        }
    }

    fn verify(&self, device: &TierDevice) -> Result<(), Violation> {
        device.verify().map_err(|error| Violation::new("N5", format!("verify: {error}")))
    }

    fn note(&self, _device: &TierDevice, _medium: &Disks) -> Result<(), Violation> {
        Ok(())
    }

    /// The nodes that a checkpoint may need.
    fn slack_bytes(&self) -> u64 {
        512 << 10
    }

    fn inodes(&self) -> Inodes {
        self.inodes
    }

    fn grows(&self) -> bool {
        self.at_first.is_some()
    }

    fn standing(&self, device: &TierDevice) -> Option<Standing> {
        let now = device.free_now();
        let freedom = match () {
            () if !now.state => Freedom::Nothing,
            () if now.home => Freedom::All,
            () if now.takes_more => Freedom::Buffered,
            () => Freedom::Reads,
        };
        Some(Standing { freedom, commits: now.commits })
    }

    fn begin(
        &self,
        device: &TierDevice,
        transaction: &Transaction,
        durability: Durability,
    ) -> Option<Begun<TierDevice>> {
        let rest = |unlogged| -> Rest<TierDevice> { Box::new(move |device| device.end_commit(unlogged)) };
        Some(device.begin_commit(transaction, durability).map(|unlogged| unlogged.map(rest)))
    }
}
