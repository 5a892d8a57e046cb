//! The device as one process leaves it to the next one that gets the lock.
//!
//! Whoever has the lock knows all that any process did before; if a holder died, everything is made
//! anew from the log, and what live processes have allocated or reserved stays theirs.

use crate::core::Core;
use crate::persist::PersistState;
use crate::recover::open::Opened;
use crate::share::words::{Words, shared_next_id};
use onode_media::Pmem;
use onode_object::Result;

impl<P: Pmem> Core<P> {
    /// How often any process changed anything, as far as this one knows.
    #[inline]
    pub(crate) const fn changes(&self) -> u64 {
        self.shared.changes()
    }

    /// How often it was found that others had committed something.
    #[inline]
    pub(crate) const fn others_commits(&self) -> u64 {
        self.others_commits
    }

    /// What to know when this process gets the lock, of a holder that is `broken` or gave it back.
    #[inline]
    pub(crate) fn arrive(&mut self, broken: bool) {
        if broken {
            self.take_over();
        } else if self.shared.are_changed(&*self.memory) {
            self.take_words();
        }
    }

    /// Leaves the truth for whoever comes next.
    pub(crate) fn leave_words(&mut self) {
        let (words, is_undurable) = (self.words(), self.store.log().has_undurable());
        self.shared.leave(&*self.memory, words, is_undurable);
    }

    /// The same where nobody was before.
    pub(crate) fn leave_first_words(&mut self) {
        let words = self.words();
        self.shared.leave_first(&*self.memory, words);
    }

    #[inline]
    const fn words(&self) -> Words {
        let store = self.store.state();
        Words {
            next_id: store.next_id,
            tree: self.index.state(),
            log: self.store.log().state(),
            generation: store.generation,
            deferred: store.deferred,
            unverified: store.unverified,
            last_shrink: store.last_shrink,
            last_put_and_shrink: store.last_put_and_shrink,
            live_log_bytes: store.live_log_bytes,
            objects: self.index.objects(),
            commits: store.commits,
            failures: store.failures,
            recoveries: self.recoveries,
            unflushed: store.unflushed,
            features: store.features,
        }
    }

    /// Takes over what another process left.
    fn take_words(&mut self) {
        let Some(words) = self.shared.take(&*self.memory) else {
            self.index.forget_existence(u64::MAX);
            return;
        };
        let commits = self.store.commits();
        self.index.set_state(&words.tree, words.objects);
        self.index.forget_existence(words.next_id);
        let state = PersistState {
            next_id: words.next_id,
            generation: words.generation,
            features: words.features,
            deferred: words.deferred,
            unverified: words.unverified,
            unflushed: words.unflushed,
            last_shrink: words.last_shrink,
            last_put_and_shrink: words.last_put_and_shrink,
            live_log_bytes: words.live_log_bytes,
            commits: words.commits,
            failures: words.failures,
        };
        self.store.set_state(&state, &words.log);
        self.recoveries = words.recoveries;
        self.others_commits += u64::from(commits != self.store.commits());
    }

    /// Whoever had the lock before died: blocks, index and words are made anew from the log.
    #[cold]
    fn take_over(&mut self) {
        self.take_words();
        if self.store.latch().why().is_some() {
            return;
        }
        if let Err(error) = self.rebuild() {
            self.store.fail(error);
        }
        self.leave_words();
    }

    fn rebuild(&mut self) -> Result<()> {
        self.store.flush_foreign();
        let next_id = self.store.next_id().max(shared_next_id(&*self.memory));
        let opened = Opened::after_death(&self.memory, self.store.blocks(), next_id)?;
        let Opened { superblock, tree, objects, log, .. } = opened;
        self.index.restart(tree, objects, superblock.next_id);
        self.store.restart(superblock, log);
        self.recoveries += 1;
        self.others_commits += 1;
        self.sweep_dead();
        self.cleaner.make_log_room(&self.index, &mut self.store)
    }
}
