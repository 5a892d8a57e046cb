//! Reading: what is known of an object, and its content block by block.
//!
//! A block of which nothing was ever written, or that was taken away, is a hole of the wrapped
//! object and reads as zeros there. What is sealed is never all zeros, so a hole needs no entry to
//! be told from a sealed block.

use crate::encrypted::Encrypted;
use crate::encrypted::cipher::{Context, What};
use crate::encrypted::map::{
    BLOCK_BYTES, BlockEntry, BlockGroup, DataKey, GROUP_BLOCKS, HEAD, HEAD_PART, Head, INLINE_KEY, MapPart, UNIT_BYTES,
    group_key, holes_key,
};
use crate::ranges::Ranges;
use crate::shards::Known;
use onode_base::planted::{Bug, is_planted};
use onode_object::{Error, ErrorKind, ObjectDevice, ObjectId, Result};
use std::ops::Range;
use std::sync::Arc;

const BLOCK: usize = BLOCK_BYTES as usize;
/// Bytes of a hole in a list of them, and of a bit for each byte of a block.
const HOLE_BYTES: usize = 4;
const BITS_BYTES: usize = BLOCK / 8;

/// A block of an object, and what is known of it.
struct Numbered {
    number: u64,
    entry: BlockEntry,
}

impl<D: ObjectDevice + ?Sized> Encrypted<D> {
    /// A part of what is known of an object: what is remembered, or what `parse` makes of its
    /// attribute.
    fn part(
        &self,
        object: ObjectId,
        number: u64,
        parse: impl FnOnce(&[u8]) -> std::result::Result<MapPart, &'static str>,
    ) -> Result<Known<MapPart>> {
        let shard = self.shards().of(object);
        // Another host may change it any time: then the device is asked.
        if !self.is_shared()
            && let Some(known) = shard.known(object, number)
        {
            return Ok(known);
        }
        let key = if number == HEAD_PART { HEAD } else { group_key(number) };
        let known = match self.inner().attribute(object, key)? {
            Some(value) => Some(Arc::new(parse(&value).map_err(|why| self.lost_part(object, number, why))?)),
            None => None,
        };
        if !self.is_shared() {
            shard.learn(object, number, known.clone());
        }
        Ok(known)
    }

    /// Damage of a part: of all of an object, or of the blocks of a group.
    pub(super) fn lost_part(&self, object: ObjectId, number: u64, why: &str) -> Error {
        const GROUP_BYTES: u64 = GROUP_BLOCKS * BLOCK_BYTES;
        let size = self.inner().stat(object).map_or(u64::MAX, |stat| stat.size);
        let range = match number {
            HEAD_PART => 0..size,
            group => group * GROUP_BYTES..((group + 1) * GROUP_BYTES).min(size.max(group * GROUP_BYTES)),
        };
        Error::corrupt(object, range, why)
    }

    /// What is known of an object as a whole; `None` if it has no content.
    ///
    /// # Errors
    /// `NotFound` if there is no such object; `Corrupt`.
    pub(super) fn head(&self, object: ObjectId) -> Result<Option<Head>> {
        let parse = |value: &[u8]| Head::parse(object, value, self.keys()).map(MapPart::Head);
        let known = self.part(object, HEAD_PART, parse)?;
        let Some(MapPart::Head(head)) = known.as_deref() else { return Ok(None) };
        let mut head = head.clone();
        if head.unlock(object, self.keys()).map_err(|why| self.lost_part(object, HEAD_PART, why))? && !self.is_shared()
        {
            self.shards().of(object).learn(object, HEAD_PART, Some(Arc::new(MapPart::Head(head.clone()))));
        }
        Ok(Some(head))
    }

    /// A group of an object, if it has that.
    ///
    /// # Errors
    /// As [`head`](Self::head).
    pub(super) fn group(&self, object: ObjectId, group: u64, key: &DataKey) -> Result<Option<BlockGroup>> {
        let parse = |value: &[u8]| BlockGroup::parse(object, group, value, key).map(Box::new).map(MapPart::Group);
        let known = self.part(object, group, parse)?;
        Ok(known.and_then(|part| match &*part {
            MapPart::Group(group) => Some((**group).clone()),
            MapPart::Head(_) => None,
        }))
    }

