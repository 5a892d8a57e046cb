//! Steps that change the content of files, on a volume, in a clone or in a transaction.

use super::luck::Luck;
use super::model::{Body, Id};
use super::tree::Tree;
use onode_base::Timestamp;
use onode_fs::{Allocate, FileSystem, InodeNumber, SetAttributes, SetTime};
use std::sync::Arc;

/// Beyond the end of a file, at most so many bytes.
const HOLE: u64 = 60_000;

/// Who changes a tree.
pub struct Hand<'a> {
    pub fs: Arc<FileSystem>,
    pub tree: &'a mut Tree,
    pub luck: &'a mut Luck,
    /// Files can be used without a name.
    pub keeps_unnamed: bool,
}

impl Hand<'_> {
    /// One step of any kind.
    pub fn step(&mut self) {
        match self.luck.draw.below(108) {
            0..24 => self.make(),
            24..46 => self.overwrite(),
            46..48 => self.extend(),
            48..51 => self.cut(),
            51..53 => self.punch(),
            53..55 => self.zero(),
            55..57 => self.reserve(),
            57..59 => self.change_mode(),
            59..61 => self.change_time(),
            61..73 => self.remove(),
            73..80 => self.rename(),
            80..84 => self.link(),
            84..88 => self.make_directory(),
            88..90 => self.remove_directory(),
            90..92 => self.make_symbolic_link(),
            92..97 => self.set_xattr(),
            97..99 => self.remove_xattr(),
            99..101 => self.make_unnamed(),
            101..103 => self.name_unnamed(),
            _ => self.let_go(),
        }
        self.tree.note();
    }

    pub fn number(&self, id: Id) -> InodeNumber {
        self.tree.numbers[&id]
    }

    fn any_file(&mut self) -> Option<Id> {
        let files = self.tree.model.files();
        self.luck.any(&files)
    }

    fn size(&self, id: Id) -> u64 {
        self.tree.model.content(id).len() as u64
    }

    fn make(&mut self) {
        let directory = self.any_directory();
        let name = self.luck.name('f');
        let caller = self.luck.caller();
        let made = self.fs.create(&caller, self.number(directory), name.as_bytes(), 0o644);
        if let Some(made) = self.luck.admits_limited("create", made, self.tree.model.has_limits()) {
            let id = self.tree.model.add(Body::File(Arc::default()), 0o644, caller.uid);
            self.tree.model.names_mut(directory).insert(name, id);
            self.tree.found(id, made.inode);
            self.tree.note();
            let length = self.luck.length();
            self.write(id, 0, length);
        }
    }

    pub fn write(&mut self, id: Id, offset: usize, length: usize) {
        let bytes = self.luck.bytes(length);
        let (number, caller) = (self.number(id), self.luck.caller());
        let mut done = 0;
        while done < length {
            let written = self.fs.write(&caller, number, (offset + done) as u64, &bytes[done..]);
            match self.luck.admits_limited("write", written, self.tree.model.has_limits()) {
                Some(written) => done += written,
                None => break,
            }
        }
        if done > 0 {
            let content = self.tree.model.change(id);
            content.resize(content.len().max(offset + done), 0);
            content[offset..offset + done].copy_from_slice(&bytes[..done]);
        }
    }

    fn overwrite(&mut self) {
        let Some(id) = self.any_file() else { return };
        let beyond = if self.luck.one_in(8) { HOLE } else { 0 };
        let offset = self.luck.draw.below(self.size(id) + beyond + 1) as usize;
        let length = self.luck.length();
        self.write(id, offset, length);
    }

    /// A hole at the end.
    fn extend(&mut self) {
        let Some(id) = self.any_file() else { return };
        let size = self.size(id) + 1 + self.luck.draw.below(HOLE);
        let change = SetAttributes { size: Some(size), ..SetAttributes::default() };
        let caller = self.luck.caller();
        let done = self.fs.set_attributes(&caller, self.number(id), &change);
        if self.luck.admits_limited("extending truncate", done, self.tree.model.has_limits()).is_some() {
            self.tree.model.change(id).resize(size as usize, 0);
        }
    }

    fn cut(&mut self) {
        let Some(id) = self.any_file() else { return };
        let size = self.luck.draw.below(self.size(id) + 1);
        let change = SetAttributes { size: Some(size), ..SetAttributes::default() };
        let caller = self.luck.caller();
        let done = self.fs.set_attributes(&caller, self.number(id), &change);
        if self.luck.admits("truncate", done).is_some() {
            self.tree.model.change(id).truncate(size as usize);
        }
    }

    fn range(&mut self, id: Id) -> (u64, u64) {
        let size = self.size(id);
        (self.luck.draw.below(size + 1), self.luck.draw.below(size + 1) + 1)
    }

    fn punch(&mut self) {
        let Some(id) = self.any_file() else { return };
        let (offset, length) = self.range(id);
        let what = self.luck.any(&[Allocate::PunchHole, Allocate::ZeroRangeKeepSize]).expect("one of them");
        let caller = self.luck.caller();
        let done = self.fs.allocate(&caller, self.number(id), offset, length, what);
        if self.luck.admits("punch", done).is_some() {
            let end = (offset + length).min(self.size(id)) as usize;
            self.tree.model.change(id)[offset as usize..end].fill(0);
        }
    }

    /// Zeros, perhaps beyond the end.
    fn zero(&mut self) {
        let Some(id) = self.any_file() else { return };
        let (offset, length) = self.range(id);
        let caller = self.luck.caller();
        let done = self.fs.allocate(&caller, self.number(id), offset, length, Allocate::ZeroRange);
        if self.luck.admits_limited("zero range", done, self.tree.model.has_limits()).is_some() {
            let content = self.tree.model.change(id);
            let end = (offset + length) as usize;
            content.resize(content.len().max(end), 0);
            content[offset as usize..end].fill(0);
        }
    }

    /// Checks for space; nothing of the content changes but the size.
    fn reserve(&mut self) {
        let Some(id) = self.any_file() else { return };
        let (offset, length) = self.range(id);
        let what = self.luck.any(&[Allocate::Extend, Allocate::KeepSize]).expect("one of them");
        let caller = self.luck.caller();
        let done = self.fs.allocate(&caller, self.number(id), offset, length, what);
        let done = self.luck.admits_limited("fallocate", done, self.tree.model.has_limits());
        if done.is_some() && what == Allocate::Extend {
            let content = self.tree.model.change(id);
            content.resize(content.len().max((offset + length) as usize), 0);
        }
    }

    fn change_mode(&mut self) {
        let all: Vec<Id> = self.tree.model.nodes.keys().copied().collect();
        let Some(id) = self.luck.any(&all) else { return };
        if matches!(self.tree.model.nodes[&id].body, Body::Link(_)) {
            return;
        }
        let permissions = self.luck.draw.below(0o1000) as u16;
        let change = SetAttributes { permissions: Some(permissions), ..SetAttributes::default() };
        let done = self.fs.set_attributes(&onode_fs::Caller::root(), self.number(id), &change);
        if self.luck.admits("chmod", done).is_some() {
            self.tree.model.node(id).permissions = permissions;
        }
    }

    fn change_time(&mut self) {
        let Some(id) = self.any_file() else { return };
        let seconds = self.luck.draw.below(1 << 31) as i64;
        let modified = Some(SetTime::At(Timestamp { seconds, nanoseconds: 0 }));
        let change = SetAttributes { modified, ..SetAttributes::default() };
        let done = self.fs.set_attributes(&onode_fs::Caller::root(), self.number(id), &change);
        if self.luck.admits("utimensat", done).is_some() {
            self.tree.model.node(id).modified = Some(seconds);
        }
    }

    /// Never refused: what was accepted has its room.
    pub fn sync_file(&mut self) {
        let Some(id) = self.any_file() else { return };
        let data_only = self.luck.one_in(2);
        self.luck.must("fsync", self.fs.fsync(self.number(id), None, data_only));
        if self.tree.model.unnamed.contains_key(&id) {
            return;
        }
        self.tree.is_durable(Some(id));
    }

    pub fn close_file(&mut self) {
        let Some(id) = self.any_file() else { return };
        self.luck.must("close", self.fs.flush_file(self.number(id)));
    }

    pub fn sync_all(&mut self) {
        self.luck.must("sync", self.fs.sync());
        self.tree.synced();
    }
}
