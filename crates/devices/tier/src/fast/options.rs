//! How a fast disk is divided, and how it is used.

use super::extent::Scheme;
use super::format::{Division, MOST_SECTIONS, NAME_BYTES, SectionPlace};
use crate::medium::errors::invalid;
use crate::policy::{self, Build};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use onode_media::blockdev::SECTOR_BYTES;
use onode_object::Result;

const BLOCK: u64 = SECTOR_BYTES as u64;

/// Bytes of the smallest and the largest extent.
pub const EXTENT_BYTES: core::ops::RangeInclusive<u64> = (16 << 10)..=(1 << 20);

/// Whose disk it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The volume's number.
    pub volume: [u8; 16],
    /// The disk's own.
    pub own: [u8; 16],
    /// The session in which it joins.
    pub session: u64,
}

/// One section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionOptions {
    /// Its name, 1 to 32 bytes.
    pub name: String,
    /// Its share of the space, in proportion to those of the others.
    pub weight: u32,
    /// Bytes of an extent: a power of two in [`EXTENT_BYTES`].
    pub extent_bytes: u64,
    /// How it is filled.
    pub scheme: Scheme,
}

impl SectionOptions {
    /// A section that is filled exactly.
    #[must_use]
    pub fn new(name: &str, weight: u32, extent_bytes: u64) -> Self {
        Self { name: name.to_string(), weight, extent_bytes, scheme: Scheme::Exact }
    }
}

/// How a fast disk is divided when it joins first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastOptions {
    /// Bytes of the log ring.
    pub ring_bytes: u64,
    /// Bytes of the erase block, or of the stripe over several, that writes are collected for: a
    /// power of two of at least a block. One block for a disk to which alignment means nothing.
    pub stripe_bytes: u64,
    /// The sections, at least one.
    pub sections: Vec<SectionOptions>,
}

impl Default for FastOptions {
    fn default() -> Self {
        Self {
            ring_bytes: 4 << 20,
            stripe_bytes: 256 << 10,
            sections: alloc::vec![SectionOptions::new("default", 1, 64 << 10)],
        }
    }
}

/// How a fast disk is used. All of it may differ from mount to mount.
#[derive(Clone, Copy, Debug)]
pub struct FastSettings {
    /// What goes first; people get the usual one.
    pub policy: Build,
    /// Bytes of copies that may be written in a day; `None` for any number.
    pub daily_bytes: Option<u64>,
    /// Bytes that are collected at most before they are written.
    pub collect_bytes: u64,
    /// Nanoseconds after which what is collected is written, whether or not it fills a stripe.
    pub collect_nanoseconds: u64,
    /// Reads of more bytes in a row than this are not copied.
    pub sequential_bytes: u64,
    /// The request within the window at which content that is read is copied, 1 for the first; 0 if
    /// reads copy nothing.
    pub admit: u32,
    /// The disk is told of blocks that nobody needs any more.
    pub discard: bool,
}

impl Default for FastSettings {
    fn default() -> Self {
        Self {
            policy: policy::usual,
            daily_bytes: None,
            collect_bytes: 4 << 20,
            collect_nanoseconds: 5_000_000_000,
            sequential_bytes: 4 << 20,
            admit: 2,
            discard: true,
        }
    }
}

impl FastOptions {
    /// The usual division of a disk of `bytes`: a 32nd for the log, because whichever log is half
    /// full ends with a checkpoint of the big disk; but at least the 4 MiB of the paper, and not
    /// more than 64 MiB.
    #[must_use]
    pub fn for_disk(bytes: u64) -> Self {
        let usual = Self::default();
        let ring_bytes = (bytes / 32).clamp(usual.ring_bytes.min(bytes / 16), 64 << 20);
        let stripe_bytes = usual.stripe_bytes.min(bytes.next_power_of_two() / 64).max(BLOCK);
        Self { ring_bytes, stripe_bytes, ..usual }
    }

    /// The same where durable changes return as soon as one disk has them: the log is the first
    /// home of content there, so it gets a quarter of the disk, but not more than 512 MiB.
    #[must_use]
    pub fn for_first_home(bytes: u64) -> Self {
        let usual = Self::for_disk(bytes);
        Self { ring_bytes: (bytes / 4).min(512 << 20).max(usual.ring_bytes), ..usual }
    }

