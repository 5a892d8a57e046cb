//! What every object device offers to the host.

mod forward;

use crate::durability::{Durability, SyncScope};
use crate::error::Result;
use crate::health::Health;
use crate::hints::{Compression, Hints, ParityChoice};
use crate::id::{AttributeKey, ObjectId};
use crate::powers::{Attach, Decision, Erase, Inspect, MapObjects, Place, Resize, Scrub, Share};
use crate::transaction::Transaction;
use alloc::string::String;
use alloc::vec::Vec;

/// Size and settings of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectStat {
    /// Size in bytes.
    pub size: u64,
    /// Bytes that occupy the medium (holes do not).
    pub allocated: u64,
    /// The advice given for it.
    pub hints: Hints,
    /// Its access time as last set; 0 if none was.
    pub accessed: u64,
}

/// Space of a device in bytes. `available` can be written to 99 % by one large object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// All that users could ever fill.
    pub total: u64,
    /// What is left of it.
    pub available: u64,
    /// Number of objects.
    pub objects: u64,
}

/// What somebody will write, so that the device can say how much of its [`Space`] must be left for
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Objects and attributes that are new or grow.
    pub entries: u64,
    /// Bytes of these attributes.
    pub entry_bytes: u64,
    /// Ranges of the content of one object.
    pub ranges: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Blocks of [`BLOCK_BYTES`](Self::BLOCK_BYTES) that hold a byte of them, those of each range
    /// for themselves.
    pub blocks: u64,
    /// Bytes of that object, the more of before and after.
    pub object_bytes: u64,
    /// The device has no content of it.
    pub is_new: bool,
}

impl Demand {
    /// The unit of `blocks`.
    pub const BLOCK_BYTES: u64 = 4096;

    /// Bytes that devices usually need for it.
    #[must_use]
    pub const fn usual_bytes(&self) -> u64 {
        const ENTRY_BYTES: u64 = 64;
        const RANGE_BYTES: u64 = 128;
        self.entry_bytes + self.entries * ENTRY_BYTES + self.bytes + self.ranges * RANGE_BYTES
    }
}

/// What a device is, for reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceInfo {
    /// `ram`, `flash`, ...
    pub kind: &'static str,
    /// The volume's unique number.
    pub uuid: [u8; 16],
    /// One line for people: geometry and settings.
    pub summary: String,
    /// `Some(why)` if the device accepts no changes.
    pub read_only: Option<String>,
    /// The largest amount of data, in bytes, that one transaction should carry.
    pub transaction_bytes: usize,
}

/// What a call of [`ObjectDevice::maintain`] did and whether more is useful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintenance {
    /// Units (cleaned segments, scrubbed pages, ...) of work done.
    pub done: u32,
    /// Whether calling again soon is useful.
    pub more: bool,
}

/// A device that stores objects. Every method may be called from many threads at once.
///
/// Ids, sizes and offsets come from the host and are checked; a request that cannot be granted
/// changes nothing.
pub trait ObjectDevice: Send + Sync {
    /// What this device is.
    fn info(&self) -> DeviceInfo;

    /// The first of `count` consecutive ids that no object ever had. Ids not used before a crash
    /// may be handed out again after it.
    ///
    /// # Errors
    /// `NoSpace` when 2^63 ids are used up; `ReadOnly`.
    fn reserve_ids(&self, count: u64) -> Result<ObjectId>;

    /// Does the whole transaction or nothing (N3). Commits survive a crash in order (N2).
    ///
    /// # Errors
    /// `NoSpace` before anything was done; `NotFound`, `Exists`, `Invalid` for the first mutation
    /// that cannot apply, and nothing was done; `ReadOnly`; `Media` if the medium failed, after
    /// which the device is read-only. A transaction made only of `Remove`, `Truncate`, `Punch`,
    /// `RemoveAttribute`, `Write` that replaces a small content by as many bytes, and
    /// `SetAttribute` whose attributes grow by no more than it gives up
    /// ([`never_needs_space`](crate::validate::never_needs_space)) is never refused for space, on a
    /// full device neither (N7). That holds for 64 mutations on every device. One that has to note
    /// down more than it can refuses more with `NoSpace`, changing nothing; in parts it goes.
    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()>;

    /// Makes sure that a transaction which comes next is not refused, and changes nothing that
    /// anybody sees: who has several devices do the same asks all of them before one has done it.
    /// It may clean as a commit does.
    ///
    /// # Errors
    /// As [`commit`](Self::commit). A device that does not know says nothing.
    fn check_commit(&self, transaction: &Transaction) -> Result<()> {
        let _ = transaction;
        Ok(())
    }

    /// Makes earlier commits durable (N1).
    ///
    /// # Errors
    /// `Media` if the medium failed, after which the device is read-only.
    fn sync(&self, scope: SyncScope) -> Result<()>;

    /// Reads into `buffer` from `offset`; returns how many bytes there were before the object's
    /// end. Holes read as zeros. Nothing is returned that was not verified.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` with exactly the damaged range.
    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize>;

    /// An attribute's value.
    ///
    /// # Errors
    /// `NotFound` if there is no such object, `Corrupt`.
    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>>;

    /// Up to `limit` attributes in key order, the first at or after `from`. Fewer may be returned;
    /// none means that there are no more.
    ///
    /// # Errors
    /// `NotFound` if there is no such object, `Corrupt`.
    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>>;

