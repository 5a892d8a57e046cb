//! The walk over the tree: every node verified against its parent, every entry decoded, every place
//! that is referred to noted down.

use super::finding::{Finding, FindingKind, Place, Severity};
use super::medium::Medium;
use super::table::Table;
use super::{Context, unreadable};
use crate::index::apply::{Extent, Onode};
use crate::index::tree::{Child, KeyRange, Node};
use crate::log::record::Change;
use crate::medium::format::{BlobReference, DEFERRED_PIECE, Superblock};
use crate::medium::layout::Layout;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;
use onode_engine::Key;
use onode_object::{ObjectId, Transaction};

/// Who refers to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Referrer {
    /// Content of an object from `offset` on.
    Content { object: u64, offset: u64 },
    /// A tree node.
    Node { key: Key, level: u8 },
    /// A piece of the segment table.
    TablePiece { piece: u32 },
}

/// A run of bytes that is referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    pub(crate) location: u64,
    pub(crate) length: u32,
    pub(crate) owner: Referrer,
}

/// What is known of one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    pub(crate) onode: Option<Onode>,
    /// Offset to place and length.
    pub(crate) extents: BTreeMap<u64, (u64, u32)>,
}

/// What the tree holds.
#[derive(Default)]
pub(crate) struct CheckedIndex {
    pub(crate) claims: Vec<Claim>,
    pub(crate) objects: u64,
    pub(crate) extents: u64,
    /// Objects that the journal goes on to change.
    pub(crate) touched: BTreeMap<u64, Object>,
    /// Key ranges whose nodes are lost.
    pub(crate) lost: Vec<KeyRange>,
}

impl CheckedIndex {
    /// Adds the places of the segment table and brings all places in order.
    pub(crate) fn add_pieces(&mut self, pieces: &[BlobReference]) {
        self.claims.extend((0u32..).zip(pieces).map(|(piece, reference)| Claim {
            location: reference.location.get(),
            length: reference.length.get(),
            owner: Referrer::TablePiece { piece },
        }));
        self.claims.sort_unstable();
    }

    /// Adds the places of deferred changes, and where they are stored themselves, and brings all
    /// places in order.
    pub(crate) fn add_deferred(&mut self, stored: Option<BlobReference>, deferred: &[Change]) {
        self.claims.extend(stored.map(|stored| Claim {
            location: stored.location.get(),
            length: stored.length.get(),
            owner: Referrer::TablePiece { piece: DEFERRED_PIECE },
        }));
        for change in deferred {
            let Change::Place { object, offset, pieces } = change else { continue };
            let mut offset = *offset;
            for piece in pieces {
                let owner = Referrer::Content { object: object.0, offset };
                self.claims.push(Claim { location: piece.location, length: piece.length, owner });
                offset += u64::from(piece.length);
            }
        }
        self.claims.sort_unstable();
    }

    /// Whether an entry of `object` may be lost.
    pub(crate) fn may_miss(&self, object: u64) -> bool {
        let onode = Key::onode(ObjectId(object));
        self.lost.iter().any(|lost| lost.from.object <= object && lost.until.is_none_or(|until| until > onode))
    }

    /// Whether a whole entry at exactly `key` may be lost.
    fn lacks(&self, key: &Key) -> bool {
        self.lost.iter().any(|lost| lost.contains(key))
    }
}

struct Walker<'a, 'b, 'c> {
    medium: &'a mut Medium<'b>,
    table: &'a Table,
    touched: BTreeSet<u64>,
    context: &'a mut Context<'c>,
    next_object: u64,
    index: CheckedIndex,
    /// The object whose entries are being read.
    current: Current,
}

/// Sums over the object whose entries come by.
#[derive(Default)]
struct Current {
    object: Option<u64>,
    onode: Option<Onode>,
    malformed: bool,
    allocated: u64,
    end: u64,
    entries: bool,
}

/// Walks the tree of `superblock`; `touched` are the objects to be kept whole.
pub(crate) fn walk(
    medium: &mut Medium<'_>,
    superblock: &Superblock,
    table: &Table,
    touched: BTreeSet<u64>,
    context: &mut Context<'_>,
) -> CheckedIndex {
    let next_object = superblock.next_object.get();
    let mut walker = Walker {
        medium,
        table,
        touched,
        context,
        next_object,
        index: CheckedIndex::default(),
        current: Current::default(),
    };
    let level = superblock.root_level;
    walker.node(superblock.root, level, KeyRange::ALL, true);
    walker.end_object();
    walker.index
}

