//! The crash explorer: proves on a simulated medium that nothing is lost.
//!
//! A *workload* runs once on a recorded medium. Then the power is cut at every operation of that
//! medium, in every way that chips are known for, what is left is mounted, and an *oracle* that
//! shares no code with the file system says whether the promises N1 to N7 of `docs/semantics.md`
//! hold. Recoveries are cut again. `docs/testing.md` tells how to run it and how to replay what it
//! finds.
//!
//! It sees everything and nothing sees it. Not covered: failures that the medium reports (the tests
//! of the devices do that). Decay of what was once written well is what [`damage`] is for.

pub mod damage;
pub mod explore;
pub mod files;
pub mod kind;
pub mod medium;
pub mod object;
pub mod report;
pub mod task;
pub mod violation;
pub mod workload;
