//! Devices on byte-addressable memory: from a path to the memory and the device on it.

use crate::error::{Class, Error, Result};
use crate::open::access::{Access, NewVolume, Users, volume_error};
use crate::open::failure::medium_error;
use crate::open::replace::is_used;
use crate::spec::Spec;
use crate::spec::memory::{Memory, other_mode};
use crate::volume::face::BlockFace;
use onode_base::ErrorKind;
use onode_media::real::{Flushing, MappedOptions, MappedPmem, Opening};
use onode_media::{MediaErrorKind, Pmem};
use onode_object::ObjectDevice;
use onode_scm::allocator::{Allocator, Process};
use onode_scm::{FormatOptions, LostDevice, Mode, MountOptions, ScmDevice, find_device};
use onode_spaces::{Kind, KnownSpace, Region};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

/// A space as a memory of its own, which may be shared by whoever needs it.
pub type MappedSpace = onode_spaces::Space<Arc<MappedPmem>>;

const fn options(memory: &Memory, opening: Opening) -> MappedOptions {
    let flushing = match memory.mode {
        Mode::Mem => Flushing::AtTheEnd,
        _ if memory.flush => Flushing::Always,
        _ => Flushing::Detect,
    };
    MappedOptions { opening, flushing, shared: false, reserve: 1 << 40, complete: false }
}

/// The name of the space that a new volume's objects lie in.
pub(crate) const OBJECTS: &str = "objects";

/// A device in a space of a region.
pub type Device = ScmDevice<MappedSpace>;

/// The spaces beside a device, each like a block device.
pub(crate) fn faces_beside(spec: &Spec, device: &Device, read_only: bool) -> Result<Vec<BlockFace>> {
    let faces = BlockFace::of_region(device.memory().region(), read_only);
    faces.map_err(|error| Error::medium(format!("cannot open the spaces of {spec}"), &error))
}

/// Opens the device of a spec. One without a path is made on the spot.
pub(crate) fn open_device(
    spec: &Spec,
    memory: &Memory,
    access: Access,
    users: Users,
    uuid: [u8; 16],
) -> Result<Arc<Device>> {
    let what = || format!("cannot open {spec}");
    let Some(path) = &memory.path else {
        let length = memory.bytes().next_multiple_of(4096);
        let mapped = MappedPmem::anonymous(length, &options(memory, Opening::New(length)));
        let mapped = mapped.map_err(|error| Error::medium(what(), &error))?;
        return Ok(Arc::new(format(spec, memory, mapped, uuid, true)?));
    };
    let device = match users {
        Users::Sharing if !access.read_only => share(spec, memory, path, access)?,
        Users::Sharing | Users::Alone => mount(spec, memory, path, access)?,
    };
    match memory.exclusive.filter(|wanted| *wanted != device.is_exclusive()) {
        None => Ok(Arc::new(device)),
        Some(wanted) => {
            let (is, wanted) =
                if wanted { ("shared by processes", "on") } else { ("for one process at a time", "off") };
            Err(Error::new(Class::Usage, what(), format!("it is {is}, and stays so until it is changed"))
                .hint(format!("onode tune {} exclusive={wanted}", path.display())))
        }
    }
}

const fn mount_options(memory: &Memory, access: Access) -> MountOptions {
    let Access { read_only, accept_loss, .. } = access;
    MountOptions { read_only, accept_loss, mode: memory.mode }
}

/// Opens the device at a path, with nobody else who writes.
pub(crate) fn mount(spec: &Spec, memory: &Memory, path: &Path, access: Access) -> Result<Device> {
    let opening = if access.read_only { Opening::ReadOnly } else { Opening::Existing };
    let mapped = MappedPmem::open(path, &options(memory, opening));
    let mapped = mapped.map_err(|error| medium_error(format!("cannot open {spec}"), path, &error))?;
    let space = space_for_objects(spec, path, Arc::new(mapped), access)?;
    // One that is damaged is looked at below.
    if memory.mode != Mode::Atomic && onode_scm::is_exclusive(&space).unwrap_or(false) {
        return Err(other_mode(format!("cannot open {spec}"), memory.mode));
    }
    ScmDevice::mount(space, &mount_options(memory, access))
        .map_err(|error| volume_error(format!("cannot open {spec}"), &error))
}

/// Opens the device at a path together with the processes that use it already, and lets more of
/// them in.
fn share(spec: &Spec, memory: &Memory, path: &Path, access: Access) -> Result<Device> {
    let failed = |error: &onode_media::Error| medium_error(format!("cannot open {spec}"), path, error);
    let options = MappedOptions { shared: true, ..options(memory, Opening::Existing) };
    let mapped = Arc::new(MappedPmem::open(path, &options).map_err(|error| failed(&error))?);
    let space = space_for_objects(spec, path, Arc::clone(&mapped), access)?;
    // One that is damaged is looked at below.
    if onode_scm::is_exclusive(&space).unwrap_or(false) {
        drop((space, mapped));
        return mount(spec, memory, path, access);
    }
    let process =
        Process { id: mapped.take_seat().map_err(|error| failed(&error))?, started: std::process::id().into() };
    let seats = Arc::clone(&mapped);
    let is_dead = move |process: Process| !seats.is_seat_taken(process.id);
    let options = mount_options(memory, access);
    let device = if mapped.is_first() {
        ScmDevice::mount(space, &options).and_then(|mut device| device.join(process, is_dead).map(|()| device))
    } else {
        ScmDevice::attach(space, &options, process, is_dead)
    };
    let device = device.map_err(|error| match error.kind {
        ErrorKind::Busy => Error::new(Class::InUse, format!("cannot open {spec}"), error.detail),
        _ => volume_error(format!("cannot open {spec}"), &error),
    })?;
    mapped.let_in().map_err(|error| failed(&error))?;
    Ok(device)
}

