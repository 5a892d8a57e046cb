//! What goes to standard output and standard error.
//!
//! Reports are text for people or, with `--json`, one JSON value. A reader that goes away (`|
//! head`) ends a report early and is no error. Errors are one sentence and one hint, or one JSON
//! value in one line.

use crate::quote;
use onode::{Class, Error, Result};
use serde::Serialize;
use serde_json::json;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};

/// Where a command writes.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    program: &'static str,
    json: bool,
}

impl Output {
    /// Output of `program` as JSON or as text.
    #[must_use]
    pub const fn new(program: &'static str, json: bool) -> Self {
        Self { program, json }
    }

    /// Whether the report is wanted as JSON.
    pub const fn json(&self) -> bool {
        self.json
    }

    /// Writes a report.
    ///
    /// # Errors
    /// If standard output cannot be written; a reader that went away is none.
    pub fn report<R: Serialize + Display>(&self, report: &R) -> Result<()> {
        let text = if self.json {
            serde_json::to_string_pretty(report)
                .map_err(|error| Error::new(Class::Bug, "cannot write the report as JSON", error.to_string()))?
        } else {
            report.to_string()
        };
        self.bytes(text.trim_end_matches('\n').as_bytes())?;
        self.bytes(b"\n")
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// As [`Output::report`].
    pub fn bytes(&self, bytes: &[u8]) -> Result<()> {
        self.offer(bytes).map(drop)
    }

    /// Writes bytes as they are; whether there is still a reader. Who has much to write stops when
    /// there is none.
    ///
    /// # Errors
    /// As [`Output::report`].
    pub fn offer(&self, bytes: &[u8]) -> Result<bool> {
        let mut out = io::stdout().lock();
        match out.write_all(bytes).and_then(|()| out.flush()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Error::host("cannot write to standard output", &error)),
        }
    }

    /// Tells people about progress; nobody depends on it, so it never fails.
    pub fn note(&self, line: &str) {
        if !self.json {
            let mut out = io::stdout().lock();
            let _ = writeln!(out, "{line}").and_then(|()| out.flush());
        }
    }

    /// Replaces the line that stands on the terminal.
    pub fn live(&self, line: &str) {
        let mut out = io::stdout().lock();
        let _ = write!(out, "\r\x1b[K{line}").and_then(|()| out.flush());
    }

    /// Tells on standard error what is being done: on a terminal in one line that changes, nothing
    /// at the end.
    pub fn progress(&self, what: &str) {
        let mut out = io::stderr().lock();
        let _ = match (out.is_terminal(), what) {
            (true, what) => write!(out, "\r\x1b[K{what}").and_then(|()| out.flush()),
            (false, "") => Ok(()),
            (false, what) => writeln!(out, "{what}"),
        };
    }

    /// Tells on standard error of one thing that was done, in a line that stays.
    pub fn detail(&self, text: &str) {
        let line = if self.json { json!({ "note": text }).to_string() } else { quote::message(text).into_owned() };
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Whether a live line makes sense.
    pub fn is_live(&self) -> bool {
        !self.json && io::stdout().is_terminal()
    }

    /// Whether text may be coloured: on a terminal, unless `NO_COLOR` is set or it can do nothing.
    pub fn is_colored(&self) -> bool {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        self.is_live() && !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|kind| kind != "dumb")
    }

    /// Columns and rows of the terminal; of a usual one if there is none.
    pub fn size(&self) -> (usize, usize) {
        match rustix::termios::tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            _ => (80, 24),
        }
    }

    /// Tells about an error, on standard error: for people, or as one JSON value in one line.
    pub fn error(&self, error: &Error) {
        let Error { class, what, why, hint, .. } = error;
        let mut text = match (self.json, hint) {
            (true, _) => {
                let (class, exit_code) = (format!("{class:?}"), class.exit_code());
                let value = json!({ "class": class, "exit_code": exit_code, "what": what, "why": why, "hint": hint });
                json!({ "error": value }).to_string()
            }
            (false, None) => format!("{}: {}", self.program, quote::message(&error.to_string())),
            (false, Some(hint)) => {
                format!("{}: {}\nhint: {}", self.program, quote::message(&error.to_string()), quote::message(hint))
            }
        };
        text.push('\n');
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Tells about something that went wrong without stopping the command, or that people should
    /// know.
    pub fn warning(&self, text: &str) {
        let line = if self.json {
            json!({ "warning": text }).to_string()
        } else {
            format!("{}: warning: {}", self.program, quote::message(text))
        };
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
}
