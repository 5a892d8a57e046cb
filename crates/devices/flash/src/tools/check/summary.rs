//! Segment summaries: sound, and naming everything in their segment that the index refers to.
//!
//! A summary names what was written, not what is still needed, so only one direction can be
//! checked: what the index refers to must be named, or the cleaner would never move it.

use super::finding::{Finding, FindingKind, Place, Severity};
use super::medium::{Fault, Medium};
use super::table::Table;
use super::walk::{CheckedIndex, Claim, Referrer};
use super::{Context, unreadable};
use crate::medium::format::{NO_SUMMARY, PageKind, SUMMARY_MAGIC, SummaryHeader};
use crate::space::items::{self, Item, Items};
use crate::space::segments::{Segment, SegmentState};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_object::ObjectId;
use zerocopy::FromBytes;

/// A summary that was read.
pub(crate) struct Summary {
    pub(crate) items: Vec<Item>,
}

/// Why there is no summary.
pub(crate) enum Lost {
    Fault(Fault),
    Malformed(String),
}

/// Reads the summary that `one` says starts at its `summary_page`.
pub(crate) fn read(medium: &mut Medium<'_>, segment: u32, one: &Segment) -> Result<Summary, Lost> {
    let layout = *medium.layout();
    let at = layout.page(one.stream, segment, u32::from(one.summary_page));
    let page = medium.page(at, Some(one.sequence)).map_err(Lost::Fault)?;
    if page.info.kind != PageKind::Summary {
        return Err(Lost::Malformed(format!("page {} is of kind {:?}", at.page, page.info.kind)));
    }
    let Ok((header, _)) = SummaryHeader::read_from_prefix(&page.payload) else {
        return Err(Lost::Malformed("a page too small for it".into()));
    };
    if header.magic != SUMMARY_MAGIC || header.sequence.get() != one.sequence {
        return Err(Lost::Malformed(format!("magic {:?}, sequence {}", header.magic, header.sequence.get())));
    }
    let start = layout.location(at, 0) + size_of::<SummaryHeader>() as u64;
    let length = u64::from(header.item_bytes.get());
    let bytes = medium.bytes(start, length, Some(one.sequence)).map_err(Lost::Fault)?;
    let (found, expected) = (onode_base::checksum::crc32c(&bytes), header.checksum.get());
    if found != expected {
        return Err(Lost::Fault(Fault::Checksum { expected, found }));
    }
    let items = Items::decode(&bytes, header.items.get());
    let inside = |item: &Item| u64::from(item.start) + u64::from(item.length) <= layout.bytes_with(at.parity);
    match items.filter(|items| items.iter().all(inside)) {
        Some(items) => Ok(Summary { items }),
        None => Err(Lost::Malformed(format!("{} items in {length} bytes that make no sense", header.items.get()))),
    }
}

/// Checks the summaries of all sealed segments.
pub(crate) fn check(medium: &mut Medium<'_>, table: &Table, index: &CheckedIndex, context: &mut Context<'_>) {
    let layout = *medium.layout();
    medium.expect(core::iter::empty());
    let sealed = (0u32..).zip(&table.segments);
    let mut sealed = sealed.filter(|(_, one)| one.state == SegmentState::Full && one.summary_page != NO_SUMMARY);
    while let Some((segment, one)) = sealed.next() {
        if medium.expects_nothing() {
            let others = core::iter::once((segment, one)).chain(sealed.clone());
            medium.expect(others.map(|(segment, one)| layout.page(one.stream, segment, u32::from(one.summary_page))));
        }
        let place = Place::Page { segment, page: u32::from(one.summary_page) };
        let summary = match read(medium, segment, one) {
            Ok(summary) => summary,
            // Nothing is lost: the cleaner walks the index instead.
            Err(Lost::Fault(fault)) => {
                context.add(unreadable(Severity::Warning, FindingKind::SummaryUnreadable, place, &fault));
                continue;
            }
            Err(Lost::Malformed(found)) => {
                context.add(Finding::new(Severity::Warning, FindingKind::SummaryUnreadable, place).found(found));
                continue;
            }
        };
        context.advance(medium.pages_read());
        let parity = layout.parity_of(one.stream);
        let base = layout.start_of(segment, parity);
        let first = index.claims.partition_point(|claim| claim.location < base);
        let unnamed = index.claims[first..]
            .iter()
            .take_while(|claim| claim.location < base + layout.bytes_with(parity))
            .find(|claim| !is_named(claim, base, &summary.items));
        if let Some(claim) = unnamed {
            let finding = Finding::new(Severity::Error, FindingKind::SummaryIncomplete, Place::Segment { segment });
            context.add(finding.found(format!("{:?} is not named", claim.owner)));
        }
    }
}

/// Whether content that was written to `object` may be that of `owner` now.
const fn is_of_family(object: u64, owner: u64) -> bool {
    ObjectId(object).origin().0 == ObjectId(owner).origin().0
}

/// Whether items name the whole of `claim` as belonging to its owner. Items ascend.
fn is_named(claim: &Claim, base: u64, items: &[Item]) -> bool {
    let start = (claim.location - base) as u32;
    let end = start + claim.length;
    let mut at = start;
    let first = items.partition_point(|item| item.start + item.length <= start);
    for item in &items[first..] {
        let matches = match (item.owner, claim.owner) {
            (items::Owner::Content { object, offset }, Referrer::Content { object: owner, offset: from }) => {
                is_of_family(object, owner)
                    && offset.wrapping_sub(u64::from(item.start)) == from.wrapping_sub(u64::from(start))
            }
            (items::Owner::Node { key, level }, Referrer::Node { key: first, level: at }) => {
                (key, level) == (first, at)
            }
            (items::Owner::TablePiece { piece }, Referrer::TablePiece { piece: one }) => piece == one,
            _ => false,
        };
        if item.start > at || !matches {
            return false;
        }
        at = item.start + item.length;
        if at >= end {
            return true;
        }
    }
    false
}
