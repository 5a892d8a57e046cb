//! Reading an archive: one member after the other, with its content.

use super::header::{self, Said};
use super::records::{self, PaxRecord};
use super::sparse::{self, Map, MapReader, RANGES_MAX, Stored};
use super::{BLOCK_BYTES, Member, MemberKind};
use crate::commands::files::copy::Xattr;
use onode::{Class, Error, Result};
use onode_base::Timestamp;
use std::io::Read;
use std::ops::Range;
use tar::{GnuExtSparseHeader, GnuSparseHeader, Header};

/// Bytes that a long name or the records of one member may take.
const EXTENSION_BYTES_MAX: u64 = 64 << 20;
/// What other forms of archives begin with.
const COMPRESSED: [(&[u8], &str, &str); 4] = [
    (b"\x1f\x8b", "gzip", "zcat"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstdcat"),
    (b"\xfd7zXZ\0", "xz", "xzcat"),
    (b"BZh", "bzip2", "bzcat"),
];

/// An archive that is being read.
pub struct Reader<'a> {
    input: Box<dyn Read + 'a>,
    /// How people know it.
    name: String,
    /// Bytes read so far.
    offset: u64,
    /// Bytes of the member at hand that were not read yet, and those that fill its last block up.
    left: u64,
    padding: u64,
    /// How the ranges of its content stand there.
    stored: Stored,
    /// Records that hold for all members.
    global: Vec<PaxRecord>,
}

/// What stands before a header and belongs to its member.
#[derive(Default)]
struct Extensions {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    records: Vec<PaxRecord>,
}

/// Where the content of a member belongs.
struct Layout {
    size: u64,
    map: Vec<Range<u64>>,
}

impl<'a> Reader<'a> {
    /// One that `input` has.
    pub fn new(input: impl Read + 'a, name: String) -> Self {
        Self {
            input: Box::new(input),
            name,
            offset: 0,
            left: 0,
            padding: 0,
            stored: Stored::InBlocks,
            global: Vec::new(),
        }
    }

    /// Bytes read so far.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// What is wrong with the archive.
    pub fn fault(&self, why: &str) -> Error {
        let what = format!("cannot read the archive {}", self.name);
        let hint = "get it again, or look at it with `tar -tvf`";
        Error::new(Class::Damaged, what, format!("{why}, at byte {}", self.offset)).hint(hint)
    }

    /// The next member; nothing at the end of the archive.
    pub(super) fn next(&mut self) -> Result<Option<Member>> {
        self.skip()?;
        let mut extensions = Extensions::default();
        loop {
            let begins = self.offset == 0;
            let mut block = [0; BLOCK_BYTES];
            let length = self.fill(&mut block)?;
            if begins && length > 0 {
                self.check_beginning(block.get(..length).unwrap_or_default())?;
            }
            if length < BLOCK_BYTES {
                let why = if begins { "it is empty" } else { "it is cut off: its end is missing" };
                return Err(self.fault(why));
            }
            if block.iter().all(|byte| *byte == 0) {
                self.drain()?;
                return Ok(None);
            }
            let Some(said) = header::read(&block) else {
                return Err(self.fault("it is damaged: there is no header of a member"));
            };
            match said.letter {
                b'L' => extensions.name = Some(self.long_name(&said)?),
                b'K' => extensions.link = Some(self.long_name(&said)?),
                b'x' | b'X' => extensions.records.extend(self.records(&said)?),
                b'g' => {
                    let records = self.records(&said)?;
                    self.global.extend(records);
                }
                // The label of the archive.
                b'V' => {
                    self.begin(said.stored);
                    self.skip()?;
                }
                _ => return self.member(&said, extensions, &block).map(Some),
            }
        }
    }

