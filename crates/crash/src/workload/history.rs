//! What was asked of a system and when it returned, against the operations of the medium: from this
//! follows what must and what may be there after a cut.
//!
//! A *call* is one request of the host. A cut at operation k leaves the operations before k whole
//! and operation k damaged. A call that returned before operation k began has *returned*; one that
//! began before that operation ended has *begun*. What a returned sync covers is the *floor*: it
//! has to be there (N1). What has not begun cannot be there: the *ceiling* (N2, N3).

use crate::medium::Medium;
use crate::object::clients::Interleaving;
use crate::violation::Violation;
use onode_base::Prng;

/// One call.
#[derive(Clone, Debug)]
pub struct LoggedCall<S> {
    /// Media operations before it.
    pub begin: usize,
    /// Media operations when it returned.
    pub end: usize,
    /// Its return promises that everything so far is on the medium.
    pub covers: bool,
    /// What it was, if the run keeps words.
    pub what: String,
    /// The state after it.
    pub after: S,
}

/// Snapshots at one moment of a run.
#[derive(Clone, Debug)]
struct KeptAt {
    /// Media operations before it.
    position: usize,
    names: Vec<String>,
}

/// Which snapshots a cut may leave. They are durable as soon as they are taken, and so are their
/// deletions: nothing is lost but what was under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Those deleted earlier.
    gone: Vec<String>,
    /// Those before the step that was cut.
    before: Vec<String>,
    /// Those after it.
    after: Vec<String>,
}

impl Kept {
    /// What is wrong with finding these; `None` if nothing is.
    #[must_use]
    pub fn difference(&self, found: &[String]) -> Option<String> {
        let lost = self.before.iter().find(|name| self.after.contains(name) && !found.contains(name));
        if let Some(name) = lost {
            return Some(format!("snapshot {name} is lost"));
        }
        // The step may have taken one and deleted it again.
        let back = found.iter().find(|name| self.gone.contains(name) && !self.after.contains(name));
        back.map(|name| format!("snapshot {name} is back, which was deleted"))
    }
}

/// Calls in order.
#[derive(Clone, Debug)]
pub struct History<S> {
    /// The state before the first call, all of it on the medium.
    pub initial: S,
    /// The calls.
    pub calls: Vec<LoggedCall<S>>,
    /// Snapshots before and after every step.
    kept: Vec<KeptAt>,
}

/// What a cut leaves: states are counted from 0, the initial one; state n is the one after n calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The oldest state that may be there.
    pub floor: usize,
    /// The state after the last call that returned.
    pub returned: usize,
    /// The newest state that may be there.
    pub ceiling: usize,
}

impl<S> History<S> {
    /// A history that begins with `initial`.
    pub const fn new(initial: S) -> Self {
        Self { initial, calls: Vec::new(), kept: Vec::new() }
    }

    /// Notes down which snapshots there are after `position` media operations.
    pub fn keep(&mut self, position: usize, names: Vec<String>) {
        self.kept.push(KeptAt { position, names });
    }

    /// Which snapshots a cut at media operation `cut` leaves; `None` if nobody noted them down.
    #[must_use]
    pub fn kept(&self, cut: usize) -> Option<Kept> {
        let behind = self.kept.partition_point(|one| one.position <= cut);
        let (earlier, last) = (self.kept.get(..behind)?, self.kept.last()?);
        let before = earlier.last().map_or(Vec::new(), |one| one.names.clone());
        let gone = earlier.iter().flat_map(|one| &one.names).filter(|name| !before.contains(name));
        let (gone, after) = (gone.cloned().collect(), self.kept.get(behind).unwrap_or(last).names.clone());
        Some(Kept { gone, before, after })
    }

    /// The state after `count` calls; the newest if there were fewer.
    pub fn state(&self, count: usize) -> &S {
        let call = count.min(self.calls.len()).checked_sub(1).and_then(|index| self.calls.get(index));
        call.map_or(&self.initial, |call| &call.after)
    }

    /// What a cut at media operation `cut` leaves.
    pub fn promise(&self, cut: usize) -> Promise {
        let ceiling = self.calls.partition_point(|call| call.begin <= cut);
        let begun = &self.calls[..ceiling];
        // A call that others came in between returns after them.
        let last = |is_wanted: &dyn Fn(&LoggedCall<S>) -> bool| begun.iter().rposition(is_wanted);
        let returned = last(&|call| call.end <= cut).map_or(0, |index| index + 1);
        let floor = last(&|call| call.covers && call.end <= cut).map_or(0, |index| index + 1);
        Promise { floor, returned, ceiling }
    }
}

