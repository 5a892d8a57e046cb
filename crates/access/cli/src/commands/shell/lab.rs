//! `onode lab`: runs the lab, a command of its own, if it is installed, or tells where it went.

use onode::{Class, Error, Result};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

const LAB: &str = "onode-lab";

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  onode-lab replay postmark:seed=1", disable_help_flag = true)]
pub struct Arguments {
    /// What `onode-lab` is to do.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Becomes `onode-lab`; comes back only if there is none.
pub fn run(arguments: &Arguments, json: bool) -> Result<u8> {
    let mut command = Command::new(beside_this().unwrap_or_else(|| LAB.into()));
    command.args(json.then_some("--json")).args(&arguments.arguments);
    let error = command.exec();
    if error.kind() != ErrorKind::NotFound {
        return Err(Error::host("cannot run onode-lab", &error));
    }
    let why = "the lab is a command of its own, onode-lab, and is not installed";
    Err(Error::new(Class::NotFound, "cannot run the lab", why)
        .hint("`cargo install --path crates/lab` in the sources of Onode installs it"))
}

/// The lab that was built or installed with this command.
fn beside_this() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(LAB);
    path.is_file().then_some(path)
}
