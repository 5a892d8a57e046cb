//! The suite that every object device runs: the contract of [`ObjectDevice`] as named cases.
//!
//! A device's tests supply a [`Harness`] and call [`conformance!`](crate::conformance!) (or
//! [`run`]). Each case gets devices of its own. A case that needs something the harness declares
//! not to offer is counted as skipped, never as passed. Nothing in here knows a medium.

mod cases;
mod differential;
mod dump;
mod generate;
mod oracle;
mod subject;

pub use differential::differential;
pub use dump::{DumpedObject, Tree, dump};
pub use generate::Generator;
pub use oracle::Oracle;

use crate::device::ObjectDevice;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use std::eprintln;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One device under test, and what can be done to it from outside.
pub trait Harness {
    /// The device as it is mounted now.
    fn device(&self) -> &dyn ObjectDevice;

    /// Closes the device cleanly and mounts it again. Where nothing outlives the value: does
    /// nothing.
    fn reopen(&mut self);

    /// Whether [`Harness::crash`] works. If not, the cases about crashes are skipped.
    fn can_crash(&self) -> bool;

    /// Cuts the power (what was only buffered may be lost) and mounts again. Called only if
    /// [`Harness::can_crash`] says so.
    fn crash(&mut self);

    /// Whether all objects and attributes are the host's. The service of snapshots hides versions
    /// and what tells of them.
    fn is_bare(&self) -> bool {
        true
    }

    /// How coarse the device's extents may be: a hole is reported if it is more than twice this.
    fn extent_bytes(&self) -> u64 {
        64 << 10
    }
}

/// Makes a fresh, empty device that can hold at least that many bytes of content, and not much
/// more.
pub type Maker<'a> = &'a dyn Fn(u64) -> Box<dyn Harness>;

/// What a case asks of the harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    Crash,
    Moves,
    Bare,
    BareAndCrash,
}

/// One named case of the suite.
#[derive(Clone, Copy)]
pub struct Case {
    /// `group::what_holds`.
    pub name: &'static str,
    needs: Needs,
    run: fn(Maker<'_>),
}

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What the case claims holds.
    Passed,
    /// It does not, for this reason.
    Failed(String),
    /// The harness does not offer what the case needs.
    Skipped(&'static str),
}

/// What became of every case.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Name and outcome in the order of the suite.
    pub outcomes: Vec<(&'static str, Outcome)>,
}

macro_rules! suite {
    ($group:literal: $($needs:ident $case:ident),+ $(,)?) => {
        pub(in crate::conformance) const CASES: &[$crate::conformance::Case] = &[$($crate::conformance::Case {
            name: concat!($group, "::", stringify!($case)),
            needs: $crate::conformance::Needs::$needs,
            run: $case,
        }),+];
    };
}
use suite;

/// Every case, in order.
#[must_use]
pub fn cases() -> Vec<Case> {
    let groups = [
        cases::objects::CASES,
        cases::content::CASES,
        cases::attributes::CASES,
        cases::hints::CASES,
        cases::access_times::CASES,
        cases::listing::CASES,
        cases::atomic::CASES,
        cases::sizes::CASES,
        cases::space::CASES,
        cases::full::CASES,
        cases::versions::CASES,
        cases::moves::CASES,
        cases::durable::CASES,
        differential::CASES,
    ];
    groups.concat()
}

/// Runs the cases whose name contains `filter` (all of them if it is empty), each on devices of its
/// own.
#[must_use]
pub fn run(filter: &str, make: Maker<'_>) -> Report {
    let outcomes = cases()
        .into_iter()
        .filter(|case| case.name.contains(filter))
        .map(|case| {
            let outcome = run_case(case, make);
            match &outcome {
                Outcome::Passed => eprintln!("passed   {}", case.name),
                Outcome::Failed(why) => eprintln!("FAILED   {}: {why}", case.name),
                Outcome::Skipped(why) => eprintln!("skipped  {}: {why}", case.name),
            }
            (case.name, outcome)
        })
        .collect();
    Report { outcomes }
}

fn run_case(case: Case, make: Maker<'_>) -> Outcome {
    if matches!(case.needs, Needs::Bare | Needs::BareAndCrash) && !make(1 << 20).is_bare() {
        return Outcome::Skipped("versions and their attributes are hidden here");
    }
    if matches!(case.needs, Needs::Crash | Needs::BareAndCrash) && !make(1 << 20).can_crash() {
        return Outcome::Skipped("the harness cannot crash this device");
    }
    if case.needs == Needs::Moves && make(1 << 20).device().move_unit().is_none() {
        return Outcome::Skipped("this device moves no content");
    }
    // The devices of a case are its own and are dropped with it, so no broken state is seen again.
    match catch_unwind(AssertUnwindSafe(|| (case.run)(make))) {
        Ok(()) => Outcome::Passed,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| String::from(text)));
            Outcome::Failed(text.unwrap_or_else(|| String::from("panicked without a text")))
        }
    }
}

impl Report {
    /// `N passed, N failed, N skipped`.
    #[must_use]
    pub fn summary(&self) -> String {
        let count = |wanted: fn(&Outcome) -> bool| self.outcomes.iter().filter(|(_, it)| wanted(it)).count();
        format!(
            "{} passed, {} failed, {} skipped",
            count(|it| *it == Outcome::Passed),
            count(|it| matches!(it, Outcome::Failed(_))),
            count(|it| matches!(it, Outcome::Skipped(_))),
        )
    }

    /// Names of the cases that failed.
    #[must_use]
    pub fn failed(&self) -> Vec<&'static str> {
        self.outcomes.iter().filter(|(_, it)| matches!(it, Outcome::Failed(_))).map(|(name, _)| *name).collect()
    }

    /// Prints the counts.
    ///
    /// # Panics
    /// If a case failed, or if none ran.
    pub fn assert_passed(&self, device: &str) {
        eprintln!("{device}: {}", self.summary());
        assert!(self.outcomes.iter().any(|(_, it)| *it == Outcome::Passed), "{device}: no case ran");
        assert!(self.failed().is_empty(), "{device}: {}: {:?}", self.summary(), self.failed());
    }
}

/// Declares a test that runs the whole suite: `conformance!(name, |bytes| -> impl Harness)`. Its
/// name is `name::conformance`, so that it can be asked for, or left out, together with all its
/// kind.
///
/// The environment variable `ONODE_CONFORMANCE` limits it to the cases whose name contains its
/// value.
#[macro_export]
macro_rules! conformance {
    ($name:ident, $make:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "what makes the device may need nothing of the file around it")]
            use super::*;

            #[test]
            fn conformance() {
                let filter = std::env::var("ONODE_CONFORMANCE").unwrap_or_default();
                let make = $make;
                let report = $crate::conformance::run(&filter, &|bytes: u64| Box::new(make(bytes)));
                report.assert_passed(module_path!());
            }
        }
    };
}
