//! Reads that the medium refuses, as an image does whose end was cut off while it was in use, are
//! known to who asks how the volume is.

use crate::common::Shared;
use onode_base::ErrorKind;
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::{BlockAddress, Error, Geometry, IoTag, MediaErrorKind, Nand, PageAddress, Result};
use onode_object::{Durability, Hints, ObjectDevice, Transaction};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SHAPE: Geometry = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 16, blocks: 64, chips: 1 };

/// A chip that ends before a page.
struct Cut {
    nand: Shared,
    end: Arc<AtomicU64>,
}

impl Nand for Cut {
    fn geometry(&self) -> Geometry {
        SHAPE
    }
    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        if page.0 >= self.end.load(Ordering::Relaxed) {
            return Err(Error::new(MediaErrorKind::Damaged, "it ends before"));
        }
        self.nand.read(page, data, spare, tag)
    }
    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.nand.program(page, data, spare, tag)
    }
    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.nand.erase(block, tag)
    }
    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.nand.is_bad(block)
    }
    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.nand.mark_bad(block)
    }
}

#[test]
fn health_tells_of_reads_that_the_medium_refused() {
    let end = Arc::new(AtomicU64::new(u64::MAX));
    let medium = Cut { nand: Shared::new(SHAPE), end: Arc::clone(&end) };
    let device = FlashDevice::format(medium, &FormatOptions::default(), &MountOptions::default()).unwrap();
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, vec![7; 200_000]);
    device.commit(transaction, Durability::Durable).unwrap();
    let has_told = || device.health().conditions.iter().any(|one| one.code == "reads-failed");
    device.read(object, 0, &mut [0; 200_000]).unwrap();
    assert!(!has_told());
    end.store(0, Ordering::Relaxed);
    assert_eq!(device.read(object, 0, &mut [0; 200_000]).unwrap_err().kind, ErrorKind::Corrupt);
    assert!(has_told(), "{:?}", device.health());
    end.store(u64::MAX, Ordering::Relaxed);
    device.read(object, 0, &mut [0; 200_000]).unwrap();
    assert!(has_told(), "what was lost for a while is not forgotten");
}
