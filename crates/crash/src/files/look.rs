//! Looking at a mounted file system, and comparing what is seen with the model.

use crate::files::program::look_into_slots;
use crate::files::state::{FileState, NodeKind, Number, ROOT, SLOTS};
use crate::files::worth;
use crate::violation::{Violation, unexpected};
use onode_fs::{FileSystem, FileType, InodeNumber};
use onode_object::ObjectId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is seen of one file.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its type.
    pub file_type: FileType,
    /// Permission bits.
    pub permissions: u16,
    /// Link count.
    pub links: u32,
    /// Size.
    pub size: u64,
    /// Number of a device node.
    pub device: u64,
    /// Content or target.
    pub bytes: Vec<u8>,
    /// Extended attributes.
    pub xattrs: BTreeMap<String, Vec<u8>>,
    /// Blocks in slots, all of their bytes.
    pub slots: BTreeMap<u64, Vec<u8>>,
}

/// What is seen of all files.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Paths and the inodes they lead to.
    pub paths: BTreeMap<String, u64>,
    /// The files by inode.
    pub files: BTreeMap<u64, Seen>,
}

/// Looks at everything.
///
/// # Errors
/// What could not be seen.
pub fn look(fs: &FileSystem) -> Result<View, Violation> {
    let mut view = View::default();
    let mut way = vec![(String::new(), InodeNumber::ROOT)];
    while let Some((path, number)) = way.pop() {
        let wrong = |what: &str| unexpected(&format!("{what} of '{path}'"));
        let known = view.files.contains_key(&number.0);
        let attributes = fs.attributes(number).map_err(wrong("attributes"))?;
        if attributes.file_type == FileType::Directory {
            if known {
                return Err(Violation::new("N3", format!("'{path}' is a directory with two names")));
            }
            for entry in fs.list(number).map_err(wrong("names"))? {
                let name = String::from_utf8_lossy(&entry.name).into_owned();
                let below = if path.is_empty() { name } else { format!("{path}/{name}") };
                if view.paths.insert(below.clone(), entry.inode.0).is_some() {
                    return Err(Violation::new("N3", format!("'{below}' is there twice")));
                }
                way.push((below, entry.inode));
            }
        }
        if known {
            continue;
        }
        let bytes = match attributes.file_type {
            FileType::Regular => {
                let mut bytes = vec![0xa5; attributes.size.min(64 << 20) as usize];
                let count = fs.read(number, 0, &mut bytes).map_err(wrong("content"))?;
                bytes.truncate(count);
                bytes
            }
            FileType::SymbolicLink => fs.read_link(number).map_err(wrong("target"))?,
            _ => Vec::new(),
        };
        let mut xattrs = BTreeMap::new();
        for name in fs.list_xattrs(number).map_err(wrong("xattrs"))?.split(|byte| *byte == 0) {
            if !name.is_empty() {
                let value = fs.get_xattr(number, name).map_err(wrong("an xattr"))?;
                xattrs.insert(String::from_utf8_lossy(name).into_owned(), value);
            }
        }
        let (file_type, permissions, links) = (attributes.file_type, attributes.permissions, attributes.links);
        let slots = look_into_slots(fs, ObjectId(number.0), &SLOTS);
        let size = attributes.size;
        view.files.insert(
            number.0,
            Seen { file_type, permissions, links, size, device: attributes.device, bytes, xattrs, slots },
        );
    }
    Ok(view)
}

/// Which versions a cut may show.
#[derive(Clone, Copy)]
pub enum Allowed<'a> {
    /// Only the newest of each file.
    Newest,
    /// Any since those covered in `floor`, but none that is hidden in `returned`.
    Since {
        /// The state after the last returned sync.
        floor: &'a FileState,
        /// The state after the last returned call.
        returned: &'a FileState,
    },
}

/// Compares what is seen with `state`.
///
/// # Errors
/// The first difference, with the promise that it breaks.
pub fn compare(view: &View, state: &FileState, allowed: Allowed<'_>) -> Result<(), Violation> {
    let paths = state.paths();
    let names = |text: String| Err(Violation::new("N3", text));
    if let Some(missing) = paths.keys().find(|path| !view.paths.contains_key(*path)) {
        return names(format!("'{missing}' is missing"));
    }
    if let Some(extra) = view.paths.keys().find(|path| !paths.contains_key(*path)) {
        return names(format!("'{extra}' should not be there"));
    }
    let mut inodes = BTreeMap::from([(ROOT, 1)]);
    let mut numbers = BTreeMap::from([(1, ROOT)]);
    for (path, number) in &paths {
        let inode = view.paths.get(path).copied().unwrap_or_default();
        if *inodes.entry(*number).or_insert(inode) != inode || *numbers.entry(inode).or_insert(*number) != *number {
            return names(format!("'{path}' leads to another file"));
        }
    }
    for (number, inode) in &inodes {
        let path = paths.iter().find(|(_, of)| *of == number).map_or("/", |(path, _)| path);
        if let Some(seen) = view.files.get(inode) {
            compare_file(path, seen, *number, state, allowed)?;
        }
    }
    Ok(())
}

