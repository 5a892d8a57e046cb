//! The explorer: cuts a run at every operation of its medium in every way that chips are known for,
//! mounts what is left, and has the oracle judge it.
//!
//! What is judged is a *state*: one medium after one cut (or two). It is mounted and looked at twice
//! (a page may read well only once), verifies itself, is used again, closed, mounted and looked at
//! once more. A second cut falls into the recovery or the use after the first. Nothing is sampled by
//! chance: which states are judged follows from the seed alone.

use crate::history::{History, Promise, Run};
use crate::medium::{Cut, Medium};
use crate::violation::Violation;
use crate::workload::{Figures, Workload};
use onode_base::Prng;
use onode_media::{Damage, MediaOperation, SimNand};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How much of a run is explored.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// From which the choices of the run and of the exploration follow.
    pub seed: u64,
    /// Variants of damage tried at each operation; 0 for all.
    pub variants: usize,
    /// Every so many first cuts, recovery is cut again; 0 for never.
    pub second_every: usize,
    /// Second cuts tried for each such first cut.
    pub seconds: usize,
    /// Stop after so many states.
    pub most_states: u64,
}

/// A cut of a run and perhaps one of the recovery: operation and variant of damage of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The first cut.
    pub first: (usize, usize),
    /// The second.
    pub second: Option<(usize, usize)>,
}

/// What was found in a state.
pub type Found = (Place, Violation);

/// What one exploration did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// States judged after one cut.
    pub states: u64,
    /// States judged after two.
    pub second_states: u64,
    /// Media operations of the run.
    pub operations: usize,
    /// Calls of the run.
    pub calls: usize,
    /// Figures of the device at the end of the run.
    pub figures: Figures,
    /// The first violations.
    pub found: Vec<Found>,
    /// How many there were.
    pub violations: u64,
}

/// A run that was recorded, ready to be cut anywhere.
pub struct Recorded<S> {
    /// Its calls.
    pub history: History<S>,
    /// Its cuts, in order.
    pub cuts: Vec<Cut>,
    /// The medium at its end.
    pub end: SimNand,
    /// Figures at its end.
    pub figures: Figures,
}

/// A system that came up after a cut, was used again and recorded.
struct Recovered<S> {
    history: History<S>,
    cuts: Vec<Cut>,
    /// Media operations of the mount.
    mounted: usize,
}

/// Violations kept of one exploration.
const KEPT: usize = 5;

/// Records the run of `workload`.
///
/// # Errors
/// What went wrong without any cut.
pub fn record<W: Workload>(workload: &W, seed: u64, explains: bool) -> Result<Recorded<W::State>, Violation> {
    guard(|| {
        let (nand, state) = workload.prepare()?;
        let medium = Medium::new(nand, true);
        let mut system = workload.mount(&medium, false)?;
        let mut run = Run::new(medium.clone(), seed, state, explains);
        let mut figures = Figures::new();
        for step in 0..workload.steps() {
            let calls = run.history.calls.len();
            workload.step(&mut system, &mut run).map_err(|broken| broken.when(&format!("step {step}, no cut")))?;
            if run.history.calls.len() > calls + 1 {
                // Mounted anew: the figures of the mount before are gone.
                figures = workload.figures(&system);
            }
        }
        workload.compare(&system, &run.state).map_err(|broken| broken.when("at the end, no cut"))?;
        workload.verify(&system, &run.state).map_err(|broken| broken.when("at the end, no cut"))?;
        figures.extend(workload.figures(&system));
        let end = medium.image();
        drop(system);
        Ok(Recorded { cuts: medium.take_cuts(), history: run.history, end, figures })
    })
}

