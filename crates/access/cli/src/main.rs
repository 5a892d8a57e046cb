//! The `onode` command.
//!
//! One binary with one verb per file in `commands/`. Called as `mount.onode` (a link to it) it speaks
//! the language of `mount(8)`. Whatever happens, a person gets one sentence and a hint, a script gets
//! an exit code whose meaning never changes, and nobody gets a backtrace.
#![forbid(unsafe_code)]

mod commands;
mod output;
mod panic;
mod quote;
mod signals;
mod watch;

use commands::Command;
use onode::Class;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    panic::install_hook();
    let code = std::panic::catch_unwind(run).unwrap_or_else(|_| Class::Bug.exit_code());
    ExitCode::from(code)
}

fn run() -> u8 {
    let arguments: Vec<_> = std::env::args_os().collect();
    if commands::mount_helper::is_wanted(arguments.first()) {
        return commands::mount_helper::run(arguments);
    }
    let command = match Command::parse(arguments) {
        Ok(command) => command,
        Err(code) => return code,
    };
    let output = Output::new(command.json);
    match command.run(&output) {
        Ok(code) => code,
        Err(error) => {
            output.error(&error);
            error.class.exit_code()
        }
    }
}
