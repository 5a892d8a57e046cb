//! Calls of the file system as values: doing them, and what the model becomes.

use crate::files::program::{self, Program, content_to_withdraw};
use crate::files::state::{Content, FileState, NodeKind, SLOTS, split};
use crate::violation::{Violation, unexpected};
use crate::workload::content::content;
use onode_base::clock::ManualClock;
use onode_fs::{
    Allocate, Caller, ErrorKind, FileSystem, Follow, InodeNumber, OpenFlags, RenameEnd, RenameFlags, SetAttributes,
    XattrFlags,
};
use std::sync::Arc;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Makes an empty file.
    Create(String),
    /// Makes a directory.
    MakeDirectory(String),
    /// Makes a symbolic link.
    Link(String),
    /// Gives a file one more name.
    HardLink(String, String),
    /// Writes so many bytes at an offset.
    Write(String, usize, usize),
    /// Writes so many bytes at the end.
    Append(String, usize),
    /// Sets the size.
    Truncate(String, usize),
    /// Makes a range a hole.
    Punch(String, usize, usize),
    /// Zeroes a range; the size grows over it.
    Zero(String, usize, usize),
    /// Cuts a file to nothing, writes it anew and closes it.
    Rewrite(String, usize),
    /// Gives a file another name, replacing what has it.
    Rename(String, String),
    /// The same, and a whiteout takes the old name.
    RenameLeavingWhiteout(String, String),
    /// Swaps two names.
    Exchange(String, String),
    /// Takes a name away.
    Unlink(String),
    /// Removes an empty directory.
    RemoveDirectory(String),
    /// Sets the mode.
    Mode(String, u16),
    /// Sets an extended attribute.
    Xattr(String, usize),
    /// Makes a file without a name, writes it and lets it go.
    Unnamed(String, usize),
    /// Makes a block of memory of so many bytes a file.
    Publish(String, usize),
    /// Takes a file as memory, uses it as such and gives it back.
    Withdraw(String),
    /// Has a slot of a file hold a block of so many bytes.
    Fill(String, u64, usize),
    /// Takes the block out of a slot, uses it and gives it back.
    Take(String, u64),
    /// The program dies with memory in use.
    Die,
    /// Lets six seconds pass.
    Tick,
    /// Waits until a file or directory is on the medium.
    Fsync(String),
    /// Waits until everything is.
    Sync,
}

const CALLER: Caller = Caller::root();

/// Bytes that occur nowhere else.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    content(&mut onode_base::Prng::new(seed), length)
}

