//! The test of the tests: every planted bug must be found.

use onode_base::planted::{Bug, plant};
use onode_crash::damage::faults::{self, FaultPlan};
use onode_crash::damage::{self, DamagePlan};
use onode_crash::object::profile::{GROWING, VERSIONS};
use onode_crash::object::{brim, clients};
use onode_crash::task::spec::{RunName, Spec};
use onode_crash::task::{self, LEVELS, Media};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Seed of a round and most states of one run: first a look at many runs, because a bug shows early
/// in some.
const ROUNDS: [(u64, u64); 2] = [(1, 50), (1, RUN_STATES)];
/// Most states of one run in the rounds behind.
const RUN_STATES: u64 = 2500;

/// Most states of one run with several clients.
const CLIENTS_STATES: u64 = 60;

/// Bugs for which calls meet badly in one of a thousand runs, and the seed of a round with such a
/// run.
const RARE_MEETINGS: [(Bug, u64); 1] = [(Bug::ManyTierDiscardHandedOut, 59)];

/// Images damaged with a bug before it is taken away to look at them without, and in all.
const DAMAGED_AT_ONCE: u64 = 150;
const DAMAGED_IMAGES: u64 = 15_000;

/// Faults of pages injected with a bug before it is taken away to look at them without.
const FAULTS_AT_ONCE: u64 = 2000;

/// Bugs of the services that show under threads, damage or the loss of a device alone:
/// `planted_faults` of the services finds them.
const ELSEWHERE: [Bug; 26] = [
    Bug::DirectoryNamesOpen,
    Bug::DirectoryKeyRemembered,
    Bug::DirectoryKeyUnwrapped,
    Bug::AuthenticatedOldTaken,
    Bug::StagedGateOpen,
    Bug::StagedConflictIgnored,
    Bug::ServicesChecksumIgnored,
    Bug::ServicesReadBeside,
    Bug::EncryptedTagIgnored,
    Bug::EncryptedPlaceIgnored,
    Bug::EncryptedEpochLate,
    Bug::EncryptedNonceTwice,
    Bug::EncryptedReadBeside,
    Bug::EncryptedPartStays,
    Bug::EncryptedDebtForgotten,
    Bug::StreamTailForgotten,
    Bug::StreamServiceForgotten,
    Bug::StreamAbsenceForgotten,
    Bug::PoolChangesForgotten,
    Bug::PoolDamageTold,
    Bug::PoolSplitMerged,
    Bug::PoolFailureUnrecorded,
    Bug::PoolFullNotAsked,
    Bug::PoolRefusalForgotten,
    Bug::PoolRecordTooShort,
    Bug::PoolSyncOfOne,
];

/// Plants the bugs whose name contains `only`, or is it if `=` stands before (without a name, those
/// that no full or damaged volume is needed for: these take long and are named), each until it is
/// found or `states` were judged. A bug is planted in a whole process, so `jobs` of them at a time
/// are as many processes.
/// With one client only, bugs that several clients make are searched for in vain.
pub fn run(only: &str, states: u64, jobs: usize, one_client: bool) -> ExitCode {
    let is_wanted = |bug: &Bug| {
        let name = format!("{bug:?}");
        match only.strip_prefix('=') {
            Some(wanted) => name == wanted,
            None if only.is_empty() => !name.starts_with("Full") && !name.starts_with("Damaged"),
            None => name.contains(only),
        }
    };
    let bugs: Vec<Bug> = Bug::ALL.iter().copied().filter(is_wanted).filter(|bug| !ELSEWHERE.contains(bug)).collect();
    let found = match jobs {
        0 | 1 => bugs.iter().filter(|bug| look_for(**bug, states, one_client)).count(),
        _ => in_processes(&bugs, states, jobs),
    };
    println!("{found} of {} planted bugs found", bugs.len());
    ExitCode::from(u8::from(found < bugs.len() || bugs.is_empty()))
}

