//! A read of many pages: runs of pages that follow each other, several of which are asked of the
//! medium together, so that all chips of a NAND or the whole queue of a disk work for one read.
//!
//! It keeps true: no page is read twice because its bytes are wanted twice; a run that cannot be
//! read costs none of the others.

use super::{Cause, Pages, ReadRun, ReadRuns, Want, read_alone};
use crate::medium::layout::{Layout, SegmentPage};
use crate::medium::page::{self, Examined, PageFault};
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use onode_media::{MediaErrorKind, PageAddress, PageRun};

/// Runs that are asked for together at most.
const RUNS_TOGETHER: usize = 32;
/// Bytes that they fill together at most, if they are more than one.
const BYTES_TOGETHER: usize = 1 << 20;

/// Runs that are read together, each a range of the list of wants.
#[derive(Default)]
struct Batch {
    runs: Vec<Range<usize>>,
    bytes: usize,
    /// Pages that are kept once they are read.
    kept: BTreeSet<SegmentPage>,
    /// Wants of those that come again.
    again: Vec<usize>,
    /// Where the last of those ends in the buffer that go straight there.
    filled: usize,
}

impl Batch {
    /// Whether it takes a run, `straight` into the buffer or not.
    fn takes(&self, run: &[Want], bytes: usize, straight: bool) -> bool {
        let Some(first) = run.first() else { return false };
        self.runs.is_empty()
            || self.runs.len() < RUNS_TOGETHER
                && self.bytes + bytes <= BYTES_TOGETHER
                && (!straight || first.to.start >= self.filled)
                && !run.iter().any(|want| want.kept && self.kept.contains(&want.at))
    }

    /// Whether `want` finds its page in memory once all is read, of which `most` pages are kept.
    fn has(&self, want: &Want, most: usize) -> bool {
        want.kept && self.kept.len() <= most && self.kept.contains(&want.at)
    }

    fn push(&mut self, wants: &[Want], run: Range<usize>, bytes: usize, straight: bool) {
        let of_run = &wants[run.clone()];
        self.bytes += bytes;
        self.kept.extend(of_run.iter().filter(|want| want.kept).map(|want| want.at));
        if straight {
            self.filled = of_run.last().map_or(self.filled, |want| want.to.end);
        }
        self.runs.push(run);
    }
}

/// Where runs are read to.
struct Buffers<'a> {
    /// The buffer of who reads.
    out: &'a mut [u8],
    /// What they need beside it, one after another.
    beside: &'a mut [u8],
}

impl Pages {
    /// Fills `out` with what `wants` ask for; the error names the wants of the first run with a bad
    /// page.
    pub fn read(
        &self,
        wants: &[Want],
        out: &mut [u8],
        medium: &mut ReadRuns<'_>,
    ) -> core::result::Result<(), (Range<usize>, Cause)> {
        let mut next = 0;
        while next < wants.len() {
            let batch = self.next_batch(wants, &mut next, out);
            // The medium need not hear of what was kept.
            if !batch.runs.is_empty() {
                self.read_batch(&batch.runs, wants, out, medium)?;
            }
            for index in batch.again {
                self.read_again(wants, index, out, medium)?;
            }
        }
        Ok(())
    }

    /// Fills `out` with what want `index` asks for, whose page was just read.
    fn read_again(
        &self,
        wants: &[Want],
        index: usize,
        out: &mut [u8],
        medium: &mut ReadRuns<'_>,
    ) -> core::result::Result<(), (Range<usize>, Cause)> {
        let want = &wants[index];
        match self.kept(self.layout.address(want.at), want.sequence) {
            Some(page) => out[want.to.clone()].copy_from_slice(&page.payload[want.from..][..want.to.len()]),
            // Others needed the memory meanwhile.
            None => self.read_batch(core::slice::from_ref(&(index..index + 1)), wants, out, medium)?,
        }
        Ok(())
    }

