//! Refusing what would go beyond a limit, before anything of it is done.
//!
//! Limits of users and groups do not hold the super-user, as elsewhere; that of a tree holds
//! everybody. Who is beyond a limit already, because it was lowered, may do all that adds nothing.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::inodes::inode::Inode;
use crate::quota::record::Charged;
use crate::quota::table::Holder;
use crate::quota::{QuotaLimits, QuotaUse};
use crate::state::State;
use crate::types::{Caller, InodeNumber, SetAttributes, StatFs};
use onode_base::ErrorKind;

impl FileSystem {
    /// Whether a holder may have so much more.
    pub(crate) fn admit(state: &State, caller: &Caller, holder: Holder, more: QuotaUse) -> Result<()> {
        if !state.quotas.is_on() {
            return Ok(());
        }
        holder.charged().into_iter().try_for_each(|charged| Self::admit_one(state, caller, charged, more))
    }

    fn admit_one(state: &State, caller: &Caller, charged: Charged, more: QuotaUse) -> Result<()> {
        let of_whom = match charged {
            Charged::User(_) | Charged::Group(_) if caller.is_unlimited() => return Ok(()),
            Charged::User(uid) => format!("user {uid}"),
            Charged::Group(gid) => format!("group {gid}"),
            Charged::Tree(_) => "the directory tree".to_owned(),
        };
        let Some(entry) = state.quotas.get(charged) else { return Ok(()) };
        let (QuotaLimits { bytes, files }, used) = (entry.record.limits, entry.used());
        for (limit, used, more, unit) in
            [(bytes, used.bytes, more.bytes, "byte"), (files, used.files, more.files, "file")]
        {
            if let Some(limit) = limit.filter(|limit| more > 0 && used.saturating_add(more) > *limit) {
                let why = format!("the {unit} limit of {of_whom} is {limit}: {used} used, {more} more asked for");
                return Err(Error::new(ErrorKind::QuotaExceeded, why));
            }
        }
        Ok(())
    }

    /// Whether a file may become so large.
    pub(crate) fn admit_size(&self, state: &mut State, caller: &Caller, number: InodeNumber, size: u64) -> Result<()> {
        if !state.quotas.is_on() {
            return Ok(());
        }
        let node = self.node(state, number)?;
        let (holder, more) = (Holder::of(&node.inode), size.saturating_sub(node.size));
        Self::admit(state, caller, holder, QuotaUse { bytes: more, files: 0 })
    }

    /// Whether a file may get the size, the owner and the group that `change` names.
    pub(crate) fn admit_change(
        &self,
        state: &mut State,
        caller: &Caller,
        number: InodeNumber,
        change: &SetAttributes,
    ) -> Result<()> {
        if !state.quotas.is_on() || (change.size.is_none() && change.uid.is_none() && change.gid.is_none()) {
            return Ok(());
        }
        let node = self.node(state, number)?;
        if node.removed {
            return Ok(());
        }
        let size = change.size.unwrap_or(node.size);
        let all = QuotaUse { bytes: size, files: 1 };
        let grown = QuotaUse { bytes: size.saturating_sub(node.size), files: 0 };
        let before = Holder::of(&node.inode);
        let after = Holder { uid: change.uid.unwrap_or(before.uid), gid: change.gid.unwrap_or(before.gid), ..before };
        for (was, is) in before.charged().into_iter().zip(after.charged()) {
            Self::admit_one(state, caller, is, if was == is { grown } else { all })?;
        }
        Ok(())
    }

    /// Whether a change of owner must be at the device at once: what is counted of a file there is
    /// counted for whom the device says.
    pub(crate) fn is_counted_anew(state: &State, change: &SetAttributes) -> bool {
        state.quotas.is_on() && (change.uid.is_some() || change.gid.is_some())
    }

    /// What a new file adds.
    pub(crate) fn admit_new_file(state: &State, caller: &Caller, inode: &Inode, bytes: u64) -> Result<()> {
        Self::admit(state, caller, Holder::of(inode), QuotaUse { bytes, files: 1 })
    }

    /// That a file with a name in `directory` stays in its tree, or outside of all.
    pub(crate) fn check_tree(state: &State, number: InodeNumber, file: &Inode, directory: &Inode) -> Result<()> {
        if state.quotas.tree_of_name(number.0, file) == state.quotas.tree_of(directory) {
            return Ok(());
        }
        Err(Error::of(ErrorKind::CrossDevice, number, "names do not leave or enter a directory tree with a limit"))
    }

    /// Space and numbers as they are in the tree with a limit that a file is in, if it is in one.
    #[must_use]
    pub fn statfs_at(&self, number: InodeNumber) -> StatFs {
        let all = self.statfs();
        let state = &mut *self.lock();
        if !state.quotas.is_on() {
            return all;
        }
        let Ok(tree) = self.node(state, number).map(|node| node.inode.tree) else { return all };
        let Some(entry) = state.quotas.get(Charged::Tree(tree)) else { return all };
        let (QuotaLimits { bytes, files }, used) = (entry.record.limits, entry.used());
        let mut shown = all;
        if let Some(bytes) = bytes {
            let unit = u64::from(all.block_bytes);
            shown.blocks_free = all.blocks_free.min(bytes.saturating_sub(used.bytes) / unit);
            shown.blocks = shown.blocks_free + used.bytes.div_ceil(unit);
        }
        if let Some(files) = files {
            shown.files_free = all.files_free.min(files.saturating_sub(used.files));
            shown.files = shown.files_free + used.files;
        }
        shown
    }
}
