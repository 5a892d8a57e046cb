//! What the journal does to the objects it touches, on a model of its own: maps instead of a tree.

use super::Context;
use super::finding::{Finding, FindingKind, Place, Severity};
use super::journal::Journal;
use super::medium::Medium;
use super::table::Table;
use super::walk::{CheckedIndex, Claim, Object, Referrer};
use crate::index::apply::Onode;
use crate::log::record::{Change, Piece, Record};
use crate::medium::format::{NO_SUMMARY, Superblock};
use crate::policy::Stream;
use crate::space::segments::{Segment, SegmentState};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use onode_object::{Mutation, ObjectId, Transaction};

/// The state after the journal.
pub(crate) struct Last {
    /// Places, in order.
    pub(crate) claims: Vec<Claim>,
    pub(crate) objects: u64,
    pub(crate) extents: u64,
    /// Whether the journal held anything.
    pub(crate) changed: bool,
}

/// The state before the journal.
pub(crate) struct Checkpoint<'a> {
    pub(crate) superblock: &'a Superblock,
    /// Follows the journal.
    pub(crate) table: &'a mut Table,
    pub(crate) index: CheckedIndex,
}

/// Applies `journal` to what the tree of `checkpoint` holds, and to its table.
pub(crate) fn apply(
    medium: &mut Medium<'_>,
    checkpoint: Checkpoint<'_>,
    journal: &Journal,
    context: &mut Context<'_>,
) -> Last {
    let Checkpoint { superblock, table, index } = checkpoint;
    let layout = *medium.layout();
    for &(segment, sequence) in &journal.entered {
        enter(table, segment, sequence, Stream::Journal);
    }
    let before: u64 = index.touched.values().map(|object| object.extents.len() as u64).sum();
    let existed = index.touched.values().filter(|object| object.onode.is_some()).count() as u64;
    let mut model = Model { objects: index.touched, segments: medium.layout().segments };
    let mut transaction = superblock.transaction.get();
    let deferred = journal.deferred.iter().try_for_each(|change| model.change(medium, change));
    if let Some(found) = deferred.err().filter(|_| index.lost.is_empty()) {
        let place = Place::Commit { transaction };
        context.add(Finding::new(Severity::Error, FindingKind::JournalRecordWrong, place).found(found));
    }
    for (number, record) in journal.records.iter().enumerate() {
        if let Record::Commit { changes, .. } = record
            && number >= journal.sure
            && !has_content(medium, table, changes)
        {
            // It was never flushed and did not arrive whole: it never happened.
            break;
        }
        let result = match record {
            Record::Chain { segment, .. } if *segment >= model.segments => Err(format!("chain to segment {segment}")),
            Record::Chain { .. } | Record::Waiting { .. } | Record::Flushed { .. } => Ok(()),
            Record::Opened { segment, sequence, stream, .. }
                if *segment < model.segments && layout.has_stream(*stream) =>
            {
                enter(table, *segment, *sequence, *stream);
                Ok(())
            }
            Record::Opened { segment, .. } => Err(format!("segment {segment} was opened")),
            Record::Commit { transaction: number, .. } if *number != transaction + 1 => {
                Err(format!("commit {number} after {transaction}"))
            }
            Record::Commit { transaction: number, changes } => {
                transaction = *number;
                changes.iter().try_for_each(|change| model.change(medium, change))
            }
        };
        if let Err(found) = result {
            // If the object's entries were lost, the tree has been reported already.
            if index.lost.is_empty() {
                let place = Place::Commit { transaction };
                context.add(Finding::new(Severity::Error, FindingKind::JournalRecordWrong, place).found(found));
            }
            break;
        }
    }
    let after: u64 = model.objects.values().map(|object| object.extents.len() as u64).sum();
    let exist = model.objects.values().filter(|object| object.onode.is_some()).count() as u64;
    let mut claims = index.claims;
    let changed = !journal.records.is_empty() || !journal.deferred.is_empty();
    if changed {
        claims.retain(
            |claim| !matches!(claim.owner, Referrer::Content { object, .. } if model.objects.contains_key(&object)),
        );
        for (&object, one) in &model.objects {
            claims.extend(one.extents.iter().map(|(&offset, &(location, length))| Claim {
                location,
                length,
                owner: Referrer::Content { object, offset },
            }));
        }
        claims.sort_unstable();
    }
    Last {
        claims,
        objects: index.objects - existed.min(index.objects) + exist,
        extents: index.extents - before.min(index.extents) + after,
        changed,
    }
}

/// Whether all content that `changes` place can be read.
fn has_content(medium: &mut Medium<'_>, table: &Table, changes: &[Change]) -> bool {
    changes.iter().all(|change| match change {
        Change::Place { pieces, .. } => pieces.iter().all(|piece| {
            let sequence = table.sequence(medium.layout(), piece.location);
            medium.bytes(piece.location, u64::from(piece.length), sequence).is_ok()
        }),
        Change::Mutation(_) | Change::Patch { .. } => true,
    })
}

fn enter(table: &mut Table, segment: u32, sequence: u32, stream: Stream) {
    if let Some(one) = table.segments.get_mut(segment as usize) {
        *one = Segment { state: SegmentState::Full, stream, sequence, summary_page: NO_SUMMARY, ..*one };
    }
}

struct Model {
    objects: BTreeMap<u64, Object>,
    segments: u32,
}

