//! The device's end of the wire: one request in, one reply out.
//!
//! It keeps nothing between two requests and never fails: bytes that are no request get a reply
//! that says so. What a request may make the device allocate is bounded.

use super::{MAX_ITEMS, MAX_READ_BYTES, Reply, Request};
use crate::device::ObjectDevice;
use crate::error::{Error, ErrorKind, Result};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

/// Answers one frame with one frame.
#[must_use]
pub fn serve(device: &dyn ObjectDevice, request: &[u8]) -> Vec<u8> {
    let (sequence, reply) = match Request::decode(request) {
        Ok((sequence, Some(request))) => (sequence, answer(device, request)),
        Ok((sequence, None)) => (sequence, Err(Error::new(ErrorKind::Invalid, "the frame carries no known request"))),
        Err(error) => (0, Err(Error::new(ErrorKind::Invalid, format!("{error}")))),
    };
    // Replies are bounded far below the longest frame; an error's words might not be.
    reply.unwrap_or_else(Reply::Failed).encode(sequence).unwrap_or_default()
}

fn answer(device: &dyn ObjectDevice, request: Request) -> Result<Reply> {
    let items = |limit: u64| limit.min(MAX_ITEMS as u64) as usize;
    Ok(match request {
        Request::Info => Reply::Info(device.info()),
        Request::ReserveIds { count } => Reply::ReserveIds(device.reserve_ids(count)?),
        Request::Commit { transaction, durability } => {
            device.commit(transaction, durability)?;
            Reply::Commit
        }
        Request::Sync { scope } => {
            device.sync(scope)?;
            Reply::Sync
        }
        Request::Read { object, offset, length } => {
            // Ask for the size first, so that a long read of a short object allocates little.
            let left = device.stat(object)?.size.saturating_sub(offset);
            let length = length.min(left).min(MAX_READ_BYTES as u64) as usize;
            let mut buffer = vec![0; length];
            let count = device.read(object, offset, &mut buffer)?;
            buffer.truncate(count);
            Reply::Read(buffer)
        }
        Request::Attribute { object, key } => Reply::Attribute(device.attribute(object, key)?),
        Request::Attributes { object, from, limit } => {
            Reply::Attributes(device.attributes(object, from, items(limit))?)
        }
        Request::Stat { object } => Reply::Stat(device.stat(object)?),
        Request::List { from, limit } => Reply::List(device.list(from, items(limit))?),
        Request::Extents { object, offset, limit } => Reply::Extents(device.extents(object, offset, items(limit))?),
        Request::Space => Reply::Space(device.space()),
        Request::Maintain { budget } => Reply::Maintain(device.maintain(budget)?),
        Request::Close => {
            device.close()?;
            Reply::Close
        }
    })
}
