//! The test of the tests: every planted bug must be found.

use onode_base::planted::{Bug, plant};
use onode_crash::spec::Spec;
use onode_crash::task::{self, LEVELS, Media};
use std::process::ExitCode;

/// Most states of one run: a bug shows in many runs, or late in one.
const RUN_STATES: u64 = 2500;

/// Plants the bugs whose name contains `only`, each until it is found or `states` were judged.
pub fn run(only: &str, states: u64) -> ExitCode {
    let bugs: Vec<Bug> = Bug::ALL.into_iter().filter(|bug| format!("{bug:?}").contains(only)).collect();
    let mut survivors = Vec::new();
    for bug in &bugs {
        match find(*bug, states) {
            Ok((judged, spec, text)) => println!("found     {bug:?} after {judged} states: {spec}  {text}"),
            Err(judged) => {
                println!("SURVIVED  {bug:?}: {judged} states");
                survivors.push(*bug);
            }
        }
    }
    println!("{} of {} planted bugs found", bugs.len() - survivors.len(), bugs.len());
    ExitCode::from(u8::from(!survivors.is_empty()))
}

/// Explores with the bug until a violation that is not there without it.
fn find(bug: Bug, states: u64) -> Result<(u64, Spec, String), u64> {
    let mut judged = 0;
    let of_files = bug >= Bug::FsyncWithoutSync;
    let levels: Vec<&str> = LEVELS.into_iter().filter(|level| (*level != "object") == of_files).collect();
    let name = format!("{bug:?}");
    let media = match () {
        () if name.starts_with("Scm") => Media::Scm,
        () if name.starts_with("Beside") => Media::Beside,
        () => Media::Nand,
    };
    for seed in 1.. {
        for run in task::round(media, &levels, seed) {
            plant(Some(bug));
            let explored = task::explore(&run, RUN_STATES);
            plant(None);
            let found = match explored {
                Ok(Ok(outcome)) => {
                    judged += outcome.states + outcome.second_states;
                    outcome.found.into_iter().map(|(place, violation)| (Some(place), violation)).collect()
                }
                Ok(Err(violation)) => vec![(None, violation)],
                Err(_) => Vec::new(),
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
