//! Random sequences on volumes that are nearly full, with snapshots, beside a model: what `write`
//! accepted is never refused later, whatever is removed, overwritten or kept meanwhile; files and
//! snapshots hold what the model says, also after an orderly end.
//!
//! Each sequence follows from its seed: `ONODE_STORM_SEED` runs one alone, `ONODE_STORM_SEEDS` so
//! many (16 of each kind if not given), `ONODE_STORM_STEPS` steps of each (1,500 if not given).

use crate::common::Folder;
use crate::full_volumes::folder_in_memory;
use onode::{Class, Compression, CreateOptions, MountOptions, Spec, Volume};
use onode_base::{ErrorKind, Prng};
use onode_fs::{Allocate, Caller, FileSystem, InodeNumber, SetAttributes};
use std::collections::BTreeMap;

const ROOT: InodeNumber = InodeNumber::ROOT;
const CALLER: Caller = Caller::root();
/// Snapshots at a time.
const SNAPSHOTS: usize = 3;

type Files = BTreeMap<String, Vec<u8>>;

struct Storm {
    what: String,
    spec: Spec,
    volume: Option<Volume>,
    draw: Prng,
    files: Files,
    numbers: BTreeMap<String, InodeNumber>,
    snapshots: Vec<(String, Files)>,
    /// Bytes of a write at most.
    longest: u64,
    compression: Compression,
    made: u64,
    refused: u64,
    _folder: Folder,
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// A kind of volume; `DIR` in `spec` stands for the folder, `settings` are for making it.
struct Kind {
    name: &'static str,
    spec: &'static str,
    settings: &'static str,
    /// Bytes of a write at most.
    longest: u64,
    compression: Compression,
}

/// Runs sequences on volumes of a kind.
fn storms(kind: &Kind) {
    let steps = setting("ONODE_STORM_STEPS").unwrap_or(1_500);
    let seeds = match setting("ONODE_STORM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + setting("ONODE_STORM_SEEDS").unwrap_or(16),
    };
    for seed in seeds {
        let mut storm = Storm::new(kind, seed);
        for step in 0..steps {
            storm.what = format!("{}, ONODE_STORM_SEED={seed}, step {step}", kind.name);
            storm.step();
        }
        storm.end();
        assert!(storm.refused > 0, "{}: it was never full", storm.what);
    }
}

impl Storm {
    fn new(kind: &Kind, seed: u64) -> Self {
        let folder = folder_in_memory(kind.name);
        let place = kind.spec.replace("DIR", &folder.path().display().to_string());
        let new = Spec::parse(&format!("{place},{}", kind.settings)).unwrap();
        Volume::create(&new, &CreateOptions::default()).unwrap();
        let mut storm = Self {
            what: kind.name.to_owned(),
            spec: Spec::parse(&place).unwrap(),
            volume: None,
            draw: Prng::new(seed),
            files: Files::new(),
            numbers: BTreeMap::new(),
            snapshots: Vec::new(),
            longest: kind.longest,
            compression: kind.compression,
            made: 0,
            refused: 0,
            _folder: folder,
        };
        storm.open();
        storm
    }

    fn open(&mut self) {
        let options =
            MountOptions { opens_are_counted: false, compression: self.compression, ..MountOptions::default() };
        let volume = Volume::open(&self.spec, options).unwrap_or_else(|error| panic!("{}: open: {error}", self.what));
        self.volume = Some(volume);
        let found = |name: &String| self.fs().lookup(ROOT, name.as_bytes()).map(|found| found.inode);
        let numbers = self.files.keys().map(|name| (name.clone(), found(name)));
        let unwrap = |(name, found): (String, Result<_, _>)| {
            let number = found.unwrap_or_else(|error: onode_fs::Error| panic!("{}: {name}: {error}", self.what));
            (name, number)
        };
        self.numbers = numbers.map(unwrap).collect();
    }

    fn volume(&self) -> &Volume {
        self.volume.as_ref().unwrap()
    }

    fn fs(&self) -> &FileSystem {
        self.volume().files()
    }

