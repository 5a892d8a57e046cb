//! The recount: every place that is referred to against the segment table, and against every other.

use super::finding::{Finding, FindingKind, Place, Severity};
use super::medium::Medium;
use super::model::Last;
use super::table::Table;
use super::walk::{CheckedIndex, Claim, Referrer, live_bytes};
use super::{Context, unreadable};
use crate::medium::format::{DEFERRED_PIECE, Superblock};
use crate::medium::layout::Layout;
use crate::policy::Stream;
use crate::space::segments::SegmentState;
use alloc::collections::BTreeMap;
use alloc::format;
use onode_base::planted::{Bug, is_planted};

/// Checks the state at the newest checkpoint against what that checkpoint says of itself.
pub(crate) fn checkpoint(
    medium: &Medium<'_>,
    superblock: &Superblock,
    table: &Table,
    index: &CheckedIndex,
    context: &mut Context<'_>,
) {
    let layout = *medium.layout();
    shared_places(&index.claims, context);
    places_in_use(&layout, table, &index.claims, context);
    let live = live_bytes(&index.claims, &layout);
    for ((segment, one), &counted) in (0u32..).zip(&table.segments).zip(&live) {
        let stored = u64::from(one.live_bytes);
        // What refers to a lost node's places cannot be counted.
        let wrong = if index.lost.is_empty() { stored != counted } else { stored < counted };
        if wrong && (!is_idle(one.state) || counted == 0) {
            let finding = Finding::new(Severity::Error, FindingKind::LiveBytesWrong, Place::Segment { segment });
            context.add(finding.expected(format!("{counted} bytes")).found(format!("{stored} bytes")));
        }
    }
    if index.lost.is_empty() {
        for (kind, stored, counted) in [
            (FindingKind::ObjectCountWrong, superblock.objects.get(), index.objects),
            (FindingKind::ExtentCountWrong, superblock.extents.get(), index.extents),
        ] {
            if stored != counted {
                let finding = Finding::new(Severity::Error, kind, Place::Volume);
                context.add(finding.expected(format!("{counted}")).found(format!("{stored}")));
            }
        }
    }
}

/// Checks the state after the journal was applied, and the content if `data` says so.
pub(crate) fn replayed(medium: &mut Medium<'_>, table: &Table, last: &Last, data: bool, context: &mut Context<'_>) {
    let layout = *medium.layout();
    if last.changed {
        shared_places(&last.claims, context);
        places_in_use(&layout, table, &last.claims, context);
    }
    context.report.objects = last.objects;
    context.report.extents = last.extents;
    medium.expect(core::iter::empty());
    let mut rest = last.claims.as_slice();
    while let Some((claim, behind)) = rest.split_first() {
        if is_content(claim) {
            context.report.content_bytes += u64::from(claim.length);
            if data {
                verify(medium, table, rest, context);
            }
        }
        rest = behind;
    }
}

const fn is_content(claim: &Claim) -> bool {
    matches!(claim.owner, Referrer::Content { .. })
}

/// Reads the content behind the first of `claims`; neighbouring pages that are lost make one
/// finding.
fn verify(medium: &mut Medium<'_>, table: &Table, claims: &[Claim], context: &mut Context<'_>) {
    let Some((claim, others)) = claims.split_first() else { return };
    let Referrer::Content { object, offset } = claim.owner else { return };
    let layout = *medium.layout();
    let sequence = table.sequence(&layout, claim.location);
    let mut pending: Option<Finding> = None;
    let mut done = 0;
    while done < claim.length {
        let (at, within) = layout.page_of(claim.location + u64::from(done));
        if medium.expects_nothing() {
            let pages =
                others.iter().filter(|one| is_content(one)).flat_map(|one| layout.pages_of(one.location, one.length));
            medium.expect(layout.pages_of(claim.location + u64::from(done), claim.length - done).chain(pages));
        }
        let count = (layout.payload_bytes - within).min(claim.length - done);
        let range = offset + u64::from(done)..offset + u64::from(done + count);
        match medium.bytes(claim.location + u64::from(done), u64::from(count), sequence) {
            Ok(_) => context.report.bytes_verified += u64::from(count),
            Err(_) if is_planted(Bug::DamagedFlashCheckSkips) => {}
            Err(fault) => match &mut pending {
                Some(Finding { range: Some(before), .. }) if before.end == range.start => before.end = range.end,
                _ => {
                    let place = Place::Page { segment: at.segment, page: at.page };
                    let finding = unreadable(Severity::Error, FindingKind::ContentUnreadable, place, &fault);
                    if let Some(before) = pending.replace(finding.of(object).bytes(range)) {
                        context.add(before);
                    }
                }
            },
        }
        done += count;
    }
    if let Some(finding) = pending {
        context.add(finding);
    }
    context.advance(medium.pages_read());
}

/// Reports places that two things share; `claims` are in order.
fn shared_places(claims: &[Claim], context: &mut Context<'_>) {
    let mut end = 0;
    let mut holder = None;
    for claim in claims {
        let until = claim.location.saturating_add(u64::from(claim.length));
        if claim.location < end
            && let Some(Claim { owner, .. }) = holder
        {
            let place = Place::Bytes { location: claim.location, length: u64::from(claim.length) };
            let mut finding = Finding::new(Severity::Error, FindingKind::PlaceShared, place);
            if let Referrer::Content { object, offset } = claim.owner {
                finding = finding.of(object).bytes(offset..offset + u64::from(claim.length));
            }
            context.add(finding.expected("one owner").found(format!("{} and {}", name(&owner), name(&claim.owner))));
        }
        if until > end {
            end = until;
            holder = Some(*claim);
        }
    }
}

fn name(owner: &Referrer) -> alloc::string::String {
    match owner {
        Referrer::Content { object, offset } => format!("object {object} from byte {offset}"),
        Referrer::Node { level, .. } => format!("a tree node of level {level}"),
        Referrer::TablePiece { piece: DEFERRED_PIECE } => "deferred changes".into(),
        Referrer::TablePiece { piece } => format!("segment table piece {piece}"),
    }
}

/// Reports segments that are referred to although they are not in use, or of a stream that does not
/// hold such things; one finding for each segment.
fn places_in_use(layout: &Layout, table: &Table, claims: &[Claim], context: &mut Context<'_>) {
    let mut idle: BTreeMap<u32, u64> = BTreeMap::new();
    let mut wrong: BTreeMap<u32, u64> = BTreeMap::new();
    for claim in claims {
        let Some(one) = table.of(layout, claim.location) else { continue };
        let segment = layout.segment_of(claim.location);
        if is_idle(one.state) {
            *idle.entry(segment).or_default() += 1;
        } else if (one.stream != Stream::Journal && is_content(claim) == (one.stream == Stream::Index))
            || layout.parity_at(claim.location) != layout.parity_of(one.stream)
        {
            *wrong.entry(segment).or_default() += 1;
        }
    }
    for (kind, segments) in [(FindingKind::SegmentNotInUse, idle), (FindingKind::StreamWrong, wrong)] {
        for (segment, places) in segments {
            let Some(one) = table.segments.get(segment as usize) else { continue };
            let finding = Finding::new(Severity::Error, kind, Place::Segment { segment });
            let found = format!("{} {}, {places} places are referred to", one.state.name(), one.stream.name());
            context.add(finding.found(found));
        }
    }
}

const fn is_idle(state: SegmentState) -> bool {
    matches!(state, SegmentState::Free | SegmentState::Held | SegmentState::Bad)
}
