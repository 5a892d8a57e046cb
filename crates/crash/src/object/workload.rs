//! Transactions on a device as a workload.

use crate::kind::{Failures, Kind};
use crate::object::brim::{self, Part};
use crate::object::{ObjectState, Profile, calls};
use crate::violation::{Violation, promise_of};
use crate::workload::history::{History, Promise};
use crate::workload::{Figures, ImageOf, RunOf, Workload};
use onode_object::powers::Attach;
use onode_object::{Durability, Error, ErrorKind, Mutation, ObjectDevice, SyncScope};

/// Why a volume may not shrink as it is asked to.
const REFUSALS_OF_SHRINKING: [ErrorKind; 3] = [ErrorKind::Invalid, ErrorKind::NoSpace, ErrorKind::NotSupported];

/// Steps of shrinking between other calls.
const STEPS_AT_ONCE: usize = 4;

/// One of so many files goes before a volume shrinks.
const GONE_TO_SHRINK: usize = 2;

/// One profile on one device.
#[derive(Clone, Copy, Debug)]
pub struct ObjectWorkload<K> {
    /// How the device is used.
    pub profile: &'static Profile,
    /// Which device, on which medium.
    pub kind: K,
    /// From which the failures of the medium follow.
    pub seed: u64,
}

/// Turns an error of the device that should not have happened into a violation.
pub fn unexpected(what: &str) -> impl Fn(Error) -> Violation {
    move |error| Violation::new(promise_of(error.kind, "N6"), format!("{what}: {error}"))
}

/// Background work of a device, of both kinds.
pub fn upkeep(device: &impl ObjectDevice, budget: u32) -> onode_object::Result<()> {
    device.maintain(budget)?;
    device.rearrange(budget).map(|_| ())
}

impl<K: Kind> ObjectWorkload<K> {
    fn commit(&self, device: &K::Device, run: &mut RunOf<Self>, durability: Durability) -> Result<(), Violation> {
        let total = device.space().total;
        let aim = if self.profile.fill > 100 { u64::MAX } else { total * self.profile.fill / 100 };
        let Some((transaction, after)) =
            calls::transaction(device, run, self.profile, aim).map_err(unexpected("reserve_ids"))?
        else {
            return Err(Violation::new("N4", "reserve_ids handed out an id that an object had before"));
        };
        if transaction.is_empty() {
            return Ok(());
        }
        self.commit_this(device, run, transaction, after, durability)
    }

    fn commit_this(
        &self,
        device: &K::Device,
        run: &mut RunOf<Self>,
        transaction: onode_object::Transaction,
        mut after: ObjectState,
        durability: Durability,
    ) -> Result<(), Violation> {
        if transaction.is_empty() {
            // What is done next may follow from the number of calls.
            return run.call(|| "nothing".into(), |_| Ok((false, None)));
        }
        let words = if run.explains { calls::describe(&transaction) } else { String::new() };
        let sets_time = |one: &Mutation| matches!(one, Mutation::SetAccessTime { .. });
        if durability == Durability::Durable && transaction.mutations.iter().any(sets_time) {
            after.cover_access_times();
        }
        let only_frees = calls::only_frees(&transaction, &run.state);
        let (before, used) = (run.state.clone(), run.state.bytes());
        let describe = move || format!("commit {durability:?}: {words}");
        run.call(describe, |_| match device.commit(transaction, durability) {
            Ok(()) => Ok((durability == Durability::Durable, Some(after))),
            Err(error) if error.kind == ErrorKind::NoSpace => {
                let total = device.space().total;
                if only_frees {
                    return Err(Violation::new("N7", format!("a commit that only frees was refused: {error}")));
                }
                // Of tiny files the bytes say little.
                if self.profile.name != brim::NAME && used + self.kind.slack_bytes() < total / 2 {
                    let text = format!("refused although {used} of {total} bytes are in use: {error}");
                    return Err(Violation::new("N7", text));
                }
                Ok((false, Some(before)))
            }
            Err(error) => Err(unexpected("commit")(error)),
        })
    }

