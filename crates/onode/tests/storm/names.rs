//! Steps that change names and extended attributes.

use super::hand::Hand;
use super::model::{Body, Id, Place, TOP};
use onode_fs::{Caller, RenameFlags, XattrFlags};
use std::sync::Arc;

/// Directories at a time.
const DIRECTORIES: usize = 12;

/// With so many free bytes after it there was room to list a file that is in use.
const ROOMY: u64 = 256 << 10;

impl Hand<'_> {
    /// More often the topmost than any other.
    pub fn any_directory(&mut self) -> Id {
        if self.luck.one_in(2) {
            return TOP;
        }
        let all = self.tree.model.directories();
        self.luck.any(&all).expect("the topmost at least")
    }

    fn any_place(&mut self, is_wanted: impl Fn(&Self, &Place) -> bool) -> Option<Place> {
        let all = self.tree.model.places();
        let all: Vec<Place> = all.into_iter().filter(|place| is_wanted(self, place)).collect();
        self.luck.any(&all)
    }

    /// A name that anything but a directory has.
    fn any_name(&mut self) -> Option<Place> {
        self.any_place(|hand, place| !hand.tree.model.is_directory(place.file))
    }

    /// A name is gone: with the last one so is the file, unless it stays in use.
    fn taken(&mut self, place: &Place) {
        if self.tree.model.take(place) {
            let space = self.fs.statfs();
            self.tree.is_tight |= space.blocks_free * u64::from(space.block_bytes) < ROOMY;
            let stays = self.keeps_unnamed && self.tree.model.is_file(place.file) && self.luck.one_in(5);
            if !stays {
                self.drop_file(place.file);
            }
        }
    }

    fn drop_file(&mut self, id: Id) {
        self.tree.has_let_go |= self.tree.model.is_file(id);
        self.luck.tell(&format!("{:?} is let go", self.tree.numbers.get(&id)));
        self.tree.forget(&self.fs, id);
        self.tree.model.let_go(id);
    }

    pub fn remove(&mut self) {
        let Some(place) = self.any_name() else { return };
        let removed = self.fs.unlink(self.number(place.directory), place.name.as_bytes());
        if self.luck.admits_less("unlink", removed).is_some() {
            self.taken(&place);
        }
    }

    pub fn rename(&mut self) {
        let Some(from) = self.any_place(|_, _| true) else { return };
        let to_directory = self.any_directory();
        let is_directory = self.tree.model.is_directory(from.file);
        if is_directory && self.tree.model.is_within(to_directory, from.file) {
            return;
        }
        let names: Vec<(String, Id)> = self.tree.model.names(to_directory).clone().into_iter().collect();
        let target = if self.luck.one_in(2) { self.luck.any(&names) } else { None };
        let (name, old) = match target {
            Some((name, old)) => (name, Some(old)),
            None => (self.luck.name('r'), None),
        };
        if let Some(old) = old {
            if self.luck.one_in(4) {
                return self.exchange(&from, &Place { directory: to_directory, name, file: old });
            }
            let is_empty = !self.tree.model.is_directory(old) || self.tree.model.names(old).is_empty();
            if old == from.file || is_directory != self.tree.model.is_directory(old) || !is_empty {
                return;
            }
        }
        let (at, to) = (self.number(from.directory), self.number(to_directory));
        let done = self.fs.rename(at, from.name.as_bytes(), to, name.as_bytes(), RenameFlags::Replace);
        if self.luck.admits_limited("rename", done, self.tree.model.has_limits()).is_none() {
            return;
        }
        if let Some(old) = old {
            self.taken(&Place { directory: to_directory, name: name.clone(), file: old });
        }
        self.tree.model.names_mut(from.directory).remove(&from.name);
        self.tree.model.names_mut(to_directory).insert(name, from.file);
        self.tree.note();
        if !is_directory {
            self.tree.publishes(from.file);
        }
    }

    fn exchange(&mut self, one: &Place, two: &Place) {
        let goes_into_itself = |from: &Place, to: &Place| {
            self.tree.model.is_directory(from.file) && self.tree.model.is_within(to.directory, from.file)
        };
        if one.file == two.file || goes_into_itself(one, two) || goes_into_itself(two, one) {
            return;
        }
        let (at, to) = (self.number(one.directory), self.number(two.directory));
        let done = self.fs.rename(at, one.name.as_bytes(), to, two.name.as_bytes(), RenameFlags::Exchange);
        if self.luck.admits_limited("exchange", done, self.tree.model.has_limits()).is_some() {
            self.tree.model.names_mut(one.directory).insert(one.name.clone(), two.file);
            self.tree.model.names_mut(two.directory).insert(two.name.clone(), one.file);
        }
    }

    pub fn link(&mut self) {
        let Some(place) = self.any_name() else { return };
        let (directory, name) = (self.any_directory(), self.luck.name('l'));
        let done = self.fs.link(self.number(place.file), self.number(directory), name.as_bytes());
        if let Some(made) = self.luck.admits_limited("link", done, self.tree.model.has_limits()) {
            self.tree.found(place.file, made.inode);
            self.tree.model.names_mut(directory).insert(name, place.file);
            self.tree.note();
            self.tree.publishes(place.file);
        }
    }

    pub fn make_directory(&mut self) {
        if self.tree.model.directories().len() >= DIRECTORIES {
            return self.remove_directory();
        }
        let (directory, name, caller) = (self.any_directory(), self.luck.name('d'), self.luck.caller());
        let made = self.fs.make_directory(&caller, self.number(directory), name.as_bytes(), 0o755);
        if let Some(made) = self.luck.admits_limited("mkdir", made, self.tree.model.has_limits()) {
            let id = self.tree.model.add(Body::Directory(Default::default()), 0o755, caller.uid);
            self.tree.model.names_mut(directory).insert(name, id);
            self.tree.found(id, made.inode);
        }
    }

    pub fn remove_directory(&mut self) {
        let is_empty = |hand: &Self, place: &Place| {
            hand.tree.model.is_directory(place.file) && hand.tree.model.names(place.file).is_empty()
        };
        let Some(place) = self.any_place(is_empty) else { return };
        let removed = self.fs.remove_directory(self.number(place.directory), place.name.as_bytes());
        if self.luck.admits_less("rmdir", removed).is_some() {
            self.taken(&place);
        }
    }

    pub fn make_symbolic_link(&mut self) {
        let (directory, name, caller) = (self.any_directory(), self.luck.name('s'), self.luck.caller());
        let most = if self.luck.one_in(4) { 4_000 } else { 60 };
        let length = 1 + self.luck.draw.below(most) as usize;
        let target = vec![b'a' + self.luck.draw.below(26) as u8; length];
        let made = self.fs.make_symbolic_link(&caller, self.number(directory), name.as_bytes(), &target);
        if let Some(made) = self.luck.admits_limited("symlink", made, self.tree.model.has_limits()) {
            let id = self.tree.model.add(Body::Link(Arc::new(target)), 0o777, caller.uid);
            self.tree.model.names_mut(directory).insert(name, id);
            self.tree.found(id, made.inode);
        }
    }

    /// A small one or one of 4 KiB, of anything with a name.
    pub fn set_xattr(&mut self) {
        let Some(place) = self.any_place(|_, _| true) else { return };
        let name = format!("user.{}", self.luck.draw.below(4));
        let length = if self.luck.one_in(3) { 4_096 } else { self.luck.draw.below(100) as usize };
        let value = self.luck.bytes(length);
        let flags = match self.tree.model.nodes[&place.file].xattrs.contains_key(&name) {
            true => XattrFlags::Replace,
            false => XattrFlags::Create,
        };
        let done = self.fs.set_xattr(&Caller::root(), self.number(place.file), name.as_bytes(), &value, flags);
        if self.luck.admits("setxattr", done).is_some() {
            self.tree.model.node(place.file).xattrs.insert(name, Arc::new(value));
        }
    }

    pub fn remove_xattr(&mut self) {
        let Some(place) = self.any_place(|hand, place| !hand.tree.model.nodes[&place.file].xattrs.is_empty()) else {
            return;
        };
        let names: Vec<String> = self.tree.model.nodes[&place.file].xattrs.keys().cloned().collect();
        let name = self.luck.any(&names).expect("an attribute");
        let done = self.fs.remove_xattr(self.number(place.file), name.as_bytes());
        if self.luck.admits("removexattr", done).is_some() {
            self.tree.model.node(place.file).xattrs.remove(&name);
        }
    }

    /// As `O_TMPFILE` does.
    pub fn make_unnamed(&mut self) {
        if !self.keeps_unnamed {
            return;
        }
        let (directory, caller) = (self.any_directory(), self.luck.caller());
        let made = self.fs.make_unnamed(&caller, self.number(directory), 0o600);
        if let Some(made) = self.luck.admits_limited("a file without a name", made, self.tree.model.has_limits()) {
            let id = self.tree.model.add(Body::File(Arc::default()), 0o600, caller.uid);
            self.tree.model.unnamed.insert(id, true);
            self.tree.found(id, made.inode);
            let length = self.luck.length();
            self.write(id, 0, length);
        }
    }

    pub fn name_unnamed(&mut self) {
        let unnamed: Vec<Id> =
            self.tree.model.unnamed.iter().filter(|(_, is_new)| **is_new).map(|(id, _)| *id).collect();
        let Some(id) = self.luck.any(&unnamed) else { return };
        let (directory, name) = (self.any_directory(), self.luck.name('u'));
        let done = self.fs.link(self.number(id), self.number(directory), name.as_bytes());
        if let Some(made) = self.luck.admits_limited("a first name", done, self.tree.model.has_limits()) {
            self.tree.found(id, made.inode);
            self.tree.model.unnamed.remove(&id);
            self.tree.model.names_mut(directory).insert(name, id);
            self.tree.note();
            self.tree.publishes(id);
        }
    }

    /// The last use of a file without a name ends.
    pub fn let_go(&mut self) {
        let unnamed: Vec<Id> = self.tree.model.unnamed.keys().copied().collect();
        if let Some(id) = self.luck.any(&unnamed) {
            self.drop_file(id);
        }
    }
}
