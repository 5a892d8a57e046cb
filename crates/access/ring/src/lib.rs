//! FUSE over io_uring: how requests of the kernel come and answers go without a system call for
//! each step, and are served on the processor on which the program runs.
//!
//! The kernel (6.14 and later, if `enable_uring` of its module `fuse` is set) keeps a queue for
//! each processor. A [`Ring`] hands slots to one queue or several; each slot brings one request at
//! a time, and its answer fetches the next one in the same system call. Source: "FUSE-over-io-uring
//! design documentation" of the kernel. What a request means is nobody's business here.
#![allow(clippy::host_endian_bytes, reason = "the kernel speaks the processor's own byte order")]

mod mailbox;
mod offer;
mod policy;
mod ring;
mod slot;

pub use mailbox::{Mailbox, Ticket};
pub use offer::{Offer, may_run_on, offer, pin_to, processors, switch_on};
pub use policy::{Policies, Policy};
pub use ring::{Kick, Outcome, Ring};
pub use slot::{HEADER_BYTES, Message, OPERATION_BYTES};
