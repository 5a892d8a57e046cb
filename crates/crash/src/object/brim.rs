//! A volume filled to the last byte with files as a file system makes them, overwritten, opened
//! again, cut and emptied.
//!
//! A device keeps more back than what it refuses new files for: bytes that are there can still be
//! replaced. So files are overwritten piece by piece until that is used up, too; every piece has to
//! be noted down by itself. What only frees must not be refused even then.
//!
//! Which part it is in follows from the number of calls so far: a cut anywhere finds a volume that
//! is nearly full, full or on the way to be empty, and what comes after the cut has to free
//! something at once.

use crate::object::ObjectState;
use crate::workload::content::content;
use onode_base::Prng;
use onode_object::{AttributeKey, AttributeKind, Hints, Mutation, ObjectDevice, ObjectId, Transaction};

/// The name of the profile.
pub const NAME: &str = "brim";

/// Calls of the parts: filling, overwriting files and pieces of them, closing and opening, cutting,
/// emptying.
const FILL: usize = 50;
const OVERWRITE: usize = 10;
const REPLACE: usize = 40;
const REOPEN: usize = 2;
const CUT: usize = 8;
const EMPTY: usize = 30;
/// Where the next part begins.
const FILLED: usize = FILL;
const OVERWRITTEN: usize = FILLED + OVERWRITE;
const REPLACED: usize = OVERWRITTEN + REPLACE;
const REOPENED: usize = REPLACED + REOPEN;
const SHORTENED: usize = REOPENED + CUT;
const EMPTIED: usize = SHORTENED + EMPTY;
/// Most bytes of a piece.
const PIECE_BYTES: u64 = 200;
/// Files that fill a volume, about.
const FILES: u64 = 200;
/// What a file takes besides its bytes, about.
const FILE_BYTES: u64 = 200;
const INODE_BYTES: usize = 72;

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Make files.
    Fill,
    /// Write over what is there, whole files.
    Overwrite,
    /// Write over pieces of what is there.
    Replace,
    /// Close and open.
    Reopen,
    /// Cut files short and punch holes into them.
    Cut,
    /// Remove files, so many calls before none should be left.
    Empty(usize),
}

/// The part that a run is in after so many calls. Closing and opening are two.
#[must_use]
pub const fn part(calls: usize) -> Part {
    match calls % EMPTIED {
        at if at < FILLED => Part::Fill,
        at if at < OVERWRITTEN => Part::Overwrite,
        at if at < REPLACED => Part::Replace,
        at if at < REOPENED => Part::Reopen,
        at if at < SHORTENED => Part::Cut,
        at => Part::Empty(EMPTIED - at),
    }
}

fn entry_of(object: ObjectId) -> AttributeKey {
    AttributeKey::new(AttributeKind(33), Prng::new(object.0).next_u64() >> 1)
}

/// The directory is the oldest object.
fn directory(state: &ObjectState) -> Option<ObjectId> {
    state.objects.keys().next().copied()
}

fn files(state: &ObjectState) -> Vec<ObjectId> {
    state.objects.keys().skip(1).copied().collect()
}

fn add(state: &mut ObjectState, transaction: &mut Transaction, mutation: Mutation) {
    if state.apply(&mutation) {
        transaction.mutations.push(mutation);
    }
}

/// A few new files, or a directory for them. `Ok(None)` stands for an id that was used before.
///
/// # Errors
/// The device's, when it hands out ids.
pub fn fill(
    device: &dyn ObjectDevice,
    before: &ObjectState,
    prng: &mut Prng,
) -> onode_object::Result<Option<(Transaction, ObjectState)>> {
    let (mut state, mut transaction) = (before.clone(), Transaction::new());
    let hints = Hints { embed: true, ..Hints::default() };
    // Ten at a time until that is too much.
    let count = [10, 10, 10, 3, 1][prng.below(5) as usize];
    let first = device.reserve_ids(count)?;
    if first <= state.highest || first < ObjectId::FIRST_FREE {
        return Ok(None);
    }
    let Some(directory) = directory(&state) else {
        add(&mut state, &mut transaction, Mutation::Create { object: first, hints });
        return Ok(Some((transaction, state)));
    };
    let least = (device.space().total / FILES).saturating_sub(FILE_BYTES);
    for object in (first.0..first.0 + count).map(ObjectId) {
        let drawn = [0, 0, 100, 300, 1000, 4096][prng.below(6) as usize];
        // Some are small however large the volume is.
        let length = if prng.chance(1, 3) { drawn } else { drawn.max(least) };
        let data = content(prng, length as usize);
        add(&mut state, &mut transaction, Mutation::Create { object, hints });
        let value = vec![object.0 as u8; INODE_BYTES];
        let key = AttributeKey::new(AttributeKind(32), 0);
        add(&mut state, &mut transaction, Mutation::SetAttribute { object, key, value });
        let (key, value) = (entry_of(object), object.0.to_le_bytes().repeat(4));
        add(&mut state, &mut transaction, Mutation::SetAttribute { object: directory, key, value });
        if !data.is_empty() {
            add(&mut state, &mut transaction, Mutation::Write { object, offset: 0, data });
        }
    }
    Ok(Some((transaction, state)))
}

