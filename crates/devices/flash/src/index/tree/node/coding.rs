//! Keys as they follow from the one before, which is how a node keeps them: neighbours differ by
//! little, and a small number takes a byte.
//!
//! It keeps true: what was put is taken again, and bytes that are no key are refused.

use alloc::vec::Vec;
use onode_base::varint;
use onode_engine::Key;

/// How an entry's key follows from the one before: the low bits of its first number, whose other
/// bits are the difference of the objects.
mod code {
    /// Same object and kind; the index is a difference.
    pub const SAME: u64 = 0;
    /// The onode of an object.
    pub const ONODE: u64 = 1;
    /// An extent.
    pub const EXTENT: u64 = 2;
    /// Any kind; that of an attribute is short.
    pub const OTHER: u64 = 3;
}

/// Says that the difference of the objects follows as a number of its own.
const WIDE: u64 = 1 << 63;

/// Appends `key` as it follows `last`.
pub(super) fn put_key(out: &mut Vec<u8>, last: &Key, key: &Key) {
    let objects = key.object.wrapping_sub(last.object);
    let (code, index) = if objects == 0 && key.kind == last.kind && key.index >= last.index {
        (code::SAME, key.index - last.index)
    } else if key.kind == Key::ONODE && key.index == 0 {
        (code::ONODE, 0)
    } else if key.kind == Key::EXTENT {
        (code::EXTENT, key.index)
    } else {
        (code::OTHER, key.index)
    };
    // Ids that need the bits of the code have them in a number of their own.
    if objects < 1 << 61 {
        varint::put(out, objects << 2 | code);
    } else {
        varint::put(out, WIDE | code);
        varint::put(out, objects);
    }
    if code == code::OTHER {
        varint::put(out, u64::from(key.kind ^ Key::ATTRIBUTE));
    }
    if code != code::ONODE {
        varint::put(out, index);
    }
}

/// Skips a key at the front of `input`, which was checked.
#[inline]
pub(super) fn skip_key(input: &mut &[u8]) {
    let head = varint::take(input).unwrap_or(0);
    let numbers = match head & 3 {
        code::ONODE => 0,
        code::OTHER => 2,
        _ => 1,
    };
    for _ in 0..numbers + usize::from(head & WIDE != 0) {
        let _ = varint::take(input);
    }
}

/// Takes a key that follows `last` off the front of `input`.
#[inline]
pub(super) fn take_key(input: &mut &[u8], last: &Key) -> Option<Key> {
    let head = varint::take(input)?;
    let code = head & 3;
    let objects = if head & WIDE == 0 {
        head >> 2
    } else {
        varint::take(input).filter(|&objects| head & !3 == WIDE && objects >= 1 << 61)?
    };
    let object = last.object.checked_add(objects)?;
    let kind = match code {
        code::SAME if objects == 0 => last.kind,
        code::SAME => return None,
        code::ONODE => Key::ONODE,
        code::EXTENT => Key::EXTENT,
        _ => u16::try_from(varint::take(input)?).ok()? ^ Key::ATTRIBUTE,
    };
    let index = match code {
        code::SAME => last.index.checked_add(varint::take(input)?)?,
        code::ONODE => 0,
        _ => varint::take(input)?,
    };
    Some(Key { object, kind, index })
}
