//! One call of a client, and those that come in between.
//!
//! What it keeps true: a call is made only if it waits for none below it. What a read answers is
//! the object at one moment of the read.

use crate::kind::{Begun, Kind};
use crate::medium::Medium;
use crate::object::clients::act::{Act, How, Turn, scale_of};
use crate::object::clients::order::{Frame, UnderWay, Waiting};
use crate::object::clients::{Freedom, PROFILE};
use crate::object::workload::{unexpected, upkeep};
use crate::object::{ObjectState, calls};
use crate::violation::Violation;
use crate::workload::history::Run;
use onode_base::sync::{Mutex, rank};
use onode_media::{Between, Gap};
use onode_object::{Durability, ErrorKind, ObjectDevice, ObjectId, SyncScope, Transaction};
use std::sync::Arc;

/// What unwinds a call that would wait for one below it.
pub struct WouldWait;

/// Calls that may come in between those of one step: nested reads would multiply without end.
const MOST_NESTED: u64 = 48;

/// At so many of 32 moments of a step others come in between: at nearly every one, so that they
/// nest, or late in a call.
const SHARES: [u64; 4] = [2, 6, 12, 28];

/// So many of them come then: mostly few, now and then enough to free and use again what a read
/// needs.
const AT_A_MOMENT: [u64; 12] = [1, 1, 1, 1, 1, 2, 2, 3, 4, 6, 12, 40];

/// The calls of one step.
pub struct Session<K: Kind> {
    kind: K,
    device: Arc<K::Device>,
    clients: u64,
    inner: Mutex<UnderWay<K>, rank::Free>,
}

impl<K: Kind> Session<K> {
    /// A session on a device that nobody else uses, which goes on with `run`.
    pub fn new(kind: K, device: &Arc<K::Device>, clients: usize, mut run: Run<ObjectState, K::Medium>) -> Self {
        let share = SHARES[run.prng.below(SHARES.len() as u64) as usize];
        let commits = kind.standing(device).map_or(0, |standing| standing.commits);
        let inner = UnderWay { left: MOST_NESTED, share, ..UnderWay::new(run, commits) };
        Self { kind, device: Arc::clone(device), clients: clients as u64, inner: Mutex::new(inner) }
    }

    /// The run as it is now; nothing is left here. If the step is stuck, the change that was to be
    /// made last may be on the medium or not, as if it had not returned yet.
    ///
    /// # Errors
    /// If nobody can make that change.
    pub fn take_run(&self, is_stuck: bool) -> Result<Run<ObjectState, K::Medium>, Violation> {
        let inner = &mut *self.inner.lock();
        if is_stuck {
            inner.run.interleaving.stuck += 1;
            if inner.frames.last().is_some_and(|frame| frame.waiting.is_some()) {
                inner.apply()?;
            }
        }
        let nothing = Run::new(inner.run.medium.clone(), 0, ObjectState::default(), false);
        Ok(std::mem::replace(&mut inner.run, nothing))
    }

    /// Makes a call of any client.
    ///
    /// # Errors
    /// What should not have happened in it or in those that came in between.
    pub fn step(&self) -> Result<(), Violation> {
        self.one(Freedom::All);
        while self.end_follower() {}
        self.inner.lock().broken.take().map_or(Ok(()), Err)
    }

    /// Makes a call of a client that makes none now.
    fn one(&self, freedom: Freedom) {
        let Some((client, act)) = self.draw(freedom) else { return };
        let reads = match act {
            Act::Read(object, ..) => Some(object),
            _ => None,
        };
        {
            let inner = &mut *self.inner.lock();
            if !inner.frames.is_empty() {
                inner.run.interleaving.nested += 1;
                inner.run.interleaving.changes += u64::from(matches!(act, Act::Change(..)));
            }
            inner.frames.push(Frame { client, reads, waiting: None, index: None });
            inner.run.interleaving.deepest = inner.run.interleaving.deepest.max(inner.frames.len() as u64);
        }
        let done = self.make(act);
        self.inner.lock().end(done);
    }

    /// One of those who wait learns that its change is durable; false if there is none.
    fn end_follower(&self) -> bool {
        let follower = {
            let inner = &mut *self.inner.lock();
            if inner.followers.is_empty() || inner.broken.is_some() {
                return false;
            }
            let number = inner.run.prng.below(inner.followers.len() as u64) as usize;
            let follower = inner.followers.swap_remove(number);
            let index = Some(follower.index);
            inner.frames.push(Frame { client: follower.client, reads: None, waiting: None, index });
            inner.run.interleaving.followers += 1;
            follower
        };
        let done = (follower.rest)(&self.device).map_err(unexpected("the end of a commit"));
        self.inner.lock().end(done);
        true
    }

