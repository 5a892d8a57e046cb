//! Full memories: what was filled to the last block can be emptied, closed and opened again, in
//! whatever order, for ever.
//!
//! The transactions are those that `onode-fs` makes of files in one directory: an object with its
//! inode, its name among the attributes of the directory, and the inode of the directory, which
//! each of them states anew.

use crate::common::Scm;
use onode_base::{ErrorKind, Prng};
use onode_object::conformance::Harness;
use onode_object::powers::Inspect;
use onode_object::{
    AttributeKey, AttributeKind, Durability, Error, Hints, ObjectDevice, ObjectId, Result, SyncScope, Transaction,
};

const INODE: AttributeKey = AttributeKey::new(AttributeKind(1), 0);
const NAME: AttributeKind = AttributeKind(3);
const MIB: u64 = 1 << 20;

/// A device with one directory of files.
struct Volume {
    scm: Scm,
    directory: ObjectId,
    files: Vec<File>,
    draw: Prng,
    clock: u64,
}

#[derive(Clone, Copy)]
struct File {
    object: ObjectId,
    /// Where its name is among those of the directory: anywhere, as that is a hash.
    hash: u64,
    bytes: usize,
}

/// In which order files go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// As `readdir` tells their names.
    Listed,
    Made,
    Random,
}

impl Volume {
    fn new(chunk_bytes: u32, bytes: u64) -> Self {
        let scm = Scm::with_length(chunk_bytes, bytes);
        let directory = scm.device.reserve_ids(1).expect("ids");
        let mut making = Transaction::new();
        making.create(directory, Hints::default()).set_attribute(directory, INODE, vec![0; 70]);
        scm.device.commit(making, Durability::Buffered).expect("room");
        Self { scm, directory, files: Vec::new(), draw: Prng::new(bytes), clock: 0 }
    }

    /// An inode with the time.
    fn inode(&mut self) -> Vec<u8> {
        self.clock += 1;
        let mut inode = vec![7; 70];
        inode[..8].copy_from_slice(&self.clock.to_le_bytes());
        inode
    }

    fn commit(&self, transaction: Transaction) -> Result<()> {
        self.scm.device.commit(transaction, Durability::Buffered)
    }

    fn make(&mut self, bytes: usize) -> Result<()> {
        let object = self.scm.device.reserve_ids(1)?;
        let hash = self.draw.next_u64() >> 2;
        let mut making = Transaction::new();
        let (inode, directory) = (self.inode(), self.inode());
        making.create(object, Hints::default()).set_attribute(object, INODE, inode);
        making.set_attribute(self.directory, AttributeKey::new(NAME, hash), vec![5; 24]);
        making.set_attribute(self.directory, INODE, directory);
        self.commit(making)?;
        self.files.push(File { object, hash, bytes: 0 });
        let mut done = 0;
        while done < bytes {
            let piece = (bytes - done).min(128 << 10);
            let inode = self.inode();
            let mut writing = Transaction::new();
            writing.write(object, done as u64, content(object, done, piece)).set_attribute(object, INODE, inode);
            self.commit(writing)?;
            done += piece;
            self.files.last_mut().expect("it was made").bytes = done;
        }
        Ok(())
    }

