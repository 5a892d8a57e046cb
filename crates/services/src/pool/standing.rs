//! Who has what: how each member stands now, and what it lacks.

use onode_object::{ErrorKind, Mutation, ObjectId, Transaction};
use std::collections::BTreeSet;

/// What a member that takes part lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lag {
    /// These objects.
    pub(crate) listed: BTreeSet<ObjectId>,
    /// Every object from this one on.
    pub(crate) rest_from: Option<ObjectId>,
    /// Objects that could not be made equal, and are tried again later.
    pub(crate) stuck: BTreeSet<ObjectId>,
    /// The object that is being made equal: changes reach it, and nobody reads it yet.
    pub(crate) current: Option<ObjectId>,
    /// Why it lacks something, in words for people.
    pub(crate) why: String,
}

impl Lag {
    pub(crate) fn of(listed: BTreeSet<ObjectId>, why: impl Into<String>) -> Self {
        Self { listed, why: why.into(), ..Self::default() }
    }

    pub(crate) fn all(why: impl Into<String>) -> Self {
        Self { rest_from: Some(ObjectId(0)), why: why.into(), ..Self::default() }
    }

    /// Whether the member does not have this object as the others have it.
    pub(crate) fn lacks(&self, object: ObjectId) -> bool {
        self.listed.contains(&object)
            || self.stuck.contains(&object)
            || self.rest_from.is_some_and(|from| object >= from)
            || self.current == Some(object)
    }

    /// Whether changes of this object are for the member, too.
    pub(crate) fn takes(&self, object: ObjectId) -> bool {
        self.current == Some(object) || !self.lacks(object)
    }

    /// Nothing is left that could be made equal now.
    pub(crate) fn is_idle(&self) -> bool {
        self.listed.is_empty() && self.rest_from.is_none() && self.current.is_none()
    }
}

/// How a member stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemberStanding {
    /// It has everything.
    Whole,
    /// It takes part and lacks something.
    Behind(Lag),
    /// It does not take part, for this reason.
    Out(String),
}

impl MemberStanding {
    pub(crate) const fn is_out(&self) -> bool {
        matches!(self, Self::Out(_))
    }

    pub(crate) const fn is_whole(&self) -> bool {
        matches!(self, Self::Whole)
    }

    /// Whether it has this object as the others have it.
    pub(crate) fn has(&self, object: ObjectId) -> bool {
        match self {
            Self::Whole => true,
            Self::Behind(lag) => !lag.lacks(object),
            Self::Out(_) => false,
        }
    }

    /// Whether changes of this object are for it.
    pub(crate) fn takes(&self, object: ObjectId) -> bool {
        match self {
            Self::Whole => true,
            Self::Behind(lag) => lag.takes(object),
            Self::Out(_) => false,
        }
    }

    /// Whether a change is for it: content moves only if it has both what moves and what that
    /// moves to.
    pub(crate) fn takes_change(&self, mutation: &Mutation) -> bool {
        match mutation.receiver() {
            Some(to) => self.has(mutation.object()) && self.has(to),
            None => self.takes(mutation.object()),
        }
    }

    /// Lacking one of the two objects of a move it cannot do that: it lacks both from then on.
    pub(crate) fn give_up_moves(&mut self, transaction: &Transaction) {
        let mut is_again = !self.is_out();
        // One may have to be given up for another one.
        while core::mem::take(&mut is_again) {
            for one in &transaction.mutations {
                let Some(to) = one.receiver() else { continue };
                let has = [self.has(one.object()), self.has(to)];
                if has != [true; 2] {
                    is_again |= has != [false; 2];
                    self.lose(&one.objects().collect(), "it could not move content that it lacks");
                }
            }
        }
    }

    /// It lacks these from now on.
    pub(crate) fn lose(&mut self, objects: &BTreeSet<ObjectId>, why: &str) {
        match self {
            Self::Whole => *self = Self::Behind(Lag::of(objects.clone(), why)),
            Self::Behind(lag) => lag.listed.extend(objects),
            Self::Out(_) => {}
        }
    }
}

/// What an error of a member says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It did not grant the request and is well.
    Refused,
    /// Something on it is damaged.
    Damaged,
    /// It does not work any more.
    Failed,
}

impl Verdict {
    pub(crate) const fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotFound | ErrorKind::Exists | ErrorKind::NoSpace | ErrorKind::Invalid => Self::Refused,
            ErrorKind::Corrupt => Self::Damaged,
            _ => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_equal_takes_changes_and_is_not_read() {
        let mut standing = MemberStanding::Whole;
        standing.lose(&[ObjectId(7)].into(), "");
        assert!(!standing.has(ObjectId(7)) && !standing.takes(ObjectId(7)) && standing.has(ObjectId(8)));
        if let MemberStanding::Behind(lag) = &mut standing {
            lag.listed.clear();
            lag.current = Some(ObjectId(7));
        }
        assert!(!standing.has(ObjectId(7)) && standing.takes(ObjectId(7)));
        let rest = MemberStanding::Behind(Lag { rest_from: Some(ObjectId(9)), ..Lag::default() });
        assert!(rest.has(ObjectId(8)) && !rest.takes(ObjectId(9)));
        assert!(!MemberStanding::Out(String::new()).takes(ObjectId(1)));
    }

    #[test]
    fn who_cannot_move_content_lacks_both_objects() {
        let object = ObjectId(70);
        let [one, two, three] = [1, 2, 3].map(|generation| object.version(generation).unwrap());
        let mut transaction = Transaction::new();
        transaction.move_content(two, 0..9, three).move_content(object, 0..9, one).move_content(one, 0..9, two);
        let mut whole = MemberStanding::Whole;
        whole.give_up_moves(&transaction);
        assert!(whole.is_whole() && transaction.mutations.iter().all(|change| whole.takes_change(change)));
        // What is being made equal takes changes, and has nothing yet that could move.
        for current in [None, Some(object)] {
            let mut behind = MemberStanding::Behind(Lag { current, ..Lag::of([object].into(), "") });
            behind.give_up_moves(&transaction);
            assert!([object, one, two, three].iter().all(|id| !behind.has(*id)));
            assert!(transaction.mutations.iter().all(|change| !behind.takes_change(change)));
            assert!(behind.has(ObjectId(71)) && behind.takes(object) == current.is_some());
        }
    }
}