/// Explores a recorded run.
pub fn explore<W: Workload>(workload: &W, plan: &Plan, recorded: &Recorded<W::State>) -> Outcome {
    let mut outcome = Outcome {
        operations: recorded.cuts.len(),
        calls: recorded.history.calls.len(),
        figures: recorded.figures.clone(),
        ..Outcome::default()
    };
    let mut prng = Prng::new(plan.seed ^ 0x5eed);
    for (first, cut) in recorded.cuts.iter().enumerate() {
        let is_last = first + 1 == recorded.cuts.len();
        for variant in choose(&cut.operation, plan.variants, is_last, &mut prng) {
            if outcome.states + outcome.second_states >= plan.most_states {
                return outcome;
            }
            let number = outcome.states as usize;
            outcome.states += 1;
            let place = Place { first: (first, variant), second: None };
            let promise = recorded.history.promise(first);
            let recording =
                plan.second_every > 0 && number % plan.second_every == prng.below(3) as usize % plan.second_every;
            let seed = seed_of(plan.seed, place);
            let image = damaged(cut, variant, seed);
            let recovered = match judge(workload, image, &recorded.history, promise, seed, recording) {
                Ok(recovered) => recovered,
                Err(violation) => {
                    keep(&mut outcome, place, violation);
                    continue;
                }
            };
            if recording {
                explore_second(workload, plan, recorded, &recovered, place, &mut prng, &mut outcome);
            }
        }
    }
    outcome
}

fn explore_second<W: Workload>(
    workload: &W,
    plan: &Plan,
    recorded: &Recorded<W::State>,
    recovered: &Recovered<W::State>,
    place: Place,
    prng: &mut Prng,
    outcome: &mut Outcome,
) {
    let count = recovered.cuts.len();
    // All of them if they are few, else some, at a stride that begins anywhere.
    let stride = count.div_ceil(plan.seconds.max(1)).max(1);
    let start = prng.below(stride as u64) as usize;
    for (second, cut) in recovered.cuts.iter().enumerate().skip(start).step_by(stride) {
        for variant in choose(&cut.operation, 1, second + 1 == count, prng) {
            outcome.second_states += 1;
            let place = Place { second: Some((second, variant)), ..place };
            if let Err(violation) = judge_second(workload, plan.seed, recorded, recovered, place) {
                keep(outcome, place, violation);
            }
        }
    }
}

fn judge_second<W: Workload>(
    workload: &W,
    seed: u64,
    recorded: &Recorded<W::State>,
    recovered: &Recovered<W::State>,
    place: Place,
) -> Result<(), Violation> {
    let Some((second, variant)) = place.second else { return Ok(()) };
    let Some(cut) = recovered.cuts.get(second) else {
        return Err(Violation::new("N5", format!("the recovery has no operation {second}")));
    };
    let seed = seed_of(seed, place);
    let image = damaged(cut, variant, seed);
    // Until the mount has returned nothing was shown, and the promises are those of the first cut.
    let (history, promise) = if second < recovered.mounted {
        (&recorded.history, recorded.history.promise(place.first.0))
    } else {
        (&recovered.history, recovered.history.promise(second))
    };
    judge(workload, image, history, promise, seed, false)
        .map(|_| ())
        .map_err(|broken| broken.when("after the second cut"))
}

/// Judges one place of a recorded run again.
///
/// # Errors
/// The violation, if it is there.
pub fn judge_place<W: Workload>(
    workload: &W,
    seed: u64,
    recorded: &Recorded<W::State>,
    place: Place,
) -> Result<(), Violation> {
    let Some(cut) = recorded.cuts.get(place.first.0) else {
        return Err(Violation::new("N2", format!("the run has no operation {}", place.first.0)));
    };
    let first = Place { second: None, ..place };
    let first_seed = seed_of(seed, first);
    let image = damaged(cut, place.first.1, first_seed);
    let promise = recorded.history.promise(place.first.0);
    let recovered = judge(workload, image, &recorded.history, promise, first_seed, place.second.is_some())?;
    judge_second(workload, seed, recorded, &recovered, place)
}

