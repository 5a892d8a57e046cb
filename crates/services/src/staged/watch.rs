//! Who changed what on the base while views are open: how conflicts are found.
//!
//! Changes are counted. A view notes the count when it first touches something, and before its own
//! changes are applied it asks whether anybody changed that since. It errs only on the safe side:
//! a change is counted after it is there, a touch is noted before it is looked at.

use onode_object::{AttributeKey, Mutation, ObjectId};
use std::collections::BTreeMap;

/// More objects and attributes are not kept apart: then everything counts as changed.
const CHANGES_MAX: usize = 1 << 20;

/// When parts of an object were last changed.
#[derive(Debug, Default)]
struct Changed {
    /// Anything of it.
    any: u64,
    /// Made or removed.
    existence: u64,
    content: u64,
    hints: u64,
    attributes: BTreeMap<AttributeKey, u64>,
}

/// What of an object is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchedPart {
    /// Anything.
    Any,
    /// Whether there is the object.
    Existence,
    /// Its bytes.
    Content,
    /// Advice about it.
    Hints,
    /// One attribute.
    Attribute(AttributeKey),
}

/// The changes since the first view that is open was begun.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    count: u64,
    /// What was changed up to then is not known any more.
    floor: u64,
    known: usize,
    objects: BTreeMap<ObjectId, Changed>,
}

impl Watch {
    /// Changes so far.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Forgets everything: no view is open.
    pub(crate) fn clear(&mut self) {
        self.objects.clear();
        (self.known, self.floor) = (0, self.count);
    }

    /// Counts a change that is there now.
    pub(crate) fn note<'a>(&mut self, mutations: impl Iterator<Item = &'a Mutation>) {
        self.count += 1;
        let count = self.count;
        for mutation in mutations {
            // Nobody minds a read.
            if matches!(mutation, Mutation::SetAccessTime { .. }) {
                continue;
            }
            let known = &mut self.known;
            let changed = self.objects.entry(mutation.object()).or_insert_with(|| {
                *known += 1;
                Changed::default()
            });
            changed.any = count;
            match mutation {
                Mutation::Create { .. } | Mutation::Remove { .. } => changed.existence = count,
                Mutation::Write { .. } | Mutation::Truncate { .. } | Mutation::Punch { .. } => changed.content = count,
                Mutation::SetAttribute { key, .. } | Mutation::RemoveAttribute { key, .. } => {
                    *known += usize::from(changed.attributes.insert(*key, count).is_none());
                }
                Mutation::SetHints { .. } => changed.hints = count,
                // Views are of devices that move nothing.
                Mutation::Move { .. } | Mutation::SetAccessTime { .. } => {}
            }
        }
        if self.known > CHANGES_MAX {
            self.clear();
        }
    }

    /// Whether somebody changed that part of an object since the count was `since`.
    pub(crate) fn has_changed(&self, object: ObjectId, part: WatchedPart, since: u64) -> bool {
        if self.floor > since {
            return true;
        }
        let Some(changed) = self.objects.get(&object) else { return false };
        let at = match part {
            WatchedPart::Any => changed.any,
            WatchedPart::Existence => changed.existence,
            WatchedPart::Content => changed.content.max(changed.existence),
            WatchedPart::Hints => changed.hints.max(changed.existence),
            WatchedPart::Attribute(key) => changed.attributes.get(&key).copied().unwrap_or(0).max(changed.existence),
        };
        at > since
    }

    /// The attributes of an object that somebody changed since the count was `since`; `None` if
    /// more of it was changed, or may have been.
    pub(crate) fn only_attributes_changed(&self, object: ObjectId, since: u64) -> Option<Vec<AttributeKey>> {
        if self.floor > since {
            return None;
        }
        let Some(changed) = self.objects.get(&object) else { return Some(Vec::new()) };
        if [changed.existence, changed.content, changed.hints].iter().any(|at| *at > since) {
            return None;
        }
        Some(changed.attributes.iter().filter(|(_, at)| **at > since).map(|(key, _)| *key).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_object::{AttributeKind, Hints};

    #[test]
    fn parts_are_told_apart_and_what_is_forgotten_counts_as_changed() {
        let (one, two) = (ObjectId(64), ObjectId(65));
        let key = |index| AttributeKey::new(AttributeKind::ENTRY, index);
        let mut watch = Watch::default();
        watch.note([Mutation::SetAttribute { object: one, key: key(1), value: Vec::new() }].iter());
        let since = watch.count();
        watch.note([Mutation::SetAccessTime { object: one, time: 1 }].iter());
        assert!(
            !watch.has_changed(one, WatchedPart::Any, since) && watch.has_changed(one, WatchedPart::Any, since - 1)
        );
        watch.note([Mutation::Punch { object: one, offset: 0, length: 1 }].iter());
        assert!(watch.has_changed(one, WatchedPart::Content, since) && watch.has_changed(one, WatchedPart::Any, since));
        assert!(!watch.has_changed(one, WatchedPart::Attribute(key(1)), since));
        assert!(watch.has_changed(one, WatchedPart::Attribute(key(1)), since - 1));
        assert!(
            !watch.has_changed(one, WatchedPart::Attribute(key(2)), 0) && !watch.has_changed(two, WatchedPart::Any, 0)
        );
        watch.note([Mutation::Create { object: two, hints: Hints::default() }].iter());
        assert!(
            watch.has_changed(two, WatchedPart::Hints, since) && watch.has_changed(two, WatchedPart::Existence, since)
        );
        let since = watch.count();
        for index in 0..CHANGES_MAX as u64 {
            watch.note([Mutation::RemoveAttribute { object: one, key: key(index) }].iter());
        }
        assert!(watch.has_changed(ObjectId(1), WatchedPart::Content, since), "what is not known any more");
        assert!(watch.known <= CHANGES_MAX);
    }
}
