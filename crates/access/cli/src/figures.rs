//! The figures of a volume and its segments, as they are shown and sent.

mod text;

use crate::watch::health::HealthReport;
use crate::watch::record;
use onode::{Volume, human_size};
use onode_object::powers::{Inspection, SegmentInfo, SegmentState, WearSpread};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a device on two disks counts as a block.
const TIER_BLOCK_BYTES: u64 = 4096;
/// Steps of the wear histogram.
const WEAR_STEPS: u32 = 8;

/// The figures of a volume.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    pub spec: String,
    pub read_only: Option<String>,
    /// One of an older version tells nothing of it.
    #[serde(default)]
    pub health: HealthReport,
    pub total_bytes: u64,
    pub available_bytes: u64,
    pub objects: u64,
    pub files: BTreeMap<String, u64>,
    /// What the kernel asked for, of a mounted volume.
    #[serde(default)]
    pub requests: BTreeMap<String, u64>,
    pub device: BTreeMap<String, u64>,
    /// Memory that the mount may take, and how long it may keep what was written.
    #[serde(default)]
    pub settings: BTreeMap<String, u64>,
    pub tags: Vec<Tag>,
    pub segments_cleaned: u64,
    pub bytes_moved: u64,
    pub bytes_written: u64,
    pub write_amplification: Option<f64>,
    pub policies: BTreeMap<String, String>,
    pub erases: Option<Erases>,
    pub wear: Vec<Wear>,
    pub costliest_objects: Vec<Costly>,
    pub ram: BTreeMap<String, u64>,
    pub segments: BTreeMap<String, Segments>,
    /// Whether counters that are 0 are shown as text.
    #[serde(skip)]
    pub all: bool,
}

/// Bytes of the memory beside the flash by part, out of the counters of a device.
pub fn beside_parts<'a>(
    counters: impl IntoIterator<Item = (&'a String, &'a u64)>,
) -> impl Iterator<Item = (&'a str, u64)> {
    let counters = counters.into_iter();
    counters.filter_map(|(name, bytes)| Some((name.strip_prefix("memory.")?.strip_suffix("_bytes")?, *bytes)))
}

/// What a volume was opened with.
fn settings_of(volume: &Volume) -> BTreeMap<String, u64> {
    let options = volume.files().options();
    let of_files = [
        ("write_cache_bytes", options.write_cache_bytes as u64),
        ("write_back_seconds", options.write_back_age_seconds.into()),
        ("name_cache_bytes", options.name_cache_bytes as u64),
        ("inode_cache", options.cached_inodes as u64),
    ];
    let device = volume.device().inspect().map(|inspect| inspect.settings()).unwrap_or_default();
    let of_device = [
        ("node_cache_bytes", device.node_cache_bytes),
        ("page_cache_bytes", device.page_cache_bytes),
        ("checkpoint_bytes", device.checkpoint_bytes),
        ("clean_ahead_segments", device.clean_ahead),
        ("fast_daily_bytes", device.fast_daily_bytes),
        ("fast_sequential_bytes", device.fast_sequential_bytes),
        ("fast_collect_seconds", device.fast_collect_seconds),
        ("fast_admit", device.fast_admit),
    ];
    let of_device = of_device.into_iter().filter_map(|(name, value)| Some((name, value?)));
    of_files.into_iter().chain(of_device).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Operations on the medium for one purpose.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tag {
    pub tag: String,
    pub reads: u64,
    pub programs: u64,
    pub erases: u64,
    pub bytes_read: u64,
    pub bytes_programmed: u64,
}

/// Segments whose erase counts lie in one range.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Wear {
    pub from: u32,
    pub to: u32,
    pub segments: u32,
}

/// Erases of the least, the average and the most erased segment, and how far most and least lie
/// apart.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Erases {
    pub min: u32,
    pub mean: f64,
    pub max: u32,
    pub spread: u32,
}

/// An object that cost many programs since the volume was opened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Costly {
    pub object: u64,
    pub pages: u64,
    /// By so many at most `pages` is too high.
    pub over: u64,
}

