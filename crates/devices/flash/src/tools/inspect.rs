//! The device's inside as values: its counters and its segment map.

use crate::commit::access::access_bytes;
use crate::core::Core;
use crate::device::FlashDevice;
use crate::index::bpram::Bpram;
use crate::space::segments::{Segment, SegmentState};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_media::IoTag;
use onode_object::Settings;
use onode_object::powers::{self, Inspect, Inspection, SegmentInfo, TagCounts};

impl Inspect for FlashDevice {
    fn counters(&self) -> Vec<(String, u64)> {
        let core = self.core.lock();
        let mut all = Vec::new();
        if let Some(counters) = core.log().store().counters() {
            let total = counters.total();
            all.push(("nand.reads".into(), total.reads));
            all.push(("nand.programs".into(), total.programs));
            all.push(("nand.erases".into(), total.erases));
            all.push(("nand.virtual_nanoseconds".into(), counters.virtual_nanoseconds));
            all.push(("nand.corrected_bits".into(), counters.corrected_bits));
            for tag in IoTag::ALL {
                let one = counters.of(tag);
                all.push((format!("{}.reads", tag.name()), one.reads));
                all.push((format!("{}.programs", tag.name()), one.programs));
            }
        }
        let (commits, bytes_written) = core.written();
        for (name, value) in [
            ("commits", commits),
            ("checkpoints", core.checkpoints().written().0),
            ("segments_cleaned", core.cleaner().cleaned().segments),
            ("bytes_moved", core.log().moved_content()),
            ("segments_levelled", core.cleaner().cleaned().levelled),
            ("bytes_levelled", core.cleaner().cleaned().bytes_levelled),
            ("segments_refreshed", core.cleaner().refresh().refreshed()),
            ("patrols", core.cleaner().patrol().passes()),
            ("node_bytes_moved", core.log().moved_nodes()),
            ("bytes_written", bytes_written),
            ("stall_us.p50", core.cleaner().stalls().percentile(500)),
            ("stall_us.p99", core.cleaner().stalls().percentile(990)),
            ("stall_us.max", core.cleaner().stalls().percentile(1000)),
            ("segments_failing", u64::from(core.log().table().in_state(SegmentState::Failing))),
            ("segments_bad", u64::from(core.log().table().in_state(SegmentState::Bad))),
            ("live_bytes", core.log().table().live_bytes()),
            ("parity_pages", u64::from(core.log().layout().parity_pages)),
            ("parity_moved_bytes", core.cleaner().reprotect().moved()),
            ("parity_pending", u64::from(core.checkpoints().parity_pending())),
            ("pages_rebuilt", core.log().store().pages().rebuilt_pages()),
            ("records_replayed", core.recovery().replayed().1),
            ("pages_replayed", core.recovery().replayed().0),
        ] {
            all.push((name.into(), value));
        }
        let beside = memory(&core);
        if !beside.is_empty() {
            all.push(("memory.folds".into(), core.checkpoints().written().1));
        }
        all.extend(beside.into_iter().map(|(name, value)| (format!("memory.{name}_bytes"), value)));
        all.extend(ram(&core).into_iter().map(|(name, value)| (format!("ram.{name}_bytes"), value)));
        all
    }

    fn settings(&self) -> Settings {
        let core = self.core.lock();
        let options = core.options();
        Settings {
            node_cache_bytes: Some(options.node_cache_bytes as u64),
            page_cache_bytes: Some(options.page_cache_bytes as u64),
            checkpoint_bytes: Some(core.checkpoints().bytes_between(core.log())),
            clean_ahead: Some(core.cleaner().ahead_segments(core.log()).into()),
            ..Settings::NONE
        }
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        segments(&self.core.lock())
    }

