//! The frame that a compressed chunk of content is stored in: a header and what the library made.
//!
//! A frame takes fewer units of the device than its content, or there is none. Whatever bytes are
//! given as a frame, decoding takes no more memory than a chunk has, and does not panic. What is
//! stored where is no affair of this file. `docs/format/services.md` has the bytes.

use onode_base::checksum::{crc32c, crc32c_append};
use onode_base::planted::{Bug, is_planted};

/// What comes before the compressed bytes.
pub(crate) const HEADER_BYTES: usize = 12;
/// How hard zstd tries.
const ZSTD_LEVEL: i32 = 9;

/// A library that compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Algorithm {
    /// LZ4, one block without a frame of its own.
    Lz4 = 1,
    /// Zstandard, one frame.
    Zstd = 2,
}

impl Algorithm {
    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Lz4),
            2 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// The header of a frame.
struct Header {
    algorithm: Algorithm,
    plain_bytes: usize,
    packed_bytes: usize,
    checksum: u32,
}

impl Header {
    fn put(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = self.algorithm as u8;
        bytes[1..4].copy_from_slice(&(self.plain_bytes as u32).to_le_bytes()[..3]);
        bytes[4..7].copy_from_slice(&(self.packed_bytes as u32).to_le_bytes()[..3]);
        bytes[8..12].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    fn take(frame: &[u8]) -> Result<Self, &'static str> {
        let header = frame.first_chunk::<HEADER_BYTES>().ok_or("the frame is cut short")?;
        let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], 0]) as usize;
        let algorithm = Algorithm::from_byte(header[0]).ok_or("no known algorithm made the frame")?;
        if header[7] != 0 {
            return Err("the header of the frame has bits that nobody knows");
        }
        let checksum = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        Ok(Self { algorithm, plain_bytes: number(1), packed_bytes: number(4), checksum })
    }
}

/// The frame of `plain`, the whole of a chunk or of what there is of it; `None` if it would not
/// take fewer units of `unit` bytes.
pub(crate) fn encode(algorithm: Algorithm, plain: &[u8], unit: usize) -> Option<Vec<u8>> {
    if plain.len() <= unit {
        return None;
    }
    let packed = match algorithm {
        Algorithm::Lz4 => lz4_flex::block::compress(plain),
        Algorithm::Zstd => zstd::bulk::compress(plain, ZSTD_LEVEL).ok()?,
    };
    if (HEADER_BYTES + packed.len()).div_ceil(unit) >= plain.len().div_ceil(unit) {
        return None;
    }
    let mut header = Header { algorithm, plain_bytes: plain.len(), packed_bytes: packed.len(), checksum: 0 };
    header.checksum = checksum(&header, &packed);
    let mut frame = Vec::with_capacity(HEADER_BYTES + packed.len());
    frame.extend_from_slice(&header.put());
    frame.extend_from_slice(&packed);
    Some(frame)
}

fn checksum(header: &Header, packed: &[u8]) -> u32 {
    crc32c_append(crc32c(&header.put()[..8]), packed)
}

/// Which library made a frame.
pub(crate) fn algorithm_of(frame: &[u8]) -> Result<Algorithm, &'static str> {
    Header::take(frame).map(|header| header.algorithm)
}

