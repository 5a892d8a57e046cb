//! What a host asks a device.

use super::frame::{self, FrameError};
use super::mutation::{put_key, put_list, take_key, take_list};
use super::{put_id, take_bool, take_byte, take_id};
use crate::durability::{Durability, SyncScope};
use crate::id::{AttributeKey, ObjectId};
use crate::transaction::Transaction;
use alloc::vec::Vec;
use onode_base::varint;

/// One call of [`ObjectDevice`](crate::ObjectDevice).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// `info`.
    Info,
    /// `reserve_ids`.
    ReserveIds {
        /// How many.
        count: u64,
    },
    /// `commit`.
    Commit {
        /// What to do.
        transaction: Transaction,
        /// What the answer promises.
        durability: Durability,
    },
    /// `sync`.
    Sync {
        /// What it covers.
        scope: SyncScope,
    },
    /// `read`.
    Read {
        /// The object.
        object: ObjectId,
        /// First byte.
        offset: u64,
        /// How many bytes; a device sends at most [`MAX_READ_BYTES`](super::MAX_READ_BYTES).
        length: u64,
    },
    /// `attribute`.
    Attribute {
        /// The object.
        object: ObjectId,
        /// Which one.
        key: AttributeKey,
    },
    /// `attributes`.
    Attributes {
        /// The object.
        object: ObjectId,
        /// The first key.
        from: AttributeKey,
        /// Most of them.
        limit: u64,
    },
    /// `stat`.
    Stat {
        /// The object.
        object: ObjectId,
    },
    /// `list`.
    List {
        /// The first id.
        from: ObjectId,
        /// Most of them.
        limit: u64,
    },
    /// `extents`.
    Extents {
        /// The object.
        object: ObjectId,
        /// First byte.
        offset: u64,
        /// Most of them.
        limit: u64,
    },
    /// `space`.
    Space,
    /// `maintain`.
    Maintain {
        /// About how many units of work.
        budget: u32,
    },
    /// `close`.
    Close,
}

impl Request {
    /// The number of the command in the frame.
    #[must_use]
    pub const fn command(&self) -> u8 {
        match self {
            Self::Info => 1,
            Self::ReserveIds { .. } => 2,
            Self::Commit { .. } => 3,
            Self::Sync { .. } => 4,
            Self::Read { .. } => 5,
            Self::Attribute { .. } => 6,
            Self::Attributes { .. } => 7,
            Self::Stat { .. } => 8,
            Self::List { .. } => 9,
            Self::Extents { .. } => 10,
            Self::Space => 11,
            Self::Maintain { .. } => 12,
            Self::Close => 13,
        }
    }

    /// The request as a frame; `None` if it is too long for one (4 GiB).
    #[must_use]
    pub fn encode(&self, sequence: u32) -> Option<Vec<u8>> {
        let mut out = frame::start(self.command(), sequence);
        match self {
            Self::Info | Self::Space | Self::Close => {}
            Self::ReserveIds { count } => varint::put(&mut out, *count),
            Self::Commit { transaction, durability } => {
                out.push(u8::from(*durability == Durability::Durable));
                put_list(&mut out, &transaction.mutations);
            }
            Self::Sync { scope: SyncScope::All } => out.push(0),
            Self::Sync { scope: SyncScope::Object(object) } => {
                out.push(1);
                put_id(&mut out, *object);
            }
            Self::Read { object, offset, length } => {
                put_id(&mut out, *object);
                varint::put(&mut out, *offset);
                varint::put(&mut out, *length);
            }
            Self::Attribute { object, key } => {
                put_id(&mut out, *object);
                put_key(&mut out, *key);
            }
            Self::Attributes { object, from, limit } => {
                put_id(&mut out, *object);
                put_key(&mut out, *from);
                varint::put(&mut out, *limit);
            }
            Self::Stat { object } => put_id(&mut out, *object),
            Self::List { from, limit } => {
                put_id(&mut out, *from);
                varint::put(&mut out, *limit);
            }
            Self::Extents { object, offset, limit } => {
                put_id(&mut out, *object);
                varint::put(&mut out, *offset);
                varint::put(&mut out, *limit);
            }
            Self::Maintain { budget } => varint::put(&mut out, u64::from(*budget)),
        }
        frame::finish(out)
    }

    /// The sequence number of a frame and the request in it; `Ok((_, None))` if the frame is sound
    /// and what it carries is not a request in its one form.
    ///
    /// # Errors
    /// If it is no frame.
    pub fn decode(bytes: &[u8]) -> Result<(u32, Option<Self>), FrameError> {
        let frame = frame::open(bytes)?;
        let mut body = frame.body;
        let request = Self::take(frame.command, &mut body).filter(|_| body.is_empty());
        Ok((frame.sequence, request))
    }

    fn take(command: u8, input: &mut &[u8]) -> Option<Self> {
        Some(match command {
            1 => Self::Info,
            2 => Self::ReserveIds { count: varint::take(input)? },
            3 => {
                let durability = if take_bool(input)? { Durability::Durable } else { Durability::Buffered };
                Self::Commit { transaction: Transaction { mutations: take_list(input)? }, durability }
            }
            4 => match take_byte(input)? {
                0 => Self::Sync { scope: SyncScope::All },
                1 => Self::Sync { scope: SyncScope::Object(take_id(input)?) },
                _ => return None,
            },
            5 => {
                let (object, offset) = (take_id(input)?, varint::take(input)?);
                Self::Read { object, offset, length: varint::take(input)? }
            }
            6 => Self::Attribute { object: take_id(input)?, key: take_key(input)? },
            7 => {
                let (object, from) = (take_id(input)?, take_key(input)?);
                Self::Attributes { object, from, limit: varint::take(input)? }
            }
            8 => Self::Stat { object: take_id(input)? },
            9 => Self::List { from: take_id(input)?, limit: varint::take(input)? },
            10 => {
                let (object, offset) = (take_id(input)?, varint::take(input)?);
                Self::Extents { object, offset, limit: varint::take(input)? }
            }
            11 => Self::Space,
            12 => Self::Maintain { budget: varint::take(input)?.try_into().ok()? },
            13 => Self::Close,
            _ => return None,
        })
    }
}
