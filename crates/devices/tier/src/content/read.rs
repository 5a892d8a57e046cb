//! Reading content without the lock of the state: pending blocks, then stored ones, each verified
//! against its checksum.
//!
//! Under the lock of the state a read looks up where its blocks are, copies what is in memory and
//! pins the rest. Then it reads without the lock, so that nobody waits for a disk but who needs it.
//! What does not verify is read again by the [`reader`](crate::content::reader) under the lock,
//! where nothing moves.

use crate::commit::Volume;
use crate::content::plan::Source;
use crate::medium::errors::within_mut;
use alloc::sync::Arc;
use onode_base::planted::{Bug, is_planted};
use onode_object::{ObjectId, Result};

impl Volume {
    /// Reads into `buffer` from `offset`; returns how many bytes there were.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` with the range of the first damaged block.
    pub fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let (disks, copies, mut plan) = self.look(|core, _| {
            let plan = core.reader().plan(object, offset, buffer)?;
            core.pin(&plan);
            Ok((Arc::clone(core.disks()), !core.latch().is_read_only(), plan))
        })?;
        if plan.is_empty() {
            return Ok(plan.count);
        }
        let part = within_mut(buffer, 0..plan.count);
        let read = part.and_then(|part| {
            let found = disks.fetch(&mut plan.wanted, Source::Any)?;
            if !found.unsound.is_empty() {
                return Ok(None);
            }
            if copies {
                // As long as the blocks are pinned: what is given up later has no copy.
                disks.consider(object, plan.class, &plan.wanted, &found.from_big)?;
            }
            plan.copy_stored(part)?;
            if is_planted(Bug::ManyTierMemoryLater) {
                self.core.lock().reader().copy_pending(object, offset, part)?;
            }
            plan.load(&disks, part).map(|()| Some(found))
        });
        let mut core = self.core.lock();
        core.unpin(&plan);
        if let Ok(Some(found)) = read {
            core.count_read(&found);
            return Ok(plan.count);
        }
        let read = core.reader().read(object, offset, buffer, Source::Any);
        read.map_err(|error| core.fail_if_bug(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::TierDevice;
    use crate::device::options::{FormatOptions, MountOptions};
    use crate::medium::layout::BLOCK_BYTES;
    use alloc::boxed::Box;
    use onode_media::sim::disk::SimDisk;
    use onode_object::{Durability, Hints, ObjectDevice, Transaction};

    const OBJECT: ObjectId = ObjectId(10);
    const BYTES: usize = 40 * BLOCK_BYTES;

    fn put(device: &TierDevice, object: ObjectId, byte: u8) -> Result<()> {
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default());
        transaction.write(object, 0, alloc::vec![byte; BYTES]);
        device.commit(transaction, Durability::Buffered)?;
        device.volume.checkpoint()
    }

    #[test]
    fn a_read_under_way_finds_what_was_there() {
        let format = FormatOptions { log_bytes: Some(128 << 10), ..FormatOptions::default() };
        let big = SimDisk::new("big", 3 << 20);
        let device = TierDevice::format(Box::new(big), None, &format, &MountOptions::default()).unwrap();
        put(&device, OBJECT, 1).unwrap();
        let mut buffer = alloc::vec![0; BYTES];
        let mut core = device.volume.core.lock();
        let mut plan = core.reader().plan(OBJECT, 0, &mut buffer).unwrap();
        core.pin(&plan);
        let disks = Arc::clone(core.disks());
        drop(core);
        // The object goes, and the volume is filled until there is no other block left.
        let mut transaction = Transaction::new();
        transaction.remove(OBJECT);
        device.commit(transaction, Durability::Durable).unwrap();
        let next = || device.reserve_ids(1).unwrap();
        let many = (2..99).take_while(|byte| put(&device, next(), *byte).is_ok()).count();
        assert!((6..90).contains(&many), "{many}");
        device.verify().unwrap();
        let found = disks.fetch(&mut plan.wanted, Source::Any).unwrap();
        assert_eq!(found.unsound, []);
        plan.copy_stored(&mut buffer).unwrap();
        assert!(buffer == [1; BYTES]);
        // Then there is room for one more.
        device.volume.core.lock().unpin(&plan);
        device.verify().unwrap();
        put(&device, next(), 7).unwrap();
        device.verify().unwrap();
    }
}
