//! Counting what the index refers to, and bringing what is noted down in line with it.

use super::Action;
use crate::index::apply::{Extent, Onode};
use crate::index::tree::{KeyRange, Node, NodeSource, Sighting, Tree};
use crate::medium::errors::damaged;
use crate::medium::format::{BlobReference, NOWHERE};
use crate::medium::layout::Layout;
use crate::medium::ring::Found;
use crate::space::segments::SegmentState;
use crate::volume::Volume;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use onode_engine::Key;
use onode_object::{ObjectId, Result, Transaction};

/// What the index holds.
struct Survey {
    layout: Layout,
    next_object: u64,
    live: Vec<u64>,
    objects: u64,
    extents: u64,
    /// Objects whose onode notes down other allocated bytes, and what was counted.
    allocated: Vec<(ObjectId, Onode, u64)>,
    /// Key ranges that are lost.
    lost: Vec<KeyRange>,
    /// Entries that make no sense.
    unsound: Vec<(ObjectId, String)>,
    /// The entries that do, if they are to be kept.
    kept: Option<Tree>,
    current: Recounted,
}

/// The object whose entries come by.
#[derive(Default)]
struct Recounted {
    object: u64,
    onode: Option<Onode>,
    end: u64,
    allocated: u64,
}

/// Takes up numbering behind `newest`, so that what is written from now on counts more than it.
pub(super) fn supersede(volume: &mut Volume<'_>, newest: &Found) {
    volume.checkpoints.go_on_from(newest);
    let superblock = &newest.superblock;
    let transaction = volume.log.transaction().max(superblock.transaction.get());
    volume.log.set_transaction(transaction);
    let next_object = &mut volume.index.counts_mut().next_object;
    *next_object = (*next_object).max(superblock.next_object.get());
    volume.log.table_mut().skip_to(superblock.next_sequence.get());
    volume.log.table_mut().skip_numbers();
}

/// Counts what the index refers to and corrects what is noted down otherwise. Memory only.
pub(super) fn recount(volume: &mut Volume<'_>, drop_damaged: bool, actions: &mut Vec<Action>) -> Result<()> {
    let mut found = survey(volume, false)?;
    if !found.lost.is_empty() || !found.unsound.is_empty() {
        if !drop_damaged {
            let (nodes, entries) = (found.lost.len(), found.unsound.len());
            return Err(damaged(format!("{nodes} tree nodes and {entries} entries would have to be dropped")));
        }
        let rebuilt = survey(volume, true)?;
        for KeyRange { from, until } in rebuilt.lost {
            // Of the object at the end nothing is lost if its first entry comes behind.
            let last = |until: Key| until.object - u64::from(until <= Key::onode(ObjectId(until.object)));
            let until = until.map(|until| ObjectId(last(until)));
            actions.push(Action::NodeDropped { from: ObjectId(from.object), until });
        }
        for (object, what) in rebuilt.unsound {
            actions.push(Action::EntryDropped { object, what });
        }
        let tree = rebuilt.kept.unwrap_or_else(|| Tree::new(volume.index.entries().limits().node_bytes));
        volume.index.entries_mut().nodes_mut().replace_tree(tree);
        found = survey(volume, false)?;
        name_losers(&found, actions);
    }
    correct(volume, &found, actions)
}

/// Names the objects that are still there and lost content with a node: it has no entry left that
/// would tell.
fn name_losers(survey: &Survey, actions: &mut Vec<Action>) {
    for &(object, onode, counted) in &survey.allocated {
        let is_known = actions.iter().any(|action| action.object() == Some(object));
        let is_there = actions.iter().any(|action| match action {
            Action::NodeDropped { from, until } => *from <= object && until.is_none_or(|until| object <= until),
            _ => false,
        });
        if is_there && !is_known && counted < onode.allocated {
            let what = format!("{} bytes of its content are zeros now", onode.allocated - counted);
            actions.push(Action::EntryDropped { object, what });
        }
    }
}

/// Nodes and entries of the index that are lost or make no sense, and how many objects that were
/// counted are not there.
pub(super) fn missing(volume: &mut Volume<'_>) -> Result<(u64, u64, u64)> {
    let found = survey(volume, false)?;
    let objects = volume.index.counts().objects.saturating_sub(found.objects);
    Ok((found.lost.len() as u64, found.unsound.len() as u64, objects))
}

fn correct(volume: &mut Volume<'_>, survey: &Survey, actions: &mut Vec<Action>) -> Result<()> {
    for (segment, &counted) in (0u32..).zip(&survey.live) {
        let one = *volume.log.table().get(segment);
        let in_use = matches!(one.state, SegmentState::Open | SegmentState::Full | SegmentState::Failing);
        if counted > 0 && !in_use {
            actions.push(Action::SegmentState { segment, from: one.state.name() });
        }
        let from = u64::from(one.live_bytes);
        if from != counted {
            actions.push(Action::LiveBytes { segment, from, to: counted });
        }
        if from != counted || (counted > 0 && !in_use) {
            let counted = u32::try_from(counted);
            volume.log.table_mut().set_live(segment, counted.map_err(|_| damaged("a place is used many times over"))?);
        }
    }
    for &(object, onode, to) in &survey.allocated {
        actions.push(Action::Allocated { object, from: onode.allocated, to });
        volume.index.set_onode(volume.log, object, &Onode { allocated: to, ..onode })?;
    }
    let counts = volume.index.counts_mut();
    if counts.objects != survey.objects {
        actions.push(Action::ObjectCount { from: counts.objects, to: survey.objects });
        counts.objects = survey.objects;
    }
    if counts.extents != survey.extents {
        actions.push(Action::ExtentCount { from: counts.extents, to: survey.extents });
        counts.extents = survey.extents;
    }
    Ok(())
}

