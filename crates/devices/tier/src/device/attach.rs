//! The fast disk of a mounted volume comes and goes, and the big one goes on on others.
//!
//! It goes when the big disk has everything. It comes back as one that joins at a mount does: with
//! its copies, which are compared with checksums as always, and with an empty log.

use crate::core::Core;
use crate::device::options::NewFast;
use crate::device::{TierDevice, open_fast};
use crate::disks::fast_disk::FastDisk;
use crate::fast::{Fast, FastOptions, Identity};
use crate::medium::errors::invalid;
use crate::recover::join::{self, Joined};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use onode_media::BlockDev;
use onode_object::powers::Attach;
use onode_object::{Error, ErrorKind, Result};

/// Finds disks of a volume while that is mounted.
pub trait FindDisks: Send + Sync {
    /// The fast disk with what is on it.
    ///
    /// # Errors
    /// Those of opening it; `Invalid` for what is no disk.
    fn known(&self) -> Result<Box<dyn BlockDev>>;

    /// The fast disk as an empty one, divided as it was `before`.
    ///
    /// # Errors
    /// As [`known`](Self::known); `Invalid` also if there is something on it that people
    /// would not like to lose.
    fn empty(&self, before: Option<FastOptions>) -> Result<NewFast>;

    /// An empty disk by its name, on which the big one of the volume with the number `uuid` can go
    /// on.
    ///
    /// # Errors
    /// As [`empty`](Self::empty).
    fn another(&self, place: &str, uuid: [u8; 16]) -> Result<Box<dyn BlockDev>>;

    /// What the fast disk is called, if there may be one.
    fn fast_name(&self) -> Option<String>;

    /// An empty disk at another place that can be the fast one, divided as it was `before`. A file
    /// that is not there is made, with so many `bytes`.
    ///
    /// # Errors
    /// As [`empty`](Self::empty).
    fn fast_at(&self, place: &str, bytes: Option<u64>, before: Option<FastOptions>) -> Result<NewFast>;

    /// From now on the fast disk is the one at that place.
    fn fast_is_at(&self, place: &str);
}

impl Attach for TierDevice {
    fn part(&self) -> &'static str {
        "the fast disk"
    }

    fn is_attached(&self) -> bool {
        self.has_fast()
    }

    fn detach(&self) -> Result<()> {
        self.detach_fast()
    }

    fn attach(&self, empty: bool) -> Result<()> {
        self.attach_found(empty)
    }
}

impl TierDevice {
    /// Says who finds disks that are to take part from now on.
    pub fn set_finder(&self, finder: Arc<dyn FindDisks>) {
        *self.finder.lock() = Some(finder);
    }

    /// The fast disk that the finder knows takes part from now on.
    ///
    /// # Errors
    /// As [`attach_fast`](Self::attach_fast); `NotSupported` without a finder.
    pub(crate) fn attach_found(&self, empty: bool) -> Result<()> {
        let before = {
            let core = self.volume.core.lock();
            core.check_writable()?;
            if core.disks().fast.lock().is_there() {
                return Err(invalid("there is a fast disk already"));
            }
            core.superblock().division.as_ref().map(FastOptions::of)
        };
        let why = "nobody knows where the fast disk is";
        let finder = self.finder.lock().clone();
        let finder = finder.ok_or_else(|| Error::new(ErrorKind::NotSupported, why))?;
        if empty { self.attach_new_fast(finder.empty(before)?) } else { self.attach_fast(finder.known()?) }
    }

    /// Brings everything to the big disk and goes on without the fast one, which can be taken away
    /// then.
    ///
    /// # Errors
    /// `Invalid` if there is none; `Media`, `ReadOnly`.
    pub fn detach_fast(&self) -> Result<()> {
        let mut home = self.volume.home();
        if !home.disks.fast.lock().is_there() {
            return Err(invalid("there is no fast disk to detach"));
        }
        loop {
            home.checkpoint()?;
            let (_log, core) = (self.volume.log.lock(), self.volume.core.lock());
            // Somebody changed so much meanwhile that memory does not hold it.
            if core.has_spilled() {
                continue;
            }
            let mut slot = core.disks().fast.lock();
            // If that fails it is away all the same.
            slot.with(Fast::close);
            slot.lose(String::from("it was detached"));
            break;
        }
        home.notice_loss()
    }

    /// The fast disk of this volume takes part from now on, after it failed or was detached. Its
    /// copies are used, as far as what they are of did not change.
    ///
    /// # Errors
    /// `Invalid` if there is one already, or if it is not a fast disk of this volume; `Corrupt`,
    /// `Media`, `ReadOnly`.
    pub fn attach_fast(&self, disk: Box<dyn BlockDev>) -> Result<()> {
        self.take_fast(|core| open_fast(disk, core.superblock(), &core.options().fast))
    }

    /// The same with an empty fast disk. What was on it is gone.
    ///
    /// # Errors
    /// As [`attach_fast`](Self::attach_fast).
    pub fn attach_new_fast(&self, new: NewFast) -> Result<()> {
        self.take_fast(|core| {
            let identity = Identity { volume: core.superblock().uuid, own: new.uuid, session: 0 };
            Fast::format(new.disk, &identity, &new.options, &core.options().fast)
        })
    }

    fn take_fast(&self, open: impl FnOnce(&Core) -> Result<Fast>) -> Result<()> {
        let mut home = self.volume.home();
        // One that failed just now is given up first, with everything on the big disk.
        home.checkpoint()?;
        {
            let core = self.volume.core.lock();
            if core.disks().fast.lock().is_there() {
                return Err(invalid("there is a fast disk already"));
            }
            let mut fast = open(&core)?;
            if let Some(clock) = core.clock() {
                fast.set_clock(Arc::clone(clock));
            }
            *core.disks().fast.lock() = FastDisk::of(fast);
        }
        // It joins the session, and its log begins empty.
        match join::attach(&mut home, &Joined::default()) {
            Err(error) if error.kind == ErrorKind::Media => Err(home.fail(error)),
            joined => joined,
        }
    }
}
