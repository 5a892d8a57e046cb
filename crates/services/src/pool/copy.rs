//! Making one object of a member equal to what the others have, in small steps.
//!
//! What is equal already is only read. While it goes on, changes of the object reach the member as
//! they reach the others: what lies before the step is equal and stays so, what lies behind it is
//! compared later. So no change has to wait for longer than a step, and none begins it anew.

use crate::pool::Pool;
use crate::ranges::Ranges;
use onode_object::{
    AttributeKey, AttributeKind, Durability, Error, ErrorKind, ObjectDevice, ObjectId, ObjectStat, Result, Transaction,
};

/// Bytes of content that a step compares at most.
pub(crate) const STEP_BYTES: u64 = 256 << 10;
/// Attributes that a step compares.
const STEP_ATTRIBUTES: usize = 64;
/// Content is compared in blocks of so many bytes.
const BLOCK_BYTES: u64 = 4096;
const EXTENTS: usize = 64;

/// What the pool did since it was opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// Bytes that were compared, and of these written to the member that lacked them.
    pub(crate) compared_bytes: u64,
    pub(crate) copied_bytes: u64,
    /// Objects that were made equal.
    pub(crate) objects: u64,
}

/// How far the object is equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing is. What is there goes if it cannot be read.
    Begin { replaces: bool },
    /// Existence, size, hints, and attributes before this key.
    Attributes(AttributeKey),
    /// All but content from this byte on.
    Content(u64),
}

/// One object that is being made equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyJob {
    pub(crate) member: usize,
    pub(crate) object: ObjectId,
    stage: Stage,
    was_replaced: bool,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More is to be done.
    More,
    /// The object is equal.
    Equal,
}

/// Why a step could not be done.
#[derive(Debug)]
pub(crate) enum CopyFailure {
    /// Nobody can give the object.
    Source(Error),
    /// The member cannot take it.
    Target(Error),
}

type Step<T> = std::result::Result<T, CopyFailure>;

impl CopyJob {
    pub(crate) const fn new(member: usize, object: ObjectId) -> Self {
        Self { member, object, stage: Stage::Begin { replaces: false }, was_replaced: false }
    }

    /// Does a step. Nobody commits meanwhile.
    pub(crate) fn step<D: ObjectDevice>(&mut self, pool: &Pool<D>, figures: &mut Figures) -> Step<Progress> {
        match self.stage {
            Stage::Begin { replaces } => self.begin(pool, replaces),
            Stage::Attributes(from) => self.attributes(pool, from),
            Stage::Content(from) => self.content(pool, figures, from),
        }
    }

    fn commit<D: ObjectDevice>(&self, pool: &Pool<D>, transaction: Transaction) -> Step<()> {
        if transaction.is_empty() {
            return Ok(());
        }
        pool.members[self.member].device.commit(transaction, Durability::Buffered).map_err(CopyFailure::Target)
    }

    /// Existence, size and hints.
    fn begin<D: ObjectDevice>(&mut self, pool: &Pool<D>, replaces: bool) -> Step<Progress> {
        let object = self.object;
        let found = |stat: Result<ObjectStat>| match stat {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let source = found(pool.ask(object, |device| device.stat(object))).map_err(CopyFailure::Source)?;
        let target = found(pool.members[self.member].device.stat(object));
        let is_there = !matches!(target, Ok(None));
        let mut transaction = Transaction::new();
        let keeps = target.ok().flatten().filter(|_| !replaces);
        if is_there && (keeps.is_none() || source.is_none()) {
            transaction.remove(object);
        }
        if let Some(source) = source {
            if keeps.is_none() {
                transaction.create(object, source.hints);
            }
            let now = keeps.unwrap_or(ObjectStat { hints: source.hints, ..ObjectStat::default() });
            if now.size != source.size {
                transaction.truncate(object, source.size);
            }
            if now.hints != source.hints {
                transaction.set_hints(object, source.hints);
            }
            if now.accessed != source.accessed {
                transaction.set_access_time(object, source.accessed);
            }
        }
        self.commit(pool, transaction)?;
        if source.is_none() {
            return Ok(Progress::Equal);
        }
        self.stage = Stage::Attributes(AttributeKey::new(AttributeKind(0), 0));
        Ok(Progress::More)
    }

    /// Some attributes. If those of the member cannot be read, the object goes and comes anew.
    fn attributes<D: ObjectDevice>(&mut self, pool: &Pool<D>, from: AttributeKey) -> Step<Progress> {
        let object = self.object;
        let source = pool.ask(object, |device| device.attributes(object, from, STEP_ATTRIBUTES));
        let source = source.map_err(CopyFailure::Source)?;
        let until = source.last().map(|(key, _)| *key);
        let target = match self.present(pool, from, until) {
            Ok(target) => target,
            Err(error) if self.was_replaced => return Err(CopyFailure::Target(error)),
            Err(_) => {
                (self.was_replaced, self.stage) = (true, Stage::Begin { replaces: true });
                return Ok(Progress::More);
            }
        };
        let mut transaction = Transaction::new();
        for (key, _) in target.iter().filter(|(key, _)| !source.iter().any(|(other, _)| other == key)) {
            transaction.remove_attribute(object, *key);
        }
        for one in source.into_iter().filter(|one| !target.contains(one)) {
            transaction.set_attribute(object, one.0, one.1);
        }
        self.commit(pool, transaction)?;
        self.stage = match until.and_then(AttributeKey::next) {
            Some(next) => Stage::Attributes(next),
            None => Stage::Content(0),
        };
        Ok(Progress::More)
    }

    /// The member's attributes from one key as far as another, or all from there.
    fn present<D: ObjectDevice>(
        &self,
        pool: &Pool<D>,
        from: AttributeKey,
        until: Option<AttributeKey>,
    ) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let mut all = Vec::new();
        let mut next = Some(from);
        while let Some(from) = next.filter(|next| until.is_none_or(|until| *next <= until)) {
            let some = pool.members[self.member].device.attributes(self.object, from, STEP_ATTRIBUTES)?;
            let Some((last, _)) = some.last() else { break };
            next = last.next();
            all.extend(some.into_iter().filter(|(key, _)| until.is_none_or(|until| *key <= until)));
        }
        Ok(all)
    }

