//! Volumes of a build without compression: what may be compressed is not read as if it were plain,
//! and nothing is compressed.

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
pub(super) fn wrapped(
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
        // Neither mark nor settings: no file can be opened, but a repair would make settings anew
        // that admit nothing.
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
