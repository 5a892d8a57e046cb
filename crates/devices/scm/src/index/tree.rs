//! The index: a B+tree from keys to two words, in the memory itself.
//!
//! It always agrees with the log; nothing of it is flushed. Splits happen on the way down and need
//! at most a node for each level, so that an insertion that finds no room has changed nothing that
//! can be seen. Nodes that become empty or fit into a neighbour go back; a few are kept, so that
//! what was removed can always be put in again.

use crate::index::last_leaf::{LastLeaves, Span};
use crate::index::node::{Child, Key, NODE_BYTES, Node, Value};
use crate::space::free_list::FreeList;
use onode_media::Pmem;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Where nodes come from.
pub(crate) trait Nodes {
    fn allocate_node(&self) -> Option<u64>;
    fn release_node(&self, address: u64);
}

/// There is no room for another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// Nodes that are kept for the next insertions.
const KEPT_NODES: usize = 16;
/// No tree of 64-bit addresses grows higher.
const MOST_LEVELS: usize = 16;

/// The tree.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    root: Node,
    nodes: u64,
    kept: FreeList,
    last_leaves: LastLeaves,
}

/// What processes tell each other of the tree, word by word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct TreeState {
    root: u64,
    nodes: u64,
    kept: FreeList,
}

/// An entry.
type Entry = (Key, Value);

/// A position in the tree: the nodes on the way and the position in each, the leaf last.
#[derive(Clone, Debug)]
struct Path {
    steps: [(Node, u64); MOST_LEVELS],
    depth: usize,
}

impl Tree {
    /// An empty tree.
    pub(crate) fn new<P: Pmem + ?Sized>(memory: &P, source: &dyn Nodes) -> Result<Self, NoRoom> {
        let root = Node { address: source.allocate_node().ok_or(NoRoom)? };
        root.format(memory, 0);
        let mut tree = Self { root, nodes: 1, kept: FreeList::EMPTY, last_leaves: LastLeaves::default() };
        tree.restock(memory, source)?;
        Ok(tree)
    }

    /// Makes the tree of sorted entries: `entries` hands them to what it is called with.
    pub(crate) fn build<P: Pmem + ?Sized>(
        memory: &P,
        source: &dyn Nodes,
        entries: impl FnOnce(&mut dyn FnMut(Key, Value) -> Result<(), NoRoom>) -> Result<(), NoRoom>,
    ) -> Result<Self, NoRoom> {
        // A leaf is not filled whole, or the next entry for it would split it.
        const FILLED: usize = Node::LEAF_ENTRIES as usize - 3;
        let mut tree = Self::new(memory, source)?;
        // The rightmost node of each level, and what the next leaf is made of.
        let mut right = vec![tree.root];
        let mut leaf = Vec::with_capacity(FILLED);
        let mut is_first = true;
        let mut fill = |leaf: &mut Vec<Entry>| -> Result<(), NoRoom> {
            let Some((key, _)) = leaf.first() else { return Ok(()) };
            if std::mem::take(&mut is_first) {
                right[0].fill(memory, leaf);
            } else {
                let fresh = tree.take_node(memory, source, 0)?;
                fresh.fill(memory, leaf);
                tree.append_child(memory, source, &mut right, fresh, *key)?;
            }
            leaf.clear();
            Ok(())
        };
        entries(&mut |key, value| {
            leaf.push((key, value));
            if leaf.len() < FILLED { Ok(()) } else { fill(&mut leaf) }
        })?;
        fill(&mut leaf)?;
        tree.restock(memory, source)?;
        Ok(tree)
    }

    fn append_child<P: Pmem + ?Sized>(
        &mut self,
        memory: &P,
        source: &dyn Nodes,
        right: &mut Vec<Node>,
        mut fresh: Node,
        key: Key,
    ) -> Result<(), NoRoom> {
        let mut level = 0;
        loop {
            let before = std::mem::replace(&mut right[level], fresh);
            level += 1;
            if level == right.len() {
                let root = self.take_node(memory, source, level as u64)?;
                root.insert_child(memory, 0, Key::FIRST, before);
                root.insert_child(memory, 1, key, fresh);
                right.push(root);
                self.root = root;
                return Ok(());
            }
            let parent = right[level];
            if parent.count(memory) < Node::INNER_ENTRIES - 2 {
                parent.insert_child(memory, parent.count(memory), key, fresh);
                return Ok(());
            }
            let next = self.take_node(memory, source, level as u64)?;
            next.insert_child(memory, 0, key, fresh);
            fresh = next;
        }
    }

    /// What others have to know of it.
    #[inline]
    pub(crate) const fn state(&self) -> TreeState {
        TreeState { root: self.root.address, nodes: self.nodes, kept: self.kept }
    }

