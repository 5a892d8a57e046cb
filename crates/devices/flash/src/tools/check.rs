//! A check of a whole volume that changes nothing: its own walk over the raw pages and its own
//! recount.
//!
//! It starts at the superblocks and follows every reference: segment table, tree, extents,
//! summaries, journal. The state at the newest checkpoint is compared with what that checkpoint
//! says of itself; then the journal is applied to a model of the objects it touches, and the result
//! is checked too. It shares the format with the mounting path (decoders of nodes, items, records)
//! but neither its tree nor its table nor its replay, so that a mistake there does not hide itself.
//!
//! Findings are data. One damage gives one finding where that is possible: figures that cannot be
//! right because something before them is lost are not reported a second time.
//!
//! It does not repair; see [`repair`](mod@crate::tools::repair).

mod account;
mod ahead;
mod finding;
pub(crate) mod journal;
pub(crate) mod medium;
mod model;
mod rows;
pub(crate) mod summary;
pub(crate) mod superblocks;
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod walk;

pub use finding::{Finding, FindingKind, Place, Severity};

use crate::medium::format::Superblock;
use alloc::format;
use alloc::vec::Vec;
use medium::{Fault, Medium};
use onode_media::Nand;
use superblocks::Located;

/// What to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Read and verify every byte of content too.
    pub data: bool,
    /// The most findings that are kept; further ones are only counted.
    pub findings: usize,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { data: true, findings: 10_000 }
    }
}

/// How the journal ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalEnd {
    /// At a page that was never programmed, or is of an earlier life of its segment.
    #[default]
    Clean,
    /// At a page that a power cut hit; what it held was never confirmed.
    Torn,
    /// At a damaged page behind which the journal goes on.
    Damaged,
}

impl JournalEnd {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Torn => "torn",
            Self::Damaged => "damaged",
        }
    }
}

/// Segments by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentCounts {
    /// Free at the newest checkpoint.
    pub free: u32,
    /// Held for the checkpoint before.
    pub held: u32,
    /// Being filled, or reserved for the journal.
    pub open: u32,
    /// Written.
    pub full: u32,
    /// Retired.
    pub bad: u32,
    /// To be retired.
    pub failing: u32,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What is wrong, in the order it was found.
    pub findings: Vec<Finding>,
    /// Findings beyond the limit of the options.
    pub further_findings: u64,
    /// Readable superblocks.
    pub superblocks: u32,
    /// Pages of the superblock area that are neither erased nor readable.
    pub unreadable_superblocks: u32,
    /// Generation of the newest superblock; 0 if there is none.
    pub generation: u32,
    /// Whether the volume was closed in order.
    pub clean: bool,
    /// Tree nodes read.
    pub nodes: u64,
    /// Objects, after the journal was applied.
    pub objects: u64,
    /// Attributes at the newest checkpoint.
    pub attributes: u64,
    /// Extents, after the journal was applied.
    pub extents: u64,
    /// Bytes that the extents hold.
    pub content_bytes: u64,
    /// Bytes of content that were read and verified.
    pub bytes_verified: u64,
    /// Pages of segments in use that have no parity yet, on a volume with parity.
    pub unprotected_pages: u64,
    /// Segments by state.
    pub segments: SegmentCounts,
    /// Journal pages behind the newest checkpoint.
    pub journal_pages: u64,
    /// Journal records in them.
    pub journal_records: u64,
    /// How the journal ends.
    pub journal_end: JournalEnd,
    /// Pages read in all.
    pub pages_read: u64,
}

impl Report {
    /// Whether nothing is lost or wrong; warnings do not count.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.further_findings == 0 && self.worst().is_none_or(|worst| worst == Severity::Warning)
    }

    /// The worst finding's severity.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// Where findings go, and what is counted.
pub(crate) struct Context<'a> {
    pub(crate) report: Report,
    limit: usize,
    progress: Option<&'a mut dyn FnMut(u64, u64)>,
    done: u64,
    total: u64,
}