    fn remount(&self, device: &mut K::Device, run: &mut RunOf<Self>) -> Result<(), Violation> {
        *device = self.close_and_mount(device, run)?;
        Ok(())
    }

    /// Closes the device; returns the one that is mounted then.
    ///
    /// # Errors
    /// If one of both fails.
    pub fn close_and_mount(&self, device: &K::Device, run: &mut RunOf<Self>) -> Result<K::Device, Violation> {
        let mut covered = run.state.clone();
        covered.cover_access_times();
        run.call(
            || "close".into(),
            |_| {
                device.close().map_err(unexpected("close"))?;
                Ok((true, Some(covered)))
            },
        )?;
        let mut mounted = None;
        run.call(
            || "mount".into(),
            |medium| {
                mounted = Some(self.mount(medium, false)?);
                Ok((true, None))
            },
        )?;
        mounted.ok_or_else(|| Violation::new("N7", "there was no mount"))
    }

    /// Makes a few calls as a user would after a crash, as [`Workload::go_on`] does.
    ///
    /// # Errors
    /// What should not have happened.
    pub fn use_again(&self, device: &K::Device, run: &mut RunOf<Self>) -> Result<(), Violation> {
        if self.profile.name == brim::NAME {
            return self.go_on_at_the_brim(device, run);
        }
        self.commit(device, run, Durability::Buffered)?;
        if self.profile.fill > 100 {
            self.remove_largest(device, run)?;
        }
        self.commit(device, run, Durability::Durable)?;
        self.commit(device, run, Durability::Durable)
    }

    /// Whether the part goes or comes with this call: now and then, and back soon.
    fn is_turn_of(part: &dyn Attach, run: &RunOf<Self>) -> bool {
        let turn = run.history.calls.len() % 16;
        turn == 9 || (turn == 12 && !part.is_attached())
    }

    /// The volume takes up a third of what its medium has beyond it, or all, which makes everything
    /// durable.
    fn grow(device: &K::Device, run: &mut RunOf<Self>) -> Result<(), Violation> {
        let Some(size) = device.resizing() else { return Ok(()) };
        let extent = size.extent().map_err(unexpected("extent"))?;
        let is_part = run.history.calls.len() % 120 == 59;
        let more = (extent.most - extent.bytes) / if is_part { 3 } else { 1 };
        if more == 0 {
            return Ok(());
        }
        let mut covered = run.state.clone();
        covered.cover_access_times();
        run.call(
            || format!("grow by {more} bytes"),
            |_| match size.grow(extent.bytes + more) {
                Ok(()) => Ok((true, Some(covered))),
                // A third may be less than a segment.
                Err(error) if error.kind == ErrorKind::Invalid && is_part => Ok((false, None)),
                Err(error) => Err(unexpected("grow")(error)),
            },
        )
    }

    /// The volume is to have less of its medium, as little as has room for what it holds or more.
    fn begin_shrinking(device: &K::Device, run: &mut RunOf<Self>) -> Result<(), Violation> {
        let Some(size) = device.resizing() else { return Ok(()) };
        let extent = size.extent().map_err(unexpected("extent"))?;
        let bytes = extent.fewest + run.prng.below(extent.bytes - extent.fewest + 1) / 2;
        run.call(
            || format!("begin to shrink to {bytes} bytes"),
            |_| match size.begin_shrinking(bytes) {
                Ok(()) => Ok((false, None)),
                Err(error) if REFUSALS_OF_SHRINKING.contains(&error.kind) => Ok((false, None)),
                Err(error) => Err(unexpected("begin to shrink")(error)),
            },
        )
    }

    /// The volume shrinks further, if it shrinks.
    fn shrink(device: &K::Device, run: &mut RunOf<Self>, steps: usize) -> Result<(), Violation> {
        let Some(size) = device.resizing() else { return Ok(()) };
        run.call(
            || "shrink".into(),
            |_| {
                for _ in 0..steps {
                    match size.shrink_some() {
                        Ok(false) => {}
                        Ok(true) => break,
                        Err(error) if error.kind == ErrorKind::NoSpace => break,
                        Err(error) => return Err(unexpected("shrink")(error)),
                    }
                }
                Ok((false, None))
            },
        )
    }

