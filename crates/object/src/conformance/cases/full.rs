//! Full volumes (N7): filled to the last byte with files as a file system makes them, read,
//! overwritten, opened again and emptied in every order, round after round. What was accepted is
//! there, what frees is never refused, and in the end there is as much room as at the start.

use crate::SyncScope;
use crate::conformance::subject::{Subject, key, pattern};
use crate::conformance::{Maker, suite};
use crate::durability::Durability;
use crate::error::ErrorKind;
use crate::hints::{Hints, ObjectKind};
use crate::id::{AttributeKey, AttributeKind, ObjectId};
use crate::transaction::Transaction;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::Prng;

suite! { "full":
    Nothing files_of_0_bytes,
    Nothing files_of_100_bytes,
    Nothing files_of_300_bytes,
    Nothing files_of_1000_bytes,
    Nothing files_of_4_kib,
    Nothing files_of_64_kib,
    Nothing files_of_any_size,
    Nothing one_big_file,
    Nothing small_files_are_overwritten_in_place,
    Nothing what_is_admitted_is_done,
    Crash a_full_volume_is_emptied_across_crashes,
}

/// Content of the devices for small files: some hundred of them, for every file costs a device on
/// flash its checkpoints.
const FEW_BYTES: u64 = 256 << 10;
/// Content of the devices for others.
const MORE_BYTES: u64 = 2 << 20;
/// An inode, and an entry of a directory.
const INODE_BYTES: usize = 72;
const ENTRY_BYTES: usize = 30;
/// About what a file takes besides its bytes.
const FILE_BYTES: usize = 200;
const INODE: AttributeKey = key(0);

/// In which order files go.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// As they were made.
    Made,
    /// As the directory lists them, from its start again after some have gone: what `rm -r` does.
    Listed,
    /// Anyhow.
    Drawn,
}

/// One file.
struct File {
    object: ObjectId,
    /// What it is called: names are spread over the directory as hashes are.
    entry: AttributeKey,
    /// From which its bytes follow.
    seed: u64,
    length: usize,
}

/// A directory of files on a device.
struct Files {
    it: Subject,
    directory: ObjectId,
    files: Vec<File>,
    draw: Prng,
    /// The device is asked before each change whether it would do it.
    asks: bool,
}

const fn entry_of(hash: u64) -> AttributeKey {
    AttributeKey::new(AttributeKind(AttributeKind::FIRST_FREE.0 + 1), hash)
}

impl Files {
    fn new(make: Maker<'_>, bytes: u64) -> Self {
        let it = Subject::with_bytes(make, bytes);
        let directory = it.id();
        it.commit_durably(|t| {
            t.create(directory, Hints { kind: ObjectKind::Directory, embed: true, ..Hints::default() });
            t.set_attribute(directory, INODE, vec![0; INODE_BYTES])
        });
        Self { it, directory, files: Vec::new(), draw: Prng::new(bytes), asks: false }
    }

    /// Commits; says whether there was room. Nothing else may go wrong.
    #[track_caller]
    fn fits(&self, durability: Durability, build: impl FnOnce(&mut Transaction)) -> bool {
        let mut transaction = Transaction::new();
        build(&mut transaction);
        let said = self.asks.then(|| self.it.device().check_commit(&transaction).map_err(|error| error.kind));
        let fits = match self.it.device().commit(transaction, durability) {
            Ok(()) => true,
            Err(error) if error.kind == ErrorKind::NoSpace => false,
            Err(error) => panic!("{error}"),
        };
        match said {
            Some(Ok(())) => assert!(fits, "it said that it would do this, and refused it"),
            // Asking twice may find room that asking once did not.
            Some(Err(kind)) => assert_eq!(kind, ErrorKind::NoSpace),
            None => {}
        }
        fits
    }

