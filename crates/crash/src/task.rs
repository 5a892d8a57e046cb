//! Runs by name: which there are, how each is explored, replayed and explained.

mod media;
pub mod spec;

use crate::explore::{self, Outcome, Place, Plan, Recorded, Recovered};
use crate::files::cases::{CASES, WHITEOUT};
use crate::files::{self, FILE_WORKLOADS, FileWorkload};
use crate::kind::Kind;
use crate::kind::authenticated::{self, Authenticating};
use crate::kind::beside::{Beside, PREFIX};
use crate::kind::compressed::{self, Compressing};
use crate::kind::encrypted::{self, Encrypting};
use crate::kind::flash::Flash;
use crate::kind::geometry;
use crate::kind::keyed::{self, Keying};
use crate::kind::pool::{self, FlashAndMemory};
use crate::kind::scm::Scm;
use crate::kind::service::{Service, Wrapped};
use crate::kind::snapshots::{self, Snapshotting};
use crate::kind::tier::Tier;
use crate::kind::transacted::{self, Transacting};
use crate::medium::Trace;
use crate::object::clients::{self, ClientsWorkload};
use crate::object::{ObjectWorkload, PROFILES, brim, profile};
use crate::task::spec::{RunName, Spec};
use crate::violation::Violation;
use crate::workload::Workload;
use crate::workload::history::History;

pub use media::Media;

/// The levels.
pub const LEVELS: [&str; 3] = ["object", "through", "back"];

/// Enumerated sequences in one round: they are short.
const PAIRS: u64 = 48;

/// First cuts between two whose recovery is cut again, and second cuts for each.
const SECOND_EVERY: usize = 16;
const SECONDS: usize = 6;

/// Most states of a run that fills its volume with files: each takes as long as ten of others.
const BRIM_STATES: u64 = 40;

/// Most states of a run with several clients: how their calls meet is drawn once for a run.
const CLIENTS_STATES: u64 = 700;

/// Runs with several clients on each shape in one round.
const CLIENTS_RUNS: u64 = 4;

/// Media operations shown before a cut.
const SHOWN: usize = 12;

/// What came of one run: its outcome, or how it failed without any cut.
pub type Explored = Result<Outcome, Violation>;

/// The names of all workloads of a level.
#[must_use]
pub fn workloads(level: &str) -> Vec<&'static str> {
    match level {
        "object" => PROFILES.iter().map(|profile| profile.name).collect(),
        "through" | "back" => FILE_WORKLOADS.iter().map(|(name, _)| *name).collect(),
        _ => Vec::new(),
    }
}

/// The runs of one round over every workload and shape; each round has a seed of its own.
#[must_use]
pub fn round(media: Media, levels: &[&str], seed: u64) -> Vec<RunName> {
    let mut all = Vec::new();
    for shape in media.shapes() {
        let device = shape.strip_prefix(compressed::PREFIX).unwrap_or(&shape);
        let device = device.strip_prefix(encrypted::PREFIX).unwrap_or(device);
        let device = device.strip_prefix(keyed::PREFIX).unwrap_or(device);
        let device = device.strip_prefix(authenticated::PREFIX).unwrap_or(device);
        let device = device.strip_prefix(transacted::PREFIX).unwrap_or(device);
        let device = device.strip_prefix(snapshots::PREFIX).unwrap_or(device);
        let (media, memory) = (Media::of_shape(device), geometry::memory_by_name(device));
        for level in levels.iter().filter(|level| memory.is_none_or(|memory| memory.has_level(level))) {
            // Memory does not fail by itself, and disks look after their bad sectors.
            // And what is looked at whole again and again must not be large.
            let is_large = shape.ends_with("large") || shape.ends_with("huge");
            // Nor where every snapshot of it is looked at, too.
            let is_small = !shape.starts_with(snapshots::PREFIX) || has_small_brim(&shape);
            let fits = |workload: &&str| match *workload {
                "failing" => !matches!(media, Media::Scm | Media::Tier | Media::Pool),
                brim::NAME => !is_large && is_small,
                profile::GROWING => matches!(media, Media::Nand | Media::Beside | Media::Tier) && device == shape,
                profile::VERSIONS => matches!(media, Media::Nand | Media::Beside | Media::Tier) && device == shape,
                _ => true,
            };
            // The cases come from file systems on memory, but for one.
            let named = match (media, *level) {
                (_, "object") => &[][..],
                (Media::Scm, _) => &CASES[..],
                _ => &[WHITEOUT][..],
            };
            let named = named.iter().map(|(name, _)| *name);
            for workload in workloads(level).into_iter().filter(fits).chain(named) {
                let is_short = matches!(workload, "pair" | "triple");
                let seeds = if is_short { seed * PAIRS..(seed + 1) * PAIRS } else { seed..seed + 1 };
                all.extend(seeds.map(|seed| RunName {
                    level: (*level).into(),
                    workload: workload.into(),
                    shape: shape.clone(),
                    seed,
                }));
            }
        }
    }
    all
}

