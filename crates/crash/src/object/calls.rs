//! Choosing transactions: every choice follows from the run's source of choices and the state.

use crate::object::{ObjectState, Profile};
use crate::workload::content::content;
use crate::workload::history::Run;
use onode_base::Prng;
use onode_object::{
    AttributeKey, AttributeKind, Compression, Hints, Mutation, ObjectDevice, ObjectId, ObjectKind, Transaction,
};

fn any_object(state: &ObjectState, prng: &mut Prng) -> Option<ObjectId> {
    let index = prng.below(state.objects.len() as u64) as usize;
    state.objects.keys().nth(index).copied()
}

fn bytes(prng: &mut Prng, most: u64) -> Vec<u8> {
    // Sizes of a few bytes, of about a page, of whole pages, and of anything.
    let length = match prng.below(5) {
        0 => 1 + prng.below(40),
        1 => 480 + prng.below(60),
        2 => 512 << prng.below(5),
        _ => 1 + prng.below(most),
    };
    content(prng, length.min(most) as usize)
}

fn hints(device: &dyn ObjectDevice, prng: &mut Prng) -> Hints {
    let kind =
        [ObjectKind::Unknown, ObjectKind::Data, ObjectKind::Directory, ObjectKind::Memory][prng.below(4) as usize];
    let compression = if prng.chance(1, 2) { Compression::Auto } else { Compression::Never };
    let usual =
        Hints { kind, compression, expected_size: prng.below(3) * 1000, embed: prng.chance(1, 2), ..Hints::default() };
    // More is drawn only where it means something: elsewhere the same seeds do what they did.
    let parity_pages = device.parity().map_or(0, |_| [0, Hints::NO_PARITY, 1, 2, 3][prng.below(5) as usize]);
    Hints { parity_pages, ..usual }
}

fn key(prng: &mut Prng) -> AttributeKey {
    AttributeKey::new(AttributeKind(32 + prng.below(2) as u8), prng.below(40))
}

/// A value: a new one, or `old` with a part replaced.
fn value(old: Option<&Vec<u8>>, prng: &mut Prng) -> Vec<u8> {
    let mut value = vec![0; [0, 8, 40, 200, 600][prng.below(5) as usize]];
    prng.fill(&mut value);
    match old {
        Some(old) if prng.chance(1, 2) => {
            let start = prng.below(old.len() as u64 + 1) as usize;
            let end = (start + prng.below(10) as usize).min(old.len());
            value.truncate(prng.below(10) as usize);
            let mut value = [&old[..start], &value, &old[end..]].concat();
            value.truncate(600);
            value
        }
        _ => value,
    }
}

/// A change of an object that is there.
fn change(
    device: &dyn ObjectDevice,
    object: ObjectId,
    state: &ObjectState,
    profile: &Profile,
    prng: &mut Prng,
) -> Mutation {
    let size = state.objects.get(&object).map_or(0, |one| one.content.len() as u64);
    if profile.reads > 0 && prng.chance(profile.reads, 100) {
        return Mutation::SetAccessTime { object, time: prng.below(1 << 20) };
    }
    if prng.chance(profile.attributes, 100) {
        return match prng.below(5) {
            0 => Mutation::RemoveAttribute { object, key: key(prng) },
            1 => Mutation::SetHints { object, hints: hints(device, prng) },
            _ => {
                let key = key(prng);
                let old = state.objects.get(&object).and_then(|one| one.attributes.get(&key));
                Mutation::SetAttribute { object, key, value: value(old, prng) }
            }
        };
    }
    let overwrite = size > 0 && prng.chance(profile.overwrites, 100);
    match prng.below(8) {
        6 if !overwrite => Mutation::Truncate { object, size: prng.below(profile.object_bytes) },
        7 if !overwrite => {
            Mutation::Punch { object, offset: prng.below(size + 100), length: prng.below(profile.object_bytes) }
        }
        _ => {
            let mut data = bytes(prng, profile.write_bytes);
            let offset = if overwrite { prng.below(size) } else { prng.below(size + 600).min(profile.object_bytes) };
            if overwrite {
                data.truncate((size - offset) as usize);
            }
            Mutation::Write { object, offset, data }
        }
    }
}

