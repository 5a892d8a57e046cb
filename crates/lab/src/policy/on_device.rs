//! The same stream twice: in the simulator, and over files on a mounted device that works by the
//! same policies.
//!
//! The device has segments of as many pages as the simulated one, but spends some on its journal,
//! its index, summaries and what it keeps free; so it has a little less to work in. Compared are
//! the pages of content that it programs for each page that the stream writes. Every write is made
//! durable before the next, as else the write cache would hide the hottest of them from the device.

use super::{Decider, PolicySettings, simulate};
use crate::bench::{Caches, Durability};
use crate::replay::{Settings, replay};
use crate::stream::generate::Rewrite;
use onode::{Class, Error, Flash, Medium, Policies, Result, Shape, Spec};
use onode_fs::AccessTimes;
use onode_media::IoTag;
use serde::Serialize;
use std::fmt;

/// A page of the device, and a write of the stream.
const PAGE_BYTES: u64 = 4096;

/// Both outcomes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnDevice {
    /// Which pages were written.
    pub stream: &'static str,
    /// Where they went.
    pub placement: &'static str,
    /// What the cleaner took.
    pub victim: &'static str,
    /// Percent of the pages that were not filled.
    pub spare: u32,
    /// Pages programmed for each page written, in the simulator.
    pub simulated: f64,
    /// Pages of content programmed for each page written, on the device.
    pub on_device: f64,
    /// All pages programmed for each page written, on the device.
    pub on_device_in_all: f64,
    /// How far the two lie apart, as a share of the first.
    pub apart: f64,
}

/// Runs the stream of `settings` in both.
///
/// # Errors
/// `Usage` for a placement that the device does not have; what the device reports.
pub fn on_device(settings: &PolicySettings) -> Result<OnDevice> {
    let Decider::Device(placement) = settings.decider else {
        let why = "a stream over files carries no lifetimes";
        return Err(Error::new(Class::Usage, "cannot compare with the device", why));
    };
    let simulated = simulate(settings)?.write_amplification;
    let shape = Shape {
        size: Some(u64::from(settings.segments) * u64::from(settings.segment_pages) * PAGE_BYTES),
        page: Some(PAGE_BYTES as u32),
        // No room for records: synced pages go where the placement says, and not to the journal.
        spare: Some(16),
        pages_per_block: Some(settings.segment_pages),
        blocks_per_segment: Some(1),
        chips: Some(1),
        parity: None,
    };
    let policies = Policies { placement: Some(placement), victim: Some(settings.victim), wear: Some(settings.wear) };
    let stream = Rewrite {
        pattern: settings.pattern,
        bytes: u64::from(settings.shape().pages) * PAGE_BYTES,
        seed: settings.seed,
        operations: Some(u64::from(settings.segments) * u64::from(settings.segment_pages) * u64::from(settings.fills)),
    };
    let run = Settings {
        trace: settings.pattern.name().to_owned(),
        device: Spec::Flash(Flash { medium: Medium::Simulator, shape, policies, beside: None }),
        durability: Durability::Operation,
        caches: Caches::default(),
        access_times: AccessTimes::Never,
    };
    let report = replay(&run, &stream.operations())?;
    let programs = |tag: IoTag| report.by_tag.get(tag.name()).map_or(0, |nand| nand.programs);
    let written = report.user_bytes_written / PAGE_BYTES;
    let on_device = (programs(IoTag::Data) + programs(IoTag::Cleaning)) as f64 / written as f64;
    Ok(OnDevice {
        stream: settings.pattern.name(),
        placement: placement.name(),
        victim: settings.victim.name(),
        spare: settings.spare,
        simulated,
        on_device,
        on_device_in_all: report.nand.programs as f64 / written as f64,
        apart: (on_device / simulated - 1.0).abs(),
    })
}

impl fmt::Display for OnDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} with {} and {}, {} % spare", self.stream, self.placement, self.victim, self.spare)?;
        writeln!(f, "simulated {:.3}, content on the device {:.3}", self.simulated, self.on_device)?;
        writeln!(f, "{:.1} % apart; in all the device programmed {:.3}", self.apart * 100.0, self.on_device_in_all)
    }
}
