//! Calls of the host file system on a device as a workload.

use crate::explore::Plan;
use crate::files::brim::{self, Step};
use crate::files::calls::{self, Call};
use crate::files::cases;
use crate::files::limited;
use crate::files::look::{self, Allowed, compare, look};
use crate::files::program::Program;
use crate::files::state::FileState;
use crate::kind::{Failures, Kind};
use crate::medium::Medium;
use crate::violation::{Violation, unexpected};
use crate::workload::history::{History, Promise};
use crate::workload::{Figures, ImageOf, RunOf, Workload};
use onode_base::clock::ManualClock;
use onode_base::{Prng, Timestamp};
use onode_fs::{ErrorKind, FileSystem, FormatOptions, Inodes, Options, WriteMode};
use onode_object::ObjectDevice;
use std::sync::Arc;

/// The ways of using files, and the variants of damage tried at each operation; 0 for all.
pub const FILE_WORKLOADS: [(&str, usize); 7] =
    [("pair", 0), ("triple", 5), ("random", 4), ("clean", 2), ("full", 3), (limited::NAME, 2), (brim::NAME, 2)];

/// One way of using files, on one device, in one write mode.
#[derive(Clone, Copy, Debug)]
pub struct FileWorkload<K> {
    /// Its name.
    pub name: &'static str,
    /// Which device, on which medium.
    pub kind: K,
    /// Whether every call is durable when it returns.
    pub through: bool,
    /// Which of the enumerated sequences.
    pub seed: u64,
}

/// A mounted file system, its device and its clock.
pub struct Mounted<D> {
    fs: FileSystem,
    device: Arc<D>,
    clock: Arc<ManualClock>,
    /// Uses memory of the device, if it has some for programs.
    program: Option<Box<dyn Program>>,
}

impl<K: Kind> FileWorkload<K> {
    /// The sequence of an enumerated workload.
    fn sequence(&self) -> Vec<Call> {
        if let Some(calls) = cases::by_name(self.name) {
            return calls;
        }
        let (all, then) = (self.all(), calls::persistence());
        let mut index = self.seed as usize;
        if self.name == "triple" {
            // Sampled: the number is taken for a seed.
            index = Prng::new(self.seed).next_u64() as usize >> 8;
        }
        let mut sequence = Vec::new();
        for _ in 0..if self.name == "triple" { 3 } else { 2 } {
            sequence.extend(all.get(index % all.len()).cloned());
            index /= all.len();
            sequence.extend(then.get(index % then.len()).cloned().flatten());
            index /= then.len();
        }
        sequence
    }

    /// Whether there are limits.
    fn is_limited(&self) -> bool {
        self.name == limited::NAME
    }

    fn all(&self) -> Vec<Call> {
        if self.kind.has_memory() { calls::all_with_memory() } else { calls::all() }
    }

    fn call(&self, system: &Mounted<K::Device>, run: &mut RunOf<Self>, call: &Call) -> Result<(), Violation> {
        let seed = run.prng.next_u64();
        let Some(mut after) = call.after(&run.state, seed) else { return Ok(()) };
        if self.through {
            self.kind.worth().note(call, &run.state, &mut after);
        }
        let before = run.state.clone();
        let through = self.through;
        if call.needs_memory() {
            let Some(program) = &system.program else { return Ok(()) };
            let make = |_: &K::Medium| match call.make_with(&system.fs, &**program, &before, seed) {
                Some(Ok(true)) => Ok((through || call.covers(), Some(after))),
                Some(Ok(false)) | None => Ok((false, None)),
                Some(Err(violation)) => Err(violation),
            };
            return run.call(|| format!("{call:?}"), make);
        }
        run.call(
            || format!("{call:?}"),
            |_| match call.make(&system.fs, &system.clock, seed) {
                Ok(()) => Ok((through || call.covers(), Some(after))),
                Err(error) if error.kind == ErrorKind::NoSpace => no_space(system, call, before, through),
                Err(error) => Err(unexpected(&format!("{call:?}"))(error)),
            },
        )
    }

    /// An orderly unmount, which must save everything however full it is, and a mount.
    fn reopen(&self, system: &mut Mounted<K::Device>, run: &mut RunOf<Self>) -> Result<(), Violation> {
        let mut covered = run.state.clone();
        covered.cover_all();
        run.call(|| "unmount".into(), |_| self.close(system).map(|()| (true, Some(covered))))?;
        run.call(
            || "mount".into(),
            |medium| {
                *system = self.mount(medium, false)?;
                Ok((true, None))
            },
        )
    }

