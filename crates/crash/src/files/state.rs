//! What files there should be: a small model of POSIX names and contents that shares no code with
//! the file system.
//!
//! Names form states one after another. The content of a regular file is the list of its
//! *versions*, one after each call that changed it: in write-back mode a cut leaves any version
//! since the last one that a returned fsync covers, and no other bytes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The slots that are used: two of one page and one of another.
pub const SLOTS: [u64; 3] = [0, 1, 600];

/// Number of a file in the model.
pub type Number = u64;

/// The root directory.
pub const ROOT: Number = 0;

/// The content of a regular file and what was promised about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// All versions, the oldest first; never empty.
    pub versions: Vec<Arc<Vec<u8>>>,
    /// The version that the last returned fsync or sync covers.
    pub covered: usize,
    /// The version that a rename put in the place of another file: nothing older may be seen there.
    pub published: usize,
    /// Versions that no cut may show once the call that made them has returned: the empty file
    /// between cutting it to nothing and closing it.
    pub hidden: Vec<usize>,
    /// Versions made of the one before by an overwrite in place.
    pub in_place: Vec<usize>,
    /// Bytes that may be anything until the call that made the version has returned.
    pub fresh: Vec<(usize, Range<usize>)>,
}

impl Content {
    /// A content that is on the medium.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { versions: vec![Arc::new(bytes)], ..Self::default() }
    }

    /// The newest version.
    #[must_use]
    pub fn newest(&self) -> &[u8] {
        self.versions.last().map_or(&[], |bytes| bytes)
    }

    /// Index of the newest version.
    #[must_use]
    pub fn last(&self) -> usize {
        self.versions.len().saturating_sub(1)
    }
}

/// What a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Names and the files they lead to.
    Directory(BTreeMap<String, Number>),
    /// Bytes.
    Regular(Content),
    /// A target.
    Link(String),
    /// A character device 0:0.
    Whiteout,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// What it is.
    pub kind: NodeKind,
    /// Permission bits.
    pub permissions: u16,
    /// Those before, since what the last returned sync covers.
    pub earlier_permissions: Vec<u16>,
    /// Extended attributes.
    pub xattrs: BTreeMap<String, Vec<u8>>,
    /// Blocks in its slots.
    pub slots: BTreeMap<u64, Vec<u8>>,
}

/// All files with a name.
#[derive(Clone, Debug)]
pub struct FileState {
    /// The files.
    pub files: BTreeMap<Number, Arc<File>>,
    next: Number,
}

impl Default for FileState {
    fn default() -> Self {
        let root = File {
            kind: NodeKind::Directory(BTreeMap::new()),
            permissions: 0o755,
            earlier_permissions: Vec::new(),
            xattrs: BTreeMap::new(),
            slots: BTreeMap::new(),
        };
        Self { files: BTreeMap::from([(ROOT, Arc::new(root))]), next: 1 }
    }
}

/// Directory part and name of a path.
#[must_use]
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

