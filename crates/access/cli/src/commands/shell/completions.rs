//! `onode completions`: completion scripts, made from the definition of the commands.

use crate::commands::Command;
use clap_complete::Shell;
use onode::Result;
use onode_console::Output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  onode completions bash > /etc/bash_completion.d/onode")]
pub struct Arguments {
    /// Which shell.
    shell: Shell,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Command::definition(), "onode", &mut script);
    output.bytes(&script)?;
    Ok(0)
}