    /// Some content: what is a hole becomes one, what differs is written.
    fn content<D: ObjectDevice>(&mut self, pool: &Pool<D>, figures: &mut Figures, from: u64) -> Step<Progress> {
        let (object, target) = (self.object, &pool.members[self.member].device);
        let first_of = |extents: Vec<(u64, u64)>| extents.first().map(|(start, _)| *start);
        let source = pool.ask(object, |device| device.extents(object, from, 1)).map(first_of);
        let source = source.map_err(CopyFailure::Source)?;
        let present = target.extents(object, from, 1).map(first_of).map_err(CopyFailure::Target)?;
        let Some(start) = source.into_iter().chain(present).min() else { return Ok(Progress::Equal) };
        let start = start.max(from) / BLOCK_BYTES * BLOCK_BYTES;
        let end = start + pool.step_bytes;
        let source = pool.ask(object, |device| data_within(device, object, start, end)).map_err(CopyFailure::Source)?;
        let present = data_within(target, object, start, end).map_err(CopyFailure::Target)?;
        let mut transaction = Transaction::new();
        let mut surplus = present.clone();
        source.iter().for_each(|(start, end)| surplus.remove(start, end));
        for (start, end) in surplus.iter() {
            transaction.punch(object, start, end - start);
        }
        for (start, end) in source.iter() {
            let mut bytes = vec![0; (end - start) as usize];
            let count = pool.read_around(object, start, &mut bytes).map_err(CopyFailure::Source)?;
            bytes.truncate(count);
            figures.compared_bytes += count as u64;
            for (offset, data) in self.differing(target, &present, start, &bytes) {
                figures.copied_bytes += data.len() as u64;
                transaction.write(object, offset, data);
            }
        }
        self.commit(pool, transaction)?;
        self.stage = Stage::Content(end);
        Ok(Progress::More)
    }

    /// The blocks of these bytes that the member does not have, as long runs as there are. Zeros in
    /// the place of which it has a hole are among them: where there is data tells what a version
    /// keeps.
    fn differing(&self, target: &impl ObjectDevice, has: &Ranges, start: u64, bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut present = vec![0; bytes.len()];
        let is_read = target.read(self.object, start, &mut present).is_ok_and(|count| count == bytes.len());
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            // Blocks lie where those of devices do.
            let inside = (start + at as u64) % BLOCK_BYTES;
            let end = (at + (BLOCK_BYTES - inside) as usize).min(bytes.len());
            let (block, offset) = (&bytes[at..end], start + at as u64);
            let is_equal = has.covers(offset, offset + block.len() as u64)
                && match is_read {
                    true => present[at..end] == *block,
                    // One of them is damaged, or more.
                    false => {
                        let read = target.read(self.object, offset, &mut present[at..end]);
                        read.is_ok_and(|count| count == block.len()) && present[at..end] == *block
                    }
                };
            match runs.last_mut() {
                _ if is_equal => {}
                Some((first, run)) if *first + run.len() as u64 == offset => run.extend_from_slice(block),
                _ => runs.push((offset, block.to_vec())),
            }
            at = end;
        }
        runs
    }
}

/// The ranges of data that an object has between two bytes.
fn data_within(device: &impl ObjectDevice, object: ObjectId, start: u64, end: u64) -> Result<Ranges> {
    let mut data = Ranges::default();
    let mut from = start;
    while from < end {
        let some = device.extents(object, from, EXTENTS)?;
        let Some((last, length)) = some.last() else { break };
        let next = last + length;
        for (offset, length) in some {
            let (first, behind) = (offset.max(start), (offset + length).min(end));
            if first < behind {
                data.add(first, behind);
            }
        }
        from = next.max(from + 1);
    }
    Ok(data)
}
