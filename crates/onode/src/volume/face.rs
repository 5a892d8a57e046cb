//! The block face of a space: bytes that a traditional file system takes for a block device.
//!
//! A write is on its way to the medium when it returns and durable after [`sync`](BlockFace::sync).
//! Nothing outside of the space can be reached through it.

use crate::error::Error;
use onode_media::Pmem;
#[cfg(feature = "scm")]
use onode_spaces::{Kind, Region};
use std::fmt;
use std::sync::Arc;

/// One space, by its name.
#[derive(Clone)]
pub struct BlockFace {
    name: String,
    memory: Arc<dyn Pmem>,
    read_only: bool,
}

impl fmt::Debug for BlockFace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockFace").field("name", &self.name).field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl BlockFace {
    /// The face of a memory.
    #[must_use]
    pub fn new(name: String, memory: Arc<dyn Pmem>, read_only: bool) -> Self {
        Self { name, memory, read_only }
    }

    /// The name of the space.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.memory.length()
    }

    /// Whether it may only be read.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// How many of `wanted` bytes from `at` on there are.
    fn there(&self, at: u64, wanted: u64) -> u64 {
        self.bytes().saturating_sub(at).min(wanted)
    }

    /// Reads into `buffer` from `at` on; returns how many bytes there were.
    pub fn read(&self, at: u64, buffer: &mut [u8]) -> usize {
        let length = self.there(at, buffer.len() as u64) as usize;
        let (found, _) = buffer.split_at_mut(length);
        if length > 0 {
            self.memory.read(at, found);
        }
        length
    }

    /// Writes `bytes` at `at`; returns how many of them have room. None, if it may only be read.
    pub fn write(&self, at: u64, bytes: &[u8]) -> usize {
        let length = if self.read_only { 0 } else { self.there(at, bytes.len() as u64) as usize };
        let (fitting, _) = bytes.split_at(length);
        if length > 0 {
            self.memory.write_through(at, fitting);
        }
        length
    }

    /// Fills what there is of `length` bytes from `at` on with zeros.
    pub fn zero(&self, at: u64, length: u64) {
        let length = if self.read_only { 0 } else { self.there(at, length) };
        if length > 0 {
            self.memory.zero(at, length);
            self.memory.flush(at, length);
        }
    }

    /// Waits until everything written so far is durable.
    ///
    /// # Errors
    /// What the medium did not take.
    pub fn sync(&self) -> std::result::Result<(), Error> {
        if self.read_only {
            return Ok(());
        }
        self.memory.fence().map_err(|error| Error::medium(format!("cannot sync space {}", self.name), &error))
    }
}

#[cfg(feature = "scm")]
impl BlockFace {
    /// The faces of all spaces of a region but those that a manager keeps to itself.
    ///
    /// # Errors
    /// Those of the region.
    pub fn of_region<P: Pmem + 'static>(region: &Region<P>, read_only: bool) -> onode_media::Result<Vec<Self>> {
        let open = region.list().into_iter().filter(|space| space.kind != Kind::Manager);
        open.map(|info| {
            let space = region.space(&info.name)?;
            Ok(Self::new(info.name, Arc::new(space), read_only || info.read_only))
        })
        .collect()
    }
}

#[cfg(all(test, feature = "scm"))]
mod tests {
    use super::*;
    use onode_media::{PmemOptions, SimPmem};

    #[test]
    fn a_face_keeps_to_its_space_and_is_durable_after_a_sync() {
        let memory = Arc::new(SimPmem::new(256 << 10, PmemOptions::default()));
        let region = Region::format(Arc::clone(&memory), [1; 16], true).unwrap();
        region.create("objects", Kind::Manager, 64 << 10).unwrap();
        region.create("disk", Kind::FileSystem, 8192).unwrap();
        region.create_image("boot", Kind::Boot, b"code").unwrap();
        region.create("other", Kind::Memory, 4096).unwrap();
        let faces = BlockFace::of_region(&region, false).unwrap();
        let names: Vec<&str> = faces.iter().map(BlockFace::name).collect();
        assert_eq!(names, ["disk", "boot", "other"]);
        let (disk, boot) = (&faces[0], &faces[1]);
        assert_eq!((disk.write(8190, b"abcd"), disk.write(8192, b"x"), disk.write(u64::MAX, b"x")), (2, 0, 0));
        assert_eq!(disk.write(3, &[9; 5000]), 5000);
        disk.zero(10, 20);
        disk.sync().unwrap();
        assert_eq!(memory.mark_commit(), []);
        let mut found = [1; 30];
        assert_eq!(
            (disk.read(0, &mut found), disk.read(8180, &mut [0; 30]), disk.read(9000, &mut [0; 1])),
            (30, 12, 0)
        );
        assert_eq!(found[..12], [0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 0, 0]);
        assert_eq!((boot.write(0, b"x"), boot.read(0, &mut found[..4]), &found[..4]), (0, 4, &b"code"[..]));
        boot.zero(0, 4);
        boot.sync().unwrap();
        assert_eq!((boot.read(0, &mut found[..4]), &found[..4]), (4, &b"code"[..]));
        assert!(region.remove("disk").is_err(), "a space with a face is in use");
    }
}
