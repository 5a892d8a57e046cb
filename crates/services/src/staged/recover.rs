//! Opening a device: a transaction that was committed and is not in place yet is put there before
//! anybody sees the device, and what transactions left that were not committed is removed.

use crate::staged::Staged;
use crate::staged::apply::{damaged, put_in_place, unreadable};
use crate::staged::check::Rules;
use crate::staged::content::Hidden;
use crate::staged::hide::{LIST, Listed};
use crate::staged::record::{Copied, IntentState, Step};
use crate::staged::shadow::{Shadow, Shadows, Standing};
use crate::staged::view::View;
use crate::turn::Turn;
use onode_base::planted::{Bug, is_planted};
use onode_object::{AttributeKey, Durability, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result, Transaction};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What one read of a record takes.
const READ_BYTES: usize = 1 << 20;

/// The objects that a record takes off the list: they are seen once it is in place.
fn taken_off(record: &[u8]) -> Result<Vec<ObjectId>> {
    let (mut rest, mut found) = (record, Vec::new());
    while !rest.is_empty() {
        let step = Step::take(&mut rest).ok_or_else(damaged)?;
        if let Step::Change(Mutation::RemoveAttribute { object: LIST, key }) = step {
            found.push(ObjectId(key.index.saturating_sub(AttributeKey::STAGED_OBJECTS.index)));
        }
    }
    Ok(found)
}

impl<D: ObjectDevice + ?Sized> Staged<D> {
    /// The device, with everything in place that was committed. If nothing may change on it and
    /// something is not in place, the view shows it as if it were; if damage hides whether anything
    /// is, what is in place can be read ([`is_unreadable`](Self::is_unreadable)).
    ///
    /// # Errors
    /// `Corrupt` if the record of a committed transaction is damaged, or if damage hides whether
    /// there is one and changes are possible, and nothing was changed;
    /// `NotSupported` if only a newer version knows it; those of the device.
    pub fn open(inner: Arc<D>, rules: Arc<dyn Rules>) -> Result<(Arc<Self>, Option<View<D>>)> {
        let transaction_bytes = inner.info().transaction_bytes;
        Self::open_limited(inner, rules, transaction_bytes)
    }