    /// What may be refused on a full volume, and nothing else may: whether it was done.
    fn admits(&mut self, what: &str, done: Result<(), onode_fs::Error>) -> bool {
        match done {
            Ok(()) => true,
            Err(error) if error.kind == ErrorKind::NoSpace => {
                self.refused += 1;
                false
            }
            Err(error) => panic!("{}: {what}: {error}", self.what),
        }
    }

    fn must<T>(&self, what: &str, done: Result<T, onode_fs::Error>) -> T {
        done.unwrap_or_else(|error| panic!("{}: {what}: {error}", self.what))
    }

    fn any(&mut self) -> Option<(String, InodeNumber)> {
        let count = self.files.len() as u64;
        let index = if count == 0 { return None } else { self.draw.below(count) as usize };
        let name = self.files.keys().nth(index)?.clone();
        let number = self.numbers[&name];
        Some((name, number))
    }

    fn step(&mut self) {
        match self.draw.below(100) {
            0..30 => self.make(),
            30..60 => self.overwrite(),
            60..75 => self.remove(),
            75..78 => self.cut(),
            78..80 => self.punch(),
            80..88 => {
                if let Some((name, number)) = self.any() {
                    self.must(&format!("fsync of {name}"), self.fs().fsync(number, None, false));
                }
            }
            88..92 => {
                if let Some((name, number)) = self.any() {
                    self.must(&format!("close of {name}"), self.fs().flush_file(number));
                }
            }
            92..97 => self.fs().tick(),
            97 => self.take(),
            98 => self.delete(),
            _ => self.must("sync", self.fs().sync()),
        }
    }

    fn length(&mut self) -> usize {
        let most = [100, 1_000, 5_000, 40_000, self.longest][self.draw.below(5) as usize];
        self.draw.below(most) as usize + 1
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.draw.fill(&mut bytes);
        if self.compression != Compression::Never {
            // A part that shrinks.
            bytes[length / 3..length / 3 * 2].fill(7);
        }
        bytes
    }

    fn make(&mut self) {
        let name = format!("f{}", self.made);
        self.made += 1;
        match self.fs().create(&CALLER, ROOT, name.as_bytes(), 0o644) {
            Ok(made) => {
                self.files.insert(name.clone(), Vec::new());
                self.numbers.insert(name.clone(), made.inode);
                let length = self.length();
                self.write(&name, made.inode, 0, length);
            }
            Err(error) => _ = self.admits("create", Err(error)),
        }
    }

    fn write(&mut self, name: &str, number: InodeNumber, offset: usize, length: usize) {
        let bytes = self.bytes(length);
        let mut done = 0;
        while done < length {
            match self.fs().write(&CALLER, number, (offset + done) as u64, &bytes[done..]) {
                Ok(written) => done += written,
                Err(error) => {
                    self.admits("write", Err(error));
                    break;
                }
            }
        }
        let content = self.files.get_mut(name).expect("a file");
        if done > 0 {
            content.resize(content.len().max(offset + done), 0);
            content[offset..offset + done].copy_from_slice(&bytes[..done]);
        }
    }

    fn overwrite(&mut self) {
        let Some((name, number)) = self.any() else { return };
        let offset = self.draw.below(self.files[&name].len() as u64 + 1) as usize;
        let length = self.length();
        self.write(&name, number, offset, length);
    }

    fn remove(&mut self) {
        let Some((name, number)) = self.any() else { return };
        let removed = self.fs().unlink(ROOT, name.as_bytes());
        if self.admits("unlink", removed) {
            self.fs().forget(number, 1);
            self.files.remove(&name);
            self.numbers.remove(&name);
        }
    }

    fn cut(&mut self) {
        let Some((name, number)) = self.any() else { return };
        let size = self.draw.below(self.files[&name].len() as u64 + 1);
        let change = SetAttributes { size: Some(size), ..SetAttributes::default() };
        let done = self.fs().set_attributes(&CALLER, number, &change).map(drop);
        if self.admits("truncate", done) {
            self.files.get_mut(&name).expect("a file").truncate(size as usize);
        }
    }

