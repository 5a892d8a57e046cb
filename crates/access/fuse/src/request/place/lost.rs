//! The root directory of a volume whose memory is gone.
//!
//! Before the kernel passes on what a mount is asked about itself it asks for the attributes of the
//! root, and where nothing can be read any more nobody would hear why.

use fuser::INodeNo;
use onode_fs::{Attributes, Error, FileSystem, InodeNumber, Result};

/// The condition of a volume that can neither be read nor written.
const MEMORY_LOST: &str = "memory-lost";

/// The attributes that the root had when the volume was mounted.
pub(crate) struct RootBefore(Option<Attributes>);

impl RootBefore {
    /// Those that it has now.
    pub(crate) fn new(files: &FileSystem) -> Self {
        Self(files.attributes(InodeNumber::ROOT).ok())
    }

    /// Those that stand for the root of files whose memory is gone; any other error stays one.
    pub(crate) fn in_place_of(&self, error: Error, files: &FileSystem, number: INodeNo) -> Result<Attributes> {
        let is_lost = || files.device().health().conditions.iter().any(|one| one.code == MEMORY_LOST);
        match &self.0 {
            Some(root) if number == INodeNo::ROOT && is_lost() => Ok(*root),
            _ => Err(error),
        }
    }
}
