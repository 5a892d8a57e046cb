//! The inode: one small attribute of the file's object (`docs/format/fs.md`).
//!
//! Flash counts bytes, so what has its usual value is left out and times are written as distances.
//! The size of a file is the size of its object and is not kept a second time. There are two forms:
//! the *dense* one of newer volumes, and the older one, which can tell every moment there is. A
//! file takes over the form of its directory, so a volume keeps that of its root. In its form every
//! inode has exactly one encoding, and [`Inode::decode`] accepts nothing else.

use crate::types::FileType;
use onode_base::{Timestamp, varint};
use onode_object::{AttributeKey, AttributeKind};

/// Where an object keeps its inode.
pub(crate) const INODE_KEY: AttributeKey = AttributeKey::new(AttributeKind::INODE, 0);

const VERSION: u8 = 0;
/// Of the dense form.
const DENSE: u8 = 1;

const HAS_OWNER: u8 = 1 << 0;
const HAS_LINKS: u8 = 1 << 1;
const HAS_MODIFIED: u8 = 1 << 2;
const HAS_CHANGED: u8 = 1 << 3;
const HAS_ACCESSED: u8 = 1 << 4;
const HAS_XATTRS: u8 = 1 << 5;
/// Dense only: the group has the number of the user and is left out.
const SAME_GROUP: u8 = 1 << 6;
const HAS_TREE: u8 = 1 << 7;

/// Bits of the nanoseconds in the time of a birth, dense.
const NANOSECOND_BITS: u32 = 30;

/// What is kept of a file besides its bytes, names and extended attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// What it is.
    pub file_type: FileType,
    /// Permission bits, setuid, setgid, sticky.
    pub permissions: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Names that lead to it; for a directory 2 and one for each directory in it.
    pub links: u32,
    /// Device number of a device node, else 0.
    pub device: u64,
    /// When it was made.
    pub created: Timestamp,
    /// Last change of the content.
    pub modified: Timestamp,
    /// Last change of anything.
    pub changed: Timestamp,
    /// Last read.
    pub accessed: Timestamp,
    /// Of a directory: the directory it is in; the root is in itself. Else 0.
    pub parent: u64,
    /// Of a directory: names in it. Else 0.
    pub entries: u64,
    /// Whether it ever had extended attributes; if not, nobody needs to look for them.
    pub has_xattrs: bool,
    /// The directory tree with a limit that it was made in, by the tree's own number; 0 for none.
    /// Of a tree that has no limit any more it means nothing.
    pub tree: u64,
    /// Whether it is stored in the dense form where that can hold it.
    pub(crate) is_dense: bool,
}

impl Inode {
    /// A fresh inode, all times `now`.
    pub(crate) fn new(file_type: FileType, permissions: u16, now: Timestamp) -> Self {
        Self {
            file_type,
            permissions,
            uid: 0,
            gid: 0,
            links: usual_links(file_type),
            device: 0,
            created: now,
            modified: now,
            changed: now,
            accessed: now,
            parent: 0,
            entries: 0,
            has_xattrs: false,
            tree: 0,
            is_dense: false,
        }
    }

