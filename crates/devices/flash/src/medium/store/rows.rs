//! Parity of the rows that are being filled (paper 1, section III.C): Reed-Solomon pages behind the
//! pages of content that they cover.
//!
//! It keeps true: a page of parity is programmed after all pages that it covers, once, and says how
//! many they are; no page is programmed again, so parity is never that of something else. Pages of
//! a row that is not full have none yet: a row gets it with its last page, and the last row of a
//! segment when the segment is finished.

use super::Store;
use crate::medium::format::{PageKind, PageTrailer};
use crate::medium::layout::{Row, SegmentPage};
use crate::medium::page::{self, PageInfo};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_codec::parity::RowParity;
use onode_media::IoTag;
use onode_object::Result;
use zerocopy::IntoBytes;

/// The rows of open segments.
#[derive(Default)]
pub(super) struct OpenRows {
    rows: BTreeMap<u32, OpenRow>,
    /// Buffers of segments that are finished, for the next ones with as many pages of parity.
    idle: BTreeMap<u8, Vec<RowParity>>,
}

struct OpenRow {
    sequence: u32,
    row: Row,
    parity: RowParity,
    /// Its parity was programmed, or cannot be: what comes to it later has none.
    is_closed: bool,
}

impl Store {
    /// Memory for the parity of rows that are being filled, in bytes.
    pub fn parity_bytes(&self) -> usize {
        let OpenRows { rows, idle } = &self.rows;
        rows.values().map(|open| &open.parity).chain(idle.values().flatten()).map(RowParity::memory_bytes).sum()
    }

    /// Counts the page `at`, which was programmed as these `parts`, for the parity of its row, and
    /// programs that behind the last page of the row; returns the page of parity that failed.
    pub(super) fn cover(&mut self, at: SegmentPage, sequence: u32, parts: &[&[u8]]) -> Result<Option<SegmentPage>> {
        let layout = self.layout;
        let (row, Some(column)) = layout.row_of(at) else { return Ok(None) };
        if row.parity == 0 {
            return Ok(None);
        }
        let OpenRows { rows, idle } = &mut self.rows;
        let open = rows.entry(at.segment).or_insert_with(|| OpenRow {
            sequence,
            row,
            parity: idle
                .get_mut(&row.parity)
                .and_then(Vec::pop)
                .unwrap_or_else(|| RowParity::new(usize::from(row.parity), layout.covered_bytes())),
            is_closed: false,
        });
        if (open.sequence, open.row) != (sequence, row) {
            if !is_planted(Bug::ParityRowMixed) {
                open.parity.clear();
            }
            (open.sequence, open.row, open.is_closed) = (sequence, row, false);
        }
        while open.parity.columns() < column {
            open.parity.push_missing();
        }
        open.parity.push_parts(parts);
        if column + 1 < layout.row_pages(row.parity) {
            return Ok(None);
        }
        self.program_parity(row)
    }

    /// Programs the parity of the last row of `segment`, if it is not full.
    pub(super) fn close_row(&mut self, segment: u32) -> Result<()> {
        let Some(row) = self.rows.rows.get(&segment).map(|open| open.row) else { return Ok(()) };
        if !is_planted(Bug::ParityLastRowOmitted) {
            // A segment that holds all it will ever hold is as good without parity of its last row
            // as one whose row was never full.
            self.program_parity(row)?;
        }
        self.forget_row(segment);
        Ok(())
    }

    /// Programs the parity of all rows that are not full. If the session goes on, what follows goes
    /// elsewhere, see [`is_row_closed`](Self::is_row_closed).
    pub fn close_rows(&mut self) -> Result<()> {
        let rows: Vec<Row> = self.rows.rows.values().map(|open| open.row).collect();
        for row in rows {
            self.program_parity(row)?;
        }
        Ok(())
    }

    /// Whether the parity of the row of `at` was programmed already: what comes to `at` has none.
    pub fn is_row_closed(&self, at: SegmentPage) -> bool {
        let (row, _) = self.layout.row_of(at);
        self.rows.rows.get(&at.segment).is_some_and(|open| open.is_closed && open.row == row)
    }

    /// What was programmed in `segment` needs no parity any more.
    pub fn forget_row(&mut self, segment: u32) {
        let OpenRows { rows, idle } = &mut self.rows;
        if let Some(OpenRow { mut parity, row, .. }) = rows.remove(&segment) {
            parity.clear();
            idle.entry(row.parity).or_default().push(parity);
        }
    }

    /// Programs the parity of `row`; returns the page that failed.
    fn program_parity(&mut self, row: Row) -> Result<Option<SegmentPage>> {
        let Some(open) = self.rows.rows.get_mut(&row.segment).filter(|open| !open.is_closed) else { return Ok(None) };
        if open.parity.columns() == 0 {
            return Ok(None);
        }
        open.is_closed = true;
        let (sequence, columns) = (open.sequence, open.parity.columns());
        let pages: Vec<Vec<u8>> =
            (0..usize::from(row.parity)).map(|number| open.parity.parity(number).to_vec()).collect();
        for (number, image) in (0u32..).zip(&pages) {
            let at = self.layout.parity_page(row, number);
            let address = self.layout.address(at);
            let (payload, more) = image.split_at(self.layout.payload_bytes as usize);
            let info = PageInfo {
                kind: PageKind::Parity,
                record_bytes: columns as usize,
                echo_bytes: number as usize,
                sequence,
                spare_bytes: more.len(),
                flushed: false,
            };
            let trailer: PageTrailer = page::seal(self.seed, address, info, payload, more);
            if is_planted(Bug::ParityOmitted) {
                continue;
            }
            if !self.program_sealed(address, payload, [trailer.as_bytes(), more, &[]], IoTag::Parity)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}
