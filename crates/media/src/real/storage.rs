//! What lies below a medium made of sectors: bytes at offsets that a device keeps.
//!
//! It keeps no pages and no order: between two flushes a failing host may keep any of the writes and
//! lose others, each sector of [`SECTOR_BYTES`] for itself.

use crate::error::Result;

/// Offsets and lengths are multiples of this, and writes of it are not torn by the medium above.
pub const SECTOR_BYTES: usize = 4096;

/// Bytes at offsets.
pub trait Storage: Send {
    /// The device's name, for people.
    fn name(&self) -> &str;

    /// Bytes in all.
    fn bytes(&self) -> u64;

    /// Reads `out.len()` bytes from `offset` on.
    ///
    /// # Errors
    /// `Uncorrectable` if the device lost them, `OutOfRange`, `Host`.
    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<()>;

    /// Writes `bytes` from `offset` on.
    ///
    /// # Errors
    /// `ProgramFailed` if the device could not, `HostFull`, `ReadOnly`, `OutOfRange`, `Host`.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Makes a range read as zeros, and gives its space back if the device can do that.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn zero(&mut self, offset: u64, bytes: u64) -> Result<()>;

    /// Tells the device that a range holds nothing of value. What it reads as afterwards is the device's
    /// own affair: zeros, what was there, or anything else. A device that cannot be told does nothing.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn discard(&mut self, offset: u64, bytes: u64) -> Result<()>;

    /// Waits until all that was written survives a failure of the host.
    ///
    /// # Errors
    /// `Host`, `HostFull`.
    fn flush(&mut self) -> Result<()>;
}
