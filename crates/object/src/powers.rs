//! Optional powers: what only some devices can do. A device hands them out or does not; there are
//! no "unsupported" errors.

use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::id::ObjectId;
use crate::transaction::Transaction;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

mod decision;
mod inspection;
mod replace;
mod resize;

pub use decision::Decision;
pub use inspection::{Inspection, ObjectPrograms, SegmentInfo, SegmentState, TagCounts, WearSpread, WearStep};
pub use replace::{Copying, Replace, ReplaceState, Replaced};
pub use resize::{Extent, Resize};

/// Objects as memory (paper 2): what lies in memory that the processor reaches needs no copy to
/// become an object, and an object none to become memory.
///
/// A *block* of memory is named by its address, in bytes from the start of the memory, and belongs
/// to whoever allocated it; how that is done is the device's own affair. Nothing here copies
/// content.
pub trait MapObjects {
    /// Commits a transaction that creates objects, and gives each object of `contents` its block as
    /// content, as if its bytes had been written by the transaction. The blocks belong to the
    /// objects from then on.
    ///
    /// # Errors
    /// As [`commit`](crate::ObjectDevice::commit); `Invalid` for a block that is not one, or an
    /// object that has content.
    fn publish(&self, transaction: Transaction, contents: &[Content], durability: Durability) -> Result<()>;

    /// Commits a transaction that removes `object`, and returns the block that was its content:
    /// memory again, with the same bytes. It is always durable: what the memory is used for next
    /// must not show in an object.
    ///
    /// # Errors
    /// As [`commit`](crate::ObjectDevice::commit); `Invalid` if the object is not one block.
    fn withdraw(&self, transaction: Transaction, object: ObjectId) -> Result<Content>;

    /// Brings the content of an object together in one block, holes as zeros, if it is not there
    /// already. Nothing about the object changes but where it lies; what looked at its former
    /// blocks must not do so any more. All or nothing, and durable on return.
    ///
    /// # Errors
    /// `NotFound`; `NoSpace` if there is no such block beside those that hold it now; as
    /// [`commit`](crate::ObjectDevice::commit).
    fn gather(&self, object: ObjectId) -> Result<()>;

    /// Makes a table of [`SLOTS`] empty slots for an object, if it has none: each can hold a block
    /// of memory. The table is no content of the object and goes with it, with all that its slots
    /// hold then.
    ///
    /// # Errors
    /// As [`commit`](crate::ObjectDevice::commit).
    fn make_slots(&self, object: ObjectId) -> Result<()>;

    /// Has a slot hold a block, in place of the one that it held, which is free then. Durable on
    /// return, all or nothing, and not ahead of anything that was done before.
    ///
    /// # Errors
    /// As [`commit`](crate::ObjectDevice::commit); `Invalid` for a slot that there is not, and for
    /// a block that is not one, belongs to an object or a slot, or has more than
    /// [`SLOT_BYTES_MAX`].
    fn fill_slot(&self, content: &Content, slot: u64) -> Result<()>;

    /// Takes the block out of a slot: memory again, with the same bytes. Durable on return.
    ///
    /// # Errors
    /// `NotFound` if the slot is empty; as [`commit`](crate::ObjectDevice::commit).
    fn take_slot(&self, object: ObjectId, slot: u64) -> Result<Content>;

    /// Address and length of the block in a slot, if it holds one.
    fn slot(&self, object: ObjectId, slot: u64) -> Option<(u64, u64)>;

    /// Where the first `length` bytes of an object lie, as many as it has or fewer, if they are in
    /// one block; none of an object that there is not. They stay there until a transaction changes
    /// the object.
    fn whole(&self, object: ObjectId, length: u64) -> Option<u64>;

    /// Copies bytes of an object out of the block that [`whole`](Self::whole) told. Waits for
    /// nobody. Panics past the end of the memory.
    ///
    /// # Errors
    /// `Media` if part of the memory is gone.
    fn look(&self, address: u64, buffer: &mut [u8]) -> Result<()>;

