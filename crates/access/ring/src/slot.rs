//! The memory of one request: what the kernel fills and reads.
//!
//! The kernel touches it only while the thread of its ring is in a system call of that ring, so
//! between two of them it belongs to that thread alone.

use crate::mailbox::{Mailbox, Ticket};
use std::sync::Arc;

/// Bytes of the header of each request (`fuse_in_header`).
pub const HEADER_BYTES: usize = 40;
/// Bytes in which the arguments of an operation lie, as far as their length is fixed.
pub const OPERATION_BYTES: usize = 128;

/// Where things lie in `fuse_uring_req_header`.
const OPERATION_AT: usize = 128;
const COMMIT_ID_AT: usize = 264;
const PAYLOAD_BYTES_AT: usize = 272;
const ALL_BYTES: usize = 288;
/// Bytes of `fuse_out_header`.
const ANSWER_BYTES: usize = 16;
const UNIQUE_AT: usize = 8;
/// `fuse_in_header.pid`.
const PROGRAM_AT: usize = 32;

/// `fuse_uring_req_header`.
#[repr(C, align(8))]
pub(crate) struct Header([u8; ALL_BYTES]);

/// One request at a time.
pub(crate) struct Slot {
    queue: u16,
    /// It waits for a request.
    waits: bool,
    header: Box<Header>,
    payload: Vec<u8>,
    vectors: Box<[libc::iovec; 2]>,
}

impl Slot {
    /// A slot for a queue, whose requests and answers carry at most so many bytes beside their
    /// header. Memory that is never used takes none.
    pub(crate) fn new(queue: u16, payload_bytes: usize) -> Self {
        let mut header = Box::new(Header([0; ALL_BYTES]));
        let mut payload = vec![0; payload_bytes];
        let vectors = Box::new([
            libc::iovec { iov_base: header.0.as_mut_ptr().cast(), iov_len: ALL_BYTES },
            libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload_bytes },
        ]);
        Self { queue, waits: false, header, payload, vectors }
    }

    pub(crate) const fn queue(&self) -> u16 {
        self.queue
    }

    /// Whether it waits for a request.
    pub(crate) const fn waits(&self) -> bool {
        self.waits
    }

    /// It is handed to the kernel.
    pub(crate) const fn wait(&mut self) {
        self.waits = true;
    }

    /// It has a request.
    pub(crate) const fn comes(&mut self) {
        self.waits = false;
    }

    /// Where the kernel reads which memory this is.
    pub(crate) fn vectors(&self) -> *const libc::iovec {
        self.vectors.as_ptr()
    }

    fn u32_at(&self, at: usize) -> u32 {
        self.header.0[at..at + 4].try_into().map_or(0, u32::from_ne_bytes)
    }

    /// The number of the thread that waits for the answer.
    pub(crate) fn program(&self) -> u32 {
        self.u32_at(PROGRAM_AT)
    }

    /// By what the kernel knows the request.
    pub(crate) fn commit_id(&self) -> u64 {
        self.header.0[COMMIT_ID_AT..COMMIT_ID_AT + 8].try_into().map_or(0, u64::from_ne_bytes)
    }

    /// The request that came into this slot, which has number `index`.
    pub(crate) fn message<'a>(&'a mut self, mailbox: &'a Arc<Mailbox>, index: usize) -> Message<'a> {
        let length = (self.u32_at(PAYLOAD_BYTES_AT) as usize).min(self.payload.len());
        let (header, operation) = self.header.0.split_at(OPERATION_AT);
        Message {
            header: &header[..HEADER_BYTES],
            operation: &operation[..OPERATION_BYTES],
            length,
            payload: &mut self.payload,
            mailbox,
            index,
        }
    }

    /// Puts in the answer: 0 and so many bytes of the payload, or the number of an error.
    pub(crate) fn answer(&mut self, error: i32, length: usize) {
        let length = if error == 0 { length.min(self.payload.len()) } else { 0 };
        let header = &mut self.header.0;
        header[..4].copy_from_slice(&((ANSWER_BYTES + length) as u32).to_ne_bytes());
        header[4..UNIQUE_AT].copy_from_slice(&error.wrapping_neg().to_ne_bytes());
        // The request's own number stands where the answer has it.
        header[PAYLOAD_BYTES_AT..PAYLOAD_BYTES_AT + 4].copy_from_slice(&(length as u32).to_ne_bytes());
    }

    /// Puts in an answer that was made elsewhere.
    pub(crate) fn answer_with(&mut self, error: i32, payload: &[u8]) {
        let length = payload.len().min(self.payload.len());
        self.payload[..length].copy_from_slice(&payload[..length]);
        self.answer(error, length);
    }
}

/// A request, and where its answer goes.
#[derive(Debug)]
pub struct Message<'a> {
    /// `fuse_in_header`.
    pub header: &'a [u8],
    /// The arguments whose length is fixed, with zeros behind them.
    pub operation: &'a [u8],
    /// So many bytes of the payload came with the request.
    pub length: usize,
    /// What else came, such as names or content; the answer takes its place.
    pub payload: &'a mut [u8],
    mailbox: &'a Arc<Mailbox>,
    index: usize,
}

impl Message<'_> {
    /// For a request that is answered later, by whoever has the ticket.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        Ticket::new(Arc::clone(self.mailbox), self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_stands_where_the_kernel_looks() {
        let mut slot = Slot::new(3, 16);
        slot.header.0[UNIQUE_AT] = 7;
        slot.header.0[OPERATION_AT] = 9;
        slot.header.0[COMMIT_ID_AT] = 5;
        slot.header.0[PAYLOAD_BYTES_AT] = 200;
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let message = slot.message(&mailbox, 8);
        message.ticket().answer(0, &[]);
        assert_eq!(mailbox.take()[0].slot, 8);
        assert_eq!((message.length, message.header[UNIQUE_AT], message.operation[0]), (16, 7, 9));
        message.payload[0] = 1;
        assert_eq!((slot.queue(), slot.commit_id()), (3, 5));
        slot.answer(0, 4);
        assert_eq!((slot.header.0[0], slot.header.0[4], slot.header.0[UNIQUE_AT]), (20, 0, 7));
        assert_eq!(slot.u32_at(PAYLOAD_BYTES_AT), 4);
        slot.answer(libc::EIO, 4);
        assert_eq!((slot.u32_at(0), slot.u32_at(4) as i32, slot.u32_at(PAYLOAD_BYTES_AT)), (16, -libc::EIO, 0));
        slot.answer_with(0, &[2; 40]);
        assert_eq!((slot.u32_at(0), slot.payload[15]), (32, 2));
    }
}
