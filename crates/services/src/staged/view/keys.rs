//! Keys of directories are given outside of transactions, and while none is open.
//!
//! The key of a directory decides how its names are sealed, and what is made in it. A view goes by
//! the key that it saw when it made a name: if somebody gave the directory a key meanwhile, the
//! name would be sealed without it, and then nobody could read the directory any more. So no object
//! changes its key while views are open, neither in one nor outside.

use crate::staged::Staged;
use crate::staged::shadow::Standing;
use crate::staged::view::{View, ViewState};
use onode_object::{Error, ErrorKind, Hints, Mutation, ObjectDevice, ObjectId, ObjectStat, Result, Transaction};

/// The keys that a transaction gives to objects.
fn given(transaction: &Transaction) -> impl Iterator<Item = (ObjectId, u32)> + '_ {
    transaction.mutations.iter().filter_map(|mutation| match mutation {
        // Who says none takes none away.
        Mutation::SetHints { object, hints: Hints { encryption_key, .. } } if *encryption_key != 0 => {
            Some((*object, *encryption_key))
        }
        _ => None,
    })
}

/// Whether that is another key than an object has; one that is not there has none.
fn is_other(stat: Result<ObjectStat>, key: u32) -> Result<bool> {
    match stat {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
        stat => Ok(stat?.hints.encryption_key != key),
    }
}

impl<D: ObjectDevice + ?Sized> Staged<D> {
    /// That a transaction from outside of views, of which some are open, gives nothing a key.
    ///
    /// # Errors
    /// `Busy` if it does; those of the device.
    pub(in crate::staged) fn refuse_keys(&self, transaction: &Transaction) -> Result<()> {
        for (object, key) in given(transaction).filter(|_| self.inner.has_directory_keys()) {
            if is_other(self.inner.stat(object), key)? {
                let why = "it gets no key while a transaction is open, which may have made a name in it: commit it, \
                    or abort it, first";
                return Err(Error::of(ErrorKind::Busy, object, why));
            }
        }
        Ok(())
    }
}

impl<D: ObjectDevice + ?Sized> View<D> {
    /// That a transaction gives a key to nothing but what the view has made.
    ///
    /// # Errors
    /// `NotSupported` if it does; those of the device.
    pub(super) fn refuse_keys_in(&self, state: &ViewState, transaction: &Transaction) -> Result<()> {
        for (object, key) in given(transaction).filter(|_| self.has_directory_keys()) {
            let is_own = state.shadows.get(&object).is_some_and(|shadow| shadow.standing == Standing::Made);
            if !is_own && is_other(self.stat_in(state, object), key)? {
                let why = "what was there before the transaction gets no key in it: give it the key outside, while no \
                    transaction is open";
                return Err(Error::of(ErrorKind::NotSupported, object, why));
            }
        }
        Ok(())
    }
}
