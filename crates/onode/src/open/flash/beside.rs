//! Flash with its index in a memory beside it: the memory of a spec, and what is done when the two
//! do not fit.
//!
//! A memory is disposable: what is missing, damaged or behind is filled from the flash, and said.
//! Only the memory of another volume, and a file that never was a memory, are left alone, because
//! somebody may need them.

mod finder;

use crate::error::{Class, Error, Result};
use crate::open::access::{Access, Opened, volume_error};
use crate::open::failure::medium_error;
use crate::open::flash::flash_options;
use crate::open::flash::nand::open_nand;
use crate::open::missing::refuse_missing;
use crate::open::replace::{in_its_place, is_used, lock_replaced};
use crate::spec::Spec;
use crate::spec::flash::{Beside, Policies, Shape};
use finder::MemoryFinder;
use onode_base::ErrorKind;
use onode_base::size::{exact_size, human_size};
use onode_flash::{FlashDevice, FormatOptions, MemoryOptions, MountPath};
use onode_media::image::OpenMode;
use onode_media::pmem::LINE_BYTES;
use onode_media::real::{Kind, MappedOptions, MappedPmem, MtdRam, Opening, identify};
use onode_media::{MediaErrorKind, Nand, Pmem};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

/// A volume on flash with its memory, as the spec names them.
#[derive(Clone, Copy)]
pub(crate) struct Both<'a> {
    pub spec: &'a Spec,
    pub image: &'a Path,
    pub shape: &'a Shape,
    pub policies: &'a Policies,
    pub beside: &'a Beside,
}

/// The memory at a path, whatever it is there: a device, or a file that is mapped.
fn open_memory(opening: Opening, path: Option<&Path>, bytes: u64) -> onode_media::Result<Box<dyn Pmem>> {
    let options = MappedOptions { opening, reserve: bytes, complete: true, ..MappedOptions::default() };
    Ok(match path {
        Some(path) if identify(path) == Ok(Kind::Mtd) => {
            let mode = if opening == Opening::ReadOnly { OpenMode::ReadOnly } else { OpenMode::ReadWrite };
            Box::new(MtdRam::open(path, mode)?)
        }
        Some(path) => Box::new(MappedPmem::open(path, &options)?),
        None => Box::new(MappedPmem::anonymous(bytes, &options)?),
    })
}

/// Whether `path` is a device, which is there and is as long as it is.
fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_char_device())
}

fn memory_error(what: String, path: &Path, error: &onode_media::Error) -> Error {
    match error.kind {
        MediaErrorKind::NotAnImage => Error::medium(what, error).hint(
            "the memory beside the flash is a file, a DAX device or a memory technology device of type RAM; \
             `cat /sys/class/mtd/mtd*/type` shows their types. The flash is named first, the memory second",
        ),
        _ => medium_error(what, path, error),
    }
}

/// Makes a volume on `nand` with its index in the memory of `spec`, which `path` names for now.
pub(crate) fn format(
    spec: &Spec,
    nand: impl Nand + 'static,
    options: &FormatOptions,
    beside: &Beside,
    path: Option<&Path>,
) -> Result<FlashDevice> {
    let what = format!("cannot make {spec}");
    let bytes = beside.bytes(nand.geometry().bytes());
    let opening = match path {
        Some(path) if is_device(path) => Opening::Existing,
        Some(path) => {
            // Left behind by a try that was interrupted.
            let _ = std::fs::remove_file(path);
            Opening::New(bytes)
        }
        None => Opening::New(bytes),
    };
    let memory = open_memory(opening, path, bytes);
    let memory = memory.map_err(|error| memory_error(what.clone(), path.unwrap_or(Path::new("memory")), &error))?;
    let mount = onode_flash::MountOptions::default();
    FlashDevice::format_beside(nand, memory, options, &mount, &beside.options()).map_err(|error| {
        let class = if error.kind == ErrorKind::Invalid { Class::BadSize } else { Class::of_device(&error) };
        Error::new(class, what, error.to_string())
    })
}

/// Makes the file of the memory of `beside` in its place while `make` uses it under another name. A
/// device has its place.
pub(crate) fn in_memory_place(
    beside: &Beside,
    replace: bool,
    make: impl FnOnce(Option<&Path>) -> Result<()>,
) -> Result<()> {
    let Some(path) = &beside.path else { return make(None) };
    if is_device(path) {
        check_device(beside, path, replace)?;
        return make(Some(path));
    }
    let replaced = lock_replaced(path, replace)?;
    in_its_place(path, replaced.is_some(), |unfinished| make(Some(unfinished)))
}

/// That a device may become the memory: it is one, as long as was said, and holds nothing unless
/// that is to be replaced.
fn check_device(beside: &Beside, path: &Path, replace: bool) -> Result<()> {
    let what = || format!("cannot use {} as memory", path.display());
    let memory = open_memory(Opening::ReadOnly, Some(path), 0).map_err(|error| memory_error(what(), path, &error))?;
    if beside.size.is_some_and(|said| said != memory.length()) {
        return Err(Error::new(Class::BadSize, what(), format!("the device has {}", exact_size(memory.length())))
            .hint("leave out memory=: a device is used whole"));
    }
    if !replace && is_used(&*memory) {
        return Err(Error::new(Class::Exists, what(), "the device holds something already")
            .hint("give another device, or drop what it holds with --force"));
    }
    Ok(())
}

