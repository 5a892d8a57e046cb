//! POSIX access control lists, in the bytes the kernel and `setfacl` use: kept as given, inherited on
//! creation, and in step with the mode. Who may do what is the kernel's to decide.

use crate::inodes::inode::Inode;

/// Name of the attribute with a file's access ACL.
pub(crate) const ACCESS: &[u8] = b"system.posix_acl_access";
/// Name of the attribute with the ACL that files made in a directory get.
pub(crate) const DEFAULT: &[u8] = b"system.posix_acl_default";

const VERSION: [u8; 4] = 2u32.to_le_bytes();
const ENTRY_BYTES: usize = 8;

const USER_OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OWNER: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AclEntry {
    tag: u16,
    permissions: u16,
    id: [u8; 4],
}

/// An access control list that keeps the rules of POSIX.1e.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Acl(Vec<AclEntry>);

impl Acl {
    fn decode(value: &[u8]) -> Option<Self> {
        let body = value.strip_prefix(&VERSION)?;
        if !body.len().is_multiple_of(ENTRY_BYTES) {
            return None;
        }
        let entries: Vec<AclEntry> = body
            .chunks_exact(ENTRY_BYTES)
            .map(|e| AclEntry {
                tag: u16::from_le_bytes([e[0], e[1]]),
                permissions: u16::from_le_bytes([e[2], e[3]]),
                id: [e[4], e[5], e[6], e[7]],
            })
            .collect();
        let acl = Self(entries);
        let count = |tag| acl.0.iter().filter(|entry| entry.tag == tag).count();
        let named = count(USER) + count(GROUP);
        let masks = count(MASK);
        let known = count(USER_OWNER) + count(GROUP_OWNER) + count(OTHER) + masks + named;
        let valid = count(USER_OWNER) == 1
            && count(GROUP_OWNER) == 1
            && count(OTHER) == 1
            && masks <= 1
            && (named == 0 || masks == 1)
            && known == acl.0.len()
            && acl.0.iter().all(|entry| entry.permissions <= 7);
        valid.then_some(acl)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = VERSION.to_vec();
        for entry in &self.0 {
            out.extend_from_slice(&entry.tag.to_le_bytes());
            out.extend_from_slice(&entry.permissions.to_le_bytes());
            out.extend_from_slice(&entry.id);
        }
        out
    }

    fn entry_mut(&mut self, tag: u16) -> Option<&mut AclEntry> {
        self.0.iter_mut().find(|entry| entry.tag == tag)
    }

    fn permissions(&self, tag: u16) -> Option<u16> {
        self.0.iter().find(|entry| entry.tag == tag).map(|entry| entry.permissions)
    }

    /// The tag that the mode's group bits stand for.
    fn group_tag(&self) -> u16 {
        if self.permissions(MASK).is_some() { MASK } else { GROUP_OWNER }
    }

    /// The nine permission bits that say the same, as far as they can.
    fn mode_bits(&self) -> u16 {
        let bits = |tag| self.permissions(tag).unwrap_or(0);
        bits(USER_OWNER) << 6 | bits(self.group_tag()) << 3 | bits(OTHER)
    }

    /// Whether the mode says all there is to say.
    fn is_only_mode(&self) -> bool {
        self.0.len() == 3
    }

    fn set_mode_bits(&mut self, bits: u16) {
        let group = self.group_tag();
        for (tag, shift) in [(USER_OWNER, 6), (group, 3), (OTHER, 0)] {
            if let Some(entry) = self.entry_mut(tag) {
                entry.permissions = bits >> shift & 7;
            }
        }
    }
}

/// What setting an ACL means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// The bytes are no ACL.
    Malformed,
    /// There is to be none.
    Remove,
    /// Keep the value.
    Keep,
}

/// Brings the inode's mode in step with a new access ACL and tells what to do with the value.
pub(crate) fn set_access(value: &[u8], inode: &mut Inode) -> Set {
    if value.is_empty() || value == VERSION {
        return Set::Remove;
    }
    let Some(acl) = Acl::decode(value) else { return Set::Malformed };
    inode.permissions = inode.permissions & !0o777 | acl.mode_bits();
    if acl.is_only_mode() { Set::Remove } else { Set::Keep }
}

