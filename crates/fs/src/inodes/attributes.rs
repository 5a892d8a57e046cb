//! What `stat` tells and `chmod`, `chown`, `utimensat` and `truncate` change.

use crate::content::data::drop_set_bits;
use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::inodes::access;
use crate::inodes::acl;
use crate::inodes::inode::Inode;
use crate::limits::SET_GROUP;
use crate::state::State;
use crate::types::{Attributes, Caller, InodeNumber, SetAttributes, SetTime};
use onode_base::{ErrorKind, Timestamp};
use onode_object::Transaction;

impl FileSystem {
    /// What is known about a file. Costs the device nothing if the file is in memory.
    ///
    /// # Errors
    /// `Stale` if it is gone; the device's errors.
    pub fn attributes(&self, number: InodeNumber) -> Result<Attributes> {
        self.attributes_of(&mut self.lock(), number)
    }

    /// Changes what `change` names, all of it or nothing. Whether the caller may is decided above
    /// (by the kernel under `default_permissions`).
    ///
    /// # Errors
    /// `ReadOnly`, `TooLarge`, `IsDirectory` or `Invalid` for a size of what has none.
    pub fn set_attributes(&self, caller: &Caller, number: InodeNumber, change: &SetAttributes) -> Result<Attributes> {
        self.beside_others(|| self.set_attributes_once(caller, number, change))
    }

    fn set_attributes_once(&self, caller: &Caller, number: InodeNumber, change: &SetAttributes) -> Result<Attributes> {
        self.check_writable()?;
        let state = &mut *self.lock();
        self.node(state, number)?;
        self.admit_change(state, caller, number, change)?;
        // It goes to the device with the rest, unless limits or an ACL change, too: a change that
        // is refused has not happened in part.
        let sized = match change.size {
            Some(size) => self.set_size_in_memory(state, caller, number, size)?,
            None => None,
        };
        let now = self.now();
        let is_counted = Self::is_counted_anew(state, change);
        let node = self.node(state, number)?;
        let mut inode = node.inode;
        apply(&mut inode, caller, change, now);
        let mode_changed = change.permissions.is_some();
        let has_more = is_counted || (mode_changed && inode.has_xattrs);
        let is_dirty = node.is_dirty();
        let can_wait = !has_more
            && (sized.is_some() || (is_dirty && !self.keeps_nothing_back() && self.can_wait(state, number, 0)));
        let node = self.node(state, number)?;
        if node.removed {
            node.inode = inode;
        } else if can_wait {
            // The device hears of it with the data that came before it.
            node.inode = inode;
            node.inode_dirty = true;
            state.promise(self.device.as_ref(), number.0);
            if let Some(before) = sized {
                self.write_through(state, number, before)?;
            }
        } else {
            let mut transaction = Transaction::new();
            self.inodes.store(&mut transaction, number.object(), &inode);
            if mode_changed && inode.has_xattrs {
                self.change_acl_with_mode(state, number, inode.permissions, &mut transaction)?;
            }
            match sized {
                Some(before) => self.write_through(state, number, before)?,
                None => self.write_back_file(state, number)?,
            }
            let node = self.node(state, number)?;
            let accessed = access::take_back(&mut transaction, number.object(), node, &inode);
            self.commit(state, transaction)?;
            self.set_inode(state, number, inode);
            self.node(state, number)?.device_accessed = accessed;
        }
        state.statistics.changes += 1;
        self.attributes_of(state, number)
    }

    /// After `chmod` the access ACL says the same as the mode.
    fn change_acl_with_mode(
        &self,
        state: &mut State,
        number: InodeNumber,
        permissions: u16,
        transaction: &mut Transaction,
    ) -> Result<()> {
        let Some(value) = self.xattr(state, number, acl::ACCESS)? else { return Ok(()) };
        let Some(changed) = acl::with_mode(&value, permissions) else {
            return Err(Error::of(ErrorKind::Corrupt, number, "the access ACL is damaged"));
        };
        self.put_xattr(state, number, acl::ACCESS, &changed, transaction)
    }
}

fn apply(inode: &mut Inode, caller: &Caller, change: &SetAttributes, now: Timestamp) {
    // Linux asks for a chown to the present owner and group by a change that names nothing.
    let named_nothing = SetAttributes { changed: change.changed, ..SetAttributes::default() } == *change;
    if change.uid.is_some() || change.gid.is_some() || named_nothing {
        // Programs lose what they could do in the name of the old owner, also if root gives them
        // away.
        if !inode.is_directory() {
            drop_set_bits(inode, caller);
        }
        inode.uid = change.uid.unwrap_or(inode.uid);
        inode.gid = change.gid.unwrap_or(inode.gid);
    }
    if let Some(permissions) = change.permissions {
        inode.permissions = permissions & 0o7777;
        if !caller.may_set_group_bit(inode.gid) {
            inode.permissions &= !SET_GROUP;
        }
    }
    let moment = |time: SetTime| match time {
        SetTime::Now => now,
        SetTime::At(time) => time,
    };
    inode.accessed = change.accessed.map_or(inode.accessed, moment);
    inode.modified = change.modified.map_or(inode.modified, moment);
    inode.changed = change.changed.unwrap_or(now);
}
