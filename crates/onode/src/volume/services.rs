//! Services over the device of a volume: the one place where a device is wrapped before its files
//! are.
//!
//! What was ever compressed is read whatever options say; a device on which nothing ever was is
//! handed on as it is.

use crate::error::Result;
use crate::open::access::volume_error;
use crate::spec::Spec;
use onode_base::ErrorKind;
use onode_fs::volume::{VOLUME, VolumeInfo};
use onode_object::{Compression, ObjectDevice};
use onode_services::Compressed;
use std::sync::Arc;

/// What content on flash has to shrink by.
#[cfg(feature = "flash")]
const FLASH_UNIT_BYTES: usize = 512;

/// The device with the services that its volume has, or is to have from now on.
pub(super) fn wrapped(
    spec: &Spec,
    device: Arc<dyn ObjectDevice>,
    compression: Compression,
    notes: &mut Vec<String>,
) -> Result<Arc<dyn ObjectDevice>> {
    // A volume in memory is made when it is opened, and holds nothing before.
    if spec.image_path().is_none() && compression == Compression::Never {
        return Ok(device);
    }
    // Settings that cannot be read admit nothing: whoever uses them says why.
    let admit = || Ok(VolumeInfo::admit_compressed(device.as_ref()).unwrap_or_default());
    match Compressed::of_volume(&device, VOLUME, compression, admit) {
        Ok(Some(compressed)) => Ok(Arc::new(match spec {
            // Flash packs content by bytes; less than that is not worth an attribute.
            #[cfg(feature = "flash")]
            Spec::Flash(_) => compressed.in_units(FLASH_UNIT_BYTES),
            _ => compressed,
        })),
        Ok(None) => Ok(device),
        Err(error) if error.kind == ErrorKind::NoSpace => {
            notes.push("nothing is compressed: the volume is full, and has no room to say that it may be".to_owned());
            Ok(device)
        }
        Err(error) => Err(volume_error(format!("cannot open {spec}"), &error)),
    }
}
