//! Everything a host can see of a device, in one canonical form, to compare two devices or two
//! moments.

use crate::device::ObjectDevice;
use crate::error::Result;
use crate::hints::Hints;
use crate::id::{AttributeKey, AttributeKind, ObjectId};
use crate::transaction::Transaction;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Bytes of the unit in which content is kept.
const UNIT_BYTES: u64 = 512;
/// Objects up to this size are read whole, without asking where their holes are.
const READ_WHOLE_BYTES: u64 = 1 << 20;
/// What one call fetches.
const PIECE_BYTES: u64 = 256 << 10;

/// All objects of a device. Two devices with equal trees cannot be told apart by reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The objects by id.
    pub objects: BTreeMap<ObjectId, DumpedObject>,
}

/// Everything about one object, except how much of the medium it occupies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpedObject {
    /// Size in bytes.
    pub size: u64,
    /// The advice given for it.
    pub hints: Hints,
    /// Units of 512 bytes that are not all zero, by their number; the last may be shorter.
    pub content: BTreeMap<u64, Vec<u8>>,
    /// The attributes.
    pub attributes: BTreeMap<AttributeKey, Vec<u8>>,
}

/// Reads everything that a device shows.
///
/// # Errors
/// The first error of the device.
pub fn dump(device: &dyn ObjectDevice) -> Result<Tree> {
    let mut tree = Tree::default();
    let mut from = ObjectId(0);
    loop {
        let ids = device.list(from, 256)?;
        let Some(last) = ids.last() else { return Ok(tree) };
        from = ObjectId(last.0 + 1);
        for id in ids {
            tree.objects.insert(id, dump_object(device, id)?);
        }
    }
}

fn dump_object(device: &dyn ObjectDevice, id: ObjectId) -> Result<DumpedObject> {
    let stat = device.stat(id)?;
    let mut object = DumpedObject { size: stat.size, hints: stat.hints, ..DumpedObject::default() };
    if stat.size <= READ_WHOLE_BYTES {
        dump_range(device, id, 0, stat.size, &mut object)?;
    } else {
        let mut offset = 0;
        loop {
            let extents = device.extents(id, offset, 64)?;
            let Some((last, length)) = extents.last().copied() else { break };
            offset = last + length;
            for (start, length) in extents {
                let end = (start + length).next_multiple_of(UNIT_BYTES).min(stat.size);
                dump_range(device, id, start - start % UNIT_BYTES, end, &mut object)?;
            }
        }
    }
    let mut from = Some(AttributeKey::new(AttributeKind(0), 0));
    while let Some(start) = from {
        let some = device.attributes(id, start, 256)?;
        from = some.last().and_then(|(key, _)| key.next());
        object.attributes.extend(some);
    }
    Ok(object)
}

/// Keeps the units between `start`, a multiple of the unit, and `end`.
fn dump_range(device: &dyn ObjectDevice, id: ObjectId, start: u64, end: u64, object: &mut DumpedObject) -> Result<()> {
    let mut offset = start;
    while offset < end {
        let mut buffer = vec![0; (end - offset).min(PIECE_BYTES) as usize];
        let count = device.read(id, offset, &mut buffer)?;
        for (number, unit) in (offset / UNIT_BYTES..).zip(buffer[..count].chunks(UNIT_BYTES as usize)) {
            if unit.iter().any(|byte| *byte != 0) {
                object.content.insert(number, unit.to_vec());
            }
        }
        offset += buffer.len() as u64;
    }
    Ok(())
}

impl Tree {
    /// What makes all of this on an empty device, a transaction for each object.
    pub fn making(&self) -> impl Iterator<Item = Transaction> {
        self.objects.iter().map(|(id, object)| {
            let mut made = Transaction::new();
            made.create(*id, object.hints);
            for (unit, data) in &object.content {
                made.write(*id, unit * UNIT_BYTES, data.clone());
            }
            made.truncate(*id, object.size);
            for (key, value) in &object.attributes {
                made.set_attribute(*id, *key, value.clone());
            }
            made
        })
    }

    /// The first difference in words, with `self` as what is there; `None` if there is none.
    #[must_use]
    pub fn difference(&self, expected: &Self) -> Option<String> {
        for (id, wanted) in &expected.objects {
            match self.objects.get(id) {
                None => return Some(format!("{id} is missing")),
                Some(found) => {
                    if let Some(difference) = found.difference(wanted) {
                        return Some(format!("{id}: {difference}"));
                    }
                }
            }
        }
        self.objects.keys().find(|id| !expected.objects.contains_key(id)).map(|id| format!("{id} should not exist"))
    }
}

impl DumpedObject {
    fn difference(&self, expected: &Self) -> Option<String> {
        if self.size != expected.size {
            return Some(format!("size {} instead of {}", self.size, expected.size));
        }
        if self.hints != expected.hints {
            return Some(format!("{:?} instead of {:?}", self.hints, expected.hints));
        }
        if let Some(number) = first_difference(&self.content, &expected.content) {
            return Some(format!("content differs in the {UNIT_BYTES} bytes at {}", number * UNIT_BYTES));
        }
        first_difference(&self.attributes, &expected.attributes).map(|key| format!("attribute {key:?} differs"))
    }
}

fn first_difference<K: Ord + Copy, V: PartialEq>(found: &BTreeMap<K, V>, expected: &BTreeMap<K, V>) -> Option<K> {
    let changed = expected.iter().find(|(key, value)| found.get(key) != Some(value)).map(|(key, _)| *key);
    let extra = found.keys().find(|key| !expected.contains_key(key)).copied();
    [changed, extra].into_iter().flatten().min()
}
