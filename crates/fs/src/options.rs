//! How a volume is made and mounted.

use onode_base::ErrorKind;
use onode_object::{Compression, Settings};

use crate::error::{Error, Result};
use crate::inodes::Inodes;

/// When data reaches the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteMode {
    /// At most [`Options::write_back_age_seconds`] after the call; `fsync` is honoured.
    #[default]
    WriteBack,
    /// Before the call returns.
    WriteThrough,
}

/// Which reads renew a file's access time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessTimes {
    /// None: a read costs no write.
    #[default]
    Never,
    /// The first after a change, and one a day.
    Relative,
    /// Every one.
    Strict,
}

/// How to mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Accept no change and write nothing.
    pub read_only: bool,
    /// Consent to open a volume that holds less than it promised ([`ErrorKind::Loss`]). Who opens
    /// the device hands it on; names and files do not ask.
    pub accept_loss: bool,
    /// How content is compressed that is written from now on. Who opens the device hands it on;
    /// names and files do not ask.
    pub compression: Compression,
    /// Memory of the device. Who opens the device hands it on.
    pub device: Settings,
    /// When data reaches the medium.
    pub write_mode: WriteMode,
    /// Which reads renew access times.
    pub access_times: AccessTimes,
    /// Most bytes in the write-clustering cache.
    pub write_cache_bytes: usize,
    /// Longest stay in the write-clustering cache.
    pub write_back_age_seconds: u32,
    /// A file with that many contiguous bytes in the cache is written out at once.
    pub stream_bytes: usize,
    /// Inodes kept in memory beyond those in use.
    pub cached_inodes: usize,
    /// Bytes of the cache of names.
    pub name_cache_bytes: usize,
    /// Whether every use of a file lies between `open` and `release`. If not (a FUSE mount without
    /// open calls), a file without a name lives until it is forgotten.
    pub opens_are_counted: bool,
    /// Whether every close of a file that may have been written calls `flush`, `flush_file` or
    /// `release`. If not (a FUSE mount that is not told of closes), a file that is written anew
    /// counts as done when it is written back.
    pub closes_are_heard: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            read_only: false,
            accept_loss: false,
            compression: Compression::Never,
            device: Settings::NONE,
            write_mode: WriteMode::WriteBack,
            access_times: AccessTimes::Never,
            write_cache_bytes: 16 << 20,
            write_back_age_seconds: 5,
            stream_bytes: 1 << 20,
            cached_inodes: 16_384,
            name_cache_bytes: 4 << 20,
            opens_are_counted: true,
            closes_are_heard: true,
        }
    }
}

impl Options {
    /// Checks that the figures make sense.
    ///
    /// # Errors
    /// `Invalid` names the figure that does not.
    pub fn validate(&self) -> Result<()> {
        if self.stream_bytes == 0 || self.write_cache_bytes < self.stream_bytes {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "write_cache_bytes ({}) must be at least stream_bytes ({}), and that at least 1",
                    self.write_cache_bytes, self.stream_bytes
                ),
            ));
        }
        Ok(())
    }
}

/// How to make an empty volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormatOptions {
    /// A number no other volume has.
    pub uuid: [u8; 16],
    /// Secret of the name hash, from a good source of randomness: who does not know it cannot make
    /// names that collide.
    pub hash_key: [u8; 16],
    /// A name for people, at most 255 bytes.
    pub label: String,
    /// Owner of the root directory.
    pub uid: u32,
    /// Group of the root directory.
    pub gid: u32,
    /// Where inodes are kept.
    pub inodes: Inodes,
}