impl Context<'_> {
    /// One that tells nobody.
    pub(crate) fn silent() -> Self {
        Self { report: Report::default(), limit: 1000, progress: None, done: 0, total: 0 }
    }

    fn add(&mut self, finding: Finding) {
        if self.report.findings.len() < self.limit {
            if !self.report.findings.contains(&finding) {
                self.report.findings.push(finding);
            }
        } else {
            self.report.further_findings += 1;
        }
    }

    /// Tells how far the check is. The total is an estimate, so the part done never exceeds it.
    fn advance(&mut self, done: u64) {
        self.done = done;
        if let Some(progress) = &mut self.progress {
            progress(done.min(self.total), self.total);
        }
    }

    fn finish(mut self, pages_read: u64) -> Report {
        self.report.pages_read = pages_read;
        self.total = self.total.max(self.done);
        let total = self.total;
        self.advance(total);
        self.report
    }
}

/// Checks the volume on `nand`. `progress` hears of pages done and in all.
pub fn check(nand: &mut dyn Nand, options: &CheckOptions, progress: &mut dyn FnMut(u64, u64)) -> Report {
    let mut context = Context {
        report: Report::default(),
        limit: options.findings.max(1),
        progress: Some(progress),
        done: 0,
        total: 0,
    };
    let all = superblocks::scan(nand, &mut context);
    context.report.superblocks = all.len() as u32;
    let Some(newest) = all.last() else {
        if context.report.worst() != Some(Severity::Fatal) {
            context.add(Finding::new(Severity::Fatal, FindingKind::NoSuperblock, Place::Volume));
        }
        return context.finish(0);
    };
    context.report.generation = newest.superblock.generation.get();
    context.report.clean = newest.superblock.clean == 1;
    let Some(layout) = superblocks::judge(newest, nand, &mut context) else { return context.finish(0) };
    let mut medium = Medium::new(nand, layout, newest);
    check_checkpoint(&mut medium, newest, options, &mut context);
    for at in medium.rebuilt() {
        let place = Place::Segment { segment: at.segment };
        let finding = Finding::new(Severity::Warning, FindingKind::PageRebuilt, place);
        context.add(finding.found(format!("page {} is damaged; the parity of its row has what lay there", at.page)));
    }
    for at in medium.restored() {
        let place = Place::Segment { segment: at.segment };
        let finding = Finding::new(Severity::Warning, FindingKind::PageRestored, place);
        context.add(finding.found(format!("page {} is damaged and was read from its copy", at.page)));
    }
    context.finish(medium.pages_read())
}

fn check_checkpoint(medium: &mut Medium<'_>, newest: &Located, options: &CheckOptions, context: &mut Context<'_>) {
    let superblock: &Superblock = &newest.superblock;
    let Some(mut table) = table::load(medium, newest, context) else { return };
    context.total = table.pages_in_use(medium.layout(), options.data);
    table.judge(medium, superblock, context);
    let mut journal = journal::read(medium, superblock, context);
    journal.deferred = journal::read_deferred(medium, newest, &table, context);
    let mut index = walk::walk(medium, superblock, &table, journal.touched(), context);
    index.add_pieces(&newest.references.pieces);
    index.add_deferred(newest.references.deferred, &journal.deferred);
    account::checkpoint(medium, superblock, &table, &index, context);
    summary::check(medium, &table, &index, context);
    let checkpoint = model::Checkpoint { superblock, table: &mut table, index };
    let last = model::apply(medium, checkpoint, &journal, context);
    account::replayed(medium, &table, &last, options.data, context);
    if options.data {
        rows::check(medium, &table, &last.claims, context);
    }
}

/// A finding about something that cannot be read.
fn unreadable(severity: Severity, kind: FindingKind, place: Place, fault: &Fault) -> Finding {
    match fault {
        Fault::Medium(_) => Finding::new(Severity::Fatal, FindingKind::MediumFailed, place),
        _ => Finding::new(severity, kind, place),
    }
    .found(format!("{fault}"))
}
