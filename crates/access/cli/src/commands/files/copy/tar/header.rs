//! A header of an archive as it stands there: one block.

use super::BLOCK_BYTES;
use super::MemberKind;
use crate::commands::files::copy::Special;
use onode_base::Timestamp;
use onode_fs::FileType;
use rustix::fs::{major, makedev, minor};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use tar::{EntryType, Header};

/// Numbers that the octal digits of a header hold: of a user or group, and of a size or time.
pub const IDS_END: u64 = 1 << 21;
/// As [`IDS_END`].
pub const SIZES_END: u64 = 1 << 33;

/// What a header says.
#[derive(Clone, Debug)]
pub struct Said {
    /// The letter of the type.
    pub letter: u8,
    /// The name, with what stands before it.
    pub name: Vec<u8>,
    /// The name that a link leads to.
    pub link: Vec<u8>,
    /// Bytes that follow.
    pub stored: u64,
    /// Permission bits.
    pub permissions: u16,
    /// Owner.
    pub uid: u64,
    /// Group.
    pub gid: u64,
    /// Last change of the content.
    pub modified: Timestamp,
    /// The number of a device.
    pub device: u64,
}

/// Reads a header; nothing if it is none. Its sum has to be right.
pub fn read(block: &[u8; BLOCK_BYTES]) -> Option<Said> {
    let header = Header::from_byte_slice(block);
    let is_sum = |byte: usize| (148..156).contains(&byte);
    let bytes = block.iter().enumerate().map(|(at, byte)| if is_sum(at) { b' ' } else { *byte });
    let sum: u32 = bytes.clone().map(u32::from).sum();
    // Some old writers took bytes for signed ones.
    let signed: i64 = bytes.map(|byte| i64::from(byte as i8)).sum();
    let said = header.cksum().ok()?;
    if said != sum && i64::from(said) != signed {
        return None;
    }
    // A field that is empty is no number, and of a link nobody needs the size.
    let or_zero = |field: &[u8], number: std::io::Result<u64>| {
        if field.iter().all(|byte| matches!(byte, 0 | b' ')) { Some(0) } else { number.ok() }
    };
    let old = header.as_old();
    let device = |number: std::io::Result<Option<u32>>| number.ok().flatten().unwrap_or(0);
    let letter = header.entry_type().as_byte();
    Some(Said {
        letter,
        name: name(header),
        link: until_zero(&old.linkname).to_vec(),
        stored: if letter == b'1' { 0 } else { or_zero(&old.size, header.entry_size())? },
        permissions: (or_zero(&old.mode, header.mode().map(u64::from))? & 0o7777) as u16,
        uid: or_zero(&old.uid, header.uid())?,
        gid: or_zero(&old.gid, header.gid())?,
        // A time before 1970 is the same bits.
        modified: Timestamp { seconds: or_zero(&old.mtime, header.mtime())? as i64, nanoseconds: 0 },
        device: makedev(device(header.device_major()), device(header.device_minor())),
    })
}

fn until_zero(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The name in the header alone. GNU tar has other things where POSIX has the beginning of it.
fn name(header: &Header) -> Vec<u8> {
    let mut whole = match header.as_ustar().map(|posix| until_zero(&posix.prefix)) {
        Some(prefix) if !prefix.is_empty() => [prefix, b"/"].concat(),
        _ => Vec::new(),
    };
    whole.extend_from_slice(until_zero(&header.as_old().name));
    whole
}

impl Said {
    /// What the member is, whose name and link may be longer than the header has them.
    pub fn kind(&self, name: &[u8], link: Vec<u8>) -> MemberKind {
        let special = |file_type, device| MemberKind::Special(Special { file_type, device });
        match self.letter {
            // Before there were types a directory had a slash at its end.
            0 | b'0' | b'7' | b'S' if name.ends_with(b"/") => MemberKind::Directory,
            0 | b'0' | b'7' | b'S' => MemberKind::File,
            b'1' => MemberKind::Name(link),
            b'2' => MemberKind::Link(OsString::from_vec(link)),
            b'3' => special(FileType::CharacterDevice, self.device),
            b'4' => special(FileType::BlockDevice, self.device),
            // Of an incremental archive, with a list of names as its content.
            b'5' | b'D' => MemberKind::Directory,
            b'6' => special(FileType::Fifo, 0),
            letter => MemberKind::Unknown(letter),
        }
    }

    /// Writes the header; names and numbers that it does not hold are in records before it.
    pub fn write(&self) -> [u8; BLOCK_BYTES] {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::new(self.letter));
        let old = header.as_old_mut();
        old.name = cut(&self.name);
        old.linkname = cut(&self.link);
        let held = |number: u64, end: u64| if number < end { number } else { 0 };
        header.set_mode(u32::from(self.permissions));
        header.set_uid(held(self.uid, IDS_END));
        header.set_gid(held(self.gid, IDS_END));
        header.set_size(held(self.stored, SIZES_END));
        let seconds = u64::try_from(self.modified.seconds).unwrap_or(0);
        header.set_mtime(held(seconds, SIZES_END));
        if matches!(self.letter, b'3' | b'4') {
            // A header of this form has these fields.
            let _ = header.set_device_major(major(self.device));
            let _ = header.set_device_minor(minor(self.device));
        }
        header.set_cksum();
        *header.as_bytes()
    }
}

/// As much of a name as a field holds.
fn cut(name: &[u8]) -> [u8; 100] {
    let mut field = [0; 100];
    field.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
    field
}
