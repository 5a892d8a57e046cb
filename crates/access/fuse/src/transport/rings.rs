//! The threads that serve a mount by io_uring: some for each processor, each kept on its own, so
//! that a request is served where the program waits for it.

use crate::serving::Adaptor;
use crate::transport::greeting::REQUEST_BYTES_MAX;
use crate::transport::ring;
use onode_ring::{Mailbox, Policies, Ring, may_run_on, pin_to, processors};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

/// Threads at least, divided among the processors: one that waits for the medium does not stop the
/// others.
const THREADS_LEAST: usize = 16;
/// Threads of one processor at least where that would be more.
const EACH_LEAST: usize = 2;

/// All threads of a mount.
pub(crate) struct Rings {
    threads: Vec<JoinHandle<io::Result<()>>>,
    mailboxes: Vec<Arc<Mailbox>>,
}

/// What one thread serves.
struct Share {
    processor: u16,
    queues: Vec<u16>,
}

/// Divides the queues of all processors among at least so many threads. A queue of a processor on
/// which this process may not run is left to the threads of the others.
fn shares(all: u16, mine: &[u16], threads: usize) -> Vec<Share> {
    let least = EACH_LEAST.min(THREADS_LEAST.div_ceil(mine.len().max(1)));
    let each = threads.div_ceil(mine.len().max(1)).max(least);
    let mut shares: Vec<Share> = Vec::new();
    for _ in 0..each {
        shares.extend(mine.iter().map(|processor| Share { processor: *processor, queues: vec![*processor] }));
    }
    let others = (0..all).filter(|one| !mine.contains(one));
    for (queue, at) in others.zip((0..shares.len()).cycle()) {
        shares[at].queues.push(queue);
    }
    shares
}

impl Rings {
    /// Starts the threads for the mount behind `device`; on return all queues have their slots.
    ///
    /// # Errors
    /// That of the first thread that could not begin; the others have ended then, and the mount
    /// serves nothing.
    pub(crate) fn start(adaptor: &Arc<Adaptor>, device: impl AsFd, threads: usize) -> io::Result<Self> {
        let all = processors()?;
        let device = Arc::new(device.as_fd().try_clone_to_owned()?);
        let (begun, begins) = channel();
        let policies = Policies::start();
        let mut rings = Self { threads: Vec::new(), mailboxes: Vec::new() };
        for share in shares(all, &may_run_on(all), threads) {
            let (adaptor, device, begun) = (Arc::clone(adaptor), Arc::clone(&device), begun.clone());
            let policies = policies.clone();
            let name = format!("ring-{}", share.processor);
            let task = move || {
                pin_to(share.processor);
                match Ring::new(device.as_fd(), &share.queues, REQUEST_BYTES_MAX as usize) {
                    Ok(ring) => {
                        let _ = begun.send(Ok(ring.mailbox()));
                        drop(begun);
                        run(&adaptor, ring.with_policy(policies.map(|policies| policies.of_this_thread())))
                    }
                    Err(error) => {
                        let _ = begun.send(Err(error));
                        Ok(())
                    }
                }
            };
            let thread = std::thread::Builder::new().name(name).spawn(task);
            match thread {
                Ok(thread) => rings.threads.push(thread),
                Err(error) => return Err(rings.give_up(error)),
            }
        }
        drop(begun);
        let mut failed = None;
        for result in begins {
            match result {
                Ok(mailbox) => rings.mailboxes.push(mailbox),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) => Err(rings.give_up(error)),
            None if rings.mailboxes.len() < rings.threads.len() => Err(rings.give_up(io::Error::other("a panic"))),
            None => {
                adaptor.breakdown().has_rings(rings.mailboxes.clone());
                Ok(rings)
            }
        }
    }

    fn give_up(self, error: io::Error) -> io::Error {
        self.mailboxes.iter().for_each(|mailbox| mailbox.stop());
        let _ = self.join();
        error
    }

    /// Waits until all threads have ended.
    ///
    /// # Errors
    /// That of a thread, or that one panicked.
    pub(crate) fn join(self) -> io::Result<()> {
        let ends: Vec<_> = self.threads.into_iter().map(JoinHandle::join).collect();
        let panicked = |_| Err(io::Error::other("a server thread panicked"));
        ends.into_iter().try_for_each(|end| end.unwrap_or_else(panicked))
    }
}

fn run(adaptor: &Adaptor, ring: Ring) -> io::Result<()> {
    let served = ring.serve(|message| ring::serve(adaptor, message));
    if served.is_err() {
        adaptor.breakdown().come();
    }
    served
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_is_served() {
        let many = (0..64).collect::<Vec<_>>();
        assert_eq!(shares(64, &many, 8).len(), 64);
        for (all, mine, threads) in [(1, vec![0], 1), (2, vec![0, 1], 8), (7, vec![2, 3], 3), (64, vec![5], 1)] {
            let shares = shares(all, &mine, threads);
            assert!(shares.len() >= threads.max(2) && shares.iter().all(|one| mine.contains(&one.processor)));
            let mut queues: Vec<u16> = shares.iter().flat_map(|one| one.queues.clone()).collect();
            queues.sort_unstable();
            queues.dedup();
            assert_eq!(queues, (0..all).collect::<Vec<_>>());
        }
    }
}
