//! Hints as bytes: one byte says which fields differ from the default, then only those follow.
//!
//! Default hints take one byte. A field that is announced but holds its default is refused, so that
//! there is one form only.

use super::take_byte;
use crate::hints::{Compression, Hints, Lifetime, ObjectKind, Temperature};
use crate::id::ObjectId;
use alloc::vec::Vec;
use onode_base::varint;

const KIND: u8 = 1;
const EXPECTED_SIZE: u8 = 2;
/// Lifetime (bits 0-1), temperature (2-3) and compression (4-5) in one byte.
const HABITS: u8 = 4;
const LOCALITY: u8 = 8;
const EMBED: u8 = 16;
const PARITY_PAGES: u8 = 32;
const ENCRYPTION_KEY: u8 = 64;
const PLACEMENT_CLASS: u8 = 128;

const fn habits(hints: &Hints) -> u8 {
    hints.lifetime as u8 | (hints.temperature as u8) << 2 | (hints.compression as u8) << 4
}

/// Appends `hints` in 1 to 36 bytes.
pub fn put(out: &mut Vec<u8>, hints: &Hints) {
    let habits = habits(hints);
    let field = |bit: u8, set: bool| if set { bit } else { 0 };
    let present = field(KIND, hints.kind != ObjectKind::Unknown)
        | field(EXPECTED_SIZE, hints.expected_size != 0)
        | field(HABITS, habits != 0)
        | field(LOCALITY, hints.locality.is_some())
        | field(EMBED, hints.embed)
        | field(PARITY_PAGES, hints.parity_pages != 0)
        | field(ENCRYPTION_KEY, hints.encryption_key != 0)
        | field(PLACEMENT_CLASS, hints.placement_class != 0);
    out.push(present);
    if present & KIND != 0 {
        out.push(hints.kind as u8);
    }
    if present & EXPECTED_SIZE != 0 {
        varint::put(out, hints.expected_size);
    }
    if present & HABITS != 0 {
        out.push(habits);
    }
    if let Some(locality) = hints.locality {
        varint::put(out, locality.0);
    }
    if present & PARITY_PAGES != 0 {
        out.push(hints.parity_pages);
    }
    if present & ENCRYPTION_KEY != 0 {
        varint::put(out, u64::from(hints.encryption_key));
    }
    if present & PLACEMENT_CLASS != 0 {
        varint::put(out, u64::from(hints.placement_class));
    }
}

/// Takes hints off the front of `input`; `None` if they are cut short, unknown or not in their one
/// form.
pub fn take(input: &mut &[u8]) -> Option<Hints> {
    let present = take_byte(input)?;
    let mut hints = Hints { embed: present & EMBED != 0, ..Hints::default() };
    if present & KIND != 0 {
        hints.kind = ObjectKind::from_byte(nonzero_byte(input)?)?;
    }
    if present & EXPECTED_SIZE != 0 {
        hints.expected_size = nonzero(input)?;
    }
    if present & HABITS != 0 {
        let habits = nonzero_byte(input)?;
        hints.lifetime = Lifetime::from_byte(habits & 3)?;
        hints.temperature = Temperature::from_byte(habits >> 2 & 3)?;
        hints.compression = Compression::from_byte(habits >> 4)?;
    }
    if present & LOCALITY != 0 {
        hints.locality = Some(ObjectId(varint::take(input)?));
    }
    if present & PARITY_PAGES != 0 {
        hints.parity_pages = nonzero_byte(input)?;
    }
    if present & ENCRYPTION_KEY != 0 {
        hints.encryption_key = nonzero(input)?.try_into().ok()?;
    }
    if present & PLACEMENT_CLASS != 0 {
        hints.placement_class = nonzero(input)?.try_into().ok()?;
    }
    Some(hints)
}

fn nonzero(input: &mut &[u8]) -> Option<u64> {
    varint::take(input).filter(|value| *value != 0)
}

fn nonzero_byte(input: &mut &[u8]) -> Option<u8> {
    take_byte(input).filter(|byte| *byte != 0)
}
