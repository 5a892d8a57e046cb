//! Volumes on memory, opened together with the blocks that a program allocates in them.

mod exclusive;

use crate::error::{Class, Error, Result};
use crate::host::random_bytes;
use crate::open::access::{Access, Opened, Users};
use crate::open::device::refuse_member;
use crate::open::scm::memory::{self, HeapMemory};
use crate::spec::Spec;
use crate::volume::layers::{Layers, Opening};
use crate::volume::transfer::received;
use crate::volume::{CreateOptions, MountOptions, Volume, format};
use onode_fs::volume::VOLUME;
use onode_object::{AttributeKey, ObjectDevice as _};

impl Volume {
    /// Opens a volume on memory together with its blocks. One in memory of the process is made on
    /// the spot.
    ///
    /// # Errors
    /// `Usage` for a volume on something else; as [`Volume::open`].
    pub fn open_memory(spec: &Spec, mut options: MountOptions) -> Result<(Self, HeapMemory)> {
        let Spec::Scm(memory) = spec else {
            return Err(Error::new(Class::Usage, format!("cannot use {spec} as memory"), "it is no memory")
                .hint("use for example scm:/dev/shm/heap,size=1G"));
        };
        let device = memory::open_device(spec, memory, Access::of(&options), Users::Sharing, random_bytes()?)?;
        refuse_member(spec, Access::of(&options), device.as_ref())?;
        if memory.path.is_none() {
            format(spec, device.as_ref(), &CreateOptions::default())?;
        }
        if matches!(device.attribute(VOLUME, AttributeKey::VOLUME_ENCRYPTED), Ok(Some(_))) {
            let why = "it is encrypted, and what a processor works on is not";
            return Err(Error::new(Class::Usage, format!("cannot use {spec} as memory"), why)
                .hint("use a volume that was made without --encrypt"));
        }
        if device.is_exclusive() {
            let why = "one process at a time uses it, and none of its objects is mapped";
            return Err(Error::new(Class::Usage, format!("cannot use {spec} as memory"), why)
                .hint("`onode tune IMAGE exclusive=off` changes that where there are no snapshots and limits"));
        }
        let heap = HeapMemory::of(&device)?;
        let faces = memory::faces_beside(spec, &device, options.read_only)?;
        let opened = Opened { device, faces, notes: Vec::new() };
        let mut layers = Layers::without_snapshots(spec, opened, Opening::of(&options).compression)?;
        received::settle(spec, &mut layers, &mut options)?;
        let Layers { device, faces, notes, .. } = layers;
        Ok((Self::mounted(spec, Opened { device, faces, notes }, options)?, heap))
    }
}
