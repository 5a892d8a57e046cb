//! Opening a device: made anew, after whatever happened to it, or beside the processes that use it
//! already; and leaving it.

use crate::core::Core;
use crate::device::ScmDevice;
use crate::device::exclusive::check_mode;
use crate::device::options::{FormatOptions, MountOptions};
use crate::medium::superblocks::is_exclusive;
use crate::persist::mode::Mode;
use crate::recover::Terms;
use crate::recover::open::Opened;
use crate::share::process_lock::ProcessLock;
use crate::share::readers::Readers;
use crate::space::allocator::Process;
use crate::space::blocks_of_superblock;
use onode_base::ErrorKind;
use onode_base::sync::Mutex;
use onode_media::Pmem;
use onode_object::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl<P: Pmem> ScmDevice<P> {
    /// Makes an empty device on `memory`; what was there is gone.
    ///
    /// # Errors
    /// `Invalid` for a memory that is too small; `NotSupported` for one that one process at a time
    /// is to use, in another mode than `Atomic`; `Media`.
    pub fn format(memory: P, options: &FormatOptions) -> Result<Self> {
        check_mode(options.exclusive, options.mode)?;
        let memory = Arc::new(memory);
        let (opened, blocks) = Opened::empty(&memory, options)?;
        let mut core = Core::new(memory, opened, blocks, options.mode);
        core.store_mut().write_superblock(false)?;
        core.store().write_copy();
        core.store_mut().write_superblock(false)?;
        Self::alone(core)
    }

    /// Opens the device on `memory`, after whatever happened to it. Nobody else may use it until
    /// this returns. If the memory is longer than it was, so is the device from now on; a read-only
    /// mount leaves that to the next.
    ///
    /// # Errors
    /// `Invalid` if there is none, `NotSupported` for one of a newer format, and for one that one
    /// process at a time uses in another mode than `Atomic`; `Corrupt` if what it
    /// needs is damaged; `Media`.
    pub fn mount(memory: P, options: &MountOptions) -> Result<Self> {
        if options.mode != Mode::Atomic {
            check_mode(is_exclusive(&memory)?, options.mode)?;
        }
        let memory = Arc::new(memory);
        let terms = Terms { read_only: options.read_only, accept_loss: options.accept_loss };
        let (opened, blocks) = Opened::alone(&memory, terms)?;
        let mut core = Core::new(memory, opened, blocks, options.mode);
        if options.read_only {
            core.store_mut().forbid_changes();
        } else {
            core.begin_changes()?;
        }
        Self::alone(core)
    }

    /// Uses the device on `memory` together with the processes that do so already: it was mounted
    /// since the host was started, and somebody who joined has not closed it yet.
    ///
    /// # Errors
    /// As [`mount`](Self::mount); `Busy` if too many processes use it; `NotSupported` for one that
    /// one process at a time uses.
    pub fn attach(
        memory: P,
        options: &MountOptions,
        process: Process,
        is_dead: impl Fn(Process) -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let memory = Arc::new(memory);
        let (opened, blocks) = Opened::shared(&memory)?;
        let mut device = Self::of(Core::new(memory, opened, blocks, options.mode))?;
        device.join(process, is_dead)?;
        Ok(device)
    }

    /// The device, when nobody else uses the memory.
    fn alone(mut core: Core<P>) -> Result<Self> {
        ProcessLock::reset(&**core.memory());
        core.leave_first_words();
        Self::of(core)
    }

    fn of(core: Core<P>) -> Result<Self> {
        let memory = Arc::clone(core.memory());
        let members = blocks_of_superblock(&memory, core.store().superblock())?;
        let (mode, domain, chunk_bytes) = (core.store().mode(), memory.domain().name(), core.store().chunk_bytes());
        let lock = ProcessLock::new(Arc::clone(&memory), members);
        let exclusive = AtomicBool::new(core.store().is_exclusive());
        let (core, readers) = (Mutex::new(core), Readers::default());
        Ok(Self { lock, core, readers, memory, mode, exclusive, domain, chunk_bytes })
    }

    /// Lets other processes use the device at the same time, from the moment that they may open the
    /// memory: this one is known by `process`, and `is_dead` judges the others. Frees what dead
    /// ones have left.
    ///
    /// # Errors
    /// `Busy` if too many processes use it; `NotSupported` for one that one process at a time uses.
    pub fn join(&mut self, process: Process, is_dead: impl Fn(Process) -> bool + Send + Sync + 'static) -> Result<()> {
        if self.is_exclusive() {
            return Err(Error::new(ErrorKind::NotSupported, "one process at a time uses the memory"));
        }
        if !self.lock.join(process, is_dead) {
            return Err(Error::new(ErrorKind::Busy, "too many processes use the memory"));
        }
        self.core.get_mut().store_mut().follow(self.lock.members());
        let mut core = self.lock();
        core.sweep_dead();
        // Somebody uses it.
        core.store().latch().check()?;
        core.store_mut().write_superblock(false)
    }
}

impl<P: Pmem> Drop for ScmDevice<P> {
    fn drop(&mut self) {
        if self.lock.members().member() != 0 {
            let broken = self.lock.lock();
            // Nothing that is shared can be believed of a memory that is gone, nor is anything of
            // it left to anybody.
            if self.memory.failure().is_none() {
                self.core.get_mut().arrive(broken);
                self.lock.leave();
                self.core.get_mut().leave_words();
            }
            self.lock.unlock();
        }
    }
}