/// The space of a region that its objects lie in.
fn space_for_objects(spec: &Spec, path: &Path, mapped: Arc<MappedPmem>, access: Access) -> Result<MappedSpace> {
    let what = || format!("cannot open {spec}");
    let region = match Region::open(Arc::clone(&mapped)) {
        Err(error) if matches!(error.kind, MediaErrorKind::NotAnImage | MediaErrorKind::Damaged) => {
            region_anew(spec, mapped, access)?.ok_or_else(|| medium_error(what(), path, &error))?
        }
        opened => opened.map_err(|error| medium_error(what(), path, &error))?,
    };
    let Some(space) = region.list().into_iter().find(|space| space.kind == Kind::Manager) else {
        return Err(Error::new(Class::NotAnImage, what(), "it has no space for objects")
            .hint(format!(
                "`onode spaces create {} {OBJECTS} --kind manager --size SIZE` and `onode mkfs scm:{0}` make a volume there",
                path.display()
            )));
    };
    let space = region.space(&space.name).map_err(|error| medium_error(what(), path, &error))?;
    if !holds_volume(&space) {
        let why = format!("its space for objects, {}, holds no volume yet", space.name());
        return Err(Error::new(Class::NotAnImage, what(), why)
            .hint(format!("`onode mkfs scm:{}` makes one there; the other spaces stay", path.display())));
    }
    Ok(space)
}

/// The region of a memory whose table of spaces is lost, if a device is found in it. With consent:
/// nothing is known of other spaces any more.
fn region_anew(spec: &Spec, mapped: Arc<MappedPmem>, access: Access) -> Result<Option<Region<Arc<MappedPmem>>>> {
    let what = || format!("cannot open {spec}");
    let Some(LostDevice { place, uuid }) = find_device(&*mapped) else { return Ok(None) };
    if !access.accept_loss {
        let why = format!("its table of spaces is lost; a space for objects is there from byte {} on", place.start);
        return Err(Error::new(Class::Loss, what(), why));
    }
    let region =
        Region::restore(mapped, uuid, &KnownSpace { name: OBJECTS, kind: Kind::Manager, place }, !access.read_only);
    region.map(Some).map_err(|error| Error::medium(what(), &error))
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
        if blocks.lease() == 0 {
            // Memory that nobody else ever sees.
            let process = Process { id: 0, started: std::process::id().into() };
            let joined = blocks.join(process, |_| false);
            joined.ok_or_else(|| Error::new(Class::InUse, what, "too many processes use its blocks"))?;
        }
        Ok(Self { blocks, memory, base })
    }
}

/// Makes a memory of its own at `path` with a device on it.
pub(crate) fn create(spec: &Spec, memory: &Memory, path: &Path, new: NewVolume<'_>) -> Result<()> {
    let what = || format!("cannot make {spec}");
    // Left behind by a try that was interrupted.
    let _ = std::fs::remove_file(path);
    let opening = Opening::New(memory.bytes().next_multiple_of(4096));
    let mapped = MappedPmem::open(path, &options(memory, opening));
    let mapped = mapped.map_err(|error| medium_error(what(), path, &error))?;
    let device: Arc<dyn ObjectDevice> = Arc::new(format(spec, memory, mapped, new.uuid, true)?);
    (new.fill)(&device)?;
    device.close().map_err(|error| volume_error(what(), &error))
}

/// Makes the device on a device of persistent memory, all of it. If it may go, what it holds is
/// lost.
pub(crate) fn create_on_device(spec: &Spec, memory: &Memory, path: &Path, new: NewVolume<'_>) -> Result<()> {
    let what = || format!("cannot make {spec}");
    let mapped = MappedPmem::open(path, &options(memory, Opening::Existing));
    let mapped = mapped.map_err(|error| medium_error(what(), path, &error))?;
    if !new.replace && is_used(&mapped) {
        return Err(Error::new(Class::Exists, what(), "the device holds something already")
            .hint("give another device, or drop what it holds with --force"));
    }
    let device: Arc<dyn ObjectDevice> = Arc::new(format(spec, memory, mapped, new.uuid, false)?);
    (new.fill)(&device)?;
    device.close().map_err(|error| volume_error(what(), &error))
}

/// Whether a space for objects holds a volume, be it damaged: it reads as zeros before.
pub(crate) fn holds_volume(space: &MappedSpace) -> bool {
    is_used(space) || find_device(space).is_some()
}

fn format(spec: &Spec, memory: &Memory, mapped: MappedPmem, uuid: [u8; 16], is_zero: bool) -> Result<Device> {
    let what = || format!("cannot make {spec}");
    let space = Region::format(Arc::new(mapped), uuid, is_zero).and_then(|region| {
        let length = memory.objects.unwrap_or_else(|| region.largest_free());
        region.create(OBJECTS, Kind::Manager, length)
    });
    let space = space.map_err(|error| Error::medium(what(), &error))?;
    format_in(spec, memory, space, uuid)
}

/// Makes the device in a space of a region.
pub(crate) fn format_in(spec: &Spec, memory: &Memory, space: MappedSpace, uuid: [u8; 16]) -> Result<Device> {
    let what = || format!("cannot make {spec}");
    let exclusive = memory.exclusive.unwrap_or(false);
    let options = FormatOptions { uuid, chunk_bytes: memory.chunk, mode: memory.mode, exclusive };
    ScmDevice::format(space, &options).map_err(|error| {
        let class = match error.kind {
            ErrorKind::Invalid | ErrorKind::NoSpace => Class::BadSize,
            _ => Class::of_device(&error),
        };
        Error::new(class, what(), error.to_string())
    })
}
