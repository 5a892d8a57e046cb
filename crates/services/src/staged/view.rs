//! A device that shows another one with changes over it, which nobody else sees.
//!
//! What is changed stays in memory; content beyond a bound goes to hidden objects of the wrapped
//! device ([`spill`](self::spill)). Nothing else of the wrapped device changes before
//! [`View::make_true`].

mod device;
mod keys;
mod look;
mod spill;

use crate::staged::Staged;
use crate::staged::apply::unreadable;
use crate::staged::shadow::{Shadow, Shadows, Standing};
use crate::staged::touched::Touched;
use crate::staged::watch::WatchedPart;
use crate::turn::Turn;
use onode_base::sync::{Mutex, MutexGuard, rank};
use onode_object::{Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result, Transaction};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names, attributes and objects that a view changes take no more memory than that.
const ENTRY_BYTES_MAX: usize = 64 << 20;

/// How a view ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Its changes are those of the device.
    Committed,
    /// Its changes were given up, and why.
    Aborted(String),
}

/// What a view knows.
pub(crate) struct ViewState {
    pub(crate) shadows: Shadows,
    pub(crate) touched: Touched,
    /// The largest number of an object that was made and removed again, if any was.
    pub(crate) passed: Option<ObjectId>,
    pub(crate) ended: Option<Ended>,
    /// Memory that the shadows take, without content.
    entry_bytes: usize,
    /// Content in memory.
    held_bytes: usize,
}

/// A device with changes over it.
pub struct View<D: ObjectDevice + ?Sized> {
    staged: Arc<Staged<D>>,
    /// It shows what a cut left half done, and takes no changes.
    is_fixed: bool,
    /// Space that hosts of the device have set aside for what they have not written yet.
    set_aside: Arc<AtomicU64>,
    state: Mutex<ViewState, rank::StagedView>,
}

impl<D: ObjectDevice + ?Sized> Staged<D> {
    /// Begins a view, in which nothing is changed yet.
    ///
    /// # Errors
    /// `ReadOnly` if the device takes no changes; `Busy` if other hosts use it, of whose changes
    /// the view would not hear; `Corrupt` if damage hides what transactions left there.
    pub fn begin(self: &Arc<Self>) -> Result<View<D>> {
        self.begin_beside(Arc::default())
    }

    /// The same beside a host that says at any moment how much of the device's space it has set
    /// aside, which the view leaves alone.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn begin_beside(self: &Arc<Self>, set_aside: Arc<AtomicU64>) -> Result<View<D>> {
        let _turn = Turn::take(self.inner.as_ref());
        if let Some(why) = self.inner.info().read_only {
            return Err(Error::new(ErrorKind::ReadOnly, why));
        }
        if self.inner.share().is_some_and(|share| share.has_others()) {
            let why = "other processes use the memory, and a transaction would not hear of their changes";
            return Err(Error::new(ErrorKind::Busy, why));
        }
        if self.is_unreadable() {
            return Err(unreadable());
        }
        let _changing = self.changing.write();
        self.check_whole()?;
        let mut watch = self.watch.lock();
        if self.views.fetch_add(1, Ordering::AcqRel) == 0 {
            watch.clear();
        }
        let mut view = View::new(Arc::clone(self), watch.count(), Shadows::new(), false);
        view.set_aside = set_aside;
        Ok(view)
    }
}

impl<D: ObjectDevice + ?Sized> View<D> {
    fn new(staged: Arc<Staged<D>>, begun: u64, shadows: Shadows, is_fixed: bool) -> Self {
        let touched = Touched::new(begun);
        let state = ViewState { shadows, touched, passed: None, ended: None, entry_bytes: 0, held_bytes: 0 };
        Self { staged, is_fixed, set_aside: Arc::default(), state: Mutex::new(state) }
    }

    /// One that shows changes and takes none.
    pub(crate) fn fixed(staged: &Arc<Staged<D>>, shadows: Shadows) -> Self {
        Self::new(Arc::clone(staged), 0, shadows, true)
    }

