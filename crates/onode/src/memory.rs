//! Devices on byte-addressable memory: from a path to the memory and the device on it.

use crate::device::volume_error;
use crate::error::{Class, Error, Result};
use crate::face::BlockFace;
use crate::nand::medium_error;
use crate::spaces::MappedSpace;
use crate::spec::{Memory, Spec};
use onode_base::ErrorKind;
use onode_media::Pmem;
use onode_media::real::{Flushing, MappedOptions, MappedPmem, Opening};
use onode_media::spaces::{Kind, Region};
use onode_object::ObjectDevice;
use onode_scm::allocator::{Allocator, Process};
use onode_scm::{FormatOptions, Mode, MountOptions, ScmDevice};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

const fn options(memory: &Memory, opening: Opening) -> MappedOptions {
    let flushing = match memory.mode {
        Mode::Mem => Flushing::AtTheEnd,
        _ if memory.flush => Flushing::Always,
        _ => Flushing::Detect,
    };
    MappedOptions { opening, flushing, shared: false, reserve: 1 << 40 }
}

/// The name of the space that a new volume's objects lie in.
const OBJECTS: &str = "objects";

/// A device in a space of a region.
pub type Device = ScmDevice<MappedSpace>;

/// A device and the spaces beside it.
type Opened = (Arc<dyn ObjectDevice>, Vec<BlockFace>);

/// Opens the device of a spec. One without a path is made on the spot.
pub(crate) fn open(spec: &Spec, memory: &Memory, read_only: bool, uuid: [u8; 16]) -> Result<Opened> {
    let device = open_device(spec, memory, read_only, uuid)?;
    let faces = faces_beside(spec, &device, read_only)?;
    Ok((device, faces))
}

/// The spaces beside a device, each like a block device.
pub(crate) fn faces_beside(spec: &Spec, device: &Device, read_only: bool) -> Result<Vec<BlockFace>> {
    let faces = BlockFace::of_region(device.memory().region(), read_only);
    faces.map_err(|error| Error::medium(format!("cannot open the spaces of {spec}"), &error))
}

/// The same as what it is.
pub(crate) fn open_device(spec: &Spec, memory: &Memory, read_only: bool, uuid: [u8; 16]) -> Result<Arc<Device>> {
    let what = || format!("cannot open {spec}");
    let Some(path) = &memory.path else {
        let length = memory.bytes().next_multiple_of(4096);
        let mapped = MappedPmem::anonymous(length, &options(memory, Opening::New(length)));
        let mapped = mapped.map_err(|error| Error::medium(what(), &error))?;
        return Ok(Arc::new(format(spec, memory, mapped, uuid, true)?));
    };
    Ok(Arc::new(mount(spec, memory, path, read_only)?))
}

/// Opens the device at a path.
pub(crate) fn mount(spec: &Spec, memory: &Memory, path: &Path, read_only: bool) -> Result<Device> {
    let what = || format!("cannot open {spec}");
    let opening = if read_only { Opening::ReadOnly } else { Opening::Existing };
    let mapped = MappedPmem::open(path, &options(memory, opening)).and_then(|mapped| Region::open(Arc::new(mapped)));
    let region = mapped.map_err(|error| medium_error(what(), path, &error))?;
    let Some(space) = region.list().into_iter().find(|space| space.kind == Kind::Manager) else {
        return Err(Error::new(Class::NotAnImage, what(), "it has no space for objects")
            .hint(format!("`onode spaces list {}` shows what it has", path.display())));
    };
    let space = region.space(&space.name).map_err(|error| medium_error(what(), path, &error))?;
    ScmDevice::mount(space, &MountOptions { read_only, mode: memory.mode }).map_err(|error| match error.kind {
        ErrorKind::Invalid if error.detail.contains("format") => Error::new(Class::NewerFormat, what(), error.detail),
        _ => volume_error(what(), &error),
    })
}

/// The blocks of a volume on memory, for a heap: memory of this process until they are made files.
pub struct HeapMemory {
    /// Hands out blocks under a lease of this process.
    pub blocks: Allocator<Arc<MappedSpace>>,
    /// What addresses of blocks count in.
    pub memory: Arc<MappedSpace>,
    /// Where it lies in this process.
    pub base: NonNull<u8>,
}

impl HeapMemory {
    pub(crate) fn of(device: &Device) -> Result<Self> {
        let what = "cannot use the volume as a heap";
        let memory = device.memory();
        let base = memory.address().ok_or_else(|| Error::new(Class::General, what, "it is not in memory"))?;
        let mut blocks = device.blocks().map_err(|error| Error::device(what, &error))?;
        let process = |id: u64| Process { id, started: started(id).unwrap_or_default() };
        let is_dead = |process: Process| started(process.id) != Some(process.started);
        if blocks.join(process(std::process::id().into()), is_dead).is_none() {
            let why = "too many processes use its blocks";
            return Err(Error::new(Class::InUse, what, why));
        }
        Ok(Self { blocks, memory, base })
    }
}

/// When a process was started, in ticks since the host was; `None` if there is no such process.
fn started(process: u64) -> Option<u64> {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold anything; 20 fields follow it up to the start.
    line.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
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
    let device = format(spec, memory, mapped, uuid, true)?;
    fill(&device)?;
    device.close().map_err(|error| volume_error(what(), &error))
}

/// Makes the device on a device of persistent memory, all of it. With `replace` what it holds is lost.
pub(crate) fn create_on_device(
    spec: &Spec,
    path: &Path,
    replace: bool,
    uuid: [u8; 16],
    fill: impl FnOnce(&dyn ObjectDevice) -> Result<()>,
) -> Result<()> {
    let Spec::Scm(memory) = spec else { return Ok(()) };
    let what = || format!("cannot make {spec}");
    let mapped = MappedPmem::open(path, &options(memory, Opening::Existing));
    let mapped = mapped.map_err(|error| medium_error(what(), path, &error))?;
    if !replace && is_used(&mapped) {
        return Err(Error::new(Class::Exists, what(), "the device holds something already")
            .hint("give another device, or drop what it holds with --force"));
    }
    let device = format(spec, memory, mapped, uuid, false)?;
    fill(&device)?;
    device.close().map_err(|error| volume_error(what(), &error))
}

/// Whether the start of a memory holds anything.
pub(crate) fn is_used(memory: &dyn Pmem) -> bool {
    /// File systems begin within so many bytes.
    const LOOKED_AT: u64 = 128 << 10;
    let mut start = vec![0; LOOKED_AT.min(memory.length()) as usize];
    memory.read(0, &mut start);
    start.iter().any(|byte| *byte != 0)
}

fn format(spec: &Spec, memory: &Memory, mapped: MappedPmem, uuid: [u8; 16], is_zero: bool) -> Result<Device> {
    let what = || format!("cannot make {spec}");
    let space = Region::format(Arc::new(mapped), uuid, is_zero).and_then(|region| {
        let length = memory.objects.unwrap_or_else(|| region.largest_free());
        region.create(OBJECTS, Kind::Manager, length)
    });
    let space = space.map_err(|error| Error::medium(what(), &error))?;
    let options = FormatOptions { uuid, chunk_bytes: memory.chunk, mode: memory.mode };
    ScmDevice::format(space, &options).map_err(|error| {
        let class = match error.kind {
            ErrorKind::Invalid | ErrorKind::NoSpace => Class::BadSize,
            _ => Class::of_device(&error),
        };
        Error::new(class, what(), error.to_string())
    })
}