/// Whether a volume of this shape is small enough to be filled with files and looked at many times.
fn has_small_brim(shape: &str) -> bool {
    ["tiny", "tier-alone"].iter().any(|name| shape.ends_with(name))
}

/// The runs of one round with so many clients. None on media whose device has its lock as long as a
/// call takes, and none on large ones, of which nothing is used again in a run.
#[must_use]
pub fn round_of_clients(media: Media, clients: &[usize], seed: u64) -> Vec<RunName> {
    if !matches!(media, Media::Nand | Media::Beside | Media::Tier) {
        return Vec::new();
    }
    let is_small = |shape: &String| !["large", "huge", "wide"].iter().any(|name| shape.ends_with(name));
    let mut all = Vec::new();
    for shape in media.shapes().into_iter().filter(is_small) {
        for workload in clients.iter().filter_map(|clients| clients::name_of(*clients)) {
            let seeds = seed * CLIENTS_RUNS..(seed + 1) * CLIENTS_RUNS;
            all.extend(seeds.map(|seed| RunName {
                level: "object".into(),
                workload: workload.into(),
                shape: shape.clone(),
                seed,
            }));
        }
    }
    all
}

/// Something to do with a workload, whatever its level.
trait Visitor {
    type Answer;
    fn visit<W: Workload>(self, workload: &W, plan: Plan) -> Self::Answer;
}

fn with_workload<V: Visitor>(run: &RunName, most_states: u64, visitor: V) -> Result<V::Answer, String> {
    // To look at some hundred files again and again takes its time.
    let most_states = if run.workload == brim::NAME { most_states.min(BRIM_STATES) } else { most_states };
    let plan = Plan { seed: run.seed, variants: 0, second_every: SECOND_EVERY, seconds: SECONDS, most_states };
    if let Some(shape) = run.shape.strip_prefix(compressed::PREFIX) {
        return with_service(Compressing, shape, run, plan, visitor);
    }
    if let Some(shape) = run.shape.strip_prefix(encrypted::PREFIX) {
        return with_service(Encrypting, shape, run, plan, visitor);
    }
    if let Some(shape) = run.shape.strip_prefix(keyed::PREFIX) {
        return with_service(Keying, shape, run, plan, visitor);
    }
    if let Some(shape) = run.shape.strip_prefix(authenticated::PREFIX) {
        return with_exclusive(Authenticating, shape, run, plan, visitor);
    }
    if let Some(shape) = run.shape.strip_prefix(transacted::PREFIX) {
        return with_service(Transacting, shape, run, plan, visitor);
    }
    if let Some(shape) = run.shape.strip_prefix(snapshots::PREFIX) {
        return with_exclusive(Snapshotting, shape, run, plan, visitor);
    }
    if let Some(shape) = geometry::memory_by_name(&run.shape) {
        return with_kind(Scm::new(shape, run.seed), run, plan, visitor);
    }
    if let Some(shape) = geometry::disks_by_name(&run.shape) {
        return with_kind(Tier::new(shape, &run.workload, run.seed), run, plan, visitor);
    }
    if let Some(name) = run.shape.strip_prefix(pool::PREFIX) {
        let shape = geometry::by_name(name).ok_or_else(|| format!("there is no shape '{name}'"))?;
        return with_kind(FlashAndMemory::new(shape, &run.workload, run.seed), run, plan, visitor);
    }
    if let Some(name) = run.shape.strip_prefix(PREFIX) {
        let shape = geometry::by_name(name).ok_or_else(|| format!("there is no shape '{name}'"))?;
        return with_kind(Beside::new(shape, &run.workload, run.seed), run, plan, visitor);
    }
    let shape = geometry::by_name(&run.shape).ok_or_else(|| format!("there is no shape '{}'", run.shape))?;
    with_kind(Flash::new(shape, &run.workload, run.seed), run, plan, visitor)
}