    /// Whether the device says before a change whether it would do it.
    fn knows(&self) -> bool {
        let (mut invalid, before) = (Transaction::new(), self.it.device().space().objects);
        invalid.create(self.directory, Hints::default());
        let said = self.it.device().check_commit(&invalid);
        assert_eq!(self.it.device().space().objects, before);
        match said {
            Ok(()) => false,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Exists);
                true
            }
        }
    }

    /// The name and the empty file at once, its bytes afterwards; says whether all had room.
    fn make(&mut self, length: usize) -> bool {
        let (object, seed) = (self.it.id(), self.draw.next_u64());
        let entry = entry_of(seed >> 1);
        let made = self.fits(Durability::Buffered, |t| {
            t.create(object, Hints { kind: ObjectKind::Data, embed: true, ..Hints::default() });
            t.set_attribute(object, INODE, vec![1; INODE_BYTES]);
            t.set_attribute(self.directory, entry, vec![2; ENTRY_BYTES]);
            t.set_attribute(self.directory, INODE, vec![3; INODE_BYTES]);
        });
        if !made {
            return false;
        }
        // One in some files is synced at once.
        let durability = if self.draw.chance(1, 50) { Durability::Durable } else { Durability::Buffered };
        let written = length == 0
            || self.fits(durability, |t| {
                t.write(object, 0, pattern(seed, length)).set_attribute(object, INODE, vec![4; INODE_BYTES]);
            });
        self.files.push(File { object, entry, seed, length: if written { length } else { 0 } });
        written
    }

    /// Makes files of these lengths, drawn, until there is no room; returns how many bytes they
    /// have, names included.
    fn fill(&mut self, lengths: &[usize]) -> usize {
        loop {
            let length = lengths[self.draw.below(lengths.len() as u64) as usize];
            if !self.make(length) {
                break;
            }
        }
        self.it.device().sync(SyncScope::All).expect("what was accepted is synced on a full device");
        self.files.iter().map(|file| file.length + FILE_BYTES).sum()
    }

    /// Every file has its bytes, and the directory its names.
    #[track_caller]
    fn verify(&self, when: &str) {
        for file in &self.files {
            let found = self.it.read(file.object, 0, file.length + 1);
            assert!(found == pattern(file.seed, file.length), "{when}: {} of {} bytes", file.object, file.length);
        }
        // The directory's inode is the one that is no name.
        let names = self.it.attributes(self.directory, 500).len() - 1;
        assert_eq!(names, self.files.len(), "{when}: names");
        assert_eq!(self.it.device().space().objects, self.files.len() as u64 + 1, "{when}: objects");
    }

    /// The name and the file go at once.
    #[track_caller]
    fn remove(&self, file: &File, durability: Durability) {
        let removed = self.fits(durability, |t| {
            t.remove_attribute(self.directory, file.entry).set_attribute(self.directory, INODE, vec![5; INODE_BYTES]);
            t.remove(file.object);
        });
        assert!(removed, "{}: a full volume does not let go, {} files are left", file.object, self.files.len());
    }

    /// Removes so many files.
    #[track_caller]
    fn remove_some(&mut self, order: Order, mut count: usize) {
        match order {
            Order::Made => {
                let gone: Vec<File> = self.files.drain(..count).collect();
                gone.iter().for_each(|file| self.remove(file, Durability::Buffered));
            }
            Order::Drawn => {
                for _ in 0..count {
                    let file = self.files.swap_remove(self.draw.below(self.files.len() as u64) as usize);
                    let is_synced = self.draw.chance(1, 20);
                    self.remove(&file, if is_synced { Durability::Durable } else { Durability::Buffered });
                }
            }
            Order::Listed => {
                self.files.sort_by_key(|file| file.entry);
                while count > 0 {
                    let listed = self.it.device().attributes(self.directory, entry_of(0), count.min(100)).unwrap();
                    assert!(listed.iter().map(|(key, _)| *key).eq(self.files[..listed.len()].iter().map(|f| f.entry)));
                    self.remove_some(Order::Made, listed.len());
                    count -= listed.len();
                }
            }
        }
    }

    /// Fills and empties the device once in each of these orders.
    fn rounds(&mut self, lengths: &[usize], orders: &[Order]) {
        let before = self.it.device().space();
        // Space that is given out by sizes may lie in pieces of a size that nobody has at the
        // start.
        let mut wanted = (before.available - before.total / 16, 0);
        for &order in orders {
            let bytes = self.fill(lengths);
            // The one that no longer fitted may be a large one.
            let largest = lengths.iter().max().copied().unwrap_or(0);
            let most = bytes + bytes / 16 + largest;
            assert!(most >= wanted.1, "{bytes} bytes fitted before {order:?}, {} before", wanted.1);
            self.verify("full");
            self.it.harness.reopen();
            self.verify("full and opened again");
            let made = self.files.len();
            self.remove_some(order, made / 2);
            self.verify("half empty");
            self.it.harness.reopen();
            self.verify("half empty and opened again");
            self.remove_some(order, made - made / 2);
            self.verify("empty");
            let after = self.it.device().space();
            assert!(after.available >= wanted.0, "{order:?}: {} wanted: {before:?} {after:?}", wanted.0);
            // And nothing is lost from round to round.
            wanted = (wanted.0.max(after.available - before.total / 100), bytes);
        }
    }
}

fn rounds(make: Maker<'_>, bytes: u64, lengths: &[usize], orders: &[Order]) {
    Files::new(make, bytes).rounds(lengths, orders);
}

fn files_of_0_bytes(make: Maker<'_>) {
    rounds(make, FEW_BYTES, &[0], &[Order::Listed]);
}

fn files_of_100_bytes(make: Maker<'_>) {
    rounds(make, FEW_BYTES, &[100], &[Order::Drawn]);
}

fn files_of_300_bytes(make: Maker<'_>) {
    rounds(make, FEW_BYTES, &[300], &[Order::Made]);
}