    /// The runs that are read next, from want `next` on; what was kept before is in the buffer.
    fn next_batch(&self, wants: &[Want], next: &mut usize, out: &mut [u8]) -> Batch {
        let mut batch = Batch::default();
        let most_kept = self.budget_bytes() / 2 / self.layout.payload_bytes as usize;
        while let Some(want) = wants.get(*next) {
            let address = self.layout.address(want.at);
            if want.kept
                && let Some(page) = self.kept(address, want.sequence)
            {
                out[want.to.clone()].copy_from_slice(&page.payload[want.from..][..want.to.len()]);
                *next += 1;
                continue;
            }
            if batch.has(want, most_kept) {
                batch.again.push(*next);
                *next += 1;
                continue;
            }
            let run = *next..*next + self.run(address, &wants[*next..]);
            let bytes = run.len() * self.layout.geometry.page_bytes as usize;
            let straight = self.goes_straight(want);
            if !batch.takes(&wants[run.clone()], bytes, straight) {
                break;
            }
            *next = run.end;
            batch.push(wants, run, bytes, straight);
        }
        batch
    }

    fn read_batch(
        &self,
        runs: &[Range<usize>],
        wants: &[Want],
        out: &mut [u8],
        medium: &mut ReadRuns<'_>,
    ) -> core::result::Result<(), (Range<usize>, Cause)> {
        let bytes: Vec<[usize; 2]> = runs.iter().map(|run| self.bytes_beside(&wants[run.clone()])).collect();
        let mut beside = vec![0; bytes.iter().flatten().sum()];
        let read = self.read_together(runs, wants, Buffers { out: &mut *out, beside: &mut beside }, medium);
        let mut beside = &beside[..];
        for ((run, [data, spare]), read) in runs.iter().zip(bytes).zip(read) {
            let of_run = &wants[run.clone()];
            let (data, rest) = beside.split_at(data);
            let (spare, rest) = rest.split_at(spare);
            beside = rest;
            let read = match read {
                Ok(()) if self.is_straight(of_run) => self.verify_straight(of_run, out, spare),
                Ok(()) => self.verify_and_copy(of_run, data, spare, out),
                Err(error) => Err(cause_of(of_run, error)),
            };
            let read = match read {
                Err(Cause::Damaged(..)) if self.layout.has_parity() => self.read_or_rebuild(of_run, out, medium),
                read => read,
            };
            read.map_err(|cause| (run.clone(), cause))?;
        }
        Ok(())
    }

    /// Asks for several runs together; says of each how it ended.
    fn read_together(
        &self,
        runs: &[Range<usize>],
        wants: &[Want],
        buffers: Buffers<'_>,
        medium: &mut ReadRuns<'_>,
    ) -> Vec<onode_media::Result<()>> {
        let Buffers { mut out, mut beside } = buffers;
        let mut passed = 0;
        let mut asked = Vec::with_capacity(runs.len());
        for run in runs {
            let run = &wants[run.clone()];
            let [data, spare] = self.bytes_beside(run);
            let (mut data, rest) = beside.split_at_mut(data);
            let (spare, rest) = rest.split_at_mut(spare);
            beside = rest;
            if let ([Want { to: first, .. }, ..], [.., Want { to: last, .. }]) = (run, run)
                && self.is_straight(run)
            {
                let (_, rest) = out.split_at_mut(first.start - passed);
                (data, out) = rest.split_at_mut(last.end - first.start);
                passed = last.end;
            }
            let first = run.first().map_or(PageAddress(0), |want| self.layout.address(want.at));
            asked.push(PageRun::new(first, data, spare));
        }
        medium(&mut asked);
        asked.into_iter().map(|run| run.result).collect()
    }

    /// Each page by itself, from the parity of its row if it is damaged.
    fn read_or_rebuild(
        &self,
        run: &[Want],
        out: &mut [u8],
        medium: &mut ReadRuns<'_>,
    ) -> core::result::Result<(), Cause> {
        let medium: &mut ReadRun<'_> = &mut |first, data, spare| read_alone(medium, first, data, spare);
        for want in run {
            let found = self.examine_or_rebuild(want.at, Some(want.sequence), medium).map_err(Cause::Medium)?;
            match found {
                Examined::Sound(page) => {
                    out[want.to.clone()].copy_from_slice(&page.payload[want.from..][..want.to.len()]);
                    self.keep(self.layout.address(want.at), page);
                }
                Examined::Unsound(fault) => return Err(Cause::Damaged(want.at, fault)),
            }
        }
        Ok(())
    }

