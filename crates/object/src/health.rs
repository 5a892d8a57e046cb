//! The health of a device: what is wrong with it now, and what happened to it since it was opened.
//!
//! A device tells conditions; who watches it (a mount, `onode health`, a metrics file) decides whom
//! to tell. A condition has a stable code for programs, and one sentence and a remedy for people.
//! Nothing here changes what a call returns.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// How bad a condition is. The order is that of the exit codes of `onode health`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// It happened and is over: something was rebuilt, records were dropped with consent.
    Notice,
    /// All data is there, but redundancy, speed or room is less than it should be.
    Degraded,
    /// Data is lost or damaged, or the device accepts no changes.
    Failed,
}

impl Severity {
    /// One word for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing that is or was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Condition {
    /// A stable name in lower case with hyphens, for example `fast-disk-away`.
    pub code: Cow<'static, str>,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence: what, where, since when or how much.
    pub text: String,
    /// What to do now; empty if nothing has to be done.
    pub remedy: String,
}

impl Condition {
    /// A condition without a remedy.
    #[must_use]
    pub fn new(code: &'static str, severity: Severity, text: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(code), severity, text: text.into(), remedy: String::new() }
    }

    /// The same with what to do now.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}

/// All conditions of a device; none if it is well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// In the order in which the device found them.
    pub conditions: Vec<Condition>,
}

impl Health {
    /// The health of a device with these conditions.
    #[must_use]
    pub const fn new(conditions: Vec<Condition>) -> Self {
        Self { conditions }
    }

    /// The worst severity; `None` if the device is well.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.conditions.iter().map(|condition| condition.severity).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_condition_counts() {
        assert_eq!(Health::default().worst(), None);
        let of = |severity| Condition::new("x", severity, "");
        let health = Health { conditions: alloc::vec![of(Severity::Degraded), of(Severity::Notice)] };
        assert_eq!(health.worst(), Some(Severity::Degraded));
        assert!(Severity::Failed > Severity::Degraded && Severity::Degraded > Severity::Notice);
    }
}
