//! A raw NAND chip behind Linux's memory technology devices (`/dev/mtdN`).
//!
//! It keeps true: programs and erases are on the chip, in order, when the calls return; a page that
//! the driver's error correction gave up is `Uncorrectable` and never returned; bad blocks are
//! those that the driver knows. The spare bytes are the free ones of the out-of-band area, placed
//! by the driver. If a kernel cannot read them, or there are too few of them for a page trailer,
//! there are none. Such a kernel (before 6.1) does not tell of single reads how many bits were
//! corrected, either, so no block is named for its bitflips.

use super::host::{lock, of_io, of_open};
use super::ioctl::{self, EccStats};
use super::kind::{Kind, identify};
use super::mtd_ram;
use super::order::Order;
use crate::counters::Counters;
use crate::error::{Error, MediaErrorKind, Result};
use crate::image::OpenMode;
use crate::nand::{BlockAddress, Geometry, Nand, PageAddress};
use crate::tag::IoTag;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Spare bytes that are worth having: a page trailer.
const LEAST_SPARE: u32 = 16;
/// `MTD_NANDFLASH` and `MTD_MLCNANDFLASH`.
const NAND_KINDS: [u8; 2] = [4, 8];

/// A raw NAND chip.
pub struct MtdNand {
    file: File,
    name: String,
    mode: OpenMode,
    geometry: Geometry,
    bad: Vec<bool>,
    order: Order,
    counters: Counters,
    stats: EccStats,
    /// The kernel reads by request: spare bytes too, and with what its error correction found.
    has_requests: bool,
    /// Corrected bits in the part of a page with a code of its own at which the driver wants its
    /// block to be moved.
    bitflip_threshold: u32,
    /// Blocks in which that many were met.
    bitflips: BTreeSet<BlockAddress>,
}

