//! Random sequences of calls against a plain model of POSIX: maps of names and vectors of bytes.
//!
//! Set `ONODE_FS_SEED` to replay one seed; every failure names its own.

use crate::common;
use crate::common::*;
use onode_base::Prng;
use onode_fs::*;
use std::collections::{BTreeMap, BTreeSet};

const NAMES: u64 = 20;

#[derive(Clone, Debug, PartialEq)]
enum Content {
    Bytes(Vec<u8>),
    Names(BTreeMap<String, u64>),
}

#[derive(Clone, Debug)]
struct File {
    content: Content,
    links: u32,
    permissions: u16,
    parent: u64,
    xattrs: BTreeMap<String, Vec<u8>>,
}

/// What should be there. Files are named by inode numbers that the file system chose.
#[derive(Default)]
struct Model {
    files: BTreeMap<u64, File>,
    /// (handle, inode) of files held open.
    open: Vec<(FileHandle, u64)>,
}

impl Model {
    fn names(&mut self, directory: u64) -> &mut BTreeMap<String, u64> {
        match &mut self.files.get_mut(&directory).unwrap().content {
            Content::Names(names) => names,
            Content::Bytes(_) => panic!("no directory"),
        }
    }

    fn is_directory(&self, number: u64) -> bool {
        matches!(self.files[&number].content, Content::Names(_))
    }

    fn is_empty(&self, number: u64) -> bool {
        matches!(&self.files[&number].content, Content::Names(names) if names.is_empty())
    }

    fn find(&mut self, directory: u64, name: &str) -> Option<u64> {
        self.names(directory).get(name).copied()
    }

    fn is_below(&self, mut at: u64, above: u64) -> bool {
        while at != 1 {
            if at == above {
                return true;
            }
            at = self.files[&at].parent;
        }
        above == 1
    }

    fn drop_link(&mut self, number: u64) {
        let directory = self.is_directory(number);
        let file = self.files.get_mut(&number).unwrap();
        file.links = if directory { 0 } else { file.links - 1 };
        self.collect(number);
    }

    fn collect(&mut self, number: u64) {
        let held = self.open.iter().any(|(_, open)| *open == number);
        if self.files.get(&number).is_some_and(|file| file.links == 0) && !held {
            self.files.remove(&number);
        }
    }
}

struct Run {
    volume: Volume,
    fs: FileSystem,
    options: Options,
    model: Model,
    prng: Prng,
}

impl Run {
    fn new(seed: u64, options: Options) -> Self {
        let volume = Volume::of_size(256 << 20);
        let fs = volume.mount_with(options.clone());
        let mut model = Model::default();
        model.files.insert(1, directory(1));
        Self { volume, fs, options, model, prng: Prng::new(seed) }
    }

    fn some_directory(&mut self) -> u64 {
        let directories: Vec<u64> = self.model.files.iter().filter(|(_, f)| f.links > 0).map(|(n, _)| *n).collect();
        let directories: Vec<u64> = directories.into_iter().filter(|n| self.model.is_directory(*n)).take(4).collect();
        directories[self.prng.below(directories.len() as u64) as usize]
    }

    fn some_file(&mut self) -> Option<u64> {
        let files: Vec<u64> = self.model.files.keys().copied().filter(|n| !self.model.is_directory(*n)).collect();
        (!files.is_empty()).then(|| files[self.prng.below(files.len() as u64) as usize])
    }

    fn some_name(&mut self) -> String {
        format!("name {}", self.prng.below(NAMES))
    }

    fn some_bytes(&mut self, most: u64) -> Vec<u8> {
        let length = self.prng.below(most) + 1;
        let byte = self.prng.below(255) as u8 + 1;
        vec![byte; length as usize]
    }

    fn step(&mut self) {
        match self.prng.below(100) {
            0..12 => self.create(),
            12..16 => self.make_directory(),
            16..26 => self.unlink(),
            26..30 => self.remove_directory(),
            30..42 => self.rename(),
            42..48 => self.link(),
            48..66 => self.write(),
            66..72 => self.truncate(),
            72..75 => self.punch(),
            75..80 => self.open(),
            80..85 => self.close(),
            85..88 => self.chmod(),
            88..92 => self.xattr(),
            92..96 => self.time_passes(),
            96..98 => self.fsync(),
            _ => self.compare_one(),
        }
    }