    /// Size and settings.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`.
    fn stat(&self, object: ObjectId) -> Result<ObjectStat>;

    /// Up to `limit` ids in order, the first at or after `from`. Fewer may be returned; none means
    /// that there are no more.
    ///
    /// # Errors
    /// `Corrupt`.
    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>>;

    /// The ranges that hold data at or after `offset`, in order, at most `limit` of them, as
    /// (offset, length). Adjacent ranges may come joined or apart; between them are holes.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`.
    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>>;

    /// Space now.
    fn space(&self) -> Space;

    /// How many bytes of [`Space::available`] must be left for that, so that it is not refused for
    /// space. An upper bound: who accepts data before the device has them sets so much aside.
    fn space_for(&self, demand: &Demand) -> u64 {
        demand.usual_bytes()
    }

    /// How many bytes of [`Space::available`] must be left for a change that puts as much in the
    /// place of what an object has, or takes some of it away, so that it is not refused for space:
    /// none unless something keeps the object as it was. So many `bytes` of its content are
    /// concerned.
    fn space_to_replace(&self, bytes: u64) -> u64 {
        let _ = bytes;
        0
    }

    /// How much of [`Space::available`] may be set aside for what [`space_for`](Self::space_for)
    /// says. Less than all of it if some is in pieces that only certain data fit into: that space
    /// the device gives only to what it is given at once.
    fn promisable(&self) -> u64 {
        self.space().available
    }

    /// Background work (cleaning, checkpoints) of about `budget` units. Never needed for progress.
    ///
    /// # Errors
    /// `Media`, `ReadOnly`.
    fn maintain(&self, budget: u32) -> Result<Maintenance>;

    /// How many bytes of [`Space::available`] a step of [`rearrange`](Self::rearrange) may take;
    /// none if there is nothing to do.
    fn rearranging_bytes(&self) -> u64 {
        0
    }

    /// Background work that takes room, in at most `budget` steps: gives content the parity that
    /// its object wishes by now. Who has set room aside for others lets it be if there is no more
    /// than that. It goes on when the device is closed.
    ///
    /// # Errors
    /// `Media`, `ReadOnly`.
    fn rearrange(&self, budget: u32) -> Result<Maintenance> {
        let _ = budget;
        Ok(Maintenance::default())
    }

    /// Brings everything to a state from which the next mount needs no recovery.
    ///
    /// # Errors
    /// `Media`.
    fn close(&self) -> Result<()>;

    /// Whether the device moves content between an object and its versions, and in what unit:
    /// the offset of a [`Move`](crate::Mutation::Move) is a multiple of it, and so is the end
    /// unless it is at or past the object's size. `None`: every such change is `Invalid`.
    fn move_unit(&self) -> Option<u64> {
        None
    }

    /// Whether [`extents`](Self::extents) tells what has data to the unit of 4 KiB, aligned: then
    /// what was never written, and is a hole in no such unit that was, is in none of its ranges. A
    /// device that sets memory aside ahead of writes may tell of it as data, which reads as zeros.
    fn extents_are_exact(&self) -> bool {
        true
    }

    /// What is wrong with the device now, as far as it knows; nothing is read for it.
    fn health(&self) -> Health {
        Health::default()
    }

    /// How content is compressed where its hints leave it open; `None` if the device heeds no such
    /// hint.
    fn compression(&self) -> Option<Compression> {
        None
    }

    /// How many pages of parity objects may choose; `None` if the device heeds no such hint.
    fn parity(&self) -> Option<ParityChoice> {
        None
    }

    /// Whether directories may have keys of their own: then the hint
    /// [`encryption_key`](crate::Hints::encryption_key) is more than advice.
    fn has_directory_keys(&self) -> bool {
        false
    }

    /// The number of the key of a directory that an object needs beside that of the device, 0 for
    /// none: the hint [`encryption_key`](crate::Hints::encryption_key), also where so much of the
    /// object is locked that [`stat`](Self::stat) is refused.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Media`; `KeyNeeded` if not even that can be told.
    fn directory_key(&self, object: ObjectId) -> Result<u32> {
        self.stat(object).map(|stat| stat.hints.encryption_key)
    }

    /// What the hints of an object lead to if its content is written now; nothing of what they do
    /// not matter for, and of where a tiered device keeps it, which [`Place::why`] tells.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Media`.
    fn decisions(&self, _object: ObjectId) -> Result<Vec<Decision>> {
        Ok(Vec::new())
    }

    /// The objects as memory, if the medium can do that.
    fn map_objects(&self) -> Option<&dyn MapObjects> {
        None
    }

    /// Turns with other hosts, if the device has more than one.
    fn share(&self) -> Option<&dyn Share> {
        None
    }

    /// Control over sections and tiers, if there are any.
    fn place(&self) -> Option<&dyn Place> {
        None
    }

    /// A part that comes and goes.
    fn attachment(&self) -> Option<&dyn Attach> {
        None
    }

    /// Growth into a medium that became larger.
    fn resizing(&self) -> Option<&dyn Resize> {
        None
    }

    /// Verification of everything stored.
    fn scrub(&self) -> Option<&dyn Scrub> {
        None
    }

    /// A look inside: counters, segments, wear.
    fn inspect(&self) -> Option<&dyn Inspect> {
        None
    }

    /// Removal that leaves nothing on the medium.
    fn erase(&self) -> Option<&dyn Erase> {
        None
    }
}