    fn options(&self) -> Options {
        let write_mode = if self.through { WriteMode::WriteThrough } else { WriteMode::WriteBack };
        Options { write_mode, name_cache_bytes: 0, cached_inodes: 0, ..Options::default() }
    }
}

/// A call was refused for space: names are as before, a content is as far as it was taken.
fn no_space<D>(
    system: &Mounted<D>,
    call: &Call,
    mut state: FileState,
    through: bool,
) -> Result<(bool, Option<FileState>), Violation> {
    if matches!(call, Call::Unlink(_) | Call::RemoveDirectory(_) | Call::Fsync(_) | Call::Sync | Call::Tick) {
        return Err(Violation::new("N7", format!("{call:?} was refused for space")));
    }
    let (Call::Append(path, _) | Call::Write(path, ..) | Call::Rewrite(path, _)) = call else {
        return Ok((false, Some(state)));
    };
    let view = look(&system.fs)?;
    let seen = view.paths.get(path).and_then(|inode| view.files.get(inode));
    if let (Some(seen), Some(number)) = (seen, state.find(path)) {
        state.push(number, seen.bytes.clone());
        if through {
            state.cover_all();
        }
    }
    compare(&view, &state, Allowed::Newest)?;
    Ok((false, Some(state)))
}

impl<K: Kind> Workload for FileWorkload<K> {
    type System = Mounted<K::Device>;
    type State = FileState;
    type Medium = K::Medium;

    fn prepare(&self) -> Result<(ImageOf<Self>, FileState), Violation> {
        let medium = K::Medium::new(self.kind.format(Failures::default())?, false);
        let device = self.kind.mount(&medium, false);
        let device = device.map_err(|error| Violation::new("N7", format!("mount: {error}")))?;
        let options = FormatOptions { inodes: self.kind.inodes(), ..FormatOptions::default() };
        onode_fs::format(&device, &options, Timestamp::default()).map_err(unexpected("mkfs"))?;
        let clock = Arc::new(ManualClock::at(1_000_000_000));
        let fs = FileSystem::mount(Arc::new(device), clock.clone(), Options::default()).map_err(unexpected("mount"))?;
        let state = calls::begin(&fs, &clock)?;
        if self.is_limited() {
            limited::begin(&fs)?;
        }
        fs.unmount().map_err(unexpected("unmount"))?;
        drop(fs);
        Ok((medium.image(), state))
    }

    fn steps(&self) -> u32 {
        match self.name {
            "random" => 50,
            limited::NAME => limited::STEPS,
            "clean" => 700,
            "full" => 250,
            brim::NAME => brim::STEPS,
            _ => 1,
        }
    }

    fn mount(&self, medium: &K::Medium, read_only: bool) -> Result<Mounted<K::Device>, Violation> {
        let refused = |error| Violation::new("N7", format!("mount of the device: {error}"));
        let device = Arc::new(self.kind.mount(medium, read_only).map_err(refused)?);
        let clock = Arc::new(ManualClock::at(2_000_000_000));
        let options = Options { read_only, ..self.options() };
        let fs = FileSystem::mount(device.clone(), clock.clone(), options)
            .map_err(|error| Violation::new("N7", format!("mount: {error}")))?;
        let program = if read_only { None } else { self.kind.program(&device) };
        Ok(Mounted { fs, device, clock, program })
    }

    fn step(&self, system: &mut Mounted<K::Device>, run: &mut RunOf<Self>) -> Result<(), Violation> {
        match self.name {
            brim::NAME => {
                let (calls, total) = (run.history.calls.len(), system.fs.statfs().blocks * 4096);
                match brim::step(&run.state, calls, total, self.seed, &mut run.prng) {
                    Step::Calls(calls) => calls.iter().try_for_each(|call| self.call(system, run, call)),
                    Step::Reopen => self.reopen(system, run),
                }
            }
            "random" | "clean" | "full" | limited::NAME => {
                if self.is_limited() && run.prng.chance(1, 6) {
                    let change = |_: &K::Medium| limited::change(&system.fs).map(|()| (false, None));
                    return run.call(|| "a limit is set or removed".into(), change);
                }
                let total = system.fs.statfs().blocks * 4096;
                let most = if matches!(self.name, "random" | limited::NAME) { 1500 } else { 5000 };
                let aims_full = self.name == "full" || (self.name == "clean" && run.state.bytes() < total * 3 / 5);
                let mut call = calls::any(&run.state, &mut run.prng, most, aims_full, self.kind.has_memory());
                let files = run.state.files.len();
                if self.name == "clean" && !aims_full && files > 8 && run.prng.chance(1, 4) {
                    call = largest(&run.state).map_or(call, Call::Unlink);
                }
                self.call(system, run, &call)
            }
            _ => self.sequence().iter().try_for_each(|call| self.call(system, run, call)),
        }
    }

