//! The rows of a volume with parity: whether the pages of each agree, and how many have no parity.

use super::Context;
use super::finding::{Finding, FindingKind, Place, Severity};
use super::medium::{Fault, Medium};
use super::table::Table;
use super::unreadable;
use super::walk::Claim;
use crate::space::segments::SegmentState;
use alloc::collections::BTreeSet;
use alloc::format;

/// Looks at all rows that something refers to.
pub(crate) fn check(medium: &mut Medium<'_>, table: &Table, claims: &[Claim], context: &mut Context<'_>) {
    let layout = *medium.layout();
    if !layout.has_parity() {
        return;
    }
    let mut used = BTreeSet::new();
    for claim in claims.iter().filter(|claim| layout.contains(claim.location, u64::from(claim.length))) {
        used.extend(layout.pages_of(claim.location, claim.length).map(|at| layout.row_of(at).0));
    }
    for (segment, one) in (0u32..).zip(&table.segments) {
        let counts = matches!(one.state, SegmentState::Full | SegmentState::Open | SegmentState::Failing);
        if !counts || one.live_bytes == 0 {
            continue;
        }
        for row in layout.rows_of(one.stream, segment).filter(|row| used.contains(row)) {
            let state = match medium.row(row, one.sequence) {
                Ok(state) => state,
                Err(fault @ Fault::Medium(_)) => {
                    let place = Place::Segment { segment };
                    context.add(unreadable(Severity::Fatal, FindingKind::MediumFailed, place, &fault));
                    return;
                }
                Err(_) => continue,
            };
            medium.note_rebuilt(&state.rebuilt);
            context.report.unprotected_pages += u64::from(state.unprotected);
            if state.wrong_parity > 0 {
                let place = Place::Segment { segment };
                let finding = Finding::new(Severity::Warning, FindingKind::ParityDamaged, place);
                context.add(finding.found(format!("row {}: {} pages of parity", row.row, state.wrong_parity)));
            }
            for at in state.doubtful {
                let place = Place::Page { segment, page: at.page };
                let finding = Finding::new(Severity::Error, FindingKind::SignatureWrong, place);
                context.add(finding.found("its checksum is right, its signature and the parity of its row are not"));
            }
        }
        context.advance(medium.pages_read());
    }
}
