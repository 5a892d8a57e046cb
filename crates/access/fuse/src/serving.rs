//! What the server threads of a mount share, and what each does around a request.
//!
//! Keeps true: a request is counted before it is served, none is served after a panic, and between
//! two of them a thread waits as `waiting` says. What a request means is the business of `adaptor`.

use crate::opening::{Opening, closing_tells};
use crate::options::{Atime, Options};
use crate::request::commands::keys::KeysOfMount;
use crate::request::commands::transactions::Transacted;
use crate::request::counts::{Kind, Requests};
use crate::request::faces::Faces;
use crate::request::page_cache::PageCache;
use crate::request::place::Place;
use crate::request::place::lost::RootBefore;
use crate::request::place::numbers::{state, transaction};
use crate::request::set_id::SetId;
use crate::request::snapshots::Shown;
use crate::transport::breakdown::Breakdown;
use crate::transport::late::Late;
use crate::transport::waiting::Waiting;
use fuser::{Errno, INodeNo, InitFlags};
use onode::{Result, Volume};
use onode_fs::FileSystem;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long the kernel may believe what it knows; it drops what it changes itself.
const TTL: Duration = Duration::from_secs(3600);
/// Attributes of the root directory whose names begin so are views of the mount. They can be read
/// and are not listed.
pub const VIEW_PREFIX: &str = "onode.";
/// How views begin that only the super-user may see: they have the content of all files.
pub const SEND_VIEW: &str = "send.";

/// Makes the view of a name, which comes without [`VIEW_PREFIX`]; `None` if there is no such view.
/// A view may tell what the kernel asked for.
pub type Views = Box<dyn Fn(&str, &Requests) -> Option<Vec<u8>> + Send + Sync>;

/// The volume with what it takes to serve it.
pub(crate) struct Adaptor {
    pub(crate) files: Arc<FileSystem>,
    pub(crate) root_before: RootBefore,
    pub(crate) views: Views,
    pub(crate) faces: Faces,
    pub(crate) transacted: Transacted,
    pub(crate) keys: KeysOfMount,
    pub(crate) snapshots: Shown,
    pub(crate) writeback: bool,
    pub(crate) is_shared: bool,
    /// Every read of a link comes here, too.
    pub(crate) keeps_links: bool,
    /// How long the kernel may believe what it knows. Where others change the files without it: not
    /// at all.
    pub(crate) ttl: Duration,
    wanted: Opening,
    /// What is left of it after the kernel has said what it can do.
    agreed: OnceLock<Opening>,
    pub(crate) closing_tells: bool,
    pub(crate) page_cache: Arc<PageCache>,
    pub(crate) set_id: SetId,
    pub(crate) requests: Arc<Requests>,
    pub(crate) waiting: Waiting,
    breakdown: Arc<Breakdown>,
}

impl Adaptor {
    pub(crate) fn new(volume: &Volume, options: &Options, views: Views, late: Late) -> Result<Self> {
        let Late { notifier, device, breakdown } = late;
        let files = Arc::clone(volume.files());
        let transacted = Transacted::new(volume, options, Arc::clone(&notifier));
        let faces = Faces::new(volume.block_faces().to_vec(), transacted.is_offered());
        let is_shared = files.device().share().is_some();
        Ok(Self {
            writeback: options.writeback && !is_shared,
            is_shared,
            keeps_links: !is_shared && (options.atime != Atime::Strict || options.read_only),
            ttl: if is_shared { Duration::ZERO } else { TTL },
            wanted: Opening::wanted(is_shared, options),
            agreed: OnceLock::new(),
            // The close of a block device syncs it.
            closing_tells: closing_tells(is_shared, options) || !faces.is_empty(),
            page_cache: Arc::new(PageCache::start(&files, Arc::clone(&notifier))?),
            keys: KeysOfMount::new(volume, Arc::clone(&notifier)),
            set_id: SetId::new(notifier),
            requests: Arc::new(Requests::new()),
            waiting: Waiting::new(options.spin, device),
            breakdown,
            root_before: RootBefore::new(&files),
            files,
            views,
            faces,
            transacted,
            snapshots: Shown::new(volume),
        })
    }

    /// The file system that a number belongs to.
    pub(crate) fn at(&self, number: INodeNo) -> std::result::Result<Place<'_>, Errno> {
        if transaction::owns(number) {
            self.transacted.place(number)
        } else if state::owns(number) {
            self.snapshots.place(number)
        } else {
            Ok(Place::Main(&self.files))
        }
    }

    /// How the kernel gets at content.
    pub(crate) fn opening(&self) -> Opening {
        *self.agreed.get().unwrap_or(&self.wanted)
    }

    /// What this mount wants of a kernel that can do so much, beside what every mount wants.
    pub(crate) fn agree(&self, capabilities: InitFlags) -> InitFlags {
        let opening = *self.agreed.get_or_init(|| self.wanted.with(capabilities, self.is_shared));
        let mut flags = opening.flags();
        if self.writeback {
            flags |= InitFlags::FUSE_WRITEBACK_CACHE;
        }
        if self.keeps_links {
            flags |= InitFlags::FUSE_CACHE_SYMLINKS;
        }
        if self.requests.come_by_io_uring() {
            self.requests.by_io_uring(capabilities.contains(InitFlags::FUSE_OVER_IO_URING));
            flags |= InitFlags::FUSE_OVER_IO_URING;
        }
        flags
    }

    /// What ends all threads that serve when one has panicked.
    pub(crate) fn breakdown(&self) -> &Breakdown {
        &self.breakdown
    }

    /// To be called first by what answers a request from the device, and held until it is answered.
    pub(crate) fn serve(&self, kind: Kind) -> Served<'_> {
        self.waiting.begin();
        self.begin(kind, true)
    }

    /// The same for a request that came by io_uring: there nobody waits actively for the next one.
    pub(crate) fn serve_on_ring(&self, kind: Kind) -> Served<'_> {
        self.begin(kind, false)
    }

    fn begin(&self, kind: Kind, waits: bool) -> Served<'_> {
        self.breakdown.stop_here();
        self.requests.begin(kind);
        Served { adaptor: self, waits }
    }
}

/// A request that is being served. When this is dropped it was answered, and its thread waits for
/// the next one.
pub(crate) struct Served<'a> {
    adaptor: &'a Adaptor,
    waits: bool,
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        self.adaptor.requests.end();
        if std::thread::panicking() {
            self.adaptor.breakdown.come();
        } else if self.waits {
            self.adaptor.waiting.wait();
        }
    }
}
