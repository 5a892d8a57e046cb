//! The tree of the newest checkpoint, whole or one object's part of it.

use super::{ReferenceDump, open, words};
use crate::index::apply::{Extent, Onode};
use crate::index::tree::{Child, Node};
use crate::log::record::Record;
use crate::medium::format::BlobReference;
use crate::medium::layout::Layout;
use crate::tools::check::medium::Medium;
use crate::tools::check::table::Table;
use crate::tools::check::{Context, journal};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use onode_base::ErrorKind;
use onode_engine::Key;
use onode_media::Nand;
use onode_object::{Error, Hints, ObjectId, Result};

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeDump {
    /// Where it lies.
    pub reference: ReferenceDump,
    /// Its level; leaves have 0.
    pub level: u8,
    /// Entries in it.
    pub entries: usize,
    /// First and last key.
    pub keys: Option<(KeyDump, KeyDump)>,
    /// Why it cannot be read.
    pub fault: Option<String>,
}

/// A key: object, kind, index.
pub type KeyDump = (u64, u16, u64);

/// Nodes of the tree, parents before children, in key order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeDump {
    /// The nodes.
    pub nodes: Vec<NodeDump>,
}

/// An attribute of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttributeDump {
    /// Kind.
    pub kind: u8,
    /// Index.
    pub index: u64,
    /// Bytes of the value.
    pub length: usize,
}

/// An extent of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtentDump {
    /// First byte in the object.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
    /// Payload address.
    pub location: u64,
    /// Segment of that address.
    pub segment: u32,
    /// Page of the segment.
    pub page: u32,
    /// First byte in that page.
    pub byte: u32,
}

/// What the newest checkpoint holds of an object, and what the journal changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnodeDump {
    /// The object.
    pub object: ObjectId,
    /// Size in bytes; `None` if the checkpoint has no readable onode.
    pub size: Option<u64>,
    /// Bytes that its extents hold, as the onode says.
    pub allocated: u64,
    /// Advice.
    pub hints: Hints,
    /// Attributes in order.
    pub attributes: Vec<AttributeDump>,
    /// Extents in order.
    pub extents: Vec<ExtentDump>,
    /// Journal records behind the checkpoint that concern it, in words.
    pub journal: Vec<String>,
    /// What could not be read.
    pub faults: Vec<String>,
}

struct TreeDumper<'a, 'b> {
    medium: &'a mut Medium<'b>,
    table: &'a Table,
    only: Option<u64>,
    visit: &'a mut dyn FnMut(NodeDump, Option<&Node>),
}

impl TreeDumper<'_, '_> {
    fn node(&mut self, reference: &BlobReference, level: u8, from: Key, until: Option<Key>) {
        let sequence = self.table.sequence(self.medium.layout(), reference.location.get());
        let read = self.medium.blob(reference, sequence).map_err(|fault| fault.to_string());
        let node =
            read.and_then(|bytes| Node::decode(&bytes, level).ok_or_else(|| "no node of this level".to_string()));
        let mut dump = NodeDump { reference: reference.into(), level, entries: 0, keys: None, fault: None };
        let node = match node {
            Ok(node) => node,
            Err(fault) => {
                dump.fault = Some(fault);
                (self.visit)(dump, None);
                return;
            }
        };
        dump.entries = node.len();
        if let (Some(first), Some(last)) = (node.first_key(), node.len().checked_sub(1)) {
            let last = node.key(last);
            dump.keys = Some(((first.object, first.kind, first.index), (last.object, last.kind, last.index)));
            // Following a node outside its range could go on for ever.
            if first < from || until.is_some_and(|until| last >= until) {
                dump.fault = Some("keys outside the range that its parent gives it".into());
                (self.visit)(dump, None);
                return;
            }
        }
        (self.visit)(dump, Some(&node));
        if level == 0 {
            return;
        }
        for position in 0..node.len() {
            let from = if position == 0 { from } else { node.key(position) };
            let until = if position + 1 < node.len() { Some(node.key(position + 1)) } else { until };
            let wanted = self
                .only
                .is_none_or(|only| from.object <= only && until.is_none_or(|until| until > Key::onode(ObjectId(only))));
            if let Ok(Child::Clean(below)) = Child::decode(node.value(position))
                && wanted
            {
                self.node(&below, level - 1, from, until);
            }
        }
    }
}

/// Dumps the tree; with `only`, the nodes that may hold entries of that object.
///
/// # Errors
/// `Invalid` if there is no volume, `Corrupt` if the segment table cannot be read, `Media` if the
/// medium fails.
pub fn tree(nand: &mut dyn Nand, only: Option<ObjectId>) -> Result<TreeDump> {
    let (mut medium, newest, table) = open(nand)?;
    let mut nodes = Vec::new();
    let mut visit = |dump, _: Option<&Node>| nodes.push(dump);
    let only = only.map(|object| object.0);
    let level = newest.superblock.root_level;
    TreeDumper { medium: &mut medium, table: &table, only, visit: &mut visit }.node(
        &newest.superblock.root,
        level,
        Key::MIN,
        None,
    );
    Ok(TreeDump { nodes })
}

