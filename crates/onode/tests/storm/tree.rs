//! The files of a volume, a clone or a transaction beside the model of them: which number each has,
//! what it was since the last sync, and whether it is as it should be.

use super::model::{Body, Bytes, Id, Limited, Model, Place, TOP};
use onode::{QuotaSubject, QuotaUse};
use onode_fs::{Attributes, FileSystem, FileType, InodeNumber};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of a directory with a key, which has all files then.
pub const WITH_KEY: &[u8] = b"with-a-key";

#[derive(Clone)]
pub struct Tree {
    pub model: Model,
    pub numbers: BTreeMap<Id, InodeNumber>,
    /// How often each was looked up.
    pub lookups: BTreeMap<Id, u64>,
    /// What it was after each change since all of it was durable.
    pub history: Vec<Model>,
    /// A crash shows no names that are older than this state.
    pub floor: usize,
    /// A file lost its last name on a full volume: a crash may leave it to `fsck`.
    pub is_tight: bool,
    /// A file without a name was let go: where there was no room to remove it, it still counts.
    pub has_let_go: bool,
}

/// What was found of a tree.
pub struct Found {
    names: BTreeMap<String, Attributes>,
}

impl Tree {
    pub fn new(model: Model) -> Self {
        let history = vec![model.clone()];
        let numbers = BTreeMap::from([(TOP, InodeNumber::ROOT)]);
        let mut tree =
            Self { model, numbers, lookups: BTreeMap::new(), history, floor: 0, is_tight: false, has_let_go: false };
        tree.synced();
        tree
    }

    /// The state after a change.
    pub fn note(&mut self) {
        self.history.push(self.model.clone());
    }

    pub fn now(&self) -> usize {
        self.history.len() - 1
    }

    /// Everything is durable.
    pub fn synced(&mut self) {
        let ids: Vec<Id> = self.model.nodes.keys().copied().collect();
        ids.into_iter().for_each(|id| self.model.node(id).since = 0);
        self.history = vec![self.model.clone()];
        self.floor = 0;
    }

    /// All names and attributes up to now are durable, and the content of a file, if one is named.
    pub fn is_durable(&mut self, file: Option<Id>) {
        self.note();
        self.floor = self.now();
        if let Some(file) = file {
            self.publishes(file);
        }
    }

    /// What is written to a file is there before whatever comes now.
    pub fn publishes(&mut self, file: Id) {
        let next = self.now();
        self.model.node(file).since = next;
        let last = self.history.len() - 1;
        self.history[last] = self.model.clone();
    }

    pub fn found(&mut self, id: Id, number: InodeNumber) {
        self.numbers.insert(id, number);
        *self.lookups.entry(id).or_insert(0) += 1;
    }

    pub fn forget(&mut self, fs: &FileSystem, id: Id) {
        if let (Some(number), Some(count)) = (self.numbers.remove(&id), self.lookups.remove(&id)) {
            fs.forget(number, count);
        }
    }

    /// The file system is a new one: nothing was looked up in it.
    pub fn reopened(&mut self, fs: &FileSystem, what: &str) {
        self.model.let_all_go();
        self.numbers = BTreeMap::from([(TOP, top(fs))]);
        self.lookups.clear();
        self.is_tight = false;
        self.look_up(fs, what);
    }

    /// Looks up what has no number yet.
    pub fn look_up(&mut self, fs: &FileSystem, what: &str) {
        for Place { directory, name, file } in self.model.places() {
            if !self.numbers.contains_key(&file) {
                let found = fs.lookup(self.numbers[&directory], name.as_bytes());
                let found = found.unwrap_or_else(|error| panic!("{what}: {name}: {error}"));
                self.found(file, found.inode);
            }
        }
    }

    /// It holds what the model says.
    pub fn verify(&self, fs: &FileSystem, when: &str) {
        verify(&self.model, fs, when);
        for (&id, &number) in &self.numbers {
            if self.model.is_file(id) {
                let (found, wanted) = (content(fs, number, when), self.model.content(id));
                assert!(found == **wanted, "{when}: {}", difference("by its number", &found, wanted));
            }
        }
        self.verify_limits(fs, when);
    }

