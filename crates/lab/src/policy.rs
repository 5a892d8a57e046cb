//! `onode-lab policy`: what placement, victim and wear policies cost, page by page and without
//! data.
//!
//! The policies are the device's own (`onode_flash::policy`), not a copy; around them is only a map
//! of pages to segments (`simulator`). So millions of page writes take a second, and a policy can
//! be judged before a device is built around it. Beside the device's placements there is an
//! *oracle* that knows when each page dies. [`self_check`] holds the simulator against closed
//! forms.
//!
//! It has no metadata, no checkpoints and no crashes; for those there is `onode-lab replay`.

mod closed_form;
mod figures;
mod on_device;
mod placer;
mod report;
mod simulator;

pub use figures::{Figure, Figures};
pub use on_device::{OnDevice, on_device};
pub use onode_flash::policy::{Placement, VictimPolicy, WearPolicy};
pub use report::{CheckRow, PolicyReport, PolicyRow, SelfCheck};

use crate::WearSpread;
use crate::stream::pattern::Pattern;
use onode::{Class, Error, Result};
use placer::{Device, Levels, Lives, Oracle, Placer};
use simulator::{Shape, Simulator};

/// Who decides where a page goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider {
    /// The device, which knows only what it sees.
    Device(Placement),
    /// The device, told with each write in which lifetime level the page will die; so many of a
    /// hundred levels are right, the others are drawn at random.
    Hinted(u32),
    /// Somebody who knows when each page dies, and tells the cleaner too.
    Oracle,
}

