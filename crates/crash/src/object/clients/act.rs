//! What a client does next: every choice follows from the run's source of choices, the state, and
//! what it may do now.

use crate::object::ObjectState;
use crate::object::clients::{Freedom, PROFILE};
use crate::workload::content::content;
use onode_base::Prng;
use onode_object::{AttributeKey, AttributeKind, Hints, Mutation, ObjectDevice, ObjectId, ObjectKind, Transaction};

/// A call.
#[derive(Clone, Debug)]
pub enum Act {
    /// Reads so many bytes of an object from there on.
    Read(ObjectId, u64, usize),
    /// Asks for its size.
    Stat(ObjectId),
    /// Lists all objects.
    List,
    /// Does a transaction.
    Change(Transaction, How),
    /// Makes everything durable.
    Sync,
    /// Lets the device do some steps of background work.
    Maintain(u32),
    /// Brings an object to the fast disk, or takes it from there.
    Place(ObjectId, bool),
    /// Takes the part away that comes and goes, or brings it back.
    Part,
}

/// How a transaction is done.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// It is durable when the call returns.
    pub durable: bool,
    /// What the client may have to wait for comes when others have made calls.
    pub apart: bool,
}

/// Whose turn it is, and what it knows.
pub struct Turn<'a> {
    /// Its number.
    pub client: u64,
    /// Of so many.
    pub clients: u64,
    /// What it may do.
    pub freedom: Freedom,
    /// What there is.
    pub state: &'a ObjectState,
    /// Content and attributes are to be about so many bytes.
    pub aim_bytes: u64,
    /// Content is so many times as large as on the smallest volumes.
    pub scale: u64,
    /// What others read at this moment.
    pub being_read: &'a [ObjectId],
}

/// A volume of so many bytes is one of the smallest.
const SMALLEST_BYTES: u64 = 384 << 10;

/// By how much content is larger on a volume with so many bytes, so that its space is used again in
/// a run.
#[must_use]
pub fn scale_of(total: u64) -> u64 {
    (total / SMALLEST_BYTES).clamp(1, 6)
}

