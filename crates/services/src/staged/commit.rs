//! A view becomes true: in one transaction of the device if it fits, else by an intent record.

use crate::staged::apply::put_in_place;
use crate::staged::check::Check;
use crate::staged::hide::{LIST, take_off};
use crate::staged::plan::StagedPlan;
use crate::staged::record::{IntentState, Step};
use crate::staged::shadow::Shadows;
use crate::staged::view::{Ended, View, ViewState};
use crate::staged::{HALF, Staged};
use crate::turn::Turn;
use onode_base::planted::{Bug, is_planted};
use onode_object::validate::{Stored, never_needs_space};
use onode_object::{
    AttributeKey, AttributeKind, Durability, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result, SyncScope,
    Transaction,
};
use std::sync::atomic::Ordering;

/// Space that the record of a transaction needs besides its bytes, and a reserve for what a device
/// reckons otherwise than it said.
const MARGIN_BYTES: u64 = 64 << 10;
const MARGIN_PART: u64 = 16;

/// An object that a transaction changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedObject {
    /// It.
    pub object: ObjectId,
    /// Entries of a directory that were changed, as they were before and as they are now.
    pub entries: Vec<ChangedEntry>,
}

/// An entry of a directory as it was before and as it is now.
pub type ChangedEntry = [Option<Vec<u8>>; 2];

impl<D: ObjectDevice + ?Sized> View<D> {
    /// Makes the changes of the view those of the device, all of them or none, and tells which
    /// objects changed. The view has ended then; after an error it stays as it was.
    ///
    /// # Errors
    /// `Conflict` if somebody else changed what the view changed or whose content it read; `Busy`
    /// if other hosts use the device; `NoSpace`; those of the device.
    pub fn make_true(&self, durability: Durability) -> Result<Vec<ChangedObject>> {
        let staged = self.staged();
        let _turn = Turn::take(staged.inner.as_ref());
        let mut state = self.open()?;
        let _changing = staged.changing.write();
        staged.check_whole()?;
        let merged = {
            let watch = staged.watch.lock();
            Check { staged, watch: &watch, touched: &state.touched }.all(&state.shadows)?
        };
        let mut plan = StagedPlan::of(&state.shadows, &merged, staged.inner.as_ref())?;
        plan.pass(state.passed);
        let changed = changed(&state.shadows, staged)?;
        let marks = plan.steps.iter().map(mark).collect::<Vec<_>>();
        let unneeded = plan.unneeded.clone();
        if plan.steps.is_empty() {
            // A durable commit of nothing is one of all that came before.
            if durability == Durability::Durable {
                staged.inner.sync(SyncScope::All)?;
            }
        } else if staged.goes_at_once(&plan)? {
            staged.leave_room_at_once(&plan, self.set_aside())?;
            staged.commit_at_once(plan, durability)?;
        } else if let Err(error) = staged
            .refuse_record_of_kept(&state.shadows)
            .and_then(|()| staged.commit_by_record(&plan, durability, self.set_aside()))
        {
            if staged.check_whole().is_err() {
                // It has happened all the same: the next mount needs what is hidden.
                state.shadows = Shadows::new();
                self.end(&mut state, Ended::Committed);
            }
            return Err(error);
        }
        // From here on it has happened.
        staged.watch.lock().note(marks.iter());
        // Hidden objects that stay are found by the next mount.
        let _ = staged.discard(&unneeded).and_then(|()| staged.end_list());
        state.shadows = Shadows::new();
        self.end(&mut state, Ended::Committed);
        Ok(changed)
    }
}

/// What a step changes.
fn mark(step: &Step) -> Mutation {
    match step {
        Step::Change(Mutation::Write { object, offset, .. }) => {
            Mutation::Write { object: *object, offset: *offset, data: Vec::new() }
        }
        Step::Change(Mutation::SetAttribute { object, key, .. }) => {
            Mutation::RemoveAttribute { object: *object, key: *key }
        }
        Step::Change(other) => other.clone(),
        Step::Copy(copied) => Mutation::Write { object: copied.to, offset: copied.offset, data: Vec::new() },
    }
}

