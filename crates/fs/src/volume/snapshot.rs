//! What a file system does before a snapshot of its device is taken, or what changed is counted.

use crate::error::Result;
use crate::file_system::FileSystem;
use crate::volume::{SNAPSHOTS, VOLUME, VOLUME_KEY, VolumeInfo};
use onode_object::{Durability, Transaction};

impl FileSystem {
    /// Gives the device all that was written, without a sync.
    ///
    /// # Errors
    /// `NoSpace`; the device's errors.
    pub fn write_back(&self) -> Result<()> {
        self.write_back_in_turn()
    }

    /// Takes a snapshot by `take`, of all that was written: the device has it before, and nothing
    /// is accepted meanwhile. The settings say that there may be snapshots: programs that would
    /// keep nothing for them refuse the volume from then on.
    ///
    /// # Errors
    /// `ReadOnly`, `NoSpace`; the device's errors.
    pub fn with_all_written<T>(&self, take: impl FnOnce() -> T) -> Result<T> {
        self.check_writable()?;
        self.write_back_in_turn()?;
        let state = &mut *self.lock();
        self.write_back_all(state)?;
        let mut info = VolumeInfo::load(self.device.as_ref())?;
        if info.features.incompatible & SNAPSHOTS == 0 {
            info.admit_snapshots();
            let mut transaction = Transaction::new();
            transaction.set_attribute(VOLUME, VOLUME_KEY, info.encode());
            self.heard(self.device.commit(transaction, Durability::Buffered))?;
        }
        let taken = take();
        // From now on the device keeps some of its space back.
        state.forget_space();
        Ok(taken)
    }
}
