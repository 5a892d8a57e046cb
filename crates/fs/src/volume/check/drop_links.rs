//! Giving up symbolic links that lost their targets: zeros in the place of one lead nowhere, and
//! what copies such a link fails.

use super::drop_key::remove;
use super::load_settings;
use super::usage::Usage;
use super::walk::Walk;
use crate::error::Result;
use crate::types::FileType;
use onode_object::{ObjectDevice, ObjectId};

/// Removes all symbolic links on a device that nobody has mounted in whose targets are zeros, which
/// no target has. A [`repair`](super::repair()) then takes away the names that led to them. Returns
/// those that were removed.
///
/// # Errors
/// Those of the device.
pub fn drop_links(device: &dyn ObjectDevice) -> Result<Vec<ObjectId>> {
    let Some((hash, inodes)) = load_settings(device)? else { return Ok(Vec::new()) };
    let mut walk = Walk::new(device, hash, inodes, Usage::load(device)?);
    walk.inodes()?;
    let links = walk.seen.iter().filter(|(_, seen)| seen.file_type == Some(FileType::SymbolicLink));
    let dropped: Vec<ObjectId> =
        links.map(|(number, _)| ObjectId(*number)).filter(|link| lost_its_target(device, *link)).collect();
    remove(device, inodes, &dropped)?;
    Ok(dropped)
}

/// Whether a link has zeros in its target. One that cannot be read has not.
fn lost_its_target(device: &dyn ObjectDevice, link: ObjectId) -> bool {
    let size = device.stat(link).map_or(0, |stat| stat.size);
    let mut target = vec![0; usize::try_from(size).unwrap_or(0).min(TARGET_BYTES_MAX)];
    match device.read(link, 0, &mut target) {
        Ok(length) => target.iter().take(length).any(|byte| *byte == 0),
        Err(_) => false,
    }
}

/// Bytes of a target at most.
const TARGET_BYTES_MAX: usize = 4095;