/// An object is made again: one that is gone, or one that goes at once. Its new content and
/// attributes are like the old ones or anything.
fn remake(
    device: &dyn ObjectDevice,
    known: Option<ObjectId>,
    state: &ObjectState,
    profile: &Profile,
    prng: &mut Prng,
) -> Vec<Mutation> {
    let gone: Vec<ObjectId> = state.gone().collect();
    let mut mutations = Vec::new();
    let object = match known {
        Some(object) if gone.is_empty() || prng.chance(1, 2) => {
            mutations.push(Mutation::Remove { object });
            // Sometimes it is missed for a while.
            if prng.chance(1, 3) {
                return mutations;
            }
            object
        }
        _ if gone.is_empty() => return mutations,
        _ => gone[prng.below(gone.len() as u64) as usize],
    };
    mutations.push(Mutation::Create { object, hints: hints(device, prng) });
    let old = state.objects.get(&object);
    for (key, before) in old.iter().flat_map(|old| &old.attributes).take(prng.below(3) as usize) {
        mutations.push(Mutation::SetAttribute { object, key: *key, value: value(Some(before), prng) });
    }
    if prng.chance(2, 3) {
        let size = old.map_or(0, |old| old.content.len()) as u64;
        // Shorter or longer than before, at the start or behind a hole.
        let most = if size > 1 && prng.chance(1, 2) { size - 1 } else { profile.write_bytes };
        let data = bytes(prng, most);
        let offset = if prng.chance(1, 3) { prng.below(size + 600).min(profile.object_bytes) } else { 0 };
        mutations.push(Mutation::Write { object, offset, data });
    }
    mutations
}

/// Content of an object moves to a relative, which is made if it is a version; mostly something is
/// written in its place.
fn move_content(
    device: &dyn ObjectDevice,
    object: ObjectId,
    state: &ObjectState,
    profile: &Profile,
    prng: &mut Prng,
) -> Vec<Mutation> {
    let origin = object.origin();
    let version = origin.version(prng.below(3) as u32).unwrap_or(origin);
    let to = if prng.chance(1, 4) { origin } else { version };
    let mut mutations = Vec::new();
    if to == object || (!to.is_version() && !state.objects.contains_key(&to)) {
        return mutations;
    }
    if !state.objects.contains_key(&to) {
        mutations.push(Mutation::Create { object: to, hints: hints(device, prng) });
    }
    let size = state.objects.get(&object).map_or(0, |one| one.content.len() as u64);
    let (offset, length) = match prng.below(4) {
        0 => (0, u64::MAX >> 1),
        1 => (prng.below(size + 1) / 512 * 512, 512 << prng.below(3)),
        _ => (prng.below(size + 100), 1 + prng.below(size + 1)),
    };
    mutations.push(Mutation::Move { object, offset, length, to });
    match prng.below(8) {
        0 => mutations.push(Mutation::Remove { object }),
        1 => mutations.push(Mutation::Truncate { object, size: prng.below(size + 1) }),
        2 | 3 => {}
        _ => {
            let data = bytes(prng, length.min(profile.write_bytes));
            mutations.push(Mutation::Write { object, offset: offset.min(profile.object_bytes), data });
        }
    }
    mutations
}

