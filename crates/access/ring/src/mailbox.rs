//! Answers that other threads have for requests of a ring.
//!
//! A ring belongs to the thread that made it. Who answers later, in another thread, puts the answer
//! here and wakes that thread.

use onode_base::sync::{Mutex, rank};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::mem::take;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An answer that came later.
pub(crate) struct Letter {
    pub(crate) slot: usize,
    /// 0, or the number of an error.
    pub(crate) error: i32,
    pub(crate) payload: Vec<u8>,
}

/// Where a ring finds what others have for it.
#[derive(Debug)]
pub struct Mailbox {
    event: OwnedFd,
    letters: Mutex<Vec<Letter>, rank::RingLetters>,
    stops: AtomicBool,
}

impl std::fmt::Debug for Letter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Letter for slot {}", self.slot)
    }
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event, letters: Mutex::default(), stops: AtomicBool::new(false) })
    }

    /// Ends the ring: it serves nothing more. What is asked of its slots from then on is not
    /// answered before the mount has ended.
    pub fn stop(&self) {
        self.stops.store(true, Ordering::SeqCst);
        self.wake();
    }

    pub(crate) fn stops(&self) -> bool {
        self.stops.load(Ordering::SeqCst)
    }

    pub(crate) fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    fn wake(&self) {
        // It fails when it has been woken so often that it will come anyway.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    fn put(&self, letter: Letter) {
        self.letters.lock().push(letter);
        self.wake();
    }

    /// Everything that is there; it wakes nobody any more.
    pub(crate) fn take(&self) -> Vec<Letter> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.event, &mut count);
        take(&mut *self.letters.lock())
    }
}

/// The right to answer one request, once, from any thread. If it is dropped, the answer is an
/// input/output error.
#[derive(Debug)]
pub struct Ticket {
    mailbox: Arc<Mailbox>,
    slot: Option<usize>,
}

impl Ticket {
    pub(crate) const fn new(mailbox: Arc<Mailbox>, slot: usize) -> Self {
        Self { mailbox, slot: Some(slot) }
    }

    /// Answers: with `payload`, or with the number of an error if it is not 0.
    pub fn answer(mut self, error: i32, payload: &[u8]) {
        if let Some(slot) = self.slot.take() {
            self.mailbox.put(Letter { slot, error, payload: payload.to_vec() });
        }
    }

    /// The request is answered without it after all, at once.
    pub fn give_up(mut self) {
        self.slot = None;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.mailbox.put(Letter { slot, error: libc::EIO, payload: Vec::new() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ticket_brings_one_answer() {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        Ticket::new(Arc::clone(&mailbox), 1).answer(0, b"yes");
        drop(Ticket::new(Arc::clone(&mailbox), 2));
        Ticket::new(Arc::clone(&mailbox), 3).give_up();
        let found: Vec<_> = mailbox.take().into_iter().map(|one| (one.slot, one.error, one.payload)).collect();
        assert_eq!(found, [(1, 0, b"yes".to_vec()), (2, libc::EIO, Vec::new())]);
        assert!(mailbox.take().is_empty() && !mailbox.stops());
        mailbox.stop();
        assert!(mailbox.stops());
    }
}
