//! The services that this build lacks: a volume that needs one is refused, and not read as if it
//! were plain.
//!
//! Each module stands in the place of what the feature of its name would bring.

#[cfg(not(feature = "compression"))]
pub(super) mod compression {
    use crate::error::{Class, Error, Result};
    use crate::open::access::volume_error;
    use crate::spec::Spec;
    use onode_base::ErrorKind;
    use onode_fs::volume::{VOLUME, VolumeInfo};
    use onode_object::{AttributeKey, Compression, ObjectDevice};
    use std::sync::Arc;

    /// Where the service that compresses says that it may have done so.
    const MARK: AttributeKey = AttributeKey::VOLUME_COMPRESSED;

    /// The device as it is, if all that is on it is as it was written.
    pub(in crate::volume) fn wrapped(
        spec: &Spec,
        device: Arc<dyn ObjectDevice>,
        compression: Compression,
        _: &mut Vec<String>,
    ) -> Result<Arc<dyn ObjectDevice>> {
        let what = || format!("cannot open {spec}");
        if compression != Compression::Never {
            return Err(lacks_compression(what(), "nothing can be compressed"));
        }
        // A volume in memory is made when it is opened, and holds nothing before.
        if spec.image_path().is_none() {
            return Ok(device);
        }
        match device.attribute(VOLUME, MARK) {
            Ok(Some(_)) => Err(lacks_compression(what(), "content of this volume may be compressed")),
            Ok(None) => match VolumeInfo::load(device.as_ref()) {
                Ok(info) if info.is_compressed() => {
                    Err(lacks_compression(what(), "content of this volume may be compressed"))
                }
                // Settings that cannot be read are for whoever uses them to tell of. The mark says
                // enough.
                Ok(_) | Err(_) => Ok(device),
            },
            // Neither mark nor settings: no file can be opened, but a repair would make settings
            // anew that admit nothing.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Corrupt) => {
                if device.info().read_only.is_some() {
                    Ok(device)
                } else {
                    Err(lacks_compression(what(), "whether content is compressed cannot be seen any more"))
                }
            }
            Err(error) => Err(volume_error(what(), &error)),
        }
    }

    fn lacks_compression(what: String, why: &str) -> Error {
        Error::new(Class::Usage, what, format!("this build of Onode has no compression: {why}"))
            .hint("enable the feature `compression` of the crate `onode`")
    }
}

#[cfg(not(feature = "encryption"))]
pub(super) mod encryption {
    use crate::error::{Class, Error, Result};
    use crate::open::access::volume_error;
    use crate::spec::Spec;
    use crate::volume::layers::Opening;
    use crate::volume::versioned::Unlocked;
    use onode_base::ErrorKind;
    use onode_fs::volume::VOLUME;
    use onode_object::{AttributeKey, ObjectDevice};
    use std::convert::Infallible;
    use std::sync::Arc;

    /// No volume has sums here.
    pub(in crate::volume) type Sums = dyn ObjectDevice;

    pub(in crate::volume) fn sums_of(
        _: &Spec,
        _: &Arc<dyn ObjectDevice>,
        _: Option<&Infallible>,
        _: Opening,
        _: &mut Vec<String>,
    ) -> Result<Option<Arc<Sums>>> {
        Ok(None)
    }

    pub(in crate::volume) fn unlocked(
        _: &Spec,
        device: Arc<dyn ObjectDevice>,
        _: Option<Infallible>,
    ) -> Result<Unlocked> {
        Ok(Unlocked::plain(device))
    }

    /// Refuses an encrypted volume: there is no key of any.
    pub(in crate::volume) fn key_of(spec: &Spec, device: &dyn ObjectDevice) -> Result<Option<Infallible>> {
        // A volume in memory is made when it is opened, and holds nothing before.
        if spec.image_path().is_none() {
            return Ok(None);
        }
        let what = format!("cannot open {spec}");
        match device.attribute(VOLUME, AttributeKey::VOLUME_ENCRYPTED) {
            Ok(Some(_)) => {
                Err(Error::new(Class::Usage, what, "this build of Onode has no encryption: the volume is encrypted")
                    .hint("enable the feature `encryption` of the crate `onode`"))
            }
            Err(error) if !matches!(error.kind, ErrorKind::NotFound | ErrorKind::Corrupt) => {
                Err(volume_error(what, &error))
            }
            // What cannot be read is for whoever uses it to tell of.
            Ok(None) | Err(_) => Ok(None),
        }
    }
}

#[cfg(not(feature = "transactions"))]
pub(super) mod transactions {
    use crate::error::{Class, Error, Result};
    use crate::spec::Spec;
    use onode_object::{AttributeKey, ObjectDevice, ObjectId};

    /// Refuses a volume on which a transaction is under way.
    pub(in crate::volume) fn refuse_unsettled(spec: &Spec, device: &dyn ObjectDevice) -> Result<()> {
        // Whatever else is wrong with it is told by who uses it.
        let Ok(Some(_)) = device.attribute(ObjectId::STAGED, AttributeKey::STAGED_STATE) else { return Ok(()) };
        let why = "this build of Onode has no transactions: one is not in place on this volume";
        Err(Error::new(Class::Usage, format!("cannot open {spec}"), why)
            .hint("enable the feature `transactions` of the crate `onode`"))
    }
}