    /// Whether content may be overwritten where it lies: [`overwrite`](Self::overwrite) is for such
    /// devices only.
    fn overwrites(&self) -> bool;

    /// Puts `bytes` over content of an object in the block that [`whole`](Self::whole) told, and
    /// makes them as durable as the device is asked to. No transaction: a crash leaves of each
    /// aligned 8 bytes the old or the new ones.
    ///
    /// # Errors
    /// `ReadOnly`, `Media`.
    fn overwrite(&self, address: u64, bytes: &[u8]) -> Result<()>;

    /// The blocks that hold an object, in order, as far as they lie below its size.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`.
    fn placement(&self, object: ObjectId) -> Result<Vec<Placed>>;
}

/// Slots of a table.
pub const SLOTS: u64 = 1 << 30;
/// The most bytes of a block in a slot.
pub const SLOT_BYTES_MAX: u64 = 1 << 32;

/// A block of memory as the content of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// The object.
    pub object: ObjectId,
    /// Where the block begins, in bytes from the start of the memory.
    pub address: u64,
    /// The object's size.
    pub bytes: u64,
    /// The bytes are durable already: whoever wrote them flushed them and fenced.
    pub is_durable: bool,
}

/// A part of an object and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Where the part begins in the object.
    pub offset: u64,
    /// Where it lies, in bytes from the start of the memory.
    pub address: u64,
    /// Its length.
    pub length: u64,
}

/// One device that several hosts use at the same time, each with what it remembers of it.
///
/// A host takes a *turn* to look at what there is and to change it without anybody in between, and
/// learns then whether what it remembers is still true. Calls outside of a turn are good, too: each
/// is one by itself.
pub trait Share {
    /// Whether any other host uses the device now.
    fn has_others(&self) -> bool;

    /// Waits for the turn of this thread, which must not have one. Returns a number that is another
    /// one than the time before if others have committed something since.
    fn begin(&self) -> u64;

    /// Ends the turn of this thread.
    fn end(&self);

    /// Whether this thread has the turn.
    fn has_turn(&self) -> bool;
}

/// Control over where objects live (paper 4): tiered devices. The hint `placement_class` of an
/// object, read as a [`Placement`](crate::Placement), says where its content goes from now on.
pub trait Place {
    /// Names of the sections; the index is the number in
    /// [`Target::Section`](crate::Target::Section).
    fn sections(&self) -> Vec<String>;
    /// The sections with their sizes; none while there is no fast device.
    fn division(&self) -> Vec<SectionSize>;
    /// Divides the fast device anew, in proportion to the sizes. Nothing is copied: what lies
    /// across a new border is given up there. A name that was there before keeps its number, so
    /// that what was placed in it stays so.
    ///
    /// # Errors
    /// `Invalid` for sections that cannot be, or without a fast device; nothing was changed.
    /// `Media`, `ReadOnly`.
    fn divide(&self, sections: &[SectionSize]) -> Result<()>;
    /// Copies to the fast device what an object has only on the big one, whatever the policy thinks
    /// of it. With `waits` it is there when the call returns; else it is put on the list of what is
    /// moved in the background.
    ///
    /// # Errors
    /// `NotFound`; `NoSpace` if the object is larger than its section, or pinned objects fill it;
    /// `Invalid` if it bypasses the fast device or there is none; `Corrupt`.
    fn promote(&self, object: ObjectId, waits: bool) -> Result<Moved>;
    /// Gives up what an object has on the fast device, once the big one has it.
    ///
    /// # Errors
    /// `NotFound`; `Media`.
    fn demote(&self, object: ObjectId) -> Result<Moved>;
    /// Where an object is and why.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`.
    fn why(&self, object: ObjectId) -> Result<Whereabouts>;
}

