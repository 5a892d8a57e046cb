//! What a whole exploration did, in words and as JSON.

use crate::explore::Outcome;
use crate::object::clients::{self, Interleaving};
use crate::task::Media;
use crate::task::spec::{RunName, Spec};
use crate::violation::Violation;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Figures of all runs of one workload.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Runs.
    pub runs: u64,
    /// Calls of these runs.
    pub calls: u64,
    /// Media operations of these runs.
    pub operations: u64,
    /// States after one cut.
    pub states: u64,
    /// States after two.
    pub second_states: u64,
    /// Segments that the device cleaned in these runs.
    pub cleanings: u64,
    /// Most times that one run filled its medium, in hundredths.
    pub wraps: u64,
    /// What came in between calls of these runs.
    pub interleaving: Interleaving,
    /// Violations.
    pub violations: u64,
}

/// What was done and found so far.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By level and workload.
    pub counts: BTreeMap<String, Counts>,
    /// The first violations.
    pub found: Vec<(Spec, Violation)>,
}

/// Violations kept.
const KEPT: usize = 40;

impl Report {
    /// Adds what came of one run.
    pub fn add(&mut self, run: &RunName, explored: Result<Outcome, Violation>) {
        let medium = match Media::of_shape(&run.shape) {
            Media::Nand => "",
            Media::Scm => "scm.",
            Media::Beside => "beside.",
            Media::Tier => "tier.",
            Media::Compressed => "compressed.",
            Media::Encrypted => "encrypted.",
            Media::Keyed => "keyed.",
            Media::Authenticated => "authenticated.",
            Media::Pool => "pool.",
            Media::Transacted => "tx.",
            Media::Snapshots => "snap.",
        };
        let counts = self.counts.entry(format!("{medium}{}.{}", run.level, run.workload)).or_default();
        counts.runs += 1;
        match explored {
            Ok(outcome) => {
                let sum = |name: &str| outcome.figures.iter().filter(|(of, _)| of == name).map(|(_, n)| n).sum::<u64>();
                counts.calls += outcome.calls as u64;
                counts.operations += outcome.operations as u64;
                counts.states += outcome.states;
                counts.second_states += outcome.second_states;
                counts.cleanings += sum("segments_cleaned");
                counts.interleaving.add(&outcome.interleaving);
                counts.wraps = counts.wraps.max(outcome.wraps);
                counts.violations += outcome.violations;
                for (place, violation) in outcome.found {
                    self.keep(Spec { run: run.clone(), place: Some(place) }, violation);
                }
            }
            Err(violation) => {
                counts.violations += 1;
                self.keep(Spec { run: run.clone(), place: None }, violation);
            }
        }
    }

    fn keep(&mut self, spec: Spec, violation: Violation) {
        if self.found.len() < KEPT {
            self.found.push((spec, violation));
        }
    }

    /// States judged.
    #[must_use]
    pub fn states(&self) -> u64 {
        self.counts.values().map(|one| one.states + one.second_states).sum()
    }

    /// Violations found.
    #[must_use]
    pub fn violations(&self) -> u64 {
        self.counts.values().map(|one| one.violations).sum()
    }

    /// What came in between calls.
    #[must_use]
    pub fn interleaving(&self) -> Interleaving {
        let mut all = Interleaving::default();
        self.counts.values().for_each(|one| all.add(&one.interleaving));
        all
    }

    /// What came in between the calls of runs with several clients, a line for each number of them.
    fn clients(&self) -> String {
        let mut text = String::new();
        for (name, one) in &self.counts {
            let workload = name.rsplit('.').next().unwrap_or_default();
            let Some(clients) = clients::by_name(workload) else { continue };
            let Interleaving { points, flushing, locked, taken, nested, changes, followers, deepest, stuck } =
                one.interleaving;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{name}: {clients} clients, {points} moments to come in between, {flushing} of them in flushes or checkpoints \
                 ({locked} more with a lock held); {taken} taken by {nested} calls, {changes} of them changes, \
                 {followers} of which waited while others went on, up to {deepest} calls at a time; {stuck} of {} runs \
                 ended because one would wait for another",
                one.runs
            );
        }
        text
    }

    /// The report for people; `cpu_seconds` is what it took.
    #[must_use]
    pub fn text(&self, cpu_seconds: f64) -> String {
        let mut text = format!(
            "{:<30} {:>6} {:>8} {:>8} {:>9} {:>9} {:>9} {:>6} {:>10}\n",
            "workload", "runs", "calls", "media op", "one cut", "two cuts", "cleanings", "wraps", "violations"
        );
        for (name, one) in &self.counts {
            let wraps = format!("{}.{}", one.wraps / 100, one.wraps / 10 % 10);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{name:<30} {:>6} {:>8} {:>8} {:>9} {:>9} {:>9} {wraps:>6} {:>10}",
                one.runs, one.calls, one.operations, one.states, one.second_states, one.cleanings, one.violations
            );
        }
        text += &self.clients();
        for (spec, violation) in &self.found {
            let _ = writeln!(text, "onode-crash replay {spec}\n    {violation}");
        }
        let (states, violations) = (self.states(), self.violations());
        let rate = states as f64 / cpu_seconds.max(0.001);
        let _ = writeln!(text, "{states} states, {violations} violations, {rate:.0} states per CPU-second");
        text
    }

    /// The report for programs.
    #[must_use]
    pub fn json(&self, cpu_seconds: f64) -> String {
        let workloads: Vec<String> = self
            .counts
            .iter()
            .map(|(name, one)| {
                format!(
                    "{{\"workload\":{},\"runs\":{},\"calls\":{},\"media_operations\":{},\"states\":{},\
                     \"second_states\":{},\"cleanings\":{},\"wraps_percent\":{},\"moments\":{},\"nested_calls\":{},\
                     \"violations\":{}}}",
                    quote(name),
                    one.runs,
                    one.calls,
                    one.operations,
                    one.states,
                    one.second_states,
                    one.cleanings,
                    one.wraps,
                    one.interleaving.points,
                    one.interleaving.nested,
                    one.violations
                )
            })
            .collect();
        let found: Vec<String> = self
            .found
            .iter()
            .map(|(spec, violation)| {
                let (spec, text) = (quote(&spec.to_string()), quote(&violation.text));
                format!("{{\"replay\":{spec},\"promise\":\"{}\",\"text\":{text}}}", violation.promise)
            })
            .collect();
        format!(
            "{{\"states\":{},\"violations\":{},\"cpu_seconds\":{cpu_seconds:.3},\"workloads\":[{}],\"found\":[{}]}}\n",
            self.states(),
            self.violations(),
            workloads.join(","),
            found.join(",")
        )
    }
}

fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            c if c < ' ' => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_json_is_quoted() {
        assert_eq!(quote("a\"b\\c\nd"), "\"a\\\"b\\\\c\\u000ad\"");
    }

    #[test]
    fn a_run_that_fails_without_a_cut_counts_as_a_violation() {
        let mut report = Report::default();
        let run = RunName { level: "object".into(), workload: "mix".into(), shape: "tiny".into(), seed: 3 };
        report.add(&run, Err(Violation::new("N7", "refused")));
        assert_eq!((report.states(), report.violations()), (0, 1));
        assert!(report.text(1.0).contains("onode-crash replay object.mix.tiny.3\n    N7: refused"));
    }
}