impl MtdNand {
    /// Opens the chip, or part of a chip, at `path`.
    ///
    /// # Errors
    /// `NotFound`, `Denied`, `Locked`, `NotAnImage` (no chip of this kind), `OutOfRange` (a shape
    /// that cannot be used), `ReadOnly`, `Host`.
    pub fn open(path: impl AsRef<Path>, mode: OpenMode) -> Result<Self> {
        let path = path.as_ref();
        let place = path.display();
        let not_nand = |detail: String| Err(Error::new(MediaErrorKind::NotAnImage, detail));
        if identify(path)? != Kind::Mtd {
            return not_nand(format!("{place} is no memory technology device"));
        }
        let write = mode == OpenMode::ReadWrite;
        let file = OpenOptions::new().read(true).write(write).open(path).map_err(|error| of_open(path, &error))?;
        lock(&file, path, write)?;
        let about = About::of(&file).map_err(|error| of_open(path, &error))?;
        if let Some(user) = about.ubi_device() {
            return Err(Error::new(MediaErrorKind::Locked, format!("{place} is attached to {user}")));
        }
        let ask = |errno: Errno| of_io(&place.to_string(), "ask", &errno.into(), MediaErrorKind::Host);
        let info = ioctl::mtd_info(&file).map_err(ask)?;
        if !NAND_KINDS.contains(&info.kind) {
            let found = mtd_ram::type_name(info.kind);
            return not_nand(format!("{place} is a memory technology device of type {found}, not NAND flash"));
        }
        let bytes = about.number("size").unwrap_or_else(|| u64::from(info.size));
        let spare = about.number("oobavail").and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0);
        let mut geometry = Geometry {
            page_bytes: info.write_bytes,
            spare_bytes: spare,
            pages_per_block: info.erase_bytes.checked_div(info.write_bytes).unwrap_or(0),
            blocks: bytes.checked_div(u64::from(info.erase_bytes)).and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
            chips: 1,
        };
        let has_requests = knows_requests(&file, &geometry);
        if spare < LEAST_SPARE || !has_requests {
            geometry.spare_bytes = 0;
        }
        geometry.validate().map_err(|error| Error::new(error.kind, format!("{place}: {}", error.detail)))?;
        let block_bytes = u64::from(info.erase_bytes);
        let bad = (0..u64::from(geometry.blocks)).map(|block| ioctl::mtd_is_bad(&file, block * block_bytes));
        let bad = bad.collect::<core::result::Result<Vec<bool>, Errno>>().map_err(ask)?;
        let stats = ioctl::mtd_ecc_stats(&file).unwrap_or_default();
        let threshold = about.number("bitflip_threshold").and_then(|bits| u32::try_from(bits).ok());
        Ok(Self {
            file,
            name: place.to_string(),
            mode,
            geometry,
            bad,
            order: Order::unknown(&geometry),
            counters: Counters::default(),
            stats,
            has_requests,
            bitflip_threshold: threshold.filter(|bits| *bits > 0).unwrap_or(u32::MAX),
            bitflips: BTreeSet::new(),
        })
    }

    fn check_writable(&self) -> Result<()> {
        self.mode.check_writable(&self.name)
    }

    fn check_good(&self, block: BlockAddress) -> Result<()> {
        if self.is_known_bad(block)? {
            return Err(Error::new(MediaErrorKind::BadBlock, format!("block {}", block.0)));
        }
        Ok(())
    }

    fn is_known_bad(&self, block: BlockAddress) -> Result<bool> {
        self.geometry.check_block(block)?;
        Ok(self.bad.get(block.0 as usize).copied().unwrap_or(true))
    }

    const fn offset(&self, page: PageAddress) -> u64 {
        page.0 * self.geometry.page_bytes as u64
    }

    const fn block_bytes(&self) -> u64 {
        self.geometry.page_bytes as u64 * self.geometry.pages_per_block as u64
    }

    fn failed(&self, verb: &str, errno: Errno, lost: MediaErrorKind) -> Error {
        of_io(&self.name, verb, &errno.into(), lost)
    }

    fn read_pages(&mut self, first: PageAddress, data: &mut [u8], spare: &mut [u8]) -> Result<()> {
        let offset = self.offset(first);
        let failed = |errno: Errno| self.failed("read", errno, MediaErrorKind::Uncorrectable);
        let uncorrectable = if self.has_requests {
            let read = ioctl::mtd_read(&self.file, offset, data, spare).map_err(failed)?;
            self.counters.corrected_bits += u64::from(read.corrected);
            if read.most_flips >= self.bitflip_threshold {
                self.bitflips.insert(self.geometry.block_of(first));
            }
            read.uncorrectable
        } else {
            // This way the driver returns what it could not correct, too; only its statistics tell.
            self.file
                .read_exact_at(data, offset)
                .map_err(|error| of_io(&self.name, "read", &error, MediaErrorKind::Uncorrectable))?;
            let before = self.stats;
            self.stats = ioctl::mtd_ecc_stats(&self.file).unwrap_or(before);
            self.counters.corrected_bits += u64::from(self.stats.corrected.wrapping_sub(before.corrected));
            self.stats.failed != before.failed
        };
        if uncorrectable {
            let detail = format!("page {} of {}", first.0, self.name);
            return Err(Error::new(MediaErrorKind::Uncorrectable, detail));
        }
        Ok(())
    }

    fn program_pages(&mut self, first: PageAddress, pages: u32, data: &[u8], spare: &[u8]) -> Result<()> {
        self.check_writable()?;
        let block = self.geometry.block_of(first);
        self.check_good(block)?;
        self.order.skipped(&self.geometry, first)?;
        // What a program that failed put there is not known; the page is lost.
        self.order.set(block, self.geometry.index_in_block(first) + pages);
        ioctl::mtd_write(&self.file, self.offset(first), data, spare)
            .map_err(|errno| self.failed("program", errno, MediaErrorKind::ProgramFailed))
    }
}

