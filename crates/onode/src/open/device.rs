//! From specs to devices: the one place that names every device.
//!
//! An image comes into being under another name and gets its own when it is complete, so an
//! interrupted `create` leaves nothing that could be taken for a volume.

use crate::error::{Class, Error, Result};
use crate::host::random_bytes;
use crate::open::access::{Access, Opened, volume_error};
use crate::open::beside::{self, Both};
use crate::open::distinct::check_distinct;
use crate::open::flash::{flash_options, format_options};
use crate::open::memory::{self, Users};
use crate::open::missing::refuse_missing_devices;
use crate::open::nand::{self, Place, medium_error, open_nand};
use crate::open::raw;
use crate::open::region::{self, Site};
use crate::open::replace::{in_its_place, lock_replaced};
use crate::open::tiers;
use crate::spec::{Beside, Medium, Memory, Spec};
use onode_flash::{FlashDevice, FormatOptions};
use onode_media::image::{CreateOptions, ImageNand};
use onode_media::sim::{SimNand, SimOptions};
use onode_media::{Geometry, Nand};
use onode_object::{ErrorKind, ObjectDevice, RamDevice};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

/// Opens the device of a spec, and what lies beside it on the same medium. One in memory is empty.
pub(crate) fn open(spec: &Spec, access: Access, users: Users, uuid: [u8; 16]) -> Result<Opened> {
    let what = || format!("cannot open {spec}");
    check_distinct("open", spec)?;
    let device: Arc<dyn ObjectDevice> = match spec {
        Spec::Scm(memory) => {
            let (device, faces) = memory::open(spec, memory, access, users, uuid)?;
            return Ok(Opened { device, faces, notes: Vec::new() });
        }
        Spec::Tier(disks) => return tiers::open(spec, disks, access, [uuid, random_bytes()?]),
        Spec::Ram { size } => Arc::new(RamDevice::new(*size)),
        Spec::Flash { medium: Medium::Image(path) | Medium::Direct(path), shape, policies, beside: Some(memory) } => {
            return beside::open(Both { spec, image: path, shape, policies, beside: memory }, access);
        }
        Spec::Flash { medium: Medium::Simulator, shape, policies, beside: memory } => {
            let nand = SimNand::new(shape.geometry()?, SimOptions::default());
            let nand = nand.map_err(|error| Error::medium(what(), &error))?;
            let options = format_options(shape, policies, uuid, &format!("cannot make {spec}"))?;
            Arc::new(format_flash(spec, nand, &options, memory.as_ref(), None)?)
        }
        Spec::Flash { medium: Medium::Image(path) | Medium::Direct(path), shape, policies, beside: None } => {
            let nand = open_nand(spec, path, shape, access.read_only)?;
            let device = FlashDevice::mount(nand, &flash_options(policies, access));
            Arc::new(device.map_err(|error| match error.kind {
                ErrorKind::PartNeeded => {
                    Error::new(Class::Usage, what(), error.detail).hint(format!(
                        "write flash+scm:{},MEMORY; a new memory is filled from the flash",
                        path.display()
                    ))
                }
                // A chip says nothing of itself: that there is no superblock is all that can be
                // seen.
                ErrorKind::Invalid if nand::is_chip(path) => {
                    let found = onode_media::Error::new(onode_media::MediaErrorKind::NotAnImage, error.detail);
                    medium_error(what(), path, &found)
                }
                _ => volume_error(what(), &error),
            })?)
        }
    };
    Ok(Opened { device, faces: Vec::new(), notes: Vec::new() })
}

/// Makes the image of a spec and lets `fill` put the first content on it.
pub(crate) fn create(
    spec: &Spec,
    replace: bool,
    uuid: [u8; 16],
    fill: impl FnOnce(&dyn ObjectDevice) -> Result<()>,
) -> Result<()> {
    check_distinct("make", spec)?;
    refuse_missing_devices(&format!("cannot make {spec}"), spec)?;
    if let Spec::Scm(memory @ Memory { path: Some(path), .. }) = spec {
        if let Site::Space(space) = region::site(spec, memory, path, replace)? {
            return region::create(spec, memory, space, uuid, fill);
        }
        if std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_char_device()) {
            return memory::create_on_device(spec, path, replace, uuid, fill);
        }
        let lock = lock_replaced(path, replace)?;
        return in_its_place(path, lock.is_some(), |unfinished| memory::create(spec, unfinished, uuid, fill));
    }
    if let Spec::Tier(disks) = spec {
        return tiers::create(spec, disks, replace, [uuid, random_bytes()?], fill);
    }
    let (Spec::Flash { medium, shape, policies, beside: memory }, Some(path)) = (spec, spec.image_path()) else {
        return Err(Error::new(Class::Usage, format!("cannot make {spec}"), "it lives in memory only")
            .hint("it is made when it is used: just mount it"));
    };
    let direct = matches!(medium, Medium::Direct(_));
    match nand::place_to_make(spec, path)? {
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

fn create_image(
    image: &NewImage<'_>,
    format: &FormatOptions,
    fill: impl FnOnce(&dyn ObjectDevice) -> Result<()>,
) -> Result<()> {
    let NewImage { spec, path, geometry, memory, replace } = *image;
    let what = || format!("cannot make {spec}");
    let replaced = lock_replaced(path, replace)?;
    in_its_place(path, replaced.is_some(), |unfinished| {
        let options = CreateOptions { uuid: format.uuid, overwrite: true };
        let nand = ImageNand::create(unfinished, geometry, options);
        let nand = nand.map_err(|error| medium_error(what(), path, &error))?;
        in_places(memory, replace, |memory_path| {
            let device = format_flash(spec, nand, format, memory, memory_path)?;
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

fn format_flash(
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
