//! What of a NAND on a block device its readers use without its owner.
//!
//! It keeps true: owner and readers see a page in the same way, erased or not, and count in one
//! place.

use super::super::order::Order;
use crate::blockdev::SharedDisk;
use crate::counters::Counters;
use crate::error::Result;
use crate::nand::{Flushes, Geometry, PageAddress, SharedNand};
use crate::tag::IoTag;
use alloc::sync::Arc;
use onode_base::sync::{Mutex, rank};

/// Where the pages lie on the device.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) geometry: Geometry,
    pub(super) data_offset: u64,
}

impl Place {
    /// The byte of the device at which `page` begins.
    pub(super) const fn offset(&self, page: PageAddress) -> u64 {
        self.data_offset + page.0 * self.geometry.page_bytes as u64
    }
}

/// The shared part.
pub(super) struct BlockShared {
    pub(super) storage: Arc<dyn SharedDisk>,
    pub(super) place: Place,
    pub(super) order: Arc<Order>,
    pub(super) counters: Arc<Mutex<Counters, rank::MediumNotes>>,
    pub(super) flushes: Arc<Flushes>,
    /// Somebody changes the device: there is something to flush.
    pub(super) is_written: bool,
}

impl SharedNand for BlockShared {
    fn read_run(&self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        let pages = self.place.geometry.check_run(first, data.len(), spare.len())?;
        self.counters.lock().of_mut(tag).reads += u64::from(pages);
        spare.fill(0xff);
        read_pages(self.place, &self.order, first, data, |offset, out| self.storage.read_at(offset, out, tag))
    }

    fn finish_flush(&self) -> Result<()> {
        if self.is_written { self.flushes.run(|| self.storage.flush()) } else { Ok(()) }
    }
}

/// Reads pages of one block by `read`; what is known or taken to be erased is shown as erased.
pub(super) fn read_pages(
    place: Place,
    order: &Order,
    first: PageAddress,
    data: &mut [u8],
    read: impl FnOnce(u64, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let shape = place.geometry;
    let page_bytes = shape.page_bytes as usize;
    let (index, offset) = (shape.index_in_block(first), place.offset(first));
    match order.next(shape.block_of(first)) {
        Some(next) => {
            let written = next.saturating_sub(index) as usize * page_bytes;
            let (there, erased) = data.split_at_mut(data.len().min(written));
            erased.fill(0xff);
            if there.is_empty() { Ok(()) } else { read(offset, there) }
        }
        None => {
            read(offset, data)?;
            for page in data.chunks_exact_mut(page_bytes) {
                if page.iter().all(|byte| *byte == 0) {
                    page.fill(0xff);
                }
            }
            Ok(())
        }
    }
}
