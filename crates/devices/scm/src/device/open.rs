//! Opening a device: made anew, after whatever happened to it, or beside the processes that use it
//! already.

use crate::commit::doubt::Doubted;
use crate::commit::mode::{Mode, Unflushed};
use crate::core::{Blocks, Core, Counters, KEPT_SEGMENTS, store_copy, store_superblock};
use crate::device::{FormatOptions, MountOptions, ScmDevice};
use crate::index::known::Known;
use crate::index::tree::Tree;
use crate::log::mark;
use crate::log::{Log, Start};
use crate::medium::errors::{damaged, from_media, no_space};
use crate::medium::format::{AREA_START, FEATURE_COPY, SMALLEST_BYTES, SUPERBLOCKS, Superblock, copy_at, salt_of};
use crate::medium::superblocks::{FoundSuperblock, find_superblock};
use crate::recover::loss::Losses;
use crate::recover::{Recovered, Terms, claim, recover};
use crate::share::shared::Words;
use crate::share::turn::Turn;
use crate::space::allocator::reconcile::Named;
use crate::space::allocator::{Allocator, Process};
use crate::space::held::HeldBlocks;
use crate::space::stack::Stack;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::Mutex;
use onode_media::Pmem;
use onode_object::{Error, ObjectId, Result};
use std::sync::Arc;

const fn usual_chunk_bytes(length: u64) -> u32 {
    if length < 4 << 20 {
        4 << 10
    } else if length < 64 << 20 {
        16 << 10
    } else {
        64 << 10
    }
}

/// Bytes of the blocks and their tables on a memory of `length`.
const fn area_bytes(length: u64, chunk: u64, features: u64) -> u64 {
    let end = if features & FEATURE_COPY == 0 { length } else { copy_at(length) };
    end.saturating_sub(AREA_START) / chunk * chunk
}

fn blocks_of<P: Pmem>(
    memory: &Arc<P>,
    made_length: u64,
    length: u64,
    chunk_bytes: u32,
    features: u64,
) -> Result<Blocks<P>> {
    let chunk = u64::from(chunk_bytes);
    if !chunk_bytes.is_power_of_two() || !(4096..=65536).contains(&chunk_bytes) || length < SMALLEST_BYTES {
        let detail = format!("a memory of {length} bytes with chunks of {chunk_bytes}");
        return Err(Error::new(ErrorKind::Invalid, detail));
    }
    let [made_bytes, bytes] = [made_length, length].map(|length| area_bytes(length, chunk, features));
    let blocks = Allocator::attach_grown(Arc::clone(memory), AREA_START, made_bytes, bytes, chunk);
    blocks.map_err(|error| from_media("blocks", &error))
}

pub(crate) fn blocks_of_superblock<P: Pmem>(memory: &Arc<P>, superblock: &Superblock) -> Result<Blocks<P>> {
    blocks_of(memory, superblock.made_length, superblock.length, superblock.chunk_bytes, superblock.features)
}

/// What is true of a log that was just opened.
struct Opened {
    tree: Tree,
    log: Log,
    superblock: Superblock,
    objects: u64,
    live_log_bytes: u64,
    losses: Losses,
}