fn survey(volume: &mut Volume<'_>, keep: bool) -> Result<Survey> {
    let layout = *volume.log.layout();
    let mut survey = Survey {
        layout,
        next_object: volume.index.counts().next_object,
        live: vec![0; layout.segments as usize],
        objects: 0,
        extents: 0,
        allocated: Vec::new(),
        lost: Vec::new(),
        unsound: Vec::new(),
        kept: keep.then(|| Tree::new(volume.index.entries().limits().node_bytes)),
        current: Recounted::default(),
    };
    for piece in volume.log.table().pieces() {
        if piece.location.get() != NOWHERE {
            survey.hold(piece.location.get(), u64::from(piece.length.get()));
        }
    }
    volume.index.entries_mut().nodes_mut().survey(volume.log, &mut |sighting| {
        match sighting {
            Sighting::Lost { range, .. } => survey.lost.push(range),
            Sighting::Node(place, node) => {
                if let Some(place) = place {
                    survey.hold(place.location.get(), u64::from(place.length.get()));
                }
                for index in 0..if node.level() == 0 { node.len() } else { 0 } {
                    survey.entry(&node.key(index), node.value(index))?;
                }
            }
        }
        Ok(())
    })?;
    survey.end_object();
    Ok(survey)
}

impl Survey {
    fn hold(&mut self, location: u64, length: u64) {
        if self.layout.contains(location, length) {
            self.live[self.layout.segment_of(location) as usize] += length;
        }
    }

    fn entry(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        if key.object != self.current.object {
            self.end_object();
            self.current = Recounted { object: key.object, ..Recounted::default() };
        }
        if let Err(what) = self.take(key, value) {
            self.unsound.push((ObjectId(key.object), what));
            return Ok(());
        }
        match &mut self.kept {
            Some(kept) => kept.insert(&mut Nowhere, *key, value),
            None => Ok(()),
        }
    }

    /// Counts a sound entry; says what is wrong with any other.
    fn take(&mut self, key: &Key, value: &[u8]) -> core::result::Result<(), String> {
        let object = key.object;
        let is_unknown = object >= ObjectId::FIRST_OF_DEVICE.0;
        if object == 0 || is_unknown || ObjectId(object).next_free(self.next_object) > self.next_object {
            return Err("an id that was never handed out".into());
        }
        if *key == Key::onode(ObjectId(object)) {
            let onode = Onode::decode(value).filter(|onode| onode.size <= Transaction::MAX_OBJECT_BYTES);
            self.current.onode = Some(onode.ok_or("its onode")?);
            self.objects += 1;
            return Ok(());
        }
        if key.kind == Key::EXTENT {
            let size = self.current.onode.map(|onode| onode.size).ok_or("an extent without onode")?;
            let extent = Extent::decode(key, value).ok_or_else(|| format!("the extent at {}", key.index))?;
            let length = u64::from(extent.piece.length);
            let inside = self.layout.contains(extent.piece.location, length);
            if !inside || extent.offset < self.current.end || extent.end() > size {
                return Err(format!("bytes {}..{}", extent.offset, extent.end()));
            }
            self.current.end = extent.end();
            self.current.allocated += length;
            self.extents += 1;
            self.hold(extent.piece.location, length);
            return Ok(());
        }
        let attribute = key.as_attribute().ok_or_else(|| format!("an entry of kind {:#x}", key.kind))?;
        if self.current.onode.is_none() || value.len() > Transaction::MAX_ATTRIBUTE_BYTES {
            return Err(format!("attribute {}/{}", attribute.kind.0, attribute.index));
        }
        Ok(())
    }

    fn end_object(&mut self) {
        if let Some(onode) = self.current.onode
            && onode.allocated != self.current.allocated
        {
            self.allocated.push((ObjectId(self.current.object), onode, self.current.allocated));
        }
    }
}

/// The source of a tree that is all in memory.
struct Nowhere;

impl NodeSource for Nowhere {
    fn load(&mut self, _: BlobReference, _: u8) -> Result<Arc<Node>> {
        Err(damaged("a tree in memory has no written nodes"))
    }
    fn release(&mut self, _: BlobReference) {}
    fn store(&mut self, _: &[u8], _: u8, _: Key) -> Result<BlobReference> {
        Err(damaged("a tree in memory is not written here"))
    }
    fn keep(&mut self, _: BlobReference, _: Node) {}
}
