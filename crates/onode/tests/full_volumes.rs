//! Volumes of every kind of device filled to the last byte with files of one size or of all, in the
//! write mode of a mount: every accepted byte is there after an orderly close and a new mount,
//! every sync succeeds, everything can be removed in every order, and in the end there is as much
//! room as at the start (N7).
//!
//! `ONODE_FULL_ROUNDS` sets the rounds of each (1 if not given, so that the whole takes seconds;
//! the soak takes 50), `ONODE_FULL_SIZE` the bytes of the volumes.

use crate::common::Folder;
use onode::{CreateOptions, MountOptions, Spec, Volume};
use onode_base::{ErrorKind, Prng};
use onode_fs::{Caller, FileSystem, InodeNumber, StatFs};
use std::collections::HashMap;
use std::path::Path;

const ROOT: InodeNumber = InodeNumber::ROOT;
const CALLER: Caller = Caller::root();
/// What the kernel passes on at once.
const PIECE_BYTES: usize = 128 << 10;
/// After so many bytes the content of files repeats: a prime, so that no block is like another one
/// nearby.
const PERIOD: usize = 131_101;

/// A kind of device: its name, the spec with `DIR` for the folder, and the least bytes of its
/// volumes.
struct Device {
    name: &'static str,
    spec: &'static str,
    bytes: u64,
}

const FLASH: Device = Device { name: "flash", spec: "flash:DIR/disk.img", bytes: 2 << 20 };
const BESIDE: Device = Device { name: "flash+scm", spec: "flash+scm:DIR/disk.img,DIR/disk.index", bytes: 2 << 20 };
const BUFFERED: Device =
    Device { name: "flash+scm-buffer", spec: "flash+scm:DIR/disk.img,DIR/disk.index,buffer=on", bytes: 2 << 20 };
const SCM: Device = Device { name: "scm", spec: "scm:DIR/heap", bytes: 4 << 20 };
/// A memory of few chunks: blocks of one size are no room for another there.
const CHUNKS: Device = Device { name: "scm-chunks", spec: "scm:DIR/heap", bytes: 1 << 20 };
const TIER: Device = Device { name: "tier", spec: "tier:DIR/fast,DIR/big", bytes: 16 << 20 };

/// In which order files are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Made,
    Listed,
    Drawn,
}

/// A folder in memory if there is one.
pub fn folder_in_memory(name: &str) -> Folder {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { Folder::within(memory, name) } else { Folder::new(name) }
}

/// A file that was made: what it holds follows from its seed.
struct Made {
    name: String,
    number: InodeNumber,
    seed: usize,
    accepted: usize,
}

/// A volume in use as the kernel uses it: it knows every file it has seen and forgets it after its
/// end.
struct Use {
    volume: Option<Volume>,
    spec: Spec,
    what: String,
    draw: Prng,
    bytes: Vec<u8>,
    calls: u64,
    _folder: Folder,
}

impl Use {
    fn new(device: &Device, shape: &str) -> Self {
        let what = format!("{}, {shape}", device.name);
        let folder = folder_in_memory(&format!("full-{}", what.replace([' ', ',', '+'], "")));
        let bytes = std::env::var("ONODE_FULL_SIZE").map_or(device.bytes, |size| size.parse().unwrap());
        let place = device.spec.replace("DIR", &folder.path().display().to_string());
        let shape = match device.name {
            "tier" => format!(",fast-size={}", (bytes / 2).max(8 << 20)),
            "scm" => String::new(),
            "scm-chunks" => ",chunk=16K".into(),
            // Many small erase blocks, as a large chip has.
            _ => ",page=2K,pages-per-block=16".into(),
        };
        let new = Spec::parse(&format!("{place},size={bytes}{shape}")).unwrap();
        Volume::create(&new, &CreateOptions::default()).unwrap();
        let mut draw = Prng::new(bytes);
        let mut bytes = vec![0; PERIOD];
        draw.fill(&mut bytes);
        bytes.extend_from_within(..);
        let spec = Spec::parse(&place).unwrap();
        let mut it = Self { volume: None, spec, what, draw, bytes, calls: 0, _folder: folder };
        it.open();
        it
    }

    fn open(&mut self) {
        let options = MountOptions { opens_are_counted: false, ..MountOptions::default() };
        let volume = Volume::open(&self.spec, options);
        self.volume = Some(volume.unwrap_or_else(|error| panic!("{}: it cannot be opened: {error:?}", self.what)));
    }

    /// An orderly end and a new beginning.
    fn reopen(&mut self, made: &mut [Made]) {
        let volume = self.volume.take().unwrap();
        volume.close().unwrap_or_else(|error| panic!("{}: closing it failed: {error:?}", self.what));
        drop(volume);
        self.open();
        for one in made {
            let found = self.files().lookup(ROOT, one.name.as_bytes());
            one.number = found.unwrap_or_else(|error| panic!("{}: {} is gone: {error}", self.what, one.name)).inode;
        }
    }

