//! The threads that serve a mount by io_uring: some for each processor, each kept on its own, so
//! that a request is served where the program waits for it.

use crate::serving::Adaptor;
use crate::transport::greeting::REQUEST_BYTES_MAX;
use crate::transport::ring;
use onode_ring::{Mailbox, Policies, Ring, may_run_on, pin_to, processors};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Threads if nothing is said, divided among the processors: while some wait for the medium, the
/// others serve, and one flush is for all syncs that wait. The kernel takes the one that answered
/// last, so those that are not needed cost nothing.
const THREADS_USUAL: usize = 16;

/// How long a thread that failed waits for the others: one of them may hang.
const PATIENCE: Duration = Duration::from_secs(10);

/// All threads of a mount.
pub(crate) struct Rings {
    threads: Vec<JoinHandle<()>>,
    mailboxes: Vec<Arc<Mailbox>>,
    ends: Receiver<io::Result<()>>,
}

/// Says how a thread has ended.
struct End {
    said: Sender<io::Result<()>>,
    how: io::Result<()>,
}

impl Drop for End {
    fn drop(&mut self) {
        let how = std::mem::replace(&mut self.how, Ok(()));
        let panicked = || Err(io::Error::other("a server thread panicked"));
        // Nobody listens any more if the others have been waited for long enough.
        let _ = self.said.send(if std::thread::panicking() { panicked() } else { how });
    }
}

/// What one thread serves.
struct Share {
    processor: u16,
    queues: Vec<u16>,
}

/// Divides the queues of all processors among at least so many threads, and as many for each
/// processor. A queue of a processor on which this process may not run is left to the threads of
/// the others.
fn shares(all: u16, mine: &[u16], threads: Option<usize>) -> Vec<Share> {
    let each = threads.unwrap_or(THREADS_USUAL).div_ceil(mine.len().max(1));
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
    pub(crate) fn start(adaptor: &Arc<Adaptor>, device: impl AsFd, threads: Option<usize>) -> io::Result<Self> {
        let all = processors()?;
        let device = Arc::new(device.as_fd().try_clone_to_owned()?);
        let (begun, begins) = channel();
        let policies = Policies::start();
        let kicks = start_to_kick(adaptor)?;
        let (said, ends) = channel();
        let mut rings = Self { threads: Vec::new(), mailboxes: Vec::new(), ends };
        for share in shares(all, &may_run_on(all), threads) {
            let (adaptor, device, begun) = (Arc::clone(adaptor), Arc::clone(&device), begun.clone());
            let (policies, kicks, said) = (policies.clone(), kicks.clone(), said.clone());
            let name = format!("ring-{}", share.processor);
            let task = move || {
                let mut end = End { said, how: Ok(()) };
                pin_to(share.processor);
                match Ring::new(device.as_fd(), &share.queues, REQUEST_BYTES_MAX as usize) {
                    Ok(ring) => {
                        let _ = begun.send(Ok(ring.mailbox()));
                        drop(begun);
                        let policy = policies.map(|policies| policies.of_this_thread(share.processor));
                        // Without the thread there is no mount.
                        let kick = Box::new(move |queue| {
                            let _ = kicks.send(queue);
                        });
                        end.how = run(&adaptor, ring.with_policy(policy).with_kick(kick), &*device);
                    }
                    Err(error) => _ = begun.send(Err(error)),
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

    /// How many they are.
    pub(crate) const fn count(&self) -> usize {
        self.threads.len()
    }

    fn give_up(self, error: io::Error) -> io::Error {
        self.mailboxes.iter().for_each(|mailbox| mailbox.stop());
        let _ = self.join();
        error
    }

    /// Waits until all threads have ended; if one has failed, not for long for those that hang.
    ///
    /// # Errors
    /// That of a thread, or that one panicked.
    pub(crate) fn join(self) -> io::Result<()> {
        let mut ended = Ok(());
        for _ in &self.threads {
            let end = match ended {
                Ok(()) => self.ends.recv().ok(),
                Err(_) => self.ends.recv_timeout(PATIENCE).ok(),
            };
            match end {
                Some(end) => ended = ended.and(end),
                None => break,
            }
        }
        ended
    }
}

/// Starts the thread that asks the mount for something from a processor whose queue may have
/// requests that are stuck (see [`Ring::with_kick`]). It ends with the threads that serve.
fn start_to_kick(adaptor: &Arc<Adaptor>) -> io::Result<Sender<u16>> {
    let (kicks, received) = channel();
    let adaptor = Arc::clone(adaptor);
    let task = move || {
        for processor in received {
            pin_to(processor);
            // A mount that is not reached by its name any more is helped by the next request there.
            let _ = adaptor.breakdown().directory().map(rustix::fs::statfs);
        }
    };
    std::thread::Builder::new().name("kicks".to_owned()).spawn(task)?;
    Ok(kicks)
}

/// Whether the kernel has ended the mount behind `device`. What is at its directory then is not
/// ours to take away.
pub(crate) fn has_ended(device: impl AsFd) -> bool {
    let mut looked = [PollFd::new(&device, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut looked, Some(&at_once)).is_err() || looked[0].revents().contains(PollFlags::ERR)
}

fn run(adaptor: &Adaptor, ring: Ring, device: impl AsFd) -> io::Result<()> {
    match ring.serve(|message| ring::serve(adaptor, message)) {
        // What a slot is told when its mount ends depends on what it is about.
        Err(_) if has_ended(device) => Ok(()),
        Err(error) => {
            adaptor.breakdown().come();
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_is_served() {
        let many: Vec<u16> = (0..64).collect();
        let cases = [(1, &many[..1], None, 16), (2, &many[..2], Some(1), 2), (7, &many[2..4], Some(3), 4)];
        for (all, mine, threads, made) in cases.into_iter().chain([(64, &many[..], None, 64)]) {
            let shares = shares(all, mine, threads);
            assert!(shares.len() == made && shares.iter().all(|one| mine.contains(&one.processor)));
            let mut queues: Vec<u16> = shares.iter().flat_map(|one| one.queues.clone()).collect();
            queues.sort_unstable();
            queues.dedup();
            assert_eq!(queues, (0..all).collect::<Vec<_>>());
        }
    }
}
