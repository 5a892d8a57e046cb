//! A disk whose requests wait at a gate while that is closed, and whose reads fail where they are
//! told to.

use onode_media::blockdev::{BlockCounters, BlockDev};
use onode_media::sim::disk::SimDisk;
use onode_media::{Error, IoTag, MediaErrorKind, Result};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

#[derive(Default)]
struct State {
    is_closed: bool,
    waiting: u32,
    failing: Option<Range<u64>>,
}

/// The gate of a disk, for the test.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<State>, Condvar)>);

impl Gate {
    /// Every request from now on waits.
    pub fn close(&self) {
        self.0.0.lock().unwrap().is_closed = true;
    }

    /// All of them go on.
    pub fn open(&self) {
        self.0.0.lock().unwrap().is_closed = false;
        self.0.1.notify_all();
    }

    /// Reads of these bytes fail as those of a disk that is out of order do.
    pub fn fail(&self, bytes: Range<u64>) {
        self.0.0.lock().unwrap().failing = Some(bytes);
    }

    /// Waits until a request waits; false if none does within ten seconds.
    pub fn is_waited_for(&self) -> bool {
        let state = self.0.0.lock().unwrap();
        let patience = Duration::from_secs(10);
        let (state, _) = self.0.1.wait_timeout_while(state, patience, |state| state.waiting == 0).unwrap();
        state.waiting > 0
    }

    /// A scope of threads at whose end, however it ends, the gate is open: else a test that fails
    /// would wait for those that wait there.
    pub fn scope<'env, T>(&'env self, act: impl for<'scope> FnOnce(&'scope thread::Scope<'scope, 'env>) -> T) -> T {
        struct Opens<'a>(&'a Gate);
        impl Drop for Opens<'_> {
            fn drop(&mut self) {
                self.0.open();
            }
        }
        thread::scope(|scope| {
            let _opens = Opens(self);
            act(scope)
        })
    }

    fn pass(&self) {
        let mut state = self.0.0.lock().unwrap();
        state.waiting += 1;
        self.0.1.notify_all();
        while state.is_closed {
            state = self.0.1.wait(state).unwrap();
        }
        state.waiting -= 1;
    }
}

/// The disk behind the gate.
pub struct Gated {
    pub disk: SimDisk,
    pub gate: Gate,
}

impl Gated {
    pub fn new(disk: &SimDisk) -> Self {
        Self { disk: disk.clone(), gate: Gate::default() }
    }
}

impl BlockDev for Gated {
    fn name(&self) -> &str {
        self.disk.name()
    }

    fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8], tag: IoTag) -> Result<()> {
        self.gate.pass();
        let end = offset + out.len() as u64;
        let failing = self.gate.0.0.lock().unwrap().failing.clone();
        if failing.is_some_and(|bytes| offset < bytes.end && bytes.start < end) {
            return Err(Error::new(MediaErrorKind::Host, format!("bytes {offset} to {end}, on demand")));
        }
        self.disk.read_at(offset, out, tag)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8], tag: IoTag) -> Result<()> {
        self.gate.pass();
        self.disk.write_at(offset, bytes, tag)
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.gate.pass();
        self.disk.zero(offset, bytes)
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.gate.pass();
        self.disk.discard(offset, bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.gate.pass();
        self.disk.flush()
    }

    fn counters(&self) -> Option<BlockCounters> {
        self.disk.counters()
    }
}
