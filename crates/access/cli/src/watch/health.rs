//! The health of a volume in reports: one word, and what is wrong.

use onode::{Condition, Health, Severity};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The word for a volume that is well.
const HEALTHY: &str = "healthy";

/// The health of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthReport {
    /// `healthy`, or the severity of the worst condition.
    pub state: String,
    /// What is wrong, the worst first.
    pub conditions: Vec<ConditionReport>,
}

/// One thing that is or was wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionReport {
    pub code: String,
    pub severity: String,
    pub text: String,
    /// What to do now; nothing if nothing has to be done.
    pub remedy: Option<String>,
}

impl HealthReport {
    /// 0 for a volume that is well, then 1 to 3 for notice, degraded and failed.
    pub fn rank(&self) -> u64 {
        let severities = [Severity::Notice, Severity::Degraded, Severity::Failed];
        (1..).zip(severities).find(|(_, one)| one.name() == self.state).map_or(0, |(rank, _)| rank)
    }

    /// Whether nothing is wrong.
    pub const fn is_healthy(&self) -> bool {
        self.conditions.is_empty()
    }

    /// One line for each condition, each after `start`.
    pub fn lines(&self, start: &str) -> String {
        self.conditions.iter().map(|one| format!("{start}{one}\n")).collect()
    }
}

impl From<Health> for HealthReport {
    fn from(mut health: Health) -> Self {
        health.conditions.sort_by_key(|condition| std::cmp::Reverse(condition.severity));
        let state = health.worst().map_or(HEALTHY, Severity::name).to_owned();
        Self { state, conditions: health.conditions.into_iter().map(ConditionReport::from).collect() }
    }
}

impl Default for HealthReport {
    fn default() -> Self {
        Self::from(Health::default())
    }
}

impl From<Condition> for ConditionReport {
    fn from(Condition { code, severity, text, remedy, .. }: Condition) -> Self {
        let remedy = Some(remedy).filter(|remedy| !remedy.is_empty());
        Self { code: code.into_owned(), severity: severity.name().to_owned(), text, remedy }
    }
}

impl fmt::Display for ConditionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, severity, text, remedy } = self;
        write!(f, "{} {code}: {text}", severity.to_uppercase())?;
        match remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first_and_names_the_state() {
        let conditions = vec![
            Condition::new("old", Severity::Notice, "it was"),
            Condition::new("bad", Severity::Failed, "it is").remedy("do it"),
        ];
        let report = HealthReport::from(Health::new(conditions));
        assert_eq!((report.state.as_str(), report.rank()), ("failed", 3));
        assert_eq!(report.lines("  "), "  FAILED bad: it is; do it\n  NOTICE old: it was\n");
        assert_eq!((HealthReport::default().state.as_str(), HealthReport::default().rank()), (HEALTHY, 0));
    }
}