/// Any file that has bytes, and how many.
fn any_file(files: &[ObjectId], state: &ObjectState, prng: &mut Prng) -> Option<(ObjectId, u64)> {
    let object = *files.get(prng.below(files.len() as u64) as usize)?;
    let length = state.objects.get(&object)?.content.len() as u64;
    (length > 0).then_some((object, length))
}

/// Other bytes over all that a file has.
#[must_use]
pub fn overwrite(before: &ObjectState, prng: &mut Prng) -> (Transaction, ObjectState) {
    let (mut state, mut transaction) = (before.clone(), Transaction::new());
    if let Some((object, length)) = any_file(&files(&state), &state, prng) {
        let data = content(prng, length as usize);
        add(&mut state, &mut transaction, Mutation::Write { object, offset: 0, data });
    }
    (transaction, state)
}

/// Other bytes over pieces of files, many at a time until that is too much.
#[must_use]
pub fn replace(before: &ObjectState, prng: &mut Prng) -> (Transaction, ObjectState) {
    let (mut state, mut transaction) = (before.clone(), Transaction::new());
    let files = files(&state);
    for _ in 0..[1, 4, 32][prng.below(3) as usize] {
        let Some((object, length)) = any_file(&files, &state, prng) else { continue };
        let offset = prng.below(length);
        let length = (1 + prng.below(PIECE_BYTES)).min(length - offset);
        let data = content(prng, length as usize);
        add(&mut state, &mut transaction, Mutation::Write { object, offset, data });
    }
    (transaction, state)
}

/// A few files lose their ends or get holes.
#[must_use]
pub fn cut(before: &ObjectState, prng: &mut Prng) -> (Transaction, ObjectState) {
    let (mut state, mut transaction) = (before.clone(), Transaction::new());
    let files = files(&state);
    for _ in 0..1 + prng.below(3) {
        let Some((object, length)) = any_file(&files, &state, prng) else { continue };
        let at = prng.below(length);
        let mutation = if prng.chance(1, 2) {
            Mutation::Truncate { object, size: at }
        } else {
            Mutation::Punch { object, offset: at, length: 1 + prng.below(PIECE_BYTES) }
        };
        add(&mut state, &mut transaction, mutation);
    }
    (transaction, state)
}

/// Some files go with their names: of those there are one in `share`. In which order follows from
/// `seed`: as they were made, as the directory lists them, or the last first.
#[must_use]
pub fn remove(before: &ObjectState, share: usize, seed: u64) -> (Transaction, ObjectState) {
    let (mut state, mut transaction) = (before.clone(), Transaction::new());
    let mut files = files(&state);
    match seed % 3 {
        0 => {}
        1 => files.sort_by_key(|object| entry_of(*object)),
        _ => files.reverse(),
    }
    files.truncate(files.len().div_ceil(share.max(1)));
    for object in files {
        if let Some(directory) = directory(&state) {
            let key = entry_of(object);
            add(&mut state, &mut transaction, Mutation::RemoveAttribute { object: directory, key });
        }
        add(&mut state, &mut transaction, Mutation::Remove { object });
    }
    (transaction, state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_follow_each_other() {
        assert_eq!(part(0), Part::Fill);
        assert_eq!(part(FILLED), Part::Overwrite);
        assert_eq!(part(OVERWRITTEN), Part::Replace);
        assert_eq!(part(REPLACED), Part::Reopen);
        assert_eq!(part(REOPENED), Part::Cut);
        assert_eq!(part(SHORTENED), Part::Empty(EMPTY));
        assert_eq!(part(EMPTIED), Part::Fill);
    }
}
