//! A stream as it is read: its header, then one batch of mutations after another.

use crate::stream::StreamHeader;
use crate::stream::frame::{Chain, Frame, MAGIC};
use onode_object::Mutation;
use std::io::{self, Read};

/// Reads a stream.
pub struct Receiving<R> {
    from: R,
    header: StreamHeader,
    chain: Chain,
    bytes: u64,
    count: u64,
    is_over: bool,
}

impl<R: Read> Receiving<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// `InvalidData` for what is no stream, or damaged; `UnexpectedEof` for one that is cut short;
    /// those of the reader.
    pub fn begin(mut from: R) -> io::Result<Self> {
        let mut magic = Vec::new();
        from.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic)?;
        if magic != MAGIC {
            let why = if magic.is_empty() { "the stream is empty" } else { "it is no stream of `onode send`" };
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let mut chain = Chain::default();
        match Frame::read(&mut chain, &mut from)? {
            (Frame::Begin(header), bytes) => {
                let bytes = (MAGIC.len() + bytes) as u64;
                Ok(Self { from, header, chain, bytes, count: 0, is_over: false })
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the stream has no header")),
        }
    }

    /// What the stream says of itself.
    pub const fn header(&self) -> &StreamHeader {
        &self.header
    }

    /// Bytes read so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next mutations; none at the end, which was found in order then.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn next_batch(&mut self) -> io::Result<Vec<Mutation>> {
        if self.is_over {
            return Ok(Vec::new());
        }
        let (frame, bytes) = Frame::read(&mut self.chain, &mut self.from)?;
        self.bytes += bytes as u64;
        match frame {
            Frame::Mutations(batch) if !batch.is_empty() => {
                self.count += batch.len() as u64;
                Ok(batch)
            }
            Frame::End(count) if count == self.count => {
                self.is_over = true;
                Ok(Vec::new())
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the stream is out of order")),
        }
    }
}
