//! Writing an archive: headers, with records for what they do not hold, and blocks of content.

use super::header::{IDS_END, SIZES_END, Said};
use super::records::{self, PaxRecord};
use super::{BLOCK_BYTES, Member, MemberKind, sparse};
use onode::Result;
use onode_fs::FileType;
use std::os::unix::ffi::OsStrExt;

/// Bytes that archives are a multiple of, for tapes and for programs that read such pieces.
const RECORD_BYTES: u64 = 20 * BLOCK_BYTES as u64;
/// Bytes that are given away at once.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes of a name that a header holds.
const NAME_BYTES_MAX: usize = 100;

/// Takes bytes; tells whether anybody still reads them.
type Put<'a> = dyn FnMut(&[u8]) -> Result<bool> + 'a;

/// An archive that is being written.
pub struct Writer<'a> {
    put: Box<Put<'a>>,
    /// What it was not given yet.
    kept: Vec<u8>,
    written: u64,
    is_read: bool,
}

impl<'a> Writer<'a> {
    /// One whose bytes `put` takes, and tells whether anybody still reads them.
    pub fn new(put: impl FnMut(&[u8]) -> Result<bool> + 'a) -> Self {
        Self { put: Box::new(put), kept: Vec::new(), written: 0, is_read: true }
    }

    /// Whether anybody still reads it.
    pub const fn is_read(&self) -> bool {
        self.is_read
    }

    /// Writes bytes of a file.
    pub fn content(&mut self, bytes: &[u8]) -> Result<()> {
        self.kept.extend_from_slice(bytes);
        self.written += bytes.len() as u64;
        if self.kept.len() < PIECE_BYTES { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<()> {
        if self.is_read {
            self.is_read = (self.put)(&self.kept)?;
        }
        self.kept.clear();
        Ok(())
    }

    /// Fills the last block up.
    pub fn pad(&mut self) -> Result<()> {
        self.pad_to(BLOCK_BYTES as u64)
    }

    fn pad_to(&mut self, unit: u64) -> Result<()> {
        let missing = self.written.next_multiple_of(unit) - self.written;
        self.content(&vec![0; missing as usize])
    }

    /// Writes what comes before the content of a member.
    pub(super) fn member(&mut self, member: &Member) -> Result<()> {
        let is_whole = member.map.iter().map(|range| range.end - range.start).sum::<u64>() == member.size;
        let map = if is_whole { Vec::new() } else { sparse::text(&member.map, member.size) };
        let data: u64 = member.map.iter().map(|range| range.end - range.start).sum();
        let said = said(member, map.len() as u64 + data);
        let mut records = records_of(member, &said);
        if !map.is_empty() {
            records.push(PaxRecord::new("GNU.sparse.major", "1"));
            records.push(PaxRecord::new("GNU.sparse.minor", "0"));
            records.push(PaxRecord::new("GNU.sparse.name", said.name.clone()));
            records.push(PaxRecord::new("GNU.sparse.realsize", member.size.to_string()));
        }
        if !records.is_empty() {
            let records = records::write(&records);
            let header = Said {
                letter: b'x',
                name: [b"PaxHeaders/", last(&said.name)].concat(),
                link: Vec::new(),
                stored: records.len() as u64,
                permissions: 0o644,
                device: 0,
                ..said.clone()
            };
            self.content(&header.write())?;
            self.content(&records)?;
            self.pad()?;
        }
        let name = if map.is_empty() { said.name } else { [sparse::NAME_PREFIX, last(&said.name)].concat() };
        self.content(&Said { name, ..said }.write())?;
        self.content(&map)
    }

    /// Writes the end.
    pub fn finish(&mut self) -> Result<()> {
        self.content(&[0; 2 * BLOCK_BYTES])?;
        self.pad_to(RECORD_BYTES)?;
        self.flush()
    }
}

/// The last part of a name.
fn last(name: &[u8]) -> &[u8] {
    let name = name.strip_suffix(b"/").unwrap_or(name);
    name.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

fn said(member: &Member, stored: u64) -> Said {
    let (letter, link, device) = match &member.kind {
        MemberKind::File => (b'0', Vec::new(), 0),
        MemberKind::Directory => (b'5', Vec::new(), 0),
        MemberKind::Link(target) => (b'2', target.as_bytes().to_vec(), 0),
        MemberKind::Name(of) => (b'1', of.clone(), 0),
        MemberKind::Special(special) => match special.file_type {
            FileType::CharacterDevice => (b'3', Vec::new(), special.device),
            FileType::BlockDevice => (b'4', Vec::new(), special.device),
            _ => (b'6', Vec::new(), 0),
        },
        MemberKind::Unknown(letter) => (*letter, Vec::new(), 0),
    };
    Said {
        letter,
        name: member.name.clone(),
        link,
        stored,
        permissions: member.permissions,
        uid: member.uid.into(),
        gid: member.gid.into(),
        modified: member.modified,
        device,
    }
}

/// What the header does not hold.
fn records_of(member: &Member, said: &Said) -> Vec<PaxRecord> {
    let mut records = Vec::new();
    if [&said.name, &said.link].iter().any(|name| std::str::from_utf8(name).is_err()) {
        records.push(PaxRecord::new("hdrcharset", "BINARY"));
    }
    if said.name.len() > NAME_BYTES_MAX {
        records.push(PaxRecord::new("path", said.name.clone()));
    }
    if said.link.len() > NAME_BYTES_MAX {
        records.push(PaxRecord::new("linkpath", said.link.clone()));
    }
    if said.stored >= SIZES_END {
        records.push(PaxRecord::new("size", said.stored.to_string()));
    }
    for (key, id) in [("uid", said.uid), ("gid", said.gid)] {
        if id >= IDS_END {
            records.push(PaxRecord::new(key, id.to_string()));
        }
    }
    let is_held = u64::try_from(said.modified.seconds).is_ok_and(|seconds| seconds < SIZES_END);
    if said.modified.nanoseconds != 0 || !is_held {
        records.push(PaxRecord::new("mtime", records::time_text(said.modified)));
    }
    records.extend(member.xattrs.iter().map(|xattr| PaxRecord::of_xattr(&xattr.name, &xattr.value)));
    records
}