impl Decider {
    /// The name in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device(placement) => placement.name(),
            Self::Hinted(_) => Placement::Hints.name(),
            Self::Oracle => "oracle",
        }
    }

    /// The decider called `name`; hints are right in `right` of a hundred cases.
    ///
    /// # Errors
    /// `Usage`, with the names that there are.
    pub fn from_name(name: &str, right: u32) -> Result<Self> {
        match (name, Placement::from_name(name)) {
            ("oracle", _) => Ok(Self::Oracle),
            (_, Some(Placement::Hints)) => Ok(Self::Hinted(right)),
            (_, Some(placement)) => Ok(Self::Device(placement)),
            _ => {
                let names: Vec<_> = Placement::ALL.iter().map(|one| one.name()).collect();
                Err(Error::new(Class::Usage, "cannot use the placement", format!("`{name}` is none"))
                    .hint(format!("the placements are {} and oracle", names.join(", "))))
            }
        }
    }

    /// All of them, with hints that are always right.
    pub fn all() -> impl Iterator<Item = Self> {
        let blind = Placement::ALL.into_iter().filter(|one| *one != Placement::Hints).map(Self::Device);
        blind.chain([Self::Hinted(100), Self::Oracle])
    }

    const fn classes(self) -> u8 {
        match self {
            Self::Device(placement) => placement.classes(),
            Self::Hinted(_) | Self::Oracle => Placement::Hints.classes(),
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicySettings {
    /// Which pages are written.
    pub pattern: Pattern,
    /// Where they go.
    pub decider: Decider,
    /// What the cleaner takes.
    pub victim: VictimPolicy,
    /// How wear is spread.
    pub wear: WearPolicy,
    /// Segments of the device.
    pub segments: u32,
    /// Pages of a segment.
    pub segment_pages: u32,
    /// Share of the pages that users cannot fill, in percent.
    pub spare: u32,
    /// How often the device's size is written.
    pub fills: u32,
    /// Where randomness comes from.
    pub seed: u64,
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self {
            pattern: Pattern::Zipf,
            decider: Decider::Device(Placement::default()),
            victim: VictimPolicy::FlashCostBenefit,
            wear: WearPolicy::Static,
            segments: 2048,
            segment_pages: 128,
            spare: 12,
            fills: 8,
            seed: 1,
        }
    }
}

impl PolicySettings {
    /// Checks that the device can work at all.
    ///
    /// # Errors
    /// `Usage`, with the figure that is wrong.
    pub fn validate(&self) -> Result<()> {
        let wrong = |why: String| Err(Error::new(Class::Usage, "cannot simulate this device", why));
        let pages = u64::from(self.segments) * u64::from(self.segment_pages);
        if self.segment_pages < 8 || pages > 1 << 26 {
            return wrong(format!(
                "{} segments of {} pages are too many or too small",
                self.segments, self.segment_pages
            ));
        }
        if self.fills < 2 || pages * u64::from(self.fills) > 1 << 30 {
            return wrong(format!("{} fills are too few or too many", self.fills));
        }
        // Open segments, those that stay free, and as many for the cleaner to find something in.
        let needed = 4 * (u64::from(self.decider.classes()) + 1);
        let spare = u64::from(self.segments) * u64::from(self.spare) / 100;
        if self.spare > 90 || spare < needed {
            let placement = self.decider.name();
            return wrong(format!("{spare} spare segments are not enough for `{placement}`, which needs {needed}"));
        }
        Ok(())
    }

    fn shape(&self) -> Shape {
        let all = u64::from(self.segments) * u64::from(self.segment_pages);
        let pages = (all * u64::from(100 - self.spare) / 100) as u32;
        Shape { segments: self.segments, segment_pages: self.segment_pages, pages }
    }

    fn writes(&self) -> Vec<u32> {
        let count = self.segments as usize * self.segment_pages as usize * self.fills as usize;
        self.pattern.writes(self.shape().pages, count, self.seed)
    }
}

/// Fills the device, writes the stream, and counts over its second half.
///
/// # Errors
/// As [`PolicySettings::validate`].
pub fn simulate(settings: &PolicySettings) -> Result<PolicyRow> {
    simulate_in(settings, settings.segments)
}

/// As [`simulate`], on a device that has so many segments for as many pages.
///
/// # Errors
/// As [`PolicySettings::validate`].
pub(crate) fn simulate_in(settings: &PolicySettings, segments: u32) -> Result<PolicyRow> {
    settings.validate()?;
    let shape = Shape { segments: segments.max(settings.segments), ..settings.shape() };
    let writes = settings.writes();
    Ok(match settings.decider {
        Decider::Device(placement) => run(settings, shape, &writes, Device::new(placement, shape.segments, None)),
        Decider::Hinted(right) => {
            let lives = Lives::new(shape.pages, &writes);
            let levels = Levels::new(&lives, right, shape, settings.seed);
            run(settings, shape, &writes, Device::new(Placement::Hints, shape.segments, Some(&levels)))
        }
        Decider::Oracle => {
            let lives = Lives::new(shape.pages, &writes);
            run(settings, shape, &writes, Oracle::new(&lives, shape))
        }
    })
}

fn run(settings: &PolicySettings, shape: Shape, writes: &[u32], placer: impl Placer) -> PolicyRow {
    let started = crate::replay::processor_seconds();
    let mut simulator = Simulator::new(shape, placer, settings.victim, settings.wear);
    simulator.fill();
    let (first, second) = writes.split_at(writes.len() / 2);
    simulator.run(first, 0);
    let half = simulator.counts;
    simulator.run(second, first.len());
    let cpu_s = crate::replay::processor_seconds() - started;
    let all = simulator.counts;
    let written = all.written - half.written;
    let (moved, levelled) = (all.moved - half.moved, all.levelled - half.levelled);
    let mean = simulator.erases().map(f64::from).sum::<f64>() / f64::from(shape.segments);
    let max = simulator.erases().max().unwrap_or(0);
    PolicyRow {
        stream: settings.pattern.name(),
        placement: settings.decider.name(),
        hints_right: if let Decider::Hinted(right) = settings.decider { Some(right) } else { None },
        victim: settings.victim.name(),
        wear_policy: settings.wear.name(),
        segments: shape.segments,
        segment_pages: settings.segment_pages,
        spare: settings.spare,
        seed: settings.seed,
        pages_written: written,
        pages_moved: moved,
        pages_levelled: levelled,
        segments_cleaned: all.cleaned - half.cleaned,
        write_amplification: (written + moved + levelled) as f64 / written as f64,
        wear: WearSpread { min: simulator.erases().min().unwrap_or(0), mean, max },
        wear_max_by_mean: if mean > 0.0 { f64::from(max) / mean } else { 1.0 },
        cpu_s,
        page_writes_per_cpu_s: (all.written + all.moved + all.levelled) as f64 / cpu_s.max(1e-9),
    }
}

/// Runs uniform writes under FIFO and greedy cleaning and sets them beside their closed forms.
///
/// # Errors
/// As [`simulate`].
pub fn self_check(settings: &PolicySettings) -> Result<[CheckRow; 2]> {
    let one = |victim: VictimPolicy| -> Result<CheckRow> {
        let decider = Decider::Device(Placement::Combined);
        let settings =
            PolicySettings { pattern: Pattern::Uniform, decider, victim, wear: WearPolicy::Off, ..*settings };
        let found = simulate(&settings)?.write_amplification;
        // Theory fills every segment; here two are free and one is half full of what was just
        // moved.
        let segments = f64::from(settings.segments) - 2.0 - 0.5 / found;
        let fill = f64::from(settings.shape().pages) / (segments * f64::from(settings.segment_pages));
        let expected = match victim {
            VictimPolicy::Fifo => closed_form::fifo(fill),
            _ => closed_form::greedy(fill, settings.segment_pages),
        };
        Ok(CheckRow { victim: victim.name(), expected, found, error: (found / expected - 1.0).abs() })
    };
    Ok([one(VictimPolicy::Fifo)?, one(VictimPolicy::Greedy)?])
}

#[cfg(test)]
mod tests;