/// The segments in one state.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Segments {
    pub count: u64,
    pub live_bytes: u64,
    pub capacity_bytes: u64,
    pub erases: u64,
}

/// One segment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Segment {
    pub segment: u32,
    pub state: String,
    pub stream: String,
    pub live_bytes: u64,
    pub capacity_bytes: u64,
    pub erases: u32,
    pub age: u32,
}

impl Figures {
    /// Of a volume that was opened for this look alone: that it is read-only now says nothing.
    pub fn at_rest(volume: &Volume) -> Self {
        Self { read_only: None, health: record::health_at_rest(volume).into(), ..Self::of(volume) }
    }

    /// Of an open volume.
    pub fn of(volume: &Volume) -> Self {
        let space = volume.device().space();
        let statistics = volume.files().statistics();
        let inspect = volume.device().inspect();
        let inspection = inspect.map(|inspect| inspect.inspection()).unwrap_or_default();
        let files = [
            ("changes", statistics.changes),
            ("transactions", statistics.transactions),
            ("written_bytes", statistics.written_bytes),
            ("written_back_bytes", statistics.written_back_bytes),
            ("read_bytes", statistics.read_bytes),
            ("dirty_bytes", statistics.dirty_bytes),
            ("dropped_bytes", statistics.dropped_bytes),
            ("cached_inodes", statistics.cached_inodes),
            ("name_cache_bytes", statistics.name_cache_bytes),
            ("name_cache_hits", statistics.name_cache_hits),
            ("name_cache_misses", statistics.name_cache_misses),
            ("write_back_errors", statistics.write_back_errors),
        ];
        let wear = inspection.wear(WEAR_STEPS).into_iter();
        Self {
            spec: volume.spec().to_string(),
            read_only: volume.device().info().read_only,
            health: volume.health().into(),
            total_bytes: space.total,
            available_bytes: space.available,
            objects: space.objects,
            files: files.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            requests: BTreeMap::new(),
            settings: settings_of(volume),
            device: inspect.map(|inspect| inspect.counters()).unwrap_or_default().into_iter().collect(),
            segments_cleaned: inspection.segments_cleaned,
            bytes_moved: inspection.bytes_moved,
            bytes_written: inspection.bytes_written,
            write_amplification: inspection.write_amplification(),
            wear: wear.map(|step| Wear { from: step.from, to: step.to, segments: step.segments }).collect(),
            policies: inspection.policies.iter().cloned().collect(),
            erases: inspection.wear_spread().map(Erases::from),
            costliest_objects: inspection
                .costliest
                .iter()
                .map(|one| Costly { object: one.object, pages: one.pages, over: one.over })
                .collect(),
            segments: sums(&inspection.segments),
            tags: tags(&inspection),
            ram: inspection.ram.into_iter().collect(),
            all: false,
        }
    }

    /// A figure of the file system.
    pub fn file_system(&self, name: &str) -> u64 {
        self.files.get(name).copied().unwrap_or(0)
    }

    /// The line about the memory beside the flash; nothing without one.
    pub fn beside_line(&self) -> Option<String> {
        let total: u64 = beside_parts(&self.device).map(|(_, bytes)| bytes).sum();
        let (_, free) = beside_parts(&self.device).find(|(part, _)| *part == "free")?;
        let used: Vec<String> = beside_parts(&self.device)
            .filter(|(part, bytes)| *part != "free" && *bytes > 0)
            .map(|(part, bytes)| format!("{part} {}", human_size(bytes)))
            .collect();
        let folds = self.device.get("memory.folds").copied().unwrap_or(0);
        let (sum, total) = (human_size(total - free), human_size(total));
        Some(format!("{sum} of {total} used: {}; {folds} folds", used.join(", ")))
    }

