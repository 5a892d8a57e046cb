//! The trailer that makes a page trustworthy: sealing before the program, verifying after the read.

use crate::medium::format::{PAGE_FLUSHED, PageKind, PageTrailer};
use onode_base::checksum::{crc32c, crc32c_append};
use onode_base::planted::{Bug, is_planted};
use onode_media::PageAddress;
use zerocopy::{FromBytes, IntoBytes};

/// What a verified page says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageInfo {
    /// What it holds.
    pub kind: PageKind,
    /// Bytes of record frames at the end of the payload.
    pub record_bytes: usize,
    /// Bytes before those that repeat the records of earlier pages.
    pub echo_bytes: usize,
    /// Sequence number of its segment, or generation of a superblock.
    pub sequence: u32,
    /// Bytes of the spare area with which the payload goes on.
    pub spare_bytes: usize,
    /// Everything that a journal page builds on had been flushed before it was programmed.
    pub flushed: bool,
}

/// Why a page is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFault {
    /// It was never programmed.
    Erased,
    /// Its checksum does not fit its content or its place.
    Checksum,
    /// It is sound, but from another life of the segment.
    Sequence {
        /// The number found.
        found: u32,
    },
}

/// What was found where a page was read. The medium itself worked: its failures are errors.
#[derive(Clone, Debug)]
pub enum Examined<T> {
    /// The page is what was written; what it holds.
    Sound(T),
    /// Why it is not to be trusted.
    Unsound(PageFault),
}

impl<T> Examined<T> {
    /// What a sound page holds.
    pub fn sound(self) -> Option<T> {
        match self {
            Self::Sound(page) => Some(page),
            Self::Unsound(_) => None,
        }
    }

    /// Whether the page is what was written.
    pub const fn is_sound(&self) -> bool {
        matches!(self, Self::Sound(_))
    }

    /// Whether the page was never programmed.
    pub const fn is_erased(&self) -> bool {
        matches!(self, Self::Unsound(PageFault::Erased))
    }
}

impl<T> From<Result<T, PageFault>> for Examined<T> {
    fn from(verified: Result<T, PageFault>) -> Self {
        match verified {
            Ok(page) => Self::Sound(page),
            Err(fault) => Self::Unsound(fault),
        }
    }
}

/// The part of every checksum that differs between volumes, so that pages of an earlier volume on
/// the same chips are never believed.
pub fn volume_seed(uuid: &[u8; 16]) -> u32 {
    crc32c(uuid)
}

fn checksum(seed: u32, address: PageAddress, trailer: &PageTrailer, payload: &[u8], spare: &[u8]) -> u32 {
    let crc = crc32c_append(seed, &address.0.to_le_bytes());
    crc32c_append(crc32c_append(crc32c_append(crc, &trailer.as_bytes()[4..]), payload), spare)
}

/// The trailer for `payload` at `address`, which goes on in the spare area with `spare`.
pub fn seal(seed: u32, address: PageAddress, info: PageInfo, payload: &[u8], spare: &[u8]) -> PageTrailer {
    let mut trailer = PageTrailer {
        checksum: 0.into(),
        sequence: info.sequence.into(),
        record_bytes: (info.record_bytes as u16).into(),
        kind: info.kind as u8,
        flags: if info.flushed { PAGE_FLUSHED } else { 0 },
        echo_bytes: (info.echo_bytes as u16).into(),
        spare_bytes: spare.len() as u8,
        reserved: 0,
    };
    trailer.checksum = checksum(seed, address, &trailer, payload, spare).into();
    trailer
}

/// Checks a page read from `address`. `expected` is the sequence number it must have, if known.
/// `trailer` may be followed by the rest of the spare area.
pub fn verify(
    seed: u32,
    address: PageAddress,
    expected: Option<u32>,
    trailer: &[u8],
    payload: &[u8],
) -> Result<PageInfo, PageFault> {
    let Ok((trailer, spare)) = PageTrailer::read_from_prefix(trailer) else { return Err(PageFault::Checksum) };
    let spare_bytes = usize::from(trailer.spare_bytes);
    let expected_checksum = spare.get(..spare_bytes).map(|spare| checksum(seed, address, &trailer, payload, spare));
    let believed = match PageKind::from_byte(trailer.kind) {
        Some(PageKind::Data | PageKind::Cold) => is_planted(Bug::DamagedFlashDataBelieved),
        Some(PageKind::Journal) => is_planted(Bug::DamagedFlashJournalBelieved),
        Some(PageKind::Index) => is_planted(Bug::DamagedFlashIndexBelieved),
        _ => false,
    };
    if expected_checksum != Some(trailer.checksum.get()) && !believed && !is_planted(Bug::ChecksumIgnored) {
        let erased = trailer.as_bytes().iter().chain(payload).all(|&byte| byte == 0xff);
        return Err(if erased { PageFault::Erased } else { PageFault::Checksum });
    }
    let record_bytes = usize::from(trailer.record_bytes.get());
    let kind = PageKind::from_byte(trailer.kind).ok_or(PageFault::Checksum)?;
    let echo_bytes = usize::from(trailer.echo_bytes.get());
    let room = payload.len() + spare_bytes;
    if record_bytes + echo_bytes > room || trailer.reserved != 0 || trailer.flags & !PAGE_FLUSHED != 0 {
        return Err(PageFault::Checksum);
    }
    let found = trailer.sequence.get();
    if expected.is_some_and(|sequence| sequence != found) && !is_planted(Bug::SequenceIgnored) {
        return Err(PageFault::Sequence { found });
    }
    let flushed = trailer.flags & PAGE_FLUSHED != 0;
    Ok(PageInfo { kind, record_bytes, echo_bytes, sequence: found, spare_bytes, flushed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_page_is_believed_only_where_and_when_it_was_written() {
        let (payload, spare) = ([7u8; 100], [8u8; 20]);
        let info = PageInfo {
            kind: PageKind::Journal,
            record_bytes: 23,
            echo_bytes: 90,
            sequence: 9,
            spare_bytes: spare.len(),
            flushed: true,
        };
        let mut bytes = seal(1, PageAddress(5), info, &payload, &spare).as_bytes().to_vec();
        bytes.extend_from_slice(&spare);
        // What follows is not the page's.
        bytes.extend_from_slice(&[0xff; 10]);
        assert_eq!(verify(1, PageAddress(5), Some(9), &bytes, &payload), Ok(info));
        assert_eq!(verify(1, PageAddress(5), Some(8), &bytes, &payload), Err(PageFault::Sequence { found: 9 }));
        assert_eq!(verify(1, PageAddress(6), Some(9), &bytes, &payload), Err(PageFault::Checksum));
        assert_eq!(verify(2, PageAddress(5), Some(9), &bytes, &payload), Err(PageFault::Checksum));
        assert_eq!(verify(1, PageAddress(5), None, &bytes[..30], &payload), Err(PageFault::Checksum));
        for spare in [16, 36] {
            assert_eq!(verify(1, PageAddress(5), None, &vec![0xff; spare], &[0xff; 100]), Err(PageFault::Erased));
        }
        let mut flipped = payload;
        flipped[50] ^= 1;
        assert_eq!(verify(1, PageAddress(5), None, &bytes, &flipped), Err(PageFault::Checksum));
        bytes[35] ^= 1;
        assert_eq!(verify(1, PageAddress(5), None, &bytes, &payload), Err(PageFault::Checksum));
    }
}