/// A system in use: the medium, the source of choices, the state that should be, and what was
/// called.
pub struct Run<S, M> {
    /// The medium.
    pub medium: M,
    /// From which all choices follow.
    pub prng: Prng,
    /// What the system should show now.
    pub state: S,
    /// Calls so far.
    pub history: History<S>,
    /// Whether calls are described in words.
    pub explains: bool,
    /// What came in between others, if there are several clients.
    pub interleaving: Interleaving,
}

impl<S: Clone, M: Medium> Run<S, M> {
    /// A run from `state` on.
    pub fn new(medium: M, seed: u64, state: S, explains: bool) -> Self {
        let (prng, history) = (Prng::new(seed), History::new(state.clone()));
        Self { medium, prng, state, history, explains, interleaving: Interleaving::default() }
    }

    /// Makes one call. `make` tells whether what it promises covers everything so far and the state
    /// after it; `what` describes it.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn call(
        &mut self,
        what: impl FnOnce() -> String,
        make: impl FnOnce(&M) -> Result<(bool, Option<S>), Violation>,
    ) -> Result<(), Violation> {
        let begin = self.medium.position();
        let (covers, after) = make(&self.medium)?;
        let end = self.medium.position();
        if let Some(after) = after {
            self.state = after;
        }
        let what = if self.explains { what() } else { String::new() };
        self.history.calls.push(LoggedCall { begin, end, covers, what, after: self.state.clone() });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floor_and_ceiling_follow_from_the_marks() {
        let call = |begin, end, covers| LoggedCall { begin, end, covers, what: String::new(), after: () };
        // A buffered call without media operations, a durable one of two, another buffered one.
        let calls = vec![call(0, 0, false), call(0, 2, true), call(2, 2, false), call(2, 3, true)];
        let history = History { calls, ..History::new(()) };
        assert_eq!(history.promise(0), Promise { floor: 0, returned: 1, ceiling: 2 });
        assert_eq!(history.promise(1), Promise { floor: 0, returned: 1, ceiling: 2 });
        assert_eq!(history.promise(2), Promise { floor: 2, returned: 3, ceiling: 4 });
        assert_eq!(history.promise(3), Promise { floor: 4, returned: 4, ceiling: 4 });
    }

    #[test]
    fn a_call_that_others_came_in_between_covers_what_was_before_it() {
        let call = |begin, end, covers| LoggedCall { begin, end, covers, what: String::new(), after: () };
        // A durable one of operations 0 to 9, in which a buffered one and a durable one came.
        let calls = vec![call(0, 9, true), call(2, 4, false), call(4, 6, true), call(6, usize::MAX, true)];
        let history = History { calls, ..History::new(()) };
        assert_eq!(history.promise(3), Promise { floor: 0, returned: 0, ceiling: 2 });
        assert_eq!(history.promise(5), Promise { floor: 0, returned: 2, ceiling: 3 });
        assert_eq!(history.promise(7), Promise { floor: 3, returned: 3, ceiling: 4 });
        assert_eq!(history.promise(9), Promise { floor: 3, returned: 3, ceiling: 4 });
    }

    #[test]
    fn snapshots_are_those_before_or_after_a_step() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect::<Vec<_>>();
        let mut history = History::new(());
        assert_eq!(history.kept(0), None);
        history.keep(0, Vec::new());
        history.keep(4, names(&["1", "2"]));
        history.keep(4, names(&["1", "2", "3"]));
        history.keep(9, names(&["2", "3", "4"]));
        let kept = history.kept(3).unwrap();
        assert_eq!(kept.difference(&[]), None);
        assert_eq!(kept.difference(&names(&["2"])), None);
        // Taken and deleted within a step.
        assert_eq!(kept.difference(&names(&["5"])), None);
        // One goes and one comes, in any order.
        let kept = history.kept(4).unwrap();
        for found in [&["1", "2", "3"][..], &["2", "3"], &["2", "3", "4"], &["1", "2", "3", "4"]] {
            assert_eq!(kept.difference(&names(found)), None, "{found:?}");
        }
        assert!(kept.difference(&names(&["1", "2", "4"])).is_some());
        assert!(history.kept(20).unwrap().difference(&names(&["1", "2", "3", "4"])).is_some());
    }
}
