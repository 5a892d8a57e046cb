//! A thread's connection to the kernel: slots that wait for requests, and answers that fetch the
//! next ones.
#![allow(unsafe_code, reason = "the kernel is handed memory that has to live while a slot waits")]

use crate::mailbox::{Letter, Mailbox};
use crate::policy::Policy;
use crate::slot::{Message, Slot};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Commands of the kernel (`enum fuse_uring_cmd`).
const REGISTER: u32 = 1;
const COMMIT_AND_FETCH: u32 = 2;
/// A slot is two pieces of memory: header and payload.
const VECTORS: u32 = 2;
/// Where the number of pieces stands in a submission entry (`io_uring_sqe.len`).
const LENGTH_AT: usize = 24;

/// What wakes the thread is no slot.
const MAILBOX: u64 = u64::MAX;
/// Slots at most: each request that is answered later keeps one, and the kernel lets only some
/// wait.
const SLOTS_MAX: usize = 1024;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is answered: 0 and so many bytes that lie in the payload, or the number of an error.
    Answered {
        /// 0, or the number of an error.
        error: i32,
        /// Bytes of the payload.
        length: usize,
    },
    /// Its ticket answers it, and has been taken from the message.
    Later,
}

/// What is done for a queue some of whose requests may be stuck; it must not wait.
pub type Kick = Box<dyn Fn(u16) + Send>;

/// The slots of one thread. They stay with the kernel until this is dropped.
pub struct Ring {
    // Dropped first: from then on the kernel does not touch the memory of the slots.
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    device: OwnedFd,
    slots: Vec<Slot>,
    payload_bytes: usize,
    /// What the kernel told and nobody has looked at: of what, and the result.
    done: Vec<(u64, i32)>,
    mailbox: Arc<Mailbox>,
    policy: Option<Policy>,
    /// Is told of a queue some of whose requests may be stuck.
    kick: Option<Kick>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Ring of {} slots", self.slots.len())
    }
}

impl Ring {
    /// Hands one slot to each of `queues` of the mount behind `device`, each with room for
    /// `payload_bytes`. The thread that calls this is the one that serves.
    ///
    /// # Errors
    /// That of the kernel: there is no such queue, too little room, or the mount does not want it.
    pub fn new(device: BorrowedFd<'_>, queues: &[u16], payload_bytes: usize) -> io::Result<Self> {
        let ring = IoUring::<squeue::Entry128, cqueue::Entry>::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_cqsize(2 * SLOTS_MAX as u32)
            .build(SLOTS_MAX as u32 / 8)?;
        let mut made = Self {
            ring,
            device: device.try_clone_to_owned()?,
            slots: Vec::new(),
            payload_bytes,
            done: Vec::new(),
            mailbox: Arc::new(Mailbox::new()?),
            policy: None,
            kick: None,
        };
        made.look_into_mailbox()?;
        queues.iter().try_for_each(|queue| made.add(*queue))?;
        made.ring.submit()?;
        // What waits is not heard of; what failed is.
        made.take_done();
        match made.done.iter().find(|(_, result)| *result < 0) {
            Some((_, failed)) => Err(io::Error::from_raw_os_error(-failed)),
            None => Ok(made),
        }
    }