impl<P: Pmem> ScmDevice<P> {
    /// Makes an empty device on `memory`; what was there is gone.
    ///
    /// # Errors
    /// `Invalid` for a memory that is too small; `Media`.
    pub fn format(memory: P, options: &FormatOptions) -> Result<Self> {
        let memory = Arc::new(memory);
        let length = memory.length();
        let chunk_bytes = options.chunk_bytes.unwrap_or(usual_chunk_bytes(length));
        let blocks = blocks_of(&memory, length, length, chunk_bytes, FEATURE_COPY)?;
        for slot in SUPERBLOCKS.into_iter().chain([copy_at(length)]) {
            memory.write_through(slot, &[0; Superblock::BYTES]);
        }
        mark::clear(&*memory);
        memory.fence().map_err(|error| from_media("making the device", &error))?;
        blocks.reset();
        let chunk = u64::from(chunk_bytes);
        let mut spare = store_segments(&*memory, &blocks, chunk, KEPT_SEGMENTS + 2);
        let tree = Tree::new(&*memory, &blocks)?;
        let superblock = Superblock {
            generation: 0,
            uuid: options.uuid,
            features: FEATURE_COPY,
            length,
            made_length: length,
            chunk_bytes,
            closed: false,
            session: 1,
            tail: 0,
            tail_sequence: 1,
            next_id: ObjectId::FIRST_FREE.0,
            accepted: 0,
        };
        let first = spare.pop(&*memory).unwrap_or_default();
        if spare.len() < KEPT_SEGMENTS + 1 {
            return Err(no_space("the memory is too small for a log"));
        }
        let start = Start {
            salt: salt_of(&options.uuid),
            session: 1,
            segment_bytes: chunk,
            tail_sequence: 1,
            first,
            sequence: 1,
        };
        let log = Log::start(&*memory, &start, &[], spare);
        let log = log.ok_or_else(|| no_space("the memory is too small for a log"))?;
        memory.fence().map_err(|error| from_media("making the device", &error))?;
        let losses = Losses::default();
        let opened = Opened { tree, log, superblock, objects: 0, live_log_bytes: 0, losses };
        let mut core = Core::new(memory, blocks, opened);
        core.mode = options.mode;
        core.write_superblock(false)?;
        store_copy(&*core.memory, &core.superblock);
        core.write_superblock(false)?;
        core.ready()
    }

    /// Opens the device on `memory`, after whatever happened to it. Nobody else may use it until
    /// this returns. If the memory is longer than it was, so is the device from now on; a read-only
    /// mount leaves that to the next.
    ///
    /// # Errors
    /// `Invalid` if there is none, `NotSupported` for one of a newer format; `Corrupt` if what it
    /// needs is damaged; `Media`.
    pub fn mount(memory: P, options: &MountOptions) -> Result<Self> {
        let memory = Arc::new(memory);
        let mut found = find_superblock(&*memory)?;
        let superblock = &mut found.superblock;
        let mut blocks = blocks_of_superblock(&memory, superblock)?;
        if !options.read_only && superblock.length < memory.length() {
            // What is added is free, and what is there stays where it is. Less than the tables need
            // is no gain.
            let Superblock { made_length, chunk_bytes, features, .. } = *superblock;
            let longer = blocks_of(&memory, made_length, memory.length(), chunk_bytes, features)?;
            if longer.capacity_bytes() > blocks.capacity_bytes() {
                superblock.length = memory.length();
                blocks = longer;
            }
        }
        let chunk = u64::from(superblock.chunk_bytes);
        let terms = Terms { read_only: options.read_only, accept_loss: options.accept_loss };
        let opened = Opened::of_log(&memory, &blocks, found, terms, 0, |recovered, next| {
            if !recovered.scan.losses.is_loss() {
                blocks.reset();
                let Err(why) = claim(&blocks, recovered, next, chunk) else { return Ok(()) };
                // A segment of the log lies in a block of an object, say: one of both is not where
                // it was.
                recovered.scan.losses.note(why.detail);
            }
            recovered.settle_owners(&blocks, next, chunk);
            if !terms.accept_loss {
                return Err(std::mem::take(&mut recovered.scan.losses).error());
            }
            blocks.reset();
            claim(&blocks, recovered, next, chunk)
        })?;
        let mut core = Core::new(memory, blocks, opened);
        core.mode = options.mode;
        if options.read_only {
            core.read_only = Some("it is mounted read-only".to_owned());
        } else {
            core.say_all_again()?;
            core.make_log_room()?;
        }
        core.ready()
    }

    /// Uses the device on `memory` together with the processes that do so already: it was mounted
    /// since the host was started, and somebody who joined has not closed it yet.
    ///
    /// # Errors
    /// As [`mount`](Self::mount); `Busy` if too many processes use it.
    pub fn attach(
        memory: P,
        options: &MountOptions,
        process: Process,
        is_dead: impl Fn(Process) -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let memory = Arc::new(memory);
        let superblock = find_superblock(&*memory)?.superblock;
        let blocks = blocks_of_superblock(&memory, &superblock)?;
        let opened = Opened {
            losses: Losses::default(),
            tree: Tree::default(),
            log: Log::nowhere(salt_of(&superblock.uuid), u64::from(superblock.chunk_bytes)),
            superblock,
            objects: 0,
            live_log_bytes: 0,
        };
        let mut core = Core::new(Arc::clone(&memory), blocks, opened);
        core.mode = options.mode;
        let mut device = Self::of(core)?;
        device.join(process, is_dead)?;
        Ok(device)
    }

