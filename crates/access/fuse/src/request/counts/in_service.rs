//! Which requests are being served: each thread that serves notes when it begins with one and when
//! it has ended, with two stores to memory that is its own. Who looks twice can tell which of them
//! hang, without a lock and without a clock.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Threads that are looked after; of more nothing is known.
const THREADS_MAX: usize = 128;

/// A thread, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Server {
    /// Grows by one when a request begins and when it ends: odd while one is served.
    turns: AtomicU64,
    kind: AtomicUsize,
}

/// A request that is being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedRequest {
    /// The thread that serves it, as long as the mount lives.
    pub thread: usize,
    /// Tells it from all others that the thread serves.
    pub turn: u64,
    /// What is asked for.
    pub kind: &'static str,
}

/// The threads of one mount.
#[derive(Debug)]
pub(crate) struct InService {
    /// Tells it from those of other mounts of the process.
    number: u64,
    servers: Box<[Server]>,
    known: AtomicUsize,
}

thread_local! {
    /// Of which mount this thread serves requests, and where it notes that.
    static OWN: Cell<(u64, usize)> = const { Cell::new((0, 0)) };
}

impl InService {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            servers: (0..THREADS_MAX).map(|_| Server::default()).collect(),
            known: AtomicUsize::new(0),
        }
    }

    fn own(&self) -> Option<&Server> {
        let (mut mount, mut place) = OWN.get();
        if mount != self.number {
            (mount, place) = (self.number, self.known.fetch_add(1, Ordering::Relaxed));
            OWN.set((mount, place));
        }
        self.servers.get(place)
    }

    /// This thread begins with a request.
    pub(crate) fn begin(&self, kind: usize) {
        if let Some(server) = self.own() {
            server.kind.store(kind, Ordering::Relaxed);
            server.turns.fetch_add(1, Ordering::Release);
        }
    }

    /// It has ended.
    pub(crate) fn end(&self) {
        if let Some(server) = self.own() {
            server.turns.fetch_add(1, Ordering::Release);
        }
    }

    /// What is served now, with the names of all kinds.
    pub(crate) fn now<'a>(&'a self, names: &'a [&'static str]) -> impl Iterator<Item = ServedRequest> + 'a {
        self.servers.iter().enumerate().filter_map(|(thread, server)| {
            let turn = server.turns.load(Ordering::Acquire);
            let kind = names.get(server.kind.load(Ordering::Relaxed))?;
            (turn % 2 == 1).then_some(ServedRequest { thread, turn, kind })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_in_service_until_it_has_ended() {
        let (one, other) = (InService::new(), InService::new());
        let names = ["read", "write"];
        let now = |of: &InService| of.now(&names).map(|it| (it.thread, it.turn, it.kind)).collect::<Vec<_>>();
        one.begin(1);
        std::thread::scope(|scope| scope.spawn(|| one.begin(0)).join()).unwrap();
        assert_eq!(now(&one), [(0, 1, "write"), (1, 1, "read")]);
        one.end();
        assert_eq!(now(&one), [(1, 1, "read")]);
        one.begin(0);
        assert_eq!(now(&one), [(0, 3, "read"), (1, 1, "read")]);
        assert!(now(&other).is_empty());
    }
}
