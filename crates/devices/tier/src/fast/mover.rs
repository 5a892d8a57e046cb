//! Objects that wait to be copied to the fast disk in the background.
//!
//! The list is bounded, and a move that was refused for a reason that time alone does not change is
//! not tried again until somebody says that something has changed: movers of other systems run in
//! circles on a full target (`research/hybrid-peers.md`, 1.1).

use super::piece::Refusal;
use alloc::collections::{BTreeMap, VecDeque};

/// Most objects that wait, and most refusals that are remembered.
const MOST: usize = 4096;

/// An object that is being moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The object.
    pub object: u64,
    /// The first block of it that is still to be looked at.
    pub index: u64,
}

/// What is to be moved.
#[derive(Debug, Default)]
pub struct Mover {
    waiting: VecDeque<Move>,
    /// Refused, and what the counter of changes was then.
    hopeless: BTreeMap<u64, (Refusal, u64)>,
    changes: u64,
    /// Since this day nothing may be written.
    exhausted_on: Option<u64>,
}

impl Mover {
    /// Puts an object on the list.
    ///
    /// # Errors
    /// The reason why it would be refused again, or `Full` if too many wait.
    pub fn push(&mut self, object: u64) -> Result<(), Refusal> {
        if let Some((refusal, changes)) = self.hopeless.get(&object) {
            if *changes == self.changes {
                return Err(*refusal);
            }
            self.hopeless.remove(&object);
        }
        if self.waiting.iter().any(|waiting| waiting.object == object) {
            return Ok(());
        }
        if self.waiting.len() == MOST {
            return Err(Refusal::Full);
        }
        self.waiting.push_back(Move { object, index: 0 });
        Ok(())
    }

    /// The next to be moved on that day; it is off the list until [`goes_on`](Self::goes_on).
    pub fn pop(&mut self, day: u64) -> Option<Move> {
        if self.exhausted_on == Some(day) {
            return None;
        }
        self.exhausted_on = None;
        self.waiting.pop_front()
    }

    /// There is more of it to be moved.
    pub fn goes_on(&mut self, rest: Move) {
        self.waiting.push_front(rest);
    }

    /// It was refused on that day.
    pub fn refused(&mut self, rest: Move, refusal: Refusal, day: u64) {
        if refusal == Refusal::Budget {
            self.exhausted_on = Some(day);
            self.waiting.push_front(rest);
        } else if refusal.is_hopeless() {
            if self.hopeless.len() == MOST {
                self.hopeless.pop_first();
            }
            self.hopeless.insert(rest.object, (refusal, self.changes));
        }
    }

    /// Something was given up, divided anew or placed elsewhere: what was hopeless may be tried
    /// again.
    pub fn changed(&mut self) {
        self.changes += 1;
    }

    /// The object is gone.
    pub fn forget(&mut self, object: u64) {
        self.waiting.retain(|waiting| waiting.object != object);
        self.hopeless.remove(&object);
    }

    /// Objects that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
