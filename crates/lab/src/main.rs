//! The `onode-lab` command: experiments for those who build Onode, apart from what people install.
#![forbid(unsafe_code)]

mod command;

use command::Command;
use onode_console::Output;
use std::process::ExitCode;

/// The name of the command in messages.
const NAME: &str = "onode-lab";

fn main() -> ExitCode {
    onode_console::main(NAME, || match Command::parse(std::env::args_os().collect()) {
        Ok(command) => {
            let output = Output::new(NAME, command.json);
            output.exit_code(command.run(&output))
        }
        Err(code) => code,
    })
}
