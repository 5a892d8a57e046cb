//! Images of media as files, kept in memory without the blocks that hold nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Unit in which content is kept.
pub const BLOCK: usize = 4096;

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Its length.
    pub length: u64,
    /// The blocks that hold anything but zeros.
    pub blocks: BTreeMap<u64, Vec<u8>>,
}

impl Image {
    /// Reads a file.
    ///
    /// # Errors
    /// The host's.
    pub fn read(path: &Path) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        let blocks = bytes.chunks(BLOCK).enumerate().filter(|(_, block)| block.iter().any(|byte| *byte != 0));
        let blocks = blocks.map(|(number, block)| (number as u64, block.to_vec())).collect();
        Ok(Self { length: bytes.len() as u64, blocks })
    }

    /// Writes it to a new file.
    ///
    /// # Errors
    /// The host's.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let file = File::create(path)?;
        file.set_len(self.length)?;
        self.blocks.iter().try_for_each(|(number, block)| file.write_all_at(block, number * BLOCK as u64))
    }

    /// One byte.
    #[must_use]
    pub fn byte(&self, at: u64) -> u8 {
        let block = self.blocks.get(&(at / BLOCK as u64));
        block.and_then(|block| block.get((at % BLOCK as u64) as usize)).copied().unwrap_or(0)
    }

    /// Sets bytes from `at`, as far as the file reaches; returns how many of them are other ones
    /// now.
    pub fn set(&mut self, at: u64, bytes: &[u8]) -> u64 {
        let mut changed = 0;
        for (offset, byte) in (at..self.length).zip(bytes) {
            if self.byte(offset) != *byte {
                changed += 1;
                let block = self.blocks.entry(offset / BLOCK as u64).or_insert_with(|| vec![0; BLOCK]);
                if let Some(place) = block.get_mut((offset % BLOCK as u64) as usize) {
                    *place = *byte;
                }
            }
        }
        changed
    }
}

/// A folder in memory for images, gone at the end.
pub struct Scratch(PathBuf);

static SCRATCHES: AtomicU64 = AtomicU64::new(0);

impl Scratch {
    /// A new one.
    ///
    /// # Errors
    /// The host's.
    pub fn new(name: &str, number: u64) -> io::Result<Self> {
        let memory = PathBuf::from("/dev/shm");
        let above = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let turn = SCRATCHES.fetch_add(1, Ordering::Relaxed);
        let folder = above.join(format!("onode-damage-{}-{turn}-{name}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Makes it hold these files and nothing else.
    ///
    /// # Errors
    /// The host's.
    pub fn lay_out(&self, images: &BTreeMap<&'static str, Option<Image>>) -> io::Result<()> {
        fs::remove_dir_all(&self.0)?;
        write_to(&self.0, images)
    }
}

/// Writes these files into `folder`.
///
/// # Errors
/// The host's.
pub fn write_to(folder: &Path, images: &BTreeMap<&'static str, Option<Image>>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (name, image) in images {
        if let Some(image) = image {
            image.write(&folder.join(name))?;
        }
    }
    Ok(())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
