//! A NAND some of whose pages read other than they were programmed, and that tells which pages were
//! read.

use onode_base::sync::{Mutex, rank};
use onode_media::{BlockAddress, Geometry, IoTag, Nand, PageAddress, Result, SimNand};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Data and spare bytes of a page.
pub type Page = (Vec<u8>, Vec<u8>);

struct State {
    nand: SimNand,
    hit: BTreeMap<u64, Page>,
    read: BTreeSet<u64>,
}

/// The medium, in the hands of a device and of who hits it.
#[derive(Clone)]
pub struct FaultyNand(Arc<Mutex<State, rank::Free>>);

impl FaultyNand {
    /// The chip as it is.
    pub fn new(nand: SimNand) -> Self {
        Self(Arc::new(Mutex::new(State { nand, hit: BTreeMap::new(), read: BTreeSet::new() })))
    }

    /// Lets a page read as `content`.
    pub fn hit(&self, page: PageAddress, content: Page) {
        self.0.lock().hit.insert(page.0, content);
    }

    /// Every page reads as it was programmed.
    pub fn heal(&self) {
        self.0.lock().hit.clear();
    }

    /// The pages that were read since this was asked last.
    pub fn take_read(&self) -> BTreeSet<u64> {
        core::mem::take(&mut self.0.lock().read)
    }

    /// A page as it was programmed.
    pub fn programmed(&self, page: PageAddress) -> Page {
        read_whole(&mut self.0.lock().nand, page)
    }

    /// A medium of its own with the same faults, for who writes.
    pub fn apart(&self) -> Self {
        let state = self.0.lock();
        let (nand, hit) = (state.nand.clone(), state.hit.clone());
        Self(Arc::new(Mutex::new(State { nand, hit, read: BTreeSet::new() })))
    }
}

/// Data and spare of a page of `nand`; nothing but zeros if it cannot be read.
pub fn read_whole(nand: &mut SimNand, page: PageAddress) -> Page {
    let shape = nand.geometry();
    let (mut data, mut spare) = (vec![0; shape.page_bytes as usize], vec![0; shape.spare_bytes as usize]);
    let _ = nand.read(page, &mut data, &mut spare, IoTag::Check);
    (data, spare)
}

impl Nand for FaultyNand {
    fn geometry(&self) -> Geometry {
        self.0.lock().nand.geometry()
    }

    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        let mut state = self.0.lock();
        state.read.insert(page.0);
        state.nand.read(page, data, spare, tag)?;
        if let Some((hit_data, hit_spare)) = state.hit.get(&page.0) {
            if !data.is_empty() {
                data.copy_from_slice(hit_data);
            }
            if !spare.is_empty() {
                spare.copy_from_slice(hit_spare);
            }
        }
        Ok(())
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.0.lock().nand.program(page, data, spare, tag)
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        let mut state = self.0.lock();
        let shape = state.nand.geometry();
        state.hit.retain(|&page, _| shape.block_of(PageAddress(page)) != block);
        state.nand.erase(block, tag)
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.0.lock().nand.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.0.lock().nand.mark_bad(block)
    }
}
