//! `onode-lab scm`: times on storage-class memory, beside those of peers.

use onode::{Class, Error, Result};
use onode_console::Output;
use onode_lab::scm::{Options, Subject, groups, measure, measure_subject};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    onode-lab scm --figures          all figures, in a minute or two\n  \
    onode-lab --json scm --figures\n  \
    onode-lab scm --figures --quick\n\n\
    Peers are measured if they are installed: libjemalloc.so.2, libmimalloc.so.2, libpmemobj.so.1 (with a C\n\
    compiler). What cannot be measured is named at the end.")]
pub struct Scm {
    /// Measure every figure and set it beside the one to reach.
    #[arg(long, required_unless_present = "subject")]
    figures: bool,
    /// With --figures: few repetitions, to see that it works; nothing is judged.
    #[arg(long, requires = "figures")]
    quick: bool,
    /// With --figures: only one group of them.
    #[arg(long, requires = "figures", value_name = "GROUP", value_parser = groups())]
    only: Option<String>,
    /// Time one allocator in this process: that of the device, or that which the process was loaded
    /// with.
    #[arg(long, hide = true, value_name = "WHICH", value_parser = ["own", "process"], conflicts_with = "figures")]
    subject: Option<String>,
    /// With --subject: batches of a thousand operations, of which the median counts.
    #[arg(long, hide = true, value_name = "COUNT", default_value_t = 100)]
    batches: usize,
}

impl Scm {
    pub fn run(&self, output: &Output) -> Result<u8> {
        if let Some(subject) = &self.subject {
            let subject = if subject == "own" { Subject::Own } else { Subject::Process };
            print!("{}", measure_subject(subject, self.batches)?);
            return Ok(0);
        }
        let program = std::env::current_exe()
            .map_err(|error| Error::new(Class::General, "cannot run this program for its peers", error.to_string()))?;
        let report =
            measure(&Options { program: Some(program), only: self.only.clone(), quick: self.quick }, &mut |what| {
                output.progress(what)
            });
        output.progress("");
        output.report(&report)?;
        Ok(if report.failures.is_empty() { 0 } else { Class::General.exit_code() })
    }
}
