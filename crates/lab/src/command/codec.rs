//! `onode-lab codec`: what metadata takes in a small persistent RAM.

use onode::{Class, Error, Result};
use onode_console::Output;
use onode_lab::codec::{Options, Population, figures, groups, measure, table_source};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    onode-lab codec                  every codec on every population\n  \
    onode-lab codec --population small,random-2k --seed 7\n  \
    onode-lab codec --figures        every figure of the codecs and of flash+scm\n  \
    onode-lab codec --figures --only mounts\n  \
    onode-lab --json codec --figures --traces DIR\n\n\
    Populations: small, 100k, 8m, 4-writers, random-2k, random-4k, aged-4k, aged-64k. Equal runs print equal\n\
    reports, processor times excepted.")]
pub struct Codec {
    /// Measure every figure and set it beside the one to reach.
    #[arg(long, conflicts_with = "population")]
    figures: bool,
    /// Where the PostMark stream of --figures is: postmark-write-s42.txt.zst.
    #[arg(long, value_name = "DIR", requires = "figures")]
    traces: Option<PathBuf>,
    /// With --figures: only one group of them.
    #[arg(long, requires = "figures", value_name = "GROUP", value_parser = groups())]
    only: Option<String>,
    /// How the NAND was filled; all if none is named.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    population: Vec<String>,
    /// Where randomness comes from.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Print the static tables of the codec as source.
    #[arg(long, hide = true)]
    tables: bool,
    /// A small NAND, to see that it works; nothing is judged.
    #[arg(long)]
    quick: bool,
}

impl Codec {
    pub fn run(&self, output: &Output) -> Result<u8> {
        if self.tables {
            let source = table_source().map_err(|error| Error::device("cannot count symbols", &error))?;
            print!("{source}");
            return Ok(0);
        }
        let mut populations = Vec::new();
        for name in &self.population {
            populations.push(Population::from_name(name).ok_or_else(|| {
                let names = Population::ALL.map(Population::word).join(", ");
                Error::new(Class::Usage, "cannot use --population", format!("`{name}` is no population"))
                    .hint(format!("the populations are {names}"))
            })?);
        }
        if populations.is_empty() {
            populations.extend(Population::ALL);
        }
        let (traces, only) = (self.traces.clone(), self.only.clone());
        let options = Options { seed: self.seed, populations, traces, only, quick: self.quick };
        if self.figures {
            let report = figures(&options, &mut |what| output.progress(what));
            output.progress("");
            output.report(&report)?;
            return Ok(if report.failures.is_empty() { 0 } else { Class::General.exit_code() });
        }
        let report = measure(&options, &mut |what| output.progress(what));
        output.progress("");
        output.report(&report?)?;
        Ok(0)
    }
}
