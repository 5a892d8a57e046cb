//! The flash device on simulated NAND.

use crate::kind::geometry::Shape;
use crate::kind::variant::{self, Variant};
use crate::kind::{Begun, Failures, Kind, Rest};
use crate::object::clients::{Freedom, Standing};
use crate::object::profile::GROWING;
use crate::object::workload::unexpected;
use crate::violation::Violation;
use onode_base::Prng;
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_fs::Inodes;
use onode_media::sim::{BitErrors, RecordedNand};
use onode_media::{Fault, Geometry, OperationKind, SimNand, SimOptions};
use onode_object::{Durability, ObjectDevice, ObjectId, Transaction};

/// Free segments that nobody reads in, with which others may write: most calls open one or none.
/// One that needs more waits for a reader, and the run ends there.
const LEAST_FREE: usize = 2;

/// One seed of so many has a chip that reads disturb, the one that leaves this remainder.
const DISTURBED: (u64, u64) = (5, 3);

/// Every block is to be refreshed after four to twelve reads, and nothing is ever lost by them: how
/// much is read between two rounds of background work is no matter of the device.
const READ_DISTURB: BitErrors =
    BitErrors { per_billion_bits: 0, reads_per_bit: 1, correctable_bits: u32::MAX, bitflip_threshold: 6 };

/// The device on one shape, under one set of options.
#[derive(Clone, Copy, Debug)]
pub struct Flash {
    shape: Shape,
    variant: Variant,
    /// The medium has twice as many blocks as the volume has at first.
    grows: bool,
    is_disturbed: bool,
}

impl Flash {
    /// As runs of `workload` on `shape` with `seed` use it.
    #[must_use]
    pub fn new(shape: Shape, workload: &str, seed: u64) -> Self {
        let variant = variant::of(&shape, workload, seed);
        Self { shape, variant, grows: workload == GROWING, is_disturbed: seed % DISTURBED.0 == DISTURBED.1 }
    }

    /// A medium of this shape.
    pub(super) fn blank(&self) -> Result<SimNand, Violation> {
        let Geometry { blocks, .. } = self.shape.geometry;
        let blocks = if self.grows { 2 * blocks } else { blocks };
        let bit_errors = self.is_disturbed.then_some(READ_DISTURB);
        let options = SimOptions { bit_errors, ..SimOptions::default() };
        let nand = SimNand::new(Geometry { blocks, ..self.shape.geometry }, options);
        nand.map_err(|error| Violation::new("N7", format!("no medium of this shape: {error}")))
    }

    pub(super) fn format_options(&self) -> FormatOptions {
        let blocks = self.grows.then_some(self.shape.geometry.blocks);
        FormatOptions { blocks, ..self.variant.format_options(&self.shape) }
    }

    pub(super) fn mount_options(&self, read_only: bool) -> MountOptions {
        self.variant.mount_options(read_only)
    }

    /// Lets programs and erases fail, spread over what the first run is likely to do.
    pub(super) fn plan_failures(&self, nand: &mut SimNand, failures: Failures) {
        let mut prng = Prng::new(failures.seed ^ 0xfa11);
        let blocks = u64::from(self.shape.geometry.blocks);
        for _ in 0..failures.of_hundred * blocks / 100 {
            // Calls program about three pages each and fill a block in a while.
            let steps = u64::from(failures.steps);
            let kind = if prng.chance(1, 5) { OperationKind::Erase } else { OperationKind::Program };
            let reach = if kind == OperationKind::Erase { steps / 4 } else { steps * 3 };
            let nth = nand.faults_mut().seen(kind) + prng.below(reach);
            nand.faults_mut().add(Fault::once(kind, nth));
        }
    }
}

impl Kind for Flash {
    type Medium = RecordedNand;
    type Device = FlashDevice;

    fn format(&self, failures: Failures) -> Result<SimNand, Violation> {
        let medium = RecordedNand::new(self.blank()?, false);
        let (options, mount) = (self.format_options(), self.mount_options(false));
        let device = FlashDevice::format(medium.clone(), &options, &mount).map_err(unexpected("format"))?;
        device.close().map_err(unexpected("close after format"))?;
        drop(device);
        let mut nand = medium.image();
        self.plan_failures(&mut nand, failures);
        Ok(nand)
    }

    fn mount(&self, medium: &RecordedNand, read_only: bool) -> onode_object::Result<FlashDevice> {
        FlashDevice::mount(medium.clone(), &self.mount_options(read_only))
    }

    fn verify(&self, device: &FlashDevice) -> Result<(), Violation> {
        let mut from = Some(ObjectId(0));
        while let (Some(start), Some(scrub)) = (from, device.scrub()) {
            let report = scrub.scrub(start, 256).map_err(unexpected("scrub"))?;
            if let Some(damaged) = report.damaged.first() {
                return Err(Violation::new("N5", format!("scrub: {damaged}")));
            }
            from = report.next;
        }
        check_wishes(device)
    }

    // A program is durable when it returns.
    fn note(&self, _device: &FlashDevice, _medium: &RecordedNand) -> Result<(), Violation> {
        Ok(())
    }

    /// About a segment of the smallest media: of a chip with hardly a sound block left the last may
    /// be in pieces.
    fn slack_bytes(&self) -> u64 {
        4096
    }

    fn inodes(&self) -> Inodes {
        self.variant.inodes
    }

    fn grows(&self) -> bool {
        self.grows
    }

    fn standing(&self, device: &FlashDevice) -> Option<Standing> {
        let at_once = device.at_once();
        let freedom = match () {
            () if !at_once.state => Freedom::Nothing,
            // Whoever writes may have to wait until somebody has read.
            () if at_once.free_segments < LEAST_FREE => Freedom::Reads,
            () if !at_once.syncs => Freedom::Buffered,
            () => Freedom::All,
        };
        Some(Standing { freedom, commits: at_once.commits })
    }

    fn begin(
        &self,
        device: &FlashDevice,
        transaction: &Transaction,
        durability: Durability,
    ) -> Option<Begun<FlashDevice>> {
        let begun = device.begin_commit(transaction.clone(), durability);
        let rest = |unsynced| -> Rest<FlashDevice> { Box::new(move |device| device.end_commit(unsynced)) };
        Some(begun.map(|unsynced| unsynced.map(rest)))
    }
}

/// That content has the parity that its object wishes, or the device knows that some has not.
fn check_wishes(device: &FlashDevice) -> Result<(), Violation> {
    let counters = device.inspect().map_or_else(Vec::new, |inspect| inspect.counters());
    let is_pending = counters.iter().any(|(name, value)| name == "parity_pending" && *value > 0);
    if device.parity().is_none() || is_pending {
        return Ok(());
    }
    let mut from = ObjectId(0);
    loop {
        let objects = device.list(from, 256).map_err(unexpected("list"))?;
        for &object in &objects {
            let other = device.other_parity(object).map_err(unexpected("look at parity"))?;
            if other > 0 {
                let why = format!("{other} bytes of {object} have another parity than it wishes, and nothing moves");
                return Err(Violation::new("parity", why));
            }
        }
        let Some(last) = objects.last() else { return Ok(()) };
        from = ObjectId(last.0 + 1);
    }
}
