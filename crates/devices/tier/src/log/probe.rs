//! Reads blocks in which records of a log are looked for.
//!
//! What it keeps true: only a sector that the disk lost, as a cut may leave one, counts as a block
//! without a record. A disk that fails stops the search: what it did not show may be acknowledged.

use crate::medium::layout::BLOCK;
use onode_media::{BlockDev, Error, IoTag, MediaErrorKind};

/// A disk that is searched.
pub struct Probe<'a> {
    disk: &'a mut dyn BlockDev,
    failed: Option<Error>,
}

impl<'a> Probe<'a> {
    /// Searches `disk`.
    pub const fn new(disk: &'a mut dyn BlockDev) -> Self {
        Self { disk, failed: None }
    }

    /// Reads blocks; false if there is nothing to be seen in them, or nothing any more.
    pub fn read(&mut self, block: u64, out: &mut [u8]) -> bool {
        if self.failed.is_some() {
            return false;
        }
        match self.disk.read_at(block * BLOCK, out, IoTag::Recovery) {
            Ok(()) => true,
            Err(error) => {
                let is_lost = matches!(error.kind, MediaErrorKind::Uncorrectable | MediaErrorKind::OutOfRange);
                self.failed = (!is_lost).then_some(error);
                false
            }
        }
    }

    /// The end of the search.
    ///
    /// # Errors
    /// That of the disk.
    pub fn finish(self) -> Result<(), Error> {
        self.failed.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::Probe;
    use crate::medium::layout::{BLOCK, BLOCK_BYTES};
    use onode_media::sim::disk::SimDisk;

    #[test]
    fn a_lost_sector_holds_nothing_and_a_failed_disk_is_an_error() {
        let mut disk = SimDisk::new("disk", 8 * BLOCK);
        let handle = disk.clone();
        let mut block = [0; BLOCK_BYTES];
        handle.make_unreadable(BLOCK);
        let mut probe = Probe::new(&mut disk);
        assert_eq!([1, 2, 8].map(|number| probe.read(number, &mut block)), [false, true, false]);
        assert!(probe.finish().is_ok());
        let mut probe = Probe::new(&mut disk);
        handle.unplug();
        assert!(!probe.read(2, &mut block));
        assert!(probe.finish().is_err());
    }
}