    fn create(&mut self) {
        let (parent, name) = (self.some_directory(), self.some_name());
        let result = self.fs.create(&root(), InodeNumber(parent), name.as_bytes(), 0o644);
        if self.model.find(parent, &name).is_some() {
            assert_eq!(kind(result), ErrorKind::Exists);
            return;
        }
        let number = result.unwrap().inode;
        self.fs.forget(number, 1);
        assert!(self.model.files.insert(number.0, file()).is_none(), "a number was used twice");
        self.model.names(parent).insert(name, number.0);
    }

    fn make_directory(&mut self) {
        let (parent, name) = (self.some_directory(), self.some_name());
        let result = self.fs.make_directory(&root(), InodeNumber(parent), name.as_bytes(), 0o755);
        if self.model.find(parent, &name).is_some() {
            assert_eq!(kind(result), ErrorKind::Exists);
            return;
        }
        let number = result.unwrap().inode;
        self.fs.forget(number, 1);
        self.model.files.insert(number.0, directory(parent));
        self.model.names(parent).insert(name, number.0);
        self.model.files.get_mut(&parent).unwrap().links += 1;
    }

    fn unlink(&mut self) {
        let (parent, name) = (self.some_directory(), self.some_name());
        let result = self.fs.unlink(InodeNumber(parent), name.as_bytes());
        match self.model.find(parent, &name) {
            None => assert_eq!(kind(result), ErrorKind::NotFound),
            Some(number) if self.model.is_directory(number) => assert_eq!(kind(result), ErrorKind::IsDirectory),
            Some(number) => {
                result.unwrap();
                self.model.names(parent).remove(&name);
                self.model.drop_link(number);
            }
        }
    }

    fn remove_directory(&mut self) {
        let (parent, name) = (self.some_directory(), self.some_name());
        let result = self.fs.remove_directory(InodeNumber(parent), name.as_bytes());
        match self.model.find(parent, &name) {
            None => assert_eq!(kind(result), ErrorKind::NotFound),
            Some(number) if !self.model.is_directory(number) => assert_eq!(kind(result), ErrorKind::NotDirectory),
            Some(number) if !self.model.is_empty(number) => assert_eq!(kind(result), ErrorKind::NotEmpty),
            Some(number) => {
                result.unwrap();
                self.model.names(parent).remove(&name);
                self.model.files.get_mut(&parent).unwrap().links -= 1;
                self.model.drop_link(number);
            }
        }
    }

    fn rename(&mut self) {
        let (from, from_name, to, to_name) =
            (self.some_directory(), self.some_name(), self.some_directory(), self.some_name());
        let flags = [RenameFlags::Replace, RenameFlags::Replace, RenameFlags::NoReplace, RenameFlags::Exchange]
            [self.prng.below(4) as usize];
        let (fs, model) = (&self.fs, &mut self.model);
        let result = fs.rename(InodeNumber(from), from_name.as_bytes(), InodeNumber(to), to_name.as_bytes(), flags);
        let Some(source) = model.find(from, &from_name) else {
            assert_eq!(kind(result), ErrorKind::NotFound);
            return;
        };
        let target = model.find(to, &to_name);
        let source_is_directory = model.is_directory(source);
        match (flags, target) {
            (RenameFlags::NoReplace, Some(_)) => {
                assert_eq!(kind(result), ErrorKind::Exists);
                return;
            }
            (RenameFlags::Exchange, None) => {
                assert_eq!(kind(result), ErrorKind::NotFound);
                return;
            }
            (_, Some(target)) if target == source => return result.unwrap(),
            _ => {}
        }
        if source_is_directory && model.is_below(to, source) {
            assert_eq!(kind(result), ErrorKind::Invalid);
            return;
        }
        if flags == RenameFlags::Exchange {
            let target = target.unwrap();
            let target_is_directory = model.is_directory(target);
            if target_is_directory && model.is_below(from, target) {
                assert_eq!(kind(result), ErrorKind::Invalid);
                return;
            }
            result.unwrap();
            model.names(from).insert(from_name, target);
            model.names(to).insert(to_name, source);
            for (moved, is_directory, old, new) in
                [(source, source_is_directory, from, to), (target, target_is_directory, to, from)]
            {
                if is_directory {
                    model.files.get_mut(&moved).unwrap().parent = new;
                    model.files.get_mut(&old).unwrap().links -= 1;
                    model.files.get_mut(&new).unwrap().links += 1;
                }
            }
            return;
        }
        if let Some(target) = target {
            match (source_is_directory, model.is_directory(target)) {
                (true, false) => return assert_eq!(kind(result), ErrorKind::NotDirectory),
                (false, true) => return assert_eq!(kind(result), ErrorKind::IsDirectory),
                (true, true) if !model.is_empty(target) => return assert_eq!(kind(result), ErrorKind::NotEmpty),
                _ => {}
            }
        }
        result.unwrap();
        model.names(from).remove(&from_name);
        model.names(to).insert(to_name, source);
        if source_is_directory {
            model.files.get_mut(&source).unwrap().parent = to;
            model.files.get_mut(&from).unwrap().links -= 1;
            model.files.get_mut(&to).unwrap().links += 1;
        }
        if let Some(target) = target {
            if model.is_directory(target) {
                model.files.get_mut(&to).unwrap().links -= 1;
            }
            model.drop_link(target);
        }
    }

