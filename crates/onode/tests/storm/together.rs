//! Transactions of users: committed, aborted, and in conflict with somebody else.

use super::hand::Hand;
use super::model::{Body, Id, TOP};
use super::tree::{Tree, seen_through};
use super::whole::Storm;
use onode::{Class, TransactionOptions};
use onode_fs::Caller;
use std::sync::Arc;

impl Storm {
    /// A transaction from its begin to its end; meanwhile somebody else may make a file.
    pub fn transaction(&mut self) {
        let begun = self.volume().begin(TransactionOptions::default());
        let transaction = match begun {
            Ok(transaction) => transaction,
            Err(error) if error.class == Class::VolumeFull => return,
            // A memory that several may use has none.
            Err(error) if error.class == Class::Usage && self.states().is_none() => return,
            Err(error) => panic!("{}: begin: {error}", self.luck.what),
        };
        let fs = Arc::clone(transaction.files());
        let mut tree = self.tree.clone();
        tree.model.let_all_go();
        let mut tree = seen_through(&tree, &fs, &self.luck.what);
        for _ in 0..1 + self.luck.draw.below(12) {
            Hand { fs: Arc::clone(&fs), tree: &mut tree, luck: &mut self.luck, keeps_unnamed: false }.step();
        }
        self.tree.model.continue_after(&tree.model);
        let other = if self.luck.one_in(4) { self.make_beside() } else { None };
        let when = format!("{}, in a transaction", self.luck.what);
        if let Some(name) = &other {
            // Others' files are seen in it, too.
            tree.model.share(&self.tree.model, name);
            tree.look_up(&fs, &when);
        }
        if self.luck.one_in(3) {
            super::tree::verify(&tree.model, &fs, &when);
        }
        drop(fs);
        if self.luck.one_in(3) {
            return transaction.abort();
        }
        match transaction.commit() {
            Ok(_) => self.committed(tree),
            Err(error) if error.class == Class::VolumeFull => self.luck.refused += 1,
            // Together with the file of somebody else it is beyond a limit.
            Err(error) if error.class == Class::Conflict && other.is_some() && self.tree.model.has_limits() => {}
            // It would be on the medium for a while without the key.
            Err(error) if error.class == Class::Usage && self.key.is_some() => self.luck.refused += 1,
            Err(error) => panic!("{}: commit: {error}", self.luck.what),
        }
    }

    /// Somebody else makes a file, which is no conflict; its name.
    fn make_beside(&mut self) -> Option<String> {
        let name = self.luck.name('o');
        let made = self.fs().create(&Caller::root(), self.tree.numbers[&TOP], name.as_bytes(), 0o644);
        let has_limits = self.tree.model.has_limits();
        let made = self.luck.admits_limited("create", made, has_limits)?;
        let id = self.tree.model.add(Body::File(Arc::default()), 0o644, 0);
        self.tree.model.names_mut(TOP).insert(name.clone(), id);
        self.tree.found(id, made.inode);
        self.tree.note();
        Some(name)
    }

    /// The volume has what the transaction had, and still files in use without a name.
    fn committed(&mut self, done: Tree) {
        let fs = self.fs();
        let mut model = done.model;
        for (id, is_new) in self.tree.model.unnamed.clone() {
            model.nodes.insert(id, Arc::clone(&self.tree.model.nodes[&id]));
            model.unnamed.insert(id, is_new);
        }
        let before = self.tree.model.clone();
        let body = |id: &Id| before.nodes.get(id).map(|node| node.body.clone());
        let ids: Vec<Id> = model.nodes.keys().copied().collect();
        let changed: Vec<Id> =
            ids.iter().copied().filter(|id| Some(&model.nodes[id].body) != body(id).as_ref()).collect();
        for id in ids {
            model.node(id).since = before.nodes.get(&id).map_or(0, |node| node.since);
        }
        let gone: Vec<_> = self.tree.numbers.keys().copied().filter(|id| !model.nodes.contains_key(id)).collect();
        gone.into_iter().for_each(|id| self.tree.forget(&fs, id));
        self.tree.model = model;
        // What has no number was made in it, or by somebody else meanwhile.
        self.tree.look_up(&fs, &self.luck.what);
        let ids: Vec<_> = done.numbers.keys().copied().filter(|id| self.tree.model.nodes.contains_key(id)).collect();
        self.tree.is_durable(None);
        changed.into_iter().for_each(|id| self.tree.publishes(id));
        for id in ids {
            let (found, before) = (done.numbers[&id], self.tree.numbers[&id]);
            assert_eq!(found, before, "{}: it has another number after the commit", self.luck.what);
        }
        super::tree::verify(&self.tree.model, &fs, &format!("{}, committed", self.luck.what));
    }
}
