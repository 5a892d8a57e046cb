//! What a device made of the hints of an object, for people who ask.

use alloc::string::String;

/// What was decided in one matter, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What it is about: `compression`, `log`.
    pub matter: String,
    /// What was decided.
    pub choice: String,
    /// Why, in words.
    pub why: String,
}

impl Decision {
    /// The decision for `choice` in `matter`.
    pub fn new(matter: impl Into<String>, choice: impl Into<String>, why: impl Into<String>) -> Self {
        Self { matter: matter.into(), choice: choice.into(), why: why.into() }
    }
}
