//! What a walk under the lock of the state lacks is read without that lock.
//!
//! A walk that comes to a node, or a change to a block of content, that is not in memory does not
//! wait for the disk: it ends, says what it lacks, and begins anew when that was read. What it has
//! read before stays in memory, so it comes further each time. Nothing is changed before all is
//! there that the change needs.
//!
//! What it keeps true: what was read counts only with the checksum that the walk wants. Damage is
//! told of only by who reads under the lock, where nothing moves.

use crate::commit::Volume;
use crate::content::buffers::Prefetched;
use crate::content::plan::{ReadPlan, Source, StoredBlocks};
use crate::core::Core;
use crate::disks::Disks;
use crate::index::ahead::NodeMiss;
use crate::medium::layout::BLOCK_BYTES;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use onode_object::Result;

/// Walks of one request that end for want of something; then it goes on under the lock. Others may
/// drop from memory what it read, for ever.
const MOST_MISSES: u32 = 4096;

/// What is lacking.
pub enum Miss {
    /// Nodes of the tree.
    Nodes(NodeMiss),
    /// Content of a block that is changed in part. It is pinned.
    Content(ReadPlan),
}

/// What was read of it.
enum Read {
    Nodes(NodeMiss, Option<Vec<u8>>),
    Content(ReadPlan, Result<StoredBlocks>),
}

impl Miss {
    /// What the walk that ended was lacking; `None` if it was something else that ended it.
    fn of(core: &mut Core) -> Option<Self> {
        let content = core.take_content_miss().map(Self::Content);
        core.index_mut().take_miss().map(Self::Nodes).or(content)
    }

    fn read(self, disks: &Disks, copies: bool) -> Read {
        match self {
            Self::Nodes(miss) => {
                if let Some(bytes) = disks.copy_of_node(miss.block, miss.crc) {
                    return Read::Nodes(NodeMiss { count: 1, ..miss }, Some(bytes));
                }
                let mut bytes = vec![0; miss.count as usize * BLOCK_BYTES];
                let is_read = disks.read(miss.block, &mut bytes, miss.tag).is_ok();
                if let Some(node) = bytes.get(..BLOCK_BYTES).filter(|_| is_read && copies) {
                    disks.consider_node(miss.block, miss.crc, node);
                }
                Read::Nodes(miss, is_read.then_some(bytes))
            }
            Self::Content(mut plan) => {
                let found = disks.fetch(&mut plan.wanted, Source::Any);
                let found = found.and_then(|found| {
                    if copies && found.unsound.is_empty() {
                        disks.consider(plan.object, plan.class, &plan.wanted, &found.from_big)?;
                    }
                    Ok(found)
                });
                Read::Content(plan, found)
            }
        }
    }
}

impl Read {
    /// Hands over what was read; false if it is not what it should be.
    fn give(self, core: &mut Core, given: &mut Prefetched) -> bool {
        match self {
            Self::Nodes(miss, bytes) => {
                core.index_mut().give(miss, bytes);
                true
            }
            Self::Content(plan, found) => {
                core.unpin(&plan);
                let Ok(found) = found else { return false };
                if !found.unsound.is_empty() {
                    return false;
                }
                core.count_read(&found);
                for it in plan.wanted {
                    let blocks = (it.extent.block..).zip(it.bytes.chunks(BLOCK_BYTES));
                    given.extend(blocks.map(|(block, bytes)| ((block, it.extent.born), bytes.to_vec())));
                }
                true
            }
        }
    }
}

impl Volume {
    /// Does something under the lock of the state that can be begun anew as long as it fails. It
    /// gets the blocks that were read for it.
    ///
    /// # Errors
    /// Those of `act`.
    pub fn look<T>(&self, mut act: impl FnMut(&mut Core, &Prefetched) -> Result<T>) -> Result<T> {
        let mut given = Prefetched::new();
        let mut core = self.core.lock();
        core.shed_nodes();
        for _ in 0..MOST_MISSES {
            core.index_mut().set_can_miss(true);
            let done = act(&mut core, &given);
            core.index_mut().set_can_miss(false);
            let Some(miss) = Miss::of(&mut core) else { return done.map_err(|error| core.fail_if_bug(error)) };
            let (disks, copies) = (Arc::clone(core.disks()), !core.latch().is_read_only());
            drop(core);
            let read = miss.read(&disks, copies);
            core = self.core.lock();
            if !read.give(&mut core, &mut given) {
                break;
            }
        }
        let done = act(&mut core, &given);
        done.map_err(|error| core.fail_if_bug(error))
    }
}
