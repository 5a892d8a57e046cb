//! What an open device begins with: parts made from nothing, or anew from the log.
//!
//! Whatever was found missing is either consented to or refused before anything changes that a
//! second attempt would need. It can be cut anywhere.

use crate::device::options::FormatOptions;
use crate::index::tree::Tree;
use crate::log::losses::Losses;
use crate::log::room::{KEPT_SEGMENTS, spare_segments};
use crate::log::{Log, Shape, Start, mark};
use crate::medium::errors::{damaged, from_media, no_space};
use crate::medium::format::{FEATURE_COPY, FEATURE_EXCLUSIVE, SUPERBLOCKS, Superblock, copy_at, salt_of};
use crate::medium::superblocks::{FoundSuperblock, find_superblock, slot_of, store_copy, store_superblock};
use crate::recover::{Recovered, Terms, claim, recover};
use crate::space::allocator::reconcile::Named;
use crate::space::{Blocks, blocks_of_superblock};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::{ObjectId, Result};
use std::sync::Arc;

/// What is true of a device that was just opened.
pub(crate) struct Opened {
    pub superblock: Superblock,
    pub tree: Tree,
    pub objects: u64,
    pub log: Log,
    pub losses: Losses,
}

/// What never changes of the log that a superblock is of.
fn shape_of(superblock: &Superblock) -> Shape {
    Shape {
        salt: salt_of(&superblock.uuid),
        segment_bytes: u64::from(superblock.chunk_bytes),
        device_bytes: superblock.length,
    }
}

const fn usual_chunk_bytes(length: u64) -> u32 {
    if length < 4 << 20 {
        4 << 10
    } else if length < 64 << 20 {
        16 << 10
    } else {
        64 << 10
    }
}

impl Opened {
    /// An empty device on `memory`; what was there is gone. Its blocks, too.
    pub(crate) fn empty<P: Pmem>(memory: &Arc<P>, options: &FormatOptions) -> Result<(Self, Blocks<P>)> {
        let &FormatOptions { uuid, chunk_bytes, exclusive, .. } = options;
        let length = memory.length();
        let superblock = Superblock {
            generation: 0,
            uuid,
            features: FEATURE_COPY | if exclusive { FEATURE_EXCLUSIVE } else { 0 },
            length,
            made_length: length,
            chunk_bytes: chunk_bytes.unwrap_or(usual_chunk_bytes(length)),
            closed: false,
            session: 1,
            tail: 0,
            tail_sequence: 1,
            next_id: ObjectId::FIRST_FREE.0,
            accepted: 0,
        };
        let blocks = blocks_of_superblock(memory, &superblock)?;
        for slot in SUPERBLOCKS.into_iter().chain([copy_at(length)]) {
            memory.write_through(slot, &[0; Superblock::BYTES]);
        }
        mark::clear(&**memory);
        memory.fence().map_err(|error| from_media("making the device", &error))?;
        blocks.reset();
        let shape = shape_of(&superblock);
        let mut spare = spare_segments(&blocks, shape.segment_bytes, KEPT_SEGMENTS + 2);
        let tree = Tree::new(&**memory, &blocks)?;
        let first = spare.pop(&**memory).unwrap_or_default();
        if spare.len() < KEPT_SEGMENTS + 1 {
            return Err(no_space("the memory is too small for a log"));
        }
        let start = Start { session: 1, tail_sequence: 1, segments: &[], first, sequence: 1, live_bytes: 0 };
        let log = Log::start(&**memory, shape, &start, spare);
        let log = log.ok_or_else(|| no_space("the memory is too small for a log"))?;
        memory.fence().map_err(|error| from_media("making the device", &error))?;
        Ok((Self { superblock, tree, objects: 0, log, losses: Losses::default() }, blocks))
    }

    /// A device that other processes use: all else is in what they tell each other.
    pub(crate) fn shared<P: Pmem>(memory: &Arc<P>) -> Result<(Self, Blocks<P>)> {
        let superblock = find_superblock(&**memory)?.superblock;
        let blocks = blocks_of_superblock(memory, &superblock)?;
        let log = Log::nowhere(shape_of(&superblock));
        Ok((Self { superblock, tree: Tree::default(), objects: 0, log, losses: Losses::default() }, blocks))
    }

    /// The device on `memory`, which nobody uses.
    pub(crate) fn alone<P: Pmem>(memory: &Arc<P>, terms: Terms) -> Result<(Self, Blocks<P>)> {
        let mut found = find_superblock(&**memory)?;
        let superblock = &mut found.superblock;
        let mut blocks = blocks_of_superblock(memory, superblock)?;
        if !terms.read_only && superblock.length < memory.length() {
            // What is added is free, and what is there stays where it is. Less than the tables need
            // is no gain.
            let grown = Superblock { length: memory.length(), ..*superblock };
            let longer = blocks_of_superblock(memory, &grown)?;
            if longer.capacity_bytes() > blocks.capacity_bytes() {
                (*superblock, blocks) = (grown, longer);
            }
        }
        let chunk = u64::from(superblock.chunk_bytes);
        let opened = Self::of_log(memory, &blocks, found, terms, |recovered, next| {
            if !recovered.scan.losses.is_loss() {
                blocks.reset();
                let Err(why) = claim(&blocks, recovered, next, chunk) else { return Ok(()) };
                // A segment of the log lies in a block of an object, say: one of both is not where
                // it was.
                recovered.scan.losses.note(why.detail);
            }
            recovered.resolve_owners(&blocks, next, chunk);
            if !terms.accept_loss {
                return Err(std::mem::take(&mut recovered.scan.losses).error());
            }
            blocks.reset();
            claim(&blocks, recovered, next, chunk)
        })?;
        Ok((opened, blocks))
    }

