//! Faults of single pages on flash, injected one after another below a mounted volume: what parity
//! promises to find again is found, the rest is an error for the damaged range, and no read ever
//! gives a wrong byte (paper 1, section III.C).
//!
//! Volumes have 0 to 3 pages of parity in a row. A fault hits up to one page more than that in one
//! row, or, as a write that went astray, one page that it leaves as it was and another. Everything
//! that had been read of the pages it hit is read again, past every cache. Now and then all of it
//! is mounted for writing, moved to good pages and checked.
//!
//! It judges reads of volumes that were closed; cuts are judged by the explorer.

mod kinds;
mod medium;
mod volume;

use crate::damage::faults::kinds::{Fault, FaultKind};
use crate::damage::faults::medium::FaultyNand;
use crate::damage::faults::volume::{FaultVerdict, HitVolume};
use onode_base::Prng;
use onode_base::sync::{Mutex, rank};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Faults injected into one volume.
const FAULTS_OF_ONE: u64 = 5000;
/// After so many one is moved and checked, which takes a thousand times as long.
const CHECKED_EVERY: u64 = 2000;

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct FaultPlan {
    /// From which everything follows.
    pub seed: u64,
    /// Number of the first fault.
    pub first: u64,
    /// How many.
    pub faults: u64,
    /// Threads.
    pub jobs: usize,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct FaultOutcome {
    /// Faults injected, by pages of parity.
    pub injected: [u64; 4],
    /// Of them, by kind.
    pub of_kind: [u64; FaultKind::ALL.len()],
    /// Of them, beyond what parity can find again.
    pub beyond: u64,
    /// Of those, told as errors.
    pub told: u64,
    /// Reads of an object that met a page that was hit, and gave the right bytes.
    pub repaired: u64,
    /// Mounted for writing, moved and checked.
    pub moved: u64,
    /// Number of the fault, what it was, what is wrong.
    pub violations: Vec<(u64, String, String)>,
}

impl FaultOutcome {
    /// Faults in all.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.injected.iter().sum()
    }

    fn add(&mut self, one: Self) {
        for (sum, more) in self.injected.iter_mut().zip(one.injected) {
            *sum += more;
        }
        for (sum, more) in self.of_kind.iter_mut().zip(one.of_kind) {
            *sum += more;
        }
        self.beyond += one.beyond;
        self.told += one.told;
        self.repaired += one.repaired;
        self.moved += one.moved;
        self.violations.extend(one.violations);
    }

    /// The figures for people, a line each.
    #[must_use]
    pub fn text(&self) -> String {
        let of_kind: Vec<String> =
            FaultKind::ALL.iter().zip(self.of_kind).map(|(kind, count)| format!("{} {count}", kind.name())).collect();
        let Self { injected: [none, one, two, three], beyond, told, repaired, moved, violations, .. } = self;
        format!(
            "kinds: {}\npages of parity: none {none}, one {one}, two {two}, three {three}\n{} faults, {} within \
             parity: {repaired} reads repaired; {beyond} beyond it: {told} told as errors; {moved} moved and checked; \
             {} violations",
            of_kind.join(", "),
            self.faults(),
            self.faults() - beyond,
            violations.len()
        )
    }
}

/// Injects faults by number; each follows from the seed and its number alone.
///
/// # Errors
/// If a sound volume cannot be made.
pub fn run(plan: &FaultPlan) -> Result<FaultOutcome, String> {
    let until = plan.first + plan.faults;
    let next = AtomicU64::new(plan.first / FAULTS_OF_ONE);
    let total = Mutex::<_, rank::Free>::new((FaultOutcome::default(), None));
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let volume = next.fetch_add(1, Ordering::Relaxed);
                    let begin = volume * FAULTS_OF_ONE;
                    if begin >= until || total.lock().1.is_some() {
                        return;
                    }
                    let numbers = begin.max(plan.first)..(begin + FAULTS_OF_ONE).min(until);
                    let outcome = of_one_volume(plan.seed, volume, numbers);
                    let mut total = total.lock();
                    match outcome {
                        Ok(outcome) => total.0.add(outcome),
                        Err(why) => total.1 = Some(why),
                    }
                }
            });
        }
    });
    let (outcome, error) = total.into_inner();
    error.map_or(Ok(outcome), Err)
}

fn of_one_volume(seed: u64, volume: u64, numbers: std::ops::Range<u64>) -> Result<FaultOutcome, String> {
    let made = HitVolume::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(volume), volume)?;
    let medium = FaultyNand::new(made.now.clone());
    let device = made.mount(&medium)?;
    let readers = made.readers(&medium, &device)?;
    let mut outcome = FaultOutcome::default();
    for number in numbers {
        let mut prng = Prng::new(seed ^ (number + 1).wrapping_mul(0xda3e_39cb_94b9_5bdb));
        let fault = Fault::draw(&made, &readers, &medium, &mut prng);
        outcome.injected[made.layout.parity_pages as usize] += 1;
        outcome.of_kind[fault.kind as usize] += 1;
        let is_checked = number % CHECKED_EVERY == CHECKED_EVERY - 1;
        let judged = catch_unwind(AssertUnwindSafe(|| {
            let judged = made.judge(&device, &readers, &fault);
            if is_checked && fault.is_within_parity {
                judged.and_then(|verdict| made.move_and_check(&medium, verdict))
            } else {
                judged
            }
        }));
        medium.heal();
        match judged.unwrap_or_else(|_| Err("panic".into())) {
            Ok(FaultVerdict { repaired, told, moved }) => {
                outcome.beyond += u64::from(!fault.is_within_parity);
                outcome.told += u64::from(told && !fault.is_within_parity);
                outcome.repaired += repaired;
                outcome.moved += u64::from(moved);
            }
            Err(why) => outcome.violations.push((number, format!("{}: {fault}", made.what), why)),
        }
    }
    Ok(outcome)
}

/// The command that injects one fault again.
#[must_use]
pub fn line(plan: &FaultPlan, number: u64) -> String {
    format!("onode-crash faults --seed {} --first {number} --faults 1", plan.seed)
}