/// The objects that a view has changed.
fn changed<D: ObjectDevice + ?Sized>(shadows: &Shadows, staged: &Staged<D>) -> Result<Vec<ChangedObject>> {
    let mut all = Vec::with_capacity(shadows.len());
    for (object, shadow) in shadows {
        let mut entries = Vec::new();
        for (key, after) in shadow.attributes.iter().filter(|(key, _)| key.kind == AttributeKind::ENTRY) {
            let before = if shadow.shows_base() { staged.inner.attribute(*object, *key)? } else { None };
            entries.push([before, after.clone()]);
        }
        all.push(ChangedObject { object: *object, entries });
    }
    Ok(all)
}

impl<D: ObjectDevice + ?Sized> Staged<D> {
    /// Whether one transaction of the device takes everything: it fits, or the device must not
    /// refuse it for space, which it might refuse a record.
    fn goes_at_once(&self, plan: &StagedPlan) -> Result<bool> {
        if plan.has_copies || plan.bytes <= self.transaction_bytes {
            return Ok(!plan.has_copies);
        }
        never_needs_space(&Transaction { mutations: plan.mutations() }, &mut OnDevice(self.inner.as_ref()))
    }

    /// That no record is written of what needs the key of a directory: for a while it would be
    /// stored, and put in place after a cut, without that key.
    fn refuse_record_of_kept(&self, shadows: &Shadows) -> Result<()> {
        for (object, shadow) in shadows {
            let made = shadow.hints.map(|hints| hints.encryption_key);
            if made.map_or_else(|| self.directory_key(*object), Ok)? != 0 {
                let why = format!(
                    "it changes files in a directory with a key, and is too large for one transaction of the device, {} bytes",
                    self.transaction_bytes
                );
                return Err(Error::of(ErrorKind::NotSupported, *object, why));
            }
        }
        Ok(())
    }

    /// The number of the key of the directory that an object belongs to, if it is there; else 0.
    pub(crate) fn directory_key(&self, object: ObjectId) -> Result<u32> {
        if !self.inner.has_directory_keys() {
            return Ok(0);
        }
        match self.inner.stat(object) {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(0),
            stat => stat.map(|stat| stat.hints.encryption_key),
        }
    }

    /// Everything in one transaction of the device.
    fn commit_at_once(&self, plan: StagedPlan, durability: Durability) -> Result<()> {
        let shown = plan.shown.clone();
        let mutations = plan.into_mutations();
        if shown.is_empty() {
            return self.inner.commit(Transaction { mutations }, durability);
        }
        self.commit_unlisting(mutations, &shown, durability)
    }

