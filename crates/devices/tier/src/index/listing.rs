//! What there is: objects and their attributes, in order.

use crate::index::Index;
use crate::medium::errors::damaged;
use alloc::format;
use alloc::vec::Vec;
use onode_engine::Key;
use onode_object::{AttributeKey, ObjectId, Result};

impl Index {
    /// The attributes of an object from `from` on, at most `limit`.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Media`.
    pub fn attributes(
        &mut self,
        object: ObjectId,
        from: AttributeKey,
        limit: usize,
    ) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.known(object)?;
        let mut out = Vec::new();
        let mut from = Some(from);
        while let Some(start) = from.filter(|_| out.len() < limit) {
            let found = self.tree.next(&mut self.reader, &Key::attribute(object, start))?;
            let Some((key, value)) = found else { break };
            let Some(found) = key.as_attribute().filter(|_| key.object == object.0) else { break };
            out.push((found, value.to_vec()));
            from = found.next();
        }
        Ok(out)
    }

    /// Objects from `from` on, at most `limit`.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn list(&mut self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let mut out = Vec::new();
        let mut from = Some(from.0);
        while let Some(start) = from.filter(|_| out.len() < limit) {
            let found = self.tree.next(&mut self.reader, &Key::onode(ObjectId(start)))?;
            let Some((key, _)) = found else { break };
            if key.kind != Key::ONODE {
                // The rest of an object that has no onode: nothing that could be shown.
                let object = ObjectId(key.object);
                if key.object != start {
                    return Err(damaged(format!("{object} has content and no onode")));
                }
            } else {
                out.push(ObjectId(key.object));
            }
            from = key.object.checked_add(1);
        }
        Ok(out)
    }

    /// The first object at or behind `from` that has any entry.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn next_object(&mut self, from: u64) -> Result<Option<ObjectId>> {
        let found = self.tree.next(&mut self.reader, &Key::onode(ObjectId(from)))?;
        Ok(found.map(|(key, _)| ObjectId(key.object)))
    }

    /// Takes everything of an object out, and tells nobody where it lay.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn drop_entries(&mut self, object: u64) -> Result<()> {
        while let Some((key, _)) = self.tree.next(&mut self.reader, &Key::onode(ObjectId(object)))? {
            if key.object != object {
                break;
            }
            self.tree.remove(&mut self.reader, &key)?;
        }
        Ok(())
    }
}
