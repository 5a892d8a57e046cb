//! The partition table as a value: which spaces there are, and whether they can be.

use crate::layout::{ENTRY_BYTES, HEADERS_END, PAGE_BYTES, SPACES_MAX};
use crate::place::{Extent, first_fit, joined};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_media::error::{Error, MediaErrorKind, Result};

/// Bytes of the longest name.
pub const NAME_MAX: usize = 31;

/// What a space is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// An image that is executed in place.
    Boot,
    /// Memory for a memory manager.
    Memory,
    /// A traditional file system, which sees it as a block device.
    FileSystem,
    /// The SCM manager: memory and files as one.
    Manager,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Boot, Self::Memory, Self::FileSystem, Self::Manager];

    /// The name in commands and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Boot => "boot",
            Self::Memory => "mm",
            Self::FileSystem => "fs",
            Self::Manager => "manager",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A space as the table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaceInfo {
    /// Its number, never given to another one.
    pub id: u64,
    /// Its name, at most [`NAME_MAX`] bytes.
    pub name: String,
    /// What it is for.
    pub kind: Kind,
    /// Whether it may only be read.
    pub read_only: bool,
    /// Where it begins in the region.
    pub start: u64,
    /// Its length in bytes.
    pub length: u64,
}

impl SpaceInfo {
    pub(super) const fn extent(&self) -> Extent {
        Extent { start: self.start, length: self.length }
    }
}

/// The whole table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) uuid: [u8; 16],
    /// Counts the changes.
    pub(super) generation: u64,
    /// Bytes of the region.
    pub(super) length: u64,
    /// What spaces begin at a multiple of.
    pub(super) alignment: u64,
    /// All bytes from here on were never part of a space and are zeros.
    pub(super) fresh_from: u64,
    pub(super) next_id: u64,
    /// Where the copies of the list of spaces lie.
    pub(super) lists: [u64; 2],
    /// Bytes that each of them has room for.
    pub(super) list_bytes: u64,
    pub(super) spaces: Vec<SpaceInfo>,
}

impl Table {
    /// All that is taken, in order.
    pub(super) fn taken(&self) -> Vec<Extent> {
        let mut taken = alloc::vec![Extent { start: 0, length: HEADERS_END }];
        taken.extend(self.lists.iter().map(|start| Extent { start: *start, length: self.list_bytes }));
        taken.extend(self.spaces.iter().map(SpaceInfo::extent));
        taken.sort_unstable_by_key(|extent| extent.start);
        taken
    }

    /// A place for a new space.
    pub(super) fn place(&self, length: u64) -> Option<u64> {
        first_fit(&self.taken(), self.length, length, self.alignment)
    }

    /// Which spaces have to go where, as (number, start), so that one of them can be `length` bytes
    /// long where it lies. Nothing if it can be so now, or elsewhere; `None` if there is no way.
    pub(super) fn way_for(&self, position: usize, length: u64) -> Option<Vec<(u64, u64)>> {
        let own = self.spaces.get(position)?;
        let wanted = Extent { start: own.start, length };
        let end = wanted.start.checked_add(length).filter(|end| *end <= self.length)?;
        let is_in_the_way = |space: &&SpaceInfo| (own.start + 1..end).contains(&space.start);
        let mut others: Vec<&SpaceInfo> = self.spaces.iter().filter(is_in_the_way).collect();
        if others.is_empty() || self.place(length).is_some() {
            return Some(Vec::new());
        }
        let mut taken = self.taken();
        taken.retain(|extent| extent.start != own.start);
        taken.push(wanted);
        // The largest is the hardest to place.
        others.sort_unstable_by_key(|space| core::cmp::Reverse(space.length));
        let mut way = Vec::new();
        for space in others {
            let start = first_fit(&joined(taken.clone()), self.length, space.length, self.alignment)?;
            way.push((space.id, start));
            taken.push(Extent { start, length: space.length });
        }
        // What is no space stays where it is.
        let is_free = self.lists.iter().all(|start| !(own.start..end).contains(start));
        is_free.then_some(way)
    }

    pub(super) fn position(&self, name: &str) -> Result<usize> {
        let found = self.spaces.iter().position(|space| space.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.spaces.iter().map(|space| space.name.as_str()).collect();
            let there =
                if names.is_empty() { "there is none".into() } else { format!("there are {}", names.join(", ")) };
            Error::new(MediaErrorKind::NoSuchSpace, format!("'{name}'; {there}"))
        })
    }

    /// Makes room for one more entry in the list, which may move it.
    pub(super) fn make_room_in_list(&mut self) -> Result<()> {
        if self.spaces.len() >= SPACES_MAX as usize {
            return Err(Error::new(MediaErrorKind::NoSpace, format!("a region has {SPACES_MAX} spaces at most")));
        }
        let needed = (self.spaces.len() + 1) * ENTRY_BYTES;
        if needed as u64 <= self.list_bytes {
            return Ok(());
        }
        let bytes = self.list_bytes * 2;
        let mut taken = self.taken();
        let mut lists = [0; 2];
        for start in &mut lists {
            *start = first_fit(&taken, self.length, bytes, PAGE_BYTES)
                .ok_or_else(|| self.full(bytes, "for a longer list of spaces"))?;
            taken.push(Extent { start: *start, length: bytes });
            taken.sort_unstable_by_key(|extent| extent.start);
            self.fresh_from = self.fresh_from.max(*start + bytes);
        }
        (self.lists, self.list_bytes) = (lists, bytes);
        Ok(())
    }

    /// The error of a region without room.
    pub(super) fn full(&self, wanted: u64, purpose: &str) -> Error {
        let largest = crate::place::largest(&self.taken(), self.length, self.alignment);
        let detail = format!("{wanted} bytes {purpose}; the longest free part has {largest}: grow the region first");
        Error::new(MediaErrorKind::NoSpace, detail)
    }

    /// What contradicts itself in a table that came from a medium.
    pub(super) fn contradiction(&self) -> Option<String> {
        if !matches!(self.alignment, PAGE_BYTES..=0x4000_0000) || !self.alignment.is_power_of_two() {
            return Some(format!("spaces are aligned to {} bytes", self.alignment));
        }
        if self.generation.max(self.next_id) > u64::MAX / 2 {
            return Some(format!("{} changes and {} spaces were made", self.generation, self.next_id));
        }
        for space in &self.spaces {
            let aligned = space.start.is_multiple_of(PAGE_BYTES) && space.length.is_multiple_of(PAGE_BYTES);
            let unique =
                self.spaces.iter().filter(|other| other.name == space.name || other.id == space.id).count() == 1;
            if !aligned || space.length == 0 || !unique || check_name(&space.name).is_err() || space.id >= self.next_id
            {
                return Some(format!("the entry of space '{}' is none", space.name.escape_default()));
            }
        }
        let mut end = 0;
        for extent in self.taken() {
            let next = extent.start.checked_add(extent.length).filter(|next| *next <= self.length);
            match next {
                Some(next) if extent.start >= end => end = next,
                _ => return Some(format!("bytes from {} on are taken twice, or outside", extent.start)),
            }
        }
        None
    }
}

/// Whether a name can be that of a space: it is a file name, too.
pub(super) fn check_name(name: &str) -> Result<()> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '+');
    if name.is_empty() || name.len() > NAME_MAX || name.starts_with(['.', '-']) || !name.chars().all(is_plain) {
        let detail = format!(
            "'{}' is no name of a space: 1 to {NAME_MAX} letters, digits and any of - _ . + but no - or . at the start",
            name.escape_default()
        );
        return Err(Error::new(MediaErrorKind::Invalid, detail));
    }
    Ok(())
}
