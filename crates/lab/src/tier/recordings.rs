//! Where recorded requests of other file systems come from: those of this repository, which are
//! part of the program, or a folder.

use super::recording::Recording;
use onode::Result;
use std::path::PathBuf;

/// Recordings by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Recordings {
    /// Those of the repository.
    #[default]
    Embedded,
    /// Files NAME.blk.zst or NAME.blk.
    Folder(PathBuf),
}

impl Recordings {
    /// The one of that name; `None` if there is none.
    ///
    /// # Errors
    /// `Damaged`; what the host says.
    pub fn find(&self, name: &str) -> Result<Option<Recording>> {
        match self {
            Self::Embedded => {
                let packed = EMBEDDED.iter().find(|(known, _)| *known == name).map(|(_, packed)| *packed);
                packed.map(|packed| Recording::unpack(name, packed)).transpose()
            }
            Self::Folder(folder) => Recording::find(folder, name),
        }
    }
}

impl std::fmt::Display for Recordings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Embedded => f.write_str("this program"),
            Self::Folder(folder) => write!(f, "{}", folder.display()),
        }
    }
}

macro_rules! embedded {
    ($($name:literal,)+) => {
        &[$(($name, include_bytes!(concat!("../../recordings/", $name, ".blk.zst")))),+]
    };
}

/// `record-peers.sh` makes them.
const EMBEDDED: &[(&str, &[u8])] = embedded![
    "ext2-bonnie",
    "ext2-iozone",
    "ext2-natural-1000",
    "ext2-natural-10000",
    "ext2-natural-20000",
    "ext2-natural-5000",
    "ext2-postmark-1000",
    "ext2-postmark-10000",
    "ext2-postmark-20000",
    "ext2-postmark-5000",
    "ext2-random-write",
    "ext2-sequential",
    "ext2-sync-postmark-1000",
    "ext2-sync-postmark-10000",
    "ext2-sync-postmark-20000",
    "ext2-sync-postmark-5000",
    "ext2-template",
    "ext2-together-1000",
    "ext2-together-10000",
    "ext2-together-20000",
    "ext2-together-5000",
    "xfs-bonnie",
    "xfs-iozone",
    "xfs-natural-1000",
    "xfs-natural-10000",
    "xfs-natural-20000",
    "xfs-natural-5000",
    "xfs-postmark-1000",
    "xfs-postmark-10000",
    "xfs-postmark-20000",
    "xfs-postmark-5000",
    "xfs-random-write",
    "xfs-sequential",
    "xfs-sync-postmark-1000",
    "xfs-sync-postmark-10000",
    "xfs-sync-postmark-20000",
    "xfs-sync-postmark-5000",
    "xfs-template",
    "xfs-together-1000",
    "xfs-together-10000",
    "xfs-together-20000",
    "xfs-together-5000",
];
