//! What a disk holds: what is durable, and what its cache would lose.

use crate::blockdev::{ATOMIC_BYTES, SECTOR_BYTES};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::Prng;

const SECTOR: u64 = SECTOR_BYTES as u64;

type Sectors = BTreeMap<u64, Arc<[u8]>>;

/// A change that a power cut may undo, in part.
#[derive(Clone, Debug)]
pub struct PendingWrite {
    /// Its first byte.
    pub offset: u64,
    /// What was written; `None` for zeros of a discard.
    pub bytes: Option<Arc<[u8]>>,
    /// Bytes changed.
    pub length: u64,
}

impl PendingWrite {
    /// The units of 512 bytes that a power cut keeps or loses, each by itself.
    #[must_use]
    pub const fn pieces(&self) -> u64 {
        self.length / ATOMIC_BYTES as u64
    }
}

/// The content of a disk with a volatile cache. A clone is cheap: sectors are shared.
#[derive(Clone, Debug, Default)]
pub struct Cached {
    present: Sectors,
    durable: Sectors,
    pending: Vec<PendingWrite>,
    /// How many of them a flush under way covers.
    covered: usize,
    /// What is discarded reads as anything.
    is_arbitrary: bool,
}

impl Cached {
    /// The same content, of a disk where from now on what is discarded reads as anything: zeros,
    /// ones or noise, as devices do that promise nothing. Who still needs it finds out.
    #[must_use]
    pub fn with_arbitrary_discards(mut self) -> Self {
        self.is_arbitrary = true;
        self
    }

    /// Reads what programs see; what was never written is zeros.
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        for (at, sector) in (offset / SECTOR..).zip(out.chunks_mut(SECTOR_BYTES)) {
            match self.present.get(&at) {
                Some(bytes) => sector.copy_from_slice(bytes.get(..sector.len()).unwrap_or_default()),
                None => sector.fill(0),
            }
        }
    }

    /// Writes whole sectors, into the cache.
    pub fn write(&mut self, offset: u64, bytes: Arc<[u8]>) {
        put(&mut self.present, offset, &bytes);
        let length = bytes.len() as u64;
        self.pending.push(PendingWrite { offset, bytes: Some(bytes), length });
    }

    /// Makes whole sectors read as zeros, or as anything, unless they were never written: a large
    /// disk would become as large in memory.
    pub fn discard(&mut self, offset: u64, length: u64) {
        if self.is_arbitrary {
            let sectors = offset / SECTOR..(offset + length) / SECTOR;
            let written: Vec<u64> = self.present.range(sectors).map(|(at, _)| *at).collect();
            written.into_iter().for_each(|at| self.write(at * SECTOR, Arc::from(anything(at))));
            return;
        }
        self.present.retain(|at, _| !(offset / SECTOR..(offset + length) / SECTOR).contains(at));
        self.pending.push(PendingWrite { offset, bytes: None, length });
    }

    /// Makes all of it durable.
    pub fn flush(&mut self) {
        self.begin_flush();
        self.end_flush();
    }

    /// What was written until now is what [`end_flush`](Self::end_flush) makes durable.
    pub fn begin_flush(&mut self) {
        self.covered = self.pending.len();
    }

    /// Makes durable what was written before the flush began.
    pub fn end_flush(&mut self) {
        let covered = core::mem::take(&mut self.covered);
        for write in self.pending.drain(..covered) {
            match write.bytes {
                Some(bytes) => put(&mut self.durable, write.offset, &bytes),
                None => {
                    let gone = write.offset / SECTOR..(write.offset + write.length) / SECTOR;
                    self.durable.retain(|at, _| !gone.contains(at));
                }
            }
        }
    }

    /// Forgets what should have become durable, as disks do whose flush failed.
    pub fn forget_pending(&mut self) {
        self.pending.clear();
        self.covered = 0;
    }

    /// The changes since the last flush, in their order.
    #[must_use]
    pub fn pending(&self) -> &[PendingWrite] {
        &self.pending
    }

    /// What a power cut leaves if `survives` says of each piece of each pending change whether it
    /// got through. Where several did, the last one counts.
    #[must_use]
    pub fn after_cut(&self, mut survives: impl FnMut(usize, u64) -> bool) -> Self {
        let mut left = self.durable.clone();
        for (number, write) in self.pending.iter().enumerate() {
            for piece in 0..write.pieces() {
                if survives(number, piece) {
                    let within = piece * ATOMIC_BYTES as u64;
                    let from = within as usize..within as usize + ATOMIC_BYTES;
                    let bytes = write.bytes.as_deref().and_then(|bytes| bytes.get(from)).unwrap_or(&[0; ATOMIC_BYTES]);
                    patch(&mut left, write.offset + within, bytes);
                }
            }
        }
        Self { present: left.clone(), durable: left, is_arbitrary: self.is_arbitrary, ..Self::default() }
    }

    /// The content that programs see, as it would be if it were all durable.
    #[must_use]
    pub fn settled(&self) -> Self {
        let is_arbitrary = self.is_arbitrary;
        Self { present: self.present.clone(), durable: self.present.clone(), is_arbitrary, ..Self::default() }
    }
}

/// What a discarded sector reads as; the same each time, so that a run can be repeated.
fn anything(sector: u64) -> Vec<u8> {
    let mut prng = Prng::new(sector ^ 0xd15c_a2d5);
    match sector % 4 {
        0 => alloc::vec![0; SECTOR_BYTES],
        1 => alloc::vec![0xff; SECTOR_BYTES],
        _ => (0..SECTOR_BYTES).map(|_| prng.below(256) as u8).collect(),
    }
}

fn put(sectors: &mut Sectors, offset: u64, bytes: &[u8]) {
    for (at, sector) in (offset / SECTOR..).zip(bytes.chunks(SECTOR_BYTES)) {
        sectors.insert(at, Arc::from(sector));
    }
}

/// Changes one piece of a sector.
fn patch(sectors: &mut Sectors, offset: u64, bytes: &[u8]) {
    let within = (offset % SECTOR) as usize;
    let old = sectors.get(&(offset / SECTOR));
    let mut sector = old.map_or_else(|| alloc::vec![0; SECTOR_BYTES], |old| old.to_vec());
    if let Some(piece) = sector.get_mut(within..within + bytes.len()) {
        piece.copy_from_slice(bytes);
    }
    sectors.insert(offset / SECTOR, Arc::from(sector));
}
