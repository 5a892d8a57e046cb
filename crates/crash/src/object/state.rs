//! What objects there should be: a plain model of the object interface that shares no code with any
//! device.

use onode_object::{AttributeKey, AttributeKind, Hints, Mutation, ObjectDevice, ObjectId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// One object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// The advice.
    pub hints: Hints,
    /// All its bytes, holes as zeros.
    pub content: Vec<u8>,
    /// The attributes.
    pub attributes: BTreeMap<AttributeKey, Vec<u8>>,
    /// The access times that a crash may leave, the present one last; none stands for 0.
    pub accessed: Vec<u64>,
}

impl Object {
    fn access_time(&self) -> u64 {
        self.accessed.last().copied().unwrap_or(0)
    }

    /// Whether all but the access times is the same.
    fn is_like(&self, other: &Self) -> bool {
        (&self.hints, &self.content, &self.attributes) == (&other.hints, &other.content, &other.attributes)
    }
}

/// All objects, and which ids were ever used.
#[derive(Clone, Debug, Default)]
pub struct ObjectState {
    /// The objects.
    pub objects: BTreeMap<ObjectId, Arc<Object>>,
    /// The highest id that any object had.
    pub highest: ObjectId,
}

impl ObjectState {
    /// Bytes of content and attributes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let of = |object: &Arc<Object>| {
            object.content.len() + object.attributes.values().map(|value| value.len() + 32).sum::<usize>()
        };
        self.objects.values().map(|object| of(object) as u64 + 64).sum()
    }

    /// Ids that objects may have had which are gone; the highest only if one had it.
    pub fn gone(&self) -> impl Iterator<Item = ObjectId> {
        let ids = (ObjectId::FIRST_FREE.0..=self.highest.0).map(ObjectId);
        ids.filter(|id| !self.objects.contains_key(id))
    }

    /// Does one change; false if there is no such object, or one that should be new.
    #[must_use]
    pub fn apply(&mut self, mutation: &Mutation) -> bool {
        let id = mutation.object();
        match mutation {
            Mutation::Create { hints, .. } => {
                // Ids of versions are not handed out.
                self.highest = if id.is_version() { self.highest } else { self.highest.max(id) };
                let object = Object { hints: *hints, ..Object::default() };
                return self.objects.insert(id, Arc::new(object)).is_none();
            }
            Mutation::Remove { .. } => return self.objects.remove(&id).is_some(),
            Mutation::Move { offset, length, to, .. } => {
                return self.move_content(id, *offset..offset.saturating_add(*length), *to);
            }
            _ => {}
        }
        let Some(object) = self.objects.get_mut(&id).map(Arc::make_mut) else { return false };
        match mutation {
            Mutation::Create { .. } | Mutation::Remove { .. } | Mutation::Move { .. } => {}
            Mutation::Write { offset, data, .. } => {
                let (start, end) = (*offset as usize, *offset as usize + data.len());
                if !data.is_empty() {
                    if object.content.len() < end {
                        object.content.resize(end, 0);
                    }
                    object.content[start..end].copy_from_slice(data);
                }
            }
            Mutation::Truncate { size, .. } => object.content.resize(*size as usize, 0),
            Mutation::Punch { offset, length, .. } => {
                let size = object.content.len();
                let start = (*offset as usize).min(size);
                let end = (*offset as usize).saturating_add(*length as usize).min(size);
                object.content[start..end].fill(0);
            }
            Mutation::SetAttribute { key, value, .. } => {
                object.attributes.insert(*key, value.clone());
            }
            Mutation::RemoveAttribute { key, .. } => {
                object.attributes.remove(key);
            }
            Mutation::SetHints { hints, .. } => object.hints = *hints,
            Mutation::SetAccessTime { time, .. } => {
                if object.accessed.is_empty() {
                    object.accessed.push(0);
                }
                object.accessed.push(*time);
            }
        }
        true
    }

    /// Content changes its object; false if that cannot be.
    fn move_content(&mut self, object: ObjectId, range: Range<u64>, to: ObjectId) -> bool {
        if object == to || !self.objects.contains_key(&to) {
            return false;
        }
        let Some(giver) = self.objects.get_mut(&object).map(Arc::make_mut) else { return false };
        let size = giver.content.len();
        let (start, end) = (range.start as usize, (range.end as usize).min(size));
        if start >= end {
            return true;
        }
        let moved = giver.content[start..end].to_vec();
        giver.content[start..end].fill(0);
        let Some(taker) = self.objects.get_mut(&to).map(Arc::make_mut) else { return false };
        let length = taker.content.len().max(end);
        taker.content.resize(length, 0);
        taker.content[start..end].copy_from_slice(&moved);
        true
    }

    /// Everything that a device shows.
    ///
    /// # Errors
    /// What the device answers instead of showing it.
    pub fn read(device: &dyn ObjectDevice) -> onode_object::Result<Self> {
        let mut found = Self::default();
        let mut from = ObjectId(0);
        loop {
            let ids = device.list(from, 64)?;
            let Some(last) = ids.last() else { return Ok(found) };
            from = ObjectId(last.0 + 1);
            for id in ids {
                found.objects.insert(id, Arc::new(read_object(device, id)?));
            }
        }
    }

    /// The first difference to what should be there; `None` if there is none.
    #[must_use]
    pub fn difference(&self, expected: &Self) -> Option<String> {
        for (id, wanted) in &expected.objects {
            let Some(found) = self.objects.get(id) else { return Some(format!("{id} is missing")) };
            if !found.is_like(wanted) || found.access_time() != wanted.access_time() {
                return Some(format!("{id}: {}", object_difference(found, wanted)));
            }
        }
        self.objects.keys().find(|id| !expected.objects.contains_key(id)).map(|id| format!("{id} should not exist"))
    }

    /// Whether the objects are these, whenever they were read.
    #[must_use]
    pub fn shows(&self, expected: &Self) -> bool {
        let same =
            |(id, found): (&ObjectId, &Arc<Object>)| expected.objects.get(id).is_some_and(|one| found.is_like(one));
        self.objects.len() == expected.objects.len() && self.objects.iter().all(same)
    }

    /// A sync covers the access times: a crash leaves no others.
    pub fn cover_access_times(&mut self) {
        for object in self.objects.values_mut().filter(|one| one.accessed.len() > 1) {
            let time = object.access_time();
            Arc::make_mut(object).accessed = vec![time];
        }
    }

    /// What a crash leaves of the access times, if it shows `found` and `states` are those that it
    /// may leave.
    ///
    /// # Errors
    /// The first object with another access time.
    pub fn with_access_times<'a>(
        &self,
        found: &Self,
        states: impl Iterator<Item = &'a Self> + Clone,
    ) -> Result<Self, String> {
        let mut recognised = self.clone();
        for (id, object) in &mut recognised.objects {
            let time = found.objects.get(id).map_or(0, |one| one.access_time());
            let may = |one: &Arc<Object>| one.accessed.contains(&time) || (one.accessed.is_empty() && time == 0);
            if !states.clone().any(|state| state.objects.get(id).is_some_and(may)) {
                return Err(format!("{id} was read at {time}, which nobody said since the last sync"));
            }
            // It is on the medium now.
            Arc::make_mut(object).accessed = vec![time];
        }
        Ok(recognised)
    }
}

