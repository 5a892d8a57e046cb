//! What a device answers.

use super::frame::{self, FrameError};
use super::mutation::{put_key, take_key};
use super::{error, hints, put_id, take_bool, take_byte, take_id, take_items, take_usize};
use crate::device::{DeviceInfo, Maintenance, ObjectStat, Space};
use crate::error::Error;
use crate::id::{AttributeKey, ObjectId};
use alloc::string::String;
use alloc::vec::Vec;
use onode_base::varint;

/// Set in the command of every reply.
const REPLY: u8 = 0x80;
/// The command of a refusal.
const FAILED: u8 = 0xff;

/// Kinds of devices that cross the wire by number; 0 stands for any other.
const DEVICE_KINDS: [&str; 8] = ["remote", "ram", "flash", "flash+scm", "scm", "tier", "pool", "rados"];

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To `info`. A kind that the protocol does not know arrives as `remote`.
    Info(DeviceInfo),
    /// To `reserve_ids`.
    ReserveIds(ObjectId),
    /// To `commit`.
    Commit,
    /// To `sync`.
    Sync,
    /// To `read`: the bytes, fewer than asked for at the object's end or at the largest reply.
    Read(Vec<u8>),
    /// To `attribute`.
    Attribute(Option<Vec<u8>>),
    /// To `attributes`.
    Attributes(Vec<(AttributeKey, Vec<u8>)>),
    /// To `stat`.
    Stat(ObjectStat),
    /// To `list`.
    List(Vec<ObjectId>),
    /// To `extents`.
    Extents(Vec<(u64, u64)>),
    /// To `space`.
    Space(Space),
    /// To `maintain`.
    Maintain(Maintenance),
    /// To `close`.
    Close,
    /// To any request that was refused or failed.
    Failed(Error),
}

impl Reply {
    /// The number of the command in the frame.
    #[must_use]
    pub const fn command(&self) -> u8 {
        REPLY
            | match self {
                Self::Info(_) => 1,
                Self::ReserveIds(_) => 2,
                Self::Commit => 3,
                Self::Sync => 4,
                Self::Read(_) => 5,
                Self::Attribute(_) => 6,
                Self::Attributes(_) => 7,
                Self::Stat(_) => 8,
                Self::List(_) => 9,
                Self::Extents(_) => 10,
                Self::Space(_) => 11,
                Self::Maintain(_) => 12,
                Self::Close => 13,
                Self::Failed(_) => FAILED,
            }
    }

    /// The reply as a frame; `None` if it is too long for one (4 GiB).
    #[must_use]
    pub fn encode(&self, sequence: u32) -> Option<Vec<u8>> {
        let mut out = frame::start(self.command(), sequence);
        match self {
            Self::Commit | Self::Sync | Self::Close => {}
            Self::Info(info) => put_info(&mut out, info),
            Self::ReserveIds(first) => put_id(&mut out, *first),
            Self::Read(bytes) => varint::put_bytes(&mut out, bytes),
            Self::Attribute(value) => {
                out.push(u8::from(value.is_some()));
                if let Some(value) = value {
                    varint::put_bytes(&mut out, value);
                }
            }
            Self::Attributes(attributes) => {
                varint::put(&mut out, attributes.len() as u64);
                for (key, value) in attributes {
                    put_key(&mut out, *key);
                    varint::put_bytes(&mut out, value);
                }
            }
            Self::Stat(stat) => {
                varint::put(&mut out, stat.size);
                varint::put(&mut out, stat.allocated);
                hints::put(&mut out, &stat.hints);
                varint::put(&mut out, stat.accessed);
            }
            Self::List(ids) => {
                varint::put(&mut out, ids.len() as u64);
                ids.iter().for_each(|id| put_id(&mut out, *id));
            }
            Self::Extents(extents) => {
                varint::put(&mut out, extents.len() as u64);
                for (offset, length) in extents {
                    varint::put(&mut out, *offset);
                    varint::put(&mut out, *length);
                }
            }
            Self::Space(space) => {
                for value in [space.total, space.available, space.objects] {
                    varint::put(&mut out, value);
                }
            }
            Self::Maintain(maintenance) => {
                varint::put(&mut out, u64::from(maintenance.done));
                out.push(u8::from(maintenance.more));
            }
            Self::Failed(error) => error::put(&mut out, error),
        }
        frame::finish(out)
    }

    /// The sequence number of a frame and the reply in it; `Ok((_, None))` if the frame is sound
    /// and what it carries is not a reply in its one form.
    ///
    /// # Errors
    /// If it is no frame.
    pub fn decode(bytes: &[u8]) -> Result<(u32, Option<Self>), FrameError> {
        let frame = frame::open(bytes)?;
        let mut body = frame.body;
        let reply = Self::take(frame.command, &mut body).filter(|_| body.is_empty());
        Ok((frame.sequence, reply))
    }

    fn take(command: u8, input: &mut &[u8]) -> Option<Self> {
        if command == FAILED {
            return error::take(input).map(Self::Failed);
        }
        if command & REPLY == 0 {
            return None;
        }
        Some(match command & !REPLY {
            1 => Self::Info(take_info(input)?),
            2 => Self::ReserveIds(take_id(input)?),
            3 => Self::Commit,
            4 => Self::Sync,
            5 => Self::Read(varint::take_bytes(input)?.to_vec()),
            6 if take_bool(input)? => Self::Attribute(Some(varint::take_bytes(input)?.to_vec())),
            6 => Self::Attribute(None),
            7 => Self::Attributes(take_items(input, 3, |input| {
                Some((take_key(input)?, varint::take_bytes(input)?.to_vec()))
            })?),
            8 => {
                let (size, allocated) = (varint::take(input)?, varint::take(input)?);
                let hints = hints::take(input)?;
                Self::Stat(ObjectStat { size, allocated, hints, accessed: varint::take(input)? })
            }
            9 => Self::List(take_items(input, 1, take_id)?),
            10 => Self::Extents(take_items(input, 2, |input| Some((varint::take(input)?, varint::take(input)?)))?),
            11 => {
                let (total, available) = (varint::take(input)?, varint::take(input)?);
                Self::Space(Space { total, available, objects: varint::take(input)? })
            }
            12 => {
                let done = varint::take(input)?.try_into().ok()?;
                Self::Maintain(Maintenance { done, more: take_bool(input)? })
            }
            13 => Self::Close,
            _ => return None,
        })
    }
}

fn put_info(out: &mut Vec<u8>, info: &DeviceInfo) {
    out.push(DEVICE_KINDS.iter().position(|kind| *kind == info.kind).unwrap_or(0) as u8);
    out.extend(info.uuid);
    varint::put_bytes(out, info.summary.as_bytes());
    out.push(u8::from(info.read_only.is_some()));
    if let Some(why) = &info.read_only {
        varint::put_bytes(out, why.as_bytes());
    }
    varint::put(out, info.transaction_bytes as u64);
}

fn take_info(input: &mut &[u8]) -> Option<DeviceInfo> {
    let kind = DEVICE_KINDS.get(usize::from(take_byte(input)?))?;
    let (uuid, rest) = input.split_first_chunk::<16>()?;
    *input = rest;
    let summary = take_string(input)?;
    let read_only = if take_bool(input)? { Some(take_string(input)?) } else { None };
    Some(DeviceInfo { kind, uuid: *uuid, summary, read_only, transaction_bytes: take_usize(input)? })
}

fn take_string(input: &mut &[u8]) -> Option<String> {
    core::str::from_utf8(varint::take_bytes(input)?).ok().map(String::from)
}