impl Call {
    /// The state after the call; `None` if it cannot be made now. `seed` tells the bytes written.
    #[must_use]
    pub fn after(&self, state: &FileState, seed: u64) -> Option<FileState> {
        let mut state = state.clone();
        let regular = |state: &FileState, path: &str| {
            let number = state.find(path)?;
            state.content(number).map(|content| (number, content.newest().to_vec()))
        };
        match self {
            Self::Create(path) => state.make(path, NodeKind::Regular(Content::of(Vec::new())), 0o644).map(|_| ())?,
            Self::MakeDirectory(path) => {
                state.make(path, NodeKind::Directory(Default::default()), 0o755).map(|_| ())?;
            }
            Self::Link(path) => state.make(path, NodeKind::Link(format!("to/{seed:x}")), 0o777).map(|_| ())?,
            Self::HardLink(path, name) => {
                let (number, _) = regular(&state, path)?;
                if state.find(name).is_some() || state.find(split(name).0).is_none() {
                    return None;
                }
                state.set_name(name, number)?;
            }
            Self::Write(path, offset, length) => {
                let (number, mut content) = regular(&state, path)?;
                content.resize(content.len().max(offset + length), 0);
                content[*offset..offset + length].copy_from_slice(&bytes(seed, *length));
                state.push(number, content);
            }
            Self::Append(path, length) => {
                let (number, mut content) = regular(&state, path)?;
                content.extend_from_slice(&bytes(seed, *length));
                state.push(number, content);
            }
            Self::Truncate(path, size) => {
                let (number, mut content) = regular(&state, path)?;
                content.resize(*size, 0);
                state.push(number, content);
            }
            Self::Punch(path, offset, length) => {
                let (number, mut content) = regular(&state, path)?;
                let end = (offset + length).min(content.len());
                content[(*offset).min(end)..end].fill(0);
                state.push(number, content);
            }
            Self::Zero(path, offset, length) => {
                let (number, mut content) = regular(&state, path)?;
                content.resize(content.len().max(offset + length), 0);
                // Two steps: what is there becomes zeros, then the file grows.
                let size = state.content(number)?.newest().len();
                let mut punched = content.clone();
                punched.truncate(size);
                punched[(*offset).min(size)..(offset + length).min(size)].fill(0);
                state.push(number, punched);
                content[*offset..offset + length].fill(0);
                state.push(number, content);
            }
            Self::Rewrite(path, length) => {
                let (number, _) = regular(&state, path)?;
                state.push(number, Vec::new());
                let empty = state.content(number)?.last();
                state.push(number, bytes(seed, *length));
                state.content_mut(number)?.hidden.push(empty);
            }
            Self::Rename(from, to) => rename(&mut state, from, to)?,
            Self::RenameLeavingWhiteout(from, to) => {
                rename(&mut state, from, to)?;
                state.make(from, NodeKind::Whiteout, 0).map(|_| ())?;
            }
            Self::Exchange(from, to) => {
                let (one, other) = (state.find(from)?, state.find(to)?);
                let is_file = state.entries(one).is_none() && state.entries(other).is_none();
                if !is_file || one == other {
                    return None;
                }
                state.take_name(from)?;
                state.take_name(to)?;
                state.set_name(from, other)?;
                state.set_name(to, one)?;
            }
            Self::Unlink(path) => {
                let number = state.find(path)?;
                if state.entries(number).is_some() {
                    return None;
                }
                state.remove_name(path)?;
            }
            Self::RemoveDirectory(path) => {
                if !state.entries(state.find(path)?)?.is_empty() {
                    return None;
                }
                state.remove_name(path)?;
            }
            Self::Mode(path, mode) => {
                let number = state.find(path)?;
                let file = state.file(number)?;
                file.earlier_permissions.push(file.permissions);
                file.permissions = *mode;
            }
            Self::Xattr(path, length) => {
                let number = state.find(path)?;
                state.file(number)?.xattrs.insert("user.color".into(), bytes(seed, *length));
            }
            Self::Unnamed(path, _) => {
                if state.find(path).is_some() || state.find(split(path).0).is_none() {
                    return None;
                }
            }
            Self::Publish(path, length) => {
                let number = state.make(path, NodeKind::Regular(Content::of(bytes(seed, *length))), 0o644)?;
                state.cover(number);
            }
            Self::Withdraw(path) => {
                content_to_withdraw(&state, path)?;
                state.remove_name(path)?;
            }
            Self::Fill(path, slot, length) => {
                let number = regular(&state, path)?.0;
                state.file(number)?.slots.insert(*slot, bytes(seed, *length));
            }
            Self::Take(path, slot) => {
                let number = state.find(path)?;
                state.file(number)?.slots.remove(slot)?;
            }
            Self::Tick | Self::Die => {}
            Self::Fsync(path) => {
                let number = state.find(path)?;
                state.cover(number);
            }
            Self::Sync => state.cover_all(),
        }
        Some(state)
    }

    /// Whether the return of the call promises that every name so far is on the medium.
    #[must_use]
    pub const fn covers(&self) -> bool {
        matches!(
            self,
            Self::Fsync(_) | Self::Sync | Self::Publish(..) | Self::Withdraw(_) | Self::Fill(..) | Self::Take(..)
        )
    }

    /// Makes a call that needs memory; `before` is the state before it, and false says that it
    /// could not be made. `None` if it needs none.
    #[must_use]
    pub fn make_with(
        &self,
        fs: &FileSystem,
        program: &dyn Program,
        before: &FileState,
        seed: u64,
    ) -> Option<Result<bool, Violation>> {
        match self {
            Self::Publish(path, length) => Some(program::publish(fs, program, path, &bytes(seed, *length))),
            Self::Withdraw(path) => {
                let expected = content_to_withdraw(before, path).unwrap_or_default();
                Some(program::withdraw(fs, program, path, &expected))
            }
            Self::Fill(path, slot, length) => Some(program::fill(fs, program, path, *slot, &bytes(seed, *length))),
            Self::Take(path, slot) => {
                let file = before.find(path).and_then(|number| before.files.get(&number));
                let expected = file.and_then(|file| file.slots.get(slot)).cloned().unwrap_or_default();
                Some(program::take(fs, program, path, *slot, &expected))
            }
            Self::Die => Some(program::die(program).map(|()| true)),
            _ => None,
        }
    }

