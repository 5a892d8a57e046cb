//! How the attribute of a volume tells of its scrubs: a line for each figure, `NAME=VALUE`, those
//! of the last complete scrub with `last.` before them. Names that a reader does not know are of a
//! newer version.

use crate::volume::scrub::record::{DamagedRange, FinishedScrub, ScrubFindings, ScrubPass, ScrubPhase};
use onode_base::Timestamp;
use std::fmt::Write;

/// What is known of the scrubs of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubStatus {
    /// One that goes on or was interrupted.
    pub pass: Option<ScrubPass>,
    /// Somebody is at it.
    pub is_running: bool,
    /// What it has to verify in all, in the count of [`ScrubPass::done`]; an estimate.
    pub total: u64,
    /// The last one that came to its end.
    pub last: Option<FinishedScrub>,
    /// Why the position cannot be kept, if it cannot: it is lost with the mount.
    pub unkept: Option<String>,
}

impl ScrubStatus {
    /// As the attribute has it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        if let Some(pass) = &self.pass {
            let _ = writeln!(text, "running={}\nphase={}", u8::from(self.is_running), pass.phase.name());
            let _ = writeln!(text, "started={}\ndone={}\ntotal={}", pass.started.seconds, pass.done, self.total);
            tell(&mut text, "", &pass.found);
        }
        if let Some(last) = &self.last {
            let _ = writeln!(text, "last.started={}\nlast.ended={}", last.started.seconds, last.ended.seconds);
            tell(&mut text, "last.", &last.found);
        }
        if let Some(why) = &self.unkept {
            let _ = writeln!(text, "unkept={}", why.replace('\n', " "));
        }
        text
    }

    /// What such a text says.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut status = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            let number = || value.parse().unwrap_or(0);
            let time = || Timestamp { seconds: value.parse().unwrap_or(0), nanoseconds: 0 };
            if let Some(name) = name.strip_prefix("last.") {
                let last = status.last.get_or_insert_default();
                match name {
                    "started" => last.started = time(),
                    "ended" => last.ended = time(),
                    _ => take(&mut last.found, name, value),
                }
                continue;
            }
            match name {
                "total" => status.total = number(),
                "running" => {
                    status.pass.get_or_insert_default();
                    status.is_running = value == "1";
                }
                "unkept" => status.unkept = Some(value.to_owned()),
                _ => {
                    let pass = status.pass.get_or_insert_default();
                    match name {
                        "phase" => {
                            let phase = ScrubPhase::ALL.into_iter().find(|phase| phase.name() == value);
                            pass.phase = phase.unwrap_or_default();
                        }
                        "started" => pass.started = time(),
                        "done" => pass.done = number(),
                        _ => take(&mut pass.found, name, value),
                    }
                }
            }
        }
        status
    }
}

fn tell(text: &mut String, start: &str, found: &ScrubFindings) {
    let figures = [
        ("objects", found.objects),
        ("bytes", found.bytes),
        ("groups", found.groups),
        ("rebuilt", found.rebuilt),
        ("lost", found.lost),
        ("unprotected", found.unprotected),
        ("repaired", found.repaired),
        ("moved", found.moved),
        ("more_damaged", found.more_damaged),
        ("cut", u64::from(found.is_cut)),
    ];
    for (name, figure) in figures {
        let _ = writeln!(text, "{start}{name}={figure}");
    }
    for DamagedRange { object, start: from, end } in &found.damaged {
        let _ = writeln!(text, "{start}damaged={object} {from} {end}");
    }
}

fn take(found: &mut ScrubFindings, name: &str, value: &str) {
    let figure = match name {
        "objects" => &mut found.objects,
        "bytes" => &mut found.bytes,
        "groups" => &mut found.groups,
        "rebuilt" => &mut found.rebuilt,
        "lost" => &mut found.lost,
        "unprotected" => &mut found.unprotected,
        "repaired" => &mut found.repaired,
        "moved" => &mut found.moved,
        "more_damaged" => &mut found.more_damaged,
        "cut" => {
            found.is_cut = value == "1";
            return;
        }
        "damaged" => {
            let numbers: Vec<u64> = value.split(' ').filter_map(|word| word.parse().ok()).collect();
            if let [object, start, end] = numbers[..] {
                found.damaged.push(DamagedRange { object, start, end });
            }
            return;
        }
        _ => return,
    };
    *figure = value.parse().unwrap_or(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_comes_back() {
        let time = |seconds| Timestamp { seconds, nanoseconds: 0 };
        let damaged = vec![DamagedRange { object: 64, start: 0, end: 4096 }];
        let found = ScrubFindings { objects: 3, rebuilt: 2, is_cut: true, damaged, ..ScrubFindings::default() };
        let pass = ScrubPass { started: time(9), phase: ScrubPhase::Objects, done: 5, ..ScrubPass::default() };
        let last = FinishedScrub { started: time(-1), ended: time(7), found };
        let status = ScrubStatus {
            pass: Some(pass),
            is_running: true,
            total: 10,
            last: Some(last),
            unkept: Some("full".into()),
        };
        assert_eq!(ScrubStatus::parse(&status.to_text()), status);
        assert_eq!(ScrubStatus::parse(&ScrubStatus::default().to_text()), ScrubStatus::default());
        let newer = format!("{}last.colour=red\n", status.to_text());
        assert_eq!(ScrubStatus::parse(&newer), status);
    }
}
