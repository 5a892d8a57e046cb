//! What a sequence draws, how it is told, and which refusals it takes for an answer.

use onode_base::{ErrorKind, Prng};
use onode_fs::{Caller, Error};

/// A user who is no super-user.
pub const USER: u32 = 7;

pub struct Luck {
    pub draw: Prng,
    /// Kind, seed and step.
    pub what: String,
    /// Bytes of a write at most.
    pub longest: u64,
    /// Content has parts that shrink.
    pub shrinks: bool,
    /// How many names were made up.
    pub made: u64,
    /// How often the volume was full.
    pub refused: u64,
    /// How often a limit was reached.
    pub limited: u64,
    /// There is something that keeps what is removed: it can be refused for space then.
    pub is_kept: bool,
    /// Every step is told.
    pub tells: bool,
}

impl Luck {
    pub fn one_in(&mut self, count: u64) -> bool {
        self.draw.below(count) == 0
    }

    pub fn any<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let count = all.len() as u64;
        if count == 0 { None } else { all.get(self.draw.below(count) as usize).cloned() }
    }

    pub fn name(&mut self, letter: char) -> String {
        self.made += 1;
        format!("{letter}{}", self.made)
    }

    pub fn caller(&mut self) -> Caller {
        let user = if self.one_in(3) { USER } else { 0 };
        Caller { uid: user, gid: user, ..Caller::root() }
    }

    pub fn length(&mut self) -> usize {
        let most = [100, 1_000, 5_000, 40_000, self.longest][self.draw.below(5) as usize];
        self.draw.below(most) as usize + 1
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.draw.fill(&mut bytes);
        if self.shrinks {
            bytes[length / 3..length / 3 * 2].fill(7);
        }
        bytes
    }

    pub fn tell(&self, what: &str) {
        if self.tells {
            eprintln!("{}: {what}", self.what);
        }
    }

    /// What may be refused on a full volume, and nothing else may: the result, if it was done.
    pub fn admits<T>(&mut self, what: &str, done: Result<T, Error>) -> Option<T> {
        match done {
            Ok(done) => {
                self.tell(what);
                Some(done)
            }
            Err(error) if error.kind == ErrorKind::NoSpace => {
                self.tell(&format!("{what}: {error}"));
                self.refused += 1;
                None
            }
            Err(error) => panic!("{}: {what}: {error}", self.what),
        }
    }

    /// The same of what a limit may refuse, too, where there is one.
    pub fn admits_limited<T>(&mut self, what: &str, done: Result<T, Error>, has_limits: bool) -> Option<T> {
        match done {
            Err(error) if has_limits && error.kind == ErrorKind::QuotaExceeded => {
                self.limited += 1;
                None
            }
            Err(error) if has_limits && error.kind == ErrorKind::CrossDevice => None,
            other => self.admits(what, other),
        }
    }

    /// What removes something: only what keeps it can have it refused.
    pub fn admits_less<T>(&mut self, what: &str, done: Result<T, Error>) -> Option<T> {
        if self.is_kept { self.admits(what, done) } else { Some(self.must(what, done)) }
    }

    pub fn must<T>(&self, what: &str, done: Result<T, Error>) -> T {
        self.tell(what);
        done.unwrap_or_else(|error| panic!("{}: {what}: {error}", self.what))
    }
}