    fn verify_limits(&self, fs: &FileSystem, when: &str) {
        for &limited in &self.model.limits {
            let Some((bytes, files)) = self.model.used(limited) else { continue };
            let subject = self.subject(limited);
            let quotas = fs.quotas().unwrap_or_else(|error| panic!("{when}: limits: {error}"));
            let quota = quotas.iter().find(|one| one.subject == subject);
            let quota = quota.unwrap_or_else(|| panic!("{when}: the limit of {subject:?} is gone"));
            let wanted = QuotaUse { bytes, files };
            let is_more = quota.used.bytes >= bytes && quota.used.files >= files && self.has_let_go;
            assert!(is_more || quota.used == wanted, "{when}: {subject:?} has {:?} and not {wanted:?}", quota.used);
        }
    }

    pub fn subject(&self, limited: Limited) -> QuotaSubject {
        match limited {
            Limited::Tree(id) => QuotaSubject::Directory(self.numbers[&id]),
            Limited::User(user) => QuotaSubject::User(user),
        }
    }

    /// After a crash: takes what is found for the model, which has to be one that the promises
    /// admit.
    pub fn recover(&mut self, fs: &FileSystem, when: &str) {
        let mut why = Vec::new();
        for at in (self.floor..self.history.len()).rev() {
            let mut model = self.history[at].clone();
            match self.survives(&mut model, fs) {
                Ok(()) => {
                    model.let_all_go();
                    self.model = model;
                    self.synced();
                    self.reopened(fs, when);
                    return;
                }
                Err(reason) => why.push(format!("  state {at}: {reason}")),
            }
        }
        let shown = why.len().min(12);
        panic!("{when}: no state from {} to {} is there:\n{}", self.floor, self.now(), why[..shown].join("\n"));
    }

    /// Whether a state is there after a crash, but for the content of files, which may be older.
    fn survives(&self, model: &mut Model, fs: &FileSystem) -> Result<(), String> {
        model.let_all_go();
        let found = found(fs, model)?;
        let at = |id: Id| self.history.iter().filter_map(move |state| state.nodes.get(&id));
        for (path, Attributes { inode, permissions, .. }) in found.names {
            let id = id_of(model, &path).expect("a name of the model");
            if !at(id).any(|node| node.permissions == permissions) {
                return Err(format!("{path} has mode {permissions:o}"));
            }
            model.node(id).permissions = permissions;
            model.node(id).modified = None;
            if model.is_file(id) {
                let bytes = content(fs, inode, &path);
                let since = model.nodes[&id].since;
                let states: Vec<&Bytes> = self.history[since..]
                    .iter()
                    .filter_map(|state| state.nodes.get(&id))
                    .filter_map(|node| if let Body::File(bytes) = &node.body { Some(bytes) } else { None })
                    .collect();
                is_one_of(&bytes, &states).map_err(|reason| format!("{path} since {since}: {reason}"))?;
                *model.change(id) = bytes;
            }
        }
        Ok(())
    }
}

/// What is written at once: more of it may be there in part after a crash, in the order of the
/// file.
const AT_ONCE: usize = 32 << 10;

/// Whether content is one of those that a file had, or for a large file has each byte of one.
fn is_one_of(bytes: &[u8], states: &[&Bytes]) -> Result<(), String> {
    if states.iter().any(|state| ***state == *bytes) {
        return Ok(());
    }
    let most = states.iter().map(|state| state.len()).max().unwrap_or_default();
    let nearest = states.iter().min_by_key(|state| state.len().abs_diff(bytes.len())).expect("a state");
    if most <= AT_ONCE || bytes.len() > most {
        return Err(difference("content of no moment", bytes, nearest));
    }
    let alien = bytes.iter().enumerate().find(|(at, byte)| !states.iter().any(|state| state.get(*at) == Some(byte)));
    match alien {
        Some((at, byte)) => Err(format!("byte {at} of {} is {byte}, which it never was", bytes.len())),
        None => Ok(()),
    }
}

fn id_of(model: &Model, path: &str) -> Option<Id> {
    path.split('/').skip(1).try_fold(TOP, |at, name| model.names(at).get(name).copied())
}

/// The directory that all files are in: the topmost one, or the one with a key.
pub fn top(fs: &FileSystem) -> InodeNumber {
    let Ok(found) = fs.lookup(InodeNumber::ROOT, WITH_KEY) else { return InodeNumber::ROOT };
    fs.forget(found.inode, 1);
    found.inode
}

