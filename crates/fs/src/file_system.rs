//! The mounted file system: mount, unmount, the calls that concern the whole volume, and the few
//! helpers every other module stands on.
//!
//! One lock guards the memory ([`State`]); file content is read and syncs are waited for without
//! it. Every change is one transaction: the new inodes are computed, committed, and only then taken
//! into memory, so a refused commit leaves nothing to undo.

use crate::error::{Error, Result};
use crate::inodes::access;
use crate::inodes::inode::Inode;
use crate::inodes::{Found, Inodes};
use crate::limits::{MARGIN_BYTES, NAME_BYTES_MAX};
use crate::names::slots::{NameHash, Slots};
use crate::options::{Options, WriteMode};
use crate::state::{Node, State};
use crate::types::{Attributes, FileType, InodeNumber, StatFs, Statistics};
use crate::volume::VolumeInfo;
use crate::volume::scrub::state::ScrubState;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::{Mutex, rank};
use onode_base::{Clock, ErrorKind, Timestamp};
use onode_object::{
    AttributeKey, AttributeKind, Demand, Durability, Hints, Maintenance, Mutation, ObjectDevice, ObjectId, ObjectKind,
    ObjectStat, SyncScope, Transaction,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const IDS_AT_ONCE: u64 = 256;
pub(crate) const BLOCK_BYTES: u32 = 4096;
/// What one more file costs at least, for the number of files there could still be.
const LEAST_FILE_BYTES: u64 = 256;

/// Tells a number that is another one than the time before if others have changed something since.
pub(crate) type ChangesBelow = Box<dyn Fn() -> u64 + Send + Sync>;

/// A mounted file system. All methods may be called from many threads at once.
pub struct FileSystem {
    pub(crate) device: Arc<dyn ObjectDevice>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    pub(crate) volume: VolumeInfo,
    pub(crate) inodes: Inodes,
    pub(crate) hash: NameHash,
    pub(crate) transaction_bytes: usize,
    pub(crate) scrub: Mutex<ScrubState, rank::FileSystemScrub>,
    pub(crate) state: Mutex<State, rank::FileSystemState>,
    /// Of a view: how much of what it shows others have changed so far.
    pub(crate) changes_below: Option<ChangesBelow>,
    /// The device takes no changes any more, as far as was heard.
    device_read_only: AtomicBool,
}

impl std::fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSystem")
            .field("volume", &self.volume)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl FileSystem {
    /// Mounts the volume on `device` and removes files that had no name when it was last used.
    ///
    /// # Errors
    /// `Invalid` if there is no volume that this code understands; `ReadOnly` if the device or a
    /// feature of the volume allows only a read-only mount; the device's errors.
    pub fn mount(device: Arc<dyn ObjectDevice>, clock: Arc<dyn Clock>, options: Options) -> Result<Self> {
        let hash = NameHash::new(VolumeInfo::load(device.as_ref())?.hash_key);
        Self::mount_with_hash(device, clock, options, hash)
    }

    pub(crate) fn mount_with_hash(
        device: Arc<dyn ObjectDevice>,
        clock: Arc<dyn Clock>,
        options: Options,
        hash: NameHash,
    ) -> Result<Self> {
        let file_system = Self::assemble(device, clock, options, hash)?;
        // Files without names may be in use by others.
        let is_alone = file_system.device.share().is_none_or(|share| !share.has_others());
        if is_alone && !file_system.options.read_only && !is_planted(Bug::OrphansStay) {
            file_system.remove_orphans()?;
        }
        Ok(file_system)
    }

    /// A file system on a device whose files without names stay.
    pub(crate) fn assemble(
        device: Arc<dyn ObjectDevice>,
        clock: Arc<dyn Clock>,
        options: Options,
        hash: NameHash,
    ) -> Result<Self> {
        options.validate()?;
        let volume = VolumeInfo::load(device.as_ref())?;
        let info = device.info();
        if !options.read_only {
            if let Some(why) = info.read_only {
                return Err(Error::new(ErrorKind::ReadOnly, format!("mount it read-only: {why}")));
            }
            if volume.features.read_only_compatible != 0 {
                return Err(Error::new(ErrorKind::ReadOnly, "mount it read-only: the volume has newer features"));
            }
        }
        let state = Mutex::new(State::new(&options));
        let scrub = Mutex::new(ScrubState::default());
        let inodes = volume.inodes();
        let transaction_bytes = info.transaction_bytes.max(BLOCK_BYTES as usize);
        let device_read_only = AtomicBool::new(false);
        let file_system = Self {
            device,
            clock,
            options,
            volume,
            inodes,
            hash,
            transaction_bytes,
            scrub,
            state,
            changes_below: None,
            device_read_only,
        };
        file_system.node(&mut file_system.lock(), InodeNumber::ROOT)?;
        file_system.load_quotas(&mut file_system.lock())?;
        Ok(file_system)
    }

    /// Writes everything out and closes the device.
    ///
    /// # Errors
    /// The device's errors.
    pub fn unmount(&self) -> Result<()> {
        if !self.options.read_only {
            self.keep_scrub();
            self.leave_refused();
            self.sync()?;
        }
        self.device.close()?;
        Ok(())
    }

    /// Makes everything done so far durable.
    ///
    /// # Errors
    /// The device's errors.
    pub fn sync(&self) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        self.write_back_in_turn()?;
        let moves = {
            let state = &mut *self.lock();
            state.unsynced_since = None;
            state.directory_moves
        };
        let result = self.sync_everything(moves);
        if result.is_err() {
            self.lock().unsynced_since.get_or_insert(self.now());
        }
        result
    }

    /// Waits until everything is durable; `moves` were the renames of directories before.
    pub(crate) fn sync_everything(&self, moves: u64) -> Result<()> {
        self.heard(self.device.sync(SyncScope::All))?;
        let mut state = self.lock();
        state.directory_moves_synced = state.directory_moves_synced.max(moves);
        Ok(())
    }

    /// What the owner calls about once a second: makes durable what has waited for too long, in the
    /// cache or in the device's buffers.
    ///
    /// Errors are remembered and told by the next `fsync` or close of the files concerned.
    pub fn tick(&self) {
        if self.options.read_only {
            return;
        }
        self.look_whether_writable();
        self.remove_refused();
        self.list_unlisted();
        let now = self.clock.now();
        self.give_up_quota(now.seconds);
        let any_written = self.write_back_aged(now);
        let moves = {
            let state = &mut *self.lock();
            let waited = state.unsynced_since.is_some_and(|since| self.is_aged(since, now));
            if !any_written && !waited {
                return;
            }
            state.unsynced_since = None;
            state.directory_moves
        };
        if self.sync_everything(moves).is_err() {
            // The device stays as it is; the next tick and every fsync try again and tell.
            let mut state = self.lock();
            state.unsynced_since.get_or_insert(now);
            state.statistics.write_back_errors += 1;
        }
    }

    /// Whether something has waited for as long as the mount allows.
    pub(crate) fn is_aged(&self, since: Timestamp, now: Timestamp) -> bool {
        let age = i64::from(self.options.write_back_age_seconds);
        let waited = now.seconds.saturating_sub(since.seconds);
        // A clock set back must not keep data in memory for longer.
        waited < 0 || waited > age || (waited == age && now.nanoseconds >= since.nanoseconds)
    }

    /// Background work of the device, about `budget` units of it.
    ///
    /// # Errors
    /// The device's errors.
    pub fn maintain(&self, budget: u32) -> Result<Maintenance> {
        if self.options.read_only {
            return Ok(Maintenance::default());
        }
        let done = self.device.maintain(budget).and_then(|done| {
            let more = self.rearrange(budget)?;
            Ok(Maintenance { done: done.done.saturating_add(more.done), more: done.more || more.more })
        });
        let done = self.heard(done);
        let failure = match &done {
            // That there is no room, or that nothing may be written, other figures tell.
            Err(error) if matches!(error.kind, ErrorKind::NoSpace | ErrorKind::ReadOnly) => None,
            done => done.as_ref().err().map(ToString::to_string),
        };
        self.lock().upkeep_failure = failure;
        done
    }

    /// Has the device do what takes room, as long as that leaves what files were promised: nobody
    /// is promised anything meanwhile.
    fn rearrange(&self, budget: u32) -> onode_object::Result<Maintenance> {
        let mut all = Maintenance::default();
        while all.done < budget {
            let bytes = self.device.rearranging_bytes();
            if bytes == 0 {
                break;
            }
            let state = &mut *self.lock();
            let promised = state.promised + state.set_aside_by_others();
            if promised.saturating_add(bytes) > self.device.promisable() {
                break;
            }
            let done = self.device.rearrange(1);
            state.forget_space();
            let done = done?;
            all = Maintenance { done: all.done + done.done, more: done.more };
            if done.done == 0 || !done.more {
                break;
            }
        }
        Ok(all)
    }

    /// Why background work of the device failed when it was last asked for, if it did: what was to
    /// be cleaned or moved stays where it is.
    #[must_use]
    pub fn upkeep_failure(&self) -> Option<String> {
        self.lock().upkeep_failure.clone()
    }

    /// Space and numbers of the whole volume.
    #[must_use]
    pub fn statfs(&self) -> StatFs {
        let dirty = {
            let state = self.lock();
            state.promised + state.set_aside_by_others()
        };
        let space = self.device.space();
        let left = space.available.saturating_sub(dirty);
        // What is left for names and inodes once nothing more can be written is no promise.
        let available = left.saturating_sub(MARGIN_BYTES);
        let files_free = left / (LEAST_FILE_BYTES * self.inodes.ids());
        StatFs {
            block_bytes: BLOCK_BYTES,
            blocks: space.total / u64::from(BLOCK_BYTES),
            blocks_free: available / u64::from(BLOCK_BYTES),
            // The volume object is no file.
            files: space.objects.saturating_sub(1) / self.inodes.ids() + files_free,
            files_free,
            name_bytes_max: NAME_BYTES_MAX as u32,
        }
    }

    /// Forgets all that the device can be asked again: for who knows that somebody else changed it.
    pub fn forget_caches(&self) {
        self.lock().forget_caches();
    }

    /// Figures about what happens inside.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let state = self.lock();
        Statistics {
            dirty_bytes: state.dirty_bytes as u64,
            cached_inodes: state.nodes.len() as u64,
            name_cache_bytes: state.names.bytes() as u64,
            ..state.statistics
        }
    }

    /// The settings of the volume.
    #[must_use]
    pub const fn volume(&self) -> &VolumeInfo {
        &self.volume
    }

    /// How it is mounted.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The device it stands on.
    #[must_use]
    pub fn device(&self) -> &Arc<dyn ObjectDevice> {
        &self.device
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// When a content changes. Others of a shared device see by the time whether what they know is
    /// old, so it is later than that of the change before, unless somebody has set that one far
    /// ahead.
    pub(crate) fn content_time(&self, inode: &Inode) -> Timestamp {
        let (now, before) = (self.now(), inode.modified);
        let is_ahead = now <= before && before.seconds.saturating_sub(now.seconds) <= 1;
        if !is_ahead || self.device.share().is_none() {
            return now;
        }
        match before.nanoseconds {
            999_999_999 => Timestamp { seconds: before.seconds.saturating_add(1), nanoseconds: 0 },
            nanoseconds => Timestamp { nanoseconds: nanoseconds + 1, ..before },
        }
    }

    pub(crate) fn writes_through(&self) -> bool {
        self.options.write_mode == WriteMode::WriteThrough
    }

    /// Whether nothing can be changed, as far as was heard.
    pub(crate) fn is_read_only(&self) -> bool {
        self.options.read_only || self.device_read_only.load(Ordering::Relaxed)
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::new(ErrorKind::ReadOnly, "mounted read-only"));
        }
        // What is only noted in memory would be lost, however well it went.
        if self.device_read_only.load(Ordering::Relaxed) {
            let why = self.device.info().read_only.unwrap_or_else(|| "the device takes no changes".into());
            return Err(Error::new(ErrorKind::ReadOnly, why));
        }
        Ok(())
    }

    /// What the device answered; after a failure it is asked whether it takes changes at all.
    pub(crate) fn heard<T>(&self, answer: onode_object::Result<T>) -> Result<T> {
        if answer.is_err() {
            self.look_whether_writable();
        }
        Ok(answer?)
    }

    fn look_whether_writable(&self) {
        self.device_read_only.store(self.device.info().read_only.is_some(), Ordering::Relaxed);
    }

    /// Gives a change to the device that leaves it room for what is dirty.
    pub(crate) fn commit(&self, state: &mut State, transaction: Transaction) -> Result<()> {
        match growth_of(&transaction) {
            Some(demand) => self.leave_room(state, &demand)?,
            None => self.leave_room_beside(state, &transaction)?,
        }
        self.commit_promised(state, transaction)
    }

    /// Gives a change to the device for which space was set aside, or which frees some.
    pub(crate) fn commit_promised(&self, state: &mut State, mut transaction: Transaction) -> Result<()> {
        if transaction.is_empty() {
            return Ok(());
        }
        let waits = self.writes_through() && !is_planted(Bug::WriteThroughBuffered);
        if is_planted(Bug::NamesInTwo) && transaction.mutations.len() > 1 {
            let first = Transaction { mutations: transaction.mutations.drain(..1).collect() };
            self.heard(self.device.commit(first, if waits { Durability::Durable } else { Durability::Buffered }))?;
        }
        let charges = self.charge(state, &mut transaction)?;
        let durability = if waits { Durability::Durable } else { Durability::Buffered };
        self.heard(self.device.commit(transaction, durability))?;
        Self::charged(state, &charges);
        state.statistics.transactions += 1;
        if durability == Durability::Buffered && state.unsynced_since.is_none() {
            state.unsynced_since = Some(self.now());
        }
        Ok(())
    }

    /// The file in memory, read from the device if it is not there.
    pub(crate) fn node<'a>(&self, state: &'a mut State, number: InodeNumber) -> Result<&'a mut Node> {
        match state.nodes.get(&number.0) {
            Some(node) if node.seen == state.seen => {}
            Some(_) => self.refresh(state, number)?,
            None => {
                let node = self.read_node(number)?;
                state.insert(number.0, node);
            }
        }
        match state.nodes.get_mut(&number.0) {
            Some(node) => {
                node.used = true;
                Ok(node)
            }
            None => Err(Error::of(ErrorKind::Stale, number, "")),
        }
    }

    pub(crate) fn read_node(&self, number: InodeNumber) -> Result<Node> {
        let inode = match self.inodes.load(self.device.as_ref(), number.object())? {
            Found::Sound(inode) => inode,
            Found::Missing => return Err(Error::of(ErrorKind::Stale, number, "the file is gone")),
            Found::Damaged => return Err(Error::of(ErrorKind::Corrupt, number, "the inode is damaged; run fsck")),
        };
        let stat = match inode.file_type {
            FileType::Regular | FileType::SymbolicLink => self.device.stat(number.object())?,
            FileType::Directory
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice => ObjectStat::default(),
        };
        let accessed = access::later(inode.accessed, stat.accessed);
        let mut node = Node::new(Inode { accessed, ..inode }, stat.size);
        node.device_accessed = stat.accessed;
        node.allocated = Some(stat.allocated);
        Ok(node)
    }

    /// The attributes with the space the file takes up, which only the device knows.
    pub(crate) fn attributes_of(&self, state: &mut State, number: InodeNumber) -> Result<Attributes> {
        let node = self.node(state, number)?;
        if node.allocated.is_none() {
            let on_device = node.inode.file_type == FileType::Regular && !node.removed && node.device_size > 0;
            node.allocated = Some(if on_device { self.device.stat(number.object())?.allocated } else { 0 });
        }
        Ok(node.attributes(number.0))
    }

    /// The directory's inode; `NotDirectory` if it is none.
    pub(crate) fn directory(&self, state: &mut State, number: InodeNumber) -> Result<Inode> {
        self.directory_node(state, number).map(|node| node.inode)
    }

    /// The directory's inode, for a change of its names; `NotFound` if it was removed.
    pub(crate) fn live_directory(&self, state: &mut State, number: InodeNumber) -> Result<Inode> {
        let node = self.directory_node(state, number)?;
        if node.removed {
            return Err(Error::of(ErrorKind::NotFound, number, "the directory was removed"));
        }
        Ok(node.inode)
    }

    fn directory_node<'a>(&self, state: &'a mut State, number: InodeNumber) -> Result<&'a mut Node> {
        let node = self.node(state, number)?;
        if node.inode.is_directory() { Ok(node) } else { Err(Error::of(ErrorKind::NotDirectory, number, "")) }
    }

    /// The slots with a directory's names.
    pub(crate) fn names(&self, directory: InodeNumber) -> Slots<'_> {
        self.slots(directory, AttributeKind::ENTRY)
    }

    pub(crate) fn slots(&self, number: InodeNumber, kind: AttributeKind) -> Slots<'_> {
        Slots { device: self.device.as_ref(), object: number.object(), kind }
    }

    /// A number no file ever had.
    pub(crate) fn new_number(&self, state: &mut State) -> Result<InodeNumber> {
        if state.ids.is_empty() {
            state.ids = self.inodes.reserve(self.device.as_ref(), IDS_AT_ONCE)?;
        }
        let number = state.ids.start;
        state.ids.start += self.inodes.ids();
        Ok(InodeNumber(number))
    }

    /// The advice about a new file.
    pub(crate) fn hints(file_type: FileType, parent: InodeNumber) -> Hints {
        let kind = match file_type {
            FileType::Directory => ObjectKind::Directory,
            FileType::Regular => ObjectKind::Data,
            FileType::SymbolicLink => ObjectKind::SymbolicLink,
            FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice => {
                ObjectKind::Special
            }
        };
        Hints { kind, locality: Some(ObjectId(parent.0)), ..Hints::default() }
    }
}

/// What a change of names or attributes adds to the device; `None` if it takes something away or
/// puts as much in its place.
fn growth_of(transaction: &Transaction) -> Option<Demand> {
    let is_listed = |key: &AttributeKey| [AttributeKind::ENTRY, AttributeKind::XATTR].contains(&key.kind);
    let mut demand = Demand::default();
    let mut grows = false;
    for mutation in &transaction.mutations {
        match mutation {
            Mutation::Remove { .. } => return None,
            Mutation::RemoveAttribute { key, .. } if is_listed(key) => return None,
            Mutation::Create { .. } => (grows, demand.entries) = (true, demand.entries + 1),
            Mutation::SetAttribute { key, value, .. } => {
                grows |= is_listed(key);
                demand.entries += 1;
                demand.entry_bytes += value.len() as u64;
            }
            Mutation::Write { data, .. } => demand.entry_bytes += data.len() as u64,
            Mutation::RemoveAttribute { .. }
            | Mutation::Truncate { .. }
            | Mutation::Punch { .. }
            | Mutation::Move { .. }
            | Mutation::SetHints { .. }
            | Mutation::SetAccessTime { .. } => {}
        }
    }
    grows.then_some(demand)
}