    /// Reads from `offset`; nobody changes the object meanwhile.
    pub(super) fn read_content(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let Some(head) = self.head(object)? else { return Ok(0) };
        // Holes are nobody's to see either.
        head.key(object)?;
        let count = head.size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let done = self.read_blocks(object, &head, offset, &mut buffer[..count]);
        if done.is_err() {
            // What was not verified, or is still sealed, is nobody's to see.
            buffer[..count].fill(0);
        }
        done.map(|()| count)
    }

    /// Fills the buffer with bytes that the object has.
    fn read_blocks(&self, object: ObjectId, head: &Head, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let count = buffer.len();
        let mut done = 0;
        let mut scratch = Vec::new();
        while done < count {
            let at = offset + done as u64;
            let inside = (at % BLOCK_BYTES) as usize;
            // Whole blocks are opened where they go to.
            let whole = (count - done) / BLOCK * BLOCK;
            if inside == 0 && whole > 0 {
                self.load(object, head, at / BLOCK_BYTES, &mut buffer[done..done + whole])?;
                done += whole;
            } else {
                scratch.resize(BLOCK, 0);
                self.load(object, head, at / BLOCK_BYTES, &mut scratch)?;
                let taken = (BLOCK - inside).min(count - done);
                buffer[done..done + taken].copy_from_slice(&scratch[inside..inside + taken]);
                done += taken;
            }
        }
        Ok(())
    }

    /// Reads whole blocks from `first` on.
    pub(super) fn load(&self, object: ObjectId, head: &Head, first: u64, blocks: &mut [u8]) -> Result<()> {
        let start = first * BLOCK_BYTES;
        let count = self.inner().read(object, start, blocks).map_err(|error| as_seen(error, head.size))?;
        blocks[count..].fill(0);
        let mut group: Option<(u64, Option<BlockGroup>)> = None;
        for (number, bytes) in (first..).zip(blocks.chunks_exact_mut(BLOCK)) {
            let entry = if number == 0 {
                head.first
            } else {
                let wanted = number / GROUP_BLOCKS;
                if group.as_ref().is_none_or(|(known, _)| *known != wanted) {
                    group = Some((wanted, self.group(object, wanted, head.key(object)?)?));
                }
                group
                    .as_ref()
                    .and_then(|(_, group)| group.as_ref())
                    .map_or(BlockEntry::default(), |one| one.entry(number))
            };
            self.open_block(object, head, &Numbered { number, entry }, bytes)?;
        }
        Ok(())
    }

    /// What a block holds, in place of what is stored of it. What does not count is zeros.
    fn open_block(
        &self,
        object: ObjectId,
        head: &Head,
        &Numbered { number, entry }: &Numbered,
        bytes: &mut [u8],
    ) -> Result<()> {
        let lost = |why: &str| {
            let start = number * BLOCK_BYTES;
            let end = (start + BLOCK_BYTES).min(head.size.max(start));
            Error::corrupt(object, start..end, why)
        };
        if entry.is_inline() {
            let value = self.inner().attribute(object, INLINE_KEY)?.unwrap_or_default();
            let plain = head.key(object)?.cipher.open_value(&Context::new(What::Inline, object, number), &value);
            let plain = plain.filter(|plain| (entry.counting().end as usize..=BLOCK).contains(&plain.len()));
            let plain = plain.ok_or_else(|| lost("the bytes of the small object are not what was sealed"))?;
            bytes.fill(0);
            bytes[..plain.len()].copy_from_slice(&plain);
        } else {
            let stored = entry.stored_bytes(number) as usize;
            let is_hole = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
            if is_hole(&bytes[..(UNIT_BYTES as usize).min(stored)]) && is_hole(&bytes[..stored]) {
                return if entry.is_absent() && !is_hole(bytes) {
                    Err(lost("what is stored there was never sealed"))
                } else if !entry.is_absent() && self.tells_holes() {
                    Err(lost("what was sealed there is gone"))
                } else {
                    bytes.fill(0);
                    Ok(())
                };
            }
            let context = Context::new(What::Block, object, number);
            let is_sealed = head.key(object)?.cipher.open(&entry.nonce, &context, &mut bytes[..stored], &entry.tag);
            if !is_sealed && !is_planted(Bug::EncryptedTagIgnored) {
                return Err(lost("what is stored there is not what was sealed"));
            }
        }
        let Range { start, end } = entry.counting();
        bytes[..start as usize].fill(0);
        bytes[if is_planted(Bug::EncryptedCutForgotten) { BLOCK } else { end as usize }..].fill(0);
        if entry.has_holes() {
            let holes = self.holes(object, head, number)?;
            holes.iter().for_each(|(start, end)| bytes[start as usize..end as usize].fill(0));
        }
        Ok(())
    }

