//! What of a NAND on a block device its readers use without its owner.
//!
//! It keeps true: owner and readers see a page in the same way, erased or not, and count in one
//! place.

use super::super::order::Order;
use crate::blockdev::{DiskRead, SharedDisk};
use crate::counters::Counters;
use crate::error::Result;
use crate::nand::{Flushes, Geometry, PageAddress, PageRun, SharedNand};
use crate::tag::IoTag;
use alloc::sync::Arc;
use alloc::vec::Vec;
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

    fn read_runs(&self, runs: &mut [PageRun<'_>], tag: IoTag) {
        if let [PageRun { first, data, spare, result }] = runs {
            *result = self.read_run(*first, data, spare, tag);
            return;
        }
        let mut pages_read = 0;
        let mut reads = Vec::with_capacity(runs.len());
        let mut of_runs = Vec::with_capacity(runs.len());
        for PageRun { first, data, spare, result } in runs {
            match self.place.geometry.check_run(*first, data.len(), spare.len()) {
                Ok(pages) => pages_read += u64::from(pages),
                Err(error) => {
                    *result = Err(error);
                    continue;
                }
            }
            spare.fill(0xff);
            let (there, shows_zeros) = there(self.place, &self.order, *first, data);
            if !there.is_empty() {
                reads.push(DiskRead { offset: self.place.offset(*first), out: there, result: Ok(()) });
                of_runs.push((result, shows_zeros));
            }
        }
        self.counters.lock().of_mut(tag).reads += pages_read;
        self.storage.read_batch(&mut reads, tag);
        for (read, (result, shows_zeros)) in reads.into_iter().zip(of_runs) {
            if shows_zeros && read.result.is_ok() {
                show_erased(read.out, self.place.geometry.page_bytes as usize);
            }
            *result = read.result;
        }
    }

    fn finish_flush(&self) -> Result<()> {
        if self.is_written { self.flushes.run(|| self.storage.flush()) } else { Ok(()) }
    }
}

/// Of pages of one block those that have to be read; what is known to be erased is shown so.
/// Whether one of them is erased may have to be seen from what is read ([`show_erased`]).
fn there<'a>(place: Place, order: &Order, first: PageAddress, data: &'a mut [u8]) -> (&'a mut [u8], bool) {
    let shape = place.geometry;
    let Some(next) = order.next(shape.block_of(first)) else { return (data, true) };
    let written = next.saturating_sub(shape.index_in_block(first)) as usize * shape.page_bytes as usize;
    let (there, erased) = data.split_at_mut(data.len().min(written));
    erased.fill(0xff);
    (there, false)
}

/// Shows pages of zeros as erased.
fn show_erased(pages: &mut [u8], page_bytes: usize) {
    for page in pages.chunks_exact_mut(page_bytes) {
        if page.iter().all(|byte| *byte == 0) {
            page.fill(0xff);
        }
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
    let (there, shows_zeros) = there(place, order, first, data);
    if !there.is_empty() {
        read(place.offset(first), there)?;
    }
    if shows_zeros {
        show_erased(there, place.geometry.page_bytes as usize);
    }
    Ok(())
}
