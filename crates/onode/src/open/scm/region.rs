//! Volumes in a region that is there already: made in its space for objects, while the other spaces
//! stay.

use crate::error::{Class, Error, Result};
use crate::open::access::{NewVolume, volume_error};
use crate::open::failure::medium_error;
use crate::open::scm::memory::{self, Device, MappedSpace, OBJECTS, holds_volume};
use crate::spec::Spec;
use crate::spec::memory::Memory;
use onode_base::size::human_size;
use onode_media::Pmem;
use onode_media::real::{MappedOptions, MappedPmem, Opening};
use onode_object::ObjectDevice;
use onode_spaces::{self as spaces, Kind, Region};
use std::path::Path;
use std::sync::Arc;

/// Where a new volume is to be.
pub(crate) enum Site {
    /// In a file or device of its own, all of it.
    Whole,
    /// In this space.
    Space(MappedSpace),
}

/// Where a volume at `path` is to be made. With `replace` a volume that is there is lost, and with
/// it the other spaces of its region only if there are none.
pub(crate) fn site(spec: &Spec, memory: &Memory, path: &Path, replace: bool) -> Result<Site> {
    let what = || format!("cannot make {spec}");
    if !path.exists() {
        return Ok(Site::Whole);
    }
    let opening = Opening::Existing;
    // Whoever makes a file or device anew says what is wrong with this one.
    let Ok(mapped) = MappedPmem::open(path, &MappedOptions { opening, ..MappedOptions::default() }) else {
        return Ok(Site::Whole);
    };
    if !spaces::is_region(&mapped) {
        return Ok(Site::Whole);
    }
    let Ok(region) = Region::open(Arc::new(mapped)) else { return Ok(Site::Whole) };
    let failed = |error: &onode_media::Error| medium_error(what(), path, error);
    let all = region.list();
    let found = all.iter().find(|space| space.kind == Kind::Manager);
    let others: Vec<&str> = all.iter().filter(|space| Some(*space) != found).map(|space| space.name.as_str()).collect();
    let (place, others_stay) = (path.display(), format!("the other spaces ({}) stay", others.join(", ")));
    let is_replaced = replace && found.is_some() && others.is_empty();
    if !is_replaced && memory.size.is_some_and(|size| size.next_multiple_of(4096) != region.length()) {
        let why = format!("{place} is a region of {} already", human_size(region.length()));
        return Err(Error::new(Class::BadSize, what(), why)
            .hint(format!("leave the size out; `onode spaces resize {place} --size SIZE` makes the region longer")));
    }
    let space = match found {
        Some(found) => {
            let space = region.space(&found.name).map_err(|error| failed(&error))?;
            if holds_volume(&space) {
                match (replace, others.is_empty()) {
                    (true, true) => return Ok(Site::Whole),
                    (true, false) => {}
                    (false, true) => {
                        return Err(Error::new(Class::Exists, what(), format!("{place} holds a volume already"))
                            .hint("choose another name, or add --force to replace it with all it holds"));
                    }
                    (false, false) => {
                        let why = format!("space {} of {place} holds a volume already", found.name);
                        return Err(Error::new(Class::Exists, what(), why)
                            .hint(format!("--force replaces the volume with all it holds; {others_stay}")));
                    }
                }
            }
            space
        }
        None if others.is_empty() || memory.objects.is_some() => {
            let bytes = memory.objects.unwrap_or_else(|| region.largest_free());
            region.create(OBJECTS, Kind::Manager, bytes).map_err(|error| failed(&error))?
        }
        None => {
            let why = format!("{place} is a region without a space for objects; it has {}", others.join(", "));
            return Err(Error::new(Class::Exists, what(), why).hint(format!(
                "say how much it may have ({}), or make one: `onode spaces create {place} {OBJECTS} --kind manager \
                 --size SIZE`",
                Spec::Scm(Memory { objects: Some(region.largest_free()), size: None, ..memory.clone() })
            )));
        }
    };
    if memory.objects.is_some_and(|objects| objects.next_multiple_of(4096) != space.length()) {
        let why = format!("its space for objects has {}", human_size(space.length()));
        return Err(Error::new(Class::BadSize, what(), why)
            .hint(format!("leave the size out; `onode spaces resize {place} NAME --size SIZE` makes it longer")));
    }
    Ok(Site::Space(space))
}

/// Makes the device in a space.
pub(crate) fn create(spec: &Spec, memory: &Memory, space: MappedSpace, new: NewVolume<'_>) -> Result<()> {
    let device: Device = memory::format_in(spec, memory, space, new.uuid)?;
    let device: Arc<dyn ObjectDevice> = Arc::new(device);
    (new.fill)(&device)?;
    device.close().map_err(|error| volume_error(format!("cannot make {spec}"), &error))
}
