//! A NAND some of whose pages read other than they were programmed.

use onode_media::{BlockAddress, Geometry, IoTag, Nand, PageAddress, Result, SimNand};
use std::collections::BTreeMap;

/// Data and spare bytes of a page.
pub type Page = (Vec<u8>, Vec<u8>);

/// A simulated NAND with damage on top. A clone is a medium of its own.
#[derive(Clone)]
pub struct Patched {
    nand: SimNand,
    patches: BTreeMap<u64, Page>,
    keeps_order: bool,
    tells_bitflips: bool,
}

impl Patched {
    /// The chip as it is.
    pub fn new(nand: &SimNand) -> Self {
        Self { nand: nand.clone(), patches: BTreeMap::new(), keeps_order: true, tells_bitflips: false }
    }

    /// The same in a file of a host, which may lose what was not flushed in any order.
    pub fn in_a_file(self) -> Self {
        Self { keeps_order: false, ..self }
    }

    /// The same on a chip that tells when bits flip, and none do.
    pub fn that_tells(self) -> Self {
        Self { tells_bitflips: true, ..self }
    }

    /// A page as it reads now.
    pub fn page(&mut self, page: PageAddress) -> Page {
        let shape = self.nand.geometry();
        let (mut data, mut spare) = (vec![0; shape.page_bytes as usize], vec![0; shape.spare_bytes as usize]);
        self.read(page, &mut data, &mut spare, IoTag::Check).unwrap();
        (data, spare)
    }

    /// Lets a page read as `content`.
    pub fn patch(&mut self, page: PageAddress, content: Page) {
        self.patches.insert(page.0, content);
    }

    /// The pages that are not erased.
    pub fn programmed(&mut self) -> Vec<PageAddress> {
        let pages = (0..self.nand.geometry().pages()).map(PageAddress);
        let mut all = Vec::new();
        for page in pages {
            let (data, spare) = self.page(page);
            if data.iter().chain(&spare).any(|&byte| byte != 0xff) {
                all.push(page);
            }
        }
        all
    }
}

impl Nand for Patched {
    fn geometry(&self) -> Geometry {
        self.nand.geometry()
    }
    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.nand.read(page, data, spare, tag)?;
        if let Some((patched_data, patched_spare)) = self.patches.get(&page.0) {
            if !data.is_empty() {
                data.copy_from_slice(patched_data);
            }
            if !spare.is_empty() {
                spare.copy_from_slice(patched_spare);
            }
        }
        Ok(())
    }
    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.nand.program(page, data, spare, tag)
    }
    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        let shape = self.nand.geometry();
        self.patches.retain(|&page, _| shape.block_of(PageAddress(page)) != block);
        self.nand.erase(block, tag)
    }
    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.nand.is_bad(block)
    }
    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.nand.mark_bad(block)
    }
    fn keeps_order(&self) -> bool {
        self.keeps_order
    }
    fn take_bitflips(&mut self) -> Option<Vec<BlockAddress>> {
        self.tells_bitflips.then(Vec::new)
    }
}
