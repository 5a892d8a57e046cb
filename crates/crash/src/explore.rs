//! The explorer: cuts a run at every operation of its medium in every way that chips are known for,
//! mounts what is left, and has the oracle judge it.
//!
//! What is judged is a *state*: one medium after one cut (or two). It is mounted and looked at
//! twice (a page may read well only once), verifies itself, is used again, closed, mounted and
//! looked at once more. A second cut falls into the recovery or the use after the first. Nothing is
//! sampled by chance: which states are judged follows from the seed alone.

use crate::medium::{Budget, Medium, Trace, Walk};
use crate::object::clients::Interleaving;
use crate::violation::Violation;
use crate::workload::history::{History, Run};
use crate::workload::{Figures, ImageOf, TraceOf, Workload};
use onode_base::Prng;
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
    /// How often the run filled its medium, in hundredths.
    pub wraps: u64,
    /// Calls of the run.
    pub calls: usize,
    /// Figures of the device at the end of the run.
    pub figures: Figures,
    /// What came in between calls of the run.
    pub interleaving: Interleaving,
    /// The first violations.
    pub found: Vec<Found>,
    /// How many there were.
    pub violations: u64,
}

/// A run that was recorded, ready to be cut anywhere.
pub struct Recorded<W: Workload> {
    /// Its calls.
    pub history: History<W::State>,
    /// What happened to its medium.
    pub trace: TraceOf<W>,
    /// Figures at its end.
    pub figures: Figures,
    /// What came in between its calls.
    pub interleaving: Interleaving,
}

/// A system that came up after a cut, was used again and recorded.
pub struct Recovered<W: Workload> {
    /// What was done after the mount.
    pub history: History<W::State>,
    /// If it was recorded.
    pub trace: Option<TraceOf<W>>,
    /// Media operations of the mount.
    pub mounted: usize,
}

/// Violations kept of one exploration.
const KEPT: usize = 5;

/// Records the run of `workload`.
///
/// # Errors
/// What went wrong without any cut.
pub fn record<W: Workload>(workload: &W, seed: u64, explains: bool) -> Result<Recorded<W>, Violation> {
    guard(|| {
        let (image, state) = workload.prepare()?;
        let medium = W::Medium::new(image, true);
        let mut system = workload.mount(&medium, false)?;
        workload.note(&system, &medium)?;
        let mut run = Run::new(medium.clone(), seed, state, explains);
        run.history.keep(medium.position(), workload.snapshots(&system));
        let mut figures = Figures::new();
        for step in 0..workload.steps() {
            let calls = run.history.calls.len();
            workload.step(&mut system, &mut run).map_err(|broken| broken.when(&format!("step {step}, no cut")))?;
            workload.note(&system, &medium)?;
            run.history.keep(medium.position(), workload.snapshots(&system));
            if run.interleaving.stuck > 0 {
                // A call of it does not return: what the system shows now is nobody's business.
                break;
            }
            if run.history.calls.len() > calls + 1 && run.interleaving.points == 0 {
                // Mounted anew: the figures of the mount before are gone.
                figures = workload.figures(&system);
            }
        }
        if run.interleaving.stuck == 0 {
            workload.compare(&system, &run.state).map_err(|broken| broken.when("at the end, no cut"))?;
            workload.verify(&system, &run.state).map_err(|broken| broken.when("at the end, no cut"))?;
        }
        figures.extend(workload.figures(&system));
        drop(system);
        let trace = medium.take_trace();
        trace.check_commits().map_err(|text| Violation::new("N1", text))?;
        Ok(Recorded { trace, history: run.history, figures, interleaving: run.interleaving })
    })
}

/// Explores a recorded run.
pub fn explore<W: Workload>(workload: &W, plan: &Plan, recorded: &Recorded<W>) -> Outcome {
    let mut outcome = Outcome {
        operations: recorded.trace.operations(),
        wraps: recorded.trace.wraps(),
        calls: recorded.history.calls.len(),
        figures: recorded.figures.clone(),
        interleaving: recorded.interleaving,
        ..Outcome::default()
    };
    let mut prng = Prng::new(plan.seed ^ 0x5eed);
    let budget = Budget { variants: plan.variants, states: plan.most_states, seed: plan.seed };
    let places = recorded.trace.places(&budget);
    let mut walk = recorded.trace.walk();
    for (index, &first) in places.iter().enumerate() {
        let is_last = index + 1 == places.len();
        for variant in walk.variants(first, plan.variants, is_last, &mut prng) {
            if outcome.states + outcome.second_states >= plan.most_states {
                return outcome;
            }
            let number = outcome.states as usize;
            outcome.states += 1;
            let place = Place { first: (first, variant), second: None };
            let recording =
                plan.second_every > 0 && number % plan.second_every == prng.below(3) as usize % plan.second_every;
            let seed = seed_of(plan.seed, place);
            let Some(image) = walk.image(first, variant, seed) else { continue };
            let case = JudgedState { workload, history: &recorded.history, cut: first, seed, recording };
            let recovered = match case.judge(image) {
                Ok(recovered) => recovered,
                Err(violation) => {
                    keep(&mut outcome, place, violation);
                    continue;
                }
            };
            if recording {
                let second = SecondCut { workload, seed: plan.seed, recorded, recovered: &recovered };
                second.explore(plan.seconds, place, &mut prng, &mut outcome);
            }
        }
    }
    outcome
}

/// The cuts of a recovery that was recorded.
struct SecondCut<'a, W: Workload> {
    workload: &'a W,
    seed: u64,
    recorded: &'a Recorded<W>,
    recovered: &'a Recovered<W>,
}

