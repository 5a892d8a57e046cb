//! Requests that are not answered: a disk that hangs, or a thread of the server that does.
//!
//! A thread of its own looks now and then which requests are being served. It asks nothing of the
//! volume, some of which such a request may hold. So the watch may not come to tell of what hangs:
//! this thread does, and the watch does the rest.

use super::health::ConditionReport;
use onode::{Condition, Error, Result, Severity};
use onode_base::sync::{Mutex, rank};
use onode_console::Output;
use onode_fuse::{Requests, ServedRequest};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(5);
/// So many looks at the same request, and it is told.
const LOOKS: u32 = 6;

/// The condition that this thread tells of.
pub const CODE: &str = "request-hangs";

/// What hangs now, for reports.
pub type Hanging = Arc<Mutex<Option<Condition>, rank::WatchHanging>>;

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Overdue {
    _stop: Sender<()>,
}

/// A request that was there at an earlier look.
struct Earlier {
    served: ServedRequest,
    looks: u32,
}

/// What hangs for longest, for how many looks, and how many hang.
#[derive(Debug, PartialEq, Eq)]
struct Hangs {
    kind: &'static str,
    looks: u32,
    count: usize,
}

/// Which requests hang.
#[derive(Default)]
struct Looks {
    seen: Vec<Earlier>,
}

impl Looks {
    /// Takes note of what is served now.
    fn look(&mut self, now: impl Iterator<Item = ServedRequest>) -> Option<Hangs> {
        let before = std::mem::take(&mut self.seen);
        let looks =
            |served: &ServedRequest| before.iter().find(|seen| seen.served == *served).map_or(0, |seen| seen.looks + 1);
        self.seen = now.map(|served| Earlier { looks: looks(&served), served }).collect();
        let hanging = || self.seen.iter().filter(|seen| seen.looks >= LOOKS);
        let longest = hanging().max_by_key(|seen| seen.looks)?;
        Some(Hangs { kind: longest.served.kind, looks: longest.looks, count: hanging().count() })
    }
}

/// What people hear of it.
fn condition(hangs: Hangs) -> Condition {
    let Hangs { kind, looks, count } = hangs;
    let seconds = u64::from(looks) * PERIOD.as_secs();
    let others = if count > 1 { format!(", and {} others neither", count - 1) } else { String::new() };
    let text = format!("a request ({kind}) has not been answered for {seconds} s{others}");
    let mut told = Condition::new(CODE, Severity::Degraded, text);
    told.remedy = format!(
        "see whether the medium or what it lies on hangs (`dmesg`); if not, `gdb -batch -p {} -ex 'thread apply all \
         bt'` shows what the server waits for: please report it",
        std::process::id()
    );
    told
}

impl Overdue {
    /// Looks after the requests of a mount. What hangs is logged, told `aloud`, and in `hanging` as
    /// long as it does.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(requests: &Arc<Requests>, name: String, hanging: &Hanging, aloud: Option<Output>) -> Result<Self> {
        let (stop, stopped) = channel();
        let (requests, hanging) = (Arc::downgrade(requests), Arc::clone(hanging));
        let task = move || run(&requests, &name, &hanging, aloud, &stopped);
        std::thread::Builder::new()
            .name("overdue".to_owned())
            .spawn(task)
            .map_err(|error| Error::new(onode::Class::General, "cannot start a thread", error.to_string()))?;
        Ok(Self { _stop: stop })
    }
}

fn run(requests: &Weak<Requests>, name: &str, hanging: &Hanging, aloud: Option<Output>, stopped: &Receiver<()>) {
    let mut looks = Looks::default();
    while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
        let Some(requests) = requests.upgrade() else { return };
        let found = looks.look(requests.served()).map(condition);
        let was_told = std::mem::replace(&mut *hanging.lock(), found.clone()).is_some();
        if let Some(found) = found.filter(|_| !was_told) {
            let line = format!("{name}: {}", ConditionReport::from(found));
            tracing::warn!("{line}");
            if let Some(output) = &aloud {
                output.warning(&line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_not_answered_is_told_after_half_a_minute() {
        let served = |thread, turn| ServedRequest { thread, turn, kind: "rename" };
        let mut looks = Looks::default();
        for turn in 0..20 {
            // The second thread goes on, and begins another one each time.
            let found = looks.look([served(0, 1), served(1, 2 * turn + 1)].into_iter());
            assert_eq!(found, (turn >= 6).then_some(Hangs { kind: "rename", looks: turn as u32, count: 1 }));
        }
        let found = looks.look([served(0, 1)].into_iter()).map(condition).unwrap();
        assert_eq!(found.text, "a request (rename) has not been answered for 100 s");
        assert!(looks.look([served(0, 3)].into_iter()).is_none());
    }
}