fn read_object(device: &dyn ObjectDevice, id: ObjectId) -> onode_object::Result<Object> {
    let stat = device.stat(id)?;
    let mut content = vec![0xa5; usize::try_from(stat.size).unwrap_or(0).min(64 << 20)];
    let count = device.read(id, 0, &mut content)?;
    content.truncate(count);
    let mut object = Object { hints: stat.hints, content, attributes: BTreeMap::new(), accessed: vec![stat.accessed] };
    let mut from = Some(AttributeKey::new(AttributeKind(0), 0));
    while let Some(start) = from {
        let some = device.attributes(id, start, 64)?;
        from = some.last().and_then(|(key, _)| key.next());
        object.attributes.extend(some);
    }
    Ok(object)
}

fn object_difference(found: &Object, wanted: &Object) -> String {
    if found.content.len() != wanted.content.len() {
        return format!("{} bytes instead of {}", found.content.len(), wanted.content.len());
    }
    if let Some(at) = (0..found.content.len()).find(|&at| found.content[at] != wanted.content[at]) {
        return format!(
            "byte {at} of {} is {:#04x} instead of {:#04x}",
            wanted.content.len(),
            found.content[at],
            wanted.content[at]
        );
    }
    if found.access_time() != wanted.access_time() {
        return format!("read at {} instead of {}", found.access_time(), wanted.access_time());
    }
    if found.hints != wanted.hints {
        return format!("{:?} instead of {:?}", found.hints, wanted.hints);
    }
    let keys = || found.attributes.keys().chain(wanted.attributes.keys());
    let key = keys().find(|key| found.attributes.get(key) != wanted.attributes.get(key));
    key.map_or_else(String::new, |key| {
        let length = |of: &Object| of.attributes.get(key).map(Vec::len);
        format!("attribute {key:?} has {:?} bytes instead of {:?}", length(found), length(wanted))
    })
}