fn with_service<S: Service, V: Visitor>(
    service: S,
    shape: &str,
    run: &RunName,
    plan: Plan,
    visitor: V,
) -> Result<V::Answer, String> {
    if let Some(shape) = geometry::memory_by_name(shape) {
        return with_kind(Wrapped { kind: Scm::new(shape, run.seed), service }, run, plan, visitor);
    }
    if let Some(shape) = geometry::disks_by_name(shape) {
        return with_kind(Wrapped { kind: Tier::new(shape, &run.workload, run.seed), service }, run, plan, visitor);
    }
    let shape = geometry::by_name(shape).ok_or_else(|| format!("there is no shape '{}'", run.shape))?;
    with_kind(Wrapped { kind: Flash::new(shape, &run.workload, run.seed), service }, run, plan, visitor)
}

/// A service that memory can have if one process at a time uses it.
fn with_exclusive<S: Service, V: Visitor>(
    service: S,
    shape: &str,
    run: &RunName,
    plan: Plan,
    visitor: V,
) -> Result<V::Answer, String> {
    if let Some(shape) = geometry::memory_by_name(shape) {
        let kind = Scm::new(shape, run.seed).exclusive();
        return with_kind(Wrapped { kind, service }, run, plan, visitor);
    }
    if let Some(name) = shape.strip_prefix(PREFIX) {
        let shape = geometry::by_name(name).ok_or_else(|| format!("there is no shape '{}'", run.shape))?;
        return with_kind(Wrapped { kind: Beside::new(shape, &run.workload, run.seed), service }, run, plan, visitor);
    }
    with_service(service, shape, run, plan, visitor)
}

fn with_kind<K: Kind, V: Visitor>(kind: K, run: &RunName, plan: Plan, visitor: V) -> Result<V::Answer, String> {
    match run.level.as_str() {
        "object" if let Some(clients) = clients::by_name(&run.workload) => {
            let most_states = plan.most_states.min(CLIENTS_STATES);
            let plan = Plan { variants: clients::PROFILE.variants, most_states, ..plan };
            Ok(visitor.visit(&ClientsWorkload::new(clients, kind, run.seed), plan))
        }
        "object" => {
            let profile = profile::by_name(&run.workload);
            let profile = profile.ok_or_else(|| format!("there is no workload '{}'", run.workload))?;
            let plan = Plan { variants: profile.variants, ..plan };
            Ok(visitor.visit(&ObjectWorkload { profile, kind, seed: run.seed }, plan))
        }
        level @ ("through" | "back") => {
            let names = FILE_WORKLOADS.iter().map(|(name, _)| *name).chain(CASES.iter().map(|(name, _)| *name));
            let name = names.into_iter().find(|name| *name == run.workload);
            let name = name.ok_or_else(|| format!("there is no workload '{}'", run.workload))?;
            let workload = FileWorkload { name, kind, through: level == "through", seed: run.seed };
            Ok(visitor.visit(&workload, files::workload::plan(&workload, plan)))
        }
        other => Err(format!("there is no level '{other}'")),
    }
}

struct Explore;

