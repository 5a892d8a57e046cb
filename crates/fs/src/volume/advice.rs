//! Advice to the device that goes from a directory to what is made in it: how long content stays,
//! where it is placed, how it is compressed.
//!
//! It is kept in the hints of the object, so a file knows its own wherever it is renamed to, and no
//! list of prefixes is ever searched. A directory's is remembered with its node, so that making
//! files in it does not ask the device.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::state::State;
use crate::state::advice::Advice;
use crate::types::InodeNumber;
use onode_base::ErrorKind;
use onode_object::{Compression, Transaction};

impl FileSystem {
    /// The advice of a file or directory.
    pub(crate) fn advice(&self, state: &mut State, number: InodeNumber) -> Result<Advice> {
        if let Some(advice) = self.node(state, number)?.advice {
            return Ok(advice);
        }
        let advice = Advice::of(&self.device.stat(number.object())?.hints);
        self.node(state, number)?.advice = Some(advice);
        Ok(advice)
    }

    /// Changes the advice of a file or directory. Nothing that is stored already moves.
    pub(crate) fn advise(&self, number: InodeNumber, change: impl FnOnce(&mut Advice)) -> Result<()> {
        let state = &mut *self.lock();
        if self.node(state, number)?.removed {
            return Err(Error::of(ErrorKind::Stale, number, "the file is gone"));
        }
        // What was written before is stored as it was meant to be.
        self.write_back_file(state, number)?;
        let object = number.object();
        let hints = self.device.stat(object)?.hints;
        let mut advice = Advice::of(&hints);
        change(&mut advice);
        let mut transaction = Transaction::new();
        transaction.set_hints(object, advice.add_to(hints));
        self.commit(state, transaction)?;
        self.node(state, number)?.advice = Some(advice);
        state.statistics.changes += 1;
        Ok(())
    }

    /// That the device compresses content.
    pub(crate) fn check_compresses(&self) -> Result<()> {
        let why = "nothing on this volume is compressed, unless it is mounted with compress= once";
        self.device.compression().map(drop).ok_or_else(|| Error::new(ErrorKind::NotSupported, why))
    }

    /// How a file's content is compressed from now on; of a directory, that of what is made in it.
    ///
    /// # Errors
    /// `NotSupported` if the device compresses nothing; `Stale`; the device's errors.
    pub fn chosen_compression(&self, number: InodeNumber) -> Result<Compression> {
        self.check_compresses()?;
        Ok(self.advice(&mut self.lock(), number)?.compression)
    }

    /// Changes how a file's content is compressed from now on. What is stored already stays as it
    /// is until it is written anew.
    ///
    /// # Errors
    /// As [`chosen_compression`](Self::chosen_compression); `ReadOnly`.
    pub fn set_compression(&self, number: InodeNumber, compression: Compression) -> Result<()> {
        self.check_writable()?;
        self.check_compresses()?;
        self.advise(number, |advice| advice.compression = compression)
    }
}
