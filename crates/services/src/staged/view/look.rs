//! What a view shows: its own changes over what the wrapped device has.

use crate::staged::missing;
use crate::staged::shadow::{Shadow, Standing};
use crate::staged::touched::is_kept;
use crate::staged::view::{View, ViewState};
use onode_object::{AttributeKey, ErrorKind, ObjectDevice, ObjectId, ObjectStat, Result, validate};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

impl<D: ObjectDevice + ?Sized> View<D> {
    /// What was changed of an object, if anything was.
    fn shadow<'a>(&self, state: &'a ViewState, object: ObjectId) -> Result<Option<&'a Shadow>> {
        match state.shadows.get(&object) {
            Some(Shadow { standing: Standing::Gone, .. }) => Err(missing(object)),
            None if self.staged.is_hidden(object) => Err(missing(object)),
            found => Ok(found),
        }
    }

    /// Looks at the wrapped device.
    fn base<T>(&self, look: impl FnMut() -> Result<T>) -> Result<T> {
        self.staged.look(look)
    }

    pub(super) fn exists(&self, state: &ViewState, object: ObjectId) -> Result<bool> {
        match self.shadow(state, object) {
            Ok(Some(_)) => Ok(true),
            Ok(None) => match self.base(|| self.staged.inner.stat(object)) {
                Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
                other => other.map(|_| true),
            },
            Err(_) => Ok(false),
        }
    }

    pub(super) fn read_in(&self, state: &mut ViewState, at: (ObjectId, u64), buffer: &mut [u8]) -> Result<usize> {
        let (object, offset) = at;
        let now = self.staged.watch.lock().count();
        let shows_base = self.shadow(state, object)?.is_none_or(Shadow::shows_base);
        if shows_base && self.staged.rules.minds_reads(object) {
            state.touched.content(object, now);
        }
        match self.shadow(state, object)?.and_then(|shadow| shadow.content.as_ref()) {
            Some(content) => content.read(offset, buffer, self.staged.inner.as_ref(), |at, piece| {
                self.base(|| self.staged.inner.read(object, at, piece))
            }),
            None => self.base(|| self.staged.inner.read(object, offset, buffer)),
        }
    }

    pub(super) fn attribute_in(
        &self,
        state: &mut ViewState,
        object: ObjectId,
        key: AttributeKey,
    ) -> Result<Option<Vec<u8>>> {
        let now = self.staged.watch.lock().count();
        if let Some(shadow) = self.shadow(state, object)? {
            if let Some(value) = shadow.attributes.get(&key) {
                return Ok(value.clone());
            }
            if !shadow.shows_base() {
                return Ok(None);
            }
        }
        // What is put together with the changes of others is what it was at first.
        if let Some(kept) = state.touched.kept(object, key) {
            return Ok(Some(kept.to_vec()));
        }
        state.touched.attribute(object, key, now);
        let value = self.base(|| self.staged.inner.attribute(object, key))?;
        if let Some(value) = value.as_ref().filter(|_| is_kept(key)) {
            state.touched.keep(object, key, value);
        }
        Ok(value)
    }

    pub(super) fn attributes_in(
        &self,
        state: &mut ViewState,
        object: ObjectId,
        from: AttributeKey,
        limit: usize,
    ) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let (mut from, mut all) = (from, BTreeMap::new());
        loop {
            let now = self.staged.watch.lock().count();
            let shows_base = self.shadow(state, object)?.is_none_or(Shadow::shows_base);
            let found =
                if shows_base { self.base(|| self.staged.inner.attributes(object, from, limit))? } else { Vec::new() };
            // What the view has behind the last one of the base belongs behind what comes next.
            let last = found.last().map(|(key, _)| *key);
            for (key, value) in found {
                state.touched.attribute(object, key, now);
                if is_kept(key) {
                    state.touched.keep(object, key, &value);
                }
                let kept = state.touched.kept(object, key).map(<[u8]>::to_vec);
                all.insert(key, kept.unwrap_or(value));
            }
            if let Some(shadow) = self.shadow(state, object)? {
                let until = last.map_or(Bound::Unbounded, Bound::Included);
                for (key, value) in shadow.attributes.range((Bound::Included(from), until)) {
                    match value {
                        Some(value) => _ = all.insert(*key, value.clone()),
                        None => _ = all.remove(key),
                    }
                }
            }
            let next = last.and_then(AttributeKey::next);
            match next {
                Some(next) if all.len() < limit => from = next,
                _ => return Ok(all.into_iter().take(limit).collect()),
            }
        }
    }

    pub(super) fn stat_in(&self, state: &ViewState, object: ObjectId) -> Result<ObjectStat> {
        let shadow = self.shadow(state, object)?;
        let mut stat = match shadow {
            Some(shadow) if !shadow.shows_base() => ObjectStat::default(),
            _ => self.base(|| self.staged.inner.stat(object))?,
        };
        let Some(shadow) = shadow else { return Ok(stat) };
        stat.hints = shadow.hints.unwrap_or(stat.hints);
        stat.accessed = shadow.accessed.unwrap_or(stat.accessed);
        if let Some(content) = &shadow.content {
            stat.size = content.size;
            let hidden = match content.hidden {
                Some(hidden) => self.staged.inner.stat(hidden.object)?.allocated,
                None => 0,
            };
            stat.allocated = stat.allocated.min(content.base_end) + content.pieces.bytes() as u64 + hidden;
        }
        Ok(stat)
    }

    pub(super) fn list_in(&self, state: &ViewState, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let (mut from, mut all) = (from, BTreeSet::new());
        loop {
            let found = ObjectDevice::list(self.staged.as_ref(), from, limit)?;
            let last = found.last().copied();
            all.extend(found);
            let until = last.map_or(Bound::Unbounded, Bound::Included);
            for (object, shadow) in state.shadows.range((Bound::Included(from), until)) {
                match shadow.standing {
                    Standing::Gone => _ = all.remove(object),
                    Standing::Made => _ = all.insert(*object),
                    Standing::Changed => {}
                }
            }
            match last {
                Some(last) if all.len() < limit => from = ObjectId(last.0.saturating_add(1)),
                _ => return Ok(all.into_iter().take(limit).collect()),
            }
        }
    }

    pub(super) fn extents_in(
        &self,
        state: &ViewState,
        object: ObjectId,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>> {
        let extents = |at, limit| self.base(|| self.staged.inner.extents(object, at, limit));
        match self.shadow(state, object)?.and_then(|shadow| shadow.content.as_ref()) {
            Some(content) => {
                let at_once = crate::staged::content::Content::extents_at_once();
                content.extents(offset, limit, self.staged.inner.as_ref(), |at| extents(at, at_once))
            }
            None => extents(offset, limit),
        }
    }

    /// Objects that the view has more than the wrapped device.
    pub(super) fn objects_in(state: &ViewState, base: u64) -> u64 {
        let count = |wanted: fn(&Shadow) -> bool| state.shadows.values().filter(|it| wanted(it)).count() as u64;
        let made = count(|it| it.standing == Standing::Made && !it.replaces);
        (base + made).saturating_sub(count(|it| it.standing == Standing::Gone))
    }
}

/// The state of a view as it is asked for what is stored.
pub(super) struct Lookup<'a, D: ObjectDevice + ?Sized> {
    pub(super) view: &'a View<D>,
    pub(super) state: &'a mut ViewState,
}

impl<D: ObjectDevice + ?Sized> validate::Stored for Lookup<'_, D> {
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>> {
        match self.view.attribute_in(self.state, object, key) {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            other => other.map(|value| value.map(|value| value.len())),
        }
    }

    fn solid_bytes(&mut self, object: ObjectId) -> Result<Option<u64>> {
        let size = match self.view.stat_in(self.state, object) {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            other => other?.size,
        };
        let mut end = 0;
        while end < size {
            let extents = self.view.extents_in(self.state, object, end, 1)?;
            match extents.first() {
                Some(&(start, length)) if start <= end && length > 0 => end = start + length,
                _ => return Ok(None),
            }
        }
        Ok(Some(size))
    }
}
