//! Any kind of device with a service over it.

use crate::files::worth::Worth;
use crate::kind::{Failures, Kind};
use crate::medium::Medium;
use crate::violation::Violation;
use onode_fs::Inodes;
use onode_object::ObjectDevice;
use onode_object::powers::Attach;
use std::sync::Arc;

/// What wraps a device.
pub trait Service: Copy + Send + Sync + 'static {
    /// The device that wraps one.
    type Over<D: ObjectDevice + 'static>: ObjectDevice + 'static;
    /// By how much more an almost empty volume may be short of when it refuses a transaction.
    const SLACK: u64;

    /// Wraps what was mounted.
    ///
    /// # Errors
    /// The device's.
    fn wrap<D: ObjectDevice + 'static>(device: Arc<D>) -> onode_object::Result<Self::Over<D>>;

    /// The wrapped device.
    fn inner<D: ObjectDevice + 'static>(over: &Self::Over<D>) -> &D;

    /// Lets the service prove that it agrees with itself.
    ///
    /// # Errors
    /// What does not.
    fn verify<D: ObjectDevice + 'static>(_over: &Self::Over<D>) -> Result<(), Violation> {
        Ok(())
    }

    /// As [`Kind::objects`].
    fn objects<D: ObjectDevice + 'static>(over: &Self::Over<D>) -> u64 {
        over.space().objects
    }

    /// As [`Kind::snapshots`].
    fn snapshots<D: ObjectDevice + 'static>(_over: &Self::Over<D>) -> Vec<String> {
        Vec::new()
    }
}

/// A kind whose device is wrapped.
#[derive(Clone, Copy, Debug)]
pub struct Wrapped<K, S> {
    /// The kind.
    pub kind: K,
    /// What wraps its device.
    pub service: S,
}

impl<K: Kind, S: Service> Kind for Wrapped<K, S> {
    type Medium = K::Medium;
    type Device = S::Over<K::Device>;

    fn format(&self, failures: Failures) -> Result<<K::Medium as Medium>::Image, Violation> {
        self.kind.format(failures)
    }

    fn mount(&self, medium: &K::Medium, read_only: bool) -> onode_object::Result<Self::Device> {
        S::wrap(Arc::new(self.kind.mount(medium, read_only)?))
    }

    fn verify(&self, device: &Self::Device) -> Result<(), Violation> {
        self.kind.verify(S::inner(device))?;
        S::verify(device)
    }

    fn note(&self, device: &Self::Device, medium: &K::Medium) -> Result<(), Violation> {
        self.kind.note(S::inner(device), medium)
    }

    fn slack_bytes(&self) -> u64 {
        self.kind.slack_bytes() * S::SLACK
    }

    fn objects(&self, device: &Self::Device) -> u64 {
        S::objects(device)
    }

    fn snapshots(&self, device: &Self::Device) -> Vec<String> {
        S::snapshots(device)
    }

    fn inodes(&self) -> Inodes {
        self.kind.inodes()
    }

    fn worth(&self) -> Worth {
        self.kind.worth()
    }

    fn part<'a>(&self, device: &'a Self::Device) -> Option<&'a dyn Attach> {
        device.attachment().and(self.kind.part(S::inner(device)))
    }
}