    fn inspection(&self) -> Inspection {
        let core = self.core.lock();
        let (_, bytes_written) = core.written();
        let counters = core.log().store().counters();
        Inspection {
            segments: segments(&core),
            wears: true,
            tags: counters.as_ref().map_or_else(Vec::new, |counters| tags(&core, counters)),
            virtual_nanoseconds: counters.as_ref().map_or(0, |counters| counters.virtual_nanoseconds),
            bytes_written,
            bytes_moved: core.log().moved_content(),
            segments_cleaned: core.cleaner().cleaned().segments,
            ram: ram(&core).into_iter().map(|(name, value)| (name.into(), value)).collect(),
            policies: [
                ("placement", core.checkpoints().policies().placement().name()),
                ("victim", core.checkpoints().policies().victim().name()),
                ("wear", core.checkpoints().policies().wear().name()),
            ]
            .map(|(what, name)| (what.into(), name.into()))
            .into(),
            costliest: core.log().costliest().objects(u64::from(core.log().layout().payload_bytes)),
        }
    }
}

/// The memory beside the flash by part; nothing without one.
fn memory(core: &Core) -> Vec<(&'static str, u64)> {
    let Some(used) = core.memory_use() else { return Vec::new() };
    Vec::from([
        ("anchors", used.anchor_bytes),
        ("buckets", used.bucket_bytes),
        ("elsewhere", used.elsewhere_bytes),
        ("pieces", used.piece_bytes),
        ("body", used.body_bytes),
        ("log", used.log_bytes),
        ("free", used.free_bytes),
    ])
}

/// RAM by part.
fn ram(core: &Core) -> [(&'static str, u64); 11] {
    [
        ("node_cache", core.index().entries().nodes().clean_bytes() as u64),
        ("dirty_node", core.index().dirty_bytes() as u64),
        ("page_cache", core.log().store().pages().kept_bytes() as u64),
        ("memory_index", core.index().entries().memory().map_or(0, Bpram::memory_bytes) as u64),
        ("segment_table", core.log().table().memory_bytes() as u64),
        ("open_segment", core.log().memory_bytes() as u64),
        ("costliest", core.log().costliest().memory_bytes() as u64),
        ("parity", core.log().store().parity_bytes() as u64),
        ("access_time", access_bytes(core.index(), core.log()) as u64),
        ("deferred_change", core.index().deferred_bytes() as u64),
        ("cleaner", core.cleaner().memory_bytes() as u64),
    ]
}

fn tags(core: &Core, counters: &onode_media::Counters) -> Vec<TagCounts> {
    let page_bytes = u64::from(core.log().layout().geometry.page_bytes);
    IoTag::ALL
        .into_iter()
        .map(|tag| {
            let one = counters.of(tag);
            TagCounts {
                tag: tag.name().into(),
                reads: one.reads,
                programs: one.programs,
                erases: one.erases,
                bytes_read: one.reads * page_bytes,
                bytes_programmed: one.programs * page_bytes,
            }
        })
        .collect()
}

fn segments(core: &Core) -> Vec<SegmentInfo> {
    let next_sequence = core.log().table().next_sequence();
    let of = |(segment, one): (u32, &Segment)| {
        let holds_nothing = one.live_bytes == 0;
        // An open segment belongs to its stream before anything on it is referred to.
        let has_stream = !holds_nothing || one.state == SegmentState::Open;
        SegmentInfo {
            segment,
            state: state(one.state),
            stream: if has_stream { one.stream.name().into() } else { String::new() },
            live_bytes: u64::from(one.live_bytes),
            capacity_bytes: core.log().layout().bytes_with(core.log().page(segment).parity),
            erases: one.erases,
            age: if has_stream { next_sequence.saturating_sub(one.sequence) } else { 0 },
        }
    };
    core.log().table().iter().map(of).collect()
}

const fn state(state: SegmentState) -> powers::SegmentState {
    match state {
        SegmentState::Free => powers::SegmentState::Free,
        SegmentState::Held => powers::SegmentState::Held,
        SegmentState::Open => powers::SegmentState::Open,
        SegmentState::Full | SegmentState::Failing => powers::SegmentState::Full,
        SegmentState::Bad => powers::SegmentState::Bad,
    }
}
