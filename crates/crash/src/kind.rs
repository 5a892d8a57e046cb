//! What the explorer asks of a kind of device: to be made, opened and verified on its kind of
//! medium. Everything else goes through the object interface, so that one workload and one oracle
//! are for all.

pub mod authenticated;
pub mod beside;
pub mod compressed;
pub mod encrypted;
pub mod flash;
pub mod geometry;
pub mod keyed;
pub mod pool;
pub mod scm;
pub mod service;
pub mod snapshots;
pub mod tier;
pub mod transacted;
pub mod variant;

use crate::files::program::Program;
use crate::files::worth::Worth;
use crate::medium::Medium;
use crate::object::clients::Standing;
use crate::violation::Violation;
use onode_fs::Inodes;
use onode_object::powers::Attach;
use onode_object::{Durability, ObjectDevice, Transaction};
use std::sync::Arc;

/// The rest of a commit, whose first part is done.
pub type Rest<D> = Box<dyn FnOnce(&D) -> onode_object::Result<()> + Send>;

/// What came of the first part of a commit; there need not be a rest.
pub type Begun<D> = onode_object::Result<Option<Rest<D>>>;

/// A kind of device with the options under which one run uses it.
pub trait Kind: Copy + Send + Sync + 'static {
    /// What it stands on.
    type Medium: Medium;
    /// The device.
    type Device: ObjectDevice + Send + Sync + 'static;

    /// An empty volume on a fresh medium; `failures` of every 100 erase blocks are to fail, if it
    /// has such.
    ///
    /// # Errors
    /// If formatting fails.
    fn format(&self, failures: Failures) -> Result<<Self::Medium as Medium>::Image, Violation>;

    /// Opens what is on the medium.
    ///
    /// # Errors
    /// The device's.
    fn mount(&self, medium: &Self::Medium, read_only: bool) -> onode_object::Result<Self::Device>;

    /// Lets the device prove that it agrees with itself.
    ///
    /// # Errors
    /// What does not.
    fn verify(&self, device: &Self::Device) -> Result<(), Violation>;

    /// Tells a recording medium what the device knows of it.
    ///
    /// # Errors
    /// If the device does not know it any more.
    fn note(&self, device: &Self::Device, medium: &Self::Medium) -> Result<(), Violation>;

    /// Bytes that an almost empty volume may be short of when it refuses a transaction.
    fn slack_bytes(&self) -> u64;

    /// Where a file system on it keeps its inodes.
    fn inodes(&self) -> Inodes;

    /// How many objects the device counts, without those that only a service sees.
    fn objects(&self, device: &Self::Device) -> u64 {
        device.space().objects
    }

    /// The names of the snapshots that there are, if there are any; durable, as are deletions.
    fn snapshots(&self, _device: &Self::Device) -> Vec<String> {
        Vec::new()
    }

    /// What content is worth that was written by calls that are durable at their return.
    fn worth(&self) -> Worth {
        Worth::Whole
    }

    /// The part of the device that goes and comes during a run, if it has one that does.
    fn part<'a>(&self, _device: &'a Self::Device) -> Option<&'a dyn Attach> {
        None
    }

    /// Whether the volume has a part of its medium at first and takes up the rest during a run.
    fn grows(&self) -> bool {
        false
    }

    /// What a call made now could do without waiting for one that is under way; nothing for devices
    /// that have their lock as long as a call takes.
    fn standing(&self, _device: &Self::Device) -> Option<Standing> {
        None
    }

    /// Does the first part of a commit, which waits for no other one, and returns the rest: so
    /// clients come along with what another one makes durable. `None` if a device cannot be asked
    /// for parts.
    fn begin(
        &self,
        _device: &Self::Device,
        _transaction: &Transaction,
        _durability: Durability,
    ) -> Option<Begun<Self::Device>> {
        None
    }

    /// Whether programs can have blocks of the device's memory.
    fn has_memory(&self) -> bool {
        false
    }

    /// A program that uses such blocks.
    fn program(&self, _device: &Arc<Self::Device>) -> Option<Box<dyn Program>> {
        None
    }
}

/// How a medium fails while it is used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failures {
    /// From which they follow.
    pub seed: u64,
    /// How many for every 100 erase blocks.
    pub of_hundred: u64,
    /// Calls over which they are spread.
    pub steps: u32,
}