    /// A call that fills the volume with files, or empties it.
    fn brim(&self, device: &mut K::Device, run: &mut RunOf<Self>) -> Result<(), Violation> {
        let part = brim::part(run.history.calls.len());
        let (transaction, after) = match part {
            Part::Reopen => return self.remount(device, run),
            Part::Fill => match brim::fill(device, &run.state, &mut run.prng).map_err(unexpected("reserve_ids"))? {
                Some(made) => made,
                None => return Err(Violation::new("N4", "reserve_ids handed out an id that an object had before")),
            },
            Part::Overwrite => brim::overwrite(&run.state, &mut run.prng),
            Part::Replace => brim::replace(&run.state, &mut run.prng),
            Part::Cut => brim::cut(&run.state, &mut run.prng),
            Part::Empty(left) => brim::remove(&run.state, left, self.seed),
        };
        let durable = run.prng.chance(self.profile.durable, 100);
        let durability = if durable { Durability::Durable } else { Durability::Buffered };
        self.commit_this(device, run, transaction, after, durability)
    }

    /// Some of the files go, others come, and one more goes.
    fn go_on_at_the_brim(&self, device: &K::Device, run: &mut RunOf<Self>) -> Result<(), Violation> {
        for (share, durability) in [(20, Durability::Buffered), (10, Durability::Durable)] {
            let (transaction, after) = brim::remove(&run.state, share, self.seed);
            self.commit_this(device, run, transaction, after, durability)?;
            if let Some((transaction, after)) =
                brim::fill(device, &run.state, &mut run.prng).map_err(unexpected("reserve_ids"))?
            {
                self.commit_this(device, run, transaction, after, Durability::Durable)?;
            }
        }
        Ok(())
    }

    /// Takes away the largest object, as somebody whose volume is full would.
    fn remove_largest(&self, device: &K::Device, run: &mut RunOf<Self>) -> Result<(), Violation> {
        let largest = run.state.objects.iter().max_by_key(|(_, one)| one.content.len()).map(|(id, _)| *id);
        let Some(object) = largest else { return Ok(()) };
        let mutation = Mutation::Remove { object };
        let mut after = run.state.clone();
        if !after.apply(&mutation) {
            return Ok(());
        }
        let transaction = onode_object::Transaction { mutations: vec![mutation] };
        self.commit_this(device, run, transaction, after, Durability::Durable)
    }
}

impl<K: Kind> Workload for ObjectWorkload<K> {
    type System = K::Device;
    type State = ObjectState;
    type Medium = K::Medium;

    fn prepare(&self) -> Result<(ImageOf<Self>, ObjectState), Violation> {
        let Profile { failures, steps, .. } = *self.profile;
        let image = self.kind.format(Failures { seed: self.seed, of_hundred: failures, steps })?;
        Ok((image, ObjectState::default()))
    }

    fn steps(&self) -> u32 {
        self.profile.steps
    }

    fn mount(&self, medium: &K::Medium, read_only: bool) -> Result<K::Device, Violation> {
        let device = self.kind.mount(medium, read_only);
        let device = device.map_err(|error| Violation::new("N7", format!("mount: {error}")))?;
        if let (false, Some(why)) = (read_only, device.info().read_only) {
            return Err(Violation::new("N7", format!("mounted read-only only: {why}")));
        }
        Ok(device)
    }

