//! A table made anew, where both copies are lost and somebody knows where a space lies.

use crate::layout::{HEADERS_END, PAGE_BYTES};
use crate::region::{LARGE_PAGE_BYTES, LARGE_REGION, LENGTH_MIN, Region};
use crate::table::{Kind, SpaceInfo, Table, check_name};
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use core::ops::Range;
use onode_media::error::{Error, MediaErrorKind, Result};
use onode_media::pmem::Pmem;

/// A space that is known without the table.
#[derive(Clone, Debug)]
pub struct KnownSpace<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is for.
    pub kind: Kind,
    /// Where it lies, in bytes of the memory.
    pub place: Range<u64>,
}

impl<P: Pmem> Region<P> {
    /// The region of a memory whose table is lost, with the one space that is known of; what lies
    /// outside of it is free. With `store` its table is stored, else the memory stays as it is
    /// until the next change.
    ///
    /// # Errors
    /// `Invalid` if no such space can be, and those of the memory.
    pub fn restore(pmem: P, uuid: [u8; 16], known: &KnownSpace<'_>, store: bool) -> Result<Self> {
        let KnownSpace { name, kind, place } = known;
        check_name(name)?;
        let length = pmem.length() - pmem.length() % PAGE_BYTES;
        let info = SpaceInfo {
            id: 1,
            name: name.to_string(),
            kind: *kind,
            read_only: false,
            start: place.start,
            length: place.end.saturating_sub(place.start),
        };
        let table = Table {
            uuid,
            generation: 0,
            length,
            alignment: if length >= LARGE_REGION { LARGE_PAGE_BYTES } else { PAGE_BYTES },
            fresh_from: length,
            next_id: 2,
            lists: [HEADERS_END, HEADERS_END + PAGE_BYTES],
            list_bytes: PAGE_BYTES,
            spaces: vec![info],
        };
        let wrong = if length < LENGTH_MIN { Some(format!("{length} bytes")) } else { table.contradiction() };
        match wrong {
            Some(what) => Err(Error::new(MediaErrorKind::Invalid, what)),
            None => Self::with_table(pmem, table, store),
        }
    }
}
