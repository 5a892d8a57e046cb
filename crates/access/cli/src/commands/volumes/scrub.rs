//! `onode scrub`: verifies everything that is stored, mounted or not, has what can be repaired
//! repaired, and names the files that are damaged.
//!
//! The server of a mount, or the volume that this process opens, does a step at a time; what was
//! done stays done when somebody interrupts it.

mod pace;
mod report;
mod subject;

use crate::commands::files::copy::progress;
use crate::location::Consent;
use crate::signals;
use onode::{Class, Error, Result, SystemClock};
use onode_base::Clock;
use onode_console::Output;
use onode_fs::scrub::record::{ScrubFindings, ScrubPhase};
use onode_fs::scrub::told::ScrubStatus;
use pace::{Pace, rate_of};
use report::{Report, ScrubReport, StatusReport};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use subject::Subject;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Everything stored is read and compared with its checksums, and so is the parity of volumes that have it.\n\
    What is damaged and can be found again, from parity or from a copy on another disk, is written anew elsewhere.\n\
    On a mount, programs are served between the steps, and without --rate at least half of the time is theirs.\n\
    It can be interrupted, and goes on where it was with --resume, after a remount, too.\n\
    `onode mount -o scrub=30d` scrubs in the background, so that a pass takes about 30 days.\n\n\
    Exit codes: 0 all can be read; 11 something cannot, and the report names it; 1 interrupted (see `onode --help`).\n\n\
    Examples:\n  onode scrub /mnt                   a mounted volume\n  \
    onode scrub disk.img               one that is not mounted\n  \
    onode scrub --rate 50M /mnt        at most 50 MiB a second\n  \
    onode scrub --resume /mnt          go on after an interrupt\n  \
    onode scrub --read-only disk.img   verify, and change nothing\n  \
    onode scrub --status /mnt          when the last one ended, and how"
)]
pub struct Arguments {
    /// The directory of a mount, or the image or device spec.
    #[arg(value_name = "DIR|IMAGE")]
    target: OsString,
    /// Verify at most so many bytes a second: 50M; `max` for as fast as it goes. Default: max if
    /// it is not mounted; on a mount half of the time is left to programs.
    #[arg(long, value_name = "BYTES")]
    rate: Option<String>,
    /// Go on with a scrub that was interrupted; begin one if there is none.
    #[arg(long)]
    resume: bool,
    /// Tell when the last complete scrub ended and what it found, and how far one is that goes on
    /// or was interrupted.
    #[arg(long, conflicts_with_all = ["rate", "resume", "read_only"])]
    status: bool,
    /// Only verify a volume that is not mounted: nothing is repaired, and no position is kept.
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    consent: Consent,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let rate = arguments.rate.as_deref().map(rate_of).transpose()?;
    let read_only = arguments.read_only || arguments.status;
    let subject = Subject::find(&arguments.target, read_only, arguments.consent)?;
    if arguments.status {
        let status = subject.status()?;
        let passes = status.pass.as_ref().map(|pass| &pass.found);
        let names = names_of(&subject, passes.into_iter().chain(status.last.as_ref().map(|last| &last.found)));
        output.report(&StatusReport::of(subject.name(), &status, &names))?;
        return Ok(0);
    }
    let (name, mounted) = (subject.name(), subject.is_mounted());
    if arguments.read_only && mounted {
        let why = "--read-only is for a volume that is not mounted: a mount repairs what it finds";
        let hint = "leave it out, or unmount the volume first";
        return Err(Error::new(Class::Usage, format!("cannot scrub {name}"), why).hint(hint));
    }
    let pace = Pace::new(rate, mounted);
    let scrubbed = scrub(&subject, arguments.resume, pace, output);
    // What was found so far is kept even if the scrub could not go on.
    let closed = subject.close(arguments.read_only);
    let (scrub, interrupt) = scrubbed?;
    let report = Report { target: name.clone(), mounted, read_only: arguments.read_only, scrub };
    output.report(&report)?;
    closed?;
    if let Some(why) = report.scrub.damage() {
        let hint = "restore those files from a backup, then scrub again; `onode repair --drop-damaged` makes zeros of what is lost";
        return Err(Error::new(Class::Damaged, format!("cannot read all of {name}"), why).hint(hint));
    }
    match interrupt {
        None => Ok(0),
        Some(Interrupt { why, unkept: Some(reason) }) => {
            let why = format!("{why}, and its position could not be kept: {reason}");
            Err(Error::new(Class::General, format!("cannot scrub {name} to its end"), why))
        }
        Some(Interrupt { why, unkept: None }) => {
            let error = Error::new(Class::General, format!("cannot scrub {name} to its end"), why);
            Err(if arguments.read_only { error } else { error.hint(format!("onode scrub --resume {name}")) })
        }
    }
}

