//! `onode-lab policy`: what placement, victim and wear policies cost, without a device around them.

use onode::{Class, Error, Result};
use onode_console::Output;
use onode_lab::policy::{
    Decider, Figures, PolicyReport, PolicySettings, SelfCheck, VictimPolicy, WearPolicy, on_device, self_check,
    simulate,
};
use onode_lab::stream::pattern::Pattern;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    onode-lab policy\n  \
    onode-lab policy --stream zipf --placement lifespan,sepbit --victim greedy,flash-cost-benefit\n  \
    onode-lab policy --placement hints --hints 80 --wear static\n  \
    onode-lab --json policy --figures\n\n\
    Streams: uniform, hot-cold (80/20), zipf (0.99), moving-hot.\n\
    Placements: combined, split, split+atime, user-cleaner, age-chain, sepbit, lifespan, hints, oracle.\n\
    Victims: greedy, thresholds, cost-benefit, flash-cost-benefit, cost-age-times, d-choices, fifo.\n\
    Wear: off, dynamic, static. Several are separated by commas. Counted is the second half of the stream;\n\
    wear is counted since the device was new. The policies are those of the flash device itself.")]
pub struct Policy {
    /// Streams of page writes.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "hot-cold,zipf,moving-hot")]
    stream: Vec<String>,
    /// Where pages go; oracle knows when each page dies.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "lifespan")]
    placement: Vec<String>,
    /// Which segments the cleaner takes.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "flash-cost-benefit")]
    victim: Vec<String>,
    /// How wear is spread.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "static")]
    wear: Vec<String>,
    /// How many of a hundred hints are right, for the placement hints.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=100))]
    hints: u32,
    /// Share of the pages that users cannot fill.
    #[arg(long, value_name = "PERCENT", default_value_t = 12)]
    spare: u32,
    /// Segments of the device.
    #[arg(long, value_name = "COUNT", default_value_t = 2048)]
    segments: u32,
    /// Pages of a segment.
    #[arg(long, value_name = "COUNT", default_value_t = 128)]
    segment_pages: u32,
    /// How often the size of the device is written.
    #[arg(long, value_name = "TIMES", default_value_t = 8)]
    fills: u32,
    /// Where randomness comes from.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Every placement, with right hints and with hints of which 80 % are right.
    #[arg(long, conflicts_with_all = ["placement", "self_check", "figures"])]
    all: bool,
    /// Hold FIFO and greedy cleaning of uniform writes against closed forms; fails beyond 1 %.
    #[arg(long, conflicts_with = "figures")]
    self_check: bool,
    /// Run the stream over files on a mounted device too and compare; few segments and much spare,
    /// please.
    #[arg(long, conflicts_with_all = ["all", "self_check", "figures"])]
    on_device: bool,
    /// Measure every figure that is to be reached.
    #[arg(long)]
    figures: bool,
}

/// How far the simulator may be from theory, as a share.
const TOLERANCE: f64 = 0.01;

impl Policy {
    pub fn run(&self, output: &Output) -> Result<u8> {
        let base = PolicySettings {
            victim: one_of("victim policy", &self.victim[0], VictimPolicy::from_name)?,
            wear: one_of("wear policy", &self.wear[0], WearPolicy::from_name)?,
            segments: self.segments,
            segment_pages: self.segment_pages,
            spare: self.spare,
            fills: self.fills,
            seed: self.seed,
            ..PolicySettings::default()
        };
        if self.self_check {
            let report = SelfCheck { rows: self_check(&base)?.to_vec() };
            output.report(&report)?;
            return Ok(u8::from(report.rows.iter().any(|row| row.error > TOLERANCE)));
        }
        if self.figures {
            output.report(&Figures::measure(&base)?)?;
            return Ok(0);
        }
        if self.on_device {
            for settings in self.runs(base)? {
                output.report(&on_device(&settings)?)?;
            }
            return Ok(0);
        }
        let mut report = PolicyReport::default();
        for settings in self.runs(base)? {
            report.rows.push(simulate(&settings)?);
        }
        output.report(&report)?;
        Ok(0)
    }

    /// Every combination of what was named, streams innermost.
    fn runs(&self, base: PolicySettings) -> Result<Vec<PolicySettings>> {
        let deciders = if self.all {
            let mut all: Vec<_> = Decider::all().collect();
            all.insert(all.len() - 1, Decider::Hinted(80));
            all
        } else {
            self.placement.iter().map(|name| Decider::from_name(name, self.hints)).collect::<Result<_>>()?
        };
        let mut runs = Vec::new();
        for decider in deciders {
            for victim in &self.victim {
                let victim = one_of("victim policy", victim, VictimPolicy::from_name)?;
                for wear in &self.wear {
                    let wear = one_of("wear policy", wear, WearPolicy::from_name)?;
                    for stream in &self.stream {
                        let pattern = one_of("stream", stream, Pattern::from_name)?;
                        runs.push(PolicySettings { pattern, decider, victim, wear, ..base });
                    }
                }
            }
        }
        Ok(runs)
    }
}

fn one_of<T>(what: &str, name: &str, from_name: impl Fn(&str) -> Option<T>) -> Result<T> {
    from_name(name).ok_or_else(|| {
        Error::new(Class::Usage, format!("cannot use the {what}"), format!("`{name}` is none"))
            .hint("onode-lab policy --help names all of them")
    })
}
