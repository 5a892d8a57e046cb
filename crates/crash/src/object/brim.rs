//! A volume filled to the last byte with files as a file system makes them, overwritten, opened
//! again and emptied.
//!
//! Which part it is in follows from the number of calls so far: a cut anywhere finds a volume that
//! is nearly full, full or on the way to be empty, and what comes after the cut has to free
//! something at once.

use crate::object::ObjectState;
use onode_base::Prng;
use onode_object::{AttributeKey, AttributeKind, Hints, Mutation, ObjectDevice, ObjectId, Transaction};

/// The name of the profile.
pub const NAME: &str = "brim";

/// Calls of the parts: filling, overwriting, emptying.
const FILL: usize = 50;
const OVERWRITE: usize = 10;
const EMPTY: usize = 30;
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
    /// Write over what is there.
    Overwrite,
    /// Close and open.
    Reopen,
    /// Remove files, so many calls before none should be left.
    Empty(usize),
}

/// The part that a run is in after so many calls. Closing and opening are two.
#[must_use]
pub const fn part(calls: usize) -> Part {
    let at = calls % (FILL + OVERWRITE + 2 + EMPTY);
    match at {
        _ if at < FILL => Part::Fill,
        _ if at < FILL + OVERWRITE => Part::Overwrite,
        _ if at < FILL + OVERWRITE + 2 => Part::Reopen,
        _ => Part::Empty(FILL + OVERWRITE + 2 + EMPTY - at),
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
        let mut data = vec![0; length as usize];
        prng.fill(&mut data);
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

/// Other bytes over all that a file has.
#[must_use]
pub fn overwrite(before: &ObjectState, prng: &mut Prng) -> (Transaction, ObjectState) {
    let (mut state, mut transaction) = (before.clone(), Transaction::new());
    let files = files(&state);
    if let Some(&object) = files.get(prng.below(files.len() as u64) as usize) {
        let mut data = vec![0; state.objects.get(&object).map_or(0, |one| one.content.len())];
        prng.fill(&mut data);
        if !data.is_empty() {
            add(&mut state, &mut transaction, Mutation::Write { object, offset: 0, data });
        }
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
        assert_eq!(part(FILL), Part::Overwrite);
        assert_eq!(part(FILL + OVERWRITE), Part::Reopen);
        assert_eq!(part(FILL + OVERWRITE + 2), Part::Empty(EMPTY));
        assert_eq!(part(FILL + OVERWRITE + 2 + EMPTY), Part::Fill);
    }
}