impl Walker<'_, '_, '_> {
    fn node(&mut self, reference: BlobReference, level: u8, range: KeyRange, is_root: bool) {
        let layout = *self.medium.layout();
        let location = reference.location.get();
        let place = Place::Node { location, level };
        let Some(node) = self.load(&reference, level, place, range) else { return };
        let first = node.first_key().unwrap_or(Key::MIN);
        self.index.claims.push(Claim {
            location,
            length: reference.length.get(),
            owner: Referrer::Node { key: first, level },
        });
        self.context.report.nodes += 1;
        self.context.advance(self.medium.pages_read());
        if reference.length.get() as usize > layout.node_bytes() {
            let finding = Finding::new(Severity::Error, FindingKind::NodeOversized, place);
            let expected = format!("at most {} bytes", layout.node_bytes());
            self.context.add(finding.expected(expected).found(format!("{} bytes", reference.length.get())));
        }
        let last = node.len().checked_sub(1).map(|last| node.key(last));
        // A node outside its range is not followed: no lookup finds what is in it, and a node with
        // two parents would be walked twice.
        let inside = last.map_or(is_root, |last| range.contains(&first) && range.contains(&last));
        if !inside {
            let finding = Finding::new(Severity::Error, FindingKind::NodeRange, place);
            let until = range.until.map_or("the end".into(), |until| format!("{}", entry_place(&until)));
            let expected = format!("keys from {} to {until}", entry_place(&range.from));
            let found =
                last.map_or("no entry".into(), |last| format!("{} to {}", entry_place(&first), entry_place(&last)));
            self.context.add(finding.expected(expected).found(found));
            self.index.lost.push(range);
            return;
        }
        if level == 0 {
            for position in 0..node.len() {
                self.entry(&node.key(position), node.value(position));
            }
            return;
        }
        if level == 1 {
            self.expect_children(&node);
        }
        for position in 0..node.len() {
            let child_range = range.of_child(&node, position);
            match Child::decode(node.value(position)) {
                Ok(Child::Clean(below)) => self.node(below, level - 1, child_range, false),
                _ => {
                    self.index.lost.push(child_range);
                    let finding = Finding::new(Severity::Error, FindingKind::NodeMalformed, place);
                    self.context.add(finding.found(format!("entry {position} is no reference to a child")));
                }
            }
        }
    }

    /// The leaves below `node` are looked at next. Inner nodes are few, and come between them.
    fn expect_children(&mut self, node: &Node) {
        let layout = *self.medium.layout();
        let children = (0..node.len()).filter_map(|position| match Child::decode(node.value(position)) {
            Ok(Child::Clean(below)) => Some(below),
            _ => None,
        });
        let inside = children.filter(|below| layout.contains(below.location.get(), u64::from(below.length.get())));
        self.medium.expect(inside.flat_map(|below| layout.pages_of(below.location.get(), below.length.get())));
    }

    fn load(&mut self, reference: &BlobReference, level: u8, place: Place, range: KeyRange) -> Option<Node> {
        let sequence = self.table.sequence(self.medium.layout(), reference.location.get());
        let finding = match self.medium.blob(reference, sequence) {
            Ok(bytes) => match Node::decode(&bytes, level) {
                Some(node) => return Some(node),
                None => Finding::new(Severity::Error, FindingKind::NodeMalformed, place)
                    .found(format!("{} bytes that are no node of level {level}", bytes.len())),
            },
            Err(fault) => unreadable(Severity::Error, FindingKind::NodeUnreadable, place, &fault),
        };
        self.index.lost.push(range);
        // The objects whose entries were there, as far as the range tells.
        let from = range.from.object;
        let only = range.until.filter(|until| until.object == from).map(|_| from);
        self.context.add(match only {
            Some(object) => finding.of(object),
            None => finding.expected(match range.until {
                Some(until) => format!("entries of objects {from} to {}", until.object),
                None => format!("entries of objects from {from} on"),
            }),
        });
        None
    }

    fn entry(&mut self, key: &Key, value: &[u8]) {
        let object = key.object;
        let place = entry_place(key);
        let error = |kind| Finding::new(Severity::Error, kind, place).of(object);
        if self.current.object != Some(object) {
            self.end_object();
            self.current = Current { object: Some(object), ..Current::default() };
            if object == 0 || object >= ObjectId::FIRST_OF_DEVICE.0 {
                self.context.add(error(FindingKind::KeyUnknown).found(format!("object id {object}")));
            } else if ObjectId(object).next_free(self.next_object) > self.next_object {
                let expected = format!("an id below {}", self.next_object);
                self.context.add(error(FindingKind::IdTooHigh).expected(expected));
            }
        }
        self.current.entries = true;
        if *key == Key::onode(ObjectId(object)) {
            self.index.objects += 1;
            match Onode::decode(value).filter(|onode| onode.size <= Transaction::MAX_OBJECT_BYTES) {
                Some(onode) => self.current.onode = Some(onode),
                None => {
                    self.current.malformed = true;
                    self.context.add(error(FindingKind::OnodeMalformed).found(format!("{} bytes", value.len())));
                }
            }
            if self.touched.contains(&object) {
                let onode = self.current.onode;
                self.index.touched.insert(object, Object { onode, ..Object::default() });
            }
        } else if key.kind == Key::EXTENT {
            self.extent(key, value, place);
        } else if key.as_attribute().is_some() {
            self.context.report.attributes += 1;
            if value.len() > Transaction::MAX_ATTRIBUTE_BYTES {
                let expected = format!("at most {} bytes", Transaction::MAX_ATTRIBUTE_BYTES);
                let finding = error(FindingKind::AttributeOversized).expected(expected);
                self.context.add(finding.found(format!("{} bytes", value.len())));
            }
        } else {
            self.context.add(error(FindingKind::KeyUnknown).found(format!("{} bytes", value.len())));
        }
    }

    fn extent(&mut self, key: &Key, value: &[u8], place: Place) {
        let error = |kind| Finding::new(Severity::Error, kind, place).of(key.object);
        self.index.extents += 1;
        let Some(extent) = Extent::decode(key, value) else {
            self.current.malformed = true;
            self.context.add(error(FindingKind::ExtentMalformed).found(format!("{} bytes", value.len())));
            return;
        };
        let range = extent.offset..extent.end();
        let length = u64::from(extent.piece.length);
        if !self.medium.layout().contains(extent.piece.location, length) {
            let found = format!("{length} bytes at {}", extent.piece.location);
            let finding = error(FindingKind::ExtentMalformed).bytes(range.clone());
            self.context.add(finding.expected("a place inside one segment").found(found));
        } else {
            let owner = Referrer::Content { object: key.object, offset: extent.offset };
            let claim = Claim { location: extent.piece.location, length: extent.piece.length, owner };
            self.index.claims.push(claim);
        }
        if extent.offset < self.current.end {
            let finding = error(FindingKind::ExtentOverlap).bytes(range.clone());
            let found = format!("it begins at {}", extent.offset);
            self.context.add(finding.expected(format!("a start at or after {}", self.current.end)).found(found));
        }
        self.current.end = self.current.end.max(range.end);
        self.current.allocated += length;
        if let Some(object) = self.index.touched.get_mut(&key.object) {
            object.extents.insert(extent.offset, (extent.piece.location, extent.piece.length));
        }
    }

    /// All entries of an object have come by.
    fn end_object(&mut self) {
        let current = core::mem::take(&mut self.current);
        let Some(object) = current.object.filter(|_| current.entries) else { return };
        let key = Key::onode(ObjectId(object));
        let place = entry_place(&key);
        let error = |kind| Finding::new(Severity::Error, kind, place).of(object);
        let Some(onode) = current.onode else {
            if !current.malformed && !self.index.lacks(&key) {
                self.context.add(error(FindingKind::OnodeMissing));
            }
            return;
        };
        if current.end > onode.size {
            let finding = error(FindingKind::ExtentBeyondSize).bytes(onode.size..current.end);
            let expected = format!("extents below the size, {}", onode.size);
            self.context.add(finding.expected(expected).found(format!("one up to {}", current.end)));
        }
        // Below the next object nothing can be lost any more: nodes come in key order.
        if onode.allocated != current.allocated && !current.malformed && !self.index.may_miss(object) {
            let finding = error(FindingKind::AllocatedWrong).expected(format!("{} bytes", current.allocated));
            self.context.add(finding.found(format!("{} bytes", onode.allocated)));
        }
    }
}

const fn entry_place(key: &Key) -> Place {
    Place::Entry { object: key.object, kind: key.kind, index: key.index }
}

/// The bytes that claims hold in each segment.
pub(crate) fn live_bytes(claims: &[Claim], layout: &Layout) -> Vec<u64> {
    let mut live = alloc::vec![0u64; layout.segments as usize];
    for claim in claims {
        if let Some(sum) = live.get_mut(layout.segment_of(claim.location) as usize) {
            *sum += u64::from(claim.length);
        }
    }
    live
}