    fn files(&self) -> &FileSystem {
        self.volume.as_ref().unwrap().files()
    }

    /// The owner looks after it now and then.
    fn pass(&mut self) {
        self.calls += 1;
        if self.calls.is_multiple_of(500) {
            self.files().tick();
        }
    }

    fn free(&self) -> u64 {
        self.files().sync().unwrap_or_else(|error| panic!("{}: sync: {error}", self.what));
        let StatFs { blocks_free, block_bytes, .. } = self.files().statfs();
        blocks_free * u64::from(block_bytes)
    }

    /// Makes a file; what was accepted of it is in `made`. Says whether all of it was.
    fn make(&mut self, length: usize, made: &mut Vec<Made>) -> bool {
        self.pass();
        let name = format!("f{}", made.len());
        let number = match self.files().create(&CALLER, ROOT, name.as_bytes(), 0o644) {
            Ok(attributes) => attributes.inode,
            Err(error) if error.kind == ErrorKind::NoSpace => return false,
            Err(error) => panic!("{}: create: {error}", self.what),
        };
        let seed = self.draw.below(PERIOD as u64) as usize;
        let mut accepted = 0;
        while accepted < length {
            let piece = self.content(seed, accepted, (length - accepted).min(PIECE_BYTES));
            match self.files().write(&CALLER, number, accepted as u64, piece) {
                Ok(written) => accepted += written,
                Err(error) if error.kind == ErrorKind::NoSpace => break,
                Err(error) => panic!("{}: write: {error}", self.what),
            }
        }
        let closed = self.files().flush_file(number);
        closed
            .unwrap_or_else(|error| panic!("{}: close of {name}, of which {accepted} were taken: {error}", self.what));
        made.push(Made { name, number, seed, accepted });
        if self.draw.chance(1, 200) {
            self.sync_one(made.last().unwrap());
        }
        accepted == length
    }

    fn sync_one(&self, made: &Made) {
        let synced = self.files().fsync(made.number, None, false);
        let Made { name, accepted, .. } = made;
        synced.unwrap_or_else(|error| panic!("{}: fsync of {name}, {accepted} bytes: {error}", self.what));
    }

    fn fill(&mut self, lengths: &[usize]) -> Vec<Made> {
        let mut made = Vec::new();
        loop {
            let length = lengths[self.draw.below(lengths.len() as u64) as usize];
            if !self.make(length, &mut made) {
                break;
            }
        }
        // Some syncs at full: what was accepted must not be refused now.
        for index in 0..20.min(made.len()) {
            self.sync_one(&made[index * 37 % made.len()]);
        }
        made
    }

    /// What a file should hold there.
    fn content(&self, seed: usize, offset: usize, length: usize) -> &[u8] {
        let start = (seed + offset) % PERIOD;
        &self.bytes[start..start + length]
    }

    /// Whether a file holds what was accepted of it and nothing else; the reason if not.
    fn look_at(&self, made: &Made, buffer: &mut [u8]) -> Result<(), String> {
        let mut offset = 0;
        while offset < made.accepted {
            let length = (made.accepted - offset).min(PIECE_BYTES);
            let count = self.files().read(made.number, offset as u64, &mut buffer[..length]);
            let count = count.map_err(|error| error.to_string())?;
            if buffer[..count] != *self.content(made.seed, offset, length) {
                return Err(format!("{count} bytes at {offset} are not those that were written"));
            }
            offset += length;
        }
        match self.files().attributes(made.number).map(|attributes| attributes.size) {
            Ok(size) if size == made.accepted as u64 => Ok(()),
            other => Err(format!("its size is {other:?}")),
        }
    }

    fn verify(&self, made: &[Made], when: &str) {
        let mut buffer = vec![0; PIECE_BYTES];
        let wrong: Vec<String> = made
            .iter()
            .filter_map(|one| {
                let why = self.look_at(one, &mut buffer).err()?;
                Some(format!("{} of {} bytes: {why}", one.name, one.accepted))
            })
            .collect();
        let (many, some) = (wrong.len(), wrong.iter().take(3).collect::<Vec<_>>());
        assert!(wrong.is_empty(), "{}, {when}: {many} of {} files are wrong: {some:?}", self.what, made.len());
        let names = self.files().list(ROOT).unwrap().len();
        assert_eq!(names, made.len(), "{}, {when}: names", self.what);
    }

    /// Writes another content over that of a file, in pieces.
    fn overwrite(&mut self, made: &mut Made, piece_bytes: usize) {
        self.pass();
        made.seed = self.draw.below(PERIOD as u64) as usize;
        let mut offset = 0;
        while offset < made.accepted {
            let piece = self.content(made.seed, offset, (made.accepted - offset).min(piece_bytes));
            let written = self.files().write(&CALLER, made.number, offset as u64, piece);
            offset += written.unwrap_or_else(|error| panic!("{}: {} at {offset}: {error}", self.what, made.name));
        }
        self.sync_one(made);
    }

