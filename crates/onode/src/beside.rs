//! Flash with its index in a memory beside it: the memory of a spec, and what is done when the two do not fit.
//!
//! A memory is disposable: what is missing, damaged or behind is filled from the flash, and said. Only the memory of another
//! volume is left alone, because somebody may need it.

use crate::device::{Opened, flash_options, format_options, in_its_place, lock_replaced, volume_error};
use crate::error::{Class, Error, Result};
use crate::nand::{medium_error, open_nand};
use crate::size::human_size;
use crate::spec::{Beside, Shape, Spec};
use onode_base::ErrorKind;
use onode_flash::{FlashDevice, MemoryOptions, MountPath};
use onode_media::Nand;
use onode_media::real::{Flushing, MappedOptions, MappedPmem, Opening};
use std::path::Path;
use std::sync::Arc;

fn map(opening: Opening, path: Option<&Path>, bytes: u64) -> onode_media::Result<MappedPmem> {
    let options = MappedOptions { opening, flushing: Flushing::Detect, shared: false, reserve: bytes };
    match path {
        Some(path) => MappedPmem::open(path, &options),
        None => MappedPmem::anonymous(bytes, &options),
    }
}

/// Makes a volume on `nand` with its index in the memory of `spec`, which `path` names for now.
pub(crate) fn format(
    spec: &Spec,
    nand: impl Nand + 'static,
    (shape, beside): (&Shape, &Beside),
    path: Option<&Path>,
    uuid: [u8; 16],
) -> Result<FlashDevice> {
    let what = format!("cannot make {spec}");
    let bytes = beside.bytes(nand.geometry().bytes());
    if let Some(path) = path {
        // Left behind by a try that was interrupted.
        let _ = std::fs::remove_file(path);
    }
    let memory = map(Opening::New(bytes), path, bytes);
    let memory = memory.map_err(|error| medium_error(what.clone(), path.unwrap_or(Path::new("memory")), &error))?;
    let (options, mount) = (format_options(shape, uuid, &what)?, onode_flash::MountOptions::default());
    FlashDevice::format_beside(nand, memory, &options, &mount, &beside.options()).map_err(|error| {
        let class = if error.kind == ErrorKind::Invalid { Class::BadSize } else { Class::of_device(&error) };
        Error::new(class, what, error.to_string())
    })
}

/// Makes the file of the memory of `beside` in its place while `make` uses it under another name.
pub(crate) fn in_memory_place(
    beside: &Beside,
    replace: bool,
    make: impl FnOnce(Option<&Path>) -> Result<()>,
) -> Result<()> {
    let Some(path) = &beside.path else { return make(None) };
    let replaced = lock_replaced(path, replace)?;
    in_its_place(path, replaced.is_some(), |unfinished| make(Some(unfinished)))
}

/// Opens a volume and the memory beside it.
pub(crate) fn open(spec: &Spec, image: &Path, (shape, beside): (&Shape, &Beside), read_only: bool) -> Result<Opened> {
    let mut notes = Vec::new();
    let device = match try_open(spec, image, (shape, beside), (read_only, false), &mut notes) {
        Err(Refusal::Behind(why)) => {
            notes.push(format!("{why}: it is not used"));
            try_open(spec, image, (shape, beside), (read_only, true), &mut notes)
        }
        other => other,
    };
    let device = device.map_err(|refusal| match refusal {
        Refusal::Failed(error) => error,
        Refusal::Behind(why) => Error::new(Class::Damaged, format!("cannot open {spec}"), why),
    })?;
    Ok(Opened { device: Arc::new(device), faces: Vec::new(), notes })
}

/// Why a volume was not opened.
enum Refusal {
    /// The memory does not stand where the flash does.
    Behind(String),
    /// Anything else.
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

fn try_open(
    spec: &Spec,
    image: &Path,
    (shape, beside): (&Shape, &Beside),
    (read_only, rebuild): (bool, bool),
    notes: &mut Vec<String>,
) -> std::result::Result<FlashDevice, Refusal> {
    let what = || format!("cannot open {spec}");
    let nand = open_nand(spec, image, shape, read_only)?;
    let path = beside.path.as_deref().unwrap_or(Path::new("memory"));
    let bytes = beside.bytes(nand.geometry().bytes());
    let is_missing = !path.exists();
    let memory = match (is_missing, read_only) {
        (false, false) => map(Opening::Existing, Some(path), bytes),
        (false, true) => map(Opening::ReadOnly, Some(path), bytes),
        (true, false) => map(Opening::New(bytes), Some(path), bytes),
        (true, true) => map(Opening::New(bytes), None, bytes),
    };
    let memory = memory.map_err(|error| medium_error(what(), path, &error))?;
    let options = flash_options(shape, read_only);
    let mounted = FlashDevice::mount_beside(
        nand,
        memory,
        &options,
        &MemoryOptions { rebuild: rebuild || is_missing || beside.rebuild, ..beside.options() },
        &mut |_| {},
    )
    .and_then(|(device, way)| device.confirm().map(|()| (device, way)));
    let (device, way) = mounted.map_err(|error| match error.kind {
        ErrorKind::Stale => Refusal::Behind(error.detail),
        ErrorKind::Invalid if error.detail.contains("another volume") => {
            let hint =
                format!("name the memory of this volume, or add rebuild=on to make {} its memory", path.display());
            Refusal::Failed(Error::new(Class::Usage, what(), error.detail).hint(hint))
        }
        _ => Refusal::Failed(volume_error(what(), &error)),
    })?;
    if let MountPath::Rebuilt(why) = way {
        let why = if is_missing { "it was not there".to_owned() } else { why };
        let entries = if read_only { "nothing is kept in it" } else { "it was filled from the flash" };
        notes.push(format!("the memory {} ({}): {why}; {entries}", path.display(), human_size(bytes)));
    }
    Ok(device)
}