    /// Whether it is a directory.
    pub(crate) fn is_directory(&self) -> bool {
        self.file_type == FileType::Directory
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let times = if self.is_dense { self.dense_times() } else { None };
        let is_dense = times.is_some();
        let mut out = Vec::with_capacity(48);
        let has_owner = self.uid != 0 || self.gid != 0;
        let flag = |flag: u8, present: bool| if present { flag } else { 0 };
        let flags = flag(HAS_OWNER, has_owner)
            | flag(HAS_LINKS, self.links != usual_links(self.file_type))
            | flag(HAS_MODIFIED, self.modified != self.created)
            | flag(HAS_CHANGED, self.changed != self.modified)
            | flag(HAS_ACCESSED, self.accessed != self.created)
            | flag(HAS_XATTRS, self.has_xattrs)
            | flag(SAME_GROUP, is_dense && has_owner && self.uid == self.gid)
            | flag(HAS_TREE, self.tree != 0);
        out.push((if is_dense { DENSE } else { VERSION }) << 4 | self.file_type as u8);
        out.push(flags);
        varint::put(&mut out, u64::from(self.permissions));
        match &times {
            Some(times) => out.extend_from_slice(&times.created.to_le_bytes()),
            None => put_time(&mut out, Timestamp::default(), self.created),
        }
        if flags & HAS_OWNER != 0 {
            varint::put(&mut out, u64::from(self.uid));
            if flags & SAME_GROUP == 0 {
                varint::put(&mut out, u64::from(self.gid));
            }
        }
        if flags & HAS_LINKS != 0 {
            varint::put(&mut out, u64::from(self.links));
        }
        let later = [
            (HAS_MODIFIED, self.created, self.modified),
            (HAS_CHANGED, self.modified, self.changed),
            (HAS_ACCESSED, self.created, self.accessed),
        ];
        for (i, (flag, base, time)) in later.into_iter().enumerate() {
            match &times {
                _ if flags & flag == 0 => {}
                Some(times) => put_signed(&mut out, times.distances[i]),
                None => put_time(&mut out, base, time),
            }
        }
        if flags & HAS_TREE != 0 {
            varint::put(&mut out, self.tree);
        }
        match self.file_type {
            FileType::Directory => {
                varint::put(&mut out, self.parent);
                varint::put(&mut out, self.entries);
            }
            FileType::CharacterDevice | FileType::BlockDevice => varint::put(&mut out, self.device),
            FileType::Regular | FileType::SymbolicLink | FileType::Fifo | FileType::Socket => {}
        }
        out
    }

    /// The times in their dense form, if they have one.
    fn dense_times(&self) -> Option<DenseTimes> {
        let seconds =
            u64::try_from(self.created.seconds).ok().filter(|seconds| seconds >> (64 - NANOSECOND_BITS) == 0)?;
        Some(DenseTimes {
            created: seconds << NANOSECOND_BITS | u64::from(self.created.nanoseconds),
            distances: [
                nanoseconds_between(self.created, self.modified)?,
                nanoseconds_between(self.modified, self.changed)?,
                nanoseconds_between(self.created, self.accessed)?,
            ],
        })
    }

    /// The inode that `bytes` stand for; `None` if they stand for none.
    #[must_use]
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let whole = bytes;
        let input = &mut bytes;
        let (&head, &flags) = (input.first()?, input.get(1)?);
        *input = input.get(2..)?;
        let is_dense = match head >> 4 {
            VERSION => false,
            DENSE => true,
            _ => return None,
        };
        let time = |input: &mut &[u8], base: Timestamp| {
            if is_dense { later(base, take_signed(input)?) } else { take_time(input, base) }
        };
        let file_type = FileType::from_byte(head & 0xf)?;
        let permissions = u16::try_from(varint::take(input)?).ok().filter(|bits| *bits <= 0o7777)?;
        let created = if is_dense { take_birth(input)? } else { take_time(input, Timestamp::default())? };
        let mut inode = Self { is_dense, ..Self::new(file_type, permissions, created) };
        if flags & HAS_OWNER != 0 {
            inode.uid = u32::try_from(varint::take(input)?).ok()?;
            let same = flags & SAME_GROUP != 0;
            inode.gid = if same { inode.uid } else { u32::try_from(varint::take(input)?).ok()? };
        }
        if flags & HAS_LINKS != 0 {
            inode.links = u32::try_from(varint::take(input)?).ok()?;
        }
        if flags & HAS_MODIFIED != 0 {
            inode.modified = time(input, inode.created)?;
        }
        inode.changed = if flags & HAS_CHANGED != 0 { time(input, inode.modified)? } else { inode.modified };
        if flags & HAS_ACCESSED != 0 {
            inode.accessed = time(input, inode.created)?;
        }
        inode.has_xattrs = flags & HAS_XATTRS != 0;
        if flags & HAS_TREE != 0 {
            inode.tree = varint::take(input)?;
        }
        match file_type {
            FileType::Directory => {
                inode.parent = varint::take(input)?;
                inode.entries = varint::take(input)?;
            }
            FileType::CharacterDevice | FileType::BlockDevice => inode.device = varint::take(input)?,
            FileType::Regular | FileType::SymbolicLink | FileType::Fifo | FileType::Socket => {}
        }
        // One inode, one encoding: unknown flags, needless fields and trailing bytes are refused.
        (input.is_empty() && inode.encode() == whole).then_some(inode)
    }

    /// Tells apart two files that had the same number across a crash: made from the birth time, so
    /// it costs no byte.
    pub(crate) const fn generation(&self) -> u32 {
        (self.created.seconds as u32).rotate_left(16) ^ self.created.nanoseconds
    }
}

