//! One sequence: a volume with its snapshots and clones, each beside its model.

use super::Kind;
use super::hand::Hand;
use super::luck::Luck;
use super::model::{Model, TOP};
use super::tree::{self, Tree};
use crate::agent::HAS_KEY;
use crate::common::Folder;
use crate::full_volumes::folder_in_memory;
use onode::keys::{Encryption, KeyCost, NewKey};
use onode::{Clones, CreateOptions, MountOptions, Result, Snapshots, Spec, Volume};
use onode_base::Prng;
use onode_fs::{Caller, ErrorKind, FileSystem, InodeNumber};
use onode_object::Compression;
use std::sync::Arc;

/// Files of one moment.
pub struct Kept {
    pub name: String,
    pub model: Model,
}

/// Files that began as those of a snapshot, and are changed by themselves.
pub struct Cloned {
    pub name: String,
    pub tree: Tree,
}

/// Clones at a time.
const CLONES: u64 = 2;

pub struct Storm {
    pub spec: Spec,
    volume: Option<Volume>,
    pub luck: Luck,
    pub tree: Tree,
    pub snapshots: Vec<Kept>,
    pub clones: Vec<Cloned>,
    /// Clones at a time.
    pub clones_max: u64,
    compression: Compression,
    /// The key of the directory that all files are in.
    pub key: Option<u32>,
    /// To what size the volume is on its way.
    pub shrinks_to: Option<u64>,
    /// Bytes that the volume had in the beginning, if it can have others.
    pub first_bytes: Option<u64>,
    /// Bytes that were free then.
    pub first_free: u64,
    _folder: Folder,
}

impl Storm {
    pub fn new(kind: &Kind, seed: u64) -> Self {
        let folder = folder_in_memory(kind.name);
        let text = kind.spec.replace("DIR", &folder.path().display().to_string());
        let place = text.replace(",NEW", "");
        let new = Spec::parse(&text.replace("NEW", kind.settings)).unwrap();
        // So that a seed does the same again.
        let options = CreateOptions { uuid: Some([seed as u8; 16]), ..CreateOptions::default() };
        if kind.is_encrypted {
            let secret = crate::agent::secret();
            let key = NewKey { secret: &secret, label: "storm", cost: KeyCost::LEAST };
            let how = if kind.is_authenticated { Encryption::Authenticated(key) } else { Encryption::All(key) };
            Volume::create_encrypted(&new, &options, &how).unwrap();
        } else {
            Volume::create(&new, &options).unwrap();
        }
        let luck = Luck {
            draw: Prng::new(seed),
            what: format!("{}, ONODE_STORM_SEED={seed}", kind.name),
            longest: kind.longest,
            shrinks: kind.compression != Compression::Never,
            made: 0,
            refused: 0,
            limited: 0,
            is_kept: false,
            tells: std::env::var_os("ONODE_STORM_TELLS").is_some(),
        };
        let mut storm = Self {
            spec: Spec::parse(&place).unwrap(),
            volume: None,
            luck,
            tree: Tree::new(Model::new()),
            snapshots: Vec::new(),
            clones: Vec::new(),
            clones_max: super::setting("ONODE_STORM_CLONES").unwrap_or(CLONES),
            compression: kind.compression,
            key: None,
            shrinks_to: None,
            first_bytes: None,
            first_free: 0,
            _folder: folder,
        };
        storm.open();
        if kind.has_key {
            storm.give_key();
        }
        storm.first_bytes = storm.fs().extent().ok().map(|extent| extent.bytes);
        storm.first_free = storm.free();
        storm
    }

    /// A directory with a key, which all files are to be in.
    fn give_key(&mut self) {
        let made = self.fs().make_directory(&Caller::root(), InodeNumber::ROOT, tree::WITH_KEY, 0o755);
        let directory = made.expect("a directory").inode;
        let keys = self.volume().directory_keys().expect("it is encrypted");
        let secret = crate::agent::secret();
        let number = keys.create(&NewKey { secret: &secret, label: "storm", cost: KeyCost::LEAST }).expect("a key");
        keys.give(directory, number).expect("it is given");
        self.fs().sync().expect("sync");
        std::fs::write(self.spec.image_path().expect("an image").with_file_name(HAS_KEY), "").expect("a mark");
        self.tree.numbers = std::iter::once((TOP, directory)).collect();
        self.key = Some(number);
    }

    /// The key of the directory is locked, and unlocked again; or nothing is to be had of it.
    fn lock_and_unlock(&mut self, number: u32) {
        let keys = self.volume().directory_keys().expect("it is encrypted");
        let locked = self.must("lock", keys.lock(number));
        assert!(!locked.is_empty(), "{}: it was locked", self.luck.what);
        let top = self.tree.numbers[&TOP];
        let seen = self.fs().list(top).map_err(|error| error.kind).err();
        assert_eq!(seen, Some(ErrorKind::KeyNeeded), "{}: names of a locked directory", self.luck.what);
        assert_eq!(self.must("unlock", keys.unlock(None, &crate::agent::secret())), [number]);
    }

    pub fn open(&mut self) {
        let options =
            MountOptions { opens_are_counted: false, compression: self.compression, ..MountOptions::default() };
        let volume = Volume::open(&self.spec, options);
        self.volume = Some(volume.unwrap_or_else(|error| panic!("{}: open: {error}", self.luck.what)));
        self.shrinks_to = None;
    }

    /// Nobody has it open after that.
    pub fn drop_volume(&mut self) {
        self.volume = None;
    }

    pub fn volume(&self) -> &Volume {
        self.volume.as_ref().unwrap()
    }

