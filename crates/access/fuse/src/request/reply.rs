//! The way back to a program that wrote: at once, or later and from another thread.

use fuser::{Errno, ReplyWrite};
use onode_ring::Ticket;

/// The way back to a program that wrote.
pub(crate) trait WriteReply {
    /// Answers at once.
    fn now(self, written: Result<u32, Errno>);
    /// The answer comes later, from another thread.
    fn later(self) -> LateReply;
}

/// An answer to a write that comes later. If it is dropped, the answer is an input/output error.
pub(crate) enum LateReply {
    Classic(ReplyWrite),
    Ring(Ticket),
}

impl WriteReply for LateReply {
    fn now(self, done: Result<u32, Errno>) {
        match (self, done) {
            (Self::Classic(reply), done) => reply.now(done),
            (Self::Ring(ticket), Ok(length)) => ticket.answer(0, &written(length)),
            (Self::Ring(ticket), Err(errno)) => ticket.answer(errno.code(), &[]),
        }
    }

    fn later(self) -> LateReply {
        self
    }
}

/// The answer to a write by io_uring (`fuse_write_out`).
#[allow(clippy::host_endian_bytes, reason = "the kernel speaks the processor's own byte order")]
pub(crate) fn written(length: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes
}
