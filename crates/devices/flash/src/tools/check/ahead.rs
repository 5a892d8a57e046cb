//! Reading ahead for a check: pages that it will look at in a known order are asked of the medium
//! together, so that all chips of a NAND or the whole queue of a disk work for it.
//!
//! It keeps true: what is wrong with a page is told when its turn comes, and costs none of the
//! others. A page that the medium cannot read is asked for again then, by itself.

use crate::medium::layout::{Layout, SegmentPage};
use crate::medium::page::PageFault;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use onode_media::{IoTag, Nand, PageRun};

/// Bytes that are read ahead at most, if they are more than a page.
pub(super) const AHEAD_BYTES: usize = 512 << 10;

/// So many pages are expected at most.
const EXPECTED_MAX: usize = 4096;

/// So many pages are passed over when the one that is looked for is not the next: what was damaged
/// is not followed.
const PASSED_MAX: usize = 64;

/// Pages that will be looked at, in this order.
#[derive(Default)]
pub(super) struct Expected {
    pages: VecDeque<SegmentPage>,
    /// What is wrong with pages that were read last.
    faults: BTreeMap<SegmentPage, PageFault>,
}

impl Expected {
    /// Pages that will be looked at next, in this order, and no others of before. Of a long list
    /// the first ones count.
    pub(super) fn set(&mut self, layout: &Layout, pages: impl Iterator<Item = SegmentPage>) {
        self.pages.clear();
        for at in pages.filter(|at| at.segment < layout.segments && at.page < layout.pages_with(at.parity)) {
            if self.pages.back() != Some(&at) {
                self.pages.push_back(at);
            }
            if self.pages.len() >= EXPECTED_MAX {
                break;
            }
        }
    }

    /// Whether all that was expected has been looked at.
    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// `at` is looked at, and if it came next it is expected no more.
    pub(super) fn pass(&mut self, at: SegmentPage) {
        if self.pages.front() == Some(&at) {
            self.pages.pop_front();
        }
    }

    /// The pages that are read with `at`, which comes first; nothing if `at` was not expected, or
    /// nothing behind it.
    pub(super) fn take(&mut self, layout: &Layout, at: SegmentPage) -> Vec<SegmentPage> {
        let most = (AHEAD_BYTES / layout.geometry.page_bytes as usize).max(1);
        let Some(passed) = self.pages.iter().take(PASSED_MAX).position(|one| *one == at) else { return Vec::new() };
        self.pages.drain(..passed);
        let taken: Vec<SegmentPage> = self.pages.drain(..most.min(self.pages.len())).collect();
        self.faults.clear();
        if taken.len() > 1 { taken } else { Vec::new() }
    }

    /// `at` was read, and this is wrong with it.
    pub(super) fn note_fault(&mut self, at: SegmentPage, fault: PageFault) {
        self.faults.insert(at, fault);
    }

    /// What is wrong with `at`, if it was read.
    pub(super) fn take_fault(&mut self, at: SegmentPage) -> Option<PageFault> {
        self.faults.remove(&at)
    }
}

/// A page as it was read.
pub(super) struct ReadPage<'a> {
    pub(super) at: SegmentPage,
    pub(super) data: &'a [u8],
    pub(super) spare: &'a [u8],
}

/// Reads `pages` together, and shows `each` of those that the medium could read.
pub(super) fn read_pages(
    nand: &mut dyn Nand,
    layout: &Layout,
    pages: &[SegmentPage],
    each: &mut dyn FnMut(ReadPage<'_>),
) {
    let page_bytes = layout.geometry.page_bytes as usize;
    let spare_bytes = Layout::spare_bytes_read(&layout.geometry);
    let mut data = vec![0; pages.len() * page_bytes];
    let mut spare = vec![0; pages.len() * spare_bytes];
    let runs = runs(pages, layout);
    let (mut rest, mut rest_spare) = (&mut data[..], &mut spare[..]);
    let mut asked = Vec::with_capacity(runs.len());
    for run in &runs {
        let (data, others) = rest.split_at_mut(run.len() * page_bytes);
        let (spare, other_spare) = rest_spare.split_at_mut(run.len() * spare_bytes);
        (rest, rest_spare) = (others, other_spare);
        if let Some(first) = run.first() {
            asked.push(PageRun::new(layout.address(*first), data, spare));
        }
    }
    nand.read_runs(&mut asked, IoTag::Check);
    for (run, asked) in runs.iter().zip(asked).filter(|(_, asked)| asked.result.is_ok()) {
        let (data, mut spare): (&[u8], &[u8]) = (asked.data, asked.spare);
        for (at, data) in run.iter().zip(data.chunks_exact(page_bytes)) {
            let (of_page, others) = spare.split_at(spare_bytes);
            spare = others;
            each(ReadPage { at: *at, data, spare: of_page });
        }
    }
}

/// `pages`, divided where they do not follow each other in one block of the medium.
fn runs<'p>(pages: &'p [SegmentPage], layout: &Layout) -> Vec<&'p [SegmentPage]> {
    let shape = &layout.geometry;
    let follows = |before: &SegmentPage, at: &SegmentPage| {
        let (before, at) = (layout.address(*before), layout.address(*at));
        at.0 == before.0 + 1 && shape.block_of(at) == shape.block_of(before)
    };
    pages.chunk_by(follows).collect()
}
