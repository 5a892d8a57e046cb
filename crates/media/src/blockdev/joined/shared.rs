//! What many threads read of joined disks.

use crate::blockdev::{DiskRead, SharedDisk};
use crate::error::{Error, MediaErrorKind, Result};
use crate::tag::IoTag;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::sync::{Mutex, rank};

/// One of the disks.
#[derive(Clone)]
pub(super) struct SharedPart {
    pub(super) disk: Arc<dyn SharedDisk>,
    /// Where it begins in the whole.
    pub(super) start: u64,
    /// Bytes of the disk before those that are part of the whole.
    pub(super) skip: u64,
}

/// All of them. Who reads has those that there were when it began: one that comes meanwhile holds
/// nothing that anybody could want before.
pub(super) struct SharedParts(Mutex<Arc<[SharedPart]>, rank::MediumJoined>);

impl SharedParts {
    pub(super) fn new(parts: Vec<SharedPart>) -> Self {
        Self(Mutex::new(parts.into()))
    }

    pub(super) fn push(&self, part: SharedPart) {
        let mut parts = self.0.lock();
        *parts = parts.iter().cloned().chain([part]).collect();
    }

    /// Who begins to read from now on reads `part` in place of the one with that number, which
    /// holds the same.
    pub(super) fn replace(&self, which: usize, part: SharedPart) {
        let mut parts = self.0.lock();
        *parts =
            parts.iter().enumerate().map(|(number, old)| if number == which { &part } else { old }).cloned().collect();
    }

    fn parts(&self) -> Arc<[SharedPart]> {
        Arc::clone(&*self.0.lock())
    }
}

/// The disk that has the byte at `offset`, its byte there, and how many from there on it has.
fn find(parts: &[SharedPart], offset: u64) -> Option<(usize, u64, u64)> {
    let which = parts.iter().rposition(|part| part.start <= offset)?;
    let until = parts.get(which + 1).map_or(u64::MAX, |next| next.start);
    let part = parts.get(which)?;
    Some((which, offset - part.start + part.skip, until - offset))
}

fn nowhere(offset: u64) -> Error {
    Error::new(MediaErrorKind::OutOfRange, format!("no disk has the byte {offset}"))
}

fn read_pieces(parts: &[SharedPart], mut offset: u64, mut out: &mut [u8], tag: IoTag) -> Result<()> {
    while !out.is_empty() {
        let (which, at, most) = find(parts, offset).ok_or_else(|| nowhere(offset))?;
        let (now, later) = out.split_at_mut((out.len() as u64).min(most) as usize);
        parts.get(which).ok_or_else(|| nowhere(offset))?.disk.read_at(at, now, tag)?;
        offset += now.len() as u64;
        out = later;
    }
    Ok(())
}

impl SharedDisk for SharedParts {
    fn is_in_the_way(&self, offset: u64, bytes: u64) -> bool {
        let parts = self.parts();
        let (mut at, end) = (offset, offset.saturating_add(bytes));
        while at < end {
            let Some((which, inside, most)) = find(&parts, at) else { return false };
            let count = most.min(end - at);
            if parts.get(which).is_some_and(|part| part.disk.is_in_the_way(inside, count)) {
                return true;
            }
            at += count;
        }
        false
    }

    fn read_at(&self, offset: u64, out: &mut [u8], tag: IoTag) -> Result<()> {
        read_pieces(&self.parts(), offset, out, tag)
    }

    /// All of one disk at once, one disk after another. What lies on two is read by itself.
    fn read_batch(&self, reads: &mut [DiskRead<'_>], tag: IoTag) {
        let parts = self.parts();
        let mut by_part: Vec<Vec<(usize, DiskRead<'_>)>> = parts.iter().map(|_| Vec::new()).collect();
        let mut results: Vec<Result<()>> = reads.iter().map(|_| Ok(())).collect();
        for ((number, read), result) in reads.iter_mut().enumerate().zip(&mut results) {
            match find(&parts, read.offset) {
                Some((which, offset, most)) if read.out.len() as u64 <= most => {
                    if let Some(of_part) = by_part.get_mut(which) {
                        of_part.push((number, DiskRead { offset, out: &mut *read.out, result: Ok(()) }));
                    }
                }
                _ => *result = read_pieces(&parts, read.offset, read.out, tag),
            }
        }
        for (part, of_part) in parts.iter().zip(by_part) {
            let (numbers, mut of_part): (Vec<_>, Vec<_>) = of_part.into_iter().unzip();
            if !of_part.is_empty() {
                part.disk.read_batch(&mut of_part, tag);
            }
            for (number, read) in numbers.into_iter().zip(of_part) {
                results.get_mut(number).into_iter().for_each(|result| *result = read.result.clone());
            }
        }
        for (read, result) in reads.iter_mut().zip(results) {
            read.result = result;
        }
    }

    fn flush(&self) -> Result<()> {
        let flushed: Vec<_> = self.parts().iter().map(|part| part.disk.flush()).collect();
        flushed.into_iter().collect()
    }
}
