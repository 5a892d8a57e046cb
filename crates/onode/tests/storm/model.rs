//! What a volume should hold: files, directories and symbolic links with their names and
//! attributes, in memory. A copy costs next to nothing, so that every state since the last sync can
//! be kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A file of the model, whatever its number on the volume is.
pub type Id = u64;

/// The topmost directory.
pub const TOP: Id = 0;

pub type Bytes = Arc<Vec<u8>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    File(Bytes),
    Directory(BTreeMap<String, Id>),
    Link(Bytes),
}

#[derive(Clone, Debug)]
pub struct Node {
    pub body: Body,
    pub permissions: u16,
    pub owner: u32,
    /// The time of the last change in seconds, if somebody set it since.
    pub modified: Option<i64>,
    pub xattrs: BTreeMap<String, Bytes>,
    /// A crash shows no content that is older than this state in the history of its tree.
    pub since: usize,
}

/// Whom a limit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limited {
    Tree(Id),
    User(u32),
}

/// A name, where it is and to what it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub directory: Id,
    pub name: String,
    pub file: Id,
}

#[derive(Clone)]
pub struct Model {
    pub nodes: BTreeMap<Id, Arc<Node>>,
    /// Files without a name that are in use; true if they never had one, so that they can get one.
    pub unnamed: BTreeMap<Id, bool>,
    pub limits: BTreeSet<Limited>,
    next: Id,
}

impl Model {
    pub fn new() -> Self {
        let nodes = BTreeMap::new();
        let mut model = Self { nodes, unnamed: BTreeMap::new(), limits: BTreeSet::new(), next: TOP };
        model.add(Body::Directory(BTreeMap::new()), 0o755, 0);
        model
    }

    /// A new file that has no name yet.
    pub fn add(&mut self, body: Body, permissions: u16, owner: u32) -> Id {
        let id = self.next;
        self.next += 1;
        let node = Node { body, permissions, owner, modified: None, xattrs: BTreeMap::new(), since: 0 };
        self.nodes.insert(id, Arc::new(node));
        id
    }

    /// Another model has these, too: what is new here is none of them.
    pub fn continue_after(&mut self, other: &Self) {
        self.next = self.next.max(other.next);
    }

    /// A file of another model, in the topmost directory here, too.
    pub fn share(&mut self, other: &Self, name: &str) {
        let id = other.names(TOP)[name];
        self.nodes.insert(id, Arc::clone(&other.nodes[&id]));
        self.names_mut(TOP).insert(name.to_owned(), id);
        self.continue_after(other);
    }

    pub fn node(&mut self, id: Id) -> &mut Node {
        Arc::make_mut(self.nodes.get_mut(&id).expect("a file"))
    }

    pub fn content(&self, id: Id) -> &Bytes {
        match &self.nodes[&id].body {
            Body::File(bytes) => bytes,
            other => panic!("{id} is no file but {other:?}"),
        }
    }

    /// The content, to be changed: its time of change is no longer what somebody set.
    pub fn change(&mut self, id: Id) -> &mut Vec<u8> {
        let node = self.node(id);
        node.modified = None;
        match &mut node.body {
            Body::File(bytes) => Arc::make_mut(bytes),
            other => panic!("{id} is no file but {other:?}"),
        }
    }

    pub fn names(&self, directory: Id) -> &BTreeMap<String, Id> {
        match &self.nodes[&directory].body {
            Body::Directory(names) => names,
            other => panic!("{directory} is no directory but {other:?}"),
        }
    }

    pub fn names_mut(&mut self, directory: Id) -> &mut BTreeMap<String, Id> {
        match &mut self.node(directory).body {
            Body::Directory(names) => names,
            other => panic!("{directory} is no directory but {other:?}"),
        }
    }

    pub fn is_directory(&self, id: Id) -> bool {
        matches!(self.nodes[&id].body, Body::Directory(_))
    }

    pub fn is_file(&self, id: Id) -> bool {
        matches!(self.nodes[&id].body, Body::File(_))
    }

    pub fn directories(&self) -> Vec<Id> {
        self.nodes.keys().copied().filter(|id| self.is_directory(*id)).collect()
    }

    pub fn files(&self) -> Vec<Id> {
        self.nodes.keys().copied().filter(|id| self.is_file(*id)).collect()
    }

    /// Every name, those of a directory before those in it.
    pub fn places(&self) -> Vec<Place> {
        let (mut all, mut next) = (Vec::new(), vec![TOP]);
        while let Some(directory) = next.pop() {
            for (name, &file) in self.names(directory) {
                all.push(Place { directory, name: name.clone(), file });
                if self.is_directory(file) {
                    next.push(file);
                }
            }
        }
        all
    }

    /// How many names lead to each file.
    pub fn links(&self) -> BTreeMap<Id, u32> {
        let mut links = BTreeMap::new();
        self.places().iter().for_each(|place| *links.entry(place.file).or_insert(0) += 1);
        links
    }

    /// Whether `below` is `directory` or somewhere in it.
    pub fn is_within(&self, below: Id, directory: Id) -> bool {
        let up: BTreeMap<Id, Id> = self.places().iter().map(|place| (place.file, place.directory)).collect();
        let mut at = below;
        while at != directory {
            match up.get(&at) {
                Some(&parent) => at = parent,
                None => return false,
            }
        }
        true
    }

    /// Takes a name away. True if that was the last one: the file is in use without a name then.
    pub fn take(&mut self, place: &Place) -> bool {
        self.names_mut(place.directory).remove(&place.name);
        let is_last = !self.links().contains_key(&place.file);
        if is_last {
            self.unnamed.insert(place.file, false);
            self.limits.remove(&Limited::Tree(place.file));
        }
        is_last
    }

    /// Nobody uses a file without a name any more.
    pub fn let_go(&mut self, id: Id) {
        self.unnamed.remove(&id);
        self.nodes.remove(&id);
    }

    /// Nobody uses anything: files without a name are gone.
    pub fn let_all_go(&mut self) {
        std::mem::take(&mut self.unnamed).keys().for_each(|id| _ = self.nodes.remove(id));
    }

    pub fn has_limits(&self) -> bool {
        !self.limits.is_empty()
    }

    /// Bytes and files that a limit counts. What has no name belongs to the tree that it was in,
    /// which the model does not know: none then.
    pub fn used(&self, limited: Limited) -> Option<(u64, u64)> {
        let places = self.places();
        let counts = |id: Id| match limited {
            Limited::User(user) => self.nodes[&id].owner == user,
            // A file with names outside of the tree, too, belongs to it.
            Limited::Tree(top) => {
                id == top || places.iter().any(|place| place.file == id && self.is_within(place.directory, top))
            }
        };
        if matches!(limited, Limited::Tree(_)) && !self.unnamed.is_empty() {
            return None;
        }
        let bytes = |id: Id| match &self.nodes[&id].body {
            Body::File(bytes) | Body::Link(bytes) => bytes.len() as u64,
            Body::Directory(_) => 0,
        };
        let counted: Vec<Id> = self.nodes.keys().copied().filter(|id| counts(*id)).collect();
        Some((counted.iter().map(|id| bytes(*id)).sum(), counted.len() as u64))
    }
}