/// Tells what to do with a new default ACL.
pub(crate) fn set_default(value: &[u8]) -> Set {
    if value.is_empty() || value == VERSION {
        return Set::Remove;
    }
    if Acl::decode(value).is_some() { Set::Keep } else { Set::Malformed }
}

/// What a new file gets from its directory's default ACL: its mode is cut to what the ACL grants, and
/// the attributes it starts with are returned.
pub(crate) fn inherit(default: &[u8], inode: &mut Inode) -> Vec<(&'static [u8], Vec<u8>)> {
    let mut attributes = Vec::new();
    let Some(mut acl) = Acl::decode(default) else { return attributes };
    let bits = acl.mode_bits() & inode.permissions;
    acl.set_mode_bits(bits);
    inode.permissions = inode.permissions & !0o777 | bits;
    if !acl.is_only_mode() {
        attributes.push((ACCESS, acl.encode()));
    }
    if inode.is_directory() {
        attributes.push((DEFAULT, default.to_vec()));
    }
    attributes
}

/// The access ACL after `chmod`; `None` if the old one is damaged.
pub(crate) fn with_mode(value: &[u8], permissions: u16) -> Option<Vec<u8>> {
    let mut acl = Acl::decode(value)?;
    acl.set_mode_bits(permissions);
    Some(acl.encode())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::FileType;
    use onode_base::Timestamp;

    fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let entry = |&(tag, permissions, id): &(u16, u16, u32)| AclEntry { tag, permissions, id: id.to_le_bytes() };
        Acl(entries.iter().map(entry).collect()).encode()
    }

    #[test]
    fn a_named_user_needs_a_mask_and_the_mask_is_the_group_bits() {
        let mut inode = Inode::new(FileType::Regular, 0o4600, Timestamp::default());
        let full = acl(&[(USER_OWNER, 7, 0), (USER, 6, 1000), (GROUP_OWNER, 5, 0), (MASK, 4, 0), (OTHER, 1, 0)]);
        assert_eq!(set_access(&full, &mut inode), Set::Keep);
        assert_eq!(inode.permissions, 0o4741);
        let without_mask = acl(&[(USER_OWNER, 7, 0), (USER, 6, 1000), (GROUP_OWNER, 5, 0), (OTHER, 1, 0)]);
        assert_eq!(set_access(&without_mask, &mut inode), Set::Malformed);
        let minimal = acl(&[(USER_OWNER, 6, 0), (GROUP_OWNER, 4, 0), (OTHER, 0, 0)]);
        assert_eq!(set_access(&minimal, &mut inode), Set::Remove);
        assert_eq!(inode.permissions, 0o4640);
        let changed = with_mode(&full, 0o2707).unwrap();
        assert_eq!(Acl::decode(&changed).unwrap().mode_bits(), 0o707);
        assert_eq!(Acl::decode(&changed).unwrap().permissions(GROUP_OWNER), Some(5));
    }

    #[test]
    fn children_inherit_what_their_mode_allows() {
        let default = acl(&[(USER_OWNER, 7, 0), (USER, 7, 5), (GROUP_OWNER, 7, 0), (MASK, 7, 0), (OTHER, 5, 0)]);
        let mut file = Inode::new(FileType::Regular, 0o2664, Timestamp::default());
        let attributes = inherit(&default, &mut file);
        assert_eq!(file.permissions, 0o2664);
        assert_eq!(attributes.len(), 1);
        assert_eq!(Acl::decode(&attributes[0].1).unwrap().mode_bits(), 0o664);
        let mut directory = Inode::new(FileType::Directory, 0o777, Timestamp::default());
        let attributes = inherit(&default, &mut directory);
        assert_eq!(directory.permissions, 0o775);
        assert_eq!(attributes[1], (DEFAULT, default));
    }
}
