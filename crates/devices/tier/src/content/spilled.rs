//! Content that only the log of the fast disk has: read there, and compared with its checksum.
//!
//! What it keeps true: the log is not given up before all that refers to it has a place on the big
//! disk, durably, which is when the checkpoint is at its end.

use crate::content::pending::Logged;
use crate::disks::Disks;
use crate::medium::errors::{damaged, from_media, within};
use crate::medium::layout::{BLOCK, BLOCK_BYTES};
use alloc::vec;
use alloc::vec::Vec;
use onode_base::checksum::crc32c;
use onode_media::IoTag;
use onode_object::{Error, ErrorKind, Result};

/// Where a row of bytes begins and ends, and how many blocks lie in it.
struct Row {
    begin: u64,
    end: u64,
    blocks: usize,
}

impl Disks {
    /// Reads blocks, one behind the other, each padded with zeros.
    ///
    /// # Errors
    /// `Media`, also if the fast disk is away; `Corrupt`.
    pub fn load(&self, wanted: &[Logged]) -> Result<Vec<u8>> {
        let mut rows: Vec<Row> = Vec::new();
        for logged in wanted {
            let (begin, end) =
                (logged.at / BLOCK * BLOCK, (logged.at + u64::from(logged.length)).next_multiple_of(BLOCK));
            match rows.last_mut() {
                Some(row) if (row.begin..=row.end).contains(&begin) => {
                    (row.end, row.blocks) = (row.end.max(end), row.blocks + 1)
                }
                _ => rows.push(Row { begin, end, blocks: 1 }),
            }
        }
        let mut read: Vec<Vec<u8>> = rows.iter().map(|row| vec![0; (row.end - row.begin) as usize]).collect();
        self.let_others();
        let mut slot = self.fast.lock();
        let fast =
            slot.get().ok_or_else(|| Error::new(ErrorKind::Media, "only the fast disk has it, and that is away"))?;
        let mut reads: Vec<(u64, &mut [u8])> =
            rows.iter().zip(&mut read).map(|(row, bytes)| (row.begin, &mut bytes[..])).collect();
        let done = fast.disk().read_batch(&mut reads, IoTag::Journal);
        done.map_err(|error| from_media("reading the log of the fast disk", &error))?;
        drop(slot);
        let mut out = Vec::with_capacity(wanted.len() * BLOCK_BYTES);
        let mut wanted = wanted.iter();
        for (row, bytes) in rows.iter().zip(&read) {
            for logged in wanted.by_ref().take(row.blocks) {
                let from = (logged.at - row.begin) as usize;
                out.extend_from_slice(within(bytes, from..from + logged.length as usize)?);
                out.resize(out.len().next_multiple_of(BLOCK_BYTES), 0);
                let block = within(&out, out.len().saturating_sub(BLOCK_BYTES)..out.len())?;
                if crc32c(block) != logged.sum {
                    return Err(damaged("content in the log of the fast disk does not have its checksum"));
                }
            }
        }
        Ok(out)
    }
}
