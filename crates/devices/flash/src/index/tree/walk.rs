//! Reading the tree: lookups, ordered scans, and a walk over all nodes.

use super::ahead::{NODES_TOGETHER, children_from};
use super::{Child, Key, Node, NodeSource, Tree};
use crate::medium::errors::damaged;
use crate::medium::format::BlobReference;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_object::{Error, Result};

/// A node to look at: shared if clean, a slot if changed.
pub(super) enum View<'a> {
    Clean(Arc<Node>),
    Dirty(&'a Node),
}

impl core::ops::Deref for View<'_> {
    type Target = Node;
    fn deref(&self) -> &Node {
        match self {
            Self::Clean(node) => node,
            Self::Dirty(node) => node,
        }
    }
}

/// A scan in progress.
struct Scan<'a> {
    from: &'a Key,
    visit: &'a mut dyn FnMut(&Key, &[u8]) -> bool,
    /// Leaves that were passed.
    leaves: usize,
}

impl Tree {
    pub(super) fn view(&self, source: &mut dyn NodeSource, child: Child, level: u8) -> Result<View<'_>> {
        Ok(match child {
            Child::Clean(reference) => View::Clean(source.load(reference, level)?),
            Child::Dirty(slot) => View::Dirty(self.slot(slot)?),
        })
    }

    /// What `with` makes of the value of `key`, if there is one.
    pub fn get<T>(&self, source: &mut dyn NodeSource, key: &Key, with: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let (mut child, mut level) = (self.root, self.root_level);
        loop {
            let node = self.view(source, child, level)?;
            if level == 0 {
                return Ok(node.get(key).map(with));
            }
            if node.len() == 0 {
                return Ok(None);
            }
            child = node.child(key)?.2;
            level -= 1;
        }
    }

    /// Visits entries in key order from the first at or after `from`, until `visit` returns false.
    pub fn scan(
        &self,
        source: &mut dyn NodeSource,
        from: &Key,
        visit: &mut dyn FnMut(&Key, &[u8]) -> bool,
    ) -> Result<()> {
        self.scan_below(source, self.root, self.root_level, &mut Scan { from, visit, leaves: 0 }).map(|_| ())
    }

    fn scan_below(&self, source: &mut dyn NodeSource, child: Child, level: u8, scan: &mut Scan<'_>) -> Result<bool> {
        let node = self.view(source, child, level)?;
        if level == 0 {
            let first = node.search(scan.from).unwrap_or_else(|at| at);
            for (key, value) in node.entries_from(first) {
                if !(scan.visit)(&key, value) {
                    return Ok(false);
                }
            }
            scan.leaves += 1;
            return Ok(true);
        }
        let Some((first, ..)) = node.child_for(scan.from) else { return Ok(true) };
        let mut loaded = first;
        for index in first..node.len() {
            if level == 1 && index >= loaded && scan.leaves > 0 {
                // As many as were passed: whoever stops soon has not read much for nothing.
                let some = children_from(&node, index, scan.leaves);
                source.load_ahead(&some, 0);
                loaded = index + some.len().max(1);
            }
            if !self.scan_below(source, Child::decode(node.value(index))?, level - 1, scan)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The last entry at or before `key`, as a copy.
    pub fn last_at_or_before(&self, source: &mut dyn NodeSource, key: &Key) -> Result<Option<(Key, Vec<u8>)>> {
        self.floor_below(source, self.root, self.root_level, key)
    }

    fn floor_below(
        &self,
        source: &mut dyn NodeSource,
        child: Child,
        level: u8,
        key: &Key,
    ) -> Result<Option<(Key, Vec<u8>)>> {
        let node = self.view(source, child, level)?;
        let last = match node.search(key) {
            Ok(index) => index,
            Err(0) => return Ok(None),
            Err(index) => index - 1,
        };
        if level == 0 {
            return Ok(Some((node.key(last), node.value(last).to_vec())));
        }
        // A separator may be less than every key that is left below it; then the answer is further
        // left.
        for index in (0..=last).rev() {
            if let Some(found) = self.floor_below(source, Child::decode(node.value(index))?, level - 1, key)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Visits every node once, parents first. `visit` gets the place of a written node, its level
    /// and the node itself. Depth and order are checked on the way.
    pub fn walk(
        &self,
        source: &mut dyn NodeSource,
        visit: &mut dyn FnMut(Option<BlobReference>, &Node) -> Result<()>,
    ) -> Result<()> {
        self.survey(source, &mut |sighting| match sighting {
            Sighting::Node(place, node) => visit(place, node),
            Sighting::Lost { error, .. } => Err(error),
        })
    }

    /// Visits every node that can be read, parents first, and tells which key ranges are lost. A
    /// node with keys outside the range that its parent gives it is lost too: no lookup finds what
    /// is in it, and a node with two parents would be visited again and again.
    pub fn survey(&self, source: &mut dyn NodeSource, visit: &mut dyn FnMut(Sighting<'_>) -> Result<()>) -> Result<()> {
        self.survey_below(source, self.root, self.root_level, KeyRange::ALL, visit)
    }

    fn survey_below(
        &self,
        source: &mut dyn NodeSource,
        child: Child,
        level: u8,
        range: KeyRange,
        visit: &mut dyn FnMut(Sighting<'_>) -> Result<()>,
    ) -> Result<()> {
        let node = match self.view(source, child, level) {
            Ok(node) => node,
            Err(error) if error.kind == ErrorKind::Corrupt => return visit(Sighting::Lost { range, error }),
            Err(error) => return Err(error),
        };
        let inside = match (node.first_key(), node.last_key()) {
            (Some(first), Some(last)) => range.contains(&first) && range.contains(&last),
            _ => child == self.root,
        };
        if !inside {
            let error = damaged("a tree node has keys outside its range");
            return visit(Sighting::Lost { range, error });
        }
        let place = match child {
            Child::Clean(reference) => Some(reference),
            Child::Dirty(_) => None,
        };
        visit(Sighting::Node(place, &node))?;
        if level == 0 {
            return Ok(());
        }
        for index in 0..node.len() {
            // Inner nodes are few, and would take the memory of the leaves.
            if level == 1 && index % NODES_TOGETHER == 0 {
                source.load_ahead(&children_from(&node, index, NODES_TOGETHER), 0);
            }
            let below = range.of_child(&node, index);
            self.survey_below(source, Child::decode(node.value(index))?, level - 1, below, visit)?;
        }
        Ok(())
    }
}

/// The keys that a node may hold: what its parent gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The first of them.
    pub from: Key,
    /// The first key after them; `None` if nothing follows.
    pub until: Option<Key>,
}

impl KeyRange {
    /// What the root may hold.
    pub const ALL: Self = Self { from: Key::MIN, until: None };

    /// Whether `key` is one of them.
    pub fn contains(&self, key: &Key) -> bool {
        self.from <= *key && self.until.is_none_or(|until| *key < until)
    }

    /// What the child at `index` of `node`, which may hold these, may hold.
    pub fn of_child(self, node: &Node, index: usize) -> Self {
        let from = if index == 0 { self.from } else { node.key(index) };
        let until = if index + 1 < node.len() { Some(node.key(index + 1)) } else { self.until };
        Self { from, until }
    }
}

/// What a survey comes by.
pub enum Sighting<'a> {
    /// A node and its place, if it is written.
    Node(Option<BlobReference>, &'a Node),
    /// Entries that cannot be read.
    Lost {
        /// The keys that they may have.
        range: KeyRange,
        /// Why.
        error: Error,
    },
}
