//! Deferred changes: what a mount found in the journal and the index does not have yet.
//!
//! To apply a change reads the nodes that it changes, and on a volume that was written all over
//! these are many. So a mount only notes down what the journal says, by what it is about: an
//! attribute, or the onode and content of an object. Whatever is asked for is *settled* first, one
//! or two nodes at a time; each commit settles a little more, and so does background work. A
//! checkpoint before that stores what is left in one piece, which the superblock names, and the
//! next mount takes it up from there.
//!
//! Kept true: content that a deferred change places counts as referred to, so that nothing is set
//! free under it; what it replaces goes on counting until it is settled, so the free space is never
//! told too high. Changes of one unit keep their order. Across units it does not matter: an
//! attribute is set whatever its onode says, and what removes an object takes all of its units with
//! it.

use crate::core::Core;
use crate::index::tree::Key;
use crate::log::record::{Change, Piece, Record};
use crate::medium::errors::damaged;
use crate::medium::format::{BlobReference, DEFERRED_PIECE, FEATURE_MEMORY, Superblock};
use crate::space::items::Owner;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::{Mutation, ObjectId, Result};

/// Changes of one unit after which it is settled at once: the same nodes serve all of them.
const UNIT_CHANGES_MAX: usize = 16;

/// Changes that the index does not have yet.
#[derive(Default)]
pub struct Deferred {
    /// By the key of the attribute, or of the onode.
    units: BTreeMap<Key, Vec<Change>>,
    bytes: usize,
    /// A unit is being applied: nothing more is to be settled for that. An object that is removed
    /// and made again has attributes in other units, which are those of the new one.
    applying: bool,
    /// Where the newest checkpoint has them; counted as referred to.
    stored: Option<BlobReference>,
}

impl Deferred {
    /// Whether the index has everything.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Memory they take, about.
    pub const fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing more is to be settled now.
    fn is_applying(&self) -> bool {
        self.applying && !is_planted(Bug::DeferredLivesMixed)
    }

    fn put(&mut self, key: Key, changes: Vec<Change>) {
        self.bytes += bytes_of(&changes);
        if let Some(before) = self.units.insert(key, changes) {
            self.bytes = self.bytes.saturating_sub(bytes_of(&before));
        }
    }

    fn take(&mut self, key: &Key) -> Option<Vec<Change>> {
        let changes = self.units.remove(key)?;
        self.bytes = self.bytes.saturating_sub(bytes_of(&changes));
        Some(changes)
    }

    /// The next unit at or after `from`.
    fn next(&self, from: &Key) -> Option<Key> {
        self.units.range(from..).next().map(|(key, _)| *key)
    }

    /// How many objects they make and remove.
    fn made_and_removed(&self) -> (u64, u64) {
        let count = |wanted: fn(&Mutation) -> bool| {
            let changes = self.units.values().flatten();
            changes.filter(|change| matches!(change, Change::Mutation(one) if wanted(one))).count() as u64
        };
        (count(|one| matches!(one, Mutation::Create { .. })), count(|one| matches!(one, Mutation::Remove { .. })))
    }
}

/// Memory that changes take, about.
fn bytes_of(changes: &[Change]) -> usize {
    let more = |change: &Change| match change {
        Change::Place { pieces, .. } => pieces.capacity() * size_of::<Piece>(),
        Change::Patch { patch, .. } => patch.middle.capacity(),
        Change::Mutation(Mutation::SetAttribute { value, .. }) => value.capacity(),
        Change::Mutation(_) => 0,
    };
    // The key and the list's head in the map.
    48 + changes.iter().map(|change| size_of::<Change>() + more(change)).sum::<usize>()
}

/// Whether an object is there after a change that was not before, or the other way round.
fn makes_or_removes(change: &Change) -> bool {
    matches!(change, Change::Mutation(Mutation::Create { .. } | Mutation::Remove { .. }))
}

/// What a change is about.
fn unit_of(change: &Change) -> Key {
    match change {
        Change::Patch { object, key, .. }
        | Change::Mutation(Mutation::SetAttribute { object, key, .. } | Mutation::RemoveAttribute { object, key }) => {
            Key::attribute(*object, *key)
        }
        Change::Place { object, .. } => Key::onode(*object),
        Change::Mutation(mutation) => Key::onode(mutation.object()),
    }
}

