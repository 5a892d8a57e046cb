//! `onode tx`: changes of any files of a mounted volume that happen together or not at all.

pub mod face;
mod run;

use face::TransactionsFace;
use onode::Result;
use onode_console::Output;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A transaction shows the whole tree at DIR/.onode/tx/ID, with its own changes in it. Nobody else sees\n\
    them before they are committed; then all of them are there at once, and durable. After an abort, a crash, an\n\
    unmount, or ten minutes without use, nothing of them ever happened.\n\n\
    The first one to commit wins: if somebody else has changed a file that the transaction changed or read, or\n\
    taken a name that it took, the commit is refused (exit code 25), and nothing is changed. Names that differ, in\n\
    one directory, are no conflict. Only who began a transaction, and root, may use it.\n\n\
    Examples:\n  onode tx run /mnt -- make install       all of it, or nothing if it fails\n  \
    onode tx run --retry 5 /mnt -- ./update do it again after a conflict\n  \
    onode tx begin /mnt                     prints the number and the directory\n  \
    onode tx commit /mnt 1                  or `onode tx abort /mnt 1`\n  \
    onode tx list /mnt                      which are open"
)]
pub struct Arguments {
    #[command(subcommand)]
    verb: TransactionVerb,
}

#[derive(Debug, clap::Subcommand)]
enum TransactionVerb {
    /// Begin a transaction; prints its number and the directory that shows the tree in it.
    #[command(after_help = "Example:\n  cd \"$(onode tx begin /mnt | cut -d' ' -f2)\"")]
    Begin(BeginArguments),
    /// Have everything that was done in a transaction happen, or nothing of it.
    #[command(after_help = "Example:\n  onode tx commit /mnt 1")]
    Commit(OneArguments),
    /// Give up what was done in a transaction.
    #[command(after_help = "Example:\n  onode tx abort /mnt 1")]
    Abort(OneArguments),
    /// Show the transactions that are open.
    #[command(after_help = "Example:\n  onode tx list /mnt")]
    List(ListArguments),
    /// Run a command in a transaction: commit if it succeeds, abort if it fails.
    Run(run::RunArguments),
}

#[derive(Debug, clap::Args)]
struct BeginArguments {
    /// A directory of a mounted volume, or its image.
    #[arg(value_name = "DIR|IMAGE")]
    target: OsString,
    /// Abort it after so many seconds without use; 0 for never.
    #[arg(long, value_name = "SECONDS", default_value_t = onode::EXPIRY_SECONDS)]
    expiry: u64,
}

#[derive(Debug, clap::Args)]
struct OneArguments {
    /// A directory of a mounted volume, or its image.
    #[arg(value_name = "DIR|IMAGE")]
    target: OsString,
    /// The number of the transaction.
    id: u64,
}

#[derive(Debug, clap::Args)]
struct ListArguments {
    /// A directory of a mounted volume, or its image.
    #[arg(value_name = "DIR|IMAGE")]
    target: OsString,
}

/// One transaction.
#[derive(Debug, Serialize)]
struct Report {
    id: u64,
    /// What became of it.
    state: &'static str,
    /// Where the tree in it is, while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct Listed {
    id: u64,
    uid: u64,
    age_seconds: u64,
    idle_seconds: u64,
    expiry_seconds: u64,
    /// Memory that its changes take.
    bytes: u64,
    directory: String,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct ListReport(Vec<Listed>);

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    match &arguments.verb {
        TransactionVerb::Begin(begin) => {
            let face = TransactionsFace::find(&begin.target, "begin a transaction on")?;
            let id = face.begin(begin.expiry)?;
            let directory = Some(face.directory_of(id).display().to_string());
            output.report(&Report { id, state: "open", directory })?;
        }
        TransactionVerb::Commit(one) => {
            TransactionsFace::find(&one.target, "commit a transaction on")?.commit(one.id)?;
            output.report(&Report { id: one.id, state: "committed", directory: None })?;
        }
        TransactionVerb::Abort(one) => {
            TransactionsFace::find(&one.target, "abort a transaction on")?.abort(one.id)?;
            output.report(&Report { id: one.id, state: "aborted", directory: None })?;
        }
        TransactionVerb::List(list) => {
            let face = TransactionsFace::find(&list.target, "list transactions of")?;
            output.report(&ListReport(face.list()?))?;
        }
        TransactionVerb::Run(run) => return run::run(run, output),
    }
    Ok(0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.directory {
            Some(directory) => write!(f, "{} {directory}", self.id),
            None => write!(f, "transaction {} {}", self.id, self.state),
        }
    }
}

impl fmt::Display for ListReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(f, "no transaction is open");
        }
        for (number, one) in self.0.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            let Listed { id, uid, age_seconds, idle_seconds, expiry_seconds, bytes, directory } = one;
            write!(f, "{id} {directory} of user {uid}, begun {age_seconds} s ago, used {idle_seconds} s ago")?;
            match expiry_seconds {
                0 => write!(f, ", never expires")?,
                _ => write!(f, ", expires after {expiry_seconds} s")?,
            }
            write!(f, ", {bytes} bytes in memory")?;
        }
        Ok(())
    }
}
