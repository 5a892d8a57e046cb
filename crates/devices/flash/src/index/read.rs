//! Reading objects: attributes, extents, lists, and all content of one to see whether it is sound.
//! Reads of content are in `plan`. Nothing is returned that was not verified.

use crate::index::Index;
use crate::index::apply::Extent;
use crate::index::plan::plan_part;
use crate::log::Log;
use alloc::vec::Vec;
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

    /// Reads and verifies all of one object; returns the bytes verified.
    pub fn verify(&mut self, log: &mut Log, object: ObjectId, damage: &mut Vec<Error>) -> Result<u64> {
        let mut verified = 0;
        let mut from = 0;
        loop {
            let extents = match self.extents(log, object, from..u64::MAX, 64) {
                Ok(extents) => extents,
                Err(error) if error.kind == ErrorKind::Corrupt => {
                    damage.push(error.about(object));
                    return Ok(verified);
                }
                Err(error) => return Err(error),
            };
            let Some(last) = extents.last() else { return Ok(verified) };
            from = last.end();
            for extent in extents {
                let mut at = extent.offset;
                while at < extent.end() {
                    let length = (extent.end() - at).min(1 << 20);
                    let mut bytes = alloc::vec![0; length as usize];
                    let plan = plan_part(log, object, &extent, at..at + length, &mut bytes);
                    let mut reader = log.reader(IoTag::Check);
                    match plan.and_then(|plan| plan.carry_out(&mut reader, &mut bytes)) {
                        Ok(_) => verified += length,
                        Err(error) => damage.push(error),
                    }
                    at += length;
                }
            }
        }
    }
}

/// An error for an object id that no host may use.
pub fn check_host_object(object: ObjectId) -> Result<()> {
    if object >= ObjectId::FIRST_OF_DEVICE {
        return Err(Error::of(ErrorKind::NotFound, object, "this id belongs to the device"));
    }
    Ok(())
}