/// Puts the content of a frame, which other bytes may follow, at the start of `plain` and returns
/// its length. The error says in words what is wrong with the frame.
pub(crate) fn decode(frame: &[u8], plain: &mut [u8]) -> Result<usize, &'static str> {
    let header = Header::take(frame)?;
    let packed = frame.get(HEADER_BYTES..HEADER_BYTES + header.packed_bytes).ok_or("the frame is cut short")?;
    let plain = plain.get_mut(..header.plain_bytes).ok_or("the frame holds more than a chunk")?;
    if checksum(&header, packed) != header.checksum && !is_planted(Bug::ServicesChecksumIgnored) {
        return Err("the checksum of the frame is wrong");
    }
    let count = match header.algorithm {
        Algorithm::Lz4 => lz4_flex::block::decompress_into(packed, plain).ok(),
        Algorithm::Zstd => zstd::bulk::decompress_to_buffer(packed, plain).ok(),
    };
    match count {
        Some(count) if count == header.plain_bytes => Ok(count),
        _ => Err("what the frame holds cannot be decoded"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_base::Prng;

    const UNIT: usize = 4096;
    const BOTH: [Algorithm; 2] = [Algorithm::Lz4, Algorithm::Zstd];

    fn text(length: usize) -> Vec<u8> {
        (0..length).map(|at| b"the quick brown fox "[at % 20] ^ (at / 5000) as u8).collect()
    }

    #[test]
    fn frames_come_back() {
        for algorithm in BOTH {
            for length in [4097, 5000, 40_000, 65_536, 131_072] {
                let plain = text(length);
                let frame = encode(algorithm, &plain, UNIT).expect("text shrinks");
                assert!(frame.len().div_ceil(UNIT) < length.div_ceil(UNIT));
                let mut found = vec![1; length + 7];
                let mut followed = frame.clone();
                followed.resize(frame.len() + 500, 0);
                assert_eq!(decode(&followed, &mut found), Ok(length));
                assert!(found[..length] == plain);
                assert_eq!(algorithm_of(&frame), Ok(algorithm));
                assert!(decode(&frame, &mut found[..length - 1]).is_err(), "it holds more than there is room");
            }
        }
    }

    #[test]
    fn what_does_not_shrink_by_a_unit_has_no_frame() {
        let mut noise = vec![0; 65_536];
        Prng::new(1).fill(&mut noise);
        for algorithm in BOTH {
            assert_eq!(encode(algorithm, &noise, UNIT), None);
            assert_eq!(encode(algorithm, &text(4096), UNIT), None);
            assert_eq!(encode(algorithm, &[], UNIT), None);
            // A byte beyond a unit is a unit that can be saved.
            assert!(encode(algorithm, &text(4097), UNIT).is_some());
            assert!(encode(algorithm, &text(4096), 512).is_some());
        }
    }

    #[test]
    fn no_changed_byte_goes_unseen() {
        let mut plain = vec![0; 65_536];
        for algorithm in BOTH {
            let frame = encode(algorithm, &text(9000), UNIT).expect("text shrinks");
            for at in 0..frame.len() {
                for bit in [1, 16, 128] {
                    let mut changed = frame.clone();
                    changed[at] ^= bit;
                    assert!(decode(&changed, &mut plain).is_err(), "byte {at} changed by {bit}");
                }
            }
            for length in 0..frame.len() {
                assert!(decode(&frame[..length], &mut plain).is_err(), "cut to {length}");
            }
        }
    }

    #[test]
    fn bombs_and_noise_are_refused() {
        let mut prng = Prng::new(3);
        let mut plain = vec![0; 65_536];
        for round in 0..20_000 {
            let mut frame = vec![0; prng.below(200) as usize];
            prng.fill(&mut frame);
            if frame.len() >= HEADER_BYTES {
                // A header that is right about everything but what follows it.
                let algorithm = BOTH[round % 2];
                let packed_bytes = frame.len() - HEADER_BYTES;
                let plain_bytes = prng.below(70_000) as usize;
                let mut header = Header { algorithm, plain_bytes, packed_bytes, checksum: 0 };
                header.checksum = checksum(&header, &frame[HEADER_BYTES..]);
                frame[..HEADER_BYTES].copy_from_slice(&header.put());
            }
            let _ = decode(&frame, &mut plain);
        }
        // Much content in few bytes, of which the header says that there is little.
        for (algorithm, packed) in [
            (Algorithm::Lz4, lz4_flex::block::compress(&vec![0; 60_000])),
            (Algorithm::Zstd, zstd::bulk::compress(&vec![0; 1 << 24], 3).expect("it can be compressed")),
        ] {
            let mut header = Header { algorithm, plain_bytes: 5000, packed_bytes: packed.len(), checksum: 0 };
            header.checksum = checksum(&header, &packed);
            let frame = [&header.put()[..], &packed].concat();
            plain.fill(7);
            assert!(decode(&frame, &mut plain).is_err());
            assert!(plain[5000..].iter().all(|byte| *byte == 7), "it wrote past what it said");
        }
    }
}
