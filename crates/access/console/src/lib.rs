//! What the commands of Onode share: how a command line is read, how reports and errors are
//! written, what the exit codes are.
//!
//! Whatever happens, a person gets one sentence and a hint, a script gets an exit code whose
//! meaning never changes, and nobody gets a backtrace.
#![forbid(unsafe_code)]

mod command_line;
mod output;
mod panic;
pub mod quote;

pub use command_line::{exit_codes, main, parse};
pub use output::Output;
