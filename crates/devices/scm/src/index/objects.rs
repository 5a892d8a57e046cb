//! What the index says of an object, with what lies in the log: onode, attributes, extents.
//!
//! An item that is read here was verified by the recovery or the commit that put its place into the
//! index; one that does not decode is damage. Content is read in [`read`](crate::index::read).

use crate::index::Index;
use crate::index::node::{Key, Value};
use crate::log::item::{Item, Objects, Onode};
use crate::log::place::Place;
use crate::medium::slot::{BEHIND_TABLES, is_table};
use onode_base::ErrorKind;
use onode_media::Pmem;
use onode_object::powers::Content;
use onode_object::{AttributeKey, Error, ObjectId, Result};

fn not_found(object: ObjectId) -> Error {
    Error::of(ErrorKind::NotFound, object, "there is no such object")
}

impl<P: Pmem> Index<P> {
    /// The item at a place of the log.
    fn read_item<R>(&self, place: Place, object: ObjectId, with: impl FnOnce(Item<'_>) -> R) -> Result<R> {
        let mut small = [0; 256];
        let mut large = Vec::new();
        let bytes = place.bytes() as usize;
        let buffer = if bytes <= small.len() {
            &mut small[..bytes]
        } else {
            large.resize(bytes, 0);
            &mut large[..]
        };
        self.memory.read(place.address(), buffer);
        match Item::decode(&mut &*buffer, &mut Objects::only(object)) {
            Some(item) => Ok(with(item)),
            None => Err(Error::of(ErrorKind::Corrupt, object, format!("log item at byte {}", place.address()))),
        }
    }

    /// The onode at a place of the log.
    pub(crate) fn read_onode(&self, place: Place, object: ObjectId) -> Result<Onode> {
        let found = self.read_item(place, object, |item| match item {
            Item::Onode(_, onode) => Some(onode),
            _ => None,
        })?;
        let wrong = || Error::of(ErrorKind::Corrupt, object, format!("no onode at byte {}", place.address()));
        found.ok_or_else(wrong)
    }

    /// The value of the attribute at a place of the log.
    fn read_attribute(&self, place: Place, object: ObjectId) -> Result<Vec<u8>> {
        let value = self.read_item(place, object, |item| match item {
            Item::Attribute(_, _, value) => Some(value.to_vec()),
            _ => None,
        })?;
        value.ok_or_else(|| Error::of(ErrorKind::Corrupt, object, format!("no attribute at byte {}", place.address())))
    }

    /// The onode of an object, and the bytes of its blocks.
    pub(crate) fn onode(&self, object: ObjectId) -> Result<(Onode, u64)> {
        self.onode_at(object).map(|(onode, _, allocated)| (onode, allocated))
    }

    /// The same with the place of its item.
    pub(crate) fn onode_at(&self, object: ObjectId) -> Result<(Onode, Place, u64)> {
        match self.get(Key::onode(object)) {
            Some(Value(place, allocated)) => Ok((self.read_onode(Place(place), object)?, Place(place), allocated)),
            None => Err(not_found(object)),
        }
    }

    /// The onode of an object, if it is there.
    pub(crate) fn find_onode(&self, object: ObjectId) -> Result<Option<Onode>> {
        match self.onode(object) {
            Ok((onode, _)) => Ok(Some(onode)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn require(&self, object: ObjectId) -> Result<()> {
        self.get(Key::onode(object)).map(|_| ()).ok_or_else(|| not_found(object))
    }

    /// An attribute of an object that may not be there.
    pub(crate) fn find_attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        let found = self.get(Key::attribute(object, key));
        found.map(|Value(place, _)| self.read_attribute(Place(place), object)).transpose()
    }

    /// An attribute of an object that has to be there.
    pub(crate) fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        match self.tree.get_or_neighbour(&*self.memory, Key::attribute(object, key)) {
            Ok(Value(place, _)) => self.read_attribute(Place(place), object).map(Some),
            // What has entries is there.
            Err(true) => Ok(None),
            Err(false) => self.require(object).map(|()| None),
        }
    }

    /// At most `limit` attributes of an object, from a key on.
    pub(crate) fn attributes(
        &self,
        object: ObjectId,
        from: AttributeKey,
        limit: usize,
    ) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.require(object)?;
        let mut places = Vec::new();
        if limit > 0 {
            self.scan(Key::attribute(object, from), |key, value| {
                let attribute = key.as_attribute().filter(|_| key.object() == object);
                places.extend(attribute.map(|attribute| (attribute, Place(value.0))));
                attribute.is_some() && places.len() < limit
            });
        }
        places.into_iter().map(|(key, place)| Ok((key, self.read_attribute(place, object)?))).collect()
    }

    /// At most `limit` objects, from an id on.
    pub(crate) fn list(&self, from: ObjectId, limit: usize) -> Vec<ObjectId> {
        let mut found = Vec::new();
        let mut next = Some(from);
        while let Some(from) = next.filter(|_| found.len() < limit) {
            next = None;
            self.scan(Key::onode(from), |key, _| {
                if is_table(key.object) {
                    next = Some(BEHIND_TABLES);
                } else {
                    found.push(key.object());
                    next = key.object.checked_add(1).map(ObjectId);
                }
                false
            });
        }
        found
    }

    /// At most `limit` ranges of an object that have blocks, from `offset` on: offsets and lengths.
    pub(crate) fn shown_extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        let (onode, _) = self.onode(object)?;
        let mut found = Vec::new();
        let mut at = offset;
        while found.len() < limit && at < onode.size {
            let Some(extent) = self.extent_at(object, at).filter(|extent| extent.offset < onode.size) else { break };
            let start = extent.offset.max(at);
            found.push((start, extent.end().min(onode.size) - start));
            at = extent.end();
        }
        Ok(found)
    }

    /// The one block that an object is, if it is one.
    pub(crate) fn whole_block(&self, object: ObjectId) -> Result<Content> {
        let (onode, allocated) = self.onode(object)?;
        match self.extent_at(object, 0) {
            Some(extent) if extent.offset == 0 && extent.length == allocated && extent.length >= onode.size => {
                Ok(Content { object, address: extent.address, bytes: onode.size, is_durable: true })
            }
            _ => Err(Error::of(ErrorKind::Invalid, object, "it is not one block of memory")),
        }
    }
}