    fn draw(&self, freedom: Freedom) -> Option<(u64, Act)> {
        let total = self.device.space().total;
        let aim_bytes = total * PROFILE.fill / 100;
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let idle: Vec<u64> = (0..self.clients).filter(|client| inner.is_idle(*client)).collect();
        let client = *idle.get(inner.run.prng.below(idle.len() as u64) as usize)?;
        let being_read: Vec<ObjectId> = inner.frames.iter().filter_map(|frame| frame.reads).collect();
        let turn = Turn {
            client,
            clients: self.clients,
            freedom,
            state: &inner.run.state,
            aim_bytes,
            scale: scale_of(total),
            being_read: &being_read,
        };
        match turn.act(&*self.device, &mut inner.run.prng) {
            Ok(act) => Some((client, act)),
            Err(error) => {
                inner.broken.get_or_insert(unexpected("reserve_ids")(error));
                None
            }
        }
    }

    fn make(&self, act: Act) -> Result<(), Violation> {
        match act {
            Act::Read(object, offset, length) => self.read(object, offset, length),
            Act::Stat(object) => self.look(
                &format!("stat of {object}"),
                || self.device.stat(object).map(|stat| Some(stat.size)),
                |state| state.objects.get(&object).map(|one| one.content.len() as u64),
            ),
            Act::List => self.look(
                "list",
                || self.device.list(ObjectId(0), usize::MAX).map(Some),
                |state| Some(state.objects.keys().copied().collect()),
            ),
            Act::Change(transaction, how) => self.change(transaction, how),
            Act::Sync => self.sync(),
            Act::Maintain(budget) => upkeep(&*self.device, budget).map_err(unexpected("maintain")),
            Act::Place(object, promotes) => self.place(object, promotes),
            Act::Part => self.part(),
        }
    }

    fn read(&self, object: ObjectId, offset: u64, length: usize) -> Result<(), Violation> {
        let read = || {
            let mut buffer = vec![0xa5; length];
            let count = self.device.read(object, offset, &mut buffer)?;
            buffer.truncate(count);
            Ok(Some(buffer))
        };
        let expected = |state: &ObjectState| {
            let content = &state.objects.get(&object)?.content;
            let start = (offset as usize).min(content.len());
            let end = start.saturating_add(length).min(content.len());
            Some(content[start..end].to_vec())
        };
        self.look(&format!("read of {object} from {offset}, {length} bytes"), read, expected)
    }

    /// Asks for something that `expected` says of a state; nothing stands for an object that is not
    /// there.
    fn look<T: PartialEq>(
        &self,
        what: &str,
        ask: impl FnOnce() -> onode_object::Result<Option<T>>,
        expected: impl Fn(&ObjectState) -> Option<T>,
    ) -> Result<(), Violation> {
        let first = self.inner.lock().run.history.calls.len();
        let found = match ask() {
            Err(error) if error.kind == ErrorKind::NotFound => None,
            found => found.map_err(unexpected(what))?,
        };
        let inner = self.inner.lock();
        if inner.broken.is_some() {
            return Ok(());
        }
        let history = &inner.run.history;
        let moments = first..=history.calls.len();
        if moments.clone().any(|count| expected(history.state(count)) == found) {
            return Ok(());
        }
        let other = (0..first).rev().find(|count| expected(history.state(*count)) == found);
        let known = other.map_or_else(|| "no state".into(), |count| format!("the state after call {count}"));
        let text = format!("{what}: the answer is that of {known}, not of one of calls {moments:?}");
        Err(Violation::new("N4", text))
    }

    /// Makes a change; what is left of it if its client waits later.
    fn commit(&self, transaction: &Transaction, how: How) -> Begun<K::Device> {
        let durability = if how.durable { Durability::Durable } else { Durability::Buffered };
        let begun = if how.apart { self.kind.begin(&self.device, transaction, durability) } else { None };
        begun.unwrap_or_else(|| self.device.commit(transaction.clone(), durability).map(|()| None))
    }