/// A part of the device that the rest can go on without: a fast device before a big one (paper 4),
/// a memory beside a flash (paper 3). It goes and comes while the device is in use.
pub trait Attach {
    /// What the part is, in words: "the fast disk".
    fn part(&self) -> &'static str;
    /// Whether it takes part now.
    fn is_attached(&self) -> bool;
    /// Brings everything to the rest and goes on without the part, which can be taken away then.
    ///
    /// # Errors
    /// `Invalid` if there is none; `Media`, `ReadOnly`.
    fn detach(&self) -> Result<()>;
    /// The part takes part again after it was detached or failed. An `empty` one gives up what was
    /// on it.
    ///
    /// # Errors
    /// `Invalid` if one takes part already, or if what is found is none of this volume;
    /// `NotSupported` if nobody knows where it is; `Corrupt`, `Media`, `ReadOnly`.
    fn attach(&self, empty: bool) -> Result<()>;
}

/// A section of the fast device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionSize {
    /// Its name.
    pub name: String,
    /// Bytes of an extent.
    pub extent_bytes: u64,
    /// Bytes of it; when the device is divided, its share in proportion to those of the others.
    pub bytes: u64,
}

impl SectionSize {
    /// Several as a word, which [`parse_all`](Self::parse_all) reads: `NAME:EXTENT:BYTES`, joined
    /// by `+`.
    #[must_use]
    pub fn join(sections: &[Self]) -> String {
        let words = sections.iter().map(|one| format!("{}:{}:{}", one.name, one.extent_bytes, one.bytes));
        words.collect::<Vec<_>>().join("+")
    }

    /// The sections of such a word, of which an empty one has none; `None` if it is no such word.
    #[must_use]
    pub fn parse_all(words: &str) -> Option<Vec<Self>> {
        if words.is_empty() { Some(Vec::new()) } else { words.split('+').map(Self::parse).collect() }
    }

    fn parse(word: &str) -> Option<Self> {
        let mut fields = word.split(':');
        let (name, extent, bytes) = (fields.next()?, fields.next()?, fields.next()?);
        let sized = Self { name: name.into(), extent_bytes: extent.parse().ok()?, bytes: bytes.parse().ok()? };
        fields.next().is_none().then_some(sized)
    }
}

/// What a move did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes copied, or given up.
    pub bytes: u64,
    /// Bytes that are still to be moved in the background.
    pub waiting: u64,
}

/// Where an object is, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// Bytes that have their place on the big device.
    pub big_bytes: u64,
    /// Bytes of which the fast device has a copy.
    pub fast_bytes: u64,
    /// Bytes that are still in the logs and in memory only.
    pub log_bytes: u64,
    /// The section that new content goes to, `any` if the device chooses; `None` if it bypasses the
    /// fast device.
    pub section: Option<String>,
    /// Why what is not on the fast device is not there, and other things worth knowing: a line
    /// each.
    pub reasons: Vec<String>,
}

/// Reads and verifies everything that is stored.
pub trait Scrub {
    /// Verifies up to `limit` objects from `from` on; tells what is damaged and where to go on.
    ///
    /// # Errors
    /// Only if the scrub itself cannot go on.
    fn scrub(&self, from: ObjectId, limit: usize) -> Result<ScrubReport>;

    /// Verifies a part of one object, about `limit` bytes of it: from its start if `from` is 0, or
    /// from where the part before ended. So others can use the device while a large object is
    /// verified. `None` if the device verifies all that a plain read returns, which is as good.
    ///
    /// # Errors
    /// `NotFound`; else only if the scrub itself cannot go on.
    fn scrub_part(&self, _object: ObjectId, _from: u64, _limit: u64) -> Result<Option<ScrubPart>> {
        Ok(None)
    }

    /// Verifies what the medium keeps to find damaged content again: up to `limit` groups of pages
    /// from group `from` on. What has to be moved or written again is left to
    /// [`maintain`](crate::ObjectDevice::maintain). A device without such groups has none to
    /// verify.
    ///
    /// # Errors
    /// Only if the scrub itself cannot go on.
    fn scrub_groups(&self, _from: u64, _limit: u32) -> Result<GroupScrub> {
        Ok(GroupScrub::default())
    }
}

/// What the scrub of a part of an object found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubPart {
    /// Of this part; the object counts with its last one.
    pub found: ScrubReport,
    /// Where the next part begins; `None` at the end of the object.
    pub next: Option<u64>,
}

