//! `onode put --atomic`: a copy that happens as a whole or not at all, by a transaction.

use super::WITHOUT_EXPIRY;
use crate::location::{self, Consent};
use crate::signals::Stop;
use onode::{Class, Error, Result, Volume};
use std::ffi::OsStr;

/// What a transaction says that holds as many names and attributes as memory takes, and what the
/// kernel makes of it.
const TOO_MANY: [&str; 2] = ["too many names and attributes", "Cannot allocate memory"];
const NOTHING: &str = "nothing was changed";

/// A change of an image that happens as a whole.
pub struct Whole<'a> {
    pub image: &'a OsStr,
    pub consent: Consent,
    /// Whether somebody asked for an end.
    pub stop: &'a Stop,
}

impl Whole<'_> {
    /// Has all that `work` does in the volume happen, durably, or nothing of it.
    ///
    /// # Errors
    /// Those of opening, of `work` and of the commit; nothing was changed then.
    pub fn change<T>(&self, work: impl FnOnce(&Volume) -> Result<T>) -> Result<T> {
        let changed = location::change(self.image, self.consent, |volume| {
            let transaction = volume.begin(WITHOUT_EXPIRY)?;
            let done = work(transaction.volume())?;
            if let Some(why) = self.stop.asked() {
                return Err(Error::new(Class::General, "cannot copy to the end", why).hint("run it again"));
            }
            transaction.commit()?;
            Ok(done)
        });
        changed.map_err(told)
    }
}

/// An error after which nothing was changed, with what to do about it.
pub fn told(error: Error) -> Error {
    let told = match error.class {
        Class::VolumeFull => error.hint(
            "--atomic needs room for all files beside those that they replace: make room, `onode resize`, or copy in parts",
        ),
        _ if TOO_MANY.iter().any(|words| error.why.contains(words)) => {
            error.hint("some 300,000 files at a time: copy in parts, or leave --atomic out")
        }
        _ => error,
    };
    let why = if told.why.is_empty() { NOTHING.to_owned() } else { format!("{}; {NOTHING}", told.why) };
    told.why(why)
}