    fn unlink(&mut self, made: &Made, left: usize) {
        self.pass();
        let gone = self.files().unlink(ROOT, made.name.as_bytes());
        gone.unwrap_or_else(|error| panic!("{}: unlink with {left} files left: {error}", self.what));
        self.files().forget(made.number, 1);
    }

    fn remove(&mut self, mut made: Vec<Made>, order: Order) {
        if order == Order::Listed {
            let names = self.files().list(ROOT).unwrap().into_iter().enumerate();
            let places: HashMap<Vec<u8>, usize> = names.map(|(place, entry)| (entry.name, place)).collect();
            made.sort_by_key(|one| places.get(one.name.as_bytes()).copied());
        }
        made.reverse();
        while !made.is_empty() {
            let last = made.len() - 1;
            let index = if order == Order::Drawn { self.draw.below(made.len() as u64) as usize } else { last };
            let one = made.swap_remove(index);
            self.unlink(&one, last);
        }
    }
}

/// Fills and empties a volume of this device with files of these lengths.
fn rounds(device: &Device, shape: &str, lengths: &[usize]) {
    let rounds: usize = std::env::var("ONODE_FULL_ROUNDS").map_or(1, |count| count.parse().unwrap());
    let mut it = Use::new(device, shape);
    it.reopen(&mut []);
    let start = it.free();
    let slack = start / 50;
    // Shapes begin with different orders.
    let turn = shape.len();
    for round in 0..rounds {
        let order = [Order::Listed, Order::Drawn, Order::Made][(turn + round) % 3];
        let mut made = it.fill(lengths);
        let when = format!("round {round}, {} files, {order:?}", made.len());
        it.verify(&made, &format!("{when}, full"));
        let left = it.free();
        // What `df` shows as free when files find no room any more: of the smallest the names need
        // more than the bytes.
        let most = if lengths[0] >= 1000 { start / 10 } else { start / 4 };
        assert!(left <= most, "{}, {when}: {left} of {start} bytes are said to be free when it is full", it.what);
        it.reopen(&mut made);
        it.verify(&made, &format!("{when}, full and opened again"));
        let rest = made.split_off(made.len() / 2);
        it.remove(made, order);
        it.verify(&rest, &format!("{when}, half empty"));
        it.remove(rest, order);
        it.reopen(&mut []);
        it.verify(&[], &format!("{when}, empty"));
        let end = it.free();
        assert!(
            end + slack >= start,
            "{}, {when}: {end} bytes are free at the end, {start} were at the start",
            it.what
        );
    }
}

/// A memory that is full takes other content in the place of what is there, in pieces of every
/// size.
#[test]
fn what_fills_a_memory_can_be_overwritten() {
    for (shape, length) in [("small overwritten", 1000), ("overwritten", 64 << 10), ("one overwritten", 1 << 30)] {
        let mut it = Use::new(&SCM, shape);
        let mut made = it.fill(&[length]);
        for piece_bytes in [PIECE_BYTES, 4096, 5000] {
            for one in &mut made {
                it.overwrite(one, piece_bytes);
            }
            it.verify(&made, &format!("overwritten in pieces of {piece_bytes}"));
        }
        it.reopen(&mut made);
        it.verify(&made, "overwritten and opened again");
    }
}

/// Tests of one device: each of them with files of some lengths.
macro_rules! devices {
    ($($module:ident: $device:ident;)+) => {
        $(mod $module {
            use super::{$device as DEVICE, rounds};

            #[test]
            fn files_of_0_bytes() {
                rounds(&DEVICE, "0 bytes", &[0]);
            }

            #[test]
            fn files_of_100_bytes() {
                rounds(&DEVICE, "100 bytes", &[100]);
            }

            #[test]
            fn files_of_300_bytes() {
                rounds(&DEVICE, "300 bytes", &[300]);
            }

            #[test]
            fn files_of_1000_bytes() {
                rounds(&DEVICE, "1000 bytes each", &[1000]);
            }

            #[test]
            fn files_of_4_kib() {
                rounds(&DEVICE, "4 KiB", &[4 << 10]);
            }

            #[test]
            fn files_of_64_kib() {
                rounds(&DEVICE, "64 KiB", &[64 << 10]);
            }

            #[test]
            fn files_of_any_size() {
                rounds(&DEVICE, "any size", &[0, 100, 300, 900, 4 << 10, 20_000, 64 << 10]);
            }

            #[test]
            fn one_big_file() {
                rounds(&DEVICE, "one big", &[1 << 30]);
            }
        })+
    };
}

devices! {
    flash: FLASH;
    flash_beside_memory: BESIDE;
    flash_beside_a_write_buffer: BUFFERED;
    memory: SCM;
    memory_of_few_chunks: CHUNKS;
    two_disks: TIER;
}
