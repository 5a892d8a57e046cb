//! Deferred changes: what a mount found in the journal and the index does not have yet.
//!
//! To apply a change reads the nodes that it changes, and on a volume that was written all over
//! these are many. So a mount only notes down what the journal says, by what it is about: an
//! attribute, or the onode and content of an object. Whatever is asked for is applied first, one or
//! two nodes at a time; each commit applies a little more, and so does background work. A
//! checkpoint before that stores what is left in one piece, which the superblock names, and the
//! next mount takes it up from there.
//!
//! Kept true: content that a deferred change places counts as referred to, so that nothing is set
//! free under it; what it replaces goes on counting until it is applied, so the free space is never
//! told too high. Changes of one unit keep their order. Across units it does not matter: an
//! attribute is set whatever its onode says, and what removes an object takes all of its units with
//! it.

mod size;

use crate::index::apply::Applied;
use crate::log::Log;
use crate::log::record::{Change, Record};
use crate::medium::errors::damaged;
use crate::medium::format::{BlobReference, DEFERRED_PIECE, Superblock};
use crate::space::items::Owner;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_engine::Key;
use onode_media::IoTag;
use onode_object::{Error, Mutation, ObjectId, Result};
use size::{Size, is_cut};

/// Changes of one unit after which it is applied at once: the same nodes serve all of them.
const UNIT_CHANGES_MAX: usize = 16;

/// Changes that the index does not have yet.
pub struct Deferred {
    /// By the key of the attribute, or of the onode.
    units: BTreeMap<Key, Vec<Change>>,
    size: Size,
    /// Where the newest checkpoint has them; counted as referred to.
    stored: Option<BlobReference>,
    /// Of a volume that is not to be changed.
    read_only: bool,
}

impl Deferred {
    /// Nothing is deferred. `read_only` says that the volume is not to be changed.
    pub const fn new(read_only: bool) -> Self {
        Self { units: BTreeMap::new(), size: Size { memory: 0, others: 0, cuts: 0 }, stored: None, read_only }
    }

    /// Whether the index has everything.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Memory they take, about.
    pub const fn memory_bytes(&self) -> usize {
        self.size.memory
    }

    /// Bytes that a checkpoint stores of them, at most.
    pub const fn stored_bytes(&self) -> usize {
        self.size.stored_bytes()
    }

    fn put(&mut self, key: Key, changes: Vec<Change>) {
        self.size = self.size.plus(Size::of(&changes));
        if let Some(before) = self.units.insert(key, changes) {
            self.size = self.size.minus(Size::of(&before));
        }
    }

    fn take(&mut self, key: &Key) -> Option<Vec<Change>> {
        let changes = self.units.remove(key)?;
        self.size = self.size.minus(Size::of(&changes));
        Some(changes)
    }

    /// The next unit at or after `from`.
    fn next(&self, from: &Key) -> Option<Key> {
        self.units.range(from..).next().map(|(key, _)| *key)
    }

