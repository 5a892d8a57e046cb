//! Which bytes of a file a copy writes, and how many there are of a tree.
//!
//! It depends on the bytes alone and not on what the source says of its holes: a volume that is
//! made twice from the same files has the same bytes, wherever they lie.

use super::wanted::Wanted;
use super::{Entry, Identity, Kind, Side};
use indicatif::ProgressBar;
use onode::Result;
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

/// Bytes copied at once; pieces begin at multiples of it.
pub const CHUNK_BYTES: usize = 1 << 20;
/// So many zeros at such a place are a hole.
const BLOCK_BYTES: usize = 4 << 10;

/// The parts of a piece that are no holes.
pub fn runs(data: &[u8]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (number, block) in data.chunks(BLOCK_BYTES).enumerate() {
        let start = number * BLOCK_BYTES;
        if block.iter().all(|byte| *byte == 0) {
            continue;
        }
        match runs.last_mut() {
            Some(last) if last.end == start => last.end += block.len(),
            _ => runs.push(start..start + block.len()),
        }
    }
    runs
}

/// Reads until the buffer is full or the file ends; how much.
///
/// # Errors
/// Those of the side.
pub fn fill(side: &dyn Side, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match side.read(path, offset + filled as u64, rest)? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}

/// How much a tree has.
#[derive(Debug, Default)]
pub struct Measure {
    /// Bytes of files without their holes, and of extended attributes.
    pub bytes: u64,
    /// Files of any kind.
    pub files: u64,
    shared: HashSet<Identity>,
    bar: Option<ProgressBar>,
}

impl Measure {
    /// One that shows how much it has read.
    pub fn shown(bar: ProgressBar) -> Self {
        Self { bar: Some(bar), ..Self::default() }
    }

    /// Adds what is at and below a path. All of it is read.
    ///
    /// # Errors
    /// Those of the side; `General` if somebody asks for an end.
    pub fn add(&mut self, wanted: &Wanted<'_>, path: &Path, entry: &Entry) -> Result<()> {
        let side = wanted.side;
        wanted.check(path, &super::Copied::default())?;
        if !wanted.admits(path, entry) || entry.shared.is_some_and(|shared| !self.shared.insert(shared)) {
            return Ok(());
        }
        self.files += 1;
        for xattr in side.xattrs(path)? {
            self.bytes += (xattr.name.len() + xattr.value.len()) as u64;
        }
        match entry.kind {
            Kind::Directory => {
                for name in side.names(path)? {
                    let inner = path.join(name);
                    if let Some(entry) = side.entry(&inner)? {
                        self.add(wanted, &inner, &entry)?;
                    }
                }
            }
            Kind::File => {
                let mut buffer = vec![0; CHUNK_BYTES];
                let mut offset = 0;
                while let Some(range) = side.data(path, offset)? {
                    offset = offset.max(range.start / CHUNK_BYTES as u64 * CHUNK_BYTES as u64);
                    wanted.check(path, &super::Copied::default())?;
                    let length = fill(side, path, offset, &mut buffer)?;
                    let data = buffer.get(..length).unwrap_or_default();
                    self.bytes += runs(data).into_iter().map(|run| run.len() as u64).sum::<u64>();
                    offset += CHUNK_BYTES as u64;
                    self.bar.iter().for_each(|bar| bar.inc(length as u64));
                    if length < CHUNK_BYTES {
                        break;
                    }
                }
            }
            Kind::Link(_) | Kind::Special(_) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a list of one range is one")]
    fn zeros_are_holes_in_whole_blocks() {
        let mut data = vec![0; 10 * BLOCK_BYTES + 7];
        assert!(runs(&data).is_empty() && runs(&[]).is_empty());
        data[BLOCK_BYTES + 5] = 1;
        data[2 * BLOCK_BYTES] = 1;
        assert_eq!(runs(&data), [BLOCK_BYTES..3 * BLOCK_BYTES]);
        data[10 * BLOCK_BYTES] = 1;
        assert_eq!(runs(&data), [BLOCK_BYTES..3 * BLOCK_BYTES, 10 * BLOCK_BYTES..10 * BLOCK_BYTES + 7]);
    }
}
