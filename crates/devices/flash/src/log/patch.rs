//! Patches: what of an attribute changed, where a new value differs from the old one in the middle
//! only.
//!
//! An inode that is written anew mostly has new times and nothing else. The record of a synced
//! write then fits what a page has left beside its content.

use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};

/// The difference between two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Bytes at the front that stay.
    pub prefix: u32,
    /// Bytes at the end that stay.
    pub suffix: u32,
    /// What is between them.
    pub middle: Vec<u8>,
}

/// Bytes that a patch takes beside its middle, more than a whole value does.
const OVERHEAD_BYTES: usize = 4;

impl Patch {
    /// The patch that makes `new` of `old`; `None` if it would not be shorter than `new`.
    #[must_use]
    pub fn between(old: &[u8], new: &[u8]) -> Option<Self> {
        let prefix = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let (old, rest) = (&old[prefix..], &new[prefix..]);
        let suffix = old.iter().rev().zip(rest.iter().rev()).take_while(|(old, new)| old == new).count();
        let middle = &rest[..rest.len() - suffix];
        let shorter = middle.len() + OVERHEAD_BYTES < new.len();
        shorter.then(|| Self { prefix: prefix as u32, suffix: suffix as u32, middle: middle.to_vec() })
    }

    /// The new value; `None` if `old` is too short to be the value that it was made for.
    #[must_use]
    pub fn apply(&self, old: &[u8]) -> Option<Vec<u8>> {
        let (prefix, suffix) = (self.prefix as usize, self.suffix as usize);
        let end = old.len().checked_sub(suffix).filter(|&end| end >= prefix)?;
        let mut value = [&old[..prefix], &self.middle, &old[end..]].concat();
        if is_planted(Bug::PatchKeepsLength) {
            value.truncate(old.len());
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_make_the_new_value_of_the_old() {
        let old = *b"a quick brown fox jumps";
        for new in [
            &b"a quick green fox jumps"[..],
            b"a quick brown fox jumps",
            b"a quick fox jumps",
            b"a quick quick brown fox jumps",
        ] {
            let patch = Patch::between(&old, new).unwrap();
            assert_eq!(patch.apply(&old).as_deref(), Some(new));
            assert!(patch.middle.len() < 7);
        }
        assert_eq!(Patch::between(&old, b"different"), None);
        assert_eq!(Patch::between(&old, b""), None);
        assert_eq!(Patch::between(b"", b"new value"), None);
    }

    #[test]
    fn a_value_that_is_too_short_is_refused() {
        let patch = Patch { prefix: 3, suffix: 2, middle: Vec::new() };
        assert_eq!(patch.apply(b"1234"), None);
        assert_eq!(patch.apply(b"12345").as_deref(), Some(&b"12345"[..]));
    }
}
