//! From the arguments to the exit code: the same for each command.

use crate::{Output, panic};
use clap::FromArgMatches;
use onode::{Class, Error, Result};
use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;

/// Runs `run`, the whole of the command `program`. A panic becomes one clear message and the exit
/// code of a bug.
pub fn main(program: &'static str, run: impl FnOnce() -> u8 + std::panic::UnwindSafe) -> ExitCode {
    panic::install_hook(program);
    let code = std::panic::catch_unwind(run).unwrap_or_else(|_| Class::Bug.exit_code());
    ExitCode::from(code)
}

/// Reads a command line as `definition` has it. Help and mistakes are printed here; the error is
/// the exit code, which is `usage` for a line that is wrong.
///
/// # Errors
/// 0 if help was asked for, else `usage`.
pub fn parse<C: FromArgMatches>(
    program: &'static str,
    definition: clap::Command,
    arguments: Vec<OsString>,
    usage: u8,
) -> std::result::Result<C, u8> {
    let is_json = arguments.iter().any(|argument| argument == "--json");
    let parsed = definition.try_get_matches_from(arguments);
    parsed.and_then(|matches| C::from_arg_matches(&matches)).map_err(|error| {
        if is_json && error.use_stderr() {
            Output::new(program, true).error(&wrong_line(program, &error));
            return usage;
        }
        // If even this cannot be printed there is nobody to tell.
        let _ = error.print();
        if error.use_stderr() { usage } else { 0 }
    })
}

/// What clap says about a command line, as an error of ours.
fn wrong_line(program: &str, error: &clap::Error) -> Error {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(|lines| lines.split_whitespace().collect::<Vec<_>>().join(" "));
    let why = paragraphs.next().unwrap_or_default();
    let why = why.strip_prefix("error: ").unwrap_or(&why).to_owned();
    let usage =
        paragraphs.find(|lines| lines.starts_with("Usage:")).unwrap_or_else(|| format!("see `{program} --help`"));
    Error::new(Class::Usage, "cannot understand the command line", why).hint(usage)
}

/// The table of exit codes for the end of a help text; `more` follows it.
#[must_use]
pub fn exit_codes(more: &str) -> String {
    let mut text = "Exit codes:\n   0  success\n".to_owned();
    for class in Class::ALL {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:2}  {}", class.exit_code(), class.describe());
    }
    text.push_str(more);
    text
}

impl Output {
    /// The exit code of what a command came to; an error is told.
    #[must_use]
    pub fn exit_code(&self, outcome: Result<u8>) -> u8 {
        outcome.unwrap_or_else(|error| {
            self.error(&error);
            error.class.exit_code()
        })
    }
}
