//! What opening a volume may do to it, what comes of it, and its failures in words for people.
#![cfg_attr(
    not(any(feature = "flash", feature = "scm", feature = "tier")),
    expect(dead_code, reason = "objects in memory are opened in one way, and made when they are opened")
)]

use crate::error::{Class, Error, Result};
#[cfg(any(feature = "tier", feature = "pool"))]
use crate::host::{derived, random_bytes};
use crate::spec::Spec;
use crate::volume::face::BlockFace;
use onode_fs::Options as MountOptions;
use onode_object::{ErrorKind, ObjectDevice, Settings};
use std::sync::Arc;

/// What opening a volume may do to it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    /// Change nothing.
    pub(crate) read_only: bool,
    /// Open it although it holds less than it promised.
    pub(crate) accept_loss: bool,
    /// Give up what is damaged, where a mount does that.
    pub(crate) drop_damaged: bool,
    /// Memory of the device, where somebody chose it.
    pub(crate) settings: Settings,
}

impl Access {
    /// Looks and changes nothing.
    pub(crate) const LOOK: Self = Self { read_only: true, ..Self::CHANGE };
    /// Changes what it is asked to.
    pub(crate) const CHANGE: Self =
        Self { read_only: false, accept_loss: false, drop_damaged: false, settings: Settings::NONE };

    /// As these options of a mount say.
    pub(crate) const fn of(options: &MountOptions) -> Self {
        let (read_only, accept_loss, settings) = (options.read_only, options.accept_loss, options.device);
        Self { read_only, accept_loss, settings, drop_damaged: false }
    }

    /// Refuses settings that were chosen and that the device does not have: it has those of these
    /// names.
    pub(crate) fn check_settings(&self, spec: &Spec, heeded: &[&str]) -> Result<()> {
        let chosen = self.settings.all().into_iter().filter(|(_, value)| value.is_some());
        let Some((name, _)) = chosen.into_iter().find(|(name, _)| !heeded.contains(name)) else { return Ok(()) };
        let others = if heeded.is_empty() { "none of these settings".to_owned() } else { heeded.join(", ") };
        Err(Error::new(Class::Usage, format!("cannot open {spec}"), format!("its device has no {name}"))
            .hint(format!("leave `{name}` out; this device has {others}")))
    }
}

/// Who else may use a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Users {
    /// Nobody, or others who only read.
    Alone,
    /// Others who share it, if it is opened for writing and is of a kind that can be shared.
    Sharing,
}

/// A volume that is to be made.
#[derive(Clone, Copy)]
pub(crate) struct NewVolume<'a> {
    /// What is there already may go.
    pub(crate) replace: bool,
    /// Its unique number.
    pub(crate) uuid: [u8; 16],
    /// Other numbers follow from that one: nothing is drawn.
    #[cfg_attr(
        not(any(feature = "tier", feature = "pool")),
        expect(dead_code, reason = "only volumes of several parts have other numbers")
    )]
    pub(crate) is_fixed: bool,
    /// Puts the first content on its device.
    pub(crate) fill: &'a Fill<'a>,
}

/// Puts the first content on a device.
pub(crate) type Fill<'a> = dyn Fn(&Arc<dyn ObjectDevice>) -> Result<()> + 'a;

#[cfg(any(feature = "tier", feature = "pool"))]
impl NewVolume<'_> {
    /// The unique number of a part of it.
    pub(crate) fn uuid_of_part(&self, part: u8) -> Result<[u8; 16]> {
        if self.is_fixed { Ok(derived(self.uuid, part)) } else { random_bytes() }
    }
}

/// A device that was opened.
pub(crate) struct Opened {
    /// The device.
    pub(crate) device: Arc<dyn ObjectDevice>,
    /// What lies beside it on the same medium.
    pub(crate) faces: Vec<BlockFace>,
    /// What people should hear of how it was opened.
    pub(crate) notes: Vec<String>,
}

/// A failure of the device that holds a volume, in words for people.
pub(crate) fn volume_error(what: String, error: &onode_object::Error) -> Error {
    let class = match error.kind {
        // An image gets its name only with a volume in it: if there is none it was destroyed.
        ErrorKind::Invalid => Class::Damaged,
        ErrorKind::NotSupported => Class::NewerFormat,
        _ => Class::of_device(error),
    };
    Error::new(class, what, error.to_string())
}