/// Walks over all names; those of the model are there and no others, with their kinds, targets and
/// extended attributes.
fn found(fs: &FileSystem, model: &Model) -> Result<Found, String> {
    let mut names = BTreeMap::new();
    let (mut next, mut numbers) = (vec![(TOP, top(fs), String::new())], BTreeMap::new());
    let links = model.links();
    while let Some((directory, number, path)) = next.pop() {
        let told = |error: onode_fs::Error| format!("{path}/: {error}");
        let listed: Vec<String> =
            fs.list(number).map_err(told)?.into_iter().map(|one| String::from_utf8_lossy(&one.name).into()).collect();
        let wanted = model.names(directory);
        if let Some(name) = listed.iter().find(|name| !wanted.contains_key(*name)) {
            return Err(format!("{path}/{name} should not be there"));
        }
        for (name, &id) in wanted {
            let path = format!("{path}/{name}");
            let attributes = fs.lookup(number, name.as_bytes()).map_err(|error| format!("{path}: {error}"))?;
            fs.forget(attributes.inode, 1);
            if !listed.contains(name) {
                return Err(format!("{path} is not listed"));
            }
            if *numbers.entry(id).or_insert(attributes.inode) != attributes.inode {
                return Err(format!("{path} leads to another file than its other names"));
            }
            let node = &model.nodes[&id];
            let kind = match &node.body {
                Body::File(_) => FileType::Regular,
                Body::Directory(_) => FileType::Directory,
                Body::Link(_) => FileType::SymbolicLink,
            };
            if attributes.file_type != kind {
                return Err(format!("{path} is {:?}", attributes.file_type));
            }
            if kind != FileType::Directory && attributes.links != links[&id] {
                return Err(format!("{path} has {} links and not {}", attributes.links, links[&id]));
            }
            if attributes.uid != node.owner {
                return Err(format!("{path} belongs to {}", attributes.uid));
            }
            if let Body::Link(target) = &node.body
                && fs.read_link(attributes.inode).map_err(|error| format!("{path}: {error}"))? != **target
            {
                return Err(format!("{path} leads elsewhere"));
            }
            has_xattrs(fs, attributes.inode, &node.xattrs).map_err(|reason| format!("{path}: {reason}"))?;
            if kind == FileType::Directory {
                next.push((id, attributes.inode, path.clone()));
            }
            names.insert(path, attributes);
        }
    }
    Ok(Found { names })
}

fn has_xattrs(fs: &FileSystem, number: InodeNumber, wanted: &BTreeMap<String, Bytes>) -> Result<(), String> {
    let listed = fs.list_xattrs(number).map_err(|error| format!("attributes: {error}"))?;
    let listed: Vec<&[u8]> = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    if listed.len() != wanted.len() {
        return Err(format!("it has {} extended attributes and not {}", listed.len(), wanted.len()));
    }
    for (name, value) in wanted {
        match fs.get_xattr(number, name.as_bytes()) {
            Ok(found) if found == **value => {}
            Ok(found) => return Err(difference(name, &found, value)),
            Err(error) => return Err(format!("{name}: {error}")),
        }
    }
    Ok(())
}

/// It holds exactly what the model says.
pub fn verify(model: &Model, fs: &FileSystem, when: &str) {
    let found = found(fs, model).unwrap_or_else(|reason| panic!("{when}: {reason}"));
    for (path, attributes) in found.names {
        let id = id_of(model, &path).expect("a name of the model");
        let node = &model.nodes[&id];
        assert_eq!(attributes.permissions, node.permissions, "{when}: mode of {path}");
        if let Some(modified) = node.modified {
            assert_eq!(attributes.modified.seconds, modified, "{when}: time of {path}");
        }
        if let Body::File(wanted) = &node.body {
            let bytes = content(fs, attributes.inode, &format!("{when}: {path}"));
            assert!(bytes == **wanted, "{when}: {path}: {}", difference("content", &bytes, wanted));
        }
    }
}

fn content(fs: &FileSystem, number: InodeNumber, when: &str) -> Vec<u8> {
    let size = fs.attributes(number).unwrap_or_else(|error| panic!("{when}: {error}")).size;
    let mut bytes = vec![0; size as usize + 1];
    let mut done = 0;
    loop {
        match fs.read(number, done as u64, &mut bytes[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) => panic!("{when}: read: {error}"),
        }
    }
    bytes.truncate(done);
    bytes
}

fn difference(what: &str, found: &[u8], wanted: &[u8]) -> String {
    let at = found.iter().zip(wanted).position(|(found, wanted)| found != wanted);
    format!("{what}: {} bytes instead of {}, and another one at {at:?}", found.len(), wanted.len())
}

/// A tree for somebody who sees the same files through another file system.
pub fn seen_through(tree: &Tree, fs: &Arc<FileSystem>, what: &str) -> Tree {
    let mut seen = Tree::new(tree.model.clone());
    seen.reopened(fs, what);
    seen.has_let_go = true;
    seen
}