    /// Whether only a device whose objects are memory knows of such a call.
    #[must_use]
    pub const fn needs_memory(&self) -> bool {
        matches!(self, Self::Publish(..) | Self::Withdraw(_) | Self::Fill(..) | Self::Take(..) | Self::Die)
    }

    /// Makes the call.
    ///
    /// # Errors
    /// The file system's.
    pub fn make(&self, fs: &FileSystem, clock: &ManualClock, seed: u64) -> onode_fs::Result<()> {
        let at = |path: &str| fs.resolve(path.as_bytes(), Follow::No);
        let parent = |path: &str| at(split(path).0);
        let name = |path: &str| split(path).1.as_bytes().to_vec();
        let write = |number: InodeNumber, offset: usize, data: &[u8]| {
            let done = fs.write(&CALLER, number, offset as u64, data)?;
            // A program that hears of less than it wrote stops there: the rest would be a call of
            // its own.
            let is_short = || onode_fs::Error::new(ErrorKind::NoSpace, "a short write");
            if done == data.len() { Ok(()) } else { Err(is_short()) }
        };
        match self {
            Self::Create(path) => {
                let made = fs.create(&CALLER, parent(path)?, &name(path), 0o644)?;
                fs.forget(made.inode, 1);
                Ok(())
            }
            Self::MakeDirectory(path) => {
                let made = fs.make_directory(&CALLER, parent(path)?, &name(path), 0o755)?;
                fs.forget(made.inode, 1);
                Ok(())
            }
            Self::Link(path) => {
                let target = format!("to/{seed:x}");
                let made = fs.make_symbolic_link(&CALLER, parent(path)?, &name(path), target.as_bytes())?;
                fs.forget(made.inode, 1);
                Ok(())
            }
            Self::HardLink(path, to) => {
                let linked = fs.link(at(path)?, parent(to)?, &name(to))?;
                fs.forget(linked.inode, 1);
                Ok(())
            }
            Self::Write(path, offset, length) => write(at(path)?, *offset, &bytes(seed, *length)),
            Self::Append(path, length) => {
                let number = at(path)?;
                let size = fs.attributes(number)?.size as usize;
                write(number, size, &bytes(seed, *length))
            }
            Self::Truncate(path, size) => {
                let size = SetAttributes { size: Some(*size as u64), ..SetAttributes::default() };
                fs.set_attributes(&CALLER, at(path)?, &size).map(|_| ())
            }
            Self::Punch(path, offset, length) => {
                fs.allocate(&CALLER, at(path)?, *offset as u64, *length as u64, Allocate::PunchHole)
            }
            Self::Zero(path, offset, length) => {
                fs.allocate(&CALLER, at(path)?, *offset as u64, *length as u64, Allocate::ZeroRange)
            }
            Self::Rewrite(path, length) => {
                let number = at(path)?;
                let handle = fs.open(&CALLER, number, OpenFlags { write: true, truncate: true })?;
                // A program that meets a full disk closes its file all the same.
                let written = write(number, 0, &bytes(seed, *length)).and_then(|()| fs.flush(handle));
                written.and(fs.release(handle))
            }
            Self::Rename(from, to) => {
                fs.rename(parent(from)?, &name(from), parent(to)?, &name(to), RenameFlags::Replace)
            }
            Self::RenameLeavingWhiteout(from, to) => {
                let (old, new) = (name(from), name(to));
                let from = RenameEnd { directory: parent(from)?, name: &old };
                let to = RenameEnd { directory: parent(to)?, name: &new };
                fs.rename_leaving_whiteout(&CALLER, from, to, RenameFlags::Replace)
            }
            Self::Exchange(from, to) => {
                fs.rename(parent(from)?, &name(from), parent(to)?, &name(to), RenameFlags::Exchange)
            }
            Self::Unlink(path) => fs.unlink(parent(path)?, &name(path)),
            Self::RemoveDirectory(path) => fs.remove_directory(parent(path)?, &name(path)),
            Self::Mode(path, mode) => {
                let change = SetAttributes { permissions: Some(*mode), ..SetAttributes::default() };
                fs.set_attributes(&CALLER, at(path)?, &change).map(|_| ())
            }
            Self::Xattr(path, length) => {
                fs.set_xattr(&CALLER, at(path)?, b"user.color", &bytes(seed, *length), XattrFlags::Any)
            }
            Self::Unnamed(path, length) => {
                let made = fs.make_unnamed(&CALLER, parent(path)?, 0o600)?;
                let handle = fs.open(&CALLER, made.inode, OpenFlags { write: true, truncate: false })?;
                fs.forget(made.inode, 1);
                let written = write(made.inode, 0, &bytes(seed, *length))
                    .and_then(|()| fs.fsync(made.inode, Some(handle), false))
                    .and_then(|()| fs.flush(handle));
                written.and(fs.release(handle))
            }
            Self::Publish(..) | Self::Withdraw(_) | Self::Fill(..) | Self::Take(..) | Self::Die => {
                Err(onode_fs::Error::new(ErrorKind::NotSupported, "the device has no memory"))
            }
            Self::Tick => {
                clock.advance(6_000_000_000);
                fs.tick();
                Ok(())
            }
            Self::Fsync(path) => fs.fsync(at(path)?, None, false),
            Self::Sync => fs.sync(),
        }
    }
}

