//! The calls under way, and the order in which the device applied their changes.
//!
//! What it keeps true: the history has the changes in that order, whatever the order of their
//! calls. A change counts as begun when its call was, and as returned when that returns.

use crate::kind::{Kind, Rest};
use crate::medium::Medium;
use crate::object::clients::act::How;
use crate::object::{ObjectState, calls};
use crate::violation::Violation;
use crate::workload::history::{LoggedCall, Run};
use onode_object::{ObjectId, Transaction};

/// A change that the device has not applied yet, as far as is known.
pub(super) struct Waiting {
    pub(super) transaction: Transaction,
    pub(super) how: How,
    /// Media operations when it can have been applied first.
    pub(super) begin: usize,
}

/// A call under way.
pub(super) struct Frame {
    pub(super) client: u64,
    pub(super) reads: Option<ObjectId>,
    pub(super) waiting: Option<Waiting>,
    /// Where the history has its change.
    pub(super) index: Option<usize>,
}

/// A client whose change is applied, and who waits until it is durable.
pub(super) struct Follower<D> {
    pub(super) client: u64,
    pub(super) index: usize,
    pub(super) rest: Rest<D>,
}

/// The calls under way, and the run that they are calls of.
pub(super) struct UnderWay<K: Kind> {
    pub(super) run: Run<ObjectState, K::Medium>,
    pub(super) frames: Vec<Frame>,
    pub(super) followers: Vec<Follower<K::Device>>,
    /// Commits that the history has, as the device counts them.
    pub(super) commits: u64,
    /// Calls that may still come in between.
    pub(super) left: u64,
    /// At so many of 32 moments they do.
    pub(super) share: u64,
    /// The first thing that should not have happened.
    pub(super) broken: Option<Violation>,
}

impl<K: Kind> UnderWay<K> {
    /// No call is under way, and the device has counted so many commits.
    pub(super) fn new(run: Run<ObjectState, K::Medium>, commits: u64) -> Self {
        Self { run, frames: Vec::new(), followers: Vec::new(), commits, left: 0, share: 0, broken: None }
    }

    /// Whether a client makes no call now.
    pub(super) fn is_idle(&self, client: u64) -> bool {
        self.frames.iter().all(|frame| frame.client != client)
            && self.followers.iter().all(|follower| follower.client != client)
    }

    /// The change of the call on top has been applied.
    pub(super) fn apply(&mut self) -> Result<(), Violation> {
        let frame = self.frames.last_mut();
        let Some(Waiting { transaction, how, begin }) = frame.and_then(|frame| frame.waiting.take()) else {
            return Err(Violation::new("N3", "a commit was applied that nobody made"));
        };
        self.commits += 1;
        let mut state = self.run.state.clone();
        if let Some(wrong) = transaction.mutations.iter().find(|mutation| !state.apply(mutation)) {
            return Err(Violation::new("N3", format!("a commit was accepted that cannot be made: {wrong:?}")));
        }
        self.run.state = state.clone();
        let what = |_: &Self| {
            let durability = if how.durable { "durable" } else { "buffered" };
            let apart = if how.apart { ", waits later" } else { "" };
            format!("commit, {durability}{apart}: {}", calls::describe(&transaction))
        };
        self.log(begin, how.durable, what, state);
        Ok(())
    }

    /// The client of the call on top waits, if there is a rest of its change.
    pub(super) fn follow(&mut self, rest: Option<Rest<K::Device>>) {
        let Some((rest, frame)) = rest.zip(self.frames.last_mut()) else { return };
        if let Some(index) = frame.index.take() {
            self.followers.push(Follower { client: frame.client, index, rest });
        }
    }

    /// The call on top returns.
    pub(super) fn end(&mut self, done: Result<(), Violation>) {
        let Some(frame) = self.frames.pop() else { return };
        let end = self.run.medium.position();
        if let Some(call) = frame.index.and_then(|index| self.run.history.calls.get_mut(index)) {
            call.end = end;
        }
        if let Err(violation) = done {
            self.broken.get_or_insert(violation.when(&format!("client {}", frame.client)));
        }
    }

    /// Adds a call to the history that has not returned yet.
    pub(super) fn log(&mut self, begin: usize, covers: bool, what: impl FnOnce(&Self) -> String, after: ObjectState) {
        let depth = self.frames.len().saturating_sub(1);
        let client = self.frames.last().map_or(0, |frame| frame.client);
        let what = match self.run.explains {
            true => format!("{}client {client}: {}", "  ".repeat(depth), what(self)),
            false => String::new(),
        };
        let calls = &mut self.run.history.calls;
        // In the order in which they were applied.
        let begin = calls.last().map_or(begin, |last| last.begin.max(begin));
        let index = calls.len();
        calls.push(LoggedCall { begin, end: usize::MAX, covers, what, after });
        if let Some(frame) = self.frames.last_mut() {
            frame.index = Some(index);
        }
    }
}
