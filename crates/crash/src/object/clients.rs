//! Several clients at once, in one thread.
//!
//! Below the access floor there are no threads to schedule: what makes clients meet are the moments
//! at which a device has let go of its locks while its medium works. The media tell of each
//! ([`Between`](onode_media::Between)), and there the seed says which whole calls of other clients
//! come in between; these reach such moments themselves. So an order of calls is a tree, it follows
//! from the seed alone, and a cut falls anywhere into it.
//!
//! What it keeps true: a call is made only if it waits for nobody below it on the stack, which the
//! device is asked for. Where one waits all the same the run ends, and the cuts before that moment
//! are judged.
//!
//! It does not see what threads do between two such moments: that is code under a lock.

pub mod act;
mod order;
pub mod session;
pub mod workload;

pub use workload::ClientsWorkload;

use crate::object::Profile;

/// Names of the workloads, for two clients and more.
const NAMES: [&str; 3] = ["many-2", "many-3", "many-4"];

/// How many clients may be explored at once.
pub const MOST: usize = NAMES.len() + 1;

/// The name of the workload of so many clients, if there is one.
#[must_use]
pub fn name_of(clients: usize) -> Option<&'static str> {
    NAMES.get(clients.checked_sub(2)?).copied()
}

/// The clients of the workload of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<usize> {
    NAMES.iter().position(|one| *one == name).map(|index| index + 2)
}

/// How clients use a device: small objects, which are changed all the time, so that what a read
/// needs is free and used again before it is over.
pub const PROFILE: Profile = Profile {
    name: "many",
    steps: 120,
    objects: 14,
    write_bytes: 3000,
    object_bytes: 9000,
    mutations: 2,
    durable: 40,
    remounts: 8,
    maintains: 60,
    fill: 55,
    attributes: 12,
    reads: 0,
    removals: 14,
    remakes: 0,
    moves: 0,
    overwrites: 55,
    failures: 0,
    variants: 4,
};

/// How much a call may do now without waiting for one that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Freedom {
    /// A lock is held that every call needs.
    Nothing,
    /// It may look.
    Reads,
    /// It may change something small, and wait later until that is durable.
    Buffered,
    /// Whatever it likes.
    All,
}

/// What a device says of itself between two calls.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// What a call may do.
    pub freedom: Freedom,
    /// Commits since the mount.
    pub commits: u64,
}

/// What came in between the calls of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interleaving {
    /// Moments at which others could come.
    pub points: u64,
    /// Those of them in a flush or a checkpoint, of which nobody else can make one then.
    pub flushing: u64,
    /// Moments at which a lock was held, so that nobody could.
    pub locked: u64,
    /// Moments at which others came.
    pub taken: u64,
    /// Calls that came in between others.
    pub nested: u64,
    /// Those of them that changed something.
    pub changes: u64,
    /// Those of them whose clients waited while others went on.
    pub followers: u64,
    /// Most calls under way at a time.
    pub deepest: u64,
    /// Runs that ended because a call would have waited for one below it.
    pub stuck: u64,
}

impl Interleaving {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        self.points += other.points;
        self.flushing += other.flushing;
        self.locked += other.locked;
        self.taken += other.taken;
        self.nested += other.nested;
        self.changes += other.changes;
        self.followers += other.followers;
        self.deepest = self.deepest.max(other.deepest);
        self.stuck += other.stuck;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_how_many_clients_there_are() {
        for clients in 2..=MOST {
            assert_eq!(name_of(clients).and_then(by_name), Some(clients));
        }
        assert_eq!((name_of(1), name_of(MOST + 1), by_name("mix")), (None, None, None));
    }
}