    fn change(&self, transaction: Transaction, how: How) -> Result<(), Violation> {
        if transaction.is_empty() {
            return Ok(());
        }
        let (only_frees, used) = {
            let inner = &mut *self.inner.lock();
            let begin = inner.run.medium.position();
            let frees = calls::only_frees(&transaction, &inner.run.state);
            let used = inner.run.state.bytes();
            if let Some(frame) = inner.frames.last_mut() {
                frame.waiting = Some(Waiting { transaction: transaction.clone(), how, begin });
            }
            (frees, used)
        };
        let done = self.commit(&transaction, how);
        let total = self.device.space().total;
        let inner = &mut *self.inner.lock();
        let is_applied = inner.frames.last().is_some_and(|frame| frame.index.is_some());
        match done {
            Ok(rest) => {
                if !is_applied {
                    inner.apply()?;
                }
                inner.follow(rest);
                Ok(())
            }
            Err(error) if is_applied => Err(unexpected("commit")(error)),
            // Somebody else may have removed what it is about, or made a version that it makes.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Exists) => {
                let mut state = inner.run.state.clone();
                match transaction.mutations.iter().all(|mutation| state.apply(mutation)) {
                    true => Err(unexpected("commit")(error)),
                    false => Ok(()),
                }
            }
            Err(error) if error.kind == ErrorKind::NoSpace => {
                let has_room = used + self.kind.slack_bytes() < total / 2;
                match only_frees || has_room {
                    true => Err(Violation::new("N7", format!("refused with {used} of {total} bytes in use: {error}"))),
                    false => Ok(()),
                }
            }
            Err(error) => Err(unexpected("commit")(error)),
        }
    }

    /// What was applied before it began is covered, what comes in between is not.
    fn sync(&self) -> Result<(), Violation> {
        {
            let inner = &mut *self.inner.lock();
            let (begin, after) = (inner.run.medium.position(), inner.run.state.clone());
            inner.log(begin, true, |_| "sync".into(), after);
        }
        self.device.sync(SyncScope::All).map_err(unexpected("sync"))
    }

    /// Who has no fast disk, or one that is full, is refused.
    fn place(&self, object: ObjectId, promotes: bool) -> Result<(), Violation> {
        let Some(place) = self.device.place() else { return Ok(()) };
        let moved = if promotes { place.promote(object, true) } else { place.demote(object) };
        match moved {
            Err(error) if !matches!(error.kind, ErrorKind::NotFound | ErrorKind::NoSpace | ErrorKind::Invalid) => {
                Err(unexpected("promote or demote")(error))
            }
            _ => Ok(()),
        }
    }

    fn part(&self) -> Result<(), Violation> {
        let Some(part) = self.kind.part(&self.device) else { return Ok(()) };
        let changed = if part.is_attached() { part.detach() } else { part.attach(false) };
        changed.map_err(unexpected("detach or attach"))
    }

    /// Others come in between.
    fn others(&self) {
        let count = {
            let inner = &mut *self.inner.lock();
            if !inner.run.prng.chance(inner.share, 32) {
                return;
            }
            AT_A_MOMENT[inner.run.prng.below(AT_A_MOMENT.len() as u64) as usize].min(inner.left)
        };
        for number in 0..count {
            let Some(standing) = self.kind.standing(&self.device) else { return };
            if standing.freedom == Freedom::Nothing {
                return;
            }
            {
                let inner = &mut *self.inner.lock();
                if inner.left == 0 || inner.broken.is_some() || inner.frames.len() as u64 >= self.clients {
                    return;
                }
                inner.left -= 1;
                inner.run.interleaving.taken += u64::from(number == 0);
            }
            let ends = standing.freedom == Freedom::All && self.inner.lock().run.prng.chance(1, 4);
            if !(ends && self.end_follower()) {
                self.one(standing.freedom);
            }
        }
    }
}

impl<K: Kind> Between for Session<K> {
    fn at(&self, gap: Gap) {
        if gap == Gap::Waits {
            std::panic::resume_unwind(Box::new(WouldWait));
        }
        let standing = self.kind.standing(&self.device).filter(|standing| standing.freedom > Freedom::Nothing);
        let Some(standing) = standing else {
            self.inner.lock().run.interleaving.locked += 1;
            return;
        };
        {
            let inner = &mut *self.inner.lock();
            inner.run.interleaving.points += 1;
            inner.run.interleaving.flushing += u64::from(standing.freedom < Freedom::All);
            if inner.frames.is_empty() || inner.broken.is_some() {
                return;
            }
            if standing.commits > inner.commits
                && let Err(violation) = inner.apply()
            {
                inner.broken.get_or_insert(violation);
            }
        }
        self.others();
        let inner = &mut *self.inner.lock();
        let position = inner.run.medium.position();
        for waiting in inner.frames.iter_mut().filter_map(|frame| frame.waiting.as_mut()) {
            waiting.begin = position;
        }
    }
}

#[cfg(test)]
mod tests;
