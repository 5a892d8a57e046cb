//! A stream as it is made: bytes that are read one after another.

use crate::stream::frame::{Chain, Frame, MAGIC};
use crate::stream::{Differences, StreamHeader};
use onode_object::{Mutation, Result};

/// Makes a stream.
pub struct Sending {
    differences: Differences,
    chain: Chain,
    /// Mutations so far.
    count: u64,
    /// Bytes that were made and not taken yet.
    made: Vec<u8>,
    taken: usize,
    is_over: bool,
}

impl Sending {
    /// A stream that begins with this header.
    #[must_use]
    pub fn new(header: StreamHeader, differences: Differences) -> Self {
        let (mut chain, mut made) = (Chain::default(), MAGIC.to_vec());
        Frame::Begin(header).put(&mut chain, &mut made);
        Self { differences, chain, count: 0, made, taken: 0, is_over: false }
    }

    /// Fills the buffer with the next bytes; with fewer only at the end. How many.
    ///
    /// # Errors
    /// As [`Differences::next_batch`]; the stream ends there then, and who receives it notices.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            if self.taken == self.made.len() {
                if self.is_over {
                    break;
                }
                self.make()?;
            }
            let ready = &self.made[self.taken..];
            let count = ready.len().min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&ready[..count]);
            self.taken += count;
            filled += count;
        }
        Ok(filled)
    }

    /// Makes the next frame.
    fn make(&mut self) -> Result<()> {
        let mut batch = self.differences.next_batch()?;
        // The number of a key means another one elsewhere, or none; content travels plain anyway.
        for mutation in &mut batch {
            if let Mutation::Create { hints, .. } | Mutation::SetHints { hints, .. } = mutation {
                hints.encryption_key = 0;
            }
        }
        self.count += batch.len() as u64;
        let frame = if batch.is_empty() { Frame::End(self.count) } else { Frame::Mutations(batch) };
        self.is_over = matches!(frame, Frame::End(_));
        self.made.clear();
        self.taken = 0;
        frame.put(&mut self.chain, &mut self.made);
        Ok(())
    }
}
