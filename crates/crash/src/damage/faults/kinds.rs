//! What can become of a page, as chips and what stands before them do it.

use super::medium::{FaultyNand, Page, read_whole};
use super::volume::{HitVolume, Readers};
use onode_base::Prng;
use onode_flash::layout::Row;
use onode_media::PageAddress;
use std::collections::BTreeMap;
use std::fmt;

/// What happened to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum FaultKind {
    /// One bit is another.
    Flip,
    /// More bits than any chip corrects.
    Flips,
    /// All zeros.
    Zeros,
    /// It was never programmed: the write was lost.
    LostWrite,
    /// Another page, sound where it should be, reads here.
    Swap,
    /// What stood here in an earlier life of the segment.
    Older,
    /// The page beside it.
    Neighbour,
    /// It was programmed elsewhere, over another page.
    MisdirectedWrite,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Flip,
        Self::Flips,
        Self::Zeros,
        Self::LostWrite,
        Self::Swap,
        Self::Older,
        Self::Neighbour,
        Self::MisdirectedWrite,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flip => "flip",
            Self::Flips => "flips",
            Self::Zeros => "zeros",
            Self::LostWrite => "lost write",
            Self::Swap => "swap",
            Self::Older => "older version",
            Self::Neighbour => "neighbour",
            Self::MisdirectedWrite => "misdirected write",
        }
    }
}

/// A fault that was injected.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What it is.
    pub kind: FaultKind,
    /// The pages that read other than they were programmed.
    pub pages: Vec<PageAddress>,
    /// No row lost more pages than it has pages of parity.
    pub is_within_parity: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pages: Vec<String> = self.pages.iter().map(|page| page.0.to_string()).collect();
        write!(f, "{} at pages {}", self.kind.name(), pages.join(", "))
    }
}

impl Fault {
    /// Injects a fault that is drawn.
    pub fn draw(made: &HitVolume, readers: &Readers, medium: &FaultyNand, prng: &mut Prng) -> Self {
        let kind = FaultKind::ALL[prng.below(FaultKind::ALL.len() as u64) as usize];
        let target = readers.draw(prng);
        let of_target = made.row_of(target);
        let mut row: Vec<PageAddress> = of_target.map_or(Vec::new(), |row| made.pages_of(row));
        row.retain(|page| *page != target);
        let parity = u64::from(of_target.map_or(made.layout.parity_pages as u8, |row| row.parity));
        // One in eight goes beyond what parity can find again.
        let more = if parity == 0 { 0 } else { prng.below(parity) + u64::from(prng.chance(1, 8)) * parity };
        let mut chosen = vec![target];
        for _ in 0..more.min(row.len() as u64) {
            chosen.push(row.swap_remove(prng.below(row.len() as u64) as usize));
        }
        let mut pages = Vec::new();
        for page in chosen {
            for (page, content) in spoil(made, readers, medium, (kind, page), prng) {
                if content != medium.programmed(page) {
                    medium.hit(page, content);
                    pages.push(page);
                }
            }
        }
        let mut hits: BTreeMap<Row, u32> = BTreeMap::new();
        pages.sort_unstable();
        pages.dedup();
        let mut is_within_parity = parity > 0 || pages.is_empty();
        for row in pages.iter().filter_map(|page| made.row_of(*page)) {
            let hits = hits.entry(row).or_default();
            *hits += 1;
            is_within_parity &= *hits <= u32::from(row.parity);
        }
        Self { kind, pages, is_within_parity }
    }
}

/// What `kind` makes of a page, and of another that it hits with it.
fn spoil(
    made: &HitVolume,
    readers: &Readers,
    medium: &FaultyNand,
    hit: (FaultKind, PageAddress),
    prng: &mut Prng,
) -> Vec<(PageAddress, Page)> {
    let (kind, at) = hit;
    let mut page = medium.programmed(at);
    let filled = |byte, page: &Page| (vec![byte; page.0.len()], vec![byte; page.1.len()]);
    let flip = |page: &mut Page, prng: &mut Prng| {
        let bit = prng.below((page.0.len() + page.1.len()) as u64 * 8) as usize;
        let (byte, length) = (bit / 8, page.0.len());
        let part = if byte < length { &mut page.0[byte] } else { &mut page.1[byte - length] };
        *part ^= 1 << (bit % 8);
    };
    match kind {
        FaultKind::Flip => flip(&mut page, prng),
        FaultKind::Flips => (0..2 + prng.below(200)).for_each(|_| flip(&mut page, prng)),
        FaultKind::Zeros => page = filled(0, &page),
        FaultKind::LostWrite => page = filled(0xff, &page),
        FaultKind::Swap => page = medium.programmed(readers.draw(prng)),
        FaultKind::Older => page = read_whole(&mut made.earlier.clone(), at),
        FaultKind::Neighbour => {
            let per_block = u64::from(made.layout.geometry.pages_per_block);
            let other = if at.0 % per_block + 1 == per_block { at.0 - 1 } else { at.0 + 1 };
            page = medium.programmed(PageAddress(other));
        }
        FaultKind::MisdirectedWrite => {
            let elsewhere = readers.draw(prng);
            let lost = filled(0xff, &page);
            return vec![(elsewhere, page), (at, lost)];
        }
    }
    vec![(at, page)]
}
