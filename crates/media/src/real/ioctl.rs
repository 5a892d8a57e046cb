//! Calls of the kernel's device drivers.
//!
//! Each function keeps the bargain of one request: it passes the type that the request wants, which
//! lives for the whole call.
#![allow(unsafe_code, reason = "ioctl(2) has no safe face")]

use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;

/// `_IO(0x12, 119)`.
const BLKDISCARD: libc::Ioctl = 0x1277;

fn outcome(code: libc::c_int) -> Result<libc::c_int, Errno> {
    if code < 0 {
        // Set by the call that failed right before, on this thread.
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        return Err(Errno::from_raw_os_error(errno));
    }
    Ok(code)
}

/// Tells a block device that a range holds nothing of value.
pub(super) fn discard(file: &File, offset: u64, bytes: u64) -> Result<(), Errno> {
    let range = [offset, bytes];
    // SAFETY: the request reads two u64 from the pointer, which is valid for the length of the
    // call.
    outcome(unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD, range.as_ptr()) }).map(drop)
}

/// `struct mtd_info_user`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct MtdInfo {
    pub(super) kind: u8,
    pub(super) flags: u32,
    pub(super) size: u32,
    pub(super) erase_bytes: u32,
    pub(super) write_bytes: u32,
    pub(super) oob_bytes: u32,
    padding: u64,
}
const _: () = assert!(size_of::<MtdInfo>() == 32);

/// `struct mtd_ecc_stats`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct EccStats {
    pub(super) corrected: u32,
    pub(super) failed: u32,
    bad_blocks: u32,
    table_blocks: u32,
}
const _: () = assert!(size_of::<EccStats>() == 16);

/// `struct mtd_write_req`.
#[repr(C)]
struct WriteRequest {
    start: u64,
    length: u64,
    oob_length: u64,
    data: u64,
    oob: u64,
    mode: u8,
    padding: [u8; 7],
}
const _: () = assert!(size_of::<WriteRequest>() == 48);

/// `struct mtd_read_req`.
#[repr(C)]
struct ReadRequest {
    request: WriteRequest,
    uncorrectable: u32,
    corrected: u32,
    most_flips: u32,
}
const _: () = assert!(size_of::<ReadRequest>() == 64);

/// `MTD_OPS_AUTO_OOB`: only the free bytes of the spare area, one after another.
const AUTO_OOB: u8 = 1;
/// `_IOR('M', 1, struct mtd_info_user)`.
const MEMGETINFO: libc::Ioctl = 0x8020_4d01;
/// `_IOW('M', 11, __kernel_loff_t)`.
const MEMGETBADBLOCK: libc::Ioctl = 0x4008_4d0b;
/// `_IOW('M', 12, __kernel_loff_t)`.
const MEMSETBADBLOCK: libc::Ioctl = 0x4008_4d0c;
/// `_IOR('M', 18, struct mtd_ecc_stats)`.
const ECCGETSTATS: libc::Ioctl = 0x8010_4d12;
/// `_IOW('M', 20, struct erase_info_user64)`.
const MEMERASE64: libc::Ioctl = 0x4010_4d14;
/// `_IOWR('M', 24, struct mtd_write_req)`.
const MEMWRITE: libc::Ioctl = 0xc030_4d18;
/// `_IOWR('M', 26, struct mtd_read_req)`.
const MEMREAD: libc::Ioctl = 0xc040_4d1a;

/// What a memory technology device is.
pub(super) fn mtd_info(file: &File) -> Result<MtdInfo, Errno> {
    let mut info = MtdInfo::default();
    // SAFETY: the request writes one mtd_info_user, which MtdInfo is, to a pointer valid for that.
    outcome(unsafe { libc::ioctl(file.as_raw_fd(), MEMGETINFO, &raw mut info) })?;
    Ok(info)
}

/// Bits and pages that the driver could and could not correct since it was loaded.
pub(super) fn mtd_ecc_stats(file: &File) -> Result<EccStats, Errno> {
    let mut stats = EccStats::default();
    // SAFETY: the request writes one mtd_ecc_stats, which EccStats is, to a pointer valid for that.
    outcome(unsafe { libc::ioctl(file.as_raw_fd(), ECCGETSTATS, &raw mut stats) })?;
    Ok(stats)
}

/// Whether the block at `offset` is marked bad.
pub(super) fn mtd_is_bad(file: &File, offset: u64) -> Result<bool, Errno> {
    let offset = offset.cast_signed();
    // SAFETY: the request reads one i64 from a pointer valid for that.
    Ok(outcome(unsafe { libc::ioctl(file.as_raw_fd(), MEMGETBADBLOCK, &raw const offset) })? > 0)
}

/// Marks the block at `offset` bad.
pub(super) fn mtd_mark_bad(file: &File, offset: u64) -> Result<(), Errno> {
    let offset = offset.cast_signed();
    // SAFETY: the request reads one i64 from a pointer valid for that.
    outcome(unsafe { libc::ioctl(file.as_raw_fd(), MEMSETBADBLOCK, &raw const offset) }).map(drop)
}

/// Erases whole blocks.
pub(super) fn mtd_erase(file: &File, offset: u64, bytes: u64) -> Result<(), Errno> {
    let range = [offset, bytes];
    // SAFETY: the request reads an erase_info_user64, which is two u64, from a pointer valid for
    // that.
    outcome(unsafe { libc::ioctl(file.as_raw_fd(), MEMERASE64, range.as_ptr()) }).map(drop)
}

