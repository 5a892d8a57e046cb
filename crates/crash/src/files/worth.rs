//! What content is worth on a device that lets it change without a transaction (docs/semantics.md,
//! the four modes), as far as calls are concerned that are durable at their return.
//!
//! An overwrite within a file's size is done where the bytes lie: cut in the middle it leaves of
//! each aligned 8 bytes the old or the new ones. Whatever else changes content is a transaction,
//! and changes it wholly or not at all.

use crate::files::calls::Call;
use crate::files::state::{Content, FileState, NodeKind, Number};

/// What is promised for content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// Every call is done wholly or not at all, and durable at its return: the mode `atomic`.
    Whole,
    /// Overwrites may be torn until they have returned and are durable then: the mode `sync`; and
    /// `mem`, where only a process ends and the memory stays.
    InPlace,
    /// The same, but they are durable only with the next change of anything or sync; and what a
    /// call wrote into new places may be anything until it has returned: the mode `meta`.
    Late,
}

/// Bytes that are never torn.
const WORD: usize = 8;

/// What a word may hold; `None` is anything.
type Candidate = [Option<u8>; WORD];

impl Worth {
    /// Notes down in the state after a call what its return promises, and what it may leave if it
    /// does not return.
    pub fn note(self, call: &Call, before: &FileState, after: &mut FileState) {
        if self == Self::Whole {
            return after.cover_all();
        }
        let overwritten = overwritten(call, before);
        if let Some(content) = overwritten.and_then(|number| after.content_mut(number)) {
            let version = content.last();
            content.in_place.push(version);
        }
        if self == Self::Late
            && let Some((path, from, length)) = written(call, before)
            && let Some(content) = after.find(path).and_then(|number| after.content_mut(number))
        {
            let version = content.last();
            content.fresh.push((version, from..from + length));
        }
        if self == Self::InPlace || call.covers() || (overwritten.is_none() && is_changed(before, after)) {
            after.cover_all();
        }
    }
}

/// The file whose bytes a call overwrites within its size.
fn overwritten(call: &Call, before: &FileState) -> Option<Number> {
    let Call::Write(path, offset, length) = call else { return None };
    let number = before.find(path)?;
    (offset + length <= before.content(number)?.newest().len()).then_some(number)
}

/// Path, start and length of the bytes that a call writes.
fn written<'a>(call: &'a Call, before: &FileState) -> Option<(&'a str, usize, usize)> {
    let size = |path: &str| before.content(before.find(path)?).map(|content| content.newest().len());
    match call {
        Call::Write(path, offset, length) => Some((path, *offset, *length)),
        Call::Append(path, length) => Some((path, size(path)?, *length)),
        Call::Rewrite(path, length) | Call::Publish(path, length) => Some((path, 0, *length)),
        _ => None,
    }
}

/// Whether anything is seen otherwise, so that something was committed.
fn is_changed(before: &FileState, after: &FileState) -> bool {
    before.files.len() != after.files.len()
        || before.files.iter().any(|(number, one)| {
            let Some(other) = after.files.get(number) else { return true };
            let is_same = match (&one.kind, &other.kind) {
                (NodeKind::Regular(one), NodeKind::Regular(other)) => one.newest() == other.newest(),
                (one, other) => one == other,
            };
            !is_same || (one.permissions, &one.xattrs) != (other.permissions, &other.xattrs)
        })
}

/// Whether a cut may leave these bytes, put together from versions since `from`. Of `returned`
/// versions the call has returned.
#[must_use]
pub fn shows(content: &Content, seen: &[u8], from: usize, returned: usize) -> bool {
    let is_mixed = !content.in_place.is_empty() || !content.fresh.is_empty();
    let of_length = |version: &usize| {
        content.versions.get(*version).is_some_and(|bytes| bytes.len() == seen.len())
            && !content.hidden.contains(version)
    };
    is_mixed
        && (from..content.versions.len()).filter(of_length).any(|version| {
            (0..seen.len()).step_by(WORD).all(|at| {
                let word = &seen[at..seen.len().min(at + WORD)];
                let candidates = candidates(content, version, at, from, returned);
                candidates.iter().any(|one| word.iter().zip(one).all(|(byte, may)| may.is_none_or(|may| may == *byte)))
            })
        })
}

/// What the word at `at` may hold of a version.
fn candidates(content: &Content, version: usize, at: usize, from: usize, returned: usize) -> Vec<Candidate> {
    let word = |version: usize| -> Candidate {
        std::array::from_fn(|byte| content.versions.get(version).and_then(|bytes| bytes.get(at + byte)).copied())
    };
    let mut all = vec![word(from)];
    for one in from..=version {
        if one > from {
            let (before, after) = (word(one - 1), word(one));
            if content.in_place.contains(&one) {
                if before != after && !all.contains(&after) {
                    all.push(after);
                }
            } else {
                // A transaction changes its bytes over whatever is there.
                for candidate in &mut all {
                    for byte in (0..WORD).filter(|byte| before[*byte] != after[*byte]) {
                        candidate[byte] = after[byte];
                    }
                }
            }
        }
        let fresh = content.fresh.iter().filter(|(version, _)| *version == one && one >= returned);
        for (_, range) in fresh {
            for byte in (0..WORD).filter(|byte| range.contains(&(at + byte))) {
                all.iter_mut().for_each(|candidate| candidate[byte] = None);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn content(versions: &[&[u8]]) -> Content {
        Content { versions: versions.iter().map(|bytes| Arc::new(bytes.to_vec())).collect(), ..Content::default() }
    }

    #[test]
    fn an_overwrite_is_torn_at_words_and_a_transaction_is_not() {
        let both = [&[1; 20][..], &[2; 20]];
        let torn = |bytes: [u8; 3]| [[bytes[0]; 8].to_vec(), vec![bytes[1]; 8], vec![bytes[2]; 4]].concat();
        let in_place = Content { in_place: vec![1], ..content(&both) };
        assert!(shows(&in_place, &torn([1, 2, 1]), 0, 1));
        assert!(!shows(&in_place, &torn([1, 3, 1]), 0, 1), "bytes that nobody wrote");
        let mut within = torn([1, 1, 1]);
        within[3] = 2;
        assert!(!shows(&in_place, &within, 0, 1), "torn within a word");
        assert!(!shows(&in_place, &torn([1, 2, 1]), 1, 2), "it has returned and is covered");
        assert!(!shows(&content(&both), &torn([1, 2, 1]), 0, 1), "a transaction");
    }

    #[test]
    fn new_bytes_are_anything_only_while_the_call_is_under_way() {
        let grown = Content { fresh: vec![(1, 10..30)], ..content(&[&[1; 10], &[1; 30]]) };
        let seen = [&[1; 10][..], &[9; 20]].concat();
        assert!(shows(&grown, &seen, 0, 1));
        assert!(!shows(&grown, &seen, 0, 2), "it has returned");
        assert!(!shows(&grown, &[9; 30], 0, 1), "what was durable before stays");
        assert!(!shows(&grown, &[1; 29], 0, 1), "a size that was never there");
    }

    #[test]
    fn a_transaction_changes_its_bytes_over_overwrites_that_wait() {
        let punched = [[2; 8], [0; 8]].concat();
        let waiting = Content { in_place: vec![1], ..content(&[&[1; 16], &[2; 16], &punched]) };
        assert!(shows(&waiting, &[[1; 8], [0; 8]].concat(), 0, 2));
        assert!(shows(&waiting, &[[1; 8], [2; 8]].concat(), 0, 2), "the transaction is lost");
        assert!(!shows(&waiting, &[[0; 8], [0; 8]].concat(), 0, 2));
    }
}