/// Whether a file holds what is no memory of ours, not even a damaged one: it was meant for
/// something else. A device whose battery ran out may hold anything.
fn is_something_else(path: &Path, memory: &dyn Pmem) -> bool {
    /// The anchors at the start, one of which outlives whatever happens to the other.
    const ANCHORS: usize = 128;
    let mut start = [0; ANCHORS];
    let length = memory.length().min(ANCHORS as u64) as usize;
    memory.read(0, &mut start[..length]);
    !is_device(path) && !is_blank_or_ours(&start[..length])
}

/// Whether a memory that begins so is ours, or nobody's.
fn is_blank_or_ours(start: &[u8]) -> bool {
    const MAGIC: &[u8] = b"ONODEBP";
    let is_blank = [0, 0xff].iter().any(|blank| start.iter().all(|byte| byte == blank));
    is_blank || start.chunks(64).take(2).any(|anchor| anchor.starts_with(MAGIC))
}

/// Empties the memory of `beside`: whatever it says of the flash counts no more, and the next mount
/// fills it from there.
pub(crate) fn give_up(spec: &Spec, beside: &Beside) -> Result<()> {
    // What is not there, or has no anchor, says nothing of the flash.
    let Some(path) = beside.path.as_ref().filter(|path| path.exists() && !is_cut_short(path)) else { return Ok(()) };
    let failed = |error| memory_error(format!("cannot repair {spec}"), path, &error);
    complete_line(path)?;
    let memory = open_memory(Opening::Existing, Some(path), 0).map_err(failed)?;
    memory.zero(0, memory.length());
    memory.flush(0, memory.length());
    memory.fence().map_err(failed)
}

/// Opens a volume and the memory beside it.
pub(crate) fn open(volume: Both<'_>, access: Access) -> Result<Opened> {
    let (device, notes) = open_flash(volume, access)?;
    Ok(Opened { device: Arc::new(device), faces: Vec::new(), notes })
}

/// The same, with what people should hear of it.
pub(crate) fn open_flash(volume: Both<'_>, access: Access) -> Result<(FlashDevice, Vec<String>)> {
    let mut notes = Vec::new();
    let mut standing = Standing::Unknown;
    let device = loop {
        standing = match try_open(volume, access, standing, &mut notes) {
            Err(Refusal::Behind(why)) if standing == Standing::Unknown => {
                notes.push(format!("{why}: it is not used"));
                Standing::Behind
            }
            Err(Refusal::Short(_)) if standing != Standing::Short => Standing::Short,
            other => break other,
        }
    };
    let what = || format!("cannot open {}", volume.spec);
    let device = device.map_err(|refusal| match refusal {
        Refusal::Failed(error) => error,
        Refusal::Behind(why) => Error::new(Class::Damaged, what(), why),
        Refusal::Short(why) => Error::new(Class::BadSize, what(), why)
            .hint("name a larger memory, or a new one with memory=SIZE, or leave out buffer=on"),
    })?;
    Ok((device, notes))
}

/// Whether the file at `path` was cut so short that nothing of a memory is left in it. What never
/// was one is not touched.
fn is_cut_short(path: &Path) -> bool {
    let is_short = |metadata: std::fs::Metadata| metadata.is_file() && metadata.len() < onode_flash::MEMORY_BYTES_MIN;
    let first = || std::fs::read(path).unwrap_or_default();
    std::fs::metadata(path).is_ok_and(is_short) && is_blank_or_ours(&first())
}

