//! Clients on a device as a workload: everything but their calls is that of the object level.

use crate::kind::Kind;
use crate::medium::Medium;
use crate::object::clients::PROFILE;
use crate::object::clients::session::{Session, WouldWait};
use crate::object::{ObjectState, ObjectWorkload};
use crate::violation::Violation;
use crate::workload::history::{History, Promise, Run};
use crate::workload::{Figures, ImageOf, RunOf, Workload};
use onode_media::{Between, Seam};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// So many clients on one device.
#[derive(Clone, Copy, Debug)]
pub struct ClientsWorkload<K> {
    clients: usize,
    plain: ObjectWorkload<K>,
}

/// Somebody is told as long as this lives.
struct Told(Option<Seam>);

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(seam) = &self.0 {
            seam.set(None);
        }
    }
}

impl<K: Kind> ClientsWorkload<K> {
    /// So many clients on the device of this kind.
    pub const fn new(clients: usize, kind: K, seed: u64) -> Self {
        Self { clients, plain: ObjectWorkload { profile: &PROFILE, kind, seed } }
    }
}

impl<K: Kind> Workload for ClientsWorkload<K> {
    type System = Arc<K::Device>;
    type State = ObjectState;
    type Medium = K::Medium;

    fn prepare(&self) -> Result<(ImageOf<Self>, ObjectState), Violation> {
        self.plain.prepare()
    }

    fn steps(&self) -> u32 {
        PROFILE.steps
    }

    fn mount(&self, medium: &K::Medium, read_only: bool) -> Result<Arc<K::Device>, Violation> {
        self.plain.mount(medium, read_only).map(Arc::new)
    }

    fn step(&self, device: &mut Arc<K::Device>, run: &mut RunOf<Self>) -> Result<(), Violation> {
        if run.interleaving.stuck > 0 {
            return Ok(());
        }
        if run.prng.chance(PROFILE.remounts, 1000) {
            *device = Arc::new(self.plain.close_and_mount(device, run)?);
            return Ok(());
        }
        let (medium, state) = (run.medium.clone(), run.state.clone());
        let own = std::mem::replace(run, Run::new(medium.clone(), 0, state, false));
        let session = Arc::new(Session::new(self.plain.kind, device, self.clients, own));
        let told = Told(medium.seam());
        if let Some(seam) = &told.0 {
            let between: Arc<dyn Between> = Arc::clone(&session) as Arc<dyn Between>;
            seam.set(Some(between));
        }
        let done = catch_unwind(AssertUnwindSafe(|| session.step()));
        drop(told);
        let is_stuck = match done {
            Ok(done) => {
                done?;
                false
            }
            Err(panic) if panic.is::<WouldWait>() => true,
            Err(panic) => resume_unwind(panic),
        };
        *run = session.take_run(is_stuck)?;
        Ok(())
    }

    fn go_on(&self, device: &mut Arc<K::Device>, run: &mut RunOf<Self>) -> Result<(), Violation> {
        self.plain.use_again(device, run)
    }

    fn recognise(
        &self,
        device: &Arc<K::Device>,
        history: &History<ObjectState>,
        promise: Promise,
    ) -> Result<ObjectState, Violation> {
        self.plain.recognise(device, history, promise)
    }

    fn compare(&self, device: &Arc<K::Device>, state: &ObjectState) -> Result<(), Violation> {
        self.plain.compare(device, state)
    }

    fn verify(&self, device: &Arc<K::Device>, state: &ObjectState) -> Result<(), Violation> {
        self.plain.verify(device, state)
    }

    fn close(&self, device: &Arc<K::Device>) -> Result<(), Violation> {
        self.plain.close(device)
    }

    fn note(&self, device: &Arc<K::Device>, medium: &K::Medium) -> Result<(), Violation> {
        self.plain.note(device, medium)
    }

    fn figures(&self, device: &Arc<K::Device>) -> Figures {
        self.plain.figures(device)
    }
}
