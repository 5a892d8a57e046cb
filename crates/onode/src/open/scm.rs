//! Storage-class memory: how its volumes are made and mounted.

mod check;
pub mod memory;
mod region;
pub mod spaces;

use crate::error::Result;
use crate::open::access::{Access, NewVolume, Opened, Users};
use crate::open::kind::DeviceKind;
use crate::open::medium::{MediumRepaired, MediumReport, lives_in_memory};
use crate::open::replace::{in_its_place, lock_replaced};
use crate::spec::Spec;
use crate::spec::memory::Memory;
use onode_services::Dropped;
use region::Site;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

impl DeviceKind for Memory {
    fn open(&self, spec: &Spec, access: Access, users: Users, uuid: [u8; 16]) -> Result<Opened> {
        let device = memory::open_device(spec, self, access, users, uuid)?;
        let faces = memory::faces_beside(spec, &device, access.read_only)?;
        Ok(Opened { device, faces, notes: Vec::new() })
    }

    fn create(&self, spec: &Spec, new: NewVolume<'_>) -> Result<()> {
        let path = path_of(spec)?;
        if let Site::Space(space) = region::site(spec, self, path, new.replace)? {
            return region::create(spec, self, space, new);
        }
        if std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_char_device()) {
            return memory::create_on_device(spec, self, path, new);
        }
        let lock = lock_replaced(path, new.replace)?;
        in_its_place(path, lock.is_some(), |unfinished| memory::create(spec, self, unfinished, new))
    }

    fn check(&self, spec: &Spec, progress: &mut dyn FnMut(u64, u64)) -> Result<MediumReport> {
        check::check(spec, self, path_of(spec)?, progress)
    }

    fn repair(&self, spec: &Spec, access: Access, _: &mut Dropped) -> Result<MediumRepaired> {
        let access = Access { accept_loss: access.accept_loss || access.drop_damaged, ..access };
        check::repair(spec, self, path_of(spec)?, access)
    }
}

fn path_of(spec: &Spec) -> Result<&Path> {
    spec.image_path().ok_or_else(|| lives_in_memory(spec))
}
