//! The `onode` command.
//!
//! One binary with one verb per file in `commands/`, in folders by subject. Called as
//! `mkfs.onode`, `fsck.onode` or `mount.onode` (links to it) it speaks the language of mkfs(8),
//! fsck(8) and mount(8).
#![forbid(unsafe_code)]

mod bar;
mod commands;
mod figures;
mod keys;
mod location;
mod signals;
mod watch;
mod whole;

use commands::Command;
use onode_console::Output;
use std::process::ExitCode;

/// The name of the command in messages.
const NAME: &str = "onode";

fn main() -> ExitCode {
    onode_console::main(NAME, run)
}

fn run() -> u8 {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(code) = commands::helpers::run(&arguments) {
        return code;
    }
    match Command::parse(arguments) {
        Ok(command) => {
            let output = Output::new(NAME, command.json);
            output.exit_code(command.run(&output))
        }
        Err(code) => code,
    }
}