/// Dumps what there is of `object`.
///
/// # Errors
/// As [`tree`]; `NotFound` if neither checkpoint nor journal know the object and nothing is
/// damaged.
pub fn onode(nand: &mut dyn Nand, object: ObjectId) -> Result<OnodeDump> {
    let (mut medium, newest, table) = open(nand)?;
    let mut dump = OnodeDump {
        object,
        size: None,
        allocated: 0,
        hints: Hints::default(),
        attributes: Vec::new(),
        extents: Vec::new(),
        journal: Vec::new(),
        faults: Vec::new(),
    };
    let layout = *medium.layout();
    let mut visit = |node: NodeDump, entries: Option<&Node>| {
        if let Some(fault) = &node.fault {
            dump.faults.push(format!("tree node of level {} at {}: {fault}", node.level, node.reference.location));
        }
        let Some(node) = entries.filter(|node| node.level() == 0) else { return };
        for position in 0..node.len() {
            let key = node.key(position);
            if key.object == object.0 {
                dump.entry(&key, node.value(position), &layout);
            }
        }
    };
    let level = newest.superblock.root_level;
    TreeDumper { medium: &mut medium, table: &table, only: Some(object.0), visit: &mut visit }.node(
        &newest.superblock.root,
        level,
        Key::MIN,
        None,
    );
    for record in journal::read(&mut medium, &newest.superblock, &mut Context::silent()).records {
        if let Record::Commit { changes, .. } = &record
            && changes.iter().any(|change| words::concerns(change, object))
        {
            dump.journal.push(words::record(&record, Some(object)));
        }
    }
    let nothing = dump.size.is_none() && dump.extents.is_empty() && dump.attributes.is_empty();
    if nothing && dump.journal.is_empty() && dump.faults.is_empty() {
        return Err(Error::of(ErrorKind::NotFound, object, "there is no such object"));
    }
    Ok(dump)
}

impl OnodeDump {
    fn entry(&mut self, key: &Key, value: &[u8], layout: &Layout) {
        if key.kind == Key::ONODE {
            match Onode::decode(value) {
                Some(onode) => {
                    (self.size, self.allocated, self.hints) = (Some(onode.size), onode.allocated, onode.hints);
                }
                None => self.faults.push("the onode is malformed".into()),
            }
        } else if key.kind == Key::EXTENT {
            let Some(extent) = Extent::decode(key, value) else {
                self.faults.push(format!("the extent at {} is malformed", key.index));
                return;
            };
            let (at, byte) = layout.page_of(extent.piece.location);
            self.extents.push(ExtentDump {
                offset: extent.offset,
                length: extent.piece.length,
                location: extent.piece.location,
                segment: at.segment,
                page: at.page,
                byte,
            });
        } else if let Some(attribute) = key.as_attribute() {
            let (kind, index) = (attribute.kind.0, attribute.index);
            self.attributes.push(AttributeDump { kind, index, length: value.len() });
        } else {
            self.faults.push(format!("an entry of unknown kind {:#x}", key.kind));
        }
    }
}

impl fmt::Display for TreeDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let top = self.nodes.first().map_or(0, |node| node.level);
        for (number, node) in self.nodes.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            let indent = usize::from(top.saturating_sub(node.level)) * 2;
            write!(f, "{:indent$}level {}: {}, {} entries", "", node.level, node.reference, node.entries)?;
            if let Some((first, last)) = node.keys {
                write!(f, ", {}/{:#x}/{} to {}/{:#x}/{}", first.0, first.1, first.2, last.0, last.1, last.2)?;
            }
            if let Some(fault) = &node.fault {
                write!(f, ": {fault}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for OnodeDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            Some(size) => write!(f, "{}: {size} bytes, {} allocated", self.object, self.allocated)?,
            None => write!(f, "{}: no onode at the newest checkpoint", self.object)?,
        }
        for attribute in &self.attributes {
            write!(f, "\n  attribute {}/{}: {} bytes", attribute.kind, attribute.index, attribute.length)?;
        }
        for one in &self.extents {
            let until = one.offset.saturating_add(u64::from(one.length));
            write!(
                f,
                "\n  bytes {}..{until}: segment {} page {} byte {}",
                one.offset, one.segment, one.page, one.byte
            )?;
        }
        for record in &self.journal {
            write!(f, "\n  journal: {record}")?;
        }
        for fault in &self.faults {
            write!(f, "\n  {fault}")?;
        }
        Ok(())
    }
}
