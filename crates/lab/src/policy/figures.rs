//! The figures that the policies are to reach, measured in one go.

use super::{Decider, PolicySettings, self_check, simulate};
use crate::stream::pattern::Pattern;
use onode::Result;
use onode_flash::policy::{Placement, WearPolicy};
use serde::Serialize;
use std::fmt;

/// A figure and what it is to reach; smaller is better unless the unit is a speed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// What came out.
    pub value: f64,
    /// In what.
    pub unit: &'static str,
    /// What it is to reach.
    pub reach: f64,
    /// Whether it does.
    pub met: bool,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// One for each figure.
    pub rows: Vec<Figure>,
}

/// Streams that are not uniform, with the write amplification to reach without hints, with them,
/// and for somebody who knows the future.
const SKEWED: [(Pattern, f64, f64, f64); 3] =
    [(Pattern::HotCold, 3.66, 2.69, 1.72), (Pattern::Zipf, 2.62, 2.05, 1.49), (Pattern::MovingHot, 2.60, 2.02, 1.44)];

impl Figures {
    /// Measures everything with the size and the seed of `settings`.
    ///
    /// # Errors
    /// As [`simulate`].
    pub fn measure(settings: &PolicySettings) -> Result<Self> {
        let mut figures = Self::default();
        let blind = Decider::Device(Placement::default());
        for check in self_check(settings)? {
            figures.most(format!("distance to the closed form, {}", check.victim), check.error * 100.0, "%", 1.0);
        }
        let mut speed = f64::INFINITY;
        let mut on_zipf = None;
        for (pattern, without, hinted, knowing) in SKEWED {
            for (what, decider, reach) in [
                ("no hints", blind, without),
                ("hints, all right", Decider::Hinted(100), hinted),
                ("oracle", Decider::Oracle, knowing),
            ] {
                let row = simulate(&PolicySettings { pattern, decider, ..*settings })?;
                let name = format!("write amplification, {}, {what}", pattern.name());
                figures.most(name, row.write_amplification, "pages/page", reach);
                if decider == blind {
                    speed = speed.min(row.page_writes_per_cpu_s);
                    on_zipf = if pattern == Pattern::Zipf { Some(row) } else { on_zipf };
                }
            }
        }
        let base = PolicySettings { pattern: Pattern::Zipf, decider: blind, ..*settings };
        let free = simulate(&PolicySettings { wear: WearPolicy::Off, ..base })?;
        let level = match on_zipf.filter(|_| settings.wear == WearPolicy::Static) {
            Some(row) => row,
            None => simulate(&PolicySettings { wear: WearPolicy::Static, ..base })?,
        };
        figures.most("wear max by mean, zipf, static".into(), level.wear_max_by_mean, "erases/erases", 1.2);
        let more = (level.write_amplification / free.write_amplification - 1.0) * 100.0;
        figures.most("write amplification for it, against none".into(), more, "%", 5.0);
        let reach = 10.0;
        let value = speed / 1e6;
        let met = value >= reach;
        figures.rows.push(Figure { name: "speed, no hints".into(), value, unit: "M pages/CPU s", reach, met });
        Ok(figures)
    }

    fn most(&mut self, name: String, value: f64, unit: &'static str, reach: f64) {
        self.rows.push(Figure { name, value, unit, reach, met: value <= reach });
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<48} {:>9} {:>9}  {:<4} unit", "figure", "value", "to reach", "met")?;
        for Figure { name, value, unit, reach, met } in &self.rows {
            writeln!(f, "{name:<48} {value:>9.3} {reach:>9.2}  {:<4} {unit}", if *met { "yes" } else { "NO" })?;
        }
        Ok(())
    }
}
