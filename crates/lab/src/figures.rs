//! Every figure of the flash device that a file system on it can show, measured in one go and set
//! beside the figure to reach.
//!
//! Groups of figures live in files of their own, one line in `GROUPS` each: a new group is a file
//! and a line. All of them run on simulated NAND of 2 KiB pages, 64 bytes of spare and 128 KiB
//! blocks, with the memory budget of [`Caches::small`]. Equal options give equal rows.

use crate::bench::Caches;
use crate::groups::{self, Group};
use onode::{Result, Spec};
use std::path::PathBuf;

mod agreement;
mod bounds;
mod capacity;
pub(crate) mod fill;
mod mount;
mod placements;
pub mod row;
mod shapes;
mod speed;
mod streams;
#[cfg(test)]
mod tests;
mod wear;

pub use row::{FigureReport, Row, Value};

/// A run of all groups under way.
type Measuring<'a> = groups::Measuring<'a, Options>;

/// The groups in the order of the report.
const GROUPS: [Group<Options>; 14] = [
    ("postmark", streams::postmark),
    ("large-file", streams::large_file),
    ("mount", mount::of_medium),
    ("large-mount", mount::of_large_medium),
    ("tiny-files", capacity::tiny_files),
    ("page-files", capacity::page_files),
    ("chips", speed::chips),
    ("stall", speed::stall),
    ("wear", wear::levelling),
    ("agreement", agreement::measure),
    ("extents", shapes::extents),
    ("table2", shapes::informed_placement),
    ("placements", placements::placements),
    ("thresholds", placements::thresholds),
];

/// The names of the groups.
#[must_use]
pub fn groups() -> Vec<&'static str> {
    groups::names(&GROUPS)
}

/// What to measure with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The folder with the PostMark streams `postmark-{write,read,table2}-s42.txt.zst`; without it
    /// the built-in generator makes similar ones, and the rows say so.
    pub traces: Option<PathBuf>,
    /// Only the group of this name.
    pub only: Option<String>,
    /// Measure on small media with short streams, to see that everything works. Rows are then not
    /// judged.
    pub quick: bool,
}

/// Sizes of what is measured.
struct Scale {
    /// The medium of most figures.
    medium: &'static str,
    /// Half and a quarter of it, for streams that fill it too seldom to need cleaning.
    smaller_media: [&'static str; 2],
    /// That of the figure with several chips, whose segments are larger.
    chips_medium: &'static str,
    /// That of the wear figures: each block of it is erased many times.
    wear_medium: &'static str,
    /// The one against which growth with size shows.
    large_medium: &'static str,
    /// Size of the files that fill these two.
    file_bytes: usize,
    large_file_bytes: usize,
    /// The file of the large-file figures.
    sequential_bytes: u64,
    /// Transactions of built-in PostMark streams are divided by this.
    part: u64,
    /// Power cuts for each fill.
    cuts: u64,
    /// Operations that make a nearly full volume work.
    churn: u64,
    /// Percent of the usable space that is spare where files are held against pages.
    spare: u32,
}

const FULL: Scale = Scale {
    medium: "128M",
    smaller_media: ["64M", "32M"],
    chips_medium: "128M",
    wear_medium: "32M",
    large_medium: "8G",
    file_bytes: 256 << 10,
    large_file_bytes: 4 << 20,
    sequential_bytes: 60 << 20,
    part: 1,
    cuts: 24,
    churn: 60_000,
    spare: 12,
};

const QUICK: Scale = Scale {
    medium: "16M",
    smaller_media: ["14M", "12M"],
    chips_medium: "32M",
    wear_medium: "16M",
    large_medium: "32M",
    file_bytes: 64 << 10,
    large_file_bytes: 256 << 10,
    sequential_bytes: 2 << 20,
    part: 100,
    cuts: 2,
    churn: 1000,
    spare: 40,
};

/// Measures everything; `progress` hears what is being done. A group that fails ends there, is
/// named in the report, and keeps no other group from being measured.
///
/// # Errors
/// A folder without the streams.
pub fn measure(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<FigureReport> {
    streams::look_for(options)?;
    let measuring = Measuring::new(options, options.quick, progress);
    let device = device(measuring.scale().medium, "");
    Ok(measuring.run_all(&GROUPS, options.only.as_deref(), &device))
}

impl Measuring<'_> {
    /// How large everything is.
    const fn scale(&self) -> &'static Scale {
        if self.options.quick { &QUICK } else { &FULL }
    }

    /// What the device may keep in memory.
    const fn caches(&self) -> Caches {
        Caches::small()
    }
}

/// The spec of a device of that size.
fn device(size: &str, more: &str) -> String {
    format!("flash:sim,size={size},page=2K,spare=64{more}")
}

fn spec(size: &str, more: &str) -> Result<Spec> {
    Spec::parse(&device(size, more))
}