impl<W: Workload> SecondCut<'_, W> {
    /// Judges about `seconds` of the states behind the first cut at `place`.
    fn explore(&self, seconds: usize, place: Place, prng: &mut Prng, outcome: &mut Outcome) {
        let Some(trace) = &self.recovered.trace else { return };
        let places = trace.places(&Budget { variants: 1, states: u64::MAX, seed: self.seed });
        let mut walk = trace.walk();
        let count = places.len();
        // All of them if they are few, else some, at a stride that begins anywhere.
        let stride = count.div_ceil(seconds.max(1)).max(1);
        let start = prng.below(stride as u64) as usize;
        for (index, &second) in places.iter().enumerate().skip(start).step_by(stride) {
            for variant in walk.variants(second, 1, index + 1 == count, prng) {
                outcome.second_states += 1;
                let place = Place { second: Some((second, variant)), ..place };
                let image = walk.image(second, variant, seed_of(self.seed, place));
                if let Err(violation) = self.judge(image, place) {
                    keep(outcome, place, violation);
                }
            }
        }
    }

    fn judge(&self, image: Option<ImageOf<W>>, place: Place) -> Result<(), Violation> {
        let Some((second, _)) = place.second else { return Ok(()) };
        let Some(image) = image else {
            return Err(Violation::new("N5", format!("the recovery has no operation {second}")));
        };
        // Until the mount has returned nothing was shown, and the promises are those of the first
        // cut.
        let (history, cut) = if second < self.recovered.mounted {
            (&self.recorded.history, place.first.0)
        } else {
            (&self.recovered.history, second)
        };
        let seed = seed_of(self.seed, place);
        let case = JudgedState { workload: self.workload, history, cut, seed, recording: false };
        case.judge(image).map(|_| ()).map_err(|broken| broken.when("after the second cut"))
    }
}

/// Judges one place of a recorded run again.
///
/// # Errors
/// The violation, if it is there.
pub fn judge_place<W: Workload>(
    workload: &W,
    seed: u64,
    recorded: &Recorded<W>,
    place: Place,
) -> Result<(), Violation> {
    let first = Place { second: None, ..place };
    let first_seed = seed_of(seed, first);
    let Some(image) = recorded.trace.walk().image(place.first.0, place.first.1, first_seed) else {
        return Err(Violation::new("N2", format!("the run has no operation {}", place.first.0)));
    };
    let recording = place.second.is_some();
    let case = JudgedState { workload, history: &recorded.history, cut: place.first.0, seed: first_seed, recording };
    let recovered = case.judge(image)?;
    let second = place.second.unwrap_or_default();
    let image = recovered.trace.as_ref().and_then(|trace| trace.walk().image(second.0, second.1, seed_of(seed, place)));
    SecondCut { workload, seed, recorded, recovered: &recovered }.judge(image, place)
}

/// The recovery after the first cut of `place` and the use after it; nothing if it breaks a promise
/// itself.
pub fn recovery<W: Workload>(workload: &W, seed: u64, recorded: &Recorded<W>, place: Place) -> Option<Recovered<W>> {
    let seed = seed_of(seed, Place { second: None, ..place });
    let image = recorded.trace.walk().image(place.first.0, place.first.1, seed)?;
    JudgedState { workload, history: &recorded.history, cut: place.first.0, seed, recording: true }.judge(image).ok()
}

/// A state that is to be judged: what was called before it, and where that was cut.
struct JudgedState<'a, W: Workload> {
    workload: &'a W,
    history: &'a History<W::State>,
    cut: usize,
    seed: u64,
    recording: bool,
}

impl<W: Workload> JudgedState<'_, W> {
    /// Mounts `image`, compares, uses, closes, mounts and compares.
    fn judge(&self, image: ImageOf<W>) -> Result<Recovered<W>, Violation> {
        let (workload, recording) = (self.workload, self.recording);
        guard(|| {
            let medium = W::Medium::new(image, recording);
            let mut system = workload.mount(&medium, false)?;
            let mounted = medium.position();
            if recording {
                workload.note(&system, &medium)?;
            }
            let state = workload.recognise(&system, self.history, self.history.promise(self.cut))?;
            let snapshots = workload.snapshots(&system);
            if let Some(difference) = self.history.kept(self.cut).and_then(|kept| kept.difference(&snapshots)) {
                return Err(Violation::new("N1", difference));
            }
            workload.verify(&system, &state).map_err(|broken| broken.when("second look"))?;
            let mut run = Run::new(medium.clone(), self.seed, state, recording);
            run.history.keep(mounted, snapshots);
            workload.go_on(&mut system, &mut run).map_err(|broken| broken.when("used after the recovery"))?;
            workload.compare(&system, &run.state).map_err(|broken| broken.when("used after the recovery"))?;
            run.history.keep(medium.position(), workload.snapshots(&system));
            workload.close(&system)?;
            let snapshots = workload.snapshots(&system);
            run.history.keep(medium.position(), snapshots.clone());
            drop(system);
            let trace = if recording { Some(medium.take_trace()) } else { None };
            let system = workload.mount(&medium, false).map_err(|broken| broken.when("mounted again"))?;
            workload.compare(&system, &run.state).map_err(|broken| broken.when("mounted again"))?;
            if workload.snapshots(&system) != snapshots {
                return Err(Violation::new("N1", "mounted again: there are other snapshots"));
            }
            workload.verify(&system, &run.state).map_err(|broken| broken.when("mounted again"))?;
            Ok(Recovered { history: run.history, trace, mounted })
        })
    }
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