    fn link(&mut self) {
        let (parent, name) = (self.some_directory(), self.some_name());
        let Some(number) = self.some_file().filter(|n| self.model.files[n].links > 0) else { return };
        let result = self.fs.link(InodeNumber(number), InodeNumber(parent), name.as_bytes());
        if self.model.find(parent, &name).is_some() {
            assert_eq!(kind(result), ErrorKind::Exists);
            return;
        }
        result.unwrap();
        self.fs.forget(InodeNumber(number), 1);
        self.model.names(parent).insert(name, number);
        self.model.files.get_mut(&number).unwrap().links += 1;
    }

    fn bytes(&mut self, number: u64) -> &mut Vec<u8> {
        match &mut self.model.files.get_mut(&number).unwrap().content {
            Content::Bytes(bytes) => bytes,
            Content::Names(_) => panic!("no file"),
        }
    }

    fn write(&mut self) {
        let Some(number) = self.some_file() else { return };
        let (offset, data) = (self.prng.below(20_000), self.some_bytes(5000));
        assert_eq!(self.fs.write(&root(), InodeNumber(number), offset, &data).unwrap(), data.len());
        let bytes = self.bytes(number);
        let end = offset as usize + data.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(&data);
    }

    fn truncate(&mut self) {
        let Some(number) = self.some_file() else { return };
        let size = if self.prng.chance(1, 3) { 0 } else { self.prng.below(25_000) };
        truncate(&self.fs, InodeNumber(number), size);
        self.bytes(number).resize(size as usize, 0);
    }

    fn punch(&mut self) {
        let Some(number) = self.some_file() else { return };
        let (offset, length) = (self.prng.below(20_000), self.prng.below(9000) + 1);
        self.fs.allocate(&root(), InodeNumber(number), offset, length, Allocate::PunchHole).unwrap();
        let bytes = self.bytes(number);
        let end = bytes.len().min((offset + length) as usize);
        if let Some(hole) = bytes.get_mut(offset as usize..end) {
            hole.fill(0);
        }
    }

    fn open(&mut self) {
        let Some(number) = self.some_file().filter(|_| self.model.open.len() < 8) else { return };
        let truncate = self.prng.chance(1, 4);
        let flags = OpenFlags { write: true, truncate };
        let handle = self.fs.open(&root(), InodeNumber(number), flags).unwrap();
        self.model.open.push((handle, number));
        if truncate {
            self.bytes(number).clear();
        }
    }

    fn close(&mut self) {
        if self.model.open.is_empty() {
            return;
        }
        let which = self.prng.below(self.model.open.len() as u64) as usize;
        let (handle, number) = self.model.open.swap_remove(which);
        self.fs.flush(handle).unwrap();
        self.fs.release(handle).unwrap();
        self.model.collect(number);
    }

    fn chmod(&mut self) {
        let Some(number) = self.some_file() else { return };
        let permissions = self.prng.below(0o10000) as u16;
        let change = SetAttributes { permissions: Some(permissions), ..SetAttributes::default() };
        self.fs.set_attributes(&root(), InodeNumber(number), &change).unwrap();
        self.model.files.get_mut(&number).unwrap().permissions = permissions;
    }

    fn xattr(&mut self) {
        let Some(number) = self.some_file() else { return };
        let name = format!("user.{}", self.prng.below(5));
        if self.prng.chance(1, 3) {
            let result = self.fs.remove_xattr(InodeNumber(number), name.as_bytes());
            match self.model.files.get_mut(&number).unwrap().xattrs.remove(&name) {
                Some(_) => result.unwrap(),
                None => assert_eq!(kind(result), ErrorKind::NoAttribute),
            }
            return;
        }
        let most = if self.prng.chance(1, 4) { 3000 } else { 100 };
        let value = self.some_bytes(most);
        self.fs.set_xattr(&root(), InodeNumber(number), name.as_bytes(), &value, XattrFlags::Any).unwrap();
        self.model.files.get_mut(&number).unwrap().xattrs.insert(name, value);
    }