impl Nand for MtdNand {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.geometry.check_read(page, data.len(), spare.len())?;
        self.counters.of_mut(tag).reads += 1;
        self.read_pages(page, data, spare)
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.geometry.check_program(page, data.len(), spare.len())?;
        self.program_pages(page, 1, data, spare)?;
        self.counters.of_mut(tag).programs += 1;
        Ok(())
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.check_writable()?;
        self.check_good(block)?;
        let offset = self.offset(self.geometry.first_page(block));
        ioctl::mtd_erase(&self.file, offset, self.block_bytes())
            .map_err(|errno| self.failed("erase", errno, MediaErrorKind::EraseFailed))?;
        self.order.set(block, 0);
        self.counters.of_mut(tag).erases += 1;
        Ok(())
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.is_known_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.check_writable()?;
        self.geometry.check_block(block)?;
        let offset = self.offset(self.geometry.first_page(block));
        ioctl::mtd_mark_bad(&self.file, offset)
            .map_err(|errno| self.failed("mark a bad block of", errno, MediaErrorKind::Host))?;
        if let Some(bad) = self.bad.get_mut(block.0 as usize) {
            *bad = true;
        }
        Ok(())
    }

    fn read_run(&mut self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        let pages = self.geometry.check_run(first, data.len(), spare.len())?;
        self.counters.of_mut(tag).reads += u64::from(pages);
        self.read_pages(first, data, spare)
    }

    fn program_run(&mut self, first: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        let pages = self.geometry.check_program_run(first, data.len(), spare.len())?;
        if data.is_empty() {
            return Ok(());
        }
        self.program_pages(first, pages, data, spare)?;
        self.counters.of_mut(tag).programs += u64::from(pages);
        Ok(())
    }

    fn take_bitflips(&mut self) -> Option<Vec<BlockAddress>> {
        let tells = self.has_requests && self.bitflip_threshold < u32::MAX;
        tells.then(|| core::mem::take(&mut self.bitflips).into_iter().collect())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }
}

/// Whether this kernel reads by request (Linux 6.1).
fn knows_requests(file: &File, geometry: &Geometry) -> bool {
    let (mut data, mut spare) = (Vec::new(), vec![0; geometry.spare_bytes as usize]);
    if spare.is_empty() {
        data.resize(geometry.page_bytes as usize, 0);
    }
    !matches!(
        ioctl::mtd_read(file, 0, &mut data, &mut spare),
        Err(Errno::NOTTY | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS)
    )
}

/// What the kernel's tables say of a chip.
pub(super) struct About {
    minor: u32,
}

impl About {
    pub(super) fn of(file: &File) -> std::io::Result<Self> {
        Ok(Self { minor: rustix::fs::minor(file.metadata()?.rdev()) })
    }

    pub(super) fn number(&self, attribute: &str) -> Option<u64> {
        let text = fs::read_to_string(format!("/sys/dev/char/90:{}/{attribute}", self.minor)).ok()?;
        text.trim().parse().ok()
    }

    /// The UBI device that manages this chip, if one does.
    fn ubi_device(&self) -> Option<String> {
        let number = (self.minor / 2).to_string();
        let devices = fs::read_dir("/sys/class/ubi").ok()?.flatten();
        let users = devices
            .filter(|entry| fs::read_to_string(entry.path().join("mtd_num")).is_ok_and(|there| there.trim() == number));
        users.map(|entry| entry.file_name().to_string_lossy().into_owned()).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Chips are rare: `tests/qemu/run mtd` tests the rest on a simulated one.
    #[test]
    fn what_is_no_chip_is_refused() {
        let kind = |path| MtdNand::open(path, OpenMode::ReadOnly).map(drop).unwrap_err().kind;
        assert_eq!(kind("/dev/null"), MediaErrorKind::NotAnImage);
        assert_eq!(kind("/proc/self/exe"), MediaErrorKind::NotAnImage);
        assert_eq!(kind("/no/such/chip"), MediaErrorKind::NotFound);
    }
}