    /// Reads content of the member at hand; 0 at its end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let length = self.fill(buffer.get_mut(..wanted).unwrap_or_default())?;
        if length < wanted {
            return Err(self.fault("it is cut off within a file"));
        }
        self.left -= length as u64;
        Ok(length)
    }

    /// Passes what stands behind a range of so many bytes of the member at hand.
    pub(super) fn end_range(&mut self, length: u64) -> Result<()> {
        let padding = self.stored.padding(length).min(self.left) as usize;
        self.read(&mut vec![0; padding]).map(drop)
    }

    fn check_beginning(&self, block: &[u8]) -> Result<()> {
        let what = || format!("cannot read {}", self.name);
        if let Some((_, form, command)) = COMPRESSED.iter().find(|(mark, ..)| block.starts_with(mark)) {
            let why = format!("it is compressed with {form}");
            return Err(Error::new(Class::Usage, what(), why)
                .hint(format!("{command} ARCHIVE | onode put --tar IMAGE - /DIRECTORY")));
        }
        let is_header = block.try_into().is_ok_and(|block| header::read(block).is_some());
        if is_header || block.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        Err(Error::new(Class::Usage, what(), "it is no tar archive")
            .hint("leave --tar out to copy a file as it is; `tar -tf` lists what an archive holds"))
    }

    /// Fills the buffer, but for the end of the archive.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.input.read(rest) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::host(format!("cannot read {}", self.name), &error)),
            }
        }
        self.offset += filled as u64;
        Ok(filled)
    }

    const fn begin(&mut self, stored: u64) {
        self.left = stored;
        self.padding = stored.wrapping_neg() % BLOCK_BYTES as u64;
    }

    /// Passes what is left of the member at hand.
    fn skip(&mut self) -> Result<()> {
        self.left = self.left.saturating_add(std::mem::take(&mut self.padding));
        let mut buffer = vec![0; if self.left > 0 { 64 << 10 } else { 0 }];
        while self.left > 0 {
            self.read(&mut buffer)?;
        }
        Ok(())
    }

    /// Reads what follows the end, so that who writes it can do so.
    fn drain(&mut self) -> Result<()> {
        let mut buffer = vec![0; 64 << 10];
        while self.fill(&mut buffer)? > 0 {}
        Ok(())
    }

    /// The whole content of a member that is about another one.
    fn extension(&mut self, said: &Said) -> Result<Vec<u8>> {
        if said.stored > EXTENSION_BYTES_MAX {
            return Err(self.fault("it is damaged: a name or record in it is too long"));
        }
        self.begin(said.stored);
        let mut bytes = vec![0; said.stored as usize];
        let length = self.read(&mut bytes)?;
        bytes.truncate(length);
        self.skip()?;
        Ok(bytes)
    }

    fn long_name(&mut self, said: &Said) -> Result<Vec<u8>> {
        let mut name = self.extension(said)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        name.truncate(end);
        Ok(name)
    }

    fn records(&mut self, said: &Said) -> Result<Vec<PaxRecord>> {
        let bytes = self.extension(said)?;
        records::parse(&bytes).ok_or_else(|| self.fault("it is damaged: there is no record of a PAX header"))
    }

    fn member(&mut self, said: &Said, extensions: Extensions, block: &[u8; BLOCK_BYTES]) -> Result<Member> {
        let mut all = self.global.clone();
        all.extend(extensions.records);
        let wrong = |reader: &Self, key: &str| reader.fault(&format!("it is damaged: {key} of a member is wrong"));
        // The last one counts, and an empty one takes back what was said before.
        let value = |key: &str| all.iter().rfind(|record| record.key == key.as_bytes());
        let number = |key: &str, usual: u64| match value(key) {
            Some(record) if !record.value.is_empty() => record.number().ok_or_else(|| wrong(self, key)),
            _ => Ok(usual),
        };
        let text = |key: &str| value(key).map(|record| record.value.clone()).filter(|text| !text.is_empty());
        let modified = match value("mtime").filter(|record| !record.value.is_empty()) {
            Some(record) => records::time(&record.value).ok_or_else(|| wrong(self, "mtime"))?,
            None => said.modified,
        };
        let name = text("GNU.sparse.name").or_else(|| text("path")).or(extensions.name);
        let name = name.unwrap_or_else(|| said.name.clone());
        let link = text("linkpath").or(extensions.link).unwrap_or_else(|| said.link.clone());
        let kind = said.kind(&name, link);
        let stored = if matches!(kind, MemberKind::Name(_)) { 0 } else { number("size", said.stored)? };
        let id =
            |key: &str, usual: u64| number(key, usual).and_then(|id| u32::try_from(id).map_err(|_| wrong(self, key)));
        let (uid, gid) = (id("uid", said.uid)?, id("gid", said.gid)?);
        let xattrs = all.iter().filter_map(|record| {
            let name = record.xattr()?;
            Some(Xattr { name, value: record.value.clone() })
        });
        let xattrs = xattrs.collect();
        let has_worded_acl = all.iter().any(|record| record.key.starts_with(b"SCHILY.acl."));
        self.begin(stored);
        let Layout { size, map } = self.layout(said, block, &all)?;
        let permissions = said.permissions;
        check_time(modified).ok_or_else(|| wrong(self, "mtime"))?;
        Ok(Member { name, kind, size, map, permissions, uid, gid, modified, xattrs, has_worded_acl })
    }

    /// Where the content belongs; what stands before it of a map is read.
    fn layout(&mut self, said: &Said, block: &[u8; BLOCK_BYTES], records: &[PaxRecord]) -> Result<Layout> {
        let number =
            |key: &str| records.iter().rfind(|record| record.key == key.as_bytes()).and_then(PaxRecord::number);
        let (map, size) = if said.letter == b'S' {
            self.old_map(block)?
        } else if number("GNU.sparse.major") == Some(1) {
            (self.map_before_content()?, number("GNU.sparse.realsize"))
        } else if sparse::is_in(records) {
            (sparse::of_records(records), number("GNU.sparse.size"))
        } else {
            let whole = (self.left > 0).then_some(0..self.left);
            return Ok(Layout { size: self.left, map: whole.into_iter().collect() });
        };
        self.stored = Stored::in_member(&said.name);
        let counted = self.left;
        let layout = map.zip(size).and_then(|(map, size)| {
            let map = map.finish(size, counted)?;
            Some((self.stored.bytes(&map)?, Layout { size, map }))
        });
        let (stored, layout) =
            layout.ok_or_else(|| self.fault("it is damaged: the map of a file with holes is wrong"))?;
        self.begin(stored);
        Ok(layout)
    }

    /// The map of GNU tar's own format: in the header, and in blocks behind it.
    fn old_map(&mut self, block: &[u8; BLOCK_BYTES]) -> Result<(Option<Map>, Option<u64>)> {
        let Some(gnu) = Header::from_byte_slice(block).as_gnu() else { return Ok((None, None)) };
        let mut map = Map::default();
        let mut add = |part: &GnuSparseHeader| {
            part.offset[0] == 0
                || part.offset().is_ok_and(|offset| part.length().is_ok_and(|length| map.add(offset, length)))
        };
        let mut is_right = gnu.sparse.iter().all(&mut add);
        let mut goes_on = gnu.is_extended();
        let mut blocks = 0;
        while goes_on && is_right {
            let mut more = GnuExtSparseHeader::new();
            blocks += 1;
            if self.fill(more.as_mut_bytes())? < BLOCK_BYTES {
                return Err(self.fault("it is cut off within a file"));
            }
            is_right = more.sparse().iter().all(&mut add) && blocks <= RANGES_MAX;
            goes_on = more.is_extended();
        }
        Ok((is_right.then_some(map), gnu.real_size().ok()))
    }

    fn map_before_content(&mut self) -> Result<Option<Map>> {
        let mut map = MapReader::default();
        loop {
            let mut block = [0; BLOCK_BYTES];
            if self.read(&mut block)? < BLOCK_BYTES {
                return Ok(None);
            }
            match map.take(&block) {
                Some(true) => return Ok(map.map()),
                Some(false) => {}
                None => return Ok(None),
            }
        }
    }
}

/// A time that can be stored.
const fn check_time(time: Timestamp) -> Option<()> {
    if time.nanoseconds < 1_000_000_000 { Some(()) } else { None }
}