/// What the recovery after the first cut of `place` did to the medium, the use after it included, and how
/// much of that the mount did; nothing if the recovery breaks a promise itself.
pub fn recovery<W: Workload>(
    workload: &W,
    seed: u64,
    recorded: &Recorded<W::State>,
    place: Place,
) -> (Vec<Cut>, usize) {
    let Some(cut) = recorded.cuts.get(place.first.0) else { return (Vec::new(), 0) };
    let seed = seed_of(seed, Place { second: None, ..place });
    let image = damaged(cut, place.first.1, seed);
    let promise = recorded.history.promise(place.first.0);
    let recovered = judge(workload, image, &recorded.history, promise, seed, true);
    recovered.map_or((Vec::new(), 0), |recovered| (recovered.cuts, recovered.mounted))
}

/// Mounts `image`, compares, uses, closes, mounts and compares.
fn judge<W: Workload>(
    workload: &W,
    image: SimNand,
    history: &History<W::State>,
    promise: Promise,
    seed: u64,
    recording: bool,
) -> Result<Recovered<W::State>, Violation> {
    guard(|| {
        let medium = Medium::new(image, recording);
        let mut system = workload.mount(&medium, false)?;
        let mounted = medium.position();
        let state = workload.recognise(&system, history, promise)?;
        workload.verify(&system, &state).map_err(|broken| broken.when("second look"))?;
        let mut run = Run::new(medium.clone(), seed, state, false);
        workload.go_on(&mut system, &mut run).map_err(|broken| broken.when("used after the recovery"))?;
        workload.compare(&system, &run.state).map_err(|broken| broken.when("used after the recovery"))?;
        workload.close(&system)?;
        drop(system);
        let cuts = medium.take_cuts();
        let system = workload.mount(&medium, false).map_err(|broken| broken.when("mounted again"))?;
        workload.compare(&system, &run.state).map_err(|broken| broken.when("mounted again"))?;
        workload.verify(&system, &run.state).map_err(|broken| broken.when("mounted again"))?;
        Ok(Recovered { history: run.history, cuts, mounted })
    })
}

/// Runs `judge`; a panic is a violation, too: no input may cause one.
fn guard<T>(judge: impl FnOnce() -> Result<T, Violation>) -> Result<T, Violation> {
    // What panicked is dropped with everything it could have left half-done.
    catch_unwind(AssertUnwindSafe(judge)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_string()));
        Err(Violation::new("N7", format!("panic: {}", text.unwrap_or_default())))
    })
}

/// The medium after the cut.
fn damaged(cut: &Cut, variant: usize, seed: u64) -> SimNand {
    let mut image = cut.before.clone();
    let variants = Damage::variants_for(&cut.operation);
    let damage = variants.get(variant).copied().unwrap_or(Damage::Nothing);
    // The operation succeeded in the run, so it can be cut; if not, the medium is as before it.
    let _ = image.apply_cut(&cut.operation, damage, seed);
    image
}

/// The variants to try: all, or so many of them. A complete operation is the state before the next,
/// so it is tried only as the last.
fn choose(operation: &MediaOperation, most: usize, is_last: bool, prng: &mut Prng) -> Vec<usize> {
    let variants = Damage::variants_for(operation);
    let mut all: Vec<usize> =
        (0..variants.len()).filter(|&index| is_last || variants[index] != Damage::Complete).collect();
    if most > 0 {
        while all.len() > most {
            let index = prng.below(all.len() as u64) as usize;
            all.remove(index);
        }
    }
    all
}

fn seed_of(seed: u64, place: Place) -> u64 {
    let second = place.second.map_or(0, |(cut, variant)| (cut * 16 + variant + 1) as u64);
    let mut prng = Prng::new(seed ^ ((place.first.0 * 16 + place.first.1) as u64) << 20 ^ second << 44);
    prng.next_u64()
}

fn keep(outcome: &mut Outcome, place: Place, violation: Violation) {
    outcome.violations += 1;
    if outcome.found.len() < KEPT {
        outcome.found.push((place, violation));
    }
}
