//! Content that the kernel keeps although the file has another one by now, and how it is made to
//! let go of it.
//!
//! Three cases the kernel does not see to. It forgets what it keeps of a file before a write that
//! passes its cache (`O_DIRECT`), but not after one that nobody waits for (AIO, io_uring): what a
//! reader brought in meanwhile would stay for good. And it cannot know of changes that others make
//! on a memory that this mount shares: what it keeps there for mappings is given up once a second.
//! And it asks for holes without writing what it keeps of a file: what a program stored through a
//! mapping would be none, and a copy would leave it out.
//!
//! Letting go waits for pages that are being read, and those wait for this server. So a thread of
//! its own does it, and answers the write when it is done: after the answer no reader finds the old
//! bytes.

use crate::request::reply::{LateReply, Reply};
use crate::transport::late::LateNotifier;
use fuser::INodeNo;
use onode::{Class, Error, Result};
use onode_base::sync::{Mutex, rank};
use onode_fs::FileSystem;
use std::collections::BTreeSet;
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How old at most what a mapping shows of a shared memory may be.
const PERIOD: Duration = Duration::from_secs(1);
/// Files of a shared memory whose content the kernel may keep; one more and all are given up at
/// once.
const FILES_MAX: usize = 4096;

/// 64 files each: a few kilobytes, and most files are told apart from most others.
const PASSED_WORDS: usize = 1024;

/// A write that is done and not answered yet.
struct Written {
    number: INodeNo,
    offset: i64,
    length: u32,
    reply: LateReply<u32>,
}

/// A range that the kernel shall let go of before something is done.
struct Before {
    number: INodeNo,
    offset: i64,
    /// Nothing means all from the offset on.
    length: i64,
    act: Box<dyn FnOnce() + Send>,
}

enum Task {
    Written(Written),
    Before(Before),
    /// Everything that was brought in shall go.
    GiveUp,
}

/// The files of which the kernel may keep content that others change.
type Filled = Arc<Mutex<BTreeSet<u64>, rank::MountFilled>>;

/// The thread that makes the kernel let go of content; it ends when this is dropped.
pub(crate) struct PageCache {
    tasks: Sender<Task>,
    /// A bit for each file, and for others, that went through the kernel's cache: of what never did
    /// it keeps nothing.
    passed: Box<[AtomicU64]>,
    filled: Option<Filled>,
}

impl PageCache {
    /// Starts the thread for a mount of `files`.
    pub(crate) fn start(files: &Arc<FileSystem>, notifier: LateNotifier) -> Result<Self> {
        let (tasks, received) = channel();
        let filled = files.device().share().is_some().then(Filled::default);
        let keeper = PageKeeper { notifier, shared: filled.clone().map(|filled| (Arc::clone(files), filled)) };
        std::thread::Builder::new()
            .name("page cache".to_owned())
            .spawn(move || keeper.run(&received))
            .map_err(|error| Error::new(Class::General, "cannot start a thread", error.to_string()))?;
        Ok(Self { tasks, passed: (0..PASSED_WORDS).map(|_| AtomicU64::new(0)).collect(), filled })
    }

    /// Answers a write past the kernel's cache once the kernel has let go of what it keeps of the
    /// range.
    pub(crate) fn written(&self, number: INodeNo, offset: u64, length: u32, reply: impl Reply<u32>) {
        if !self.may_hold(number) {
            return reply.now(Ok(length));
        }
        // The kernel has no larger offsets either.
        let offset = i64::try_from(offset).unwrap_or(i64::MAX);
        self.give(Task::Written(Written { number, offset, length, reply: reply.later() }));
    }

    /// Does `act` when the kernel has let go of what it keeps of a range, up to `end` or to the end
    /// of the file: what programs stored there through mappings, or what it has yet to write, was
    /// written by then. At once if it keeps nothing.
    pub(crate) fn when_written(
        &self,
        number: INodeNo,
        offset: i64,
        end: Option<i64>,
        act: impl FnOnce() + Send + 'static,
    ) {
        if !self.may_hold(number) {
            return act();
        }
        let length = end.map_or(0, |end| end - offset);
        self.give(Task::Before(Before { number, offset, length, act: Box::new(act) }));
    }

