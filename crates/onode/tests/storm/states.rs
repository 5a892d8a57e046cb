//! Steps with snapshots and clones.

use super::tree::seen_through;
use super::whole::{Cloned, Kept, Storm};
use onode::{Class, Error};

/// Snapshots at a time.
const SNAPSHOTS: usize = 3;

impl Storm {
    /// Whether it was done: a full volume may refuse it.
    fn admits<T>(&mut self, what: &str, done: Result<T, Error>) -> Option<T> {
        self.luck.tell(&format!("{what}: {:?}", done.as_ref().map(drop)));
        match done {
            Ok(done) => Some(done),
            Err(error) if error.class == Class::VolumeFull => {
                self.luck.refused += 1;
                None
            }
            Err(error) => panic!("{}: {what}: {error}", self.luck.what),
        }
    }

    pub fn take_snapshot(&mut self) {
        let Some((snapshots, _)) = self.states() else { return };
        if self.snapshots.len() == SNAPSHOTS {
            return;
        }
        let name = self.luck.name('S');
        if self.admits("taking a snapshot", snapshots.take(&name)).is_some() {
            self.snapshots.push(Kept { name, model: self.tree.model.clone() });
        }
    }

    pub fn delete_snapshot(&mut self) {
        let Some((snapshots, clones)) = self.states() else { return };
        let names: Vec<String> = self.snapshots.iter().map(|one| one.name.clone()).collect();
        let Some(name) = self.luck.any(&names) else { return };
        let done = snapshots.delete(&name);
        if clones.list().iter().any(|clone| clone.base == name) {
            let error = done.expect_err("it has clones");
            assert_eq!(error.class, Class::InUse, "{}: {error}", self.luck.what);
        } else if self.admits("deleting a snapshot", done).is_some() {
            self.snapshots.retain(|one| one.name != name);
        }
    }

    /// A clone of a snapshot, or of the files of now.
    pub fn make_clone(&mut self) {
        let Some((_, clones)) = self.states() else { return };
        if self.clones.len() as u64 == self.clones_max {
            return;
        }
        let name = self.luck.name('C');
        let names: Vec<String> = self.snapshots.iter().map(|one| one.name.clone()).collect();
        let base = if self.luck.one_in(3) { None } else { self.luck.any(&names) };
        if self.admits("making a clone", clones.make(&name, base.as_deref())).is_none() {
            return;
        }
        let kept = self.snapshots.iter().find(|one| Some(&one.name) == base.as_ref());
        let mut tree = self.tree.clone();
        if let Some(kept) = kept {
            tree.model = kept.model.clone();
        }
        let tree = seen_through(&tree, &self.clone_files(&name), &self.luck.what);
        self.clones.push(Cloned { name, tree });
    }

    pub fn delete_clone(&mut self) {
        if self.clones.is_empty() {
            return;
        }
        let index = self.luck.draw.below(self.clones.len() as u64) as usize;
        let (_, clones) = self.states().expect("it has clones");
        let done = clones.delete(&self.clones[index].name);
        if self.admits("deleting a clone", done).is_some() {
            self.clones.remove(index);
        }
    }
}