/// Programs whole pages and, unless `spare` is empty, the free bytes of their spare areas.
pub(super) fn mtd_write(file: &File, offset: u64, data: &[u8], spare: &[u8]) -> Result<(), Errno> {
    let request = WriteRequest {
        start: offset,
        length: data.len() as u64,
        oob_length: spare.len() as u64,
        data: data.as_ptr().addr() as u64,
        oob: if spare.is_empty() { 0 } else { spare.as_ptr().addr() as u64 },
        mode: AUTO_OOB,
        padding: [0; 7],
    };
    data.as_ptr().expose_provenance();
    spare.as_ptr().expose_provenance();
    // SAFETY: the request reads a mtd_write_req, which WriteRequest is, and through it as many
    // bytes of `data` and `spare` as they have; all of them live for the whole call.
    outcome(unsafe { libc::ioctl(file.as_raw_fd(), MEMWRITE, &raw const request) }).map(drop)
}

/// What a read found beside the bytes.
pub(super) struct ReadOutcome {
    /// Bits that were corrected.
    pub(super) corrected: u32,
    /// Of the part of a page that has a code of its own, the most.
    pub(super) most_flips: u32,
    /// Some page could not be corrected.
    pub(super) uncorrectable: bool,
}

/// Reads whole pages and the free bytes of their spare areas; either may be empty.
pub(super) fn mtd_read(file: &File, offset: u64, data: &mut [u8], spare: &mut [u8]) -> Result<ReadOutcome, Errno> {
    let address = |bytes: &mut [u8]| {
        let pointer = bytes.as_mut_ptr();
        pointer.expose_provenance();
        if bytes.is_empty() { 0 } else { pointer.addr() as u64 }
    };
    let mut request = ReadRequest {
        request: WriteRequest {
            start: offset,
            length: data.len() as u64,
            oob_length: spare.len() as u64,
            data: address(data),
            oob: address(spare),
            mode: AUTO_OOB,
            padding: [0; 7],
        },
        uncorrectable: 0,
        corrected: 0,
        most_flips: 0,
    };
    // SAFETY: the request reads and writes a mtd_read_req, which ReadRequest is, and through it
    // writes at most as many bytes of `data` and `spare` as they have; nobody else holds them
    // during the call.
    let done = outcome(unsafe { libc::ioctl(file.as_raw_fd(), MEMREAD, &raw mut request) });
    let uncorrectable = match done {
        // Flipped bits at the driver's threshold: the bytes are there and right.
        Ok(_) | Err(Errno::UCLEAN) => request.uncorrectable > 0,
        Err(Errno::BADMSG) => true,
        Err(errno) => return Err(errno),
    };
    Ok(ReadOutcome { corrected: request.corrected, most_flips: request.most_flips, uncorrectable })
}

/// `struct blk_zone`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct RawZone {
    /// First sector of 512 bytes.
    pub(super) start: u64,
    /// Sectors.
    pub(super) length: u64,
    /// The next sector to be written.
    pub(super) write_pointer: u64,
    pub(super) kind: u8,
    pub(super) condition: u8,
    non_sequential: u8,
    needs_reset: u8,
    padding: [u8; 4],
    /// Sectors that can be written, if the driver tells.
    pub(super) capacity: u64,
    reserved: [u8; 24],
}
const _: () = assert!(size_of::<RawZone>() == 64);

const REPORTED: usize = 64;

/// `struct blk_zone_report` with room for some zones.
#[repr(C)]
struct ZoneReport {
    sector: u64,
    count: u32,
    flags: u32,
    zones: [RawZone; REPORTED],
}
const _: () = assert!(size_of::<ZoneReport>() == 16 + 64 * REPORTED);

/// `BLK_ZONE_REP_CAPACITY`: capacities are told.
const REPORTS_CAPACITY: u32 = 1;
/// `_IOWR(0x12, 130, struct blk_zone_report)`.
const BLKREPORTZONE: libc::Ioctl = 0xc010_1282;
/// `_IOW(0x12, 131, struct blk_zone_range)`.
const BLKRESETZONE: libc::Ioctl = 0x4010_1283;
/// `_IOW(0x12, 136, struct blk_zone_range)`.
const BLKFINISHZONE: libc::Ioctl = 0x4010_1288;

/// Some zones from `sector` on; none behind the last.
pub(super) fn zones_from(file: &File, sector: u64) -> Result<alloc::vec::Vec<RawZone>, Errno> {
    let count = REPORTED as u32;
    let mut report = ZoneReport { sector, count, flags: 0, zones: [RawZone::default(); REPORTED] };
    // SAFETY: the request reads a blk_zone_report and writes it and at most `count` blk_zone behind
    // it, for which ZoneReport has room.
    outcome(unsafe { libc::ioctl(file.as_raw_fd(), BLKREPORTZONE, &raw mut report) })?;
    let mut zones = report.zones.get(..report.count as usize).unwrap_or_default().to_vec();
    if report.flags & REPORTS_CAPACITY == 0 {
        zones.iter_mut().for_each(|zone| zone.capacity = zone.length);
    }
    Ok(zones)
}

fn change_zone(file: &File, request: libc::Ioctl, sector: u64, sectors: u64) -> Result<(), Errno> {
    let range = [sector, sectors];
    // SAFETY: the requests read a blk_zone_range, which is two u64, from a pointer valid for that.
    outcome(unsafe { libc::ioctl(file.as_raw_fd(), request, range.as_ptr()) }).map(drop)
}

/// Makes a zone empty.
pub(super) fn reset_zone(file: &File, sector: u64, sectors: u64) -> Result<(), Errno> {
    change_zone(file, BLKRESETZONE, sector, sectors)
}

/// Makes a zone full.
pub(super) fn finish_zone(file: &File, sector: u64, sectors: u64) -> Result<(), Errno> {
    change_zone(file, BLKFINISHZONE, sector, sectors)
}