impl Model {
    fn require(&mut self, object: ObjectId) -> Result<&mut Object, String> {
        self.objects
            .get_mut(&object.0)
            .filter(|one| one.onode.is_some())
            .ok_or_else(|| format!("a change to {object}, which does not exist"))
    }

    fn change(&mut self, medium: &Medium<'_>, change: &Change) -> Result<(), String> {
        match change {
            Change::Place { object, offset, pieces } => self.place(medium, *object, *offset, pieces),
            Change::Mutation(Mutation::Create { object, hints }) => {
                let one = self.objects.entry(object.0).or_default();
                if one.onode.is_some() || object.0 == 0 || *object >= ObjectId::FIRST_OF_DEVICE {
                    return Err(format!("{object} is made, which exists already or never can"));
                }
                one.onode = Some(Onode { hints: *hints, ..Onode::default() });
                Ok(())
            }
            Change::Mutation(Mutation::Remove { object }) => {
                self.require(*object)?;
                self.objects.insert(object.0, Object::default());
                Ok(())
            }
            Change::Mutation(Mutation::Truncate { object, size }) => {
                let one = self.require(*object)?;
                if *size > Transaction::MAX_OBJECT_BYTES {
                    return Err(format!("{object} is given {size} bytes"));
                }
                let old = one.onode.map_or(0, |onode| onode.size);
                if *size < old {
                    one.unplace(*size, u64::MAX);
                }
                one.set_size(*size);
                Ok(())
            }
            Change::Mutation(Mutation::Punch { object, offset, length }) => {
                let one = self.require(*object)?;
                let end = offset.saturating_add(*length).min(one.onode.map_or(0, |onode| onode.size));
                one.unplace(*offset, end);
                Ok(())
            }
            Change::Mutation(Mutation::Move { object, offset, length, to }) => {
                self.move_content(*object, *offset..offset.saturating_add(*length), *to)
            }
            Change::Mutation(Mutation::SetAttribute { object, value, .. }) => {
                self.require(*object)?;
                if value.len() > Transaction::MAX_ATTRIBUTE_BYTES {
                    return Err(format!("an attribute of {object} is given {} bytes", value.len()));
                }
                Ok(())
            }
            Change::Patch { object, .. } => self.require(*object).map(|_| ()),
            Change::Mutation(
                Mutation::RemoveAttribute { object, .. }
                | Mutation::SetHints { object, .. }
                | Mutation::SetAccessTime { object, .. }
                | Mutation::Write { object, .. },
            ) => self.require(*object).map(|_| ()),
        }
    }

    fn move_content(&mut self, object: ObjectId, range: Range<u64>, to: ObjectId) -> Result<(), String> {
        self.require(to)?;
        let giver = self.require(object)?;
        if object == to || object.origin() != to.origin() {
            return Err(format!("content of {object} is moved to {to}"));
        }
        let end = range.end.min(giver.onode.map_or(0, |onode| onode.size));
        if range.start >= end {
            return Ok(());
        }
        let moved = giver.within(range.start, end);
        giver.unplace(range.start, end);
        let taker = self.require(to)?;
        taker.unplace(range.start, end);
        taker.extents.extend(moved);
        taker.set_size(end.max(taker.onode.map_or(0, |onode| onode.size)));
        Ok(())
    }

    fn place(&mut self, medium: &Medium<'_>, object: ObjectId, offset: u64, pieces: &[Piece]) -> Result<(), String> {
        let one = self.require(object)?;
        let mut at = offset;
        for piece in pieces {
            let end = at.saturating_add(u64::from(piece.length));
            let inside = medium.layout().contains(piece.location, u64::from(piece.length));
            if piece.length == 0 || !inside || end > Transaction::MAX_OBJECT_BYTES {
                return Err(format!("{} bytes of {object} are placed at {}", piece.length, piece.location));
            }
            one.unplace(at, end);
            one.extents.insert(at, (piece.location, piece.length));
            at = end;
        }
        one.set_size(at.max(one.onode.map_or(0, |onode| onode.size)));
        Ok(())
    }
}

impl Object {
    fn set_size(&mut self, size: u64) {
        if let Some(onode) = &mut self.onode {
            onode.size = size;
        }
    }

    /// What lies in `from..until`, cut at both ends.
    fn within(&self, from: u64, until: u64) -> Vec<(u64, (u64, u32))> {
        let first = self.extents.range(..=from).next_back().map_or(from, |(&offset, _)| offset);
        let cut = self.extents.range(first..until).filter_map(|(&offset, &(location, length))| {
            let (start, end) = (offset.max(from), (offset + u64::from(length)).min(until));
            (start < end).then(|| (start, (location + (start - offset), (end - start) as u32)))
        });
        cut.collect()
    }

    /// Makes `from..until` a hole.
    fn unplace(&mut self, from: u64, until: u64) {
        if from >= until {
            return;
        }
        let first = self.extents.range(..=from).next_back().map_or(from, |(&offset, _)| offset);
        let hit: Vec<(u64, (u64, u32))> =
            self.extents.range(first..until).map(|(&offset, &place)| (offset, place)).collect();
        for (offset, (location, length)) in hit {
            let end = offset + u64::from(length);
            if end <= from {
                continue;
            }
            self.extents.remove(&offset);
            if offset < from {
                self.extents.insert(offset, (location, (from - offset) as u32));
            }
            if end > until {
                self.extents.insert(until, (location + (until - offset), (end - until) as u32));
            }
        }
    }
}
