//! The frames of a stream: a length, a checksum that goes on from the frame before, a kind, and
//! what is in it.

use crate::stream::StreamHeader;
use onode_base::checksum::crc32c_append;
use onode_base::varint;
use onode_object::Mutation;
use onode_object::wire::mutation;
use std::io::{self, Read};

/// What stands first in a stream: what it is, and the version of its form.
pub(super) const MAGIC: [u8; 8] = *b"onodsnd\x01";
/// The longest frame: mutations that one step makes, and what tells of them.
pub(super) const FRAME_BYTES_MAX: usize = 2 << 20;
/// Bytes of a frame before what is in it.
const HEAD_BYTES: usize = 9;

const BEGIN: u8 = 1;
const MUTATIONS: u8 = 2;
const END: u8 = 3;

/// What a stream is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// What the stream is; the first one.
    Begin(StreamHeader),
    /// Changes, in order.
    Mutations(Vec<Mutation>),
    /// That is all; so many changes.
    End(u64),
}

/// The checksum of all frames so far: one that is missing or moved is noticed by the next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain(u32);

impl Frame {
    /// Appends the bytes of the next frame of a stream.
    pub(super) fn put(&self, chain: &mut Chain, out: &mut Vec<u8>) {
        let (kind, body) = match self {
            Self::Begin(header) => (BEGIN, header.encode()),
            Self::Mutations(all) => {
                let mut body = Vec::new();
                all.iter().for_each(|one| mutation::put(&mut body, one));
                (MUTATIONS, body)
            }
            Self::End(count) => {
                let mut body = Vec::new();
                varint::put(&mut body, *count);
                (END, body)
            }
        };
        chain.0 = crc32c_append(crc32c_append(chain.0, &[kind]), &body);
        out.extend_from_slice(&(body.len() as u32).to_le_bytes());
        out.extend_from_slice(&chain.0.to_le_bytes());
        out.push(kind);
        out.extend_from_slice(&body);
    }

    /// Reads the next frame, and how many bytes it took.
    ///
    /// # Errors
    /// `UnexpectedEof` if the stream ends before; `InvalidData` for what is no frame, or not the
    /// next one; those of the reader.
    pub(super) fn read(chain: &mut Chain, from: &mut impl Read) -> io::Result<(Self, usize)> {
        let mut head = [0; HEAD_BYTES];
        from.read_exact(&mut head)?;
        let [l0, l1, l2, l3, c0, c1, c2, c3, kind] = head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(damaged());
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        chain.0 = crc32c_append(crc32c_append(chain.0, &[kind]), &body);
        if chain.0 != u32::from_le_bytes([c0, c1, c2, c3]) {
            return Err(damaged());
        }
        Ok((Self::decode(kind, &body).ok_or_else(damaged)?, HEAD_BYTES + length))
    }

    fn decode(kind: u8, mut body: &[u8]) -> Option<Self> {
        match kind {
            BEGIN => StreamHeader::decode(body).map(Self::Begin),
            MUTATIONS => {
                let mut all = Vec::new();
                while !body.is_empty() {
                    all.push(mutation::take(&mut body)?);
                }
                Some(Self::Mutations(all))
            }
            END => varint::take(&mut body).filter(|_| body.is_empty()).map(Self::End),
            _ => None,
        }
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the stream is damaged")
}
