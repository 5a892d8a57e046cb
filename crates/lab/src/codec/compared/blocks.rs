//! The table of erase blocks: state and sequence number of each, for the allocator and for
//! recovery.
//!
//! Blocks are filled one after another, so most sequence numbers are one more than that of the
//! block before. How many pages of a block are in use does not stand here: the records say it.

use super::cmfs::BlockState;
use onode_base::varint::{unzigzag, zigzag};
use onode_codec::bits::{BitReader, BitWriter};

/// What the table says of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockEntry {
    /// State.
    pub state: BlockState,
    /// Sequence number; none if it is empty.
    pub sequence: u32,
}

const SHIFT_BITS: u32 = 5;
const SHIFTS: u32 = 24;
/// Differences have 33 bits.
const PREFIX_MAX: u32 = 34;

/// The numbers that stand for a state; a full block is the usual one and takes one bit.
const fn state_bits(state: BlockState) -> (u64, u32) {
    match state {
        BlockState::Full => (0, 1),
        BlockState::Empty => (1, 2),
        BlockState::Allocating => (3, 2),
    }
}

const fn prefix(value: u64, shift: u32) -> u32 {
    63 - (value + (1 << shift)).leading_zeros() - shift
}

/// The differences that are written.
fn differences(blocks: &[BlockEntry]) -> impl Iterator<Item = u64> + '_ {
    let mut expected = 0;
    blocks.iter().filter(|block| block.state != BlockState::Empty).map(move |block| {
        let sequence = u64::from(block.sequence);
        let difference = zigzag(sequence.wrapping_sub(expected));
        expected = sequence + 1;
        difference
    })
}

/// The table as bytes. An empty block's sequence number is not kept.
pub fn encode_blocks(blocks: &[BlockEntry]) -> Vec<u8> {
    let cost =
        |shift: &u32| differences(blocks).map(|value| u64::from(2 * prefix(value, *shift) + 1 + shift)).sum::<u64>();
    let shift = (0..SHIFTS).min_by_key(cost).unwrap_or(0);
    let mut out = BitWriter::default();
    out.put(u64::from(shift), SHIFT_BITS);
    let mut differences = differences(blocks);
    for block in blocks {
        let (bits, count) = state_bits(block.state);
        out.put(bits, count);
        if block.state != BlockState::Empty
            && let Some(value) = differences.next()
        {
            let prefix = prefix(value, shift);
            out.put(u64::MAX, prefix);
            out.put(0, 1);
            out.put(value + (1 << shift), prefix + shift);
        }
    }
    out.finish()
}

/// The table of `count` blocks behind `bytes`; `None` if there is none.
pub fn decode_blocks(bytes: &[u8], count: usize) -> Option<Vec<BlockEntry>> {
    // Every block takes a bit at least.
    if count > bytes.len() * 8 {
        return None;
    }
    let mut input = BitReader::new(bytes);
    let shift = input.take(SHIFT_BITS)? as u32;
    let mut expected = 0u64;
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let state = match input.take_ones(1)? {
            0 => BlockState::Full,
            _ if input.take(1)? == 0 => BlockState::Empty,
            _ => BlockState::Allocating,
        };
        let mut block = BlockEntry { state, sequence: 0 };
        if state != BlockState::Empty {
            let prefix = input.take_ones(PREFIX_MAX)?;
            let low = input.take(prefix + shift).filter(|_| prefix < PREFIX_MAX && prefix + shift < 60)?;
            let value = (1 << (prefix + shift)) + low - (1 << shift);
            block.sequence = u32::try_from(expected.wrapping_add(unzigzag(value))).ok()?;
            expected = u64::from(block.sequence) + 1;
        }
        blocks.push(block);
    }
    input.is_finished().then_some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_base::Prng;

    #[test]
    fn tables_round_trip_and_hostile_ones_are_survived() {
        let mut random = Prng::new(1);
        for spread in [1, 50, 1 << 32] {
            let states = [BlockState::Empty, BlockState::Full, BlockState::Full, BlockState::Allocating];
            let blocks: Vec<BlockEntry> = (0..1000u64)
                .map(|index| {
                    let state = states[random.below(4) as usize];
                    let sequence = (1000 + index + random.below(spread)).min(u64::from(u32::MAX)) as u32;
                    BlockEntry { state, sequence: if state == BlockState::Empty { 0 } else { sequence } }
                })
                .collect();
            let bytes = encode_blocks(&blocks);
            assert_eq!(decode_blocks(&bytes, 1000), Some(blocks));
            assert_eq!(decode_blocks(&bytes[..bytes.len() - 1], 1000), None);
            for _ in 0..2000 {
                let mut bad = bytes.clone();
                bad[random.below(bytes.len() as u64) as usize] = random.next_u64() as u8;
                if let Some(blocks) = decode_blocks(&bad, 1000) {
                    assert_eq!(decode_blocks(&encode_blocks(&blocks), 1000), Some(blocks));
                }
            }
        }
        let fresh: Vec<BlockEntry> =
            (0..1024).map(|sequence| BlockEntry { state: BlockState::Full, sequence }).collect();
        assert!(encode_blocks(&fresh).len() < 300);
    }
}
