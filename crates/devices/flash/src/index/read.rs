//! Reading objects: attributes, extents, lists, and all content of one to see whether it is sound.
//! Reads of content are in `plan`. Nothing is returned that was not verified.

use crate::index::Index;
use crate::index::apply::Extent;
use crate::index::plan::plan_part;
use crate::index::tree::Sought;
use crate::log::Log;
use crate::log::record::Piece;
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::ErrorKind;
use onode_engine::Key;
use onode_media::IoTag;
use onode_object::{AttributeKey, Error, ObjectId, ObjectStat, Result};

/// So many entries of an object are passed before a list looks for the next object anew.
const PASSED_MAX: u32 = 16;

impl Index {
    /// An attribute's value.
    pub fn attribute(&mut self, log: &mut Log, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        let found = self.entry(log, &Key::attribute(object, key), <[u8]>::to_vec)?;
        if found.is_none() {
            self.require(log, object)?;
        }
        Ok(found)
    }

    /// Attributes in order.
    pub fn attributes(
        &mut self,
        log: &mut Log,
        object: ObjectId,
        from: AttributeKey,
        limit: usize,
    ) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let mut found = Vec::new();
        self.scan(log, &Key::attribute(object, from), &mut |key, value| match key
            .as_attribute()
            .filter(|_| key.object == object.0 && found.len() < limit)
        {
            Some(attribute) => {
                found.push((attribute, value.to_vec()));
                true
            }
            None => false,
        })?;
        if found.is_empty() {
            self.require(log, object)?;
        }
        Ok(found)
    }

    /// Size and settings.
    pub fn stat(&mut self, log: &mut Log, object: ObjectId) -> Result<ObjectStat> {
        let onode = self.require(log, object)?;
        let accessed = self.access_times().get(&object).copied().unwrap_or(onode.accessed);
        Ok(ObjectStat { size: onode.size, allocated: onode.allocated, hints: onode.hints, accessed })
    }

    /// Object ids in order. The tree is left at each object and entered again at the next.
    pub fn list(&mut self, log: &mut Log, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let mut found = Vec::new();
        let mut next = Some(from);
        while let Some(from) = next.take().filter(|_| found.len() < limit) {
            let mut passed = 0;
            self.scan(log, &Key::onode(from), &mut |key, _| {
                if key.kind == Key::ONODE {
                    passed = 0;
                    found.push(ObjectId(key.object));
                    return found.len() < limit;
                }
                passed += 1;
                if passed > PASSED_MAX {
                    // Many attributes or extents: skip to the next object.
                    next = key.object.checked_add(1).map(ObjectId);
                }
                passed <= PASSED_MAX
            })?;
        }
        Ok(found)
    }

    /// Ranges that hold data.
    pub fn data_ranges(
        &mut self,
        log: &mut Log,
        object: ObjectId,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>> {
        self.require(log, object)?;
        let extents = self.extents(log, object, offset..u64::MAX, limit)?;
        Ok(extents
            .iter()
            .map(|extent: &Extent| {
                let start = extent.offset.max(offset);
                (start, extent.end() - start)
            })
            .collect())
    }

    /// Reads and verifies all of `objects`, many extents together; returns the bytes verified.
    pub fn verify(&mut self, log: &mut Log, objects: &[ObjectId], damage: &mut Vec<Error>) -> Result<u64> {
        let sought: Vec<Sought> =
            objects.iter().map(|object| Sought { key: Key::extent(*object, 0), level: 0 }).collect();
        self.entries_mut().load_ahead(log, &sought, IoTag::Check);
        let mut batch = VerifyBatch::default();
        for &object in objects {
            let mut from = 0;
            loop {
                let extents = match self.extents(log, object, from..u64::MAX, 64) {
                    Ok(extents) => extents,
                    Err(error) if error.kind == ErrorKind::Corrupt => {
                        batch.verify(log, damage);
                        damage.push(error.about(object));
                        break;
                    }
                    Err(error) => return Err(error),
                };
                let Some(last) = extents.last() else { break };
                from = last.end();
                for extent in extents {
                    batch.push(log, object, extent, damage);
                }
            }
        }
        batch.verify(log, damage);
        Ok(batch.verified)
    }
}

/// Content that is verified together.
#[derive(Default)]
struct VerifyBatch {
    parts: Vec<VerifyPart>,
    bytes: u64,
    /// Bytes that were sound, in this batch and those before.
    verified: u64,
}

/// A part of an extent.
struct VerifyPart {
    object: ObjectId,
    extent: Extent,
    range: Range<u64>,
}

impl VerifyBatch {
    /// Bytes of a batch at most.
    const BYTES_MAX: u64 = 1 << 20;

    /// Adds what `object` has in `extent`, and verifies what is enough for a batch.
    fn push(&mut self, log: &mut Log, object: ObjectId, extent: Extent, damage: &mut Vec<Error>) {
        let mut at = extent.offset;
        while at < extent.end() {
            let length = (extent.end() - at).min(Self::BYTES_MAX);
            if self.bytes + length > Self::BYTES_MAX {
                self.verify(log, damage);
            }
            self.parts.push(VerifyPart { object, extent, range: at..at + length });
            self.bytes += length;
            at += length;
        }
    }

    /// Reads what is in the batch: all of it together or, if that fails, each part by itself.
    fn verify(&mut self, log: &mut Log, damage: &mut Vec<Error>) {
        let parts = core::mem::take(&mut self.parts);
        let bytes = core::mem::take(&mut self.bytes);
        let places: Vec<Piece> = parts.iter().map(VerifyPart::place).collect();
        if log.read_ahead(&places, IoTag::Check).is_some() {
            self.verified += bytes;
            return;
        }
        for part in parts {
            self.verified += part.verify(log, damage);
        }
    }
}

impl VerifyPart {
    const fn place(&self) -> Piece {
        let location = self.extent.piece.location + (self.range.start - self.extent.offset);
        Piece { location, length: (self.range.end - self.range.start) as u32 }
    }

    /// Reads it and tells every damaged range; returns how many bytes are sound.
    fn verify(&self, log: &mut Log, damage: &mut Vec<Error>) -> u64 {
        let mut bytes = alloc::vec![0; self.place().length as usize];
        let (mut from, mut sound) = (self.range.start, 0);
        while from < self.range.end {
            let Err(error) = self.read(log, from, &mut bytes) else { return sound + (self.range.end - from) };
            // A read tells its first damage only, so all before that is sound; what lies behind it
            // is read for itself.
            let told = error.range.clone().filter(|told| error.kind == ErrorKind::Corrupt && told.end > from);
            let damaged = told.unwrap_or(from..self.range.end);
            sound += damaged.start.saturating_sub(from);
            from = damaged.end;
            damage.push(error);
        }
        sound
    }

    /// Reads it from an offset of the object on.
    fn read(&self, log: &mut Log, from: u64, bytes: &mut [u8]) -> Result<()> {
        let length = (self.range.end - from) as usize;
        let bytes = bytes.get_mut(..length).unwrap_or_default();
        let plan = plan_part(log, self.object, &self.extent, from..self.range.end, bytes)?;
        plan.carry_out(&mut log.reader(IoTag::Check), bytes).map(drop)
    }
}

/// An error for an object id that no host may use.
pub fn check_host_object(object: ObjectId) -> Result<()> {
    if object >= ObjectId::FIRST_OF_DEVICE {
        return Err(Error::of(ErrorKind::NotFound, object, "this id belongs to the device"));
    }
    Ok(())
}