    fn punch(&mut self) {
        let Some((name, number)) = self.any() else { return };
        let size = self.files[&name].len() as u64;
        let (offset, length) = (self.draw.below(size + 1), self.draw.below(size + 1) + 1);
        let done = self.fs().allocate(&CALLER, number, offset, length, Allocate::PunchHole);
        if self.admits("punch", done) {
            let end = (offset + length).min(size) as usize;
            self.files.get_mut(&name).expect("a file")[offset as usize..end].fill(0);
        }
    }

    fn take(&mut self) {
        if self.snapshots.len() == SNAPSHOTS {
            return;
        }
        let name = format!("s{}", self.made);
        self.made += 1;
        match self.volume().snapshots().expect("it can have snapshots").take(&name) {
            Ok(_) => self.snapshots.push((name, self.files.clone())),
            Err(error) => assert_eq!(error.class, Class::VolumeFull, "{}: {error}", self.what),
        }
    }

    fn delete(&mut self) {
        if self.snapshots.is_empty() {
            return;
        }
        let index = self.draw.below(self.snapshots.len() as u64) as usize;
        let snapshots = self.volume().snapshots().expect("it can have snapshots");
        match snapshots.delete(&self.snapshots[index].0) {
            Ok(()) => _ = self.snapshots.remove(index),
            Err(error) => assert_eq!(error.class, Class::VolumeFull, "{}: {error}", self.what),
        }
    }

    /// Files and snapshots hold what they should, before and after an orderly end.
    fn end(&mut self) {
        self.verify("at the end");
        self.open_again();
        self.verify("opened again");
        self.volume().close().unwrap();
    }

    fn open_again(&mut self) {
        let volume = self.volume.take().unwrap();
        volume.close().unwrap_or_else(|error| panic!("{}: close: {error}", self.what));
        drop(volume);
        self.open();
    }

    fn verify(&self, when: &str) {
        self.must("sync", self.fs().sync());
        self.look_at(self.fs(), &self.files, &format!("{}, {when}", self.what));
        let snapshots = self.volume().snapshots().expect("it can have snapshots");
        for (name, files) in &self.snapshots {
            let snapshot = snapshots.named(name).unwrap_or_else(|| panic!("{}: {name} is gone", self.what));
            let shown = snapshots.files(snapshot.generation).unwrap();
            self.look_at(&shown, files, &format!("{}, {when}, {name}", self.what));
        }
    }

    fn look_at(&self, fs: &FileSystem, files: &Files, when: &str) {
        let names: Vec<String> =
            fs.list(ROOT).unwrap().into_iter().map(|one| String::from_utf8(one.name).unwrap()).collect();
        assert_eq!(names.len(), files.len(), "{when}: names");
        for (name, content) in files {
            let found = fs.lookup(ROOT, name.as_bytes()).unwrap_or_else(|error| panic!("{when}: {name}: {error}"));
            let mut bytes = vec![0; content.len() + 1];
            let count = fs.read(found.inode, 0, &mut bytes);
            let count = count.unwrap_or_else(|error| panic!("{when}: {name}: {error}"));
            let differs = bytes.iter().zip(content).position(|(found, wanted)| found != wanted);
            assert!(
                count == content.len() && differs.is_none(),
                "{when}: {name} has {count} of {} bytes, and another one at {differs:?}",
                content.len()
            );
        }
    }
}

/// A small chip.
const FLASH: Kind = Kind {
    name: "storm-flash",
    spec: "flash:DIR/disk.img",
    settings: "size=8M,page=2K,pages-per-block=16",
    longest: 300_000,
    compression: Compression::Never,
};

#[test]
fn flash() {
    storms(&FLASH);
}

#[test]
fn compressed_flash() {
    storms(&Kind { name: "storm-compressed", compression: Compression::Fast, ..FLASH });
}

#[test]
fn flash_beside_memory() {
    storms(&Kind { name: "storm-beside", spec: "flash+scm:DIR/disk.img,DIR/disk.index", ..FLASH });
}

#[test]
fn two_disks() {
    let settings = "size=24M,fast-size=8M";
    storms(&Kind { name: "storm-tier", spec: "tier:DIR/fast,DIR/big", settings, longest: 1_500_000, ..FLASH });
}

#[test]
fn a_pool() {
    storms(&Kind { name: "storm-pool", spec: "pool:flash:DIR/one.img+flash:DIR/two.img", ..FLASH });
}