fn compare_file(
    path: &str,
    seen: &Seen,
    number: Number,
    state: &FileState,
    allowed: Allowed<'_>,
) -> Result<(), Violation> {
    let wrong = |promise, text: String| Err(Violation::new(promise, format!("'{path}' {text}")));
    let Some(file) = state.files.get(&number) else { return Ok(()) };
    let may_be_earlier = matches!(allowed, Allowed::Since { .. });
    if seen.permissions != file.permissions && !(may_be_earlier && file.earlier_permissions.contains(&seen.permissions))
    {
        return wrong("N3", format!("has mode {:o} instead of {:o}", seen.permissions, file.permissions));
    }
    if seen.xattrs != file.xattrs {
        return wrong("N3", format!("has extended attributes {:?}", seen.xattrs.keys()));
    }
    let is_held = |(slot, bytes): (&u64, &Vec<u8>)| seen.slots.get(slot).is_some_and(|seen| seen.starts_with(bytes));
    if !seen.slots.keys().eq(file.slots.keys()) || !file.slots.iter().all(is_held) {
        return wrong("N3", format!("has blocks in slots {:?}, or other ones", seen.slots.keys()));
    }
    let links = match &file.kind {
        NodeKind::Directory(entries) => {
            let below = |number: &&Number| state.entries(**number).is_some();
            2 + entries.values().filter(below).count() as u32
        }
        _ => state.links(number),
    };
    if seen.links != links {
        return wrong("N3", format!("has {} links instead of {links}", seen.links));
    }
    match &file.kind {
        NodeKind::Directory(entries) => {
            if seen.file_type != FileType::Directory || seen.size != entries.len() as u64 {
                return wrong(
                    "N3",
                    format!("is {:?} of {} names, {} are there", seen.file_type, seen.size, entries.len()),
                );
            }
        }
        NodeKind::Link(target) => {
            if seen.file_type != FileType::SymbolicLink || seen.bytes != target.as_bytes() {
                return wrong("N3", format!("is {:?} of {} bytes", seen.file_type, seen.bytes.len()));
            }
        }
        NodeKind::Whiteout => {
            if seen.file_type != FileType::CharacterDevice || seen.device != 0 || seen.size != 0 {
                return wrong("N3", format!("is {:?} of device {:#x}", seen.file_type, seen.device));
            }
        }
        NodeKind::Regular(content) => {
            if seen.file_type != FileType::Regular || seen.size != seen.bytes.len() as u64 {
                return wrong(
                    "N3",
                    format!("is {:?} of size {}, {} are there", seen.file_type, seen.size, seen.bytes.len()),
                );
            }
            if let Allowed::Since { floor, returned } = allowed {
                let covered = floor.content(number).map_or(0, |content| content.covered);
                let returned = returned.content(number).map_or(0, |content| content.versions.len());
                if worth::shows(content, &seen.bytes, covered.max(content.published), returned) {
                    return Ok(());
                }
            }
            let found: Vec<usize> =
                (0..content.versions.len()).filter(|&version| *content.versions[version] == seen.bytes).collect();
            if found.is_empty() {
                let text = format!(
                    "has {} bytes that are none of its {} versions{}",
                    seen.bytes.len(),
                    content.versions.len(),
                    first_differences(&content.versions, &seen.bytes)
                );
                return wrong("N4", text);
            }
            let (from, hidden) = match allowed {
                Allowed::Newest => (content.last(), &[][..]),
                Allowed::Since { floor, returned } => {
                    let covered = floor.content(number).map_or(0, |content| content.covered);
                    let hidden = returned.content(number).map_or(&[][..], |content| &content.hidden[..]);
                    (covered.max(content.published), hidden)
                }
            };
            if !found.iter().any(|version| *version >= from) {
                return wrong("N1", format!("shows version {found:?}, {from} is covered"));
            }
            if found.iter().all(|version| *version < from || hidden.contains(version)) {
                return wrong("N3", format!("shows version {found:?}, which was replaced before the file was closed"));
            }
        }
    }
    Ok(())
}

/// The state that is seen, if it is `state` with some version of each content: that is all there is
/// now.
#[must_use]
pub fn settle(view: &View, state: &FileState) -> FileState {
    let mut settled = state.clone();
    for (path, number) in state.paths() {
        let seen = view.paths.get(&path).and_then(|inode| view.files.get(inode));
        if let (Some(seen), Some(file)) = (seen, settled.file(number)) {
            file.permissions = seen.permissions;
            file.earlier_permissions.clear();
        }
        if let (Some(seen), Some(content)) = (seen, settled.content_mut(number)) {
            content.versions = vec![Arc::new(seen.bytes.clone())];
            (content.covered, content.published) = (0, 0);
            content.hidden.clear();
            content.in_place.clear();
            content.fresh.clear();
        }
    }
    settled
}

/// Where `seen` leaves each version of its length, for the one who looks for the cause.
fn first_differences<V: std::ops::Deref<Target = Vec<u8>>>(versions: &[V], seen: &[u8]) -> String {
    let mut text = String::new();
    for (number, version) in versions.iter().enumerate().filter(|(_, version)| version.len() == seen.len()) {
        let differs = |at: &usize| version[*at] != seen[*at];
        let first = (0..seen.len()).find(differs).unwrap_or_default();
        let last = (0..seen.len()).rev().find(differs).unwrap_or_default();
        text.push_str(&format!("; version {number} differs from byte {first} to {last}"));
    }
    text
}
