//! Hybrid coding: the high bytes of the pages of an object go through Huffman coding, because the
//! pages of one erase block share theirs; the low bytes stay as they are.

use super::Object;
use super::raw::{LEAF_PAGES, Leaf, OBJECT_BYTES};
use crate::codec::compared::bytewise::ByteCoder;

/// What becomes of the rest of an object, of which the paper does not say: record and places of the
/// page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hybrid {
    /// It stays as it is.
    Plain,
    /// It goes through Huffman coding with the high bytes.
    Coded,
}

/// Bytes in front: the number of parts of the page table.
const COUNT_BYTES: usize = 2;

impl Hybrid {
    /// `object`, coded; `None` where [`Object::encode`] has none, or there are more than 65,535
    /// parts.
    pub fn encode(self, object: &Object) -> Option<Vec<u8>> {
        let leaves = object.leaves()?;
        let mut rest = object.encode_fixed()?.to_vec();
        let (mut high, mut low) = (Vec::new(), Vec::new());
        for (number, pages) in &leaves {
            rest.extend_from_slice(&number.to_le_bytes());
            for page in pages {
                let [below, above] = page.to_le_bytes();
                low.push(below);
                high.push(above);
            }
        }
        let mut out = u16::try_from(leaves.len()).ok()?.to_le_bytes().to_vec();
        match self {
            Self::Plain => out.extend_from_slice(&rest),
            Self::Coded => {
                rest.append(&mut high);
                high = rest;
            }
        }
        out.extend_from_slice(&low);
        out.extend_from_slice(&ByteCoder::Huffman.encode(&high));
        Some(out)
    }

    /// The object behind `bytes`; `None` if there is none.
    pub fn decode(self, bytes: &[u8]) -> Option<Object> {
        let (count, bytes) = bytes.split_first_chunk::<COUNT_BYTES>()?;
        let count = usize::from(u16::from_le_bytes(*count));
        let rest_bytes = OBJECT_BYTES + 4 * count;
        let (plain, bytes) = match self {
            Self::Plain => bytes.split_at_checked(rest_bytes)?,
            Self::Coded => bytes.split_at(0),
        };
        let (low, coded) = bytes.split_at_checked(LEAF_PAGES * count)?;
        let decoded = ByteCoder::Huffman.decode(coded, rest_bytes - plain.len() + LEAF_PAGES * count)?;
        let (more, high) = decoded.split_at_checked(rest_bytes - plain.len())?;
        let rest = if plain.is_empty() { more } else { plain };
        let (mut object, mapped) = Object::decode_fixed(rest)?;
        let numbers = rest.get(OBJECT_BYTES..)?.chunks_exact(4);
        let parts = numbers.zip(low.chunks_exact(LEAF_PAGES).zip(high.chunks_exact(LEAF_PAGES)));
        let mut leaves: Vec<Leaf> = Vec::with_capacity(count);
        for (number, (low, high)) in parts {
            let mut leaf = (number.first_chunk().map(|four| u32::from_le_bytes(*four))?, [0; LEAF_PAGES]);
            for (page, (&low, &high)) in leaf.1.iter_mut().zip(low.iter().zip(high)) {
                *page = u16::from_le_bytes([low, high]);
            }
            leaves.push(leaf);
        }
        object.pages = Object::pages_of(&leaves, 1 << 16)?;
        let found = object.pages.iter().filter(|&&page| page != 0).count();
        (u32::try_from(found) == Ok(mapped)).then_some(object)
    }
}