fn files_of_1000_bytes(make: Maker<'_>) {
    rounds(make, FEW_BYTES, &[1000], &[Order::Listed]);
}

fn files_of_4_kib(make: Maker<'_>) {
    rounds(make, MORE_BYTES, &[4 << 10], &[Order::Drawn]);
}

fn files_of_64_kib(make: Maker<'_>) {
    rounds(make, MORE_BYTES, &[64 << 10], &[Order::Made, Order::Listed]);
}

fn files_of_any_size(make: Maker<'_>) {
    let orders = [Order::Listed, Order::Made, Order::Drawn];
    rounds(make, MORE_BYTES / 2, &[0, 100, 300, 1000, 4 << 10, 10_000, 64 << 10], &orders);
}

/// Grown until nothing fits, cut here and there, opened again, removed.
fn one_big_file(make: Maker<'_>) {
    let mut files = Files::new(make, MORE_BYTES);
    let before = files.it.device().space();
    for round in 0..3 {
        let object = files.it.object();
        let mut pieces = Vec::new();
        let mut size = 0;
        for length in [64 << 10, 4 << 10, 100] {
            while files.fits(Durability::Buffered, |t| _ = t.write(object, size, pattern(size, length))) {
                pieces.push((size, length));
                size += length as u64;
            }
        }
        files.it.device().sync(SyncScope::All).expect("what was accepted is synced on a full device");
        files.it.harness.reopen();
        for (offset, length) in &pieces {
            assert!(
                files.it.read(object, *offset, *length) == pattern(*offset, *length),
                "the bytes at {offset} differ"
            );
        }
        files.it.commit(|t| t.punch(object, size / 3, size / 10).truncate(object, size / 3 * 2));
        assert_eq!(files.it.read(object, size / 3 + 5, 9), [0; 9]);
        files.it.commit(|t| t.remove(object));
        let after = files.it.device().space();
        assert!(after.available + before.total / 64 >= before.available, "round {round}: {before:?} {after:?}");
    }
}

/// As many bytes over those that are there, as small as the contract names them, at 100 %.
fn small_files_are_overwritten_in_place(make: Maker<'_>) {
    for length in [100, 256] {
        let mut files = Files::new(make, FEW_BYTES);
        files.fill(&[length]);
        let count = files.files.len();
        for turn in 0..300 {
            let index = turn * 7 % count;
            if files.files[index].length == 0 {
                continue;
            }
            let (object, seed) = (files.files[index].object, files.draw.next_u64());
            let durability = if turn % 3 == 0 { Durability::Durable } else { Durability::Buffered };
            let fitted = files.fits(durability, |t| _ = t.write(object, 0, pattern(seed, length)));
            assert!(fitted, "overwrite {turn} of {length} bytes found no room");
            files.files[index].seed = seed;
        }
        files.it.harness.reopen();
        files.verify(&format!("{length} bytes overwritten"));
        files.remove_some(Order::Listed, count);
        files.verify("empty");
    }
}

/// A device that says before a change whether it would do it is right, whatever is left, and what
/// it was asked about leaves nothing behind.
fn what_is_admitted_is_done(make: Maker<'_>) {
    for (bytes, lengths) in [(FEW_BYTES, &[100, 300, 1000][..]), (MORE_BYTES, &[0, 1000, 4 << 10, 10_000, 64 << 10])] {
        let mut files = Files::new(make, bytes);
        files.asks = files.knows();
        let mut lost = Transaction::new();
        lost.write(files.directory, 0, pattern(1, 5000)).set_attribute(files.directory, entry_of(7), vec![6; 90]);
        files.it.device().check_commit(&lost).expect("there is room");
        assert_eq!(files.it.device().stat(files.directory).unwrap().size, 0);
        files.rounds(lengths, &[Order::Listed, Order::Drawn]);
    }
}

/// What was removed for good stays away, what is left can be read, and the rest still goes.
fn a_full_volume_is_emptied_across_crashes(make: Maker<'_>) {
    for (bytes, lengths) in [(FEW_BYTES, &[300][..]), (MORE_BYTES, &[100, 1000, 4 << 10, 10_000])] {
        let mut files = Files::new(make, bytes);
        let bytes = files.fill(lengths);
        let part = files.files.len() / 4;
        for order in [Order::Listed, Order::Drawn, Order::Listed] {
            files.it.harness.crash();
            files.verify("full, after a crash");
            files.remove_some(order, part);
            files.it.device().sync(SyncScope::All).unwrap();
        }
        files.it.harness.crash();
        files.verify("nearly empty, after a crash");
        files.remove_some(Order::Made, files.files.len());
        files.verify("empty");
        let again = files.fill(lengths);
        assert!(again + bytes / 8 >= bytes, "{again} bytes fitted, {bytes} at first");
    }
}