/// The medium on which a bug of this name is searched for.
fn medium_of(name: &str) -> Media {
    let name = ["Full", "Damaged", "Many"].iter().fold(name, |name, prefix| name.trim_start_matches(prefix));
    match () {
        () if name.starts_with("Scm") => Media::Scm,
        () if name.starts_with("Beside") => Media::Beside,
        () if name.starts_with("Tier") => Media::Tier,
        () if name.starts_with("Services") => Media::Compressed,
        () if name.starts_with("Encrypted") => Media::Encrypted,
        () if name.starts_with("Authenticated") => Media::Authenticated,
        () if name.starts_with("Pool") => Media::Pool,
        () if name.starts_with("Staged") => Media::Transacted,
        () if name.starts_with("Snapshot") || name.starts_with("Clone") => Media::Snapshots,
        () => Media::Nand,
    }
}

/// Looks for one bug and tells of it.
fn look_for(bug: Bug, states: u64, one_client: bool) -> bool {
    let name = format!("{bug:?}");
    let found = if name.starts_with("Damaged") {
        find_by_damage(bug, medium_of(&name), states.min(DAMAGED_IMAGES))
    } else if name.starts_with("Parity") || name.starts_with("Rebuilt") {
        find_by_faults(bug, states)
    } else {
        find(bug, states, one_client).map(|(judged, spec, text)| (judged, spec.to_string(), text))
    };
    match found {
        Ok((judged, spec, text)) => println!("found     {bug:?} after {judged} states: {spec}  {text}"),
        Err(judged) => {
            println!("SURVIVED  {bug:?}: {judged} states");
            return false;
        }
    }
    true
}

/// Looks for each bug in a process of its own; returns how many were found.
fn in_processes(bugs: &[Bug], states: u64, jobs: usize) -> usize {
    let (next, found) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(bug) = bugs.get(next.fetch_add(1, Relaxed)) {
            match child(*bug, states) {
                Ok(true) => _ = found.fetch_add(1, Relaxed),
                Ok(false) => {}
                Err(error) => println!("SURVIVED  {bug:?}: nothing could be run: {error}"),
            }
        }
    };
    std::thread::scope(|scope| (0..jobs).for_each(|_| _ = scope.spawn(work)));
    found.into_inner()
}

/// Looks for a bug in a process and hands on the line that tells of it; says whether it was found.
fn child(bug: Bug, states: u64) -> std::io::Result<bool> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["mutants", "--only", &format!("={bug:?}"), "--states", &states.to_string()]);
    let output = command.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{}", text.split_inclusive('\n').next().unwrap_or_default());
    Ok(output.status.success())
}

/// Injects faults of pages with the bug until a violation that is not there without it.
fn find_by_faults(bug: Bug, faults: u64) -> Result<(u64, String, String), u64> {
    let of = |first: u64, faults: u64| FaultPlan { seed: 1, first, faults, jobs: 1 };
    for first in (0..faults).step_by(FAULTS_AT_ONCE as usize) {
        plant(Some(bug));
        let outcome = faults::run(&of(first, FAULTS_AT_ONCE));
        plant(None);
        // A bug that shows without any fault is found, too.
        let found = outcome.map_or_else(|why| vec![(first, String::new(), why)], |outcome| outcome.violations);
        for (number, _, why) in found {
            let plan = of(number, 1);
            if faults::run(&plan).is_ok_and(|outcome| outcome.violations.is_empty()) {
                return Ok((number + 1, faults::line(&plan, number), why));
            }
        }
    }
    Err(faults)
}

/// Bugs that show on one image of many thousands: a seed, and an image shortly before one.
const RARE: [(Bug, u64, u64); 1] = [(Bug::DamagedTierHeaderIgnored, 2703, 3300)];

/// Damages volumes with the bug until a violation that is not there without it.
fn find_by_damage(bug: Bug, medium: Media, images: u64) -> Result<(u64, String, String), u64> {
    let rare = RARE.iter().find(|(rare, ..)| *rare == bug);
    let (seed, start) = rare.map_or((1, 0), |&(_, seed, start)| (seed, start));
    let of = |first: u64, images: u64| DamagePlan {
        medium: medium.name().into(),
        seed,
        first,
        images,
        jobs: 1,
        most_violations: usize::MAX,
        keep: None,
    };
    for first in (start..start + images).step_by(DAMAGED_AT_ONCE as usize) {
        plant(Some(bug));
        let outcome = damage::run(&of(first, DAMAGED_AT_ONCE));
        plant(None);
        // A bug that shows without any damage is found, too.
        let found = outcome.map_or_else(|why| vec![(first, String::new(), why)], |outcome| outcome.violations);
        for (image, _, why) in found {
            let plan = of(image, 1);
            if damage::run(&plan).is_ok_and(|outcome| outcome.violations.is_empty()) {
                return Ok((image + 1 - start, damage::line(&plan, image), why));
            }
        }
    }
    Err(images)
}