/// A memory in a file that was cut within a line of the processor gets the rest of it: what it says
/// of its own length tells that the remainder is gone.
fn complete_line(path: &Path) -> Result<()> {
    let failed = |error: &std::io::Error| Error::host_file("look at", path, error);
    let metadata = std::fs::metadata(path).map_err(|error| failed(&error))?;
    let whole = metadata.len().next_multiple_of(LINE_BYTES);
    if !metadata.is_file() || whole == metadata.len() {
        return Ok(());
    }
    let mut start = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(2 * LINE_BYTES).read_to_end(&mut start));
    read.map_err(|error| failed(&error))?;
    if is_blank_or_ours(&start) {
        let file = std::fs::OpenOptions::new().write(true).open(path);
        file.and_then(|file| file.set_len(whole)).map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// The memory at `path`; a new one of `bytes` if there is none, or one too short to hold anything.
fn there_or_new(path: &Path, bytes: u64) -> Result<onode_media::Result<Box<dyn Pmem>>> {
    if path.exists() && !is_cut_short(path) {
        complete_line(path)?;
        return Ok(open_memory(Opening::Existing, Some(path), bytes));
    }
    if path.exists() {
        remove(path)?;
    }
    Ok(open_memory(Opening::New(bytes), Some(path), bytes))
}

/// Makes room for a new memory in the place of one that lost its end.
fn remove(path: &Path) -> Result<()> {
    match open_memory(Opening::ReadOnly, Some(path), 0) {
        Err(error) if error.kind == MediaErrorKind::Locked => {
            Err(memory_error(format!("cannot replace {}", path.display()), path, &error))
        }
        _ => std::fs::remove_file(path).map_err(|error| Error::host_file("make", path, &error)),
    }
}

/// The memory of a volume that is mounted without it, to be filled anew. What is there has to be a
/// memory already, or nothing.
pub(crate) fn memory_to_fill(beside: &Beside, path: &Path, flash_bytes: u64) -> Result<Box<dyn Pmem>> {
    let what = || format!("cannot use {} as memory", path.display());
    if !path.exists() {
        refuse_missing(&what(), path)?;
    }
    let memory = there_or_new(path, beside.bytes(flash_bytes))?.map_err(|error| memory_error(what(), path, &error))?;
    if is_something_else(path, &*memory) {
        return Err(Error::new(Class::Usage, what(), "it holds something that never was the memory of a volume"));
    }
    Ok(memory)
}

/// What is known of a memory before it is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Nothing.
    Unknown,
    /// It does not stand where the flash does.
    Behind,
    /// It was cut so short that its write buffer has no room, or has lost that with its end.
    Short,
}

/// Why a volume was not opened.
enum Refusal {
    /// The memory does not stand where the flash does.
    Behind(String),
    /// It is too short for a write buffer.
    Short(String),
    /// Anything else.
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

fn try_open(
    volume: Both<'_>,
    access: Access,
    standing: Standing,
    notes: &mut Vec<String>,
) -> std::result::Result<FlashDevice, Refusal> {
    let Both { spec, image, shape, policies, beside } = volume;
    let what = || format!("cannot open {spec}");
    let read_only = access.read_only;
    let nand = open_nand(spec, image, shape, read_only)?;
    let path = beside.path.as_deref().unwrap_or(Path::new("memory"));
    let bytes = beside.bytes(nand.geometry().bytes());
    let is_there = path.exists();
    let is_short = standing == Standing::Short && !is_device(path);
    let is_missing = !is_there || is_short || is_cut_short(path);
    if !is_there {
        refuse_missing(&what(), path)?;
    }
    if is_short && !read_only {
        remove(path)?;
    }
    let memory = match (is_missing, read_only) {
        (_, false) => there_or_new(path, bytes)?,
        (false, true) => open_memory(Opening::ReadOnly, Some(path), bytes),
        (true, true) => open_memory(Opening::New(bytes), None, bytes),
    };
    let memory = memory.map_err(|error| memory_error(what(), path, &error))?;
    if !is_missing && !beside.rebuild && is_something_else(path, &*memory) {
        let why = format!("{} holds something that never was the memory of a volume", path.display());
        let hint = "name the memory of this volume or a new file, or add rebuild=on to overwrite what is there";
        return Err(Error::new(Class::Usage, what(), why).hint(hint).into());
    }
    let (bytes, flash_bytes) = (memory.length(), nand.geometry().bytes());
    let options = flash_options(policies, access);
    let mounted = FlashDevice::mount_beside(
        nand,
        memory,
        &options,
        &MemoryOptions { rebuild: standing != Standing::Unknown || is_missing || beside.rebuild, ..beside.options() },
        &mut |_| {},
    )
    .and_then(|(device, way)| device.confirm().map(|()| (device, way)));
    if mounted.is_err() && !is_there && !read_only {
        // Nothing is to be changed then; that it is not there says what happened.
        let _ = std::fs::remove_file(path);
    }
    let (device, way) = mounted.map_err(|error| match error.kind {
        ErrorKind::Stale => Refusal::Behind(error.detail),
        ErrorKind::PartNeeded => Refusal::Short(error.detail),
        ErrorKind::WrongPart => {
            let hint =
                format!("name the memory of this volume, or add rebuild=on to make {} its memory", path.display());
            Refusal::Failed(Error::new(Class::Usage, what(), error.detail).hint(hint))
        }
        _ => Refusal::Failed(volume_error(what(), &error)),
    })?;
    if let MountPath::Rebuilt(why) = way {
        let why = match (is_missing, is_there) {
            (true, true) => "it was empty or cut short".to_owned(),
            (true, false) => "it was not there".to_owned(),
            _ => why,
        };
        let entries = if read_only { "nothing is kept in it" } else { "it was filled from the flash" };
        notes.push(format!("the memory {} ({}): {why}; {entries}", path.display(), human_size(bytes)));
    }
    if let Some(path) = beside.path.as_ref().filter(|_| !read_only) {
        device.set_finder(Arc::new(MemoryFinder::new(beside.clone(), path.clone(), flash_bytes)));
    }
    Ok(device)
}
