//! The health of a volume: what its device tells, and what only those above it know.

pub mod repair;
mod versions;

use crate::volume::Volume;
use onode_object::{Condition, Health, Severity};

impl Volume {
    /// What is wrong with it now, and what happened to it since it was opened.
    #[must_use]
    pub fn health(&self) -> Health {
        let mut health = self.device().health();
        let statistics = self.files().statistics();
        if statistics.write_back_errors > 0 {
            health.conditions.push(write_back_failed(statistics.write_back_errors, statistics.dirty_bytes));
        }
        health.conditions.extend(self.files().upkeep_failure().map(|why| upkeep_failed(&why)));
        if let Some((files, more)) = self.files().scrub_damage() {
            health.conditions.push(scrub_damaged(&files, more));
        }
        let has = |health: &Health, code: &str| health.conditions.iter().any(|condition| condition.code == code);
        // Of a volume that was opened to be read only, it says nothing.
        let read_only = if self.files().options().read_only { None } else { self.device().info().read_only };
        if let Some(why) = read_only.filter(|_| !has(&health, "read-only")) {
            health.conditions.push(
                Condition::new("read-only", Severity::Failed, format!("it accepts no more changes: {why}"))
                    .remedy("unmount it, put right what is wrong, and mount it again"),
            );
        }
        // Devices tell of their opening themselves; what they leave out comes as it was noted.
        if health.conditions.iter().all(|condition| condition.severity > Severity::Notice) {
            let is_told = |note: &&String| health.conditions.iter().any(|told| told.text == **note);
            let notes: Vec<&String> = self.notes().iter().filter(|note| !is_told(note)).collect();
            let conditions = notes.into_iter().map(|note| Condition::new("opened", Severity::Notice, note.clone()));
            health.conditions.extend(conditions);
        }
        health
    }
}

fn write_back_failed(times: u64, dirty_bytes: u64) -> Condition {
    let often = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    let text = format!("content could not be written out {often}");
    match dirty_bytes {
        0 => Condition::new("write-back-failed", Severity::Notice, text),
        bytes => {
            let text = format!("{text}, and {} wait in memory", onode_base::size::human_size(bytes));
            Condition::new("write-back-failed", Severity::Degraded, text)
                .remedy("make room in the volume, or see what else its other conditions say")
        }
    }
}

fn upkeep_failed(why: &str) -> Condition {
    let text = format!("background work fails: {why}; what it is to clean or to move stays where it is");
    Condition::new("upkeep-failed", Severity::Degraded, text)
        .remedy("`onode scrub` tells what is damaged; `onode repair` mends what can be mended once it is unmounted")
}

/// How many files a sentence names.
const FILES_TOLD: usize = 5;

fn scrub_damaged(files: &[String], more: u64) -> Condition {
    let told = files.iter().take(FILES_TOLD).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = more + files.len().saturating_sub(FILES_TOLD) as u64;
    let more = if more == 0 { String::new() } else { format!(" and {more} ranges more") };
    let text = match told.is_empty() {
        true => "a scrub found the index damaged: not everything can be reached".to_owned(),
        false => format!("a scrub found what cannot be read any more: {told}{more}"),
    };
    let remedy = "restore it from a backup, then scrub again: the next scrub that finds nothing ends this condition";
    Condition::new("scrub-damaged", Severity::Failed, text).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_background_work_is_degraded_and_says_why() {
        let condition = upkeep_failed("object 70: it is damaged");
        assert_eq!((condition.code.as_ref(), condition.severity), ("upkeep-failed", Severity::Degraded));
        assert!(condition.text.contains("fails: object 70: it is damaged; what"), "{}", condition.text);
    }

    #[test]
    fn damage_is_told_in_one_sentence() {
        let files: Vec<String> = (0..7).map(|number| format!("/f{number} bytes 0 to 9")).collect();
        let condition = scrub_damaged(&files, 3);
        assert_eq!((condition.code.as_ref(), condition.severity), ("scrub-damaged", Severity::Failed));
        assert!(condition.text.ends_with("/f4 bytes 0 to 9 and 5 ranges more"), "{}", condition.text);
        assert!(scrub_damaged(&files[..1], 0).text.ends_with("any more: /f0 bytes 0 to 9"));
        assert!(scrub_damaged(&[], 0).text.contains("index"));
    }
}
