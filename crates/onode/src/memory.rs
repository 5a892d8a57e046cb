//! Devices on byte-addressable memory: from a path to the memory and the device on it.

use crate::device::volume_error;
use crate::error::{Class, Error, Result};
use crate::nand::medium_error;
use crate::spec::{Memory, Spec};
use onode_base::ErrorKind;
use onode_media::real::{Flushing, MappedOptions, MappedPmem, Opening};
use onode_media::spaces::{Kind, Region, Space};
use onode_object::ObjectDevice;
use onode_scm::{FormatOptions, MountOptions, ScmDevice};
use std::path::Path;
use std::sync::Arc;

const fn options(memory: &Memory, opening: Opening) -> MappedOptions {
    let flushing = if memory.flush { Flushing::Always } else { Flushing::Detect };
    MappedOptions { opening, flushing, shared: false, reserve: 1 << 40 }
}

/// The name of the space that a new volume's objects lie in.
const OBJECTS: &str = "objects";

/// A device in a space of a region.
pub(crate) type Device = ScmDevice<Space<MappedPmem>>;

/// Opens the device of a spec. One without a path is made on the spot.
pub(crate) fn open(spec: &Spec, memory: &Memory, read_only: bool, uuid: [u8; 16]) -> Result<Arc<dyn ObjectDevice>> {
    let what = || format!("cannot open {spec}");
    let Some(path) = &memory.path else {
        let length = memory.bytes().next_multiple_of(4096);
        let mapped = MappedPmem::anonymous(length, &options(memory, Opening::New(length)));
        let mapped = mapped.map_err(|error| Error::medium(what(), &error))?;
        return Ok(Arc::new(format(spec, memory, mapped, uuid)?));
    };
    Ok(Arc::new(mount(spec, memory, path, read_only)?))
}

/// Opens the device at a path.
pub(crate) fn mount(spec: &Spec, memory: &Memory, path: &Path, read_only: bool) -> Result<Device> {
    let what = || format!("cannot open {spec}");
    let opening = if read_only { Opening::ReadOnly } else { Opening::Existing };
    let mapped = MappedPmem::open(path, &options(memory, opening)).and_then(Region::open);
    let region = mapped.map_err(|error| medium_error(what(), path, &error))?;
    let Some(space) = region.list().into_iter().find(|space| space.kind == Kind::Manager) else {
        return Err(Error::new(Class::NotAnImage, what(), "it has no space for objects")
            .hint(format!("`onode spaces list {}` shows what it has", path.display())));
    };
    let space = region.space(&space.name).map_err(|error| medium_error(what(), path, &error))?;
    ScmDevice::mount(space, &MountOptions { read_only }).map_err(|error| match error.kind {
        ErrorKind::Invalid if error.detail.contains("format") => Error::new(Class::NewerFormat, what(), error.detail),
        _ => volume_error(what(), &error),
    })
}

/// Makes a memory of its own at `path` with a device on it.
pub(crate) fn create(
    spec: &Spec,
    path: &Path,
    uuid: [u8; 16],
    fill: impl FnOnce(&dyn ObjectDevice) -> Result<()>,
) -> Result<()> {
    let Spec::Scm(memory) = spec else { return Ok(()) };
    let what = || format!("cannot make {spec}");
    // Left behind by a try that was interrupted.
    let _ = std::fs::remove_file(path);
    let opening = Opening::New(memory.bytes().next_multiple_of(4096));
    let mapped = MappedPmem::open(path, &options(memory, opening));
    let mapped = mapped.map_err(|error| medium_error(what(), path, &error))?;
    let device = format(spec, memory, mapped, uuid)?;
    fill(&device)?;
    device.close().map_err(|error| volume_error(what(), &error))
}

fn format(spec: &Spec, memory: &Memory, mapped: MappedPmem, uuid: [u8; 16]) -> Result<Device> {
    let what = || format!("cannot make {spec}");
    let space = Region::format(mapped, uuid, true).and_then(|region| {
        let length = memory.objects.unwrap_or_else(|| region.largest_free());
        region.create(OBJECTS, Kind::Manager, length)
    });
    let space = space.map_err(|error| Error::medium(what(), &error))?;
    let options = FormatOptions { uuid, chunk_bytes: memory.chunk };
    ScmDevice::format(space, &options).map_err(|error| {
        let class = match error.kind {
            ErrorKind::Invalid | ErrorKind::NoSpace => Class::BadSize,
            _ => Class::of_device(&error),
        };
        Error::new(class, what(), error.to_string())
    })
}
