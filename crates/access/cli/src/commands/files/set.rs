//! `onode set`: hints for files, and for all that is and will be in directories.

use crate::commands::files::assignment::Assignment;
use crate::commands::tiers::target::{tell_changed, with_each};
use onode::{Class, Error, Result};
use onode_console::Output;
use onode_fs::Hint;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Hints are advice: they change what storing costs, never what is read. A directory hands its own on\n\
    to what is made in it later. What is stored already stays where it is, but\n\
    with another parity it moves in the background.\n\n  \
    lifetime=short|medium|long      how long content stays as it is\n  \
    temperature=cold|warm|hot       how often it is used\n  \
    size=64K                        how many bytes a file will have\n  \
    compress=none|fast|small|auto   how it is compressed (auto: as each mount says)\n  \
    parity=1|2|3|none|default       lost pages of a group that it outlives, on flash made with --parity 0-3\n  \
    placement=SECTION,pin,...       two disks: as the words of `onode place`\n\n\
    lifetime, temperature and size can be unknown again. Flash heeds lifetime and temperature if it is\n\
    opened with placement=hints; `onode stat --why FILE` tells what a hint led to.\n\n\
    Examples:\n  onode set /mnt/tmp lifetime=short             all in it, now and later\n  \
    onode set /mnt/logs /mnt/mail compress=small lifetime=long\n  \
    onode set disk.img /keys parity=2             two lost pages of a group lose none of it\n  \
    onode set disk.img /archive temperature=cold  without mounting it\n  \
    onode set disk.img '/logs/*.old' lifetime=unknown"
)]
pub struct Arguments {
    /// Files and directories of mounted volumes, or an image and paths in it, where wildcards are
    /// meant in the image; and what to set. A path with a `=` needs a slash before it: ./a=b.
    #[arg(required = true, value_name = "PATH|NAME=VALUE")]
    words: Vec<OsString>,
    /// Only directories themselves, and with them what is made there from now on.
    #[arg(long)]
    only_new: bool,
}

/// What was set for one of the paths.
#[derive(Debug, Serialize)]
struct HintsSet {
    path: String,
    hints: BTreeMap<&'static str, String>,
    /// Files and directories that were changed.
    changed: u64,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Report(Vec<HintsSet>);

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let (paths, assignments) = Assignment::split(&arguments.words)?;
    if paths.is_empty() || assignments.is_empty() {
        let why = if paths.is_empty() { "no file is named" } else { "nothing to set is named" };
        return Err(Error::new(Class::Usage, "cannot set hints", why)
            .hint("for example: onode set /mnt/tmp lifetime=short; `onode get-hints PATH` shows what is set"));
    }
    let mut report = Report(Vec::new());
    with_each(&paths, false, |files| {
        let changed = files.change(!arguments.only_new, |path| {
            assignments.iter().try_for_each(|one| files.set_hint(path, one.hint, &one.value))
        })?;
        let told = assignments.iter().map(|one| Ok((one.hint.name(), files.hint(files.path(), one.hint)?)));
        let hints = told.collect::<Result<_>>()?;
        report.0.push(HintsSet { path: files.path().display().to_string(), hints, changed });
        Ok(())
    })?;
    output.report(&report)?;
    Ok(0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, HintsSet { path, hints, changed }) in self.0.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{path}:")?;
            hints.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))?;
            match hints.contains_key(Hint::Parity.name()) && *changed > 0 {
                true => write!(f, " ({changed} changed; what is there already moves in the background)")?,
                false => tell_changed(f, *changed, "stored anew")?,
            }
        }
        Ok(())
    }
}
