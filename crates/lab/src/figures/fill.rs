//! Filling a volume, and making it work afterwards.

use crate::bench::Bench;
use onode::{Result, Volume};
use onode_base::Prng;
use onode_fs::{Caller, InodeNumber, OpenFlags};

const PIECE: usize = 4096;
/// Small files that come and go while a volume is made to work.
const COMING_AND_GOING: usize = 32;

/// The share of the usable space that is used, in thousandths.
pub(crate) fn used_in_1000(bench: &Bench) -> u64 {
    let space = bench.files.device().space();
    (space.total.saturating_sub(space.available) * 1000).checked_div(space.total).unwrap_or(0)
}

/// Adds files of `file_bytes` until `percent` of the usable space is used. `names` counts them.
pub(crate) fn fill(bench: &Bench, percent: u64, file_bytes: usize, names: &mut u64) -> Result<()> {
    while used_in_1000(bench) < percent * 10 {
        // One byte all over: pages with equal content are kept once.
        let content = vec![*names as u8; file_bytes];
        write_file(bench, &format!("fill{names}"), &content)
            .map_err(|error| Volume::error("cannot fill the measured volume", &error))?;
        *names += 1;
    }
    bench.files.sync().map_err(|error| Volume::error("cannot fill the measured volume", &error))
}

/// Makes a file with content.
pub(crate) fn write_file(bench: &Bench, name: &str, content: &[u8]) -> onode_fs::Result<()> {
    let files = &bench.files;
    let inode = files.create(&Caller::root(), InodeNumber::ROOT, name.as_bytes(), 0o644)?.inode;
    let handle = files.open(&Caller::root(), inode, OpenFlags { write: true, truncate: false })?;
    for (index, piece) in content.chunks(1 << 20).enumerate() {
        files.write(&Caller::root(), inode, (index << 20) as u64, piece)?;
        files.tick();
    }
    files.release(handle)?;
    files.forget(inode, 1);
    Ok(())
}

/// Synced operations on a volume with files `fill0`...: pieces are rewritten, small files come and
/// go.
pub(crate) struct Churn {
    prng: Prng,
    filled: u64,
    file_bytes: usize,
    small: Vec<u64>,
    last: u64,
}

impl Churn {
    pub(crate) fn new(seed: u64, filled: u64, file_bytes: usize) -> Self {
        Self { prng: Prng::new(seed), filled, file_bytes, small: Vec::new(), last: 0 }
    }

    /// Does one operation, which is durable on return.
    pub(crate) fn step(&mut self, bench: &Bench) -> onode_fs::Result<()> {
        let files = &bench.files;
        if self.prng.chance(1, 2) || self.filled == 0 {
            if self.small.len() >= COMING_AND_GOING {
                let gone = self.small.remove(0);
                files.unlink(InodeNumber::ROOT, format!("small{gone}").as_bytes())?;
            } else {
                self.last += 1;
                let bytes = 1 + self.prng.below(PIECE as u64) as usize;
                write_file(bench, &format!("small{}", self.last), &vec![self.last as u8; bytes])?;
                self.small.push(self.last);
            }
            return files.sync();
        }
        let name = format!("fill{}", self.prng.below(self.filled));
        let piece = self.prng.below((self.file_bytes / PIECE) as u64);
        rewrite(bench, &name, piece * PIECE as u64, self.prng.next_u64() as u8)
    }
}

/// Writes 4 KB of a file again, durably.
pub(crate) fn rewrite(bench: &Bench, name: &str, offset: u64, byte: u8) -> onode_fs::Result<()> {
    let files = &bench.files;
    let inode = files.lookup(InodeNumber::ROOT, name.as_bytes())?.inode;
    let handle = files.open(&Caller::root(), inode, OpenFlags { write: true, truncate: false })?;
    files.write(&Caller::root(), inode, offset, &[byte; PIECE])?;
    files.fsync(inode, Some(handle), false)?;
    files.release(handle)?;
    files.forget(inode, 1);
    Ok(())
}