/// How a scrub was interrupted.
struct Interrupt {
    why: &'static str,
    /// Why it has to begin anew.
    unkept: Option<String>,
}

/// A pass that this process has made, step by step.
struct Making<'a> {
    subject: &'a Subject,
    /// By which the server knows who makes the steps.
    owner: u64,
    pace: Pace,
}

/// Makes a pass until its end or an interrupt.
fn scrub(subject: &Subject, resumes: bool, pace: Pace, output: &Output) -> Result<(ScrubReport, Option<Interrupt>)> {
    let (sender, events) = channel();
    signals::forward(sender, |why| why)?;
    let mut making = Making { subject, owner: own_number(), pace };
    let mut status = making.begin(resumes)?;
    let bar = progress(status.total, output);
    let interrupted = loop {
        if let Some(pass) = &status.pass {
            bar.set_length(status.total.max(pass.done));
            bar.set_position(pass.done);
            bar.set_message(if pass.phase == ScrubPhase::Moving { "moving what was damaged" } else { "" });
        } else {
            break None;
        }
        let wait = making.step().inspect_err(|_| bar.finish_and_clear())?;
        status = subject.status()?;
        if status.pass.is_some()
            && let Ok(why) = events.recv_timeout(wait)
        {
            subject.command(&format!("stop {}", making.owner))?;
            status = subject.status()?;
            break Some(why);
        }
    };
    bar.finish_and_clear();
    if let (None, Some(last)) = (interrupted, &status.last) {
        return Ok((ScrubReport::finished(last, &names_of(subject, [&last.found])), None));
    }
    let pass = status.pass.unwrap_or_default();
    let why = interrupted.unwrap_or("the pass is gone");
    let report = ScrubReport::unfinished(&pass, &names_of(subject, [&pass.found]));
    Ok((report, Some(Interrupt { why, unkept: status.unkept })))
}

impl Making<'_> {
    /// Begins a pass or goes on with one.
    fn begin(&mut self, resumes: bool) -> Result<ScrubStatus> {
        let how = if resumes { "resume" } else { "begin" };
        self.subject.command(&format!("{how} {}", self.owner))?;
        let status = self.subject.status()?;
        // What was done before is nothing that this process has to wait for.
        self.pace.wait(status.pass.as_ref().map(|pass| pass.done), Duration::ZERO);
        Ok(status)
    }

    /// Makes one step; returns how long to wait before the next.
    #[expect(clippy::disallowed_methods, reason = "how long a step took decides when the next one begins")]
    fn step(&mut self) -> Result<Duration> {
        let (began, bytes) = (Instant::now(), self.pace.step_bytes());
        let stepped = self.subject.command(&format!("step {} {bytes}", self.owner));
        if stepped.is_err() {
            // What was done before is kept, unless somebody else has it now.
            let _ = self.subject.command(&format!("stop {}", self.owner));
        }
        stepped?;
        let done = self.subject.status()?.pass.map(|pass| pass.done);
        Ok(self.pace.wait(done, began.elapsed()))
    }
}

/// The names of the files in these findings.
fn names_of<'a>(subject: &Subject, found: impl IntoIterator<Item = &'a ScrubFindings>) -> BTreeMap<u64, String> {
    found.into_iter().flat_map(|found| subject.names(found)).collect()
}

/// A number that hardly any other process has.
pub fn own_number() -> u64 {
    let now = SystemClock.now();
    let time = now.seconds as u64 * 1_000_000 + u64::from(now.nanoseconds) / 1000;
    (time << 22 | u64::from(std::process::id())).max(1)
}
