//! Keys that are remembered for a while, the oldest forgotten first.

use super::lists::Lists;

const ALL: usize = 0;

/// Keys with a size and a note.
#[derive(Debug, Default)]
pub(crate) struct Remembered(Lists<1>);

impl Remembered {
    /// Remembers a key, and forgets the oldest beyond sizes of `most` in all.
    pub fn push(&mut self, key: u64, size: u64, note: u32, most: u64) {
        self.0.push(ALL, key, size, note, 0);
        self.0.trim(ALL, most);
    }

    /// Forgets a key; whether it was remembered.
    pub fn take(&mut self, key: u64) -> bool {
        self.0.take(key).is_some()
    }

    /// What was noted of a key.
    pub fn note(&self, key: u64) -> Option<u32> {
        self.0.get(key).map(|entry| entry.count)
    }
}