const fn usual_links(file_type: FileType) -> u32 {
    if matches!(file_type, FileType::Directory) { 2 } else { 1 }
}

/// The times of a dense inode: of the birth the seconds above the nanoseconds, of the others
/// distances in nanoseconds.
struct DenseTimes {
    created: u64,
    distances: [i64; 3],
}

fn nanoseconds_between(base: Timestamp, time: Timestamp) -> Option<i64> {
    let seconds = time.seconds.checked_sub(base.seconds)?.checked_mul(1_000_000_000)?;
    seconds.checked_add(i64::from(time.nanoseconds) - i64::from(base.nanoseconds))
}

/// The moment so many nanoseconds after `base`.
fn later(base: Timestamp, distance: i64) -> Option<Timestamp> {
    let nanoseconds = i128::from(base.nanoseconds) + i128::from(distance);
    let seconds = i64::try_from(nanoseconds.div_euclid(1_000_000_000)).ok()?;
    let nanoseconds = u32::try_from(nanoseconds.rem_euclid(1_000_000_000)).ok()?;
    Some(Timestamp { seconds: base.seconds.checked_add(seconds)?, nanoseconds })
}

fn take_birth(input: &mut &[u8]) -> Option<Timestamp> {
    let (word, rest) = input.split_first_chunk::<8>()?;
    *input = rest;
    let word = u64::from_le_bytes(*word);
    let nanoseconds = (word & ((1 << NANOSECOND_BITS) - 1)) as u32;
    (nanoseconds < 1_000_000_000).then_some(Timestamp { seconds: (word >> NANOSECOND_BITS) as i64, nanoseconds })
}

/// Small distances are short in both directions.
fn put_signed(out: &mut Vec<u8>, distance: i64) {
    varint::put(out, varint::zigzag(distance.cast_unsigned()));
}

fn take_signed(input: &mut &[u8]) -> Option<i64> {
    varint::take(input).map(|number| varint::unzigzag(number).cast_signed())
}

fn put_time(out: &mut Vec<u8>, base: Timestamp, time: Timestamp) {
    put_signed(out, time.seconds.wrapping_sub(base.seconds));
    varint::put(out, u64::from(time.nanoseconds));
}