/// The only workload that a bug shows with, if there is one, and a part of the names of all shapes
/// that it shows on: there are few of them among many.
fn where_it_shows(bug: Bug, name: &str) -> (Option<&'static str>, &'static str) {
    match bug {
        Bug::ServicesFramesLate => (None, "scm-mode-meta"),
        Bug::RecordsOutliveContent => (Some("failing"), "tiny"),
        Bug::ReservationKept | Bug::FailedSegmentReused => (Some("failing"), "spare"),
        Bug::GrownUnrecorded => (Some(GROWING), "tiny"),
        Bug::ScmTailBeforeRepeat => (Some("attributes"), "scm-4k"),
        _ if name.starts_with("Full") => (Some(brim::NAME), ""),
        _ if name.starts_with("Wish") => (None, "parity-"),
        _ if name.starts_with("TierMoved") => (Some(VERSIONS), ""),
        _ if name.starts_with("Grown") || name.contains("Shrunk") => (Some(GROWING), ""),
        _ if name.starts_with("ScmMeta") => (None, "scm-mode-meta"),
        _ if name.starts_with("ScmOverwrite") => (None, "scm-mode-"),
        _ => (None, ""),
    }
}

/// Explores with the bug until a violation that is not there without it.
fn find(bug: Bug, states: u64, one_client: bool) -> Result<(u64, Spec, String), u64> {
    let mut judged = 0;
    let name = format!("{bug:?}");
    // Those of full volumes show on any level, where volumes are filled.
    let is_full = name.starts_with("Full");
    let of_files = bug >= Bug::FsyncWithoutSync
        && (!["Services", "Encrypted", "Authenticated"].iter().any(|service| name.starts_with(service))
            || bug == Bug::ServicesFramesLate);
    let levels: Vec<&str> = LEVELS.into_iter().filter(|level| is_full || (*level != "object") == of_files).collect();
    let media = medium_of(&name);
    let (workload, shape) = where_it_shows(bug, &name);
    let is_wanted =
        |run: &RunName| run.shape.contains(shape) && workload.is_none_or(|workload| run.workload == workload);
    let rounds: Box<dyn Iterator<Item = (Vec<RunName>, u64)>> = if name.starts_with("Many") && !one_client {
        // How calls meet is drawn once for a run, so many runs show more than many cuts.
        let numbers: Vec<usize> = (2..=clients::MOST).collect();
        let first = RARE_MEETINGS.iter().find(|(rare, _)| *rare == bug).map_or(1, |(_, seed)| *seed);
        Box::new((first..).map(move |seed| (task::round_of_clients(media, &numbers, seed), CLIENTS_STATES)))
    } else {
        let more = (2..).map(|seed| (seed, RUN_STATES));
        let rounds = ROUNDS.into_iter().chain(more);
        Box::new(rounds.map(move |(seed, run_states)| (task::round(media, &levels, seed), run_states)))
    };
    for (round, run_states) in rounds {
        for run in round.into_iter().filter(|run| is_wanted(run)) {
            plant(Some(bug));
            let explored = task::explore(&run, run_states);
            plant(None);
            let Ok(explored) = explored else { continue };
            let found = match explored {
                Ok(outcome) => {
                    judged += outcome.states + outcome.second_states;
                    outcome.found.into_iter().map(|(place, violation)| (Some(place), violation)).collect()
                }
                Err(violation) => vec![(None, violation)],
            };
            for (place, violation) in found {
                let spec = Spec { run: run.clone(), place };
                if task::replay(&spec).is_ok_and(|(_, verdict)| verdict.is_ok()) {
                    return Ok((judged, spec, violation.to_string()));
                }
            }
            if judged >= states {
                return Err(judged);
            }
        }
    }
    Err(judged)
}
