//! Policies as pure functions: which stream bytes go to, which segment the cleaner takes, and how
//! wear is spread.
//!
//! They see numbers and return numbers; they read nothing, draw no randomness of their own and know
//! neither medium nor log. So the device and the simulator of `onode lab policy` run the same code.
//! All ages count segments opened since: the one clock that every medium carries, in its sequence
//! numbers.
//!
//! Placement, not the choice of the victim, decides write amplification: see `docs/benchmarks.md`.

mod classifier;
mod lifetime;
mod placement;
mod stream;
mod victim;
mod wear;

pub use classifier::{Classifier, Resident};
pub use lifetime::{LEVELS, Level};
pub use placement::Placement;
pub use stream::{Stream, whole_page_bytes};
pub use victim::{Candidate, Chooser, Thresholds, VictimPolicy};
pub use wear::{Wear, WearPolicy};