impl Visitor for Explore {
    type Answer = Explored;

    fn visit<W: Workload>(self, workload: &W, plan: Plan) -> Explored {
        let recorded = explore::record(workload, plan.seed, false)?;
        Ok(explore::explore(workload, &plan, &recorded))
    }
}

/// Explores a run, judging at most `most_states` states.
///
/// # Errors
/// If there is no such run.
pub fn explore(run: &RunName, most_states: u64) -> Result<Explored, String> {
    with_workload(run, most_states, Explore)
}

struct Replay(Option<Place>);

impl Visitor for Replay {
    type Answer = (String, Result<(), Violation>);

    fn visit<W: Workload>(self, workload: &W, plan: Plan) -> Self::Answer {
        let recorded = match explore::record(workload, plan.seed, true) {
            Ok(recorded) => recorded,
            Err(violation) => return (String::from("The run fails without any cut.\n"), Err(violation)),
        };
        let Some(place) = self.0 else { return (explain_run(&recorded), Ok(())) };
        let verdict = explore::judge_place(workload, plan.seed, &recorded, place);
        let mut story = explain(&recorded, place);
        if let Some(second) = place.second
            && let Some(recovered) = explore::recovery(workload, plan.seed, &recorded, place)
        {
            story += &explain_second(&recovered, second.0, second.1);
        }
        (story, verdict)
    }
}

/// Judges one state again; returns its story and the verdict.
///
/// # Errors
/// If there is no such run.
pub fn replay(spec: &Spec) -> Result<(String, Result<(), Violation>), String> {
    with_workload(&spec.run, u64::MAX, Replay(spec.place))
}

fn explain_run<W: Workload>(recorded: &Recorded<W>) -> String {
    let mut text = String::new();
    for (number, call) in recorded.history.calls.iter().enumerate() {
        text += &format!("call {:4}  operations {}..{}  {}\n", number + 1, call.begin, call.end, call.what);
    }
    text
}

/// The calls and media operations around a cut.
fn explain<W: Workload>(recorded: &Recorded<W>, place: Place) -> String {
    let (at, variant) = place.first;
    let mut text = explain_calls(&recorded.history, at);
    text += "Media operations around the cut:\n";
    for position in at.saturating_sub(SHOWN)..=at {
        text += &operation(&recorded.trace, position, at, variant);
    }
    text
}

/// The calls around a cut at a media operation.
fn explain_calls<S>(history: &History<S>, at: usize) -> String {
    let promise = history.promise(at);
    let mut text = format!("Calls around the cut ({} are covered, {} may be there):\n", promise.floor, promise.ceiling);
    let from = promise.floor.saturating_sub(4);
    for (number, call) in history.calls.iter().enumerate().take(promise.ceiling + 1).skip(from) {
        let mark = if number < promise.floor {
            "covered "
        } else if number < promise.returned {
            "returned"
        } else if number < promise.ceiling {
            "begun   "
        } else {
            "not yet "
        };
        text += &format!("  {mark} call {:4}  operations {}..{}  {}\n", number + 1, call.begin, call.end, call.what);
    }
    text
}

/// The calls and media operations of the recovery and what followed, up to the second cut.
fn explain_second<W: Workload>(recovered: &Recovered<W>, at: usize, variant: usize) -> String {
    let Some(trace) = &recovered.trace else { return String::new() };
    let mut text = String::from("After the first cut:\n");
    if at >= recovered.mounted {
        text += &explain_calls(&recovered.history, at);
    }
    text += &format!("Media operations after the first cut ({} by the mount):\n", recovered.mounted);
    for position in at.saturating_sub(2 * SHOWN)..=at {
        text += &operation(trace, position, at, variant);
    }
    text
}

fn operation<T: Trace>(trace: &T, position: usize, at: usize, variant: usize) -> String {
    let cut = format!("  <- cut: {}", trace.describe_variant(at, variant));
    format!("  {position:5} {}{}\n", trace.describe(position), if position == at { &cut } else { "" })
}