    /// How many objects they make and remove.
    pub fn made_and_removed(&self) -> (u64, u64) {
        let count = |wanted: fn(&Mutation) -> bool| {
            let changes = self.units.values().flatten();
            changes.filter(|change| matches!(change, Change::Mutation(one) if wanted(one))).count() as u64
        };
        (count(|one| matches!(one, Mutation::Create { .. })), count(|one| matches!(one, Mutation::Remove { .. })))
    }
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

impl Deferred {
    /// Notes down a change of the journal.
    pub fn defer(&mut self, applied: &mut Applied, log: &mut Log, change: Change) -> Result<()> {
        if let Change::Mutation(Mutation::Move { object, to, .. }) = &change {
            return self.apply_move(applied, log, [*object, *to], &change);
        }
        retain_places(log, &change)?;
        if let Change::Mutation(Mutation::Create { object, .. }) = &change {
            let next_object = &mut applied.counts_mut().next_object;
            *next_object = object.next_free(*next_object);
        }
        let key = unit_of(&change);
        let mut changes = self.take(&key).unwrap_or_default();
        match (&change, changes.last_mut()) {
            (Change::Mutation(Mutation::Remove { object }), _) => {
                let is_new = matches!(changes.first(), Some(Change::Mutation(Mutation::Create { .. })));
                self.forget_object(log, *object, &changes);
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
        self.put(key, changes);
        if is_long {
            self.apply_of(applied, log, &key)
        } else if self.is_much(applied, log) {
            self.apply_all(applied, log)
        } else {
            Ok(())
        }
    }

    /// Applies a move of content at once, and before it all that is deferred of both objects: it
    /// is of two units, whose order it would bind.
    fn apply_move(
        &mut self,
        applied: &mut Applied,
        log: &mut Log,
        objects: [ObjectId; 2],
        change: &Change,
    ) -> Result<()> {
        for object in objects {
            self.apply_unit(applied, log, &Key::onode(object))?;
        }
        let applied = applied.apply(log, change);
        applied.map_err(|error| self.cannot_be_applied(log, error))
    }

    /// What it means that a change of the journal was not applied.
    fn cannot_be_applied(&self, log: &mut Log, error: Error) -> Error {
        if !matches!(error.kind, ErrorKind::Corrupt | ErrorKind::NotFound) {
            return error;
        }
        let why = format!("what the journal held cannot be applied: {error}");
        if !self.read_only {
            log.latch().fail_because(|| why.clone());
        }
        damaged(why)
    }

    /// An object is removed: what was deferred of it is of no use any more.
    fn forget_object(&mut self, log: &mut Log, object: ObjectId, changes: &[Change]) {
        for change in changes {
            release_places(log, change);
        }
        while let Some(key) = self.next(&Key::onode(object)).filter(|key| key.object == object.0) {
            self.take(&key);
        }
    }

    /// Applies what is deferred of `key`.
    pub fn apply_of(&mut self, applied: &mut Applied, log: &mut Log, key: &Key) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.apply_unit(applied, log, &Key::onode(ObjectId(key.object)))?;
        if key.as_attribute().is_some() { self.apply_unit(applied, log, key) } else { Ok(()) }
    }

    /// Applies what has to come before `change`.
    pub fn apply_before(&mut self, applied: &mut Applied, log: &mut Log, change: &Change) -> Result<()> {
        match change {
            Change::Mutation(Mutation::Move { object, to, .. }) => {
                self.apply_of(applied, log, &Key::onode(*object))?;
                self.apply_of(applied, log, &Key::onode(*to))
            }
            // It takes the attributes, too.
            Change::Mutation(Mutation::Remove { object }) => {
                self.apply_from(applied, log, &Key { object: object.0, kind: Key::ATTRIBUTE, index: 0 })
            }
            change => self.apply_of(applied, log, &unit_of(change)),
        }
    }

    /// Applies what is deferred of everything that a walk from `from` on looks for: the other
    /// attributes of that object, its content, or which objects there are.
    pub fn apply_from(&mut self, applied: &mut Applied, log: &mut Log, from: &Key) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.apply_unit(applied, log, &Key::onode(ObjectId(from.object)))?;
        loop {
            let mut rest = self.units.range(from..);
            let next = match from.kind {
                Key::ONODE => {
                    rest.find(|(key, changes)| key.kind == Key::ONODE && changes.iter().any(makes_or_removes))
                }
                Key::EXTENT => None,
                _ => rest.next().filter(|(key, _)| key.object == from.object),
            };
            let Some(key) = next.map(|(key, _)| *key) else { return Ok(()) };
            self.apply_unit(applied, log, &key)?;
        }
    }

    /// Whether so much is deferred that a mount does not wait with it. What only cuts something off
    /// may be all that a checkpoint can store: to apply it changes a node for each, and on a full
    /// volume these find no room without checkpoints in between.
    fn is_much(&self, applied: &Applied, log: &Log) -> bool {
        let dirty_bytes = applied.entries().limits().dirty_bytes;
        self.size.others > dirty_bytes || self.size.cuts as u64 > stored_bytes_max(log, dirty_bytes)
    }

    /// Whether more is deferred than a mount used to leave: somebody has to apply it in steps.
    pub const fn is_long(&self, dirty_bytes: usize) -> bool {
        self.size.memory > dirty_bytes
    }

    /// Applies all that does more than to cut something off.
    pub fn apply_others(&mut self, applied: &mut Applied, log: &mut Log) -> Result<()> {
        let others = self.units.iter().filter(|(_, changes)| !is_cut(changes));
        let keys: Vec<Key> = others.map(|(key, _)| *key).collect();
        keys.iter().try_for_each(|key| self.apply_unit(applied, log, key))
    }

    /// Applies everything.
    pub fn apply_all(&mut self, applied: &mut Applied, log: &mut Log) -> Result<()> {
        self.apply_some(applied, log, u32::MAX)?;
        self.drop_stored(log);
        Ok(())
    }

    /// Drops the unit that would be applied next.
    pub fn drop_next(&mut self) {
        if let Some(key) = self.next(&Key::MIN) {
            self.take(&key);
        }
    }

    /// Applies up to `count` units; whether any is left.
    pub fn apply_some(&mut self, applied: &mut Applied, log: &mut Log, count: u32) -> Result<bool> {
        for _ in 0..count {
            let Some(key) = self.next(&Key::MIN) else { break };
            self.apply_unit(applied, log, &key)?;
        }
        Ok(!self.is_empty())
    }

