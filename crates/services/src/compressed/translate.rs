//! From a transaction of the host to one of the wrapped device: one transaction becomes one.
//!
//! Objects that have no compressed chunk, and get none, keep their mutations as they are. Of others
//! all changes of content are taken together ([`Life`]) and put at the end (`settle`); what else
//! changes stays where it stood. Whether a mutation can apply is the wrapped device's to say: what
//! cannot be translated is handed on so that it is refused as it stands.

mod image;
mod settle;

use crate::compressed::Compressed;
use crate::compressed::map::{CHUNK_BYTES, Group};
use crate::compressed::policy::{Wish, is_worth};
use crate::life::Life;
use crate::plan::{Plan, UNUSED, concerns_content, refused};
use crate::turn::Turn;
use onode_base::planted::{Bug, is_planted};
use onode_object::validate::refuse_moves;
use onode_object::{
    AttributeKind, Compression, ErrorKind, Hints, Mutation, ObjectDevice, ObjectId, Result, Transaction,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a transaction says of its objects as a whole.
#[derive(Default)]
struct Outlook {
    /// Objects with a write that may be worth to be compressed.
    worth: BTreeSet<ObjectId>,
    /// The last hints that are set.
    hints: BTreeMap<ObjectId, Hints>,
}

/// How changes of an object's content are treated.
enum Way {
    /// As they are.
    Raw,
    /// Together.
    Together(Box<Life<Wish>>),
}

impl<D: ObjectDevice + ?Sized> Compressed<D> {
    /// Commits what a transaction of the host is to the wrapped device.
    ///
    /// # Errors
    /// As [`ObjectDevice::commit`].
    pub(crate) fn change<T>(
        &self,
        mut transaction: Transaction,
        commit: impl Fn(Transaction) -> Result<T>,
    ) -> Result<T> {
        refuse_moves(&transaction)?;
        if let Some(refused) = refused(&mut transaction, |key| key.kind == AttributeKind::SERVICE) {
            return commit(refused);
        }
        let concerned: BTreeSet<ObjectId> =
            transaction.mutations.iter().filter(|one| concerns_content(one)).map(Mutation::object).collect();
        let _turn = Turn::take(self.inner().as_ref());
        let _changing = self.shards().change(concerned.into_iter());
        self.carry_out(self.translate(transaction)?, commit)
    }

    /// Commits a plan; who made it still waits for nobody else to change its objects.
    pub(crate) fn carry_out<T>(&self, plan: Plan<Group>, commit: impl Fn(Transaction) -> Result<T>) -> Result<T> {
        plan.carry_out(self.shards(), !self.is_shared(), |mutations| commit_planned(mutations, &commit))
    }

    fn translate(&self, transaction: Transaction) -> Result<Plan<Group>> {
        let outlook = outlook(&transaction, self.unit());
        let mut plan = Plan::default();
        let mut ways: BTreeMap<ObjectId, Way> = BTreeMap::new();
        for mutation in transaction.mutations {
            let object = mutation.object();
            match &mutation {
                Mutation::Create { hints, .. } => {
                    let hints = outlook.hints.get(&object).unwrap_or(hints);
                    ways.insert(object, self.way(object, hints, None, &outlook));
                    plan.mutations.push(mutation);
                    self.mark(object, &mut plan.mutations);
                    continue;
                }
                Mutation::Remove { .. } => {
                    ways.insert(object, Way::Raw);
                    if self.has_compressed(object)? {
                        plan.alone.insert(object);
                    }
                    plan.forgotten.push(object);
                }
                Mutation::Write { .. } | Mutation::Truncate { .. } | Mutation::Punch { .. } => {
                    let way = match ways.remove(&object) {
                        Some(way) => way,
                        None => self.way_of_existing(object, &outlook)?,
                    };
                    match ways.entry(object).insert_entry(way).get_mut() {
                        Way::Raw => {}
                        Way::Together(life) => {
                            life.apply(mutation);
                            continue;
                        }
                    }
                }
                Mutation::RemoveAttribute { key, .. } if key.kind == AttributeKind::SERVICE => {
                    plan.mutations.push(Mutation::RemoveAttribute { object, key: UNUSED });
                    continue;
                }
                // None is left.
                Mutation::Move { .. }
                | Mutation::SetAttribute { .. }
                | Mutation::RemoveAttribute { .. }
                | Mutation::SetHints { .. }
                | Mutation::SetAccessTime { .. } => {}
            }
            plan.mutations.push(mutation);
        }
        for way in ways.into_values() {
            if let Way::Together(life) = way {
                self.settle(*life, &mut plan)?;
            }
        }
        Ok(plan)
    }

    /// Whether the object is there and has compressed chunks.
    fn has_compressed(&self, object: ObjectId) -> Result<bool> {
        match self.group(object, 0) {
            Ok(head) => Ok(head.is_some()),
            // Damage must not keep anybody from removing it.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Corrupt) => Ok(false),
            // Nor must a key that is lost: it may have some.
            Err(error) if error.kind == ErrorKind::KeyNeeded => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The way of an object without compressed chunks that has this size, or is new.
    fn way(&self, object: ObjectId, hints: &Hints, size: Option<u64>, outlook: &Outlook) -> Way {
        let wish = self.wish(hints);
        let gets_some = wish.algorithm.is_some() && outlook.worth.contains(&object);
        if gets_some { Way::Together(Box::new(Life::new(object, CHUNK_BYTES, wish, size))) } else { Way::Raw }
    }

    /// The way of an object that was there before.
    fn way_of_existing(&self, object: ObjectId, outlook: &Outlook) -> Result<Way> {
        let head = match self.group(object, 0) {
            Ok(None) if !outlook.worth.contains(&object) => return Ok(Way::Raw),
            Ok(head) => head,
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(Way::Raw),
            Err(error) => return Err(error),
        };
        let stat = self.inner().stat(object)?;
        let hints = outlook.hints.get(&object).unwrap_or(&stat.hints);
        Ok(match head {
            None => self.way(object, hints, Some(stat.size), outlook),
            Some(head) => {
                let size = stat.size.saturating_sub(head.hidden());
                Way::Together(Box::new(Life::new(object, CHUNK_BYTES, self.wish(hints), Some(size))))
            }
        })
    }

    /// What is wished for an object of these hints now.
    pub(crate) fn wish(&self, hints: &Hints) -> Wish {
        // Other hosts that read without a turn would see old maps with new content.
        let has_others = self.inner().share().is_some_and(|share| share.has_others());
        if has_others {
            Wish { algorithm: None, ..Wish::of(Compression::Never, hints) }
        } else {
            Wish::of(self.mode(), hints)
        }
    }
}

fn outlook(transaction: &Transaction, unit: usize) -> Outlook {
    let mut outlook = Outlook::default();
    for mutation in &transaction.mutations {
        if let Mutation::SetHints { object, hints } = mutation {
            outlook.hints.insert(*object, *hints);
        }
        if is_worth(mutation, unit) {
            outlook.worth.insert(mutation.object());
        }
    }
    outlook
}

fn commit_planned<T>(mutations: Vec<Mutation>, commit: &impl Fn(Transaction) -> Result<T>) -> Result<T> {
    if !is_planted(Bug::ServicesMapInTwo) {
        return commit(Transaction { mutations });
    }
    let is_map =
        |one: &Mutation| matches!(one, Mutation::SetAttribute { key, .. } if key.kind == AttributeKind::SERVICE);
    let (map, rest): (Vec<_>, Vec<_>) = mutations.into_iter().partition(is_map);
    let result = commit(Transaction { mutations: rest })?;
    if !map.is_empty() {
        commit(Transaction { mutations: map })?;
    }
    Ok(result)
}
