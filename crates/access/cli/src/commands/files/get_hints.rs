//! `onode get-hints`: the hints that files and directories have.

use crate::commands::tiers::target::with_each;
use onode::Result;
use onode_console::Output;
use onode_fs::Hint;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A hint of a directory is that of what is made in it. What the volume has no use for is left out:\n\
    compress where nothing is compressed, placement on one device, parity where files do not choose.\n\n\
    Examples:\n  onode get-hints /mnt/logs /mnt/tmp\n  onode get-hints -r /mnt/mail\n  \
    onode get-hints disk.img '/logs/*'\n  onode --json get-hints disk.img /\n  \
    getfattr -n user.onode.lifetime /mnt/tmp   the same by an attribute"
)]
pub struct Arguments {
    /// Files and directories of mounted volumes, or an image and paths in it, where wildcards are
    /// meant in the image.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<OsString>,
    /// All files and directories below directories, too.
    #[arg(short, long)]
    recursive: bool,
}

/// The hints of one file.
#[derive(Debug, Serialize)]
struct HintsOfFile {
    path: String,
    hints: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Report(Vec<HintsOfFile>);

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let mut report = Report(Vec::new());
    with_each(&arguments.paths, true, |files| {
        for path in files.all(arguments.recursive)? {
            let hints = files.hints(&path)?.into_iter().map(|(hint, value)| (hint.name(), value)).collect();
            report.0.push(HintsOfFile { path: path.display().to_string(), hints });
        }
        Ok(())
    })?;
    output.report(&report)?;
    Ok(0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_told = |hint: &Hint| self.0.iter().any(|one| one.hints.contains_key(hint.name()));
        let columns: Vec<Hint> = Hint::ALL.into_iter().filter(is_told).collect();
        columns.iter().try_for_each(|hint| write!(f, "{:<12}", hint.name()))?;
        writeln!(f, "path")?;
        for HintsOfFile { path, hints } in &self.0 {
            for hint in &columns {
                write!(f, "{:<12}", hints.get(hint.name()).map_or("-", String::as_str))?;
            }
            writeln!(f, "{path}")?;
        }
        Ok(())
    }
}
