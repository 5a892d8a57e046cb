//! Echoes: a journal page with room left repeats the records of the pages before it.
//!
//! A synced commit seldom fills its page. The room costs nothing, and a mount that reads the last page of
//! a run has the records of all its pages: after a cut it reads one page in many. An echo never
//! reaches past the start of its segment, its session or the newest checkpoint.
//!
//! It is a convenience: a mount that finds anything odd reads every page instead.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use onode_base::varint;

/// The records of the pages before the next one, youngest last.
#[derive(Debug, Default)]
pub struct Echoes {
    pages: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// Not worth a page's checksum.
const LEAST_BYTES: usize = 8;

impl Echoes {
    /// Nothing before this can be repeated.
    pub fn clear(&mut self) {
        self.pages.clear();
        self.bytes = 0;
    }

    /// A page with these records was programmed. At most `limit` bytes are kept.
    pub fn push(&mut self, records: &[u8], limit: usize) {
        self.pages.push_back(records.to_vec());
        self.bytes += records.len() + 1;
        while self.bytes > limit {
            let Some(gone) = self.pages.pop_front() else { break };
            self.bytes -= gone.len() + 1;
        }
    }

    /// The records of as many pages before the next one as fit `room`, youngest first: each with its length.
    pub fn encode(&self, room: usize) -> Vec<u8> {
        let mut out = Vec::new();
        if room < LEAST_BYTES {
            return out;
        }
        for records in self.pages.iter().rev() {
            if out.len() + 2 + records.len() > room {
                break;
            }
            varint::put_bytes(&mut out, records);
        }
        out
    }

    /// Memory held.
    pub fn memory_bytes(&self) -> usize {
        self.pages.iter().map(Vec::capacity).sum::<usize>() + self.pages.capacity() * size_of::<Vec<u8>>()
    }
}

/// The records in an echo, youngest page first; `None` if it is malformed.
pub fn decode(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut pages = Vec::new();
    while !bytes.is_empty() {
        pages.push(varint::take_bytes(&mut bytes)?);
    }
    Some(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_the_youngest_pages_that_fit() {
        let mut echoes = Echoes::default();
        for page in 0..40u8 {
            echoes.push(&[page; 50], 1000);
        }
        let bytes = echoes.encode(300);
        assert_eq!(decode(&bytes).unwrap(), [[39u8; 50], [38; 50], [37; 50], [36; 50], [35; 50]]);
        assert!(echoes.encode(5000).len() <= 1000);
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
        echoes.clear();
        assert!(echoes.encode(300).is_empty());
    }
}