    fn step(&self, device: &mut K::Device, run: &mut RunOf<Self>) -> Result<(), Violation> {
        if self.profile.name == brim::NAME {
            return self.brim(device, run);
        }
        if let Some(part) = self.kind.part(device).filter(|part| Self::is_turn_of(*part, run)) {
            let detaches = part.is_attached();
            let what = if detaches { "detach" } else { "attach" };
            let change = || if detaches { part.detach() } else { part.attach(false) };
            return run.call(|| what.into(), |_| change().map_err(unexpected(what)).map(|()| (false, None)));
        }
        if self.kind.grows() {
            match run.history.calls.len() % 60 {
                28 => {
                    let (transaction, after) = brim::remove(&run.state, GONE_TO_SHRINK, self.seed);
                    return self.commit_this(device, run, transaction, after, Durability::Buffered);
                }
                29 => return Self::begin_shrinking(device, run),
                turn @ 31..58 if turn % 2 == 1 => return Self::shrink(device, run, STEPS_AT_ONCE),
                58 => return Self::shrink(device, run, usize::MAX),
                59 => return Self::grow(device, run),
                _ => {}
            }
        }
        let draw = run.prng.below(1000);
        let (remounts, maintains) = (self.profile.remounts, self.profile.maintains);
        if draw < remounts {
            self.remount(device, run)
        } else if draw < remounts + maintains {
            run.call(
                || "maintain".into(),
                |_| upkeep(device, 4).map_err(unexpected("maintain")).map(|()| (false, None)),
            )
        } else if draw < remounts + maintains + 20 {
            let mut covered = run.state.clone();
            covered.cover_access_times();
            run.call(
                || "sync".into(),
                |_| device.sync(SyncScope::All).map_err(unexpected("sync")).map(|()| (true, Some(covered))),
            )
        } else if draw < remounts + maintains + 30 {
            let transaction = calls::refused(run, self.profile);
            match device.commit(transaction, Durability::Durable) {
                Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
                other => Err(Violation::new("N3", format!("a wrong transaction was answered with {other:?}"))),
            }
        } else {
            let durable = run.prng.chance(self.profile.durable, 100);
            self.commit(device, run, if durable { Durability::Durable } else { Durability::Buffered })
        }
    }

    fn go_on(&self, device: &mut K::Device, run: &mut RunOf<Self>) -> Result<(), Violation> {
        self.use_again(device, run)
    }

    fn recognise(
        &self,
        device: &K::Device,
        history: &History<ObjectState>,
        promise: Promise,
    ) -> Result<ObjectState, Violation> {
        let found = ObjectState::read(device).map_err(unexpected("read after mount"))?;
        // Of equal states the oldest: it has used the fewest ids.
        let states = (promise.floor..=promise.ceiling).map(|count| history.state(count));
        if let Some(state) = states.clone().find(|state| found.shows(state)) {
            return state.with_access_times(&found, states).map_err(|text| Violation::new("N1", text));
        }
        let all = 0..=history.calls.len();
        let older = all.rev().find(|&count| found.shows(history.state(count)));
        Err(match older {
            Some(count) if count < promise.floor => {
                let text = format!("the state after call {count} is back, {} are covered", promise.floor);
                Violation::new("N1", text)
            }
            Some(count) => Violation::new("N2", format!("the state after call {count}, which had not begun")),
            None => {
                let difference = found.difference(history.state(promise.floor)).unwrap_or_default();
                let text = format!(
                    "no state between call {} and {}; compared with the former: {difference}",
                    promise.floor, promise.ceiling
                );
                Violation::new("N3", text)
            }
        })
    }

    fn compare(&self, device: &K::Device, state: &ObjectState) -> Result<(), Violation> {
        let found = ObjectState::read(device).map_err(unexpected("read"))?;
        found.difference(state).map_or(Ok(()), |difference| Err(Violation::new("N5", difference)))
    }

    fn verify(&self, device: &K::Device, state: &ObjectState) -> Result<(), Violation> {
        self.kind.verify(device)?;
        let (counted, objects) = (self.kind.objects(device), state.objects.len() as u64);
        if counted != objects {
            return Err(Violation::new("N5", format!("{counted} objects are counted, {objects} exist")));
        }
        Ok(())
    }

    fn close(&self, device: &K::Device) -> Result<(), Violation> {
        device.close().map_err(unexpected("close"))
    }

    fn note(&self, device: &K::Device, medium: &K::Medium) -> Result<(), Violation> {
        self.kind.note(device, medium)
    }

    fn snapshots(&self, device: &K::Device) -> Vec<String> {
        self.kind.snapshots(device)
    }

    fn figures(&self, device: &K::Device) -> Figures {
        device.inspect().map(|inspect| inspect.counters()).unwrap_or_default()
    }
}