    /// Takes note that the kernel keeps content of a file from now on. To be called before the
    /// content is looked at: a write that looks here after it is done then misses none that has the
    /// bytes from before it.
    pub(crate) fn filled(&self, number: INodeNo) {
        let (word, bit) = self.passed_bit(number);
        if word.load(Ordering::SeqCst) & bit == 0 {
            word.fetch_or(bit, Ordering::SeqCst);
        }
        let Some(filled) = &self.filled else { return };
        let mut filled = filled.lock();
        filled.insert(number.0);
        if filled.len() > FILES_MAX {
            drop(filled);
            self.give(Task::GiveUp);
        }
    }

    fn passed_bit(&self, number: INodeNo) -> (&AtomicU64, u64) {
        let place = number.0 as usize % (PASSED_WORDS * 64);
        (&self.passed[place / 64], 1 << (place % 64))
    }

    /// Whether the kernel may hold content of a file.
    fn may_hold(&self, number: INodeNo) -> bool {
        let (word, bit) = self.passed_bit(number);
        word.load(Ordering::SeqCst) & bit != 0
    }

    fn give(&self, task: Task) {
        // Without the thread nobody waits for it: the mount is broken, and says so by then.
        match self.tasks.send(task) {
            Err(std::sync::mpsc::SendError(Task::Written(done))) => done.reply.now(Ok(done.length)),
            Err(std::sync::mpsc::SendError(Task::Before(before))) => (before.act)(),
            Err(std::sync::mpsc::SendError(Task::GiveUp)) | Ok(()) => {}
        }
    }
}

struct PageKeeper {
    notifier: LateNotifier,
    shared: Option<(Arc<FileSystem>, Filled)>,
}

impl PageKeeper {
    #[expect(clippy::disallowed_methods, reason = "it waits as long as people do; nothing of a volume depends on it")]
    fn run(&self, tasks: &Receiver<Task>) {
        let mut due = Instant::now() + PERIOD;
        let mut seen = 0;
        loop {
            let wait = match &self.shared {
                Some(_) => due.saturating_duration_since(Instant::now()),
                None => Duration::MAX,
            };
            match tasks.recv_timeout(wait) {
                Ok(Task::Written(done)) => {
                    self.let_go(done.number, done.offset, i64::from(done.length));
                    done.reply.now(Ok(done.length));
                }
                Ok(Task::Before(before)) => {
                    self.let_go(before.number, before.offset, before.length);
                    (before.act)();
                }
                Ok(Task::GiveUp) => self.give_up(),
                Err(RecvTimeoutError::Timeout) => {
                    if self.may_have_changed(&mut seen) {
                        self.give_up();
                    }
                    due = Instant::now() + PERIOD;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// A length of nothing means all from the offset on. A kernel that knows nothing of the file
    /// any more has nothing to let go of.
    fn let_go(&self, number: INodeNo, offset: i64, length: i64) {
        if let Some(notifier) = self.notifier.get() {
            let _ = notifier.inval_inode(number, offset, length);
        }
    }

    /// Whether others may have changed something since the time before. Of what they store through
    /// pointers nobody hears.
    fn may_have_changed(&self, seen: &mut u64) -> bool {
        let Some((files, _)) = self.shared.as_ref().filter(|(_, filled)| !filled.lock().is_empty()) else {
            return false;
        };
        let before = std::mem::replace(seen, files.changes_of_others());
        *seen != before || files.device().share().is_some_and(|share| share.has_others())
    }

    fn give_up(&self) {
        let Some((_, filled)) = &self.shared else { return };
        let filled = take(&mut *filled.lock());
        filled.into_iter().for_each(|number| self.let_go(INodeNo(number), 0, 0));
    }
}