    /// What makes a division like that of another disk.
    #[must_use]
    pub fn of(division: &Division) -> Self {
        // Shares have 32 bits.
        let most = division.sections.iter().map(|section| section.blocks).max().unwrap_or(0);
        let shift = (u64::BITS - most.leading_zeros()).saturating_sub(u32::BITS);
        let section = |place: &SectionPlace| SectionOptions {
            scheme: place.scheme,
            ..SectionOptions::new(&place.name, (place.blocks >> shift) as u32, u64::from(place.extent_blocks) * BLOCK)
        };
        Self {
            ring_bytes: division.ring_blocks * BLOCK,
            stripe_bytes: division.stripe * BLOCK,
            sections: division.sections.iter().map(section).collect(),
        }
    }

    /// Divides a disk of `bytes`.
    pub(super) fn divide(&self, bytes: u64) -> Result<Division> {
        if !self.stripe_bytes.is_power_of_two() || self.stripe_bytes < BLOCK || self.stripe_bytes > 1 << 30 {
            return Err(invalid(format!(
                "a stripe of {} bytes: it must be a power of two from {BLOCK} to 1 GiB",
                self.stripe_bytes
            )));
        }
        let (blocks, stripe) = (bytes / BLOCK, self.stripe_bytes / BLOCK);
        let up = |blocks: u64| blocks.next_multiple_of(stripe);
        let ring_first = up(2);
        let ring_blocks = up((self.ring_bytes / BLOCK).max(8));
        let slot_first = ring_first.saturating_add(ring_blocks);
        // An entry for every block there could be, and a block for their heading.
        let slot_blocks = up(1 + (blocks * super::format::ENTRY_BYTES).div_ceil(BLOCK));
        let first = slot_first.saturating_add(2 * slot_blocks);
        let mut division =
            Division { blocks, stripe, ring_first, ring_blocks, slot_first, slot_blocks, sections: Vec::new() };
        division.sections = divide_sections(&self.sections, first, blocks.saturating_sub(first), stripe)?;
        Ok(division)
    }
}

/// Divides `blocks` from `first` on among sections.
pub(super) fn divide_sections(
    wanted: &[SectionOptions],
    first: u64,
    blocks: u64,
    stripe: u64,
) -> Result<Vec<SectionPlace>> {
    if wanted.is_empty() || wanted.len() > MOST_SECTIONS {
        return Err(invalid(format!("{} sections: there must be 1 to {MOST_SECTIONS}", wanted.len())));
    }
    let weights: u64 = wanted.iter().map(|section| u64::from(section.weight.max(1))).sum();
    let mut places = Vec::new();
    let mut next = first;
    for (number, section) in wanted.iter().enumerate() {
        let extent = section.extent_bytes;
        if !extent.is_power_of_two() || !EXTENT_BYTES.contains(&extent) {
            return Err(invalid(format!("extents of {extent} bytes: it must be a power of two from 16 KiB to 1 MiB")));
        }
        let is_named = (1..=NAME_BYTES).contains(&section.name.len());
        if !is_named || wanted.iter().skip(number + 1).any(|other| other.name == section.name) {
            return Err(invalid(format!("section {number} needs a name of its own of 1 to {NAME_BYTES} bytes")));
        }
        let unit = stripe.max(extent / BLOCK);
        let share = (u128::from(blocks) * u128::from(section.weight.max(1)) / u128::from(weights)) as u64;
        next = next.next_multiple_of(unit);
        let end = (first + blocks).min(next + share);
        let own = end.saturating_sub(next) / unit * unit;
        if own < 2 * unit {
            return Err(invalid(format!(
                "the disk is too small: section `{}` gets {own} blocks, and two extents or stripes are {}",
                section.name,
                2 * unit
            )));
        }
        places.push(SectionPlace {
            name: section.name.clone(),
            first: next,
            blocks: own,
            extent_blocks: (extent / BLOCK) as u32,
            scheme: section.scheme,
        });
        next += own;
    }
    Ok(places)
}