    /// Which bytes of a block are holes, if its entry says that some are.
    pub(super) fn holes(&self, object: ObjectId, head: &Head, block: u64) -> Result<Ranges> {
        let value = self.inner().attribute(object, holes_key(block))?.unwrap_or_default();
        let plain = head.key(object)?.cipher.open_value(&Context::new(What::Holes, object, block), &value);
        plain.as_deref().and_then(holes_of).ok_or_else(|| {
            let start = block * BLOCK_BYTES;
            let range = start..(start + BLOCK_BYTES).min(head.size.max(start));
            Error::corrupt(object, range, "which bytes of the block are holes is not what was sealed")
        })
    }
}

/// Damage of the wrapped object as damage of one of this size: a block is lost as a whole.
pub(super) fn as_seen(error: Error, size: u64) -> Error {
    let Some(range) = error.range.clone().filter(|_| error.kind == ErrorKind::Corrupt) else { return error };
    let start = range.start / BLOCK_BYTES * BLOCK_BYTES;
    let end = range.end.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES).min(size);
    error.in_bytes(start..end.max(start))
}

/// Holes as they are stored: start and end of each, or a bit for each byte of the block if that is
/// shorter. On a full device a punch may add an attribute; it should be a small one.
pub(super) fn value_of(holes: &Ranges) -> Vec<u8> {
    if holes.count() * HOLE_BYTES < BITS_BYTES {
        let ends = holes.iter().flat_map(|(start, end)| [start as u16, end as u16]);
        return ends.flat_map(u16::to_le_bytes).collect();
    }
    let mut bits = vec![0; BITS_BYTES];
    for byte in holes.iter().flat_map(|(start, end)| start as usize..end as usize) {
        bits[byte / 8] |= 1 << (byte % 8);
    }
    bits
}

fn holes_of(value: &[u8]) -> Option<Ranges> {
    let mut holes = Ranges::default();
    if value.len() == BITS_BYTES {
        for byte in (0..BLOCK).filter(|byte| value[byte / 8] & (1 << (byte % 8)) != 0) {
            holes.add(byte as u64, byte as u64 + 1);
        }
        return Some(holes);
    }
    let (all, rest) = value.as_chunks::<HOLE_BYTES>();
    for &[start, start_high, end, end_high] in all {
        let (start, end) = (u16::from_le_bytes([start, start_high]), u16::from_le_bytes([end, end_high]));
        if usize::from(end) > BLOCK {
            return None;
        }
        holes.add(u64::from(start), u64::from(end));
    }
    rest.is_empty().then_some(holes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_read_as_they_were_stored() {
        let mut holes = Ranges::of(3, 17);
        for number in 0..300 {
            holes.add(40 + number * 10, 43 + number * 10);
            let value = value_of(&holes);
            assert!(value.len() <= BITS_BYTES, "{} bytes", value.len());
            assert_eq!(holes_of(&value).as_ref(), Some(&holes));
        }
        holes.add(4000, 4096);
        assert_eq!(holes_of(&value_of(&holes)), Some(holes));
        assert_eq!(value_of(&Ranges::of(0, 4096)).len(), HOLE_BYTES);
        assert!(holes_of(&[0; 511]).is_none() && holes_of(&[0, 0, 1, 16]).is_none());
    }

    #[test]
    fn damage_is_that_of_whole_blocks() {
        let error = |range| as_seen(Error::corrupt(ObjectId(1), range, ""), 10_000).range;
        assert_eq!(error(5000..5001), Some(4096..8192));
        assert_eq!(error(0..9000), Some(0..10_000));
    }
}
