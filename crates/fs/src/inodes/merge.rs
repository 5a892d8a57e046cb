//! Two changes of one inode together: what a transaction made of it, and what others made of it
//! meanwhile.
//!
//! Names are kept apart from inodes, so two names in one directory are two changes of its counts
//! and times, which add up. What both changed otherwise cannot be put together.

use crate::inodes::inode::Inode;

/// Both changes of a stored inode; `None` if they contradict each other or one is no inode.
#[must_use]
pub fn merge_inodes(before: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let (before, ours, theirs) = (Inode::decode(before)?, Inode::decode(ours)?, Inode::decode(theirs)?);
    merge(&before, &ours, &theirs).map(|inode| inode.encode())
}

fn merge(before: &Inode, ours: &Inode, theirs: &Inode) -> Option<Inode> {
    let is_same = |of: fn(&Inode) -> u64| of(before) == of(ours) && of(before) == of(theirs);
    let is_kept = is_same(|it| it.file_type as u64) && before.created == theirs.created;
    if !is_kept || before.created != ours.created {
        return None;
    }
    let sum = |before: u64, ours: u64, theirs: u64| {
        let sum = i128::from(theirs) + i128::from(ours) - i128::from(before);
        u64::try_from(sum).ok()
    };
    let is_directory = before.is_directory();
    let links = match is_directory {
        true => u32::try_from(sum(before.links.into(), ours.links.into(), theirs.links.into())?).ok()?,
        false => changed(before.links, ours.links, theirs.links)?,
    };
    Some(Inode {
        permissions: changed(before.permissions, ours.permissions, theirs.permissions)?,
        uid: changed(before.uid, ours.uid, theirs.uid)?,
        gid: changed(before.gid, ours.gid, theirs.gid)?,
        links,
        modified: ours.modified.max(theirs.modified),
        changed: ours.changed.max(theirs.changed),
        accessed: ours.accessed.max(theirs.accessed),
        // Both may have moved directories, which may make a circle: that is refused before.
        parent: changed(before.parent, ours.parent, theirs.parent)?,
        entries: sum(before.entries, ours.entries, theirs.entries)?,
        has_xattrs: ours.has_xattrs || theirs.has_xattrs,
        tree: changed(before.tree, ours.tree, theirs.tree)?,
        ..*ours
    })
}

/// What at most one side has changed.
fn changed<T: Copy + PartialEq>(before: T, ours: T, theirs: T) -> Option<T> {
    match (before == ours, before == theirs) {
        (true, _) => Some(theirs),
        (_, true) => Some(ours),
        (false, false) => (ours == theirs).then_some(ours),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::FileType;
    use onode_base::Timestamp;

    fn at(seconds: i64) -> Timestamp {
        Timestamp { seconds, nanoseconds: 0 }
    }

    #[test]
    fn counts_add_up_and_what_both_changed_does_not() {
        let mut before = Inode::new(FileType::Directory, 0o755, at(5));
        (before.parent, before.entries, before.links) = (1, 10, 4);
        let mut ours = Inode { entries: 12, links: 5, ..before };
        (ours.modified, ours.changed) = (at(8), at(8));
        let mut theirs = Inode { entries: 7, links: 3, permissions: 0o700, ..before };
        (theirs.modified, theirs.changed) = (at(7), at(9));
        let merged = merge(&before, &ours, &theirs).unwrap();
        assert_eq!((merged.entries, merged.links, merged.permissions), (9, 4, 0o700));
        assert_eq!((merged.modified, merged.changed), (at(8), at(9)));
        let bytes = merge_inodes(&before.encode(), &ours.encode(), &theirs.encode());
        assert_eq!(bytes.as_deref().and_then(Inode::decode), Some(merged));
        ours.permissions = 0o711;
        assert_eq!(merge(&before, &ours, &theirs), None);
        let moved = Inode { parent: 2, ..before };
        let read = Inode { accessed: at(9), entries: 11, ..before };
        let both = Inode { parent: 2, accessed: at(9), entries: 11, ..before };
        assert_eq!((merge(&before, &moved, &read), merge(&before, &read, &moved)), (Some(both), Some(both)));
        assert_eq!(merge(&before, &moved, &Inode { parent: 3, ..before }), None);
        let file = Inode::new(FileType::Regular, 0o644, at(5));
        assert_eq!(merge(&file, &Inode { links: 2, ..file }, &Inode { links: 3, ..file }), None);
        assert_eq!(merge_inodes(&before.encode(), b"", &theirs.encode()), None);
    }
}
