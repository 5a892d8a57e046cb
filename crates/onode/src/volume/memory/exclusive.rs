//! Volumes on memory that one process at a time uses and whose objects nobody maps: nothing changes
//! without a call there, so they can have snapshots, clones and limits.

use crate::error::{Class, Error, Result};
use crate::open::access::{Access, Opened, Users, volume_error};
use crate::open::device::refuse_member;
use crate::open::scm::memory;
use crate::spec::Spec;
use crate::spec::memory::other_mode;
use crate::volume::Volume;
use crate::volume::layers::{Layers, Opening};
use onode_fs::volume::VOLUME;
use onode_object::{AttributeKey, AttributeKind, Compression, ObjectDevice as _};
use onode_scm::Mode;
use std::sync::Arc;

/// Units of work between two looks at whether there is more.
const CLEANED: u32 = 64;

impl Volume {
    /// Says of a volume on memory whether one process at a time uses it, which maps none of its
    /// objects; durable on return. Nobody may have it open. Whether that changed anything.
    ///
    /// # Errors
    /// `Usage` for a volume on something else, in another mode than `atomic`, and, to have it
    /// shared again, for one with snapshots, clones or limits; `InUse`; as [`Volume::open`].
    pub fn set_exclusive(spec: &Spec, exclusive: bool) -> Result<bool> {
        let what = || format!("cannot tune {spec}");
        let Spec::Scm(memory) = spec else {
            let why = "processes share volumes on storage-class memory only: this one is for one at a time";
            return Err(Error::new(Class::Usage, what(), why));
        };
        let path = spec.image_path().ok_or_else(|| {
            Error::new(Class::Usage, what(), "it lives in memory only").hint("say it when it is made: exclusive=on")
        })?;
        let device = Arc::new(memory::mount(spec, memory, path, Access::CHANGE)?);
        let done = (|| {
            refuse_member(spec, Access::CHANGE, device.as_ref())?;
            if device.is_exclusive() == exclusive {
                return Ok(false);
            }
            if !exclusive {
                let device = Arc::<memory::Device>::clone(&device);
                refuse_what_needs_it(spec, Opened { device, faces: Vec::new(), notes: Vec::new() })?;
            }
            if exclusive && memory.mode != Mode::default() {
                return Err(other_mode(what(), memory.mode));
            }
            device.set_exclusive(exclusive).map(|()| true).map_err(|error| volume_error(what(), &error))
        })();
        let closed = device.close().map_err(|error| volume_error(format!("cannot close {spec}"), &error));
        let done = done?;
        closed?;
        Ok(done)
    }
}

/// Refuses to have a volume shared that has what only an exclusive one can have. What deleted
/// snapshots kept is removed first.
fn refuse_what_needs_it(spec: &Spec, opened: Opened) -> Result<()> {
    let what = || format!("cannot have {spec} shared by processes");
    let failed = |error: onode_object::Error| volume_error(what(), &error);
    let how = Opening { access: Access::CHANGE, users: Users::Alone, compression: Compression::Never, may_lose: false };
    let layers = Layers::over(spec, opened, how)?;
    #[cfg(feature = "encryption")]
    if layers.sums.is_some() {
        let why = "it is authenticated: what others change could not be told from what nobody may change";
        return Err(Error::new(Class::Usage, what(), why).hint("copy its files to a volume that is made without it"));
    }
    if let Some(states) = &layers.states {
        let versioned = &states.versioned;
        if let Some(clone) = versioned.clones().first() {
            let why = format!("it has the clone `{}`", clone.name);
            return Err(Error::new(Class::Usage, what(), why).hint("delete its clones first: onode clone delete"));
        }
        if let Some(snapshot) = versioned.snapshots().first() {
            let why = format!("it has the snapshot `{}`", snapshot.name);
            return Err(Error::new(Class::Usage, what(), why).hint("delete its snapshots first: onode snapshot delete"));
        }
        while versioned.is_cleaning() {
            versioned.maintain(CLEANED).map_err(failed)?;
        }
    }
    // They are attributes of the volume, each with an index of its own.
    let first = AttributeKey::new(AttributeKind::QUOTA, 0);
    let found = layers.device.attributes(VOLUME, first, 1).map_err(failed)?;
    if found.first().is_some_and(|(key, _)| key.kind == AttributeKind::QUOTA) {
        return Err(Error::new(Class::Usage, what(), "it has limits")
            .hint("remove them first: `onode quota report` shows them, `onode quota remove` takes one away"));
    }
    Ok(())
}
