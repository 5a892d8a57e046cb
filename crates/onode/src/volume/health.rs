//! The health of a volume: what its device tells, and what only those above it know.

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
