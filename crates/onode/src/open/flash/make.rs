//! Making a volume on flash.
//!
//! An image comes into being under another name and gets its own when it is complete, so an
//! interrupted `create` leaves nothing that could be taken for a volume.

use crate::error::{Class, Error, Result};
use crate::open::access::{Fill, NewVolume, volume_error};
use crate::open::failure::medium_error;
use crate::open::flash::{beside, format_options, raw};
use crate::open::place::{Place, place_to_make};
use crate::open::replace::{in_its_place, lock_replaced};
use crate::spec::Spec;
use crate::spec::flash::{Beside, Flash, Medium};
use onode_flash::{FlashDevice, FormatOptions};
use onode_media::image::{CreateOptions, ImageNand};
use onode_media::{Geometry, Nand};
use onode_object::{ErrorKind, ObjectDevice};
use std::path::Path;
use std::sync::Arc;

/// Makes the volume at `path`.
pub(crate) fn create(spec: &Spec, flash: &Flash, path: &Path, new: NewVolume<'_>) -> Result<()> {
    let Flash { medium, shape, policies, beside: memory } = flash;
    let NewVolume { replace, uuid, fill, .. } = new;
    let direct = matches!(medium, Medium::Direct(_));
    match place_to_make(spec, path)? {
        Place::File if !direct => {
            let options = format_options(shape, policies, uuid, &format!("cannot make {spec}"))?;
            let image = NewImage { spec, path, geometry: shape.geometry()?, memory: memory.as_ref(), replace };
            create_image(&image, &options, fill)
        }
        place => {
            let made = raw::prepare(spec, path, place, &raw::Wanted { shape, replace, uuid })?;
            let options = format_options(&made.shape, policies, uuid, &format!("cannot make {spec}"))?;
            in_places(memory.as_ref(), replace, |memory_path| {
                let device = format_flash(spec, made.nand, &options, memory.as_ref(), memory_path)?;
                let device: Arc<dyn ObjectDevice> = Arc::new(device);
                fill(&device)?;
                device.close().map_err(|error| volume_error(format!("cannot make {spec}"), &error))
            })?;
            made.file.keep();
            Ok(())
        }
    }
}

/// An image file that is to be made.
struct NewImage<'a> {
    spec: &'a Spec,
    path: &'a Path,
    geometry: Geometry,
    memory: Option<&'a Beside>,
    replace: bool,
}

fn create_image(image: &NewImage<'_>, format: &FormatOptions, fill: &Fill<'_>) -> Result<()> {
    let NewImage { spec, path, geometry, memory, replace } = *image;
    let what = || format!("cannot make {spec}");
    let replaced = lock_replaced(path, replace)?;
    in_its_place(path, replaced.is_some(), |unfinished| {
        let options = CreateOptions { uuid: format.uuid, overwrite: true };
        let nand = ImageNand::create(unfinished, geometry, options);
        let nand = nand.map_err(|error| medium_error(what(), path, &error))?;
        in_places(memory, replace, |memory_path| {
            let device: Arc<dyn ObjectDevice> = Arc::new(format_flash(spec, nand, format, memory, memory_path)?);
            fill(&device)?;
            device.close().map_err(|error| volume_error(what(), &error))
        })
    })
}

/// Has the file of the memory beside a volume made, if there is one.
fn in_places(memory: Option<&Beside>, replace: bool, make: impl FnOnce(Option<&Path>) -> Result<()>) -> Result<()> {
    match memory {
        Some(memory) => beside::in_memory_place(memory, replace, make),
        None => make(None),
    }
}

/// Makes the device of flash that is all erased.
pub(crate) fn format_flash(
    spec: &Spec,
    nand: impl Nand + 'static,
    options: &FormatOptions,
    memory: Option<&Beside>,
    memory_path: Option<&Path>,
) -> Result<FlashDevice> {
    if let Some(memory) = memory {
        return beside::format(spec, nand, options, memory, memory_path);
    }
    let what = format!("cannot make {spec}");
    FlashDevice::format(nand, options, &onode_flash::MountOptions::default()).map_err(|error| {
        let class = if error.kind == ErrorKind::Invalid { Class::BadSize } else { Class::of_device(&error) };
        Error::new(class, what, error.to_string())
    })
}