    fn of(core: Core<P>) -> Result<Self> {
        let memory = Arc::clone(&core.memory);
        let members = blocks_of_superblock(&memory, &core.superblock)?;
        let (mode, domain, chunk_bytes) = (core.mode, memory.domain().name(), core.chunk_bytes());
        let turn = Turn::new(Arc::clone(&memory), members);
        Ok(Self { turn, core: Mutex::new(core), memory, mode, domain, chunk_bytes })
    }

    /// Lets other processes use the device at the same time, from the moment that they may open the
    /// memory: this one is known by `process`, and `is_dead` judges the others. Frees what dead
    /// ones have left.
    ///
    /// # Errors
    /// `Busy` if too many processes use it.
    pub fn join(&mut self, process: Process, is_dead: impl Fn(Process) -> bool + Send + Sync + 'static) -> Result<()> {
        if self.turn.members.join(process, is_dead).is_none() {
            return Err(Error::new(ErrorKind::Busy, "too many processes use the memory"));
        }
        self.core.get_mut().blocks.follow(&self.turn.members, true);
        let mut core = self.lock();
        core.sweep_dead();
        // Somebody uses it.
        core.check_writable().and_then(|()| core.write_superblock(false))
    }
}

impl<P: Pmem> Drop for ScmDevice<P> {
    fn drop(&mut self) {
        if self.turn.members.member() != 0 {
            let broken = self.turn.take();
            // Nothing that is shared can be believed of a memory that is gone, nor is anything of
            // it left to anybody.
            if self.memory.failure().is_none() {
                self.core.get_mut().arrive(broken);
                self.turn.members.leave();
                self.core.get_mut().leave_words();
            }
            self.turn.give_back();
        }
    }
}

impl<P: Pmem> Core<P> {
    fn new(memory: Arc<P>, blocks: Blocks<P>, opened: Opened) -> Self {
        let Opened { tree, log, superblock, objects, live_log_bytes, losses } = opened;
        Self {
            memory,
            blocks,
            tree,
            log,
            superblock,
            held: HeldBlocks::default(),
            doubted: Doubted::default(),
            last_shrink: 0,
            last_put_and_shrink: 0,
            live_log_bytes,
            scratch: None,
            mode: Mode::default(),
            unflushed: Unflushed::default(),
            last_put: 0,
            next_id: superblock.next_id,
            known: Known::below(superblock.next_id),
            objects,
            commits: 0,
            recoveries: 0,
            failures: 0,
            left: Words::default(),
            changes: 0,
            others_commits: 0,
            has_foreign: false,
            read_only: None,
            losses,
            salvages: false,
            counters: Counters::default(),
        }
    }

    /// The device, when nobody else uses the memory.
    fn ready(mut self) -> Result<ScmDevice<P>> {
        Turn::reset(&*self.memory);
        self.leave_first_words();
        ScmDevice::of(self)
    }

    /// What to know at the beginning of a turn.
    #[inline]
    pub(crate) fn arrive(&mut self, broken: bool) {
        if broken {
            self.take_over();
        } else if self.memory.load(crate::share::shared::CHANGES) != self.changes {
            self.take_words();
        }
    }

    /// Whoever had the turn before died: blocks, index and words are made anew from the log.
    #[cold]
    fn take_over(&mut self) {
        self.take_words();
        if self.read_only.is_some() {
            return;
        }
        // What the dead one flushed may not be durable yet.
        self.has_foreign = true;
        if let Err(error) = self.rebuild() {
            self.fail(error);
        }
        self.leave_words();
    }

