//! Giving up what the key of a directory keeps: nobody who lacks it can remove that by its names.

use super::load_settings;
use super::usage::Usage;
use super::walk::Walk;
use crate::error::{Error, Result};
use crate::inodes::Inodes;
use onode_base::ErrorKind;
use onode_object::{Durability, ObjectDevice, ObjectId, Transaction};

/// Objects that one transaction removes.
const AT_ONCE: usize = 32;

/// Removes all files and directories on a device that nobody has mounted that need a key which is
/// locked, but files that were moved out of such directories: those have names, and can be removed
/// by them, unless compression keeps so much of them with the key that nobody can. A
/// [`repair`](super::repair()) then takes away the names that led to them, and counts anew. Returns
/// those that were removed.
///
/// # Errors
/// `Invalid` if the key is not locked, or nothing needs it; those of the device.
pub fn drop_key(device: &dyn ObjectDevice, key: u32) -> Result<Vec<ObjectId>> {
    let Some((hash, inodes)) = load_settings(device)? else {
        return Err(Error::new(ErrorKind::Corrupt, "the settings of the volume are lost: repair it first"));
    };
    let mut walk = Walk::new(device, hash, inodes, Usage::load(device)?);
    walk.inodes()?;
    walk.contents()?;
    if !walk.locked.contains(&key) {
        let why = match walk.seen.values().any(|seen| seen.key == key) {
            true => format!("key {key} is not locked: remove the files that need it as others are"),
            false => format!("nothing on the volume needs key {key}"),
        };
        return Err(Error::new(ErrorKind::Invalid, why));
    }
    let is_directory = |file: &u64| walk.named_in.contains_key(file);
    let dropped = walk.seen.iter().filter(|(number, seen)| {
        seen.key == key && (seen.names == 0 || is_directory(number) || seen.file_type.is_none())
    });
    let dropped: Vec<ObjectId> = dropped.map(|(number, _)| ObjectId(*number)).collect();
    remove(device, inodes, &dropped)?;
    Ok(dropped)
}

/// Removes files with their inodes, but no name that leads to them.
pub(super) fn remove(device: &dyn ObjectDevice, inodes: Inodes, files: &[ObjectId]) -> Result<()> {
    for some in files.chunks(AT_ONCE) {
        let mut transaction = Transaction::new();
        for object in some {
            transaction.remove(*object);
            if inodes.object(*object) != *object {
                transaction.remove(inodes.object(*object));
            }
        }
        device.commit(transaction, Durability::Durable)?;
    }
    Ok(())
}