fn rename(state: &mut FileState, from: &str, to: &str) -> Option<()> {
    let number = state.find(from)?;
    let target = state.find(to);
    let parent = state.find(split(to).0)?;
    let into_itself = to == from || to.starts_with(&format!("{from}/"));
    if into_itself || state.entries(parent).is_none() || target == Some(number) {
        return None;
    }
    if let Some(target) = target {
        match (state.entries(number), state.entries(target)) {
            (None, None) => {}
            (Some(_), Some(entries)) if entries.is_empty() => {}
            _ => return None,
        }
        if let Some(content) = state.content_mut(number) {
            content.published = content.last();
        }
    }
    state.take_name(from)?;
    state.set_name(to, number)
}

/// Every call of the enumeration, over two directories with files, and an empty one.
#[must_use]
pub fn all() -> Vec<Call> {
    let s = String::from;
    vec![
        Call::Create(s("A/n")),
        Call::Create(s("B/n")),
        Call::MakeDirectory(s("A/d")),
        Call::Link(s("B/s")),
        Call::HardLink(s("A/f"), s("B/l")),
        Call::HardLink(s("A/f"), s("A/l")),
        Call::Write(s("A/f"), 100, 300),
        Call::Append(s("A/f"), 700),
        Call::Append(s("A/n"), 1500),
        Call::Truncate(s("A/f"), 50),
        Call::Truncate(s("A/f"), 3000),
        Call::Punch(s("A/f"), 10, 600),
        Call::Zero(s("A/f"), 500, 900),
        Call::Rewrite(s("A/f"), 900),
        Call::Rename(s("A/f"), s("A/n")),
        Call::Rename(s("A/f"), s("A/g")),
        Call::Rename(s("A/f"), s("B/n")),
        Call::Rename(s("A/f"), s("B/h")),
        Call::Rename(s("A/n"), s("A/f")),
        Call::Rename(s("A"), s("C")),
        Call::Rename(s("B"), s("E")),
        Call::Exchange(s("A/f"), s("B/h")),
        Call::Unlink(s("A/f")),
        Call::Unlink(s("A/g")),
        Call::RemoveDirectory(s("E")),
        Call::Mode(s("A/f"), 0o600),
        Call::Xattr(s("A/f"), 90),
        Call::Unnamed(s("A/u"), 600),
        Call::Tick,
    ]
}

