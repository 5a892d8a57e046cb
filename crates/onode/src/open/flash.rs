//! Flash, alone or with its index in a memory beside it: how its volumes are made and mounted.

pub mod beside;
mod check;
pub mod dump;
mod make;
mod nand;
pub mod pages;
mod raw;

use crate::error::{Class, Error, Result};
use crate::open::access::{Access, NewVolume, Opened, Users, volume_error};
use crate::open::failure::medium_error;
use crate::open::kind::DeviceKind;
use crate::open::medium::{MediumRepaired, MediumReport, lives_in_memory};
use crate::spec::Spec;
use crate::spec::flash::{Flash, Medium, Parity, Policies, Shape};
use beside::Both;
use nand::open_nand;
use onode_flash::FlashDevice;
use onode_media::sim::{SimNand, SimOptions};
use onode_object::ErrorKind;
use onode_services::Dropped;
use std::path::Path;
use std::sync::Arc;

impl DeviceKind for Flash {
    fn open(&self, spec: &Spec, access: Access, _: Users, uuid: [u8; 16]) -> Result<Opened> {
        let Self { medium, shape, policies, beside } = self;
        let device = match (medium, beside) {
            (Medium::Image(path) | Medium::Direct(path), Some(memory)) => {
                return beside::open(Both { spec, image: path, shape, policies, beside: memory }, access);
            }
            (Medium::Image(path) | Medium::Direct(path), None) => {
                let device = open_alone(spec, self, path, access)?;
                check_parity(spec, shape, &device)?;
                device
            }
            (Medium::Simulator, memory) => {
                let nand = SimNand::new(shape.geometry()?, SimOptions::default());
                let nand = nand.map_err(|error| Error::medium(format!("cannot open {spec}"), &error))?;
                let options = format_options(shape, policies, uuid, &format!("cannot make {spec}"))?;
                make::format_flash(spec, nand, &options, memory.as_ref(), None)?
            }
        };
        Ok(Opened { device: Arc::new(device), faces: Vec::new(), notes: Vec::new() })
    }

    fn settings(&self) -> &[&str] {
        // One in memory is made when it is opened, as one that is made for later is.
        if matches!(self.medium, Medium::Simulator) {
            &[]
        } else {
            &["node-cache", "page-cache", "checkpoint", "clean-ahead"]
        }
    }

    fn create(&self, spec: &Spec, new: NewVolume<'_>) -> Result<()> {
        make::create(spec, self, image_of(spec)?, new)
    }

    fn check(&self, spec: &Spec, progress: &mut dyn FnMut(u64, u64)) -> Result<MediumReport> {
        check::check(spec, self, image_of(spec)?, progress)
    }

    fn repair(&self, spec: &Spec, access: Access, dropped: &mut Dropped) -> Result<MediumRepaired> {
        check::repair(check::Repair { spec, flash: self, image: image_of(spec)?, access }, dropped)
    }
}

fn image_of(spec: &Spec) -> Result<&Path> {
    spec.image_path().ok_or_else(|| lives_in_memory(spec))
}

/// Opens flash without a memory beside it.
fn open_alone(spec: &Spec, flash: &Flash, path: &Path, access: Access) -> Result<FlashDevice> {
    let Flash { shape, policies, .. } = flash;
    let what = || format!("cannot open {spec}");
    let nand = open_nand(spec, path, shape, access.read_only)?;
    let device = FlashDevice::mount(nand, &flash_options(policies, access));
    device.map_err(|error| match error.kind {
        ErrorKind::PartNeeded => Error::new(Class::Usage, what(), error.detail)
            .hint(format!("write flash+scm:{},MEMORY; a new memory is filled from the flash", path.display())),
        // A chip says nothing of itself: that there is no superblock is all that can be
        // seen.
        ErrorKind::Invalid if nand::is_chip(path) => {
            let found = onode_media::Error::new(onode_media::MediaErrorKind::NotAnImage, error.detail);
            medium_error(what(), path, &found)
        }
        _ => volume_error(what(), &error),
    })
}

/// Whether the volume has the parity that the spec says, if it says one: it is chosen once.
fn check_parity(spec: &Spec, shape: &Shape, device: &FlashDevice) -> Result<()> {
    let (most, usual) = device.parity_pages();
    let there = Parity { most, usual };
    if shape.parity.is_none_or(|said| said == there) {
        return Ok(());
    }
    Err(Error::new(Class::Usage, format!("cannot open {spec}"), format!("the volume has parity={there}"))
        .hint("leave parity out: only `onode mkfs --parity` gives a volume another one"))
}

/// How a volume on flash with these policies is mounted.
pub(crate) fn flash_options(policies: &Policies, access: Access) -> onode_flash::MountOptions {
    let Access { read_only, accept_loss, settings, .. } = access;
    let usual = onode_flash::MountOptions { read_only, accept_loss, policies: *policies, ..Default::default() };
    // What does not fit this computer's addresses is more memory than it has.
    let bytes = |chosen: Option<u64>| chosen.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    onode_flash::MountOptions {
        node_cache_bytes: bytes(settings.node_cache_bytes).unwrap_or(usual.node_cache_bytes),
        page_cache_bytes: bytes(settings.page_cache_bytes).unwrap_or(usual.page_cache_bytes),
        checkpoint_bytes: settings.checkpoint_bytes,
        clean_ahead: settings.clean_ahead.map(|segments| u32::try_from(segments).unwrap_or(u32::MAX)),
        ..usual
    }
}

/// How a volume on flash of this shape, with these policies, is made; `what` is what cannot be done
/// otherwise.
pub(crate) fn format_options(
    shape: &Shape,
    policies: &Policies,
    uuid: [u8; 16],
    what: &str,
) -> Result<onode_flash::FormatOptions> {
    let blocks_per_segment = u16::try_from(shape.segment_blocks()).map_err(|_| {
        Error::new(Class::BadSize, what, format!("blocks-per-segment={} is too large", shape.segment_blocks()))
    })?;
    let Parity { most, usual } = shape.parity.unwrap_or_default();
    Ok(onode_flash::FormatOptions {
        blocks: None,
        uuid,
        blocks_per_segment: Some(blocks_per_segment),
        parity_pages: most,
        chosen_parity: usual,
        policies: *policies,
    })
}