impl Core {
    /// Notes down a change of the journal.
    pub fn defer(&mut self, change: Change) -> Result<()> {
        if self.incompatible & FEATURE_MEMORY != 0 {
            // The memory beside the flash has onodes and extents without a read.
            return self.apply(&change);
        }
        self.retain_places(&change)?;
        if let Change::Mutation(Mutation::Create { object, .. }) = &change {
            self.next_object = self.next_object.max(object.0 + 1);
        }
        let key = unit_of(&change);
        let mut changes = self.deferred.take(&key).unwrap_or_default();
        match (&change, changes.last_mut()) {
            (Change::Mutation(Mutation::Remove { object }), _) => {
                let is_new = matches!(changes.first(), Some(Change::Mutation(Mutation::Create { .. })));
                self.forget_object(*object, changes);
                if is_new {
                    return Ok(());
                }
                changes = vec![change];
            }
            (Change::Mutation(Mutation::SetAttribute { .. } | Mutation::RemoveAttribute { .. }), _) => {
                changes = vec![change];
            }
            (Change::Patch { patch, .. }, Some(Change::Mutation(Mutation::SetAttribute { value, .. }))) => {
                match patch.apply(value) {
                    Some(patched) => *value = patched,
                    None => changes.push(change),
                }
            }
            _ => changes.push(change),
        }
        let is_long = changes.len() >= UNIT_CHANGES_MAX;
        self.deferred.put(key, changes);
        if is_long {
            self.settle(&key)
        } else if self.deferred.bytes > self.dirty_limit {
            self.settle_all()
        } else {
            Ok(())
        }
    }

    /// An object is removed: what was deferred of it is of no use any more.
    fn forget_object(&mut self, object: ObjectId, changes: Vec<Change>) {
        for change in &changes {
            self.release_places(change);
        }
        while let Some(key) = self.deferred.next(&Key::onode(object)).filter(|key| key.object == object.0) {
            self.deferred.take(&key);
        }
    }

    /// Counts what a change places as referred to.
    fn retain_places(&mut self, change: &Change) -> Result<()> {
        let Change::Place { object, pieces, .. } = change else { return Ok(()) };
        let layout = self.log.store.layout;
        if pieces.iter().any(|piece| piece.length == 0 || !layout.contains(piece.location, u64::from(piece.length))) {
            return Err(damaged(format!("a place of {object} lies outside the medium")));
        }
        for piece in pieces {
            self.log.table.retain(layout.segment_of(piece.location), u64::from(piece.length));
        }
        Ok(())
    }

    fn release_places(&mut self, change: &Change) {
        let Change::Place { pieces, .. } = change else { return };
        for piece in pieces {
            self.log.release(piece.location, u64::from(piece.length));
        }
    }

    /// Makes sure that the index has what was deferred of `key`.
    pub fn settle(&mut self, key: &Key) -> Result<()> {
        if self.deferred.is_empty() || self.deferred.is_applying() {
            return Ok(());
        }
        let onode = Key::onode(ObjectId(key.object));
        self.settle_unit(&onode)?;
        if key.as_attribute().is_some() { self.settle_unit(key) } else { Ok(()) }
    }

    /// Makes sure that the index has what was deferred of everything that a walk from `from` on
    /// looks for: the other attributes of that object, its content, or which objects there are.
    pub fn settle_walk(&mut self, from: &Key) -> Result<()> {
        if self.deferred.is_empty() || self.deferred.is_applying() {
            return Ok(());
        }
        self.settle_unit(&Key::onode(ObjectId(from.object)))?;
        loop {
            let mut rest = self.deferred.units.range(from..);
            let next = match from.kind {
                Key::ONODE => {
                    rest.find(|(key, changes)| key.kind == Key::ONODE && changes.iter().any(makes_or_removes))
                }
                Key::EXTENT => None,
                _ => rest.next().filter(|(key, _)| key.object == from.object),
            };
            let Some(key) = next.map(|(key, _)| *key) else { return Ok(()) };
            self.settle_unit(&key)?;
        }
    }

    /// Makes sure that the index has everything.
    pub fn settle_all(&mut self) -> Result<()> {
        self.settle_some(u32::MAX)?;
        self.drop_stored();
        Ok(())
    }

