//! `onode-lab tier`: files on a fast and a big disk, beside ext2 and xfs.

use onode::{Class, Error, Result};
use onode_console::Output;
use onode_lab::tier::{Options, Recordings, groups, measure, record, series};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    onode-lab tier --figures                 all figures, in a minute or two\n  \
    onode-lab tier --figures --only policies\n  \
    onode-lab tier --figure 10               a figure of paper 4, in numbers\n  \
    onode-lab tier --record DIR              what ext2 and xfs ask of a disk, as root, in a few minutes")]
pub struct Tier {
    /// Measure every figure and set it beside the one to reach.
    #[arg(long)]
    figures: bool,
    /// With --figures: only one group of them.
    #[arg(long, requires = "figures", value_name = "GROUP", value_parser = groups())]
    only: Option<String>,
    /// Draw a figure of paper 4 in numbers.
    #[arg(long, value_name = "NUMBER", conflicts_with = "figures")]
    figure: Option<u32>,
    /// Play the recorded requests of ext2 and xfs in this folder instead of those in this program.
    #[arg(long, value_name = "DIR")]
    recordings: Option<PathBuf>,
    /// Record the requests of ext2 and xfs in files in this folder; needs root, FUSE and loop
    /// devices.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["figures", "figure"], required_unless_present_any = ["figures", "figure"])]
    record: Option<PathBuf>,
    /// With --record: only workloads whose names contain this.
    #[arg(long, value_name = "NAME", requires = "record")]
    workload: Option<String>,
}

impl Tier {
    /// Where they are; a folder that is not there is told before the work.
    fn recordings(&self) -> Result<Recordings> {
        let Some(folder) = &self.recordings else { return Ok(Recordings::Embedded) };
        if !folder.is_dir() {
            let what = format!("cannot play the recordings in {}", folder.display());
            return Err(Error::new(Class::NotFound, what, "there is no such folder")
                .hint("without --recordings those in this program are played"));
        }
        Ok(Recordings::Folder(folder.clone()))
    }

    pub fn run(&self, output: &Output) -> Result<u8> {
        if let Some(folder) = &self.record {
            let recorded = record::record(folder, self.workload.as_deref(), &mut |what| output.progress(what));
            output.progress("");
            recorded?;
        }
        if let Some(figure) = self.figure {
            output.report(&series(figure, &self.recordings()?)?)?;
        }
        if self.figures {
            let options = Options { recordings: self.recordings()?, only: self.only.clone() };
            let report = measure(&options, &mut |what| output.progress(what));
            output.progress("");
            output.report(&report)?;
            return Ok(if report.failures.is_empty() { 0 } else { Class::General.exit_code() });
        }
        Ok(0)
    }
}