    /// The device that a process left in the middle of a change when it died, for those that use it
    /// still: what they have allocated stays theirs. Live processes have reserved ids below
    /// `next_id`, which are in no log.
    pub(crate) fn after_death<P: Pmem>(memory: &Arc<P>, blocks: &Blocks<P>, next_id: u64) -> Result<Self> {
        let mut found = find_superblock(&**memory)?;
        found.superblock.next_id = found.superblock.next_id.max(next_id);
        let chunk = u64::from(found.superblock.chunk_bytes);
        let terms = Terms { read_only: false, accept_loss: false };
        Self::of_log(memory, blocks, found, terms, |recovered, next| {
            let mut named: Vec<Named> = recovered.scan.segments.iter().map(|(address, _)| (*address, chunk)).collect();
            named.extend((next != 0).then_some((next, chunk)));
            named.extend(recovered.mapped.iter().map(|mapped| (mapped.address, mapped.length)));
            named.sort_unstable();
            blocks.reconcile(&named).map_err(|(at, why)| damaged(format!("the block at byte {at}: {why:?}")))
        })
    }

    /// Reads the log and opens a segment of a session of its own. `claim` gets the blocks that the
    /// log names.
    fn of_log<P: Pmem>(
        memory: &Arc<P>,
        blocks: &Blocks<P>,
        found: FoundSuperblock,
        terms: Terms,
        claim: impl FnOnce(&mut Recovered, u64) -> Result<()>,
    ) -> Result<Self> {
        let FoundSuperblock { mut superblock, damaged } = found;
        let mut recovered = recover(&**memory, &superblock, blocks.area(), terms)?;
        recovered.scan.losses.note_all_mended(damaged.iter().copied());
        let mut next = recovered.scan.segments.last().map_or(0, |(_, head)| head.next);
        if recovered.scan.segments.iter().any(|(address, _)| *address == next) {
            // One that is not where it was has taken its place.
            next = 0;
        }
        // Where the superblock is an older one the log knows of a later session.
        let session = recovered.scan.segments.iter().map(|(_, head)| head.session).max().unwrap_or(0);
        superblock.session = superblock.session.max(session) + u64::from(!is_planted(Bug::ScmSessionNotCounted));
        superblock.next_id = recovered.next_id;
        let is_known = recovered.scan.losses.is_loss();
        if is_known {
            recovered.scan.join_segments(&mut superblock);
        }
        if !terms.read_only {
            // What the last records stand for is there now and need not stay as it is. Whatever is
            // written from here on, be it a node of the index, may take its place.
            superblock.closed = false;
            superblock.accepted = recovered.scan.end();
            let fence = || memory.fence().map_err(|error| from_media("recovering", &error));
            if damaged.is_empty() {
                superblock.generation += 1;
                store_superblock(&**memory, &superblock);
                store_copy(&**memory, &superblock);
                fence()?;
            } else {
                // What counts may be the copy. The damaged one is written first, and the copy when
                // both are durable, so that at every moment one of the three is sound.
                if !damaged.contains(&slot_of(superblock.generation + 1)) {
                    superblock.generation += 1;
                }
                for _ in 0..2 {
                    superblock.generation += 1;
                    store_superblock(&**memory, &superblock);
                    fence()?;
                }
                store_copy(&**memory, &superblock);
                fence()?;
            }
        }
        claim(&mut recovered, next)?;
        if !is_known && recovered.scan.losses.is_loss() {
            recovered.scan.join_segments(&mut superblock);
        }
        let shape = shape_of(&superblock);
        if next == 0 {
            // The head that named it is damaged.
            next = blocks.allocate(shape.segment_bytes).ok_or_else(|| no_space("no room is left for the log"))?;
            recovered.scan.follow_with(next);
        }
        recovered.scan.write_heads(&**memory, shape.salt);
        let (mut objects, mut live_bytes) = (0, 0);
        let tree = Tree::build(&**memory, blocks, |add| {
            (objects, live_bytes) = recovered.events.each_entry(add)?;
            Ok(())
        })?;
        let spare = spare_segments(blocks, shape.segment_bytes, KEPT_SEGMENTS + 1);
        let segments: Vec<u64> = recovered.scan.segments.iter().map(|(address, _)| *address).collect();
        let start = Start {
            session: superblock.session,
            tail_sequence: superblock.tail_sequence,
            segments: &segments,
            first: next,
            sequence: recovered.scan.end(),
            live_bytes,
        };
        let log = Log::start(&**memory, shape, &start, spare);
        let log = log.ok_or_else(|| no_space("no room is left for the log"))?;
        Ok(Self { superblock, tree, objects, log, losses: recovered.scan.losses })
    }
}
