//! What a device shows, in the name of a snapshot.

use onode_base::checksum::{crc32c, crc32c_append};
use onode_object::{AttributeKey, AttributeKind, ObjectDevice, ObjectId, Result};

/// Content that is read at once: it begins and ends where no device has a border.
const PIECE_BYTES: usize = 5000;
/// Objects whose checksums are in a name, shortened. A name has not more room.
const TOLD: usize = 64;

/// The objects that a device shows, and checksums of all that is to be seen of each: size, hints,
/// content and attributes. Access times are not kept, and space differs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Look(Vec<(ObjectId, u32)>);

/// The number of a snapshot of this name: later ones have higher ones.
pub(super) fn serial_of(name: &str) -> Option<u64> {
    name.split('-').next()?.parse().ok()
}

impl Look {
    /// What a device shows now.
    ///
    /// # Errors
    /// What it answers instead.
    pub(super) fn at<D: ObjectDevice + ?Sized>(device: &D) -> Result<Self> {
        let mut all = Vec::new();
        let mut from = ObjectId(0);
        loop {
            let ids = device.list(from, 64)?;
            let Some(last) = ids.last() else { return Ok(Self(all)) };
            from = ObjectId(last.0 + 1);
            for id in ids {
                all.push((id, checksum(device, id)?));
            }
        }
    }

    /// The same without an object.
    pub(super) fn without(mut self, object: ObjectId) -> Self {
        self.0.retain(|(one, _)| *one != object);
        self
    }

    /// What a snapshot of this is called: its number, the checksum of everything, how many objects
    /// there are, and something of the checksum of each.
    pub(super) fn name(&self, serial: u64) -> String {
        let all = self.0.iter().fold(0, |all, (id, one)| {
            let all = crc32c_append(all, &id.0.to_le_bytes());
            crc32c_append(all, &one.to_le_bytes())
        });
        let told: String = self.0.iter().take(TOLD).map(|(_, one)| format!("{:02x}", one & 0xff)).collect();
        format!("{serial}-{all:08x}-{}-{told}", self.0.len())
    }

    /// How a snapshot of that name differs that shows this; `None` if it does not.
    pub(super) fn difference(&self, name: &str) -> Option<String> {
        let Some(serial) = serial_of(name) else { return Some("its name was never given".into()) };
        let found = self.name(serial);
        if found == name {
            return None;
        }
        let told = |name: &str| name.rsplit('-').next().unwrap_or_default().to_string();
        let (found_told, wanted_told) = (told(&found), told(name));
        let of = |told: &str, at: usize| told.get(2 * at..2 * at + 2).map(str::to_string);
        let first = (0..TOLD).find(|at| of(&found_told, *at) != of(&wanted_told, *at));
        let at = first.and_then(|at| Some(format!("; the first of them, or before it: {}", self.0.get(at)?.0)));
        Some(format!("what it shows would be {found}{}", at.unwrap_or_default()))
    }
}

fn checksum<D: ObjectDevice + ?Sized>(device: &D, id: ObjectId) -> Result<u32> {
    let stat = device.stat(id)?;
    let mut all = crc32c(format!("{} {:?}", stat.size, stat.hints).as_bytes());
    let mut offset = 0;
    while offset < stat.size {
        let mut piece = vec![0xa5; PIECE_BYTES];
        let count = device.read(id, offset, &mut piece)?;
        if count == 0 {
            break;
        }
        all = crc32c_append(all, &piece[..count]);
        offset += count as u64;
    }
    let mut from = Some(AttributeKey::new(AttributeKind(0), 0));
    while let Some(start) = from {
        let some = device.attributes(id, start, 13)?;
        from = some.last().and_then(|(key, _)| key.next());
        for (key, value) in some {
            all = crc32c_append(all, format!("{} {} {}", key.kind.0, key.index, value.len()).as_bytes());
            all = crc32c_append(all, &value);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_which_object_differs() {
        let look = |second| Look(vec![(ObjectId(64), 0x1234), (ObjectId(70), second)]);
        let name = look(0xabcd).name(7);
        assert_eq!(serial_of(&name), Some(7));
        assert_eq!(look(0xabcd).difference(&name), None);
        assert!(look(0xab00).difference(&name).is_some_and(|text| text.contains(&ObjectId(70).to_string())));
        assert!(Look(Vec::new()).difference(&name).is_some());
    }

    #[test]
    fn a_name_of_many_objects_is_not_too_long() {
        let many = Look((0..500).map(|id| (ObjectId(id), id as u32)).collect());
        assert!(many.name(u64::MAX).len() <= onode_services::SNAPSHOT_NAME_BYTES_MAX);
    }
}