    fn go_on(&self, system: &mut Mounted<K::Device>, run: &mut RunOf<Self>) -> Result<(), Violation> {
        if matches!(self.name, "full" | brim::NAME)
            && let Some(path) = largest(&run.state)
        {
            self.call(system, run, &Call::Unlink(path))?;
        }
        let name = format!("z{}", run.prng.below(1 << 32));
        self.call(system, run, &Call::Create(name.clone()))?;
        self.call(system, run, &Call::Append(name.clone(), 600))?;
        let all = self.all();
        let (first, second) = (run.prng.below(all.len() as u64), run.prng.below(all.len() as u64));
        for index in [first, second] {
            if let Some(call) = all.get(index as usize) {
                self.call(system, run, call)?;
            }
        }
        self.call(system, run, &Call::Fsync(name))
    }

    fn recognise(
        &self,
        system: &Mounted<K::Device>,
        history: &History<FileState>,
        promise: Promise,
    ) -> Result<FileState, Violation> {
        let view = look(&system.fs)?;
        let (floor, returned) = (history.state(promise.floor), history.state(promise.returned));
        let allowed = Allowed::Since { floor, returned };
        let mut broken = None;
        for count in (promise.floor..=promise.ceiling).rev() {
            let state = history.state(count);
            match compare(&view, state, allowed) {
                Ok(()) => return Ok(look::settle(&view, state)),
                // Wrong names say least, if names of another moment are right.
                Err(violation) if violation.promise == "N3" && broken.is_some() => {}
                Err(violation) => broken = Some((count, violation)),
            }
        }
        let (count, violation) =
            broken.unwrap_or((promise.floor, Violation::new("N2", "there is no state that could be there")));
        let text = format!("no state between call {} and {}; nearest {count}: ", promise.floor, promise.ceiling);
        Err(Violation { text: text + &violation.text, ..violation })
    }

    fn compare(&self, system: &Mounted<K::Device>, state: &FileState) -> Result<(), Violation> {
        compare(&look(&system.fs)?, state, Allowed::Newest)
            .map_err(|violation| Violation { promise: "N5", ..violation })
    }

    fn verify(&self, system: &Mounted<K::Device>, state: &FileState) -> Result<(), Violation> {
        self.kind.verify(&system.device)?;
        if self.is_limited() {
            limited::verify(&system.fs, state)?;
        }
        // One object a file, or two, and the one of the volume: nothing without a name is left
        // over.
        let each = if self.kind.inodes() == Inodes::Separate { 2 } else { 1 };
        let (found, expected) = (self.kind.objects(&system.device), each * state.files.len() as u64 + 1);
        if found != expected {
            return Err(Violation::new("N5", format!("{found} objects for {expected}")));
        }
        Ok(())
    }

    fn close(&self, system: &Mounted<K::Device>) -> Result<(), Violation> {
        system.fs.unmount().map_err(unexpected("unmount"))
    }

    fn note(&self, system: &Mounted<K::Device>, medium: &K::Medium) -> Result<(), Violation> {
        self.kind.note(&system.device, medium)
    }

    fn snapshots(&self, system: &Mounted<K::Device>) -> Vec<String> {
        self.kind.snapshots(&system.device)
    }

    fn figures(&self, system: &Mounted<K::Device>) -> Figures {
        system.fs.device().inspect().map(|inspect| inspect.counters()).unwrap_or_default()
    }
}

fn largest(state: &FileState) -> Option<String> {
    let size = |number| state.content(number).map(|content| content.newest().len());
    state.paths().into_iter().filter_map(|(path, number)| Some((size(number)?, path))).max().map(|(_, path)| path)
}

/// How an exploration of `workload` differs from others.
#[must_use]
pub fn plan<K>(workload: &FileWorkload<K>, plan: Plan) -> Plan {
    let variants = FILE_WORKLOADS.iter().find(|(name, _)| *name == workload.name).map_or(0, |(_, variants)| *variants);
    Plan { variants, ..plan }
}
