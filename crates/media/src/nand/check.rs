//! Range checks that every implementation of [`Nand`](super::Nand) makes in the same words.
//!
//! They keep true that equal mistakes of a caller give equal errors on every medium. They do not
//! look at the state of a block (bad, programmed); that is the implementation's own.

use super::{BlockAddress, Geometry, PageAddress};
use crate::error::{Error, MediaErrorKind, Result};
use alloc::format;
use core::fmt::Display;

impl Geometry {
    /// The chip on which `block` lies.
    #[must_use]
    pub const fn chip_of(&self, block: BlockAddress) -> u32 {
        block.0 % self.chips
    }

    /// The index of `page` within its block.
    #[must_use]
    pub const fn index_in_block(&self, page: PageAddress) -> u32 {
        (page.0 % self.pages_per_block as u64) as u32
    }

    /// The shape of the medium `name` of this shape when it has grown to `blocks`.
    ///
    /// # Errors
    /// `OutOfRange` if it has more, or cannot have so many.
    pub fn grown(&self, blocks: u32, name: impl Display) -> Result<Self> {
        if blocks < self.blocks {
            let detail = format!("{blocks} blocks are fewer than the {} of {name}", self.blocks);
            return Err(Error::new(MediaErrorKind::OutOfRange, detail));
        }
        let grown = Self { blocks, ..*self };
        grown.validate()?;
        Ok(grown)
    }

    /// The shape of the medium `name` of this shape when it has shrunk to `blocks`.
    ///
    /// # Errors
    /// `OutOfRange` if it has fewer, or cannot have so few.
    pub fn shrunk(&self, blocks: u32, name: impl Display) -> Result<Self> {
        if blocks > self.blocks {
            let detail = format!("{blocks} blocks are more than the {} of {name}", self.blocks);
            return Err(Error::new(MediaErrorKind::OutOfRange, detail));
        }
        let shrunk = Self { blocks, ..*self };
        shrunk.validate()?;
        Ok(shrunk)
    }

    /// Checks that `block` exists.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub fn check_block(&self, block: BlockAddress) -> Result<()> {
        if block.0 < self.blocks {
            return Ok(());
        }
        Err(Error::new(MediaErrorKind::OutOfRange, format!("block {} of {}", block.0, self.blocks)))
    }

    /// Checks a run of pages that starts at `first` and whose buffers hold that many data and spare
    /// bytes; gives the number of pages. Either length may be 0; both together mean no page.
    ///
    /// # Errors
    /// `OutOfRange` if the run leaves the medium or its block, or if a buffer has the wrong size.
    pub fn check_run(&self, first: PageAddress, data_bytes: usize, spare_bytes: usize) -> Result<u32> {
        let wrong = |what| Err(Error::new(MediaErrorKind::OutOfRange, what));
        if first.0 >= self.pages() {
            return wrong(format!("page {} of {}", first.0, self.pages()));
        }
        let of_data = data_bytes / self.page_bytes as usize;
        let of_spare = spare_bytes / self.spare_bytes.max(1) as usize;
        let whole =
            data_bytes.is_multiple_of(self.page_bytes as usize) && of_spare * self.spare_bytes as usize == spare_bytes;
        if !whole || (data_bytes > 0 && spare_bytes > 0 && of_data != of_spare) {
            return wrong(format!("buffers of {data_bytes} data and {spare_bytes} spare bytes"));
        }
        let pages = of_data.max(of_spare);
        if pages > (self.pages_per_block - self.index_in_block(first)) as usize {
            return wrong(format!("{pages} pages from page {} leave their block", first.0));
        }
        Ok(pages as u32)
    }

    /// Checks the buffers of a program of consecutive pages: all data, all or none of the spare.
    ///
    /// # Errors
    /// As [`check_run`](Self::check_run).
    pub fn check_program_run(&self, first: PageAddress, data_bytes: usize, spare_bytes: usize) -> Result<u32> {
        if data_bytes == 0 && spare_bytes > 0 {
            return Err(Error::new(MediaErrorKind::OutOfRange, format!("{spare_bytes} spare bytes without data")));
        }
        self.check_run(first, data_bytes, spare_bytes)
    }

    /// Checks the buffers of a read of one page.
    ///
    /// # Errors
    /// As [`check_run`](Self::check_run).
    pub fn check_read(&self, page: PageAddress, data_bytes: usize, spare_bytes: usize) -> Result<()> {
        match self.check_run(page, data_bytes, spare_bytes)? {
            0 | 1 => Ok(()),
            more => Err(Error::new(MediaErrorKind::OutOfRange, format!("buffers of {more} pages, one is read"))),
        }
    }

    /// Checks the buffers of a program of one page: all of the data, all or none of the spare.
    ///
    /// # Errors
    /// As [`check_run`](Self::check_run).
    pub fn check_program(&self, page: PageAddress, data_bytes: usize, spare_bytes: usize) -> Result<()> {
        self.check_run(page, data_bytes, spare_bytes)?;
        if data_bytes != self.page_bytes as usize {
            return Err(Error::new(
                MediaErrorKind::OutOfRange,
                format!("{data_bytes} bytes for a page of {}", self.page_bytes),
            ));
        }
        Ok(())
    }
}
