//! What happens to a NAND, kept so that the medium before any operation can be had again.
//!
//! Operations are kept in *stretches*: the medium as it was, and the operations that followed. What
//! reads do to unstable pages and what a failed operation leaves are no operations, so each begins
//! a new stretch. On a full volume a run may take a million operations; when they have more bytes
//! than memory should be spent on, every other stretch is let go of, from its beginning on, and of
//! those to come every other one is left out. What is left is spread over the whole run, and is the
//! same each time that it is recorded.

use crate::nand::{Geometry, Nand};
use crate::sim::cut::MediaOperation;
use crate::sim::nand::SimNand;
use alloc::vec::Vec;

/// Operations of a stretch: half as many are done again for a state, which is nothing beside a
/// mount, and the medium at the beginning takes about as much as a dozen operations.
const STRETCH: usize = 64;

/// Most bytes of a recording, about.
const MOST_BYTES: usize = 256 << 20;

/// What an operation takes beside its bytes.
const OPERATION_BYTES: usize = 128;

/// Operations one after another.
#[derive(Clone)]
struct Stretch {
    /// Stretches before it, kept or not.
    number: usize,
    /// Operations before it.
    first: usize,
    /// The medium before the first of them.
    before: SimNand,
    operations: Vec<MediaOperation>,
}

impl Stretch {
    /// What it takes if one stretch of `one_in` is kept: the medium shares content with the one
    /// kept before, but for what was written between.
    fn bytes(&self, one_in: usize) -> usize {
        let geometry = self.before.geometry();
        let written = self.operations.iter().map(operation_bytes).sum::<usize>();
        let page_bytes = geometry.page_bytes as usize + geometry.spare_bytes as usize + OPERATION_BYTES;
        let left_out = (one_in - 1).saturating_mul(written).min(geometry.pages() as usize * page_bytes);
        medium_bytes(&geometry) + written + left_out
    }
}

/// What a kept medium takes in any case: a few words for each block, and the list of pages of a
/// block or two.
const fn medium_bytes(geometry: &Geometry) -> usize {
    2048 + 32 * (geometry.blocks as usize + geometry.pages_per_block as usize)
}

fn operation_bytes(operation: &MediaOperation) -> usize {
    OPERATION_BYTES
        + match operation {
            MediaOperation::Program { data, spare, .. } => data.len() + spare.len(),
            MediaOperation::Erase { .. } | MediaOperation::MarkBad { .. } => 0,
        }
}

/// The operations of a medium so far.
#[derive(Clone)]
pub struct NandRecording {
    stretches: Vec<Stretch>,
    /// Operations so far, kept or not.
    operations: usize,
    /// Stretches that were begun.
    begun: usize,
    /// Operations of the last of them.
    length: usize,
    /// The medium is not what its last operations made of it.
    was_changed: bool,
    /// One stretch of so many is kept.
    one_in: usize,
    /// What is kept takes, about, but for the last stretch.
    bytes: usize,
    most_bytes: usize,
}

impl Default for NandRecording {
    fn default() -> Self {
        Self::with_most_bytes(MOST_BYTES)
    }
}

impl NandRecording {
    const fn with_most_bytes(most_bytes: usize) -> Self {
        Self {
            stretches: Vec::new(),
            operations: 0,
            begun: 0,
            length: 0,
            was_changed: true,
            one_in: 1,
            bytes: 0,
            most_bytes,
        }
    }

    /// The medium changed by something else than an operation.
    pub(super) const fn note_change(&mut self) {
        self.was_changed = true;
    }

    /// Whether the next operation begins a stretch.
    const fn begins(&self) -> bool {
        self.was_changed || self.length == STRETCH
    }

    /// Whether the next operation is to be added with the medium before it.
    pub(super) const fn wants_medium(&self) -> bool {
        self.begins() && self.begun.is_multiple_of(self.one_in)
    }

    /// Adds an operation, `before` which the medium was as it is if it was wanted.
    pub(super) fn add(&mut self, operation: MediaOperation, before: Option<SimNand>) {
        if self.begins() {
            self.begin(before);
        }
        self.operations += 1;
        self.length += 1;
        if let Some(last) = self.stretches.last_mut().filter(|last| last.number + 1 == self.begun) {
            last.operations.push(operation);
        }
    }

    fn begin(&mut self, before: Option<SimNand>) {
        let (number, first) = (self.begun, self.operations);
        self.begun += 1;
        self.length = 0;
        self.was_changed = false;
        let Some(before) = before else { return };
        self.bytes += self.stretches.last().map_or(0, |last| last.bytes(self.one_in));
        self.stretches.push(Stretch { number, first, before, operations: Vec::new() });
        while self.bytes > self.most_bytes {
            self.one_in *= 2;
            self.stretches.retain(|one| one.number.is_multiple_of(self.one_in));
            let bytes = |over: &[Stretch]| over.iter().map(|one| one.bytes(self.one_in)).sum();
            self.bytes = self.stretches.split_last().map_or(0, |(_, over)| bytes(over));
        }
    }

    /// Operations so far.
    #[must_use]
    pub const fn operations(&self) -> usize {
        self.operations
    }

    /// The geometry of the medium, if there was an operation.
    #[must_use]
    pub fn geometry(&self) -> Option<Geometry> {
        self.stretches.first().map(|first| first.before.geometry())
    }

    /// The positions of operations that are kept.
    pub fn kept(&self) -> impl Iterator<Item = usize> {
        self.stretches.iter().flat_map(|one| one.first..one.first + one.operations.len())
    }

    /// The stretch of the operation at `position`, and its index there, if it is kept.
    fn find(&self, position: usize) -> Option<(&Stretch, usize)> {
        let index = self.stretches.partition_point(|one| one.first <= position).checked_sub(1)?;
        let stretch = self.stretches.get(index)?;
        let at = position - stretch.first;
        (at < stretch.operations.len()).then_some((stretch, at))
    }

    /// The operation at `position`, if it is kept.
    #[must_use]
    pub fn operation(&self, position: usize) -> Option<&MediaOperation> {
        self.find(position).and_then(|(stretch, at)| stretch.operations.get(at))
    }

    /// The medium before the operation at `position`, if that is kept.
    #[must_use]
    pub fn before(&self, position: usize) -> Option<SimNand> {
        let (stretch, at) = self.find(position)?;
        let mut nand = stretch.before.clone();
        for operation in &stretch.operations[..at] {
            // It succeeded in the run.
            let _ = nand.apply(operation);
        }
        Some(nand)
    }
}

#[cfg(test)]
mod tests;
