//! `onode tx run`: a command in a transaction.

use crate::commands::mounts::tx::face::TransactionsFace;
use onode::{Class, Error, Result};
use onode_console::Output;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// How often to look whether the command has ended: soon at first, then less often.
const LOOK_FIRST: Duration = Duration::from_millis(2);
const LOOK_LAST: Duration = Duration::from_millis(100);
/// How often the transaction is used, so that it does not expire while the command does something
/// else, and does if this process is gone.
const USES_IN_EXPIRY: u32 = 4;
/// What a shell says of a command that a signal ended.
const OF_SIGNAL: i32 = 128;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The command runs in the directory that shows DIR in the transaction; ONODE_TX is the number, ONODE_TX_DIR\n\
    the directory of the whole tree. What it does elsewhere, by another path, is no part of the transaction.\n\
    If it ends with 0, everything is committed; with any other exit code, everything is given up, and that is the\n\
    exit code. After a conflict it is 25, and nothing was changed.\n\n\
    Examples:\n  onode tx run /mnt -- sh -c 'mv new.conf old.conf && ./check'\n  \
    onode tx run --retry 5 /mnt/repository -- ./update"
)]
pub struct RunArguments {
    /// A directory of a mounted volume, or its image.
    #[arg(value_name = "DIR|IMAGE")]
    target: OsString,
    /// After a conflict run the command again in a new transaction, at most so often.
    #[arg(long, value_name = "N", default_value_t = 0)]
    retry: u32,
    /// Abort after so many seconds in which this command is not there any more.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    expiry: u64,
    /// The command.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Serialize)]
struct RunReport {
    id: u64,
    state: &'static str,
    /// How often the command ran.
    runs: u32,
    exit_code: u8,
}

pub fn run(arguments: &RunArguments, output: &Output) -> Result<u8> {
    let face = TransactionsFace::find(&arguments.target, "begin a transaction on")?;
    let mut runs = 0;
    loop {
        runs += 1;
        let id = face.begin(arguments.expiry)?;
        let exit_code = match run_in(&face, id, arguments) {
            Ok(status) => exit_code_of(status),
            Err(error) => {
                // It expires if that fails, too.
                let _ = face.abort(id);
                return Err(error);
            }
        };
        let report = |state| RunReport { id, state, runs, exit_code };
        if exit_code != 0 {
            face.abort(id)?;
            tell(&report("aborted"), output)?;
            return Ok(exit_code);
        }
        match face.commit(id) {
            Ok(()) => {
                tell(&report("committed"), output)?;
                return Ok(0);
            }
            Err(error) => {
                let _ = face.abort(id);
                if error.class != Class::Conflict || runs > arguments.retry {
                    return Err(error);
                }
                output.note(&format!("{error}; run {} of {}", runs + 1, arguments.retry + 1));
            }
        }
    }
}

/// What the command prints is for whoever runs it; people need no more.
fn tell(report: &RunReport, output: &Output) -> Result<()> {
    if output.json() { output.report(report) } else { Ok(()) }
}

fn run_in(face: &TransactionsFace, id: u64, arguments: &RunArguments) -> Result<ExitStatus> {
    let Some((program, rest)) = arguments.command.split_first() else { return Ok(ExitStatus::default()) };
    let what = || format!("cannot run {}", program.display());
    let mut command = Command::new(program);
    command.args(rest).current_dir(face.named_in(id));
    command.env("ONODE_TX", id.to_string()).env("ONODE_TX_DIR", face.directory_of(id));
    let mut child = command.spawn().map_err(|error| Error::host(what(), &error))?;
    wait(face, id, arguments.expiry, &mut child).map_err(|error| Error::host(what(), &error))
}

/// Waits for the end of a command, and uses its transaction meanwhile.
fn wait(face: &TransactionsFace, id: u64, expiry: u64, child: &mut Child) -> std::io::Result<ExitStatus> {
    let period = Duration::from_secs(expiry) / USES_IN_EXPIRY;
    let (mut pause, mut unused) = (LOOK_FIRST, Duration::ZERO);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(pause);
        unused += pause;
        pause = (pause * 2).min(LOOK_LAST);
        if expiry > 0 && unused >= period {
            unused = Duration::ZERO;
            let _ = std::fs::metadata(face.directory_of(id));
        }
    }
}

fn exit_code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| OF_SIGNAL + signal));
    u8::try_from(code.unwrap_or(1)).unwrap_or(1)
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction {} {} after {} runs", self.id, self.state, self.runs)
    }
}
