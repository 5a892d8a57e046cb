//! Random histories of several transactions and plain changes beside each other, against a model:
//! the list of all that was committed, in order.

use onode_object::conformance::{Generator, Tree, dump};
use onode_object::{Durability, ErrorKind, Mutation, ObjectDevice, ObjectId, RamDevice, Transaction};
use onode_services::{Staged, View};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Ids that the model knows from the beginning.
const IDS: u64 = 1 << 20;
const VIEWS: usize = 4;

/// A transaction under way.
struct Open {
    view: View<RamDevice>,
    /// What was done in it, each with how many changes were committed by then.
    done: Vec<(usize, Transaction)>,
    begun: usize,
}

struct Histories {
    staged: Arc<Staged<RamDevice>>,
    ram: Arc<RamDevice>,
    generator: Generator,
    open: Vec<Open>,
    /// All that was committed.
    committed: Vec<Transaction>,
    conflicts: usize,
}

/// Bytes of an object are changed.
const fn is_content(one: &Mutation) -> bool {
    matches!(
        one,
        Mutation::Write { .. }
            | Mutation::Truncate { .. }
            | Mutation::Punch { .. }
            | Mutation::Move { .. }
            | Mutation::Remove { .. }
            | Mutation::Create { .. }
    )
}

fn objects(of: &[Transaction], wanted: impl Fn(&Mutation) -> bool) -> BTreeSet<ObjectId> {
    of.iter().flat_map(|one| &one.mutations).filter(|one| wanted(one)).map(Mutation::object).collect()
}

impl Histories {
    fn new(seed: u64, most_bytes: usize) -> Self {
        let ram = Arc::new(RamDevice::new(1 << 40));
        ram.reserve_ids(IDS).unwrap();
        let staged = Staged::open_limited(Arc::clone(&ram), Arc::new(()), most_bytes).unwrap().0;
        let generator = Generator::new(seed);
        Self { staged, ram, generator, open: Vec::new(), committed: Vec::new(), conflicts: 0 }
    }

    /// What there is after these changes; `None` if they cannot follow one another.
    fn replayed<'a>(&'a self, more: impl Iterator<Item = &'a Transaction>) -> Option<Tree> {
        let model = RamDevice::new(1 << 40);
        model.reserve_ids(2 * IDS).unwrap();
        for one in self.committed.iter().chain(more) {
            model.commit(one.clone(), Durability::Buffered).ok()?;
        }
        dump(&model).ok()
    }

    fn step(&mut self) {
        match self.generator.prng.below(20) {
            0..=1 if self.open.len() < VIEWS => {
                let view = self.staged.begin().unwrap();
                self.open.push(Open { view, done: Vec::new(), begun: self.committed.len() });
            }
            2..=5 => {
                let transaction = self.generator.transaction(self.staged.as_ref());
                self.staged.commit(transaction.clone(), Durability::Buffered).unwrap();
                self.committed.push(transaction);
            }
            6 => _ = self.take().map(|open| open.view.abort()),
            7..=8 => _ = self.take().map(|open| self.commit(&open)),
            _ => self.work(),
        }
    }

    fn take(&mut self) -> Option<Open> {
        let count = self.open.len() as u64;
        (count > 0).then(|| self.open.swap_remove(self.generator.prng.below(count) as usize))
    }

    fn work(&mut self) {
        let count = self.open.len() as u64;
        if count == 0 {
            return;
        }
        let open = &mut self.open[self.generator.prng.below(count) as usize];
        let transaction = self.generator.transaction(&open.view);
        match open.view.commit(transaction.clone(), Durability::Buffered) {
            Ok(()) => open.done.push((self.committed.len(), transaction)),
            // Somebody else has made or removed what it had changed: it is lost anyway.
            Err(error) => {
                let others = objects(&self.committed[open.begun..], |_| true);
                assert!(others.contains(&error.object.unwrap()), "{error}");
            }
        }
    }

    fn commit(&mut self, open: &Open) {
        let before = dump(self.staged.as_ref()).unwrap();
        let own: Vec<_> = open.done.iter().map(|(_, one)| one.clone()).collect();
        let others = &self.committed[open.begun..];
        match open.view.make_true(Durability::Durable) {
            Ok(_) => {
                // Nobody changed the bytes of an object after the transaction first did.
                for object in objects(&own, is_content) {
                    let first = open.done.iter().find(|(_, one)| one.mutations.iter().any(|it| it.object() == object));
                    let since = first.map_or(open.begun, |(since, _)| *since);
                    let changed = objects(&self.committed[since..], is_content);
                    assert!(!changed.contains(&object), "an update of {object} was lost");
                }
                self.committed.extend(own);
                let expected = self.replayed(std::iter::empty()).expect("it follows what was there");
                assert_eq!(dump(self.staged.as_ref()).unwrap().difference(&expected), None);
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Conflict, "{error}");
                let changed = objects(others, |_| true);
                assert!(changed.contains(&error.object.unwrap()), "nobody else changed anything: {error}");
                assert_eq!(dump(self.staged.as_ref()).unwrap().difference(&before), None);
                self.conflicts += 1;
            }
        }
    }

    /// Nobody sees anything of others, and each sees what he did.
    fn look(&self) {
        let expected = self.replayed(std::iter::empty()).unwrap();
        assert_eq!(dump(self.staged.as_ref()).unwrap().difference(&expected), None);
        for open in &self.open {
            // What somebody else changed as well is a conflict, and shows something of both.
            let own: Vec<_> = open.done.iter().map(|(_, one)| one.clone()).collect();
            let others = objects(&self.committed[open.begun..], |_| true);
            if !objects(&own, |_| true).is_disjoint(&others) {
                continue;
            }
            if let Some(expected) = self.replayed(open.done.iter().map(|(_, one)| one)) {
                assert_eq!(dump(&open.view).unwrap().difference(&expected), None);
            }
        }
    }
}

/// Runs histories in which transactions of the device have that many bytes at most.
pub fn run(most_bytes: usize) {
    let (mut conflicts, mut committed) = (0, 0);
    for seed in 0..60 {
        let mut all = Histories::new(seed, most_bytes);
        for step in 0..120 {
            all.step();
            if step % 15 == 0 {
                all.look();
            }
        }
        all.open.clear();
        // Nothing hidden is left.
        let expected = all.replayed(std::iter::empty()).unwrap();
        assert_eq!(dump(all.ram.as_ref()).unwrap().difference(&expected), None, "seed {seed}");
        conflicts += all.conflicts;
        committed += all.committed.len();
    }
    assert!(conflicts > 30 && committed > 500, "{conflicts} conflicts, {committed} commits");
}