    /// The line about the fast disk of two; nothing without one.
    pub fn fast_line(&self) -> Option<String> {
        let count = |name: &str| self.device.get(name).copied();
        let (hits, misses) = (count("fast.hits")?, count("fast.misses")?);
        let reads = hits + misses;
        let hit = if reads > 0 { format!("{:.1} %", 100.0 * hits as f64 / reads as f64) } else { "-".to_owned() };
        let size = |name: &str| human_size(count(name).unwrap_or(0) * TIER_BLOCK_BYTES);
        let (copied, promoted) = (size("fast.blocks_copied"), size("fast.blocks_promoted"));
        Some(format!("{hit} of {reads} reads hit, {copied} copied, {promoted} promoted"))
    }

    /// What is wrong, each in a line; that it is read-only is said already.
    pub fn health_lines(&self) -> String {
        let is_said = |code: &str| code == "read-only" && self.read_only.is_some();
        let conditions = self.health.conditions.iter().filter(|one| !is_said(&one.code));
        conditions.map(|one| format!("{one}\n")).collect()
    }

    /// Operations on the medium for all purposes.
    pub fn all_tags(&self) -> Tag {
        self.tags.iter().fold(Tag::default(), |sum, one| Tag {
            tag: "all".to_owned(),
            reads: sum.reads + one.reads,
            programs: sum.programs + one.programs,
            erases: sum.erases + one.erases,
            bytes_read: sum.bytes_read + one.bytes_read,
            bytes_programmed: sum.bytes_programmed + one.bytes_programmed,
        })
    }

    /// The line with space and objects.
    pub fn space_line(&self) -> String {
        let used = self.total_bytes.saturating_sub(self.available_bytes);
        let (used, total) = (human_size(used), human_size(self.total_bytes));
        format!("{used} of {total} used, {} free, {} objects", human_size(self.available_bytes), self.objects)
    }

    /// The line with write amplification and cleaning; empty for a device that has nothing to
    /// clean.
    pub fn cleaning_line(&self) -> String {
        if self.tags.is_empty() || self.erases.is_none() {
            return String::new();
        }
        let amplification = self.write_amplification.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        format!(
            "write amplification {amplification}, {} segments cleaned, {} moved",
            self.segments_cleaned,
            human_size(self.bytes_moved)
        )
    }
}

fn sums(all: &[SegmentInfo]) -> BTreeMap<String, Segments> {
    let mut segments: BTreeMap<String, Segments> = BTreeMap::new();
    for segment in all {
        let name = format!("{} {}", segment.state.name(), segment.stream);
        let sum = segments.entry(name.trim_end().to_owned()).or_default();
        sum.count += 1;
        sum.live_bytes += segment.live_bytes;
        sum.capacity_bytes += segment.capacity_bytes;
        sum.erases += u64::from(segment.erases);
    }
    segments
}

fn tags(inspection: &Inspection) -> Vec<Tag> {
    let all = inspection.tags.iter();
    all.map(|one| Tag {
        tag: one.tag.clone(),
        reads: one.reads,
        programs: one.programs,
        erases: one.erases,
        bytes_read: one.bytes_read,
        bytes_programmed: one.bytes_programmed,
    })
    .collect()
}

impl From<WearSpread> for Erases {
    fn from(WearSpread { min, mean, max }: WearSpread) -> Self {
        Self { min, mean, max, spread: max - min }
    }
}

impl From<SegmentInfo> for Segment {
    fn from(one: SegmentInfo) -> Self {
        Self {
            segment: one.segment,
            state: one.state.name().to_owned(),
            stream: one.stream,
            live_bytes: one.live_bytes,
            capacity_bytes: one.capacity_bytes,
            erases: one.erases,
            age: one.age,
        }
    }
}

impl From<Segment> for SegmentInfo {
    fn from(one: Segment) -> Self {
        Self {
            segment: one.segment,
            // A newer mount may know states that this command does not.
            state: SegmentState::from_name(&one.state).unwrap_or(SegmentState::Held),
            stream: one.stream,
            live_bytes: one.live_bytes,
            capacity_bytes: one.capacity_bytes,
            erases: one.erases,
            age: one.age,
        }
    }
}