    /// Makes files until there is no room for the next; how many bytes of content there are.
    fn fill(&mut self, sizes: &[usize]) -> u64 {
        loop {
            let bytes = sizes[self.draw.below(sizes.len() as u64) as usize];
            match self.make(bytes) {
                Ok(()) => {}
                Err(error) if error.kind == ErrorKind::NoSpace => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.files.iter().map(|file| file.bytes as u64).sum()
    }

    fn unlink(&mut self, file: &File) -> Result<()> {
        let mut removal = Transaction::new();
        let directory = self.inode();
        removal.remove_attribute(self.directory, AttributeKey::new(NAME, file.hash));
        removal.set_attribute(self.directory, INODE, directory).remove(file.object);
        self.commit(removal)
    }

    fn ordered(&mut self, order: Order) -> Vec<File> {
        let mut files = std::mem::take(&mut self.files);
        match order {
            Order::Made => {}
            Order::Listed => files.sort_by_key(|file| file.hash),
            Order::Random => {
                for at in (1..files.len()).rev() {
                    files.swap(at, self.draw.below(at as u64 + 1) as usize);
                }
            }
        }
        files
    }

    /// Removes all files.
    fn empty(&mut self, order: Order) -> std::result::Result<(), (usize, usize, Error)> {
        let files = self.ordered(order);
        for (number, file) in files.iter().enumerate() {
            self.unlink(file).map_err(|error| (number, files.len(), error))?;
        }
        Ok(())
    }

    fn check_content(&self) {
        for file in &self.files {
            let mut found = vec![0; file.bytes];
            assert_eq!(self.scm.device.read(file.object, 0, &mut found), Ok(file.bytes));
            assert!(found == content(file.object, 0, file.bytes), "{}", file.object);
        }
    }

    fn available(&self) -> u64 {
        self.scm.device.sync(SyncScope::All).expect("the memory works");
        self.scm.device.space().available
    }
}

fn content(object: ObjectId, from: usize, length: usize) -> Vec<u8> {
    (from..from + length).map(|at| (object.0 as usize * 31 + at / 7) as u8).collect()
}

/// Rounds of filling and emptying; the volume is closed and opened while it is full in every second
/// one.
fn rounds(chunk_bytes: u32, bytes: u64, sizes: &[usize], count: usize) {
    let mut volume = Volume::new(chunk_bytes, bytes);
    let before = volume.available();
    let mut first = 0;
    for round in 0..count {
        let filled = volume.fill(sizes);
        let what = format!("chunks of {chunk_bytes}, {bytes} bytes, files of {sizes:?}, round {round}");
        let (left, files) = (volume.available(), volume.files.len());
        if round == 0 {
            first = filled;
        }
        assert!(filled >= first / 100 * 98, "{what}: {filled} bytes fitted, {first} at first");
        assert!(left <= bytes / 20, "{what}: full, and {left} bytes are said to be available ({files} files)");
        if round % 2 == 1 {
            volume.scm.reopen();
        }
        volume.check_content();
        let order = [Order::Listed, Order::Random, Order::Made][round % 3];
        if let Err((done, all, error)) = volume.empty(order) {
            panic!("{what}: {order:?}, removal {done} of {all}: {error}; {:?}", volume.scm.device.counters());
        }
        volume.scm.device.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
        let after = volume.available();
        // Some nodes of the index stay in store.
        assert!(after + bytes / 200 + (32 << 10) >= before, "{what}: {after} bytes are available, {before} before");
        if round % 4 == 2 {
            volume.scm.reopen();
        }
    }
}

/// `rmtree` of a full volume ended in NoSpace after 1 to 15 % of the files, and the volume could
/// not be opened again: the log found no room for what removes, and no room to be cleaned into.
#[test]
fn a_memory_full_of_small_files_can_be_emptied_and_opened() {
    for size in [0, 100, 300, 1000, 1100, 4096] {
        rounds(4 << 10, MIB, &[size], 6);
    }
    rounds(16 << 10, 16 * MIB, &[1000], 1);
}

#[test]
fn a_memory_full_of_mixed_files_can_be_emptied_and_opened() {
    rounds(4 << 10, MIB, &[0, 100, 1000, 5000], 6);
    rounds(16 << 10, 4 * MIB, &[0, 300, 1000, 4096, 65_536], 4);
    rounds(64 << 10, 8 * MIB, &[100, 1000, 20_000], 2);
}

#[test]
fn a_memory_full_of_large_files_can_be_emptied_and_opened() {
    rounds(16 << 10, 4 * MIB, &[65_536], 4);
    rounds(16 << 10, 4 * MIB, &[1 << 30], 4);
}