fn take_time(input: &mut &[u8], base: Timestamp) -> Option<Timestamp> {
    let distance = take_signed(input)?;
    let nanoseconds = u32::try_from(varint::take(input)?).ok().filter(|n| *n < 1_000_000_000)?;
    Some(Timestamp { seconds: base.seconds.wrapping_add(distance), nanoseconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_base::Prng;

    fn random_time(prng: &mut Prng) -> Timestamp {
        let seconds = match prng.below(4) {
            0 => 1_700_000_000 + prng.below(1000) as i64,
            1 => -(prng.below(1 << 40) as i64),
            2 => (1 << 34) - 1,
            _ => prng.next_u64() as i64,
        };
        Timestamp { seconds, nanoseconds: prng.below(1_000_000_000) as u32 }
    }

    fn random_inode(prng: &mut Prng) -> Inode {
        let file_type = FileType::ALL[prng.below(7) as usize];
        let mut inode = Inode::new(file_type, prng.below(0o10000) as u16, random_time(prng));
        for time in [&mut inode.modified, &mut inode.changed, &mut inode.accessed] {
            if prng.chance(1, 2) {
                *time = random_time(prng);
            }
        }
        if prng.chance(1, 2) {
            inode.uid = prng.next_u64() as u32;
            inode.gid = prng.next_u64() as u32;
            inode.links = prng.below(70_000) as u32;
        }
        if prng.chance(1, 4) {
            inode.gid = inode.uid;
        }
        inode.has_xattrs = prng.chance(1, 2);
        inode.tree = if prng.chance(1, 2) { prng.next_u64() } else { 0 };
        match file_type {
            FileType::Directory => (inode.parent, inode.entries) = (prng.next_u64(), prng.next_u64()),
            FileType::CharacterDevice | FileType::BlockDevice => inode.device = prng.next_u64(),
            _ => {}
        }
        inode
    }

    #[test]
    fn every_inode_comes_back_and_every_cut_or_flip_is_refused_or_different() {
        let mut prng = Prng::new(1);
        for round in 0..4000 {
            let mut inode = random_inode(&mut prng);
            inode.is_dense = round % 2 == 1 && inode.dense_times().is_some();
            let bytes = inode.encode();
            assert_eq!(bytes[0] >> 4 == DENSE, inode.is_dense);
            assert_eq!(Inode::decode(&bytes), Some(inode));
            assert_eq!(Inode::decode(&bytes[..bytes.len() - 1]), None);
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(Inode::decode(&flipped), Some(inode));
            }
        }
    }

    #[test]
    fn the_bytes_of_version_0_do_not_change() {
        let mut inode = Inode::new(FileType::Directory, 0o1755, Timestamp { seconds: -1, nanoseconds: 5 });
        (inode.uid, inode.gid, inode.links, inode.parent, inode.entries) = (300, 2, 9, 64, 200);
        inode.modified = Timestamp { seconds: 99, nanoseconds: 6 };
        inode.changed = inode.modified;
        inode.has_xattrs = true;
        let bytes = [0x04, 0x27, 0xed, 0x07, 1, 5, 0xac, 0x02, 2, 9, 0xc8, 0x01, 6, 64, 0xc8, 0x01];
        assert_eq!(inode.encode(), bytes);
        assert_eq!(Inode::decode(&bytes), Some(inode));
    }

    #[test]
    fn a_tree_stands_before_what_only_directories_have() {
        let mut inode = Inode::new(FileType::Directory, 0o700, Timestamp { seconds: 3, nanoseconds: 5 });
        (inode.is_dense, inode.parent, inode.tree) = (true, 64, 300);
        let bytes = [0x14, 0x80, 0xc0, 0x03, 5, 0, 0, 0xc0, 0, 0, 0, 0, 0xac, 0x02, 64, 0];
        assert_eq!(inode.encode(), bytes);
        assert_eq!(Inode::decode(&bytes), Some(inode));
    }

    #[test]
    fn the_bytes_of_the_dense_form_do_not_change() {
        let mut inode = Inode::new(FileType::Directory, 0o1755, Timestamp { seconds: 3, nanoseconds: 5 });
        inode.is_dense = true;
        (inode.uid, inode.gid, inode.links, inode.parent, inode.entries) = (300, 300, 9, 64, 200);
        inode.modified = Timestamp { seconds: 3, nanoseconds: 4 };
        inode.changed = Timestamp { seconds: 3, nanoseconds: 68 };
        let bytes = [0x14, 0x4f, 0xed, 0x07, 5, 0, 0, 0xc0, 0, 0, 0, 0, 0xac, 0x02, 9, 1, 0x80, 0x01, 64, 0xc8, 0x01];
        assert_eq!(inode.encode(), bytes);
        assert_eq!(Inode::decode(&bytes), Some(inode));
        // What it cannot hold is stored in the older form.
        inode.created.seconds = -1;
        let other = Inode::decode(&inode.encode());
        assert_eq!(other, Some(Inode { is_dense: false, ..inode }));
    }

    #[test]
    fn usual_inodes_are_small() {
        let now = Timestamp { seconds: 1_790_000_000, nanoseconds: 987_654_321 };
        let later = Timestamp { seconds: 1_790_000_300, nanoseconds: 123_456_789 };
        let mut inode = Inode::new(FileType::Regular, 0o644, now);
        assert_eq!(inode.encode().len(), 14);
        (inode.uid, inode.gid) = (1000, 1000);
        (inode.modified, inode.changed) = (later, later);
        assert_eq!(inode.encode().len(), 24);
        let mut directory = Inode::new(FileType::Directory, 0o755, now);
        (directory.uid, directory.gid, directory.parent, directory.entries) = (1000, 1000, 100_000, 1000);
        (directory.modified, directory.changed) = (later, later);
        assert!(directory.encode().len() <= 30);
        (inode.is_dense, directory.is_dense) = (true, true);
        assert_eq!((inode.encode().len(), directory.encode().len()), (20, 25));
        let fresh = Inode { is_dense: true, ..Inode::new(FileType::Regular, 0o644, now) };
        assert_eq!(fresh.encode().len(), 12);
    }
}
