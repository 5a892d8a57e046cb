//! A broken promise.

use onode_fs::{Error, ErrorKind};
use std::fmt;

/// Which promise was broken and how. N1 to N7 are those of `docs/semantics.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// `N1` ... `N7`.
    pub promise: &'static str,
    /// What was expected and what was found.
    pub text: String,
}

impl Violation {
    /// A violation of `promise`.
    pub fn new(promise: &'static str, text: impl Into<String>) -> Self {
        Self { promise, text: text.into() }
    }

    /// The same, with the moment at which it was found in front.
    #[must_use]
    pub fn when(self, moment: &str) -> Self {
        Self { text: format!("{moment}: {}", self.text), ..self }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.text)
    }
}

/// Which promise an error breaks that should not have happened: N7 for space and refusals to work,
/// N1 for lost bytes, `otherwise` what the level promises else.
pub const fn promise_of(kind: ErrorKind, otherwise: &'static str) -> &'static str {
    match kind {
        ErrorKind::NoSpace | ErrorKind::ReadOnly | ErrorKind::Busy | ErrorKind::Conflict => "N7",
        ErrorKind::Corrupt | ErrorKind::Media => "N1",
        _ => otherwise,
    }
}

/// Turns an error of the file system that should not have happened into a violation.
pub fn unexpected(what: &str) -> impl Fn(Error) -> Violation + use<> {
    let what = what.to_string();
    move |error| Violation::new(promise_of(error.kind, "N3"), format!("{what}: {error}"))
}
