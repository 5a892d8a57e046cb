//! The host's end of the wire: a device that is somewhere else.
//!
//! Nothing is cached and nothing is tried again: a reply that does not come, or is damaged, is a
//! `Media` error, because nobody knows whether the request was done.

use super::{MAX_READ_BYTES, Reply, Request};
use crate::device::{DeviceInfo, Maintenance, ObjectDevice, ObjectStat, Space};
use crate::durability::{Durability, SyncScope};
use crate::error::{Error, ErrorKind, Result};
use crate::id::{AttributeKey, ObjectId};
use crate::transaction::Transaction;
use crate::validate::refuse_moves;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

/// Carries a request to the device and its reply back.
pub trait Transport: Send + Sync {
    /// The reply to one frame; empty if none came.
    fn call(&self, request: &[u8]) -> Vec<u8>;
}

/// An object device at the other end of a transport.
#[derive(Debug)]
pub struct RemoteDevice<T> {
    transport: T,
    next_sequence: AtomicU32,
}

impl<T: Transport> RemoteDevice<T> {
    /// The device at the other end.
    #[must_use]
    pub const fn new(transport: T) -> Self {
        Self { transport, next_sequence: AtomicU32::new(1) }
    }

    /// The transport.
    #[must_use]
    pub const fn transport(&self) -> &T {
        &self.transport
    }

    fn call(&self, request: &Request) -> Result<Reply> {
        let sequence = self.next_sequence.fetch_add(1, Ordering::Relaxed);
        let frame = request
            .encode(sequence)
            .ok_or_else(|| Error::new(ErrorKind::Invalid, "the request is longer than a frame can be"))?;
        match Reply::decode(&self.transport.call(&frame)) {
            // The other end could not read the request, so it could not read its number either.
            Ok((number, Some(Reply::Failed(error)))) if number == sequence || number == 0 => Err(error),
            Ok((number, Some(reply))) if number == sequence => Ok(reply),
            Ok((number, Some(_))) => Err(lost(format!("reply {number} instead of {sequence}"))),
            Ok((_, None)) => Err(lost(String::from("the frame carries no known reply"))),
            Err(error) => Err(lost(format!("{error}"))),
        }
    }
}

fn lost(detail: String) -> Error {
    Error::new(ErrorKind::Media, format!("no usable reply from the device: {detail}"))
}

/// The reply of the other end, if it is one to what was asked.
macro_rules! expect {
    ($reply:expr, $pattern:pat => $value:expr) => {
        match $reply {
            Ok($pattern) => Ok($value),
            Ok(other) => Err(lost(format!("reply {:#04x} to another request", other.command()))),
            Err(error) => Err(error),
        }
    };
}

impl<T: Transport> ObjectDevice for RemoteDevice<T> {
    fn info(&self) -> DeviceInfo {
        let info: Result<DeviceInfo> = expect!(self.call(&Request::Info), Reply::Info(info) => info);
        info.unwrap_or_else(|error| DeviceInfo {
            kind: "remote",
            summary: String::from("a device that does not answer"),
            read_only: Some(format!("{error}")),
            ..DeviceInfo::default()
        })
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        expect!(self.call(&Request::ReserveIds { count }), Reply::ReserveIds(first) => first)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        // Nobody on this side knows in which unit the device moves content.
        refuse_moves(&transaction)?;
        expect!(self.call(&Request::Commit { transaction, durability }), Reply::Commit => ())
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        expect!(self.call(&Request::Sync { scope }), Reply::Sync => ())
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        // At least one request, so that a missing object is found out with an empty buffer too.
        for piece in buffer.chunks_mut(MAX_READ_BYTES).chain(core::iter::once(&mut [][..])) {
            if piece.is_empty() && done > 0 {
                break;
            }
            let Some(offset) = offset.checked_add(done as u64) else { break };
            let request = Request::Read { object, offset, length: piece.len() as u64 };
            let bytes: Vec<u8> = expect!(self.call(&request), Reply::Read(bytes) => bytes)?;
            let Some(target) = piece.get_mut(..bytes.len()) else {
                return Err(lost(format!("{} bytes instead of {}", bytes.len(), piece.len())));
            };
            target.copy_from_slice(&bytes);
            done += bytes.len();
            if bytes.len() < piece.len() {
                break;
            }
        }
        Ok(done)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        expect!(self.call(&Request::Attribute { object, key }), Reply::Attribute(value) => value)
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let request = Request::Attributes { object, from, limit: limit as u64 };
        let some: Vec<(AttributeKey, Vec<u8>)> = expect!(self.call(&request), Reply::Attributes(some) => some)?;
        check_count(some.len(), limit).map(|()| some)
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        expect!(self.call(&Request::Stat { object }), Reply::Stat(stat) => stat)
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let request = Request::List { from, limit: limit as u64 };
        let some: Vec<ObjectId> = expect!(self.call(&request), Reply::List(some) => some)?;
        check_count(some.len(), limit).map(|()| some)
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        let request = Request::Extents { object, offset, limit: limit as u64 };
        let some: Vec<(u64, u64)> = expect!(self.call(&request), Reply::Extents(some) => some)?;
        check_count(some.len(), limit).map(|()| some)
    }

    fn space(&self) -> Space {
        let space: Result<Space> = expect!(self.call(&Request::Space), Reply::Space(space) => space);
        space.unwrap_or_default()
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        expect!(self.call(&Request::Maintain { budget }), Reply::Maintain(maintenance) => maintenance)
    }

    fn close(&self) -> Result<()> {
        expect!(self.call(&Request::Close), Reply::Close => ())
    }
}

fn check_count(count: usize, limit: usize) -> Result<()> {
    if count <= limit { Ok(()) } else { Err(lost(format!("{count} items instead of at most {limit}"))) }
}
