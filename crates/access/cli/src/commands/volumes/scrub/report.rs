//! What `onode scrub` tells: what a scrub found, and how scrubs of a volume stand.

use crate::commands::files::ls::date;
use onode::human_size;
use onode_base::Timestamp;
use onode_fs::scrub::record::{FinishedScrub, ScrubFindings, ScrubPass};
use onode_fs::scrub::told::ScrubStatus;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What a scrub found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScrubReport {
    /// Whether it came to its end.
    complete: bool,
    started: String,
    /// Nothing of one that is not at its end.
    ended: Option<String>,
    objects: u64,
    bytes: u64,
    groups: u64,
    pages_rebuilt: u64,
    pages_lost: u64,
    groups_unprotected: u64,
    repaired_bytes: u64,
    moved_bytes: u64,
    damaged: Vec<DamagedBytes>,
    /// Damaged ranges that are not listed.
    damaged_more: u64,
    /// Objects behind damage of the index could not be found.
    index_damaged: bool,
}

/// Bytes that cannot be read.
#[derive(Clone, Debug, Serialize)]
struct DamagedBytes {
    /// Nothing of what no name leads to.
    path: Option<String>,
    object: u64,
    /// Nothing if it is not content that is damaged.
    range: Option<(u64, u64)>,
}

/// One scrub, as the command reports it.
#[derive(Debug, Serialize)]
pub struct Report {
    pub target: String,
    pub mounted: bool,
    /// Nothing was to be changed.
    pub read_only: bool,
    #[serde(flatten)]
    pub scrub: ScrubReport,
}

/// How scrubs of a volume stand.
#[derive(Debug, Serialize)]
pub struct StatusReport {
    target: String,
    running: bool,
    /// Of one that is under way or was interrupted: how much of it is done, in per cent.
    percent: Option<u64>,
    current: Option<ScrubReport>,
    last: Option<ScrubReport>,
}

impl ScrubReport {
    fn of(found: &ScrubFindings, started: Timestamp, names: &BTreeMap<u64, String>) -> Self {
        let damaged = found.damaged.iter().map(|range| DamagedBytes {
            path: names.get(&range.object).cloned(),
            object: range.object,
            range: (range.start < range.end).then_some((range.start, range.end)),
        });
        Self {
            complete: false,
            started: date(started),
            ended: None,
            objects: found.objects,
            bytes: found.bytes,
            groups: found.groups,
            pages_rebuilt: found.rebuilt,
            pages_lost: found.lost,
            groups_unprotected: found.unprotected,
            repaired_bytes: found.repaired,
            moved_bytes: found.moved,
            damaged: damaged.collect(),
            damaged_more: found.more_damaged,
            index_damaged: found.is_cut,
        }
    }

    /// Of a scrub that came to its end.
    pub fn finished(scrub: &FinishedScrub, names: &BTreeMap<u64, String>) -> Self {
        let ended = Some(date(scrub.ended));
        Self { complete: true, ended, ..Self::of(&scrub.found, scrub.started, names) }
    }

    /// Of one that is not at its end.
    pub fn unfinished(pass: &ScrubPass, names: &BTreeMap<u64, String>) -> Self {
        Self::of(&pass.found, pass.started, names)
    }

    /// Why the volume is not well; nothing if all can be read.
    pub fn damage(&self) -> Option<String> {
        let ranges = self.damaged.len() as u64 + self.damaged_more;
        match (self.index_damaged, ranges) {
            (true, _) => Some("the index is damaged, and not all objects could be found".into()),
            (false, 0) => None,
            (false, 1) => Some("one range of a file cannot be read any more".into()),
            (false, ranges) => Some(format!("{ranges} ranges of files cannot be read any more")),
        }
    }
}

impl StatusReport {
    /// What the status of a volume says; files by these names.
    pub fn of(target: String, status: &ScrubStatus, names: &BTreeMap<u64, String>) -> Self {
        let percent = |pass: &ScrubPass| pass.done.min(status.total) * 100 / status.total.max(1);
        Self {
            target,
            running: status.is_running,
            percent: status.pass.as_ref().map(percent),
            current: status.pass.as_ref().map(|pass| ScrubReport::unfinished(pass, names)),
            last: status.last.as_ref().map(|last| ScrubReport::finished(last, names)),
        }
    }
}

impl fmt::Display for ScrubReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects, {} of content verified", self.objects, human_size(self.bytes))?;
        if self.groups > 0 {
            write!(f, ", {} groups of pages with parity", self.groups)?;
        }
        let counts = [
            (self.pages_rebuilt, "damaged pages were found again from parity"),
            (self.pages_lost, "damaged pages cannot be found again, those that nothing uses among them"),
            (self.groups_unprotected, "groups had damaged parity or none"),
        ];
        for (count, text) in counts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "\n{count} {text}")?;
        }
        let sizes = [
            (self.repaired_bytes, "were damaged and written again from a good copy"),
            (self.moved_bytes, "were moved in the background"),
        ];
        for (bytes, text) in sizes.into_iter().filter(|(bytes, _)| *bytes > 0) {
            write!(f, "\n{} {text}", human_size(bytes))?;
        }
        for DamagedBytes { path, object, range } in &self.damaged {
            let name = path.clone().unwrap_or_else(|| format!("object {object}, to which no name leads,"));
            match range {
                Some((start, end)) => write!(f, "\nDAMAGED: {name} bytes {start} to {end}")?,
                None => write!(f, "\nDAMAGED: {name}")?,
            }
        }
        if self.damaged_more > 0 {
            write!(f, "\nDAMAGED: {} ranges more", self.damaged_more)?;
        }
        if self.index_damaged {
            write!(f, "\nDAMAGED: the index; what it leads to could not be verified")?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scrub = &self.scrub;
        let repaired = scrub.pages_rebuilt + scrub.groups_unprotected + scrub.repaired_bytes > 0;
        let verdict = match (scrub.damage(), repaired, self.read_only) {
            (Some(_), _, _) => "DAMAGED",
            (None, true, true) => "all can be read; what can be repaired is left, nothing was to be changed",
            (None, true, false) if scrub.complete => "repaired",
            _ if !scrub.complete => "well so far",
            _ => "clean",
        };
        write!(f, "{}: {verdict}; {scrub}", self.target)
    }
}

impl fmt::Display for StatusReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, running, percent, current, last } = self;
        match last {
            Some(last) => {
                let ended = last.ended.as_deref().unwrap_or_default();
                write!(f, "{target}: the last complete scrub ended {ended} UTC: {last}")?;
            }
            None => write!(f, "{target}: no scrub has come to its end yet")?,
        }
        if let (Some(current), Some(percent)) = (current, percent) {
            let how = if *running { "goes on" } else { "was interrupted; `onode scrub --resume` goes on with it" };
            write!(f, "\none that began {} UTC {how}, about {percent} % done: {current}", current.started)?;
        }
        Ok(())
    }
}
