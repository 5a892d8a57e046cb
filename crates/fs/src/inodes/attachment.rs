//! A part of the device that comes and goes while the volume is mounted: [`ATTACHED`], an attribute
//! that no listing shows.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::types::{Caller, InodeNumber};
use onode_base::ErrorKind;
use onode_object::powers::Attach;

/// The attribute of the topmost directory with `attached` or `detached` and what the part is:
/// `attached the fast disk`. Whoever sets it to `detach`, `attach` or `attach-empty` lets the part
/// go or come.
pub const ATTACHED: &str = "onode.attached";

pub(crate) fn is_ours(name: &[u8]) -> bool {
    name == ATTACHED.as_bytes()
}

impl FileSystem {
    fn part(&self, number: InodeNumber) -> Result<&dyn Attach> {
        if number != InodeNumber::ROOT {
            return Err(ErrorKind::NoAttribute.into());
        }
        let why = "the volume lies on one device: nothing can be detached from it";
        self.device.attachment().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))
    }

    /// What the attribute tells.
    pub(crate) fn attachment_xattr(&self, number: InodeNumber) -> Result<Vec<u8>> {
        let part = self.part(number)?;
        let state = if part.is_attached() { "attached" } else { "detached" };
        Ok(format!("{state} {}", part.part()).into_bytes())
    }

    /// Does what the setting of the attribute asks for.
    pub(crate) fn set_attachment_xattr(&self, caller: &Caller, number: InodeNumber, value: &[u8]) -> Result<()> {
        let part = self.part(number)?;
        // Whoever may write to the top of a volume need not be the one who looks after its disks.
        self.check_owner(caller, number)?;
        self.check_writable()?;
        match value.trim_ascii() {
            b"detach" => Ok(part.detach()?),
            b"attach" => Ok(part.attach(false)?),
            b"attach-empty" => Ok(part.attach(true)?),
            _ => Err(Error::of(ErrorKind::Invalid, number, "it is none of detach, attach, attach-empty")),
        }
    }
}
