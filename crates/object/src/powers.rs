//! Optional powers: what only some devices can do. A device hands them out or does not; there are
//! no "unsupported" errors.

use crate::error::{Error, Result};
use crate::id::ObjectId;
use alloc::string::String;
use alloc::vec::Vec;

mod inspection;

pub use inspection::{Inspection, ObjectPrograms, SegmentInfo, SegmentState, TagCounts, WearSpread, WearStep};

/// Objects as memory (paper 2): byte-addressable devices.
pub trait MapObjects {
    /// Calls `with` with the object's bytes where they lie.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if the object is not one contiguous range.
    fn with_bytes(&self, object: ObjectId, with: &mut dyn FnMut(&[u8])) -> Result<()>;
}

/// Control over where objects live (paper 4): tiered devices.
pub trait Place {
    /// Names of the placement classes; the index is the hint's `placement_class`.
    fn classes(&self) -> Vec<String>;
    /// Moves an object to a class now.
    ///
    /// # Errors
    /// `NotFound`, `NoSpace`, `Invalid` for a class that does not exist.
    fn place(&self, object: ObjectId, class: u16) -> Result<()>;
}

/// Reads and verifies everything that is stored.
pub trait Scrub {
    /// Verifies up to `limit` objects from `from` on; tells what is damaged and where to go on.
    ///
    /// # Errors
    /// Only if the scrub itself cannot go on.
    fn scrub(&self, from: ObjectId, limit: usize) -> Result<ScrubReport>;
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
    /// Where to go on; `None` at the end.
    pub next: Option<ObjectId>,
}

/// A look inside a device.
pub trait Inspect {
    /// Named figures, in a fixed order: page reads, programs, erases, cleanings, bytes moved, ...
    fn counters(&self) -> Vec<(String, u64)>;
    /// The segments or other allocation units, in address order.
    fn segments(&self) -> Vec<SegmentInfo>;
    /// Everything that views and reports show, taken at one moment.
    fn inspection(&self) -> Inspection;
}

/// Removal that leaves no copy anywhere on the medium.
pub trait Erase {
    /// Removes the object and every stale copy of its bytes.
    ///
    /// # Errors
    /// `NotFound`, `Media`.
    fn erase(&self, object: ObjectId) -> Result<()>;
}