impl FileState {
    /// The file at `path`.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<Number> {
        path.split('/').filter(|name| !name.is_empty()).try_fold(ROOT, |at, name| self.entries(at)?.get(name).copied())
    }

    /// The names in a directory.
    #[must_use]
    pub fn entries(&self, number: Number) -> Option<&BTreeMap<String, Number>> {
        match &self.files.get(&number)?.kind {
            NodeKind::Directory(entries) => Some(entries),
            _ => None,
        }
    }

    /// A file to be changed.
    pub fn file(&mut self, number: Number) -> Option<&mut File> {
        self.files.get_mut(&number).map(Arc::make_mut)
    }

    /// The content of a regular file.
    #[must_use]
    pub fn content(&self, number: Number) -> Option<&Content> {
        match &self.files.get(&number)?.kind {
            NodeKind::Regular(content) => Some(content),
            _ => None,
        }
    }

    /// The content of a regular file, to be changed.
    pub fn content_mut(&mut self, number: Number) -> Option<&mut Content> {
        match &mut self.file(number)?.kind {
            NodeKind::Regular(content) => Some(content),
            _ => None,
        }
    }

    fn entries_mut(&mut self, number: Number) -> Option<&mut BTreeMap<String, Number>> {
        match &mut self.file(number)?.kind {
            NodeKind::Directory(entries) => Some(entries),
            _ => None,
        }
    }

    /// Makes a file at a path that is free, in a directory that is there.
    pub fn make(&mut self, path: &str, kind: NodeKind, permissions: u16) -> Option<Number> {
        let (parent, name) = split(path);
        let parent = self.find(parent)?;
        let number = self.next;
        if self.entries(parent)?.contains_key(name) {
            return None;
        }
        self.entries_mut(parent)?.insert(name.into(), number);
        self.next += 1;
        self.files.insert(
            number,
            Arc::new(File {
                kind,
                permissions,
                earlier_permissions: Vec::new(),
                xattrs: BTreeMap::new(),
                slots: BTreeMap::new(),
            }),
        );
        Some(number)
    }

    /// Takes a name away, and the file with its last name.
    pub fn remove_name(&mut self, path: &str) -> Option<Number> {
        let (parent, name) = split(path);
        let parent = self.find(parent)?;
        let number = self.entries_mut(parent)?.remove(name)?;
        self.drop_unnamed(number);
        Some(number)
    }

    /// Gives a file one more name; what had the name loses it.
    pub fn set_name(&mut self, path: &str, number: Number) -> Option<()> {
        let (parent, name) = split(path);
        let parent = self.find(parent)?;
        if let Some(old) = self.entries_mut(parent)?.insert(name.into(), number) {
            self.drop_unnamed(old);
        }
        Some(())
    }

    /// Takes a name away, but leaves the file, which is given another name next.
    pub fn take_name(&mut self, path: &str) -> Option<Number> {
        let (parent, name) = split(path);
        let parent = self.find(parent)?;
        self.entries_mut(parent)?.remove(name)
    }

    fn drop_unnamed(&mut self, number: Number) {
        if self.links(number) == 0 {
            self.files.remove(&number);
        }
    }

    /// Names that lead to a file.
    #[must_use]
    pub fn links(&self, number: Number) -> u32 {
        let directories = self.files.values().filter_map(|file| match &file.kind {
            NodeKind::Directory(entries) => Some(entries),
            _ => None,
        });
        directories.map(|entries| entries.values().filter(|one| **one == number).count() as u32).sum()
    }

    /// A new version of a content.
    pub fn push(&mut self, number: Number, bytes: Vec<u8>) {
        if let Some(content) = self.content_mut(number) {
            content.versions.push(Arc::new(bytes));
        }
    }

    /// Everything so far is on the medium.
    pub fn cover_all(&mut self) {
        let numbers: Vec<Number> = self.files.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.cover(number));
    }

    /// Content and mode of one file are on the medium.
    pub fn cover(&mut self, number: Number) {
        if self.files.get(&number).is_some_and(|file| !file.earlier_permissions.is_empty())
            && let Some(file) = self.file(number)
        {
            file.earlier_permissions.clear();
        }
        if self.content(number).is_some_and(|content| content.covered != content.last())
            && let Some(content) = self.content_mut(number)
        {
            content.covered = content.last();
        }
    }

    /// All paths with their files, directories before what is in them.
    #[must_use]
    pub fn paths(&self) -> BTreeMap<String, Number> {
        let mut all = BTreeMap::new();
        let mut way = vec![(String::new(), ROOT)];
        while let Some((path, number)) = way.pop() {
            for (name, below) in self.entries(number).into_iter().flatten() {
                let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
                way.push((path.clone(), *below));
                all.insert(path, *below);
            }
        }
        all
    }

    /// Bytes of all contents.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.keys().filter_map(|number| self.content(*number)).map(|one| one.newest().len() as u64 + 256).sum()
    }
}
