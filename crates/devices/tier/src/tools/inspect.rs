//! A look inside: figures since the mount, block groups as segments, memory.

use crate::device::TierDevice;
use crate::medium::layout::{BLOCK, GROUP_BLOCKS};
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_media::{BlockDev, IoTag};
use onode_object::Settings;
use onode_object::powers::{Inspect, Inspection, SegmentInfo, SegmentState, TagCounts};

const NANOSECONDS: u64 = 1_000_000_000;

impl Inspect for TierDevice {
    fn settings(&self) -> Settings {
        let core = self.volume.core.lock();
        let (options, fast) = (core.options(), &core.options().fast);
        Settings {
            node_cache_bytes: Some(options.node_cache_bytes),
            fast_daily_bytes: fast.daily_bytes,
            fast_sequential_bytes: Some(fast.sequential_bytes),
            fast_collect_seconds: Some(fast.collect_nanoseconds / NANOSECONDS),
            fast_admit: Some(u64::from(fast.admit)),
            ..Settings::NONE
        }
    }

    fn counters(&self) -> Vec<(String, u64)> {
        let core = self.volume.core.lock();
        let (log, content, mount) = (core.commits().figures(), core.buffers().figures(), core.recovery().figures());
        let own = [
            ("bytes_written", content.bytes_written),
            ("checkpoints", core.checkpoints().count()),
            ("log.records", log.records),
            ("log.transactions", log.transactions),
            ("log.bytes", log.bytes),
            ("log.transactions_replayed", mount.replayed),
            ("log.recovered_from_fast", mount.recovered_from_fast),
            ("log.dropped_of_fast", mount.records_dropped),
            ("disks_lying", mount.lies),
            ("big.blocks_read", content.blocks_read),
            ("fast.blocks_read", content.blocks_read_fast),
            ("big.blocks_damaged", content.damaged_blocks),
            ("big.blocks_repaired", content.repaired_blocks),
            ("blocks_never_written", content.blocks_never_written),
            ("big.blocks_pending", core.buffers().pending().count()),
            ("big.blocks_free", core.space().free()),
            ("big.blocks_held", core.space().held()),
            ("big.discards", core.space().discarded().0),
            ("big.blocks_discarded", core.space().discarded().1),
            ("tree.nodes", core.index().counts().nodes),
            ("tree.nodes_changed", core.index().counts().dirty),
            ("tree.nodes_repaired", core.index().repaired_nodes()),
        ];
        let mut all: Vec<(String, u64)> = own.iter().map(|(name, count)| ((*name).to_string(), *count)).collect();
        let disks = Arc::clone(core.disks());
        // Nobody waits for the lock of the state meanwhile.
        drop(core);
        if let Some(counts) = disks.big.lock().counters() {
            let total = counts.total();
            for (name, count) in
                [("big.reads", total.reads), ("big.writes", total.writes), ("big.flushes", counts.flushes)]
            {
                all.push((name.to_string(), count));
            }
        }
        if let Some(fast) = disks.fast.lock().get() {
            all.extend(fast.counters());
        }
        all
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        let core = self.volume.core.lock();
        let layout = core.index().layout();
        let groups = layout.blocks.div_ceil(GROUP_BLOCKS);
        (0..groups)
            .map(|group| {
                let first = (group * GROUP_BLOCKS).max(layout.first_free().min(layout.blocks));
                let end = ((group + 1) * GROUP_BLOCKS).min(layout.blocks);
                let free = core.space().count_free(first, end);
                let blocks = end.saturating_sub(first);
                SegmentInfo {
                    segment: group as u32,
                    state: match free {
                        0 => SegmentState::Full,
                        _ if free == blocks => SegmentState::Free,
                        _ => SegmentState::Open,
                    },
                    stream: if free == blocks { String::new() } else { "big".to_string() },
                    live_bytes: blocks.saturating_sub(free) * BLOCK,
                    capacity_bytes: blocks * BLOCK,
                    erases: 0,
                    age: 0,
                }
            })
            .collect()
    }

    fn inspection(&self) -> Inspection {
        let segments = self.segments();
        let disks = Arc::clone(self.volume.core.lock().disks());
        let counts = disks.big.lock().counters().unwrap_or_default();
        let core = self.volume.core.lock();
        let tags = IoTag::ALL.into_iter().map(|tag| {
            let of = counts.of(tag);
            TagCounts {
                tag: tag.name().to_string(),
                reads: of.reads,
                programs: of.writes,
                erases: 0,
                bytes_read: of.bytes_read,
                bytes_programmed: of.bytes_written,
            }
        });
        let ram = [
            ("bitmap", core.space().ram_bytes()),
            ("tree_nodes", core.index().counts().cached * BLOCK),
            ("tree_nodes_read_ahead", core.index().ahead_bytes()),
            ("pending_content", core.buffers().pending().bytes() + core.disks().waiting.lock().bytes()),
            ("last_blocks_of_files", core.buffers().tail_bytes()),
            ("log_to_be_written", core.commits().group().payload().len() as u64),
        ];
        Inspection {
            segments,
            tags: tags.collect(),
            virtual_nanoseconds: counts.virtual_nanoseconds,
            bytes_written: core.buffers().figures().bytes_written,
            ram: ram.iter().map(|(name, bytes)| ((*name).to_string(), *bytes)).collect(),
            ..Inspection::default()
        }
    }
}
