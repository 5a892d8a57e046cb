//! Putting a committed transaction in place, step by step: one code for the live way and for the
//! mount after a cut.
//!
//! Every transaction of the device that does some steps also says that they are done. So after a
//! cut nothing is done twice, and nothing is left out.

use crate::staged::hide::LIST;
use crate::staged::record::{Copied, IntentState, Step};
use onode_base::planted::{Bug, is_planted};
use onode_object::{AttributeKey, Durability, Error, ErrorKind, Mutation, ObjectDevice, Result, Transaction};

/// What a mutation takes of a transaction besides its data.
const MUTATION_BYTES: usize = 48;
/// Content is copied in parts of that many bytes at most.
const COPIED_BYTES: usize = 1 << 20;

/// What a mutation takes of a transaction.
pub(crate) fn cost(mutation: &Mutation) -> usize {
    MUTATION_BYTES
        + match mutation {
            Mutation::Write { data, .. } => data.len(),
            Mutation::SetAttribute { value, .. } => value.len(),
            _ => 0,
        }
}

/// One transaction of the device after the other.
struct Batch<'a, D: ?Sized> {
    device: &'a D,
    most_bytes: usize,
    mutations: Vec<Mutation>,
    bytes: usize,
    progress: IntentState,
}

impl<D: ObjectDevice + ?Sized> Batch<'_, D> {
    fn add(&mut self, mutation: Mutation) {
        self.bytes += cost(&mutation);
        self.mutations.push(mutation);
    }

    /// Commits what was added, if anything was, with the word that it is done.
    fn flush(&mut self) -> Result<()> {
        if self.mutations.is_empty() {
            return Ok(());
        }
        let mut mutations = std::mem::take(&mut self.mutations);
        self.bytes = 0;
        let word =
            Mutation::SetAttribute { object: LIST, key: AttributeKey::STAGED_STATE, value: self.progress.encode() };
        if is_planted(Bug::StagedProgressAhead) {
            self.device.commit(Transaction { mutations: vec![word] }, Durability::Buffered)?;
        } else {
            mutations.push(word);
        }
        self.device.commit(Transaction { mutations }, Durability::Buffered)
    }

    fn copy(&mut self, copied: Copied) -> Result<()> {
        let Copied { from, to, offset, length } = copied;
        while self.progress.copied < length {
            let left = length - self.progress.copied;
            let most = self.most_bytes.saturating_sub(self.bytes + MUTATION_BYTES).min(COPIED_BYTES) as u64;
            if most == 0 {
                self.flush()?;
                continue;
            }
            let at = offset + self.progress.copied;
            let mut data = vec![0; left.min(most) as usize];
            let got = self.device.read(from, at, &mut data)?;
            // What the hidden object ends before is a hole there.
            data[got..].fill(0);
            self.progress.copied += data.len() as u64;
            self.add(Mutation::Write { object: to, offset: at, data });
        }
        Ok(())
    }
}

/// Does the steps of a record from `progress` on, in transactions of `most_bytes`, and says then
/// that there is no record any more.
pub(crate) fn put_in_place<D: ObjectDevice + ?Sized>(
    device: &D,
    record: &[u8],
    progress: IntentState,
    most_bytes: usize,
) -> Result<()> {
    let mut batch = Batch { device, most_bytes, mutations: Vec::new(), bytes: 0, progress };
    let mut rest = record;
    let mut number = 0;
    while !rest.is_empty() {
        let step = Step::take(&mut rest).ok_or_else(damaged)?;
        let is_done = number < progress.steps;
        number += 1;
        if is_done || (is_planted(Bug::StagedLastStepDropped) && rest.is_empty() && progress.steps > 0) {
            continue;
        }
        match step {
            Step::Change(mutation) => {
                if batch.bytes + cost(&mutation) > most_bytes {
                    batch.flush()?;
                }
                batch.add(mutation);
            }
            Step::Copy(copied) => batch.copy(copied)?,
        }
        (batch.progress.steps, batch.progress.copied) = (number, 0);
    }
    batch.progress = IntentState::NOTHING;
    batch.add(Mutation::Truncate { object: LIST, size: 0 });
    batch.flush()
}

/// The device cannot say whether there is a committed transaction that is not in place.
pub(crate) fn unreadable() -> Error {
    let why = "whether a committed transaction is not in place yet cannot be read";
    Error::of(ErrorKind::Corrupt, LIST, why)
}

/// A record that is none.
pub(crate) fn damaged() -> Error {
    Error::of(ErrorKind::Corrupt, LIST, "the record of a committed transaction is damaged")
}