    /// Whether the medium can put a page where it is wanted, because its trailer lies elsewhere.
    const fn goes_straight(&self, want: &Want) -> bool {
        Layout::trailer_in_spare(&self.layout.geometry) && !want.kept
    }

    fn is_straight(&self, run: &[Want]) -> bool {
        run.first().is_some_and(|want| self.goes_straight(want))
    }

    /// Bytes of data and spare bytes that a run needs beside the buffer of who reads.
    fn bytes_beside(&self, run: &[Want]) -> [usize; 2] {
        let shape = &self.layout.geometry;
        let spare = Layout::spare_bytes_read(shape);
        let data = if self.is_straight(run) { 0 } else { shape.page_bytes as usize };
        [run.len() * data, run.len() * spare]
    }

    /// How many of `wants`, the first of which is at `first`, are one request.
    fn run(&self, first: PageAddress, wants: &[Want]) -> usize {
        let shape = &self.layout.geometry;
        let straight = self.is_straight(wants);
        if !straight && Layout::trailer_in_spare(shape) {
            return 1;
        }
        let follows = |(index, pair): &(usize, &[Want])| {
            let [before, want] = pair else { return false };
            let address = self.layout.address(want.at);
            address.0 == first.0 + *index as u64 + 1
                && shape.block_of(address) == shape.block_of(first)
                && self.goes_straight(want) == straight
                && (!straight || want.to.start == before.to.end)
                && !(want.kept && self.kept(address, want.sequence).is_some())
        };
        1 + wants.windows(2).enumerate().take_while(follows).count()
    }

    /// Verifies whole pages, which were read to where they are wanted.
    fn verify_straight(&self, run: &[Want], out: &[u8], spares: &[u8]) -> core::result::Result<(), Cause> {
        let spares = spares.chunks(self.layout.geometry.spare_bytes as usize);
        for (want, spare) in run.iter().zip(spares) {
            let address = self.layout.address(want.at);
            page::verify(self.seed, address, Some(want.sequence), spare, &out[want.to.clone()])
                .map_err(|fault| Cause::Damaged(want.at, fault))?;
        }
        Ok(())
    }

    /// Verifies pages and copies what is wanted of them.
    fn verify_and_copy(
        &self,
        run: &[Want],
        pages: &[u8],
        spare: &[u8],
        out: &mut [u8],
    ) -> core::result::Result<(), Cause> {
        let shape = &self.layout.geometry;
        let in_spare = Layout::trailer_in_spare(shape);
        for (want, page) in run.iter().zip(pages.chunks(shape.page_bytes as usize)) {
            let (payload, rest) = page.split_at(self.layout.payload_bytes as usize);
            let trailer = if in_spare { spare } else { rest };
            let (address, sequence) = (self.layout.address(want.at), Some(want.sequence));
            let damaged = |fault| Cause::Damaged(want.at, fault);
            if want.kept {
                self.keep(address, self.verified(address, sequence, payload, trailer).map_err(damaged)?);
            } else {
                page::verify(self.seed, address, sequence, trailer, payload).map_err(damaged)?;
            }
            out[want.to.clone()].copy_from_slice(&payload[want.from..][..want.to.len()]);
        }
        Ok(())
    }
}

/// What the medium cannot correct is damaged, which concerns its bytes alone; anything else
/// concerns the medium.
fn cause_of(run: &[Want], error: onode_media::Error) -> Cause {
    match run.first() {
        Some(want) if error.kind == MediaErrorKind::Uncorrectable => Cause::Damaged(want.at, PageFault::Checksum),
        _ => Cause::Medium(error),
    }
}