    fn time_passes(&mut self) {
        self.volume.clock.advance(self.prng.below(3 * SECOND));
        self.fs.tick();
    }

    fn fsync(&mut self) {
        let Some(number) = self.some_file() else { return };
        self.fs.fsync(InodeNumber(number), None, false).unwrap();
    }

    fn compare_one(&mut self) {
        if let Some(number) = self.some_file() {
            self.compare(number);
        }
        let directory = self.some_directory();
        self.compare(directory);
    }

    fn compare(&mut self, number: u64) {
        let expected = self.model.files[&number].clone();
        let found = self.fs.attributes(InodeNumber(number)).unwrap();
        assert_eq!((found.links, found.permissions), (expected.links, expected.permissions), "inode {number}");
        for (name, value) in &expected.xattrs {
            assert_eq!(&self.fs.get_xattr(InodeNumber(number), name.as_bytes()).unwrap(), value);
        }
        let listed = self.fs.list_xattrs(InodeNumber(number)).unwrap();
        let listed: BTreeSet<&[u8]> = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
        assert!(listed.into_iter().eq(expected.xattrs.keys().map(String::as_bytes)));
        match expected.content {
            Content::Bytes(bytes) => {
                assert_eq!(content(&self.fs, InodeNumber(number)), bytes, "inode {number}");
                let offset = self.prng.below(20_000);
                let mut part = vec![0xcc; self.prng.below(9000) as usize];
                let got = self.fs.read(InodeNumber(number), offset, &mut part).unwrap();
                let expected = bytes.get(offset as usize..).unwrap_or_default();
                assert_eq!(part[..got], expected[..expected.len().min(part.len())]);
            }
            Content::Names(names_expected) => {
                let mut listed = BTreeMap::new();
                self.fs
                    .read_directory(InodeNumber(number), 2, &mut |entry| {
                        let name = String::from_utf8(entry.name.clone()).unwrap();
                        assert!(listed.insert(name, entry.inode.0).is_none(), "a name came twice");
                        true
                    })
                    .unwrap();
                assert_eq!(listed, names_expected);
                assert_eq!(found.size, listed.len() as u64);
                assert_eq!(lookup(&self.fs, InodeNumber(number), "..").unwrap().inode.0, expected.parent);
            }
        }
    }

    fn compare_all(&mut self) {
        let numbers: Vec<u64> = self.model.files.keys().copied().collect();
        for number in numbers {
            self.compare(number);
        }
    }

    fn remount(&mut self) {
        while !self.model.open.is_empty() {
            self.close();
        }
        self.fs.unmount().unwrap();
        let report = check::check(self.volume.device.as_ref()).unwrap();
        assert_eq!(report.findings, []);
        self.fs = self.volume.mount_with(self.options.clone());
        self.compare_all();
        let values = self.model.files.values().flat_map(|file| file.xattrs.values()).filter(|v| v.len() > 590).count();
        let objects = onode_object::ObjectDevice::space(self.volume.device.as_ref()).objects;
        let expected = common::objects(self.model.files.len() as u64, values as u64);
        assert_eq!(objects, expected, "objects nobody knows");
    }
}

fn file() -> File {
    File { content: Content::Bytes(Vec::new()), links: 1, permissions: 0o644, parent: 0, xattrs: BTreeMap::new() }
}

fn directory(parent: u64) -> File {
    let content = Content::Names(BTreeMap::new());
    File { content, links: 2, permissions: 0o755, parent, xattrs: BTreeMap::new() }
}

fn run(default_seed: u64, steps: u64, options: &Options) {
    let seed = std::env::var("ONODE_FS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(default_seed);
    println!("seed {seed}");
    let mut run = Run::new(seed, options.clone());
    for step in 1..=steps {
        run.step();
        if step % 4000 == 0 {
            run.compare_all();
            run.remount();
        }
    }
}

#[test]
fn write_back_agrees_with_the_model() {
    for seed in 0..4 {
        run(seed, 40_000, &Options::default());
    }
}

#[test]
fn write_through_agrees_with_the_model() {
    run(100, 20_000, &Options { write_mode: WriteMode::WriteThrough, ..Options::default() });
}

#[test]
fn tiny_caches_agree_with_the_model() {
    let options = Options {
        write_cache_bytes: 8192,
        stream_bytes: 4096,
        cached_inodes: 3,
        name_cache_bytes: 300,
        ..Options::default()
    };
    run(200, 40_000, &options);
}