/// The same with those that need memory.
#[must_use]
pub fn all_with_memory() -> Vec<Call> {
    let s = String::from;
    let mut calls = all();
    calls.extend([
        Call::Publish(s("A/n"), 1500),
        Call::Publish(s("B/n"), 9000),
        Call::Withdraw(s("A/f")),
        Call::Withdraw(s("A/n")),
        Call::Fill(s("A/f"), SLOTS[0], 700),
        Call::Fill(s("A/f"), SLOTS[2], 9000),
        Call::Take(s("A/f"), SLOTS[0]),
        Call::Die,
    ]);
    calls
}

/// What may follow a call: nothing, fsync of a file or directory, sync.
#[must_use]
pub fn persistence() -> Vec<Option<Call>> {
    let fsync = |path: &str| Some(Call::Fsync(path.into()));
    vec![None, fsync("A/f"), fsync("A"), Some(Call::Sync)]
}

/// A call chosen for a state with files of any name.
#[must_use]
pub fn any(state: &FileState, prng: &mut onode_base::Prng, most: u64, aims_full: bool, has_memory: bool) -> Call {
    let paths: Vec<(String, bool)> =
        state.paths().into_iter().map(|(path, number)| (path, state.entries(number).is_some())).collect();
    let directories: Vec<&String> = paths.iter().filter(|(_, is)| *is).map(|(path, _)| path).collect();
    let files: Vec<&String> = paths.iter().filter(|(_, is)| !*is).map(|(path, _)| path).collect();
    let mut pick = |from: &[&String]| {
        from.get(prng.below(from.len() as u64) as usize).map_or_else(String::new, |path| (*path).clone())
    };
    let (file, other, directory) = (pick(&files), pick(&files), pick(&directories));
    let fresh = format!("{directory}/{}", ["n", "m", "o", "p", "q", "r"][prng.below(6) as usize]);
    let (offset, length) = (prng.below(2000) as usize, 1 + prng.below(most) as usize);
    let slot = SLOTS[offset % SLOTS.len()];
    let kinds = match (aims_full, has_memory) {
        (true, _) => 14,
        (false, false) => 26,
        (false, true) => 39,
    };
    match prng.below(kinds) {
        0..=2 => Call::Create(fresh),
        3..=6 => Call::Append(file, length),
        7 | 8 => Call::Write(file, offset, length),
        9 => Call::Rewrite(file, length),
        10 => Call::Unlink(file),
        11 => Call::Fsync(file),
        12 => Call::Rename(file, other),
        13 => Call::Sync,
        14 => Call::Rename(file, fresh),
        15 => Call::MakeDirectory(fresh),
        16 => Call::HardLink(file, fresh),
        17 => Call::Truncate(file, offset),
        18 => Call::Punch(file, offset / 2, length),
        19 => Call::Link(fresh),
        20 => Call::Exchange(file, other),
        21 => Call::RemoveDirectory(directory),
        22 => Call::Xattr(file, 1 + offset % 90),
        23 => Call::Unnamed(fresh, length),
        24 => Call::Fsync(directory),
        26..=28 => Call::Publish(fresh, length),
        29..=31 => Call::Withdraw(file),
        32 => Call::Die,
        33..=35 => Call::Fill(file, slot, length),
        36 => Call::Take(file, slot),
        _ => Call::Tick,
    }
}

/// Files to begin with.
///
/// # Errors
/// If they cannot be made.
pub fn begin(fs: &FileSystem, clock: &ManualClock) -> Result<FileState, Violation> {
    let s = String::from;
    let calls = [
        Call::MakeDirectory(s("A")),
        Call::MakeDirectory(s("B")),
        Call::MakeDirectory(s("E")),
        Call::Create(s("A/f")),
        Call::Append(s("A/f"), 700),
        Call::Create(s("A/g")),
        Call::Append(s("A/g"), 40),
        Call::Create(s("B/h")),
        Call::Append(s("B/h"), 1300),
    ];
    let mut state = FileState::default();
    for (seed, call) in calls.iter().enumerate() {
        call.make(fs, clock, seed as u64).map_err(unexpected("begin"))?;
        if let Some(after) = call.after(&state, seed as u64) {
            state = after;
        }
    }
    for number in state.files.keys().copied().collect::<Vec<_>>() {
        if let Some(content) = state.content_mut(number) {
            let newest = content.newest().to_vec();
            content.versions = vec![Arc::new(newest)];
        }
    }
    Ok(state)
}