impl Turn<'_> {
    /// Whether the client may change an object: half of them everybody may, the others belong to
    /// one each.
    fn may_change(&self, object: ObjectId) -> bool {
        object.0.is_multiple_of(2) || object.0 / 2 % self.clients == self.client
    }

    /// Draws a call. Ids of new objects come from the device.
    ///
    /// # Errors
    /// The device's, when it hands out ids.
    pub fn act(&self, device: &dyn ObjectDevice, prng: &mut Prng) -> onode_object::Result<Act> {
        let draw = prng.below(100);
        let reads = if self.freedom <= Freedom::Reads { 100 } else { 40 };
        let waits = self.freedom == Freedom::All;
        Ok(match draw {
            _ if draw < reads => self.look(prng),
            // Those who change something do it most of the time.
            40..=45 if waits => Act::Sync,
            46..=53 if waits => Act::Maintain([1, 1, 2, 3, 8, 32][prng.below(6) as usize]),
            54 if waits => Act::Part,
            55..=57 if waits => match self.any(prng, |_| true) {
                Some(object) => Act::Place(object, prng.chance(3, 4)),
                None => Act::List,
            },
            _ => {
                let how = How { durable: prng.chance(PROFILE.durable, 100), apart: !waits || prng.chance(1, 3) };
                Act::Change(self.transaction(device, prng)?, how)
            }
        })
    }

    fn look(&self, prng: &mut Prng) -> Act {
        let Some(object) = self.any(prng, |_| true) else { return Act::List };
        let size = self.state.objects.get(&object).map_or(0, |one| one.content.len() as u64);
        match prng.below(12) {
            0 => Act::Stat(object),
            1 => Act::List,
            // All of it, and one more byte; or a part.
            2..=7 => Act::Read(object, 0, size as usize + 1),
            _ => {
                let offset = prng.below(size + 1);
                Act::Read(object, offset, 1 + prng.below(size - offset + 1) as usize)
            }
        }
    }

    fn any(&self, prng: &mut Prng, is_wanted: impl Fn(ObjectId) -> bool) -> Option<ObjectId> {
        let wanted: Vec<ObjectId> = self.state.objects.keys().copied().filter(|id| is_wanted(*id)).collect();
        wanted.get(prng.below(wanted.len() as u64) as usize).copied()
    }

    /// An object that the client may change, every second time one that is being read.
    fn any_to_change(&self, prng: &mut Prng) -> Option<ObjectId> {
        let is_mine = |id| self.may_change(id);
        let is_read = |id| self.may_change(id) && self.being_read.contains(&id);
        let aimed = if prng.chance(1, 2) { self.any(prng, is_read) } else { None };
        aimed.or_else(|| self.any(prng, is_mine))
    }

    fn transaction(&self, device: &dyn ObjectDevice, prng: &mut Prng) -> onode_object::Result<Transaction> {
        let mut state = self.state.clone();
        let mut transaction = Transaction::new();
        let moves = device.move_unit() == Some(1);
        for _ in 0..1 + prng.below(PROFILE.mutations) {
            let is_full = state.bytes() >= self.aim_bytes;
            let has_room = !is_full && (state.objects.len() as u64) < PROFILE.objects;
            let mutation = match self.any_to_change(prng) {
                Some(object) if moves && prng.chance(1, 6) => {
                    for mutation in self.move_content(object, &state, has_room, prng) {
                        if state.apply(&mutation) {
                            transaction.mutations.push(mutation);
                        }
                    }
                    continue;
                }
                Some(object) if !has_room || prng.chance(4, 5) => self.change(object, is_full, prng),
                None if !has_room => break,
                _ => {
                    let hints = Hints { kind: ObjectKind::Data, embed: prng.chance(1, 2), ..Hints::default() };
                    let object = device.reserve_ids(1)?;
                    let create = Mutation::Create { object, hints };
                    if state.apply(&create) {
                        transaction.mutations.push(create);
                    }
                    self.write(object, 0, prng)
                }
            };
            if state.apply(&mutation) {
                transaction.mutations.push(mutation);
            }
        }
        Ok(transaction)
    }

    /// Content moves to a version, which may be made for it, or back.
    fn move_content(&self, object: ObjectId, state: &ObjectState, has_room: bool, prng: &mut Prng) -> Vec<Mutation> {
        let origin = object.origin();
        let version = origin.version(prng.below(3) as u32).unwrap_or(origin);
        let to = if prng.chance(1, 3) { origin } else { version };
        let is_new = !state.objects.contains_key(&to);
        if to == object || !self.may_change(to) || (is_new && !(has_room && to.is_version())) {
            return Vec::new();
        }
        let size = state.objects.get(&object).map_or(0, |one| one.content.len() as u64);
        let offset = if prng.chance(1, 2) { 0 } else { prng.below(size + 1) };
        let create = is_new.then(|| Mutation::Create { object: to, hints: Hints::default() });
        let length = 1 + prng.below(size + 1);
        create.into_iter().chain([Mutation::Move { object, offset, length, to }]).collect()
    }

    fn change(&self, object: ObjectId, is_full: bool, prng: &mut Prng) -> Mutation {
        let size = self.state.objects.get(&object).map_or(0, |one| one.content.len() as u64);
        if prng.chance(1, if is_full { 2 } else { PROFILE.removals }) {
            return Mutation::Remove { object };
        }
        if prng.chance(PROFILE.attributes, 100) {
            let key = AttributeKey::new(AttributeKind(32), prng.below(6));
            let mut value = vec![0; prng.below(60) as usize];
            prng.fill(&mut value);
            return Mutation::SetAttribute { object, key, value };
        }
        match prng.below(10) {
            0 => Mutation::Truncate { object, size: prng.below(size + 1) },
            1 => Mutation::Punch { object, offset: prng.below(size + 1), length: 1 + prng.below(size + 1) },
            2..=5 => self.write(object, 0, prng),
            _ => self.write(object, prng.below((size + 300).min(PROFILE.object_bytes * self.scale)), prng),
        }
    }

    fn write(&self, object: ObjectId, offset: u64, prng: &mut Prng) -> Mutation {
        let most = PROFILE.write_bytes * self.scale;
        let length = match prng.below(4) {
            0 => 1 + prng.below(60),
            1 => 512,
            _ => 1 + prng.below(most),
        };
        Mutation::Write { object, offset, data: content(prng, length.min(most) as usize) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> ObjectState {
        let mut state = ObjectState::default();
        for object in (64..72).map(ObjectId) {
            let create = Mutation::Create { object, hints: Hints::default() };
            let write = Mutation::Write { object, offset: 0, data: vec![1; 2000] };
            assert!(state.apply(&create) && state.apply(&write));
        }
        state
    }

    fn turn(state: &ObjectState, client: u64) -> Turn<'_> {
        Turn { client, clients: 3, freedom: Freedom::All, state, aim_bytes: 1, scale: 1, being_read: &[] }
    }

    #[test]
    fn a_client_changes_what_is_its_own_or_everybodys() {
        let state = state();
        let may = |client| state.objects.keys().filter(|id| turn(&state, client).may_change(**id)).count();
        assert_eq!((0..3).map(may).sum::<usize>(), 3 * 4 + 4, "half are for all, each of the others for one");
        let mut prng = Prng::new(1);
        for _ in 0..200 {
            let object = turn(&state, 1).any_to_change(&mut prng).unwrap();
            assert!(turn(&state, 1).may_change(object));
        }
    }

    #[test]
    fn what_others_read_is_changed_every_second_time() {
        let state = state();
        let turn = Turn { being_read: &[ObjectId(66)], ..turn(&state, 1) };
        let mut prng = Prng::new(1);
        let count = (0..200).filter(|_| turn.any_to_change(&mut prng) == Some(ObjectId(66))).count();
        assert!((80..150).contains(&count), "{count} of 200");
    }

    #[test]
    fn content_is_larger_where_there_is_more_room() {
        assert_eq!([0, 400 << 10, 2 << 20, 1 << 30].map(scale_of), [1, 1, 5, 6]);
    }
}
