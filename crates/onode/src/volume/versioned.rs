//! A device with its snapshots, and what stands on it: opening both, and what can be wrong with
//! them in words for people.

use crate::error::{Class, Error, Result};
use crate::open::access::volume_error;
use crate::spec::Spec;
use onode_base::ErrorKind;
use onode_object::ObjectDevice;
use onode_services::Versioned;
use std::sync::Arc;

/// What stands on a device, on one that shows how it was once.
pub(super) type OfSnapshot = dyn Fn(Arc<dyn ObjectDevice>) -> Arc<dyn ObjectDevice> + Send + Sync;

/// The device of a volume that may be encrypted.
pub(super) struct Unlocked {
    pub(super) device: Arc<dyn ObjectDevice>,
    pub(super) of_snapshot: Arc<OfSnapshot>,
    /// Of one that is.
    #[cfg(feature = "encryption")]
    pub(super) directories: Option<Arc<dyn onode_services::DirectoryKeys>>,
}

impl Unlocked {
    /// That of one that is not.
    pub(super) fn plain(device: Arc<dyn ObjectDevice>) -> Self {
        Self {
            device,
            of_snapshot: Arc::new(|snapshot| snapshot),
            #[cfg(feature = "encryption")]
            directories: None,
        }
    }
}

/// A device of which there can be snapshots, if there can be some.
pub(super) struct VersionedDevice {
    pub(super) device: Arc<dyn ObjectDevice>,
    pub(super) versioned: Option<Arc<Versioned<dyn ObjectDevice>>>,
}

/// The device with its snapshots. What it says of them may be unreadable: then it can be looked at,
/// and with consent to loss it is used without them.
pub(super) fn versioned(
    spec: &Spec,
    device: Arc<dyn ObjectDevice>,
    may_lose: bool,
    notes: &mut Vec<String>,
) -> Result<VersionedDevice> {
    let opened = match Versioned::open(Arc::clone(&device)) {
        Err(error) if error.kind == ErrorKind::Corrupt && may_lose => {
            notes
                .push(format!("what the volume says of its snapshots cannot be read, and they are not shown: {error}"));
            Some(Versioned::open_giving_up(Arc::clone(&device)))
        }
        opened => opened.map_err(|error| {
            // It is left as it was found.
            let _ = device.close();
            let told = volume_error(format!("cannot open {spec}"), &error);
            match error.kind {
                ErrorKind::Corrupt => Error { class: Class::Loss, ..told }.hint(
                    "restore the image from a copy, or read it with `-o ro`; --accept-loss gives up its snapshots",
                ),
                _ => told,
            }
        })?,
    };
    Ok(match opened {
        Some(versioned) => {
            let versioned = Arc::new(versioned);
            VersionedDevice {
                device: Arc::<Versioned<dyn ObjectDevice>>::clone(&versioned),
                versioned: Some(versioned),
            }
        }
        None => VersionedDevice { device, versioned: None },
    })
}

/// A failure of the service of snapshots, in words for people.
pub(crate) fn told(what: String, error: &onode_object::Error) -> Error {
    match error.kind {
        ErrorKind::Invalid => Error::new(Class::Usage, what, error.detail.clone()),
        ErrorKind::Exists => Error::new(Class::Exists, what, error.detail.clone())
            .hint("choose another name, or delete that one first: onode snapshot delete"),
        ErrorKind::NotFound => Error::new(Class::NotFound, what, error.detail.clone())
            .hint("`onode snapshot list` shows those that there are"),
        ErrorKind::Busy => {
            Error::new(Class::InUse, what, error.detail.clone()).hint("delete the clone first: onode clone delete")
        }
        _ => volume_error(what, error),
    }
}

/// The same about a clone.
pub(crate) fn told_of_clone(what: String, error: &onode_object::Error) -> Error {
    match error.kind {
        ErrorKind::Exists => {
            Error::new(Class::Exists, what, error.detail.clone()).hint("choose another name, or delete that one first")
        }
        ErrorKind::NotFound => Error::new(Class::NotFound, what, error.detail.clone())
            .hint("`onode clone list` and `onode snapshot list` show what there is"),
        _ => told(what, error),
    }
}
