//! From specs to devices: the one place that names every device.

use crate::error::{Class, Error, Result};
use crate::open::access::{Access, NewVolume, Opened, Users, volume_error};
use crate::open::distinct::check_distinct;
use crate::open::kind::DeviceKind;
use crate::open::medium::{MediumRepaired, MediumReport, lives_in_memory};
use crate::open::missing::refuse_missing_devices;
use crate::spec::Spec;
use crate::spec::ram::Ram;
use onode_object::{AttributeKey, ErrorKind, ObjectDevice, ObjectId, RamDevice};
use onode_services::Dropped;
#[cfg(feature = "pool")]
use std::path::Path;
use std::sync::Arc;

/// The device of a spec, as one of its kind.
pub(crate) fn kind_of(spec: &Spec) -> &dyn DeviceKind {
    match spec {
        #[cfg(feature = "flash")]
        Spec::Flash(flash) => flash,
        #[cfg(feature = "scm")]
        Spec::Scm(memory) => memory,
        #[cfg(feature = "tier")]
        Spec::Tier(tiers) => tiers,
        #[cfg(feature = "pool")]
        Spec::Pool(pool) => pool,
        Spec::Ram(ram) => ram,
    }
}

/// Opens the device of a spec, and what lies beside it on the same medium. One in memory is empty.
pub(crate) fn open(spec: &Spec, access: Access, users: Users, uuid: [u8; 16]) -> Result<Opened> {
    check_distinct("open", spec)?;
    let kind = kind_of(spec);
    access.check_settings(spec, kind.settings())?;
    let opened = kind.open(spec, access, users, uuid)?;
    refuse_member(spec, access, &*opened.device)?;
    Ok(opened)
}

/// Refuses to change a member of a pool by itself: the others would not know, and what they and it
/// have would not be one volume any more. A pool hides from its host that its members are such.
pub(crate) fn refuse_member(spec: &Spec, access: Access, device: &dyn ObjectDevice) -> Result<()> {
    // Whatever else is wrong with it is told by who uses it.
    match member_of(device) {
        Ok(Some(label)) if !access.read_only => Err(member(spec, &label)),
        _ => Ok(()),
    }
}

/// The same before a repair, for which what cannot be read is no answer.
///
/// # Errors
/// `Damaged` if it cannot be known.
pub(crate) fn refuse_hidden_member(spec: &Spec, device: &dyn ObjectDevice) -> Result<()> {
    match member_of(device) {
        Ok(None) => Ok(()),
        Ok(Some(label)) => Err(member(spec, &label)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(volume_error(format!("cannot open {spec}"), &error)),
    }
}

/// What a device says of the pool that it is a member of.
fn member_of(device: &dyn ObjectDevice) -> onode_object::Result<Option<Vec<u8>>> {
    device.attribute(ObjectId::POOL, AttributeKey::POOL_MEMBER)
}

fn member(spec: &Spec, label: &[u8]) -> Error {
    let number = label.get(1).map_or_else(String::new, |number| format!(" {number}"));
    let why = format!("it is member{number} of a pool, and the others would not know what changes");
    let alone = spec.to_string().replace('+', "++");
    Error::new(Class::Usage, format!("cannot open {spec}"), why).hint(format!(
        "open the pool with all its members (pool:{alone}+...), or read this one only; without the others it is \
         pool:{alone}, and they get what changed when they are back"
    ))
}

/// Refuses to make a volume for `spec` in the place of `member` if that is one with another part of
/// it, is a device that is not there, or is a file that may not be replaced.
#[cfg(feature = "pool")]
pub(crate) fn refuse_existing(spec: &Spec, member: &Spec, replace: bool) -> Result<()> {
    check_distinct("make", spec)?;
    refuse_missing_devices(&format!("cannot make {member}"), member)?;
    let is_file = |path: &&Path| path.is_file();
    match member.said().all_paths().into_iter().find(is_file).filter(|_| !replace) {
        None => Ok(()),
        Some(path) => {
            let why = format!("there is a file {} already", path.display());
            Err(Error::new(Class::Exists, format!("cannot make {member}"), why)
                .hint("choose another name, or add --force to replace it with all it holds"))
        }
    }
}

/// Makes the image of a spec and lets `new` put the first content on it.
pub(crate) fn create(spec: &Spec, new: NewVolume<'_>) -> Result<()> {
    check_distinct("make", spec)?;
    refuse_missing_devices(&format!("cannot make {spec}"), spec)?;
    if spec.image_path().is_none() {
        return Err(Error::new(Class::Usage, format!("cannot make {spec}"), "it lives in memory only")
            .hint("it is made when it is used: just mount it"));
    }
    kind_of(spec).create(spec, new)
}

/// Checks the medium of `spec` on its own, without what a mount keeps of it; changes nothing.
/// `progress` hears of what is done and of how much there is.
///
/// # Errors
/// If the medium cannot be opened. What is wrong on it is no error but a finding.
pub fn check_medium(spec: &Spec, progress: &mut dyn FnMut(u64, u64)) -> Result<MediumReport> {
    kind_of(spec).check(spec, progress)
}

/// Repairs the medium of `spec` as far as `access` allows; what goes of objects is noted in
/// `dropped`. Nobody is asked whether that may be.
pub(crate) fn repair(spec: &Spec, access: Access, dropped: &mut Dropped) -> Result<MediumRepaired> {
    kind_of(spec).repair(spec, access, dropped)
}

/// Objects without a medium: there is nothing to make, and nothing to look into.
impl DeviceKind for Ram {
    fn open(&self, _: &Spec, _: Access, _: Users, _: [u8; 16]) -> Result<Opened> {
        Ok(Opened { device: Arc::new(RamDevice::new(self.size)), faces: Vec::new(), notes: Vec::new() })
    }

    fn create(&self, spec: &Spec, _: NewVolume<'_>) -> Result<()> {
        Err(lives_in_memory(spec))
    }

    fn check(&self, spec: &Spec, _: &mut dyn FnMut(u64, u64)) -> Result<MediumReport> {
        Err(lives_in_memory(spec))
    }

    fn repair(&self, spec: &Spec, _: Access, _: &mut Dropped) -> Result<MediumRepaired> {
        Err(lives_in_memory(spec))
    }
}
