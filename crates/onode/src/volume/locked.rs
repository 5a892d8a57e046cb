//! Volumes of a build without encryption: what is encrypted is not read as if it were plain.

use crate::error::{Class, Error, Result};
use crate::open::access::volume_error;
use crate::spec::Spec;
use crate::volume::snapshots::Unlocked;
use onode_base::ErrorKind;
use onode_fs::volume::VOLUME;
use onode_object::{AttributeKey, ObjectDevice};
use std::sync::Arc;

/// The device as it is, if its volume is not encrypted.
pub(super) fn unlocked(spec: &Spec, device: Arc<dyn ObjectDevice>) -> Result<Unlocked> {
    // A volume in memory is made when it is opened, and holds nothing before.
    if spec.image_path().is_none() {
        return Ok(Unlocked::plain(device));
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
        Ok(None) | Err(_) => Ok(Unlocked::plain(device)),
    }
}
