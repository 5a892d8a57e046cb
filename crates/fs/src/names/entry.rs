//! One name in a directory, as it is stored in a slot: type, inode number, name.

use crate::types::FileType;
use onode_base::varint;

/// A stored name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub file_type: FileType,
    pub inode: u64,
    pub name: &'a [u8],
}

impl<'a> Entry<'a> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(11 + self.name.len());
        out.push(self.file_type as u8);
        varint::put(&mut out, self.inode);
        out.extend_from_slice(self.name);
        out
    }

    /// The entry of a slot's payload; `None` if the payload is damaged.
    pub(crate) fn decode(payload: &'a [u8]) -> Option<Self> {
        let (&head, mut rest) = payload.split_first()?;
        let file_type = FileType::from_byte(head)?;
        let inode = varint::take(&mut rest)?;
        is_valid_name(rest).then_some(Self { file_type, inode, name: rest })
    }
}

/// Whether a file may have that name, apart from its length.
pub(crate) fn is_valid_name(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && name != b".." && name.iter().all(|byte| *byte != b'/' && *byte != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_and_refuses_bad_names() {
        let entry = Entry { file_type: FileType::Socket, inode: 1 << 40, name: b"a name" };
        assert_eq!(Entry::decode(&entry.encode()), Some(entry));
        for name in [&b""[..], b".", b"..", b"a/b", b"a\0b"] {
            assert_eq!(Entry::decode(&Entry { name, ..entry }.encode()), None);
        }
        assert_eq!(Entry::decode(&[3, 1, b'a']), None);
    }
}