    /// A record of everything first, and then everything; what hosts have set aside is left alone.
    fn commit_by_record(&self, plan: &StagedPlan, durability: Durability, set_aside: u64) -> Result<()> {
        if self.inner.share().is_some_and(|share| share.has_others()) {
            let why = "other processes use the memory, and would see a half of a transaction of this size";
            return Err(Error::new(ErrorKind::Busy, why));
        }
        let mut record = Vec::new();
        plan.steps.iter().for_each(|step| step.put(&mut record));
        plan.shown.iter().for_each(|object| Step::Change(take_off(*object)).put(&mut record));
        let progress = IntentState::of(&record);
        if is_planted(Bug::StagedInParts) {
            self.begin_list()?;
            return put_in_place(self.inner.as_ref(), &record, progress, self.transaction_bytes);
        }
        let needs = plan.needs(self.inner.as_ref());
        let needs = needs + needs / MARGIN_PART + MARGIN_BYTES;
        self.leave_room(needs + record.len() as u64, set_aside)?;
        self.begin_list()?;
        let point = |durability| {
            let mut transaction = Transaction::new();
            transaction.set_attribute(LIST, AttributeKey::STAGED_STATE, progress.encode());
            self.inner.commit(transaction, durability)
        };
        if is_planted(Bug::StagedPointFirst) {
            point(durability)?;
        }
        if let Err(error) =
            self.write_record(&record).and_then(|()| self.leave_room(needs, set_aside)).and_then(|()| point(durability))
        {
            // Nothing has happened; what is left of it is in nobody's way.
            let mut transaction = Transaction::new();
            transaction.truncate(LIST, 0);
            let _ = self.inner.commit(transaction, Durability::Buffered).and_then(|()| self.end_list());
            return Err(error);
        }
        self.applied.fetch_add(1, Ordering::AcqRel);
        if let Err(error) = put_in_place(self.inner.as_ref(), &record, progress, self.transaction_bytes) {
            self.is_half.store(true, Ordering::Release);
            return Err(Error::new(ErrorKind::Media, format!("{HALF}: {error}")));
        }
        self.unlisted(&plan.shown);
        self.applied.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn write_record(&self, record: &[u8]) -> Result<()> {
        for (part, number) in record.chunks(self.transaction_bytes.max(1)).zip(0..) {
            let mut transaction = Transaction::new();
            transaction.write(LIST, number * self.transaction_bytes as u64, part.to_vec());
            self.inner.commit(transaction, Durability::Buffered)?;
        }
        // A device may have content durable later than attributes.
        self.inner.sync(SyncScope::All)
    }

    /// The device knows best what has room in it, but not what hosts have set aside.
    fn leave_room_at_once(&self, plan: &StagedPlan, set_aside: u64) -> Result<()> {
        if set_aside == 0 { Ok(()) } else { self.leave_room(plan.needs(self.inner.as_ref()), set_aside) }
    }

    fn leave_room(&self, needs: u64, set_aside: u64) -> Result<()> {
        let left = self.inner.promisable().saturating_sub(set_aside);
        if needs > left {
            let why = format!("the transaction needs {needs} bytes to be put in place, and {left} are left");
            return Err(Error::new(ErrorKind::NoSpace, why));
        }
        Ok(())
    }
}

/// What is stored on a device.
struct OnDevice<'a, D: ?Sized>(&'a D);

impl<D: ObjectDevice + ?Sized> Stored for OnDevice<'_, D> {
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>> {
        match self.0.attribute(object, key) {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            other => other.map(|value| value.map(|value| value.len())),
        }
    }

    /// What overwrites content has a small plan, and is committed at once anyway.
    fn solid_bytes(&mut self, _: ObjectId) -> Result<Option<u64>> {
        Ok(None)
    }
}

impl<D: ObjectDevice + ?Sized> View<D> {
    /// Gives up all changes.
    ///
    /// # Errors
    /// Those of the device, which then keeps hidden objects until the next mount.
    pub fn abort(&self) -> Result<()> {
        self.abort_because("it was aborted")
    }

    /// The same; whoever uses the view from now on is told why.
    ///
    /// # Errors
    /// As [`abort`](Self::abort).
    pub fn abort_because(&self, why: &str) -> Result<()> {
        let staged = self.staged();
        let _turn = Turn::take(staged.inner.as_ref());
        let mut state = self.state();
        self.give_up(&mut state, Ended::Aborted(why.to_owned()))
    }

    fn give_up(&self, state: &mut ViewState, how: Ended) -> Result<()> {
        if state.ended.is_some() {
            return Ok(());
        }
        let staged = self.staged();
        let hidden: Vec<_> = state.shadows.values().filter_map(|shadow| shadow.content.as_ref()?.hidden).collect();
        let hidden: Vec<_> = hidden.into_iter().map(|hidden| hidden.object).collect();
        state.shadows = Shadows::new();
        self.end(state, how);
        if hidden.is_empty() {
            return Ok(());
        }
        let _changing = staged.changing.read();
        staged.check_whole()?;
        staged.discard(&hidden)
    }
}
