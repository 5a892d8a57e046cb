//! `onode quota`: limits on the bytes and the number of files of directory trees, users and groups.

mod report;
mod target;
mod whom;

use crate::bar::bar;
use crate::commands::volumes::scrub::own_number;
use crate::location::Consent;
use crate::signals;
use onode::{Class, Error, Result, parse_size};
use onode_console::Output;
use onode_fs::{QuotaLimits, QuotaUse};
use report::{QuotaShown, Report};
use std::ffi::OsString;
use std::sync::mpsc::channel;
use target::QuotaTarget;
use whom::{Whom, WhomSaid};

/// Files that are counted in one step, between which an interrupt is heard.
const STEP_FILES: usize = 2048;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "What counts is what `ls -l` shows: sizes of files, holes included, once for all names; of files\n\
    also directories and links. What would go beyond a limit is refused with EDQUOT (`Disk quota\n\
    exceeded`). A limit of a directory holds everybody, and no name leaves or enters it: mv copies.\n\
    Those of users and groups do not hold root. `df` in a directory with a limit shows that.\n\n\
    The volume may be mounted and in use. A limit for what exists counts it first; until that is done\n\
    it does not hold. quota(1), repquota(8) and setquota(8) cannot reach a mount of this kind.\n\n\
    Examples:\n  onode quota set /mnt --dir mail --bytes 1G --files 10000\n  \
    onode quota set disk.img --user alice --bytes 500M\n  \
    onode quota report /mnt                              all limits, and what is used\n  \
    onode quota remove /mnt --dir mail"
)]
pub struct Arguments {
    #[command(subcommand)]
    verb: QuotaVerb,
}

#[derive(Debug, clap::Subcommand)]
enum QuotaVerb {
    /// Set a limit, or change it; what is not said stays as it was.
    #[command(
        after_help = "With neither --bytes nor --files what is used is counted, and nothing is refused. A directory\n\
        within one that has a limit can have none.\n\n\
        Examples:\n  onode quota set /mnt --dir mail --bytes 1G --files 10000\n  \
        onode quota set /mnt --group staff --bytes none      only the limit of files is left\n  \
        onode quota set disk.img --user 1000 --files 5000"
    )]
    Set {
        #[command(flatten)]
        of: QuotaOf,
        #[command(flatten)]
        whom: WhomSaid,
        /// The most bytes of all files together: 1G; `none` for no limit.
        #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
        bytes: Option<LimitSaid>,
        /// The most files, directories and links; `none` for no limit.
        #[arg(long, value_name = "NUMBER", value_parser = parse_files)]
        files: Option<LimitSaid>,
    },
    /// Show all limits and what is used of them.
    #[command(after_help = "Examples:\n  onode quota report /mnt\n  onode quota report --json disk.img")]
    Report {
        #[command(flatten)]
        of: QuotaOf,
    },
    /// Take a limit away; the files stay.
    #[command(after_help = "Examples:\n  onode quota remove /mnt --dir mail\n  onode quota remove /mnt --user alice")]
    Remove {
        #[command(flatten)]
        of: QuotaOf,
        #[command(flatten)]
        whom: WhomSaid,
    },
}

/// Which volume.
#[derive(Debug, clap::Args)]
struct QuotaOf {
    /// The directory where the volume is mounted, or an image or device spec.
    target: OsString,
    #[command(flatten)]
    consent: Consent,
}

/// A limit as it was said: a number or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LimitSaid(Option<u64>);

const NO_LIMIT: &str = "none";

fn parse_bytes(text: &str) -> std::result::Result<LimitSaid, String> {
    if text == NO_LIMIT { Ok(LimitSaid(None)) } else { parse_size(text).map(|bytes| LimitSaid(Some(bytes))) }
}

fn parse_files(text: &str) -> std::result::Result<LimitSaid, String> {
    if text == NO_LIMIT {
        return Ok(LimitSaid(None));
    }
    text.parse().map(|files| LimitSaid(Some(files))).map_err(|_| "a whole number, or `none`".to_owned())
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    match &arguments.verb {
        QuotaVerb::Set { of, whom, bytes, files } => set(of, whom, [*bytes, *files], output),
        QuotaVerb::Report { of } => {
            let target = QuotaTarget::find(&of.target, true, of.consent, "show the limits of")?;
            let lines = target.lines()?;
            output.report(&Report { target: target.name(), limits: lines.iter().map(QuotaShown::of).collect() })?;
            Ok(0)
        }
        QuotaVerb::Remove { of, whom } => {
            let whom = whom.found()?;
            let target = QuotaTarget::find(&of.target, false, of.consent, "take a limit away from")?;
            let removed = target.remove(&whom);
            target.close()?;
            removed.map(|()| 0)
        }
    }
}

fn set(of: &QuotaOf, whom: &WhomSaid, [bytes, files]: [Option<LimitSaid>; 2], output: &Output) -> Result<u8> {
    let whom = whom.found()?;
    let target = QuotaTarget::find(&of.target, false, of.consent, "set a limit for")?;
    let set = count(&target, &whom, [bytes, files], output);
    let line = set.and_then(|()| target.line(&whom));
    let name = target.name();
    // What was set is set, whatever the end is like.
    target.close()?;
    let limits = line?.iter().map(QuotaShown::of).collect();
    output.report(&Report { target: name, limits })?;
    Ok(0)
}

/// Sets a limit and waits until it holds.
fn count(target: &QuotaTarget, whom: &Whom, said: [Option<LimitSaid>; 2], output: &Output) -> Result<()> {
    let before = target.line(whom)?.map_or_else(QuotaLimits::default, |line| line.quota.limits);
    let [bytes, files] = said;
    let limits = QuotaLimits {
        bytes: bytes.map_or(before.bytes, |said| said.0),
        files: files.map_or(before.files, |said| said.0),
    };
    let (sender, events) = channel();
    signals::forward(sender, |why| why)?;
    let owner = own_number();
    target.begin(owner, whom, limits)?;
    let bar = bar(None, "counting {pos} files", output);
    while let Some(QuotaUse { files, .. }) = target.counted(owner)? {
        bar.set_position(files);
        if let Ok(why) = events.try_recv() {
            target.stop(owner)?;
            bar.finish_and_clear();
            let what = format!("cannot set a limit for {}", whom.name());
            return Err(Error::new(Class::General, what, format!("{why}; there is none now"))
                .hint("say the same again: it counts from the beginning"));
        }
        if let Err(error) = target.step(owner, STEP_FILES) {
            bar.finish_and_clear();
            return Err(error);
        }
    }
    bar.finish_and_clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_sizes_numbers_or_none() {
        assert_eq!(parse_bytes("1K"), Ok(LimitSaid(Some(1024))));
        assert_eq!((parse_bytes("none"), parse_files("none")), (Ok(LimitSaid(None)), Ok(LimitSaid(None))));
        assert_eq!(parse_files("10000"), Ok(LimitSaid(Some(10_000))));
        assert!(parse_bytes("much").is_err() && parse_files("1K").is_err() && parse_files("-1").is_err());
    }
}