    /// The same with transactions of the device of that many bytes at most.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_limited(
        inner: Arc<D>,
        rules: Arc<dyn Rules>,
        transaction_bytes: usize,
    ) -> Result<(Arc<Self>, Option<View<D>>)> {
        let staged = Arc::new(Self::new(inner, rules, transaction_bytes));
        let _turn = Turn::take(staged.inner.as_ref());
        let progress = match staged.inner.attribute(LIST, AttributeKey::STAGED_STATE) {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok((Arc::clone(&staged), None)),
            Err(error) if error.kind != ErrorKind::Corrupt => return Err(error),
            Err(_) if staged.inner.info().read_only.is_none() => return Err(unreadable()),
            Err(_) => return Ok((staged.without_list(), None)),
            Ok(None) => IntentState::NOTHING,
            Ok(Some(value)) => IntentState::decode(&value).ok_or_else(|| {
                Error::of(ErrorKind::NotSupported, LIST, "a newer version has committed a transaction here")
            })?,
        };
        let shown = staged.settle(progress)?;
        Ok((Arc::clone(&staged), shown))
    }

    /// The device without what is left of a committed transaction that cannot be put in place,
    /// because its record or content that waits is damaged. What of it is in place stays. If damage
    /// of the device keeps even its state from being changed, a repair is left to do that
    /// ([`is_unreadable`](Self::is_unreadable)).
    ///
    /// # Errors
    /// Those of the device.
    pub fn open_giving_up(inner: Arc<D>, rules: Arc<dyn Rules>) -> Result<Arc<Self>> {
        let transaction_bytes = inner.info().transaction_bytes;
        let staged = Arc::new(Self::new(inner, rules, transaction_bytes));
        let _turn = Turn::take(staged.inner.as_ref());
        let given_up = staged.give_up().and_then(|()| staged.settle(IntentState::NOTHING));
        match given_up {
            Ok(_) => Ok(Arc::clone(&staged)),
            Err(error) if error.kind == ErrorKind::Corrupt => Ok(staged.without_list()),
            Err(error) => Err(error),
        }
    }

    /// Makes the state of the device say that everything is in place.
    fn give_up(&self) -> Result<()> {
        if self.inner.info().read_only.is_some() {
            return Ok(());
        }
        let mut transaction = Transaction::new();
        transaction.set_attribute(LIST, AttributeKey::STAGED_STATE, IntentState::NOTHING.encode());
        transaction.truncate(LIST, 0);
        self.inner.commit(transaction, Durability::Durable)
    }

    /// The device as it is, without what transactions left there.
    fn without_list(self: &Arc<Self>) -> Arc<Self> {
        *self.listed.lock() = Listed::default();
        self.has_hidden.store(false, Ordering::Release);
        self.is_unreadable.store(true, Ordering::Relaxed);
        Arc::clone(self)
    }

    /// Puts in place what is not, or returns a view that shows it so, and removes what is left.
    fn settle(self: &Arc<Self>, progress: IntentState) -> Result<Option<View<D>>> {
        let staged = self;
        let can_change = staged.inner.info().read_only.is_none();
        // What others have under way is not left over.
        let is_alone = staged.inner.share().is_none_or(|share| !share.has_others());
        let (mut shown, mut seen) = (None, Vec::new());
        if progress.is_committed {
            let record = staged.record(&progress)?;
            if can_change {
                staged.allow_ids(&record)?;
                put_in_place(staged.inner.as_ref(), &record, progress, staged.transaction_bytes)?;
            } else {
                shown = Some(View::fixed(staged, staged.shadows(&record, progress)?));
                seen = taken_off(&record)?;
            }
        }
        staged.learn_list()?;
        staged.unlisted(&seen);
        if can_change && is_alone && !is_planted(Bug::StagedLeftoversStay) {
            let left = staged.listed.lock().objects();
            staged.discard(&left)?;
            staged.end_list()?;
        }
        Ok(shown)
    }

    /// The record of a committed transaction.
    fn record(&self, progress: &IntentState) -> Result<Vec<u8>> {
        let is_possible = self.inner.stat(LIST)?.size == progress.length;
        let length = usize::try_from(progress.length).ok().filter(|_| is_possible).ok_or_else(damaged)?;
        let mut record = vec![0; length];
        for (part, offset) in record.chunks_mut(READ_BYTES).zip((0..).step_by(READ_BYTES)) {
            match self.inner.read(LIST, offset, part) {
                Ok(got) if got == part.len() => {}
                Err(error) if error.kind != ErrorKind::Corrupt => return Err(error),
                _ => return Err(damaged()),
            }
        }
        if progress.is_of(&record) { Ok(record) } else { Err(damaged()) }
    }

    /// Has the device know the ids of objects that are to be made: it handed them out before the
    /// cut, and may have forgotten that.
    fn allow_ids(&self, record: &[u8]) -> Result<()> {
        let (mut rest, mut last) = (record, ObjectId(0));
        while !rest.is_empty() {
            if let Step::Change(Mutation::Create { object, .. }) = Step::take(&mut rest).ok_or_else(damaged)? {
                last = last.max(object);
            }
        }
        let next = self.inner.reserve_ids(0)?;
        if last >= next {
            self.inner.reserve_ids(last.0 + 1 - next.0)?;
        }
        Ok(())
    }

    /// What the steps from `progress` on change.
    fn shadows(&self, record: &[u8], progress: IntentState) -> Result<Shadows> {
        let mut shadows = Shadows::new();
        let mut rest = record;
        let mut number = 0;
        while !rest.is_empty() {
            let step = Step::take(&mut rest).ok_or_else(damaged)?;
            number += 1;
            let object = match &step {
                Step::Change(mutation) => mutation.object(),
                Step::Copy(copied) => copied.to,
            };
            if number <= progress.steps || object == LIST {
                continue;
            }
            let is_made = matches!(step, Step::Change(Mutation::Create { .. }));
            let standing = if is_made { Standing::Made } else { Standing::Changed };
            let shadow = shadows.entry(object).or_insert_with(|| Shadow::of(standing));
            if shadow.content.is_none() && shadow.shows_base() && !is_made {
                let size = self.inner.stat(object)?.size;
                shadow.content = Some(crate::staged::content::Content::of(size));
            }
            match step {
                Step::Change(mutation) => shadow.apply(mutation, || 0, &mut Vec::new()),
                Step::Copy(Copied { from, offset, length, .. }) => {
                    let Some(content) = shadow.content.as_mut() else { continue };
                    let size = self.inner.stat(from)?.size;
                    content.said.add(offset, offset + length);
                    content.size = content.size.max(offset + length);
                    content.hidden = Some(Hidden { object: from, size });
                }
            }
        }
        Ok(shadows)
    }
}