    /// Where others put what they have for this ring.
    #[must_use]
    pub fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.mailbox)
    }

    /// Lets the thread have another scheduling policy while it is busy.
    #[must_use]
    pub fn with_policy(mut self, policy: Option<Policy>) -> Self {
        self.policy = policy;
        self
    }

    /// `kick` is called when a request is to be answered later and may have to wait for others of
    /// the queue it is told: those that came while all slots were taken stay with the kernel until
    /// an answer fetches them, and the new slot that is there by then has none to give. Any request
    /// on that queue's processor will do.
    #[must_use]
    pub fn with_kick(mut self, kick: Kick) -> Self {
        self.kick = Some(kick);
        self
    }

    /// Has each request answered by `serve`, until the mount ends or the mailbox says so.
    ///
    /// # Errors
    /// That of the kernel.
    pub fn serve(mut self, mut serve: impl FnMut(Message<'_>) -> Outcome) -> io::Result<()> {
        let mut done = Vec::new();
        loop {
            if self.done.is_empty() {
                match self.ring.submit_and_wait(1) {
                    Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                    _ => self.take_done(),
                }
            }
            std::mem::swap(&mut done, &mut self.done);
            for (of, result) in done.drain(..) {
                if of == MAILBOX {
                    let letters = self.mailbox.take();
                    if self.mailbox.stops() {
                        return Ok(());
                    }
                    letters.into_iter().try_for_each(|letter| self.post(letter))?;
                    self.look_into_mailbox()?;
                    continue;
                }
                match -result {
                    0 => self.one(of as usize, &mut serve)?,
                    // The mount has ended.
                    libc::ENOTCONN | libc::ECANCELED | libc::ENODEV => return Ok(()),
                    error => return Err(io::Error::from_raw_os_error(error)),
                }
            }
        }
    }

    fn take_done(&mut self) {
        self.done.extend(self.ring.completion().map(|one| (one.user_data(), one.result())));
    }

    /// Has the request answered that came into a slot.
    fn one(&mut self, index: usize, serve: &mut impl FnMut(Message<'_>) -> Outcome) -> io::Result<()> {
        let Some(slot) = self.slots.get_mut(index) else { return Err(io::Error::other("there is no such slot")) };
        slot.comes();
        if let Some(policy) = &mut self.policy {
            policy.came(slot.program());
        }
        match serve(slot.message(&self.mailbox, index)) {
            Outcome::Answered { error, length } => {
                slot.answer(error, length);
                if let Some(policy) = &mut self.policy {
                    policy.answers();
                }
                self.fetch(index)
            }
            // Who answers it may wait for another request, which needs a slot.
            Outcome::Later => {
                let queue = slot.queue();
                let has_more = self.slots.iter().any(|slot| slot.queue() == queue && slot.waits());
                if !has_more && self.slots.len() < SLOTS_MAX {
                    self.add(queue)?;
                    self.ring.submit()?;
                }
                if let Some(kick) = &self.kick {
                    kick(queue);
                }
                Ok(())
            }
        }
    }

    fn post(&mut self, letter: Letter) -> io::Result<()> {
        if let Some(slot) = self.slots.get_mut(letter.slot) {
            slot.answer_with(letter.error, &letter.payload);
        }
        self.fetch(letter.slot)
    }

    fn look_into_mailbox(&mut self) -> io::Result<()> {
        let descriptor = types::Fd(self.mailbox.event().as_raw_fd());
        let entry = opcode::PollAdd::new(descriptor, libc::POLLIN as u32).build().user_data(MAILBOX);
        self.push(&entry.into())
    }

    /// Hands a new slot to a queue.
    fn add(&mut self, queue: u16) -> io::Result<()> {
        let index = self.slots.len();
        self.slots.push(Slot::new(queue, self.payload_bytes));
        self.command(REGISTER, index, 0)
    }

    /// Hands over the answer in a slot, which then waits for the next request.
    fn fetch(&mut self, index: usize) -> io::Result<()> {
        let commit_id = self.slots.get(index).map_or(0, Slot::commit_id);
        self.command(COMMIT_AND_FETCH, index, commit_id)
    }

    fn command(&mut self, command: u32, index: usize, commit_id: u64) -> io::Result<()> {
        let Some(slot) = self.slots.get_mut(index) else { return Err(io::Error::other("there is no such slot")) };
        // `fuse_uring_cmd_req`: flags, the request's number, the queue.
        let mut arguments = [0; 80];
        arguments[8..16].copy_from_slice(&commit_id.to_ne_bytes());
        arguments[16..18].copy_from_slice(&slot.queue().to_ne_bytes());
        let mut entry = opcode::UringCmd80::new(types::Fd(self.device.as_raw_fd()), command)
            .addr(Some(slot.vectors() as u64))
            .cmd(arguments)
            .build()
            .user_data(index as u64);
        if command == REGISTER {
            // SAFETY: the entry is 128 bytes laid out as the kernel's `io_uring_sqe`, whose length
            // stands there as 32 bits, aligned; the crate has no call that sets it.
            unsafe { (&raw mut entry).cast::<u8>().add(LENGTH_AT).cast::<u32>().write(VECTORS) };
        }
        slot.wait();
        self.push(&entry)
    }

    /// Puts an entry where the next system call takes it from.
    fn push(&mut self, entry: &squeue::Entry128) -> io::Result<()> {
        // SAFETY: the memory of a slot stays where it is until the ring is gone, and the device and
        // the mailbox stay open as long.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }
}
