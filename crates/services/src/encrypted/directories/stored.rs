//! The slots of keys of directories, in attributes of the objects that hold those of the volume.

use crate::encrypted::map::volume_key;
use crate::encrypted::slot::KeySlot;
use onode_object::{AttributeKey, ErrorKind, Mutation, ObjectDevice, ObjectId, Result};

/// The greatest number that a key of a directory has had: none is used twice.
pub(super) const LAST: AttributeKey = volume_key(2);
/// Slots have their numbers from here on.
const SLOTS: u64 = 1 << 33;
/// The first attribute behind them.
const BEHIND: u64 = SLOTS + (1 << 32);
/// Attributes that are read at once.
const AT_ONCE: usize = 64;

/// What a volume has stored of keys of directories.
#[derive(Default)]
pub(in crate::encrypted) struct StoredSlots {
    pub(in crate::encrypted) slots: Vec<KeySlot>,
    /// Numbers of slots that are damaged, or that a newer version made.
    pub(super) unknown: Vec<u32>,
    /// The greatest number that a key has had.
    pub(super) last: u32,
}

pub(super) fn slot_key(id: u32) -> AttributeKey {
    volume_key(SLOTS + u64::from(id))
}

/// All that the first holder that can be read says.
///
/// # Errors
/// Those of the device.
pub(in crate::encrypted) fn load<D: ObjectDevice + ?Sized>(device: &D, holders: &[ObjectId]) -> Result<StoredSlots> {
    let mut failed = None;
    for holder in holders {
        match load_from(device, *holder) {
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Corrupt) => failed = Some(error),
            found => return found,
        }
    }
    failed.map_or_else(|| Ok(StoredSlots::default()), Err)
}

fn load_from<D: ObjectDevice + ?Sized>(device: &D, holder: ObjectId) -> Result<StoredSlots> {
    let mut stored = StoredSlots::default();
    let last = device.attribute(holder, LAST)?.unwrap_or_default();
    stored.last = last.as_slice().try_into().map_or(0, u32::from_le_bytes);
    each(device, holder, |id, value| match KeySlot::parse(id, &value) {
        Ok(slot) if slot.directory_key() != 0 => stored.slots.push(slot),
        _ => stored.unknown.push(id),
    })?;
    stored.last = stored.slots.iter().map(KeySlot::directory_key).fold(stored.last, u32::max);
    Ok(stored)
}

/// Looks at all slots of a holder.
fn each<D: ObjectDevice + ?Sized>(device: &D, holder: ObjectId, mut look: impl FnMut(u32, Vec<u8>)) -> Result<()> {
    let behind = volume_key(BEHIND);
    let mut from = Some(slot_key(0));
    while let Some(start) = from {
        let some = device.attributes(holder, start, AT_ONCE)?;
        from = some.last().and_then(|(key, _)| key.next()).filter(|next| *next < behind);
        for (key, value) in some.into_iter().filter(|(key, _)| *key < behind) {
            let id = key.index - slot_key(0).index;
            look(u32::try_from(id).unwrap_or(u32::MAX), value);
        }
    }
    Ok(())
}

/// What a holder that is just made says: what another one does.
///
/// # Errors
/// Those of the device.
pub(in crate::encrypted) fn of_made<D: ObjectDevice + ?Sized>(
    device: &D,
    holders: &[ObjectId],
    made: ObjectId,
) -> Result<Vec<Mutation>> {
    let mut all = Vec::new();
    for holder in holders.iter().filter(|holder| **holder != made && holders.contains(&made)) {
        let last = match device.attribute(*holder, LAST) {
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Corrupt) => continue,
            last => last?,
        };
        let mut set = |key, value| all.push(Mutation::SetAttribute { object: made, key, value });
        last.into_iter().for_each(|value| set(LAST, value));
        each(device, *holder, |id, value| set(slot_key(id), value))?;
        break;
    }
    Ok(all)
}