    pub fn fs(&self) -> Arc<FileSystem> {
        Arc::clone(self.volume().files())
    }

    pub fn free(&self) -> u64 {
        let space = self.fs().statfs();
        space.blocks_free * u64::from(space.block_bytes)
    }

    pub fn states(&self) -> Option<(Arc<Snapshots>, Arc<Clones>)> {
        let (snapshots, clones) = (self.volume().snapshots()?, self.volume().clones()?);
        Some((Arc::clone(snapshots), Arc::clone(clones)))
    }

    /// What is done with an answer that is no refusal.
    pub fn must<T>(&self, what: &str, done: Result<T>) -> T {
        done.unwrap_or_else(|error| panic!("{}: {what}: {error}", self.luck.what))
    }

    pub fn clone_files(&self, name: &str) -> Arc<FileSystem> {
        let (_, clones) = self.states().expect("it has clones");
        let clone = clones.named(name).unwrap_or_else(|| panic!("{}: {name} is gone", self.luck.what));
        self.must(name, clones.files(clone.generation))
    }

    /// Who changes the volume, or one of its clones.
    fn hand(&mut self) -> Hand<'_> {
        let count = self.clones.len() as u64;
        let which = self.luck.draw.below(2 + count);
        let fs = match which.checked_sub(2) {
            Some(index) => self.clone_files(&self.clones[index as usize].name),
            None => self.fs(),
        };
        let tree = match which.checked_sub(2) {
            Some(index) => &mut self.clones[index as usize].tree,
            None => &mut self.tree,
        };
        Hand { fs, tree, luck: &mut self.luck, keeps_unnamed: true }
    }

    pub fn step(&mut self) {
        let is_cleaning = self.states().is_some_and(|(snapshots, _)| snapshots.is_cleaning());
        self.luck.is_kept = is_cleaning || !self.snapshots.is_empty() || !self.clones.is_empty();
        let which = self.luck.draw.below(1_000);
        self.luck.tell(&format!("{which}, {} bytes free", self.free()));
        match which {
            0..780 => self.hand().step(),
            780..850 => self.hand().sync_file(),
            850..880 => self.hand().close_file(),
            880..905 => self.volume().upkeep().tick(),
            905..915 => _ = self.volume().upkeep().work(16),
            915..925 => self.hand().sync_all(),
            925..933 => self.take_snapshot(),
            933..941 => self.delete_snapshot(),
            941..947 => self.make_clone(),
            947..952 => self.delete_clone(),
            952..968 => self.transaction(),
            968..974 => self.resize(),
            974..980 => self.set_limit(),
            980..984 => self.remove_limit(),
            984..988 => self.kill(),
            988..990 => self.open_again(),
            _ => match self.key {
                Some(number) if self.luck.one_in(2) => self.lock_and_unlock(number),
                _ => self.fs().forget_caches(),
            },
        }
        self.shrink_some();
        if self.tree.history.len() > super::HISTORY {
            Hand { fs: self.fs(), tree: &mut self.tree, luck: &mut self.luck, keeps_unnamed: true }.sync_all();
        }
    }

    pub fn sync_all(&mut self) {
        self.luck.must("sync", self.fs().sync());
        self.tree.synced();
        for index in 0..self.clones.len() {
            let fs = self.clone_files(&self.clones[index].name);
            self.luck.must("sync of a clone", fs.sync());
            self.clones[index].tree.synced();
        }
    }

    /// An orderly end and a new beginning.
    pub fn open_again(&mut self) {
        let volume = self.volume.take().unwrap();
        self.must("close", volume.close());
        drop(volume);
        self.open();
        self.look_up();
        self.tree.synced();
        self.clones.iter_mut().for_each(|one| one.tree.synced());
    }

    fn look_up(&mut self) {
        let fs = self.fs();
        self.tree.reopened(&fs, &self.luck.what);
        for index in 0..self.clones.len() {
            let fs = self.clone_files(&self.clones[index].name);
            self.clones[index].tree.reopened(&fs, &self.luck.what);
        }
    }

    /// The process dies. What was synced is there.
    fn kill(&mut self) {
        if self.tree.is_tight || self.clones.iter().any(|one| one.tree.is_tight) {
            return self.open_again();
        }
        let is_synced = self.luck.one_in(2);
        if is_synced {
            self.sync_all();
        }
        self.drop_volume();
        if self.luck.one_in(4) {
            self.check("killed");
        }
        self.open();
        let when = format!("{}, killed {}", self.luck.what, if is_synced { "after a sync" } else { "at once" });
        if is_synced {
            self.look_up();
            self.tree.has_let_go = true;
        } else {
            let fs = self.fs();
            self.tree.recover(&fs, &when);
            for index in 0..self.clones.len() {
                let fs = self.clone_files(&self.clones[index].name);
                let when = format!("{when}, {}", self.clones[index].name);
                self.clones[index].tree.recover(&fs, &when);
            }
        }
        self.verify("killed and opened again");
    }

    /// Files, snapshots and clones hold what they should.
    pub fn verify(&self, when: &str) {
        let when = format!("{}, {when}", self.luck.what);
        self.tree.verify(&self.fs(), &when);
        let Some((snapshots, _)) = self.states() else { return };
        for Kept { name, model } in &self.snapshots {
            let snapshot = snapshots.named(name).unwrap_or_else(|| panic!("{when}: {name} is gone"));
            let files = self.must(name, snapshots.files(snapshot.generation));
            tree::verify(model, &files, &format!("{when}, {name}"));
        }
        for Cloned { name, tree } in &self.clones {
            tree.verify(&self.clone_files(name), &format!("{when}, {name}"));
        }
    }
}
