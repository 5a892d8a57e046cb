//! Which content is compressed, and how: what the mount says, what the object's hints say, and what
//! the first bytes are.
//!
//! Only content of files is compressed, never what a file system keeps of its own. Nothing here is
//! needed to read.

use crate::compressed::chunk::Algorithm;
use crate::compressed::map::CHUNK_BYTES;
use onode_object::{Compression, Hints, Lifetime, Mutation, ObjectKind, Temperature};

/// How the content of one object is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// With what; `None` if nothing is to be compressed that is not already.
    pub(crate) algorithm: Option<Algorithm>,
    /// Only if its first chunk shrinks and is of no known compressed format.
    pub(crate) tries_first: bool,
}

impl Wish {
    /// What is wished for an object of these hints. Where the hints leave it open the mount's
    /// `mode` decides.
    pub(crate) fn of(mode: Compression, hints: &Hints) -> Self {
        let holds_content = matches!(hints.kind, ObjectKind::Data | ObjectKind::Unknown);
        let mode = if hints.compression == Compression::Auto { mode } else { hints.compression };
        let is_kept = hints.temperature == Temperature::Cold || hints.lifetime == Lifetime::Long;
        let algorithm = match mode {
            _ if !holds_content => None,
            Compression::Never => None,
            Compression::Small => Some(Algorithm::Zstd),
            Compression::Auto if is_kept => Some(Algorithm::Zstd),
            Compression::Fast | Compression::Auto => Some(Algorithm::Lz4),
        };
        Self { algorithm, tries_first: mode == Compression::Auto }
    }
}

/// Whether a change of content may make a chunk that is worth to be compressed: it writes more than
/// a unit of the device, or fills a chunk to its end.
pub(crate) fn is_worth(mutation: &Mutation, unit: usize) -> bool {
    let Mutation::Write { offset, data, .. } = mutation else { return false };
    let length = data.len() as u64;
    length > unit as u64 || (length > 0 && offset % CHUNK_BYTES + length >= CHUNK_BYTES)
}

/// How files of formats begin that are compressed already, and where in the file that stands.
const FORMATS: [(usize, &[u8]); 21] = [
    (0, b"\xff\xd8\xff"),
    (0, b"\x89PNG\r\n"),
    (0, b"GIF8"),
    (8, b"WEBP"),
    (0, b"\x1f\x8b"),
    (0, b"\xfd7zXZ"),
    (0, b"BZh"),
    (0, b"\x28\xb5\x2f\xfd"),
    (0, b"\x04\x22\x4d\x18"),
    (0, b"PK\x03\x04"),
    (0, b"7z\xbc\xaf\x27\x1c"),
    (0, b"Rar!\x1a\x07"),
    (4, b"ftyp"),
    (0, b"\x1a\x45\xdf\xa3"),
    (0, b"OggS"),
    (0, b"ID3"),
    (0, b"fLaC"),
    (0, b"\xff\xfb"),
    (0, b"wOF2"),
    (0, b"LZIP"),
    (0, b"\xed\xab\xee\xdb"),
];

/// Whether content that begins like that is compressed already.
pub(crate) fn is_compressed_format(start: &[u8]) -> bool {
    FORMATS.iter().any(|(at, magic)| start.get(*at..).is_some_and(|rest| rest.starts_with(magic)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_object::ObjectId;

    #[test]
    fn hints_come_before_the_mount() {
        let hints = |compression| Hints { kind: ObjectKind::Data, compression, ..Hints::default() };
        let of = |mode, compression| Wish::of(mode, &hints(compression)).algorithm;
        assert_eq!(of(Compression::Never, Compression::Auto), None);
        assert_eq!(of(Compression::Fast, Compression::Auto), Some(Algorithm::Lz4));
        assert_eq!(of(Compression::Small, Compression::Auto), Some(Algorithm::Zstd));
        assert_eq!(of(Compression::Small, Compression::Never), None);
        assert_eq!(of(Compression::Never, Compression::Small), Some(Algorithm::Zstd));
        assert!(Wish::of(Compression::Auto, &hints(Compression::Auto)).tries_first);
        let kept = Hints { lifetime: Lifetime::Long, ..hints(Compression::Auto) };
        assert_eq!(Wish::of(Compression::Auto, &kept).algorithm, Some(Algorithm::Zstd));
        for kind in [ObjectKind::Directory, ObjectKind::SymbolicLink, ObjectKind::Volume, ObjectKind::Memory] {
            assert_eq!(Wish::of(Compression::Fast, &Hints { kind, ..Hints::default() }).algorithm, None);
        }
    }

    #[test]
    fn little_is_not_worth_it_unless_it_fills_a_chunk() {
        let write = |offset, length| Mutation::Write { object: ObjectId(1), offset, data: vec![0; length] };
        let is_worth = |mutation: Mutation| super::is_worth(&mutation, 4096);
        assert!(!is_worth(write(0, 4096)) && is_worth(write(0, 4097)));
        assert!(is_worth(write(CHUNK_BYTES - 1, 1)) && !is_worth(write(CHUNK_BYTES - 2, 1)));
        assert!(is_worth(write(CHUNK_BYTES - 2, 3)) && !is_worth(write(0, 0)));
        assert!(!is_worth(Mutation::Truncate { object: ObjectId(1), size: 1 << 20 }));
    }

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        for start in
            [&b"\xff\xd8\xff\xe0\0\x10JFIF"[..], b"\0\0\0\x20ftypisom", b"RIFF\0\0\0\0WEBPVP8 ", b"PK\x03\x04\x14"]
        {
            assert!(is_compressed_format(start));
        }
        for start in [&b""[..], b"\x89", b"fn main() {}", b"%PDF-1.4", b"\x7fELF"] {
            assert!(!is_compressed_format(start));
        }
    }
}