    /// Drops the unit that the next settling would begin with.
    pub fn drop_next_deferred(&mut self) {
        if let Some(key) = self.deferred.next(&Key::MIN) {
            self.deferred.take(&key);
        }
    }

    /// The same as [`Self::settle_all`], with checkpoints in between as the cleaner has them.
    pub fn settle_in_steps(&mut self) -> Result<()> {
        while let Some(key) = self.deferred.next(&Key::MIN) {
            if self.dirty_bytes() > self.cleaning_dirty_limit() {
                self.prepare_writing()?;
                self.checkpoint(false)?;
            }
            self.settle_unit(&key)?;
        }
        Ok(())
    }

    /// Settles up to `count` units; whether any is left.
    pub fn settle_some(&mut self, count: u32) -> Result<bool> {
        for _ in 0..count {
            let Some(key) = self.deferred.next(&Key::MIN) else { break };
            self.settle_unit(&key)?;
        }
        Ok(!self.deferred.is_empty())
    }

    fn settle_unit(&mut self, key: &Key) -> Result<()> {
        let Some(changes) = self.deferred.take(key) else { return Ok(()) };
        for (number, change) in changes.iter().enumerate() {
            self.release_places(change);
            self.deferred.applying = true;
            let applied = self.apply(change);
            self.deferred.applying = false;
            if let Err(error) = applied {
                self.retain_places(change)?;
                self.deferred.put(*key, changes[number..].to_vec());
                if !matches!(error.kind, ErrorKind::Corrupt | ErrorKind::NotFound) {
                    return Err(error);
                }
                let why = format!("what the journal held cannot be applied: {error}");
                if !self.options.read_only {
                    self.log.store.latch(&why);
                }
                return Err(damaged(why));
            }
        }
        Ok(())
    }

    /// Objects that exist with those that are deferred.
    pub fn object_count(&self) -> u64 {
        let (made, removed) = self.deferred.made_and_removed();
        (self.objects + made).saturating_sub(removed)
    }

    /// Whether a checkpoint can store what is deferred.
    pub fn can_store_deferred(&self) -> bool {
        let layout = &self.log.store.layout;
        let references = (self.log.table.pieces().len() + 1) * size_of::<BlobReference>();
        let most = (layout.segment_bytes() / 4).min(self.dirty_limit as u64 / 2);
        // In memory they take more than stored.
        self.deferred.bytes as u64 / 2 <= most && size_of::<Superblock>() + references <= layout.payload_bytes as usize
    }

    /// Stores what is deferred anew, for the coming checkpoint.
    pub fn store_deferred(&mut self) -> Result<()> {
        self.drop_stored();
        if self.deferred.is_empty() {
            return Ok(());
        }
        let changes = self.deferred.units.values().flatten().cloned().collect();
        let bytes = Record::Commit { transaction: self.log.transaction, changes }.encode();
        self.deferred.stored = Some(self.log.write_blob(&bytes, Owner::TablePiece { piece: DEFERRED_PIECE })?);
        Ok(())
    }

    fn drop_stored(&mut self) {
        if let Some(stored) = self.deferred.stored.take() {
            self.log.release(stored.location.get(), u64::from(stored.length.get()));
        }
    }

    /// Where the coming checkpoint has what is deferred.
    pub fn stored_deferred(&self) -> Option<BlobReference> {
        self.deferred.stored
    }

    /// Takes up what a checkpoint stored.
    pub fn load_deferred(&mut self, stored: BlobReference) -> Result<()> {
        if is_planted(Bug::DeferredForgotten) {
            return Ok(());
        }
        let bytes = self.log.read_blob(stored, IoTag::Recovery)?;
        for change in decode(&bytes)? {
            let key = unit_of(&change);
            let mut changes = self.deferred.take(&key).unwrap_or_default();
            changes.push(change);
            self.deferred.put(key, changes);
        }
        self.deferred.stored = Some(stored);
        Ok(())
    }
}

/// The changes that a checkpoint stored.
///
/// # Errors
/// `Corrupt` if they are none.
pub fn decode(bytes: &[u8]) -> Result<Vec<Change>> {
    match Record::decode(bytes)? {
        Record::Commit { changes, .. } => Ok(changes),
        _ => Err(damaged("what a checkpoint deferred is no list of changes")),
    }
}