    fn rebuild(&mut self) -> Result<()> {
        let found = find_superblock(&*self.memory)?;
        let chunk = u64::from(found.superblock.chunk_bytes);
        if std::mem::take(&mut self.has_foreign) {
            self.memory.flush(0, self.memory.length());
        }
        let blocks = &self.blocks;
        // Ids that live processes have reserved are in no log.
        let next_id = self.next_id.max(Words::next_id(&*self.memory));
        let terms = Terms { read_only: false, accept_loss: false };
        let opened = Opened::of_log(&self.memory, blocks, found, terms, next_id, |recovered, next| {
            let mut named: Vec<Named> = recovered.scan.segments.iter().map(|(address, _)| (*address, chunk)).collect();
            named.extend((next != 0).then_some((next, chunk)));
            named.extend(recovered.mapped.iter().map(|mapped| (mapped.address, mapped.length)));
            named.sort_unstable();
            blocks.reconcile(&named).map_err(|(at, why)| damaged(format!("the block at byte {at}: {why:?}")))
        })?;
        let Opened { tree, log, superblock, objects, live_log_bytes, .. } = opened;
        (self.tree, self.log, self.superblock) = (tree, log, superblock);
        (self.objects, self.live_log_bytes, self.next_id) = (objects, live_log_bytes, superblock.next_id);
        self.known = Known::below(self.next_id);
        self.held.first = self.held.last;
        self.doubted.follow(&*self.memory, self.doubted.last, self.doubted.last);
        (self.last_shrink, self.last_put_and_shrink) = (0, 0);
        self.recoveries += 1;
        self.commits += 1;
        self.others_commits += 1;
        self.sweep_dead();
        self.make_log_room()
    }

    /// Frees what dead processes have left.
    pub(crate) fn sweep_dead(&self) -> usize {
        self.blocks.sweep_dead()
    }
}

impl Opened {
    /// Reads the log and opens a segment of a session of its own. `claim` gets the blocks that the
    /// log names.
    fn of_log<P: Pmem>(
        memory: &Arc<P>,
        blocks: &Blocks<P>,
        found: FoundSuperblock,
        terms: Terms,
        next_id: u64,
        claim: impl FnOnce(&mut Recovered, u64) -> Result<()>,
    ) -> Result<Self> {
        let FoundSuperblock { mut superblock, damaged } = found;
        let chunk = u64::from(superblock.chunk_bytes);
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
        superblock.next_id = recovered.next_id.max(next_id);
        let is_known = recovered.scan.losses.is_loss();
        if is_known {
            recovered.scan.join_segments(&mut superblock);
        }
        if !terms.read_only {
            // What the last records stand for is there now and need not stay as it is. Whatever is
            // written from here on, be it a node of the index, may take its place.
            superblock.closed = false;
            superblock.accepted = recovered.scan.end();
            for _ in 0..if damaged.is_empty() { 1 } else { 2 } {
                superblock.generation += 1;
                store_superblock(&**memory, &superblock);
                store_copy(&**memory, &superblock);
                memory.fence().map_err(|error| from_media("recovering", &error))?;
            }
        }
        claim(&mut recovered, next)?;
        if !is_known && recovered.scan.losses.is_loss() {
            recovered.scan.join_segments(&mut superblock);
        }
        if next == 0 {
            // The head that named it is damaged.
            next = blocks.allocate(chunk).ok_or_else(|| no_space("no room is left for the log"))?;
            recovered.scan.follow_with(next);
        }
        recovered.scan.write_heads(&**memory, salt_of(&superblock.uuid));
        let start = Start {
            salt: salt_of(&superblock.uuid),
            session: superblock.session,
            segment_bytes: chunk,
            tail_sequence: superblock.tail_sequence,
            first: next,
            sequence: recovered.scan.end(),
        };
        let (mut objects, mut live_log_bytes) = (0, 0);
        let tree = Tree::build(&**memory, blocks, |add| {
            (objects, live_log_bytes) = recovered.events.each_entry(add)?;
            Ok(())
        })?;
        let spare = store_segments(&**memory, blocks, chunk, KEPT_SEGMENTS + 1);
        let segments: Vec<u64> = recovered.scan.segments.iter().map(|(address, _)| *address).collect();
        let log = Log::start(&**memory, &start, &segments, spare);
        let log = log.ok_or_else(|| no_space("no room is left for the log"))?;
        let losses = recovered.scan.losses;
        Ok(Self { tree, log, superblock, objects, live_log_bytes, losses })
    }
}

/// Segments for the log, at most `wanted`, as many as there is room for.
fn store_segments<P: Pmem>(memory: &P, blocks: &Blocks<P>, chunk: u64, wanted: usize) -> Stack {
    let mut spare = Stack::default();
    while spare.len() < wanted {
        let Some(address) = blocks.allocate(chunk) else { break };
        spare.push(memory, address);
    }
    spare
}