    /// Applies one unit. Nothing of other units is applied with it: an object that is removed and
    /// made again has attributes there, which are those of the new one.
    fn apply_unit(&mut self, applied: &mut Applied, log: &mut Log, key: &Key) -> Result<()> {
        let Some(changes) = self.take(key) else { return Ok(()) };
        for (number, change) in changes.iter().enumerate() {
            release_places(log, change);
            if is_planted(Bug::DeferredLivesMixed) {
                self.apply_attributes_early(applied, log, change)?;
            }
            if let Err(error) = applied.apply(log, change) {
                retain_places(log, change)?;
                self.put(*key, changes[number..].to_vec());
                return Err(self.cannot_be_applied(log, error));
            }
        }
        Ok(())
    }

    /// Applies the attributes of an object before its removal, those of the object that takes its
    /// place among them: a planted bug.
    fn apply_attributes_early(&mut self, applied: &mut Applied, log: &mut Log, removes: &Change) -> Result<()> {
        let Change::Mutation(Mutation::Remove { object }) = removes else { return Ok(()) };
        let first = Key { object: object.0, kind: Key::ATTRIBUTE, index: 0 };
        while let Some((key, changes)) = self.units.range(first..).next().filter(|(key, _)| key.object == object.0) {
            let (key, changes) = (*key, changes.clone());
            self.take(&key);
            changes.iter().try_for_each(|change| applied.apply(log, change))?;
        }
        Ok(())
    }

    /// Whether a checkpoint can store what is deferred. `dirty_bytes` of changed nodes are when one
    /// is due.
    pub fn can_be_stored(&self, log: &Log, dirty_bytes: usize) -> bool {
        can_be_stored(self.size, log, dirty_bytes)
    }

    /// Stores what is deferred anew, for the coming checkpoint.
    pub fn store(&mut self, log: &mut Log) -> Result<()> {
        self.drop_stored(log);
        if self.is_empty() {
            return Ok(());
        }
        let changes = self.units.values().flatten().cloned().collect();
        let bytes = Record::Commit { transaction: log.transaction(), changes }.encode();
        self.stored = Some(log.write_blob(&bytes, Owner::TablePiece { piece: DEFERRED_PIECE })?);
        Ok(())
    }

    fn drop_stored(&mut self, log: &mut Log) {
        if let Some(stored) = self.stored.take() {
            log.release(stored.location.get(), u64::from(stored.length.get()));
        }
    }

    /// Where the coming checkpoint has what is deferred.
    pub const fn stored(&self) -> Option<BlobReference> {
        self.stored
    }

    /// Takes up what a checkpoint stored.
    pub fn load(&mut self, log: &mut Log, stored: BlobReference) -> Result<()> {
        if is_planted(Bug::DeferredForgotten) {
            return Ok(());
        }
        let bytes = log.read_blob(stored, IoTag::Recovery)?;
        for change in decode(&bytes)? {
            let key = unit_of(&change);
            let mut changes = self.take(&key).unwrap_or_default();
            changes.push(change);
            self.put(key, changes);
        }
        self.stored = Some(stored);
        Ok(())
    }
}

/// Bytes that a checkpoint stores of what is deferred, at most: what it may write is counted by
/// `dirty_bytes` of changed nodes and half as many.
fn stored_bytes_max(log: &Log, dirty_bytes: usize) -> u64 {
    (log.layout().segment_bytes() / 4).min(dirty_bytes as u64 / 2)
}

fn can_be_stored(size: Size, log: &Log, dirty_bytes: usize) -> bool {
    let references = (log.table().pieces().len() + 1) * size_of::<BlobReference>();
    let payload_bytes = log.layout().payload_bytes as usize;
    size.likely_bytes() as u64 <= stored_bytes_max(log, dirty_bytes)
        && size_of::<Superblock>() + references <= payload_bytes
}

/// Whether a checkpoint can store all of `changes`, if nothing else is deferred.
pub fn can_all_be_stored(changes: &[Change], log: &Log, dirty_bytes: usize) -> bool {
    let one_by_one = changes.iter().map(|change| Size::of(core::slice::from_ref(change)));
    can_be_stored(one_by_one.fold(Size::default(), Size::plus), log, dirty_bytes)
}

/// Counts what a change places as referred to.
fn retain_places(log: &mut Log, change: &Change) -> Result<()> {
    let Change::Place { object, pieces, .. } = change else { return Ok(()) };
    let layout = *log.layout();
    if pieces.iter().any(|piece| piece.length == 0 || !layout.contains(piece.location, u64::from(piece.length))) {
        return Err(damaged(format!("a place of {object} lies outside the medium")));
    }
    for piece in pieces {
        log.retain(piece.location, u64::from(piece.length));
    }
    Ok(())
}

fn release_places(log: &mut Log, change: &Change) {
    let Change::Place { pieces, .. } = change else { return };
    for piece in pieces {
        log.release(piece.location, u64::from(piece.length));
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