    pub(crate) const fn staged(&self) -> &Arc<Staged<D>> {
        &self.staged
    }

    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn state(&self) -> MutexGuard<'_, ViewState> {
        self.state.lock()
    }

    /// What the view knows, if it has not ended.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn open(&self) -> Result<MutexGuard<'_, ViewState>> {
        let state = self.state.lock();
        match &state.ended {
            None => Ok(state),
            Some(Ended::Committed) => Err(Error::new(ErrorKind::Stale, "the transaction is over: it was committed")),
            Some(Ended::Aborted(why)) => Err(Error::new(ErrorKind::Stale, format!("the transaction is over: {why}"))),
        }
    }

    /// The end of a view.
    pub(crate) fn end(&self, state: &mut ViewState, how: Ended) {
        state.ended = Some(how);
        self.staged.held.fetch_sub((state.entry_bytes + state.held_bytes) as u64, Ordering::Relaxed);
        (state.entry_bytes, state.held_bytes) = (0, 0);
        let mut watch = self.staged.watch.lock();
        if !self.is_fixed && self.staged.views.fetch_sub(1, Ordering::AcqRel) == 1 {
            watch.clear();
        }
    }

    /// Notes that what changes take in memory was `before`.
    fn account(&self, state: &ViewState, before: usize) {
        let now = state.entry_bytes + state.held_bytes;
        self.staged.held.fetch_add(now.wrapping_sub(before) as u64, Ordering::Relaxed);
    }

    /// Space that the view may use.
    fn room(&self) -> u64 {
        self.staged.inner.space().available.saturating_sub(self.set_aside())
    }

    /// Space that is for others.
    pub(crate) fn set_aside(&self) -> u64 {
        self.set_aside.load(Ordering::Relaxed)
    }

    /// Whether nothing was changed.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.state().shadows.is_empty()
    }

    /// The objects that it changed.
    #[must_use]
    pub fn changed_objects(&self) -> Vec<ObjectId> {
        self.state().shadows.keys().copied().collect()
    }

    /// A number that is another one than the time before if somebody else has changed something
    /// that the view shows.
    #[must_use]
    pub fn changes_of_others(&self) -> u64 {
        self.staged.watch.lock().count()
    }

    /// Whether somebody else has changed an object since the view was begun.
    #[must_use]
    pub fn is_changed_by_others(&self, object: ObjectId) -> bool {
        let begun = self.state().touched.begun();
        self.staged.watch.lock().has_changed(object, WatchedPart::Any, begun)
    }

    /// Memory that its changes take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let state = self.state();
        state.entry_bytes + state.held_bytes
    }

    /// Notes that what a transaction changes is looked at.
    fn touch(&self, state: &mut ViewState, transaction: &Transaction) {
        let now = self.staged.watch.lock().count();
        for mutation in &transaction.mutations {
            let object = mutation.object();
            match mutation {
                Mutation::Write { .. } | Mutation::Truncate { .. } | Mutation::Punch { .. } => {
                    // Of its own objects nobody knows.
                    if state.shadows.get(&object).is_none_or(Shadow::shows_base) {
                        state.touched.content(object, now);
                    }
                }
                Mutation::SetAttribute { key, .. } | Mutation::RemoveAttribute { key, .. } => {
                    state.touched.attribute(object, *key, now);
                }
                _ => state.touched.object(object, now),
            }
        }
    }

    /// Sizes on the base of objects whose content a transaction is the first to change.
    fn sizes(&self, state: &ViewState, transaction: &Transaction) -> Result<BTreeMap<ObjectId, u64>> {
        let mut sizes = BTreeMap::new();
        for mutation in &transaction.mutations {
            let object = mutation.object();
            let is_content =
                matches!(mutation, Mutation::Write { .. } | Mutation::Truncate { .. } | Mutation::Punch { .. });
            let is_known = state.shadows.get(&object).is_some_and(|it| it.content.is_some() || !it.shows_base());
            if is_content && !is_known && !sizes.contains_key(&object) {
                match self.staged.look(|| self.staged.inner.stat(object)) {
                    Ok(stat) => _ = sizes.insert(object, stat.size),
                    // It is made by this very transaction.
                    Err(error) if error.kind == ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(sizes)
    }

    /// Applies a transaction that was found valid; returns what hidden objects have to do for it.
    fn apply(state: &mut ViewState, transaction: Transaction, sizes: &BTreeMap<ObjectId, u64>) -> Vec<Mutation> {
        let mut work = Vec::new();
        for mutation in transaction.mutations {
            let object = mutation.object();
            let entry_bytes = &mut state.entry_bytes;
            let shadow = state.shadows.entry(object).or_insert_with(|| {
                // What was valid and is not on the base is made by this mutation.
                let is_made = matches!(mutation, Mutation::Create { .. });
                let shadow = Shadow::of(if is_made { Standing::Made } else { Standing::Changed });
                *entry_bytes += shadow.entry_bytes();
                shadow
            });
            let before = (shadow.entry_bytes(), shadow.held_bytes());
            shadow.apply(mutation, || sizes.get(&object).copied().unwrap_or(0), &mut work);
            state.entry_bytes = state.entry_bytes + shadow.entry_bytes() - before.0;
            state.held_bytes = state.held_bytes + shadow.held_bytes() - before.1;
            if shadow.is_nothing() {
                state.entry_bytes -= shadow.entry_bytes();
                state.shadows.remove(&object);
                state.passed = state.passed.max(Some(object).filter(|object| *object >= ObjectId::FIRST_FREE));
            }
        }
        work
    }
}

impl<D: ObjectDevice + ?Sized> Drop for View<D> {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next mount.
        let _ = if self.is_fixed { Ok(()) } else { self.abort() };
    }
}
