//! What the tests share: a volume in memory and a few short calls.

pub mod recorder;
pub mod shared;

use onode_base::clock::ManualClock;
use onode_fs::{
    Attributes, Caller, Error, ErrorKind, FileSystem, FormatOptions, InodeNumber, Inodes, Options, Result,
    SetAttributes, format,
};
use onode_object::ObjectDevice;
use onode_object::ram::RamDevice;
use std::sync::Arc;

pub const ROOT: InodeNumber = InodeNumber::ROOT;
pub const SECOND: u64 = 1_000_000_000;
pub const START: u64 = 1_790_000_000 * SECOND;

/// Where the inodes of every volume are: `separate_inodes.rs` runs the other test files once more.
pub const INODES: Inodes = match env!("CARGO_CRATE_NAME").as_bytes() {
    b"separate_inodes" => Inodes::Separate,
    _ => Inodes::Embedded,
};

/// Objects of a volume with so many files, the root included, and values of extended attributes.
pub fn objects(files: u64, values: u64) -> u64 {
    let for_inodes = if INODES == Inodes::Separate { files } else { 0 };
    files + for_inodes + values + 1
}

pub struct Volume {
    pub device: Arc<RamDevice>,
    pub clock: Arc<ManualClock>,
}

impl Volume {
    pub fn of_size(bytes: u64) -> Self {
        let device = Arc::new(RamDevice::with_crash_model(bytes));
        let clock = Arc::new(ManualClock::at(START));
        let options = FormatOptions { hash_key: *b"a secret of test", inodes: INODES, ..FormatOptions::default() };
        format(device.as_ref(), &options, onode_base::Timestamp::from_nanoseconds(START)).unwrap();
        Self { device, clock }
    }

    pub fn mount_with(&self, options: Options) -> FileSystem {
        let device: Arc<dyn ObjectDevice> = self.device.clone();
        FileSystem::mount(device, self.clock.clone(), options).unwrap()
    }

    pub fn mount(&self) -> FileSystem {
        self.mount_with(Options::default())
    }

    /// What a power cut leaves, mounted.
    pub fn crash(&self, mounted: FileSystem) -> FileSystem {
        drop(mounted);
        self.device.crash();
        self.mount()
    }
}

pub fn mounted() -> (Volume, FileSystem) {
    let volume = Volume::of_size(64 << 20);
    let fs = volume.mount();
    (volume, fs)
}

pub fn root() -> Caller {
    Caller::root()
}

pub fn user(uid: u32, gid: u32) -> Caller {
    Caller { uid, gid, ..Caller::default() }
}

pub fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.map_err(|error: Error| error.kind).unwrap_err()
}

pub fn create(fs: &FileSystem, parent: InodeNumber, name: &str) -> InodeNumber {
    fs.create(&root(), parent, name.as_bytes(), 0o644).unwrap().inode
}

pub fn mkdir(fs: &FileSystem, parent: InodeNumber, name: &str) -> InodeNumber {
    fs.make_directory(&root(), parent, name.as_bytes(), 0o755).unwrap().inode
}

pub fn lookup(fs: &FileSystem, parent: InodeNumber, name: &str) -> Result<Attributes> {
    let found = fs.lookup(parent, name.as_bytes())?;
    fs.forget(found.inode, 1);
    Ok(found)
}

pub fn write(fs: &FileSystem, inode: InodeNumber, offset: u64, data: &[u8]) {
    assert_eq!(fs.write(&root(), inode, offset, data).unwrap(), data.len());
}

pub fn content(fs: &FileSystem, inode: InodeNumber) -> Vec<u8> {
    let size = fs.attributes(inode).unwrap().size as usize;
    let mut buffer = vec![0xaa; size + 10];
    assert_eq!(fs.read(inode, 0, &mut buffer).unwrap(), size);
    buffer.truncate(size);
    buffer
}

pub fn truncate(fs: &FileSystem, inode: InodeNumber, size: u64) {
    fs.set_attributes(&root(), inode, &SetAttributes { size: Some(size), ..SetAttributes::default() }).unwrap();
}

pub fn names(fs: &FileSystem, directory: InodeNumber) -> Vec<String> {
    let mut names = Vec::new();
    fs.read_directory(directory, 2, &mut |entry| {
        names.push(String::from_utf8(entry.name.clone()).unwrap());
        true
    })
    .unwrap();
    names.sort();
    names
}
