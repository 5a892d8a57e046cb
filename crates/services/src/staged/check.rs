//! Conflicts: the first one to commit wins.
//!
//! A view that is to be committed must not change what somebody else changed since the view first
//! looked at it. Attributes of which whoever knows their meaning can put two changes together
//! ([`Rules::merge`]) are no conflict: otherwise two transactions could not make two names in one
//! directory.

use crate::staged::Staged;
use crate::staged::shadow::{Shadow, Shadows, Standing};
use crate::staged::touched::Touched;
use crate::staged::watch::{Watch, WatchedPart};
use onode_base::planted::{Bug, is_planted};
use onode_object::{AttributeKey, AttributeKind, Error, ErrorKind, ObjectDevice, ObjectId, Result};
use std::collections::BTreeMap;

/// Attributes to be set to something else than the view says.
pub(crate) type Merged = BTreeMap<(ObjectId, AttributeKey), Vec<u8>>;

/// Two changes of one attribute.
#[derive(Clone, Copy, Debug)]
pub struct MergeOf<'a> {
    /// Which attribute.
    pub key: AttributeKey,
    /// What it was when the transaction first looked at it.
    pub before: &'a [u8],
    /// What the transaction wants it to be.
    pub ours: &'a [u8],
    /// What others have made of it.
    pub theirs: &'a [u8],
}

/// What whoever knows the meaning of objects says of them.
pub trait Rules: Send + Sync {
    /// Both changes of an attribute together; `None` if they contradict each other. Only values of
    /// the kinds [`INODE`](onode_object::AttributeKind::INODE) and
    /// [`QUOTA`](onode_object::AttributeKind::QUOTA) come here.
    fn merge(&self, _of: &MergeOf<'_>) -> Option<Vec<u8>> {
        None
    }

    /// Whether somebody did nothing but read an object, whose attribute was `before` and is `now`.
    /// Only values of the kind [`INODE`](onode_object::AttributeKind::INODE) come here.
    fn was_only_read(&self, _before: &[u8], _now: &[u8]) -> bool {
        false
    }

    /// Whether a transaction that read the content of an object must not be committed after
    /// somebody else changed it.
    fn minds_reads(&self, _object: ObjectId) -> bool {
        true
    }
}

/// Of objects that nobody knows anything of.
impl Rules for () {}

/// What is compared.
pub(crate) struct Check<'a, D: ?Sized> {
    pub(crate) staged: &'a Staged<D>,
    pub(crate) watch: &'a Watch,
    pub(crate) touched: &'a Touched,
}

impl<D: ObjectDevice + ?Sized> Check<'_, D> {
    /// What has to be set instead of what a view says.
    ///
    /// # Errors
    /// `Conflict` names an object that others changed; the device's errors.
    pub(crate) fn all(&self, shadows: &Shadows) -> Result<Merged> {
        let mut merged = Merged::new();
        if is_planted(Bug::StagedConflictIgnored) {
            return Ok(merged);
        }
        for (object, shadow) in shadows {
            self.object(*object, shadow, &mut merged)?;
        }
        // Who changes nothing may have read anything.
        let read = self.touched.contents().filter(|_| !shadows.is_empty());
        for (object, since) in read {
            if self.watch.has_changed(object, WatchedPart::Content, since) {
                return Err(conflict(object, "its content"));
            }
        }
        Ok(merged)
    }

    fn object(&self, object: ObjectId, shadow: &Shadow, merged: &mut Merged) -> Result<()> {
        let since = self.touched.since(object);
        let changed = |part, since| self.watch.has_changed(object, part, since);
        match shadow.standing {
            Standing::Gone if changed(WatchedPart::Any, since) && !self.was_only_read(object)? => {
                return Err(conflict(object, "what was removed"));
            }
            Standing::Made if shadow.replaces && changed(WatchedPart::Any, since) => {
                return Err(conflict(object, "what was replaced"));
            }
            Standing::Changed | Standing::Made if changed(WatchedPart::Existence, since) => {
                return Err(conflict(object, "whether it is there"));
            }
            Standing::Changed => {}
            Standing::Made | Standing::Gone => return Ok(()),
        }
        if shadow.hints.is_some() && changed(WatchedPart::Hints, since) {
            return Err(conflict(object, "its hints"));
        }
        if shadow.content.is_some() && changed(WatchedPart::Content, self.touched.content_since(object)) {
            return Err(conflict(object, "its content"));
        }
        for (key, ours) in &shadow.attributes {
            if !changed(WatchedPart::Attribute(*key), self.touched.attribute_since(object, *key)) {
                continue;
            }
            let theirs = self.staged.inner.attribute(object, *key)?;
            let together = match (self.touched.kept(object, *key), ours, &theirs) {
                (Some(before), Some(ours), Some(theirs)) => {
                    self.staged.rules.merge(&MergeOf { key: *key, before, ours, theirs })
                }
                _ => None,
            };
            let Some(together) = together else {
                return Err(conflict(object, if ours.is_some() { "an attribute" } else { "an attribute that went" }));
            };
            merged.insert((object, *key), together);
        }
        Ok(())
    }

    /// Whether what others did to an object is only that they read it: some mounts keep the time of
    /// that in its inode.
    fn was_only_read(&self, object: ObjectId) -> Result<bool> {
        let since = self.touched.since(object);
        let Some(keys) = self.watch.only_attributes_changed(object, since) else { return Ok(false) };
        for key in keys {
            // One that was looked at later than the object may have changed in between, too.
            let is_known = key.kind == AttributeKind::INODE && self.touched.attribute_since(object, key) == since;
            let Some(before) = self.touched.kept(object, key).filter(|_| is_known) else { return Ok(false) };
            let now = self.staged.inner.attribute(object, key)?;
            if !now.is_some_and(|now| self.staged.rules.was_only_read(before, &now)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn conflict(object: ObjectId, what: &str) -> Error {
    let why = format!("somebody else has changed {what} since the transaction looked at it");
    Error::of(ErrorKind::Conflict, object, why)
}