/// What one step over groups of pages found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupScrub {
    /// Groups verified.
    pub groups: u64,
    /// Groups in all.
    pub all: u64,
    /// Pages that cannot be read and were found again.
    pub rebuilt: u64,
    /// Pages that cannot be read and cannot be found again; what lay there may be of no use any
    /// more.
    pub lost: u64,
    /// Groups with parity that is damaged or missing: what lies in them gets another.
    pub unprotected: u64,
    /// Where to go on; `None` at the end.
    pub next: Option<u64>,
}

/// What one step of a scrub found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Objects verified.
    pub objects: u64,
    /// Bytes verified.
    pub bytes: u64,
    /// What is damaged.
    pub damaged: Vec<Error>,
    /// Bytes that were damaged, had a good copy elsewhere, and were written again from it.
    pub repaired: u64,
    /// Where to go on; `None` at the end.
    pub next: Option<ObjectId>,
}

/// How much memory a device may take and when it tidies up, where a person chose it at the mount;
/// what is `None` is left to the device. It decides what things cost and never what they mean or
/// whether there is room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of memory for nodes of the index that could be read again.
    pub node_cache_bytes: Option<u64>,
    /// Bytes of memory for pages of content that were read.
    pub page_cache_bytes: Option<u64>,
    /// Bytes of the log after which a checkpoint is written, if the device does not write one
    /// earlier. Less makes a mount after a crash faster, and work slower.
    pub checkpoint_bytes: Option<u64>,
    /// Segments that are left, before commits have to wait, when cleaning begins. More makes waits
    /// shorter, and moves what might have been dead a little later.
    pub clean_ahead: Option<u64>,
    /// Bytes of content that may be copied to a fast disk in a day, so that it does not wear out
    /// before its time.
    pub fast_daily_bytes: Option<u64>,
    /// What is read in a row beyond so many bytes comes to a fast disk later than other content.
    pub fast_sequential_bytes: Option<u64>,
    /// Seconds that copies wait until they fill an erase block of a fast disk.
    pub fast_collect_seconds: Option<u64>,
    /// The request at which content that is read comes to a fast disk: the first, the second, ...;
    /// 0 if reads bring nothing there.
    pub fast_admit: Option<u64>,
}

/// A setting by its name, as mount options have it.
pub type Setting = (&'static str, Option<u64>);

impl Settings {
    /// Nothing was said.
    pub const NONE: Self = Self {
        node_cache_bytes: None,
        page_cache_bytes: None,
        checkpoint_bytes: None,
        clean_ahead: None,
        fast_daily_bytes: None,
        fast_sequential_bytes: None,
        fast_collect_seconds: None,
        fast_admit: None,
    };

    /// All of them by name.
    #[must_use]
    pub const fn all(&self) -> [Setting; 8] {
        [
            ("node-cache", self.node_cache_bytes),
            ("page-cache", self.page_cache_bytes),
            ("checkpoint", self.checkpoint_bytes),
            ("clean-ahead", self.clean_ahead),
            ("fast-daily", self.fast_daily_bytes),
            ("fast-sequential", self.fast_sequential_bytes),
            ("fast-collect", self.fast_collect_seconds),
            ("fast-admit", self.fast_admit),
        ]
    }
}

/// A look inside a device.
pub trait Inspect {
    /// Named figures, in a fixed order: page reads, programs, erases, cleanings, bytes moved, ...
    fn counters(&self) -> Vec<(String, u64)>;
    /// The segments or other allocation units, in address order.
    fn segments(&self) -> Vec<SegmentInfo>;
    /// Everything that views and reports show, taken at one moment.
    fn inspection(&self) -> Inspection;
    /// The settings that the device works by, those that nobody chose too: all of
    /// [`Settings`] that it heeds.
    fn settings(&self) -> Settings {
        Settings::NONE
    }
}

/// Removal that leaves no copy anywhere on the medium.
pub trait Erase {
    /// Removes the object and every stale copy of its bytes.
    ///
    /// # Errors
    /// `NotFound`, `Media`.
    fn erase(&self, object: ObjectId) -> Result<()>;
}
