//! The way back to a program that asked: at once, or later and from another thread.

use fuser::{Errno, ReplyLseek, ReplyWrite};
use onode_ring::Ticket;

/// What a program is told that may have to wait for it.
pub(crate) trait Told: Sized + Send + 'static {
    /// The way back of the classic transport.
    type Classic: Send;
    /// Answers by that.
    fn tell(reply: Self::Classic, answer: Result<Self, Errno>);
    /// The answer by io_uring.
    fn bytes(self) -> [u8; 8];
}

/// How many bytes a write wrote (`fuse_write_out`).
impl Told for u32 {
    type Classic = ReplyWrite;

    fn tell(reply: ReplyWrite, written: Result<Self, Errno>) {
        match written {
            Ok(length) => reply.written(length),
            Err(errno) => reply.error(errno),
        }
    }

    #[allow(clippy::host_endian_bytes, reason = "the kernel speaks the processor's own byte order")]
    fn bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.to_ne_bytes());
        bytes
    }
}

/// Where content or a hole begins (`fuse_lseek_out`).
impl Told for i64 {
    type Classic = ReplyLseek;

    fn tell(reply: ReplyLseek, found: Result<Self, Errno>) {
        match found {
            Ok(offset) => reply.offset(offset),
            Err(errno) => reply.error(errno),
        }
    }

    #[allow(clippy::host_endian_bytes, reason = "the kernel speaks the processor's own byte order")]
    fn bytes(self) -> [u8; 8] {
        self.to_ne_bytes()
    }
}

/// The way back to a program.
pub(crate) trait Reply<T: Told> {
    /// Answers at once.
    fn now(self, answer: Result<T, Errno>);
    /// The answer comes later, from another thread.
    fn later(self) -> LateReply<T>;
}

/// An answer that comes later. If it is dropped, the answer is an input/output error.
pub(crate) enum LateReply<T: Told> {
    Classic(T::Classic),
    Ring(Ticket),
}

impl<T: Told> Reply<T> for LateReply<T> {
    fn now(self, answer: Result<T, Errno>) {
        match (self, answer) {
            (Self::Classic(reply), answer) => T::tell(reply, answer),
            (Self::Ring(ticket), Ok(answer)) => ticket.answer(0, &answer.bytes()),
            (Self::Ring(ticket), Err(errno)) => ticket.answer(errno.code(), &[]),
        }
    }

    fn later(self) -> Self {
        self
    }
}
