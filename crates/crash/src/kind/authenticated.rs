//! Authenticated volumes over any kind of device that nobody else changes: after each cut all that
//! is found must be what was stored last, or the device itself refuses it.

use crate::kind::encrypted::{HOLDERS, header};
use crate::kind::service::Service;
use onode_fs::volume::VOLUME;
use onode_object::{Error, ErrorKind, ObjectDevice, ObjectId};
use onode_services::{Authenticated, Encrypted, KeyHeader, MasterKey, Session};
use std::sync::Arc;

/// Names of shapes begin with this.
pub const PREFIX: &str = "authenticated-";

/// The service, under that of encryption.
#[derive(Clone, Copy, Debug)]
pub struct Authenticating;

impl Service for Authenticating {
    type Over<D: ObjectDevice + 'static> = Encrypted<Authenticated<D>>;
    /// A small object has a sum, and so has its bucket.
    const SLACK: u64 = 3;

    fn wrap<D: ObjectDevice + 'static>(device: Arc<D>) -> onode_object::Result<Self::Over<D>> {
        let (master, session) = (MasterKey::new([1; 32]), Session::new([2; 32]));
        let is_absent = |object, device: &dyn ObjectDevice| {
            device.stat(object).is_err_and(|error| error.kind == ErrorKind::NotFound)
        };
        let is_new = is_absent(ObjectId::AUTHENTICATED, device.as_ref());
        let sums = if is_new { Authenticated::create(device, &master) } else { Authenticated::open(device, &master) };
        let sums = Arc::new(sums?);
        if is_absent(VOLUME, sums.as_ref()) {
            return Encrypted::create(sums, header(&master)?.authenticated(&master), &master, session);
        }
        let header = KeyHeader::load(sums.as_ref(), &HOLDERS)?;
        let header = header.ok_or_else(|| Error::new(ErrorKind::Corrupt, "nothing says that it is encrypted"))?;
        Encrypted::open(sums, header, &master, session)
    }

    fn inner<D: ObjectDevice + 'static>(over: &Self::Over<D>) -> &D {
        over.inner().inner()
    }
}