    /// Takes over what another process did to it.
    pub(crate) fn set_state(&mut self, state: &TreeState) {
        (self.root.address, self.nodes, self.kept) = (state.root, state.nodes, state.kept);
        self.forget();
    }

    /// Bytes of all nodes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.nodes + self.kept.len() as u64) * NODE_BYTES
    }

    /// Where all nodes lie, those that are kept included.
    pub(crate) fn node_addresses<P: Pmem + ?Sized>(&self, memory: &P) -> Vec<u64> {
        let mut all = self.kept.addresses(memory);
        let mut way = vec![self.root];
        while let Some(node) = way.pop() {
            all.push(node.address);
            let level = node.level(memory);
            if level > 0 {
                way.extend((0..node.count(memory)).map(|position| node.child(memory, level, position)));
            }
        }
        all
    }

    fn take_node<P: Pmem + ?Sized>(&mut self, memory: &P, source: &dyn Nodes, level: u64) -> Result<Node, NoRoom> {
        let address = self.kept.pop(memory).or_else(|| source.allocate_node()).ok_or(NoRoom)?;
        let node = Node { address };
        node.format(memory, level);
        self.nodes += 1;
        Ok(node)
    }

    fn give_back<P: Pmem + ?Sized>(&mut self, memory: &P, node: Node) {
        self.nodes -= 1;
        node.retire(memory);
        self.kept.push(memory, node.address);
    }

    /// Brings the kept nodes back to their usual number.
    pub(crate) fn restock<P: Pmem + ?Sized>(&mut self, memory: &P, source: &dyn Nodes) -> Result<(), NoRoom> {
        while self.kept.len() > 2 * KEPT_NODES {
            self.kept.pop(memory).into_iter().for_each(|address| source.release_node(address));
        }
        while self.kept.len() < KEPT_NODES / 2 {
            self.kept.push(memory, source.allocate_node().ok_or(NoRoom)?);
        }
        Ok(())
    }

    /// Forgets what only this process knows of where keys lie: the shape of the tree is about to
    /// change, or another process may have changed it.
    pub(crate) fn forget(&self) {
        self.last_leaves.clear();
    }

    /// The leaf that `key` belongs to.
    #[inline]
    fn leaf<P: Pmem + ?Sized>(&self, memory: &P, key: Key) -> Node {
        self.last_leaves.find(key).unwrap_or_else(|| self.descend(memory, key))
    }

    fn descend<P: Pmem + ?Sized>(&self, memory: &P, key: Key) -> Node {
        let mut node = self.root;
        let mut level = node.level(memory);
        let mut span = Span::ALL;
        while level > 0 {
            let child = node.child_of(memory, level, key);
            span.low = child.low.unwrap_or(span.low);
            span.high = child.high.unwrap_or(span.high);
            node = child.node;
            level -= 1;
        }
        self.last_leaves.keep(span, node);
        node
    }

    /// The value of `key`.
    #[inline]
    pub(crate) fn get<P: Pmem + ?Sized>(&self, memory: &P, key: Key) -> Option<Value> {
        self.leaf(memory, key).find(memory, key).ok().map(|(_, value)| value)
    }

    /// The value of `key`; if there is none, whether a neighbour is an entry of the same object.
    pub(crate) fn get_or_neighbour<P: Pmem + ?Sized>(&self, memory: &P, key: Key) -> Result<Value, bool> {
        let leaf = self.leaf(memory, key);
        leaf.find(memory, key).map(|(_, value)| value).map_err(|at| {
            let is_of_it = |at: u64| leaf.key(memory, 0, at).object == key.object;
            at > 0 && is_of_it(at - 1) || at < leaf.count(memory) && is_of_it(at)
        })
    }

    /// Replaces the value of a key that is there, if `change` has another one.
    pub(crate) fn change<P: Pmem + ?Sized>(&self, memory: &P, key: Key, change: impl FnOnce(Value) -> Option<Value>) {
        let leaf = self.leaf(memory, key);
        if let Ok((at, value)) = leaf.find(memory, key)
            && let Some(value) = change(value)
        {
            leaf.set_value(memory, at, value);
        }
    }

    /// Sets the value of `key` and returns the one before.
    #[inline]
    pub(crate) fn insert<P: Pmem + ?Sized>(
        &mut self,
        memory: &P,
        source: &dyn Nodes,
        key: Key,
        value: Value,
    ) -> Result<Option<Value>, NoRoom> {
        match self.leaf(memory, key).insert(memory, key, value) {
            Some(before) => Ok(before),
            None => self.insert_splitting(memory, source, key, value),
        }
    }

    /// The same where the leaf is full.
    #[cold]
    fn insert_splitting<P: Pmem + ?Sized>(
        &mut self,
        memory: &P,
        source: &dyn Nodes,
        key: Key,
        value: Value,
    ) -> Result<Option<Value>, NoRoom> {
        self.forget();
        let mut level = self.root.level(memory);
        if self.root.count(memory) == Node::most_entries(level) {
            if level as usize + 2 >= MOST_LEVELS {
                return Err(NoRoom);
            }
            let root = self.take_node(memory, source, level + 1)?;
            root.insert_child(memory, 0, Key::FIRST, self.root);
            if let Err(NoRoom) = self.split(memory, source, root, 0) {
                self.give_back(memory, root);
                return Err(NoRoom);
            }
            self.root = root;
            level += 1;
        }
        let mut node = self.root;
        while level > 0 {
            let Child { mut position, node: child, .. } = node.child_of(memory, level, key);
            if child.count(memory) == Node::most_entries(level - 1) {
                self.split(memory, source, node, position)?;
                if node.key(memory, level, position + 1) <= key {
                    position += 1;
                }
            }
            node = node.child(memory, level, position);
            level -= 1;
        }
        // A leaf that was split has room.
        node.insert(memory, key, value).ok_or(NoRoom)
    }

    /// Splits the full child at `position` of `parent`, which has room.
    fn split<P: Pmem + ?Sized>(
        &mut self,
        memory: &P,
        source: &dyn Nodes,
        parent: Node,
        position: u64,
    ) -> Result<(), NoRoom> {
        let level = parent.level(memory);
        let child = parent.child(memory, level, position);
        let right = self.take_node(memory, source, level - 1)?;
        // Where keys come in ascending order the left half would never be used again.
        let last = position + 1 == parent.count(memory);
        let count = child.count(memory);
        let keep = if last { count - count / 4 } else { count / 2 };
        child.move_entries(memory, keep, right);
        parent.insert_child(memory, position + 1, right.key(memory, level - 1, 0), right);
        Ok(())
    }

    /// Removes `key` and returns its value.
    pub(crate) fn remove<P: Pmem + ?Sized>(&mut self, memory: &P, key: Key) -> Option<Value> {
        let leaf = self.leaf(memory, key);
        let (at, value) = leaf.find(memory, key).ok()?;
        self.remove_at(memory, leaf, at, 1, key);
        Some(value)
    }

    /// Removes the entries of one object from `from` on that are in one leaf, and calls `removed`
    /// for each; whether there may be more of them.
    pub(crate) fn remove_object<P: Pmem + ?Sized>(
        &mut self,
        memory: &P,
        from: Key,
        mut removed: impl FnMut(Key, Value),
    ) -> bool {
        let leaf = self.leaf(memory, from);
        let (first, count) = (leaf.lower_bound(memory, 0, from), leaf.count(memory));
        let mut end = first;
        while end < count {
            let key = leaf.key(memory, 0, end);
            if key.object != from.object {
                break;
            }
            removed(key, leaf.value(memory, end));
            end += 1;
        }
        if end > first {
            self.remove_at(memory, leaf, first, end - first, from);
        }
        end == count
    }

    /// The first key from `from` on, if it is of the same object.
    pub(crate) fn first_of<P: Pmem + ?Sized>(&self, memory: &P, from: Key) -> Option<Key> {
        let mut found = None;
        self.scan(memory, from, |key, _| {
            found = (key.object == from.object).then_some(key);
            false
        });
        found
    }

    /// Removes entries of a leaf, the one that `key` belongs to.
    fn remove_at<P: Pmem + ?Sized>(&mut self, memory: &P, leaf: Node, at: u64, removed: u64, key: Key) {
        let before = leaf.count(memory);
        let rest = before - removed;
        leaf.remove_entries(memory, at, removed);
        // It may be joined with a neighbour. Whoever found no room there asks again when it is half
        // as large.
        if rest > Node::LEAF_ENTRIES / 3 || rest > 0 && (before - 1).checked_ilog2() == (rest - 1).checked_ilog2() {
            return;
        }
        let mut path = self.path(memory, key);
        while path.depth > 0 {
            let (node, _) = path.steps[path.depth];
            path.depth -= 1;
            let (parent, position) = path.steps[path.depth];
            if !self.join(memory, node, parent, position) {
                break;
            }
            self.forget();
        }
        while self.root.level(memory) > 0 && self.root.count(memory) == 1 {
            let child = self.root.child(memory, self.root.level(memory), 0);
            self.give_back(memory, self.root);
            self.root = child;
        }
    }

    /// Puts `node`, the child at `position` of `parent`, into a neighbour if it is small enough;
    /// whether the parent lost an entry.
    fn join<P: Pmem + ?Sized>(&mut self, memory: &P, node: Node, parent: Node, position: u64) -> bool {
        let level = node.level(memory);
        let most = Node::most_entries(level);
        let count = node.count(memory);
        if count > most / 3 {
            return false;
        }
        let siblings = parent.count(memory);
        let fits = |other: Node| other.count(memory) + count <= most * 3 / 4;
        if position > 0 {
            let left = parent.child(memory, level + 1, position - 1);
            if count == 0 || fits(left) {
                node.move_entries(memory, 0, left);
                parent.remove_entry(memory, position);
                self.give_back(memory, node);
                return true;
            }
        }
        if position + 1 < siblings {
            let right = parent.child(memory, level + 1, position + 1);
            if count == 0 || fits(right) {
                right.move_entries(memory, 0, node);
                parent.remove_entry(memory, position + 1);
                self.give_back(memory, right);
                return true;
            }
        }
        false
    }

    /// The way to the first entry that is not below `key`; it may be one past the end of a leaf.
    fn path<P: Pmem + ?Sized>(&self, memory: &P, key: Key) -> Path {
        let mut path = Path { steps: [(self.root, 0); MOST_LEVELS], depth: 0 };
        let mut node = self.root;
        let mut level = node.level(memory);
        while level > 0 {
            let child = node.child_of(memory, level, key);
            path.steps[path.depth] = (node, child.position);
            path.depth += 1;
            node = child.node;
            level -= 1;
        }
        path.steps[path.depth] = (node, node.lower_bound(memory, 0, key));
        path
    }

    /// Calls `visit` for the entries from `from` on, in order, until it returns false.
    pub(crate) fn scan<P: Pmem + ?Sized>(&self, memory: &P, from: Key, mut visit: impl FnMut(Key, Value) -> bool) {
        let leaf = self.leaf(memory, from);
        let first = leaf.lower_bound(memory, 0, from);
        let count = leaf.count(memory);
        for at in first..count {
            if !visit(leaf.key(memory, 0, at), leaf.value(memory, at)) {
                return;
            }
        }
        let mut path = self.path(memory, from);
        path.steps[path.depth].1 = count;
        loop {
            let (leaf, first) = path.steps[path.depth];
            for at in first..leaf.count(memory) {
                if !visit(leaf.key(memory, 0, at), leaf.value(memory, at)) {
                    return;
                }
            }
            if !self.step(memory, &mut path, true) {
                return;
            }
        }
    }

    /// The last entry that is not above `key`.
    pub(crate) fn floor<P: Pmem + ?Sized>(&self, memory: &P, key: Key) -> Option<(Key, Value)> {
        let leaf = self.leaf(memory, key);
        match leaf.find(memory, key) {
            Ok((_, value)) => return Some((key, value)),
            Err(0) => {}
            Err(at) => return Some((leaf.key(memory, 0, at - 1), leaf.value(memory, at - 1))),
        }
        let mut path = self.path(memory, key);
        loop {
            let (leaf, at) = path.steps[path.depth];
            if let Some(before) = at.checked_sub(1) {
                return Some((leaf.key(memory, 0, before), leaf.value(memory, before)));
            }
            if !self.step(memory, &mut path, false) {
                return None;
            }
        }
    }

    /// The last entry that is not above `key`, if that `is_it`, else the first one above it.
    pub(crate) fn floor_or_next<P: Pmem + ?Sized>(
        &self,
        memory: &P,
        key: Key,
        is_it: impl Fn(&Entry) -> bool,
    ) -> Option<Entry> {
        let leaf = self.leaf(memory, key);
        let (before, after) = match leaf.find(memory, key) {
            Ok((at, value)) => (Some((key, value)), at + 1),
            Err(at) => (at.checked_sub(1).map(|at| (leaf.key(memory, 0, at), leaf.value(memory, at))), at),
        };
        let before = before.or_else(|| self.floor(memory, key)).filter(is_it);
        if before.is_some() {
            return before;
        }
        if after < leaf.count(memory) {
            return Some((leaf.key(memory, 0, after), leaf.value(memory, after)));
        }
        let mut found = None;
        self.scan(memory, key, |other, value| {
            found = (other > key).then_some((other, value));
            other == key
        });
        found
    }

    /// Goes to the next leaf, at its first entry, or to the one before, past its last.
    fn step<P: Pmem + ?Sized>(&self, memory: &P, path: &mut Path, forward: bool) -> bool {
        let bottom = path.depth;
        let mut depth = bottom;
        loop {
            let Some(up) = depth.checked_sub(1) else { return false };
            depth = up;
            let (node, position) = path.steps[depth];
            let next = if forward { Some(position + 1) } else { position.checked_sub(1) };
            if let Some(next) = next.filter(|next| *next < node.count(memory)) {
                path.steps[depth].1 = next;
                break;
            }
        }
        while depth < bottom {
            let (node, position) = path.steps[depth];
            let child = node.child(memory, (bottom - depth) as u64, position);
            depth += 1;
            let last = child.count(memory) - u64::from(depth < bottom && !forward);
            path.steps[depth] = (child, if forward { 0 } else { last });
        }
        true
    }
}

#[cfg(test)]
mod tests;