/// A transaction and the state after it. New objects get ids from the device.
///
/// # Errors
/// The device's, when it hands out ids; `Ok(None)` stands for an id that was used before.
pub fn transaction<M>(
    device: &dyn ObjectDevice,
    run: &mut Run<ObjectState, M>,
    profile: &Profile,
    aim_bytes: u64,
) -> onode_object::Result<Option<(Transaction, ObjectState)>> {
    let mut state = run.state.clone();
    let prng = &mut run.prng;
    let mut transaction = Transaction::new();
    let moves = profile.moves > 0 && device.move_unit() == Some(1);
    for _ in 0..1 + prng.below(profile.mutations) {
        let count = state.objects.len() as u64;
        let is_full = state.bytes() >= aim_bytes;
        let known = any_object(&state, prng);
        let mutations = match known {
            _ if profile.remakes > 0 && prng.chance(profile.remakes, 100) => {
                remake(device, known, &state, profile, prng)
            }
            Some(object) if moves && prng.chance(profile.moves, 100) => {
                move_content(device, object, &state, profile, prng)
            }
            Some(object) if is_full && prng.chance(1, 2) => {
                vec![if prng.chance(1, 3) {
                    let size = state.objects.get(&object).map_or(0, |one| one.content.len() as u64);
                    Mutation::Truncate { object, size: prng.below(size + 1) }
                } else {
                    Mutation::Remove { object }
                }]
            }
            Some(object) if prng.chance(1, profile.removals) => vec![Mutation::Remove { object }],
            Some(object) if count >= profile.objects || prng.chance(3, 4) => {
                vec![change(device, object, &state, profile, prng)]
            }
            _ => {
                let id = device.reserve_ids(1)?;
                if id <= state.highest || id < ObjectId::FIRST_FREE {
                    return Ok(None);
                }
                vec![Mutation::Create { object: id, hints: hints(device, prng) }]
            }
        };
        for mutation in mutations {
            // A time may survive without the removal that came with it: the states here cannot tell
            // of such a one.
            let was_read =
                |one: &Mutation| matches!(one, Mutation::SetAccessTime { object, .. } if *object == mutation.object());
            if matches!(mutation, Mutation::Remove { .. }) && transaction.mutations.iter().any(was_read) {
                break;
            }
            if state.apply(&mutation) {
                transaction.mutations.push(mutation);
            }
        }
    }
    Ok(Some((transaction, state)))
}

/// A transaction that must be refused: its last mutation concerns an object that is not there.
pub fn refused<M>(run: &mut Run<ObjectState, M>, profile: &Profile) -> Transaction {
    let mut transaction = Transaction::new();
    if let Some(object) = any_object(&run.state, &mut run.prng) {
        transaction.write(object, 0, bytes(&mut run.prng, profile.write_bytes));
    }
    transaction.remove(ObjectId(1));
    transaction
}

/// Whether a transaction may not be refused for space: it only gives back.
pub fn only_frees(transaction: &Transaction, state: &ObjectState) -> bool {
    let mut state = state.clone();
    transaction.mutations.iter().all(|mutation| {
        let frees = match mutation {
            Mutation::Remove { .. } | Mutation::Punch { .. } | Mutation::RemoveAttribute { .. } => true,
            Mutation::Truncate { object, size } => {
                state.objects.get(object).is_some_and(|one| *size <= one.content.len() as u64)
            }
            _ => false,
        };
        frees && state.apply(mutation)
    })
}

/// A transaction in words.
pub fn describe(transaction: &Transaction) -> String {
    let words: Vec<String> = transaction
        .mutations
        .iter()
        .map(|mutation| match mutation {
            Mutation::Create { object, .. } => format!("create {object}"),
            Mutation::Remove { object } => format!("remove {object}"),
            Mutation::Write { object, offset, data } => format!("write {object} at {offset}, {} bytes", data.len()),
            Mutation::Truncate { object, size } => format!("truncate {object} to {size}"),
            Mutation::Punch { object, offset, length } => format!("punch {object} at {offset}, {length} bytes"),
            Mutation::SetAttribute { object, key, value } => {
                format!("set attribute {}.{} of {object}, {} bytes", key.kind.0, key.index, value.len())
            }
            Mutation::RemoveAttribute { object, key } => {
                format!("remove attribute {}.{} of {object}", key.kind.0, key.index)
            }
            Mutation::Move { object, offset, length, to } => {
                format!("move {length} bytes at {offset} of {object} to {to}")
            }
            Mutation::SetHints { object, .. } => format!("set hints of {object}"),
            Mutation::SetAccessTime { object, time } => format!("set access time {time} of {object}"),
        })
        .collect();
    words.join("; ")
}
