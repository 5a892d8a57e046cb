//! A piece of the segment table in the memory beside the flash: columns of numbers that hardly
//! change from row to row, or follow from what a segment is used for.

use super::{Segment, SegmentState};
use crate::medium::format::NO_SUMMARY;
use crate::medium::layout::Layout;
use crate::policy::Stream;
use alloc::vec::Vec;
use onode_base::varint::{self, unzigzag, zigzag};
use onode_codec::{decode_rows, encode_rows};

/// State and stream, then what is counted from where it is usually: sequence number, erases, dead
/// pages, dead bytes beside them, pages of the summary.
type Row = [u64; 6];

/// The piece as bytes.
pub fn encode(entries: &[Segment], layout: &Layout) -> Vec<u8> {
    let least_erases = entries.iter().map(|one| one.erases).min().unwrap_or(0);
    let unit = u64::from(layout.payload_bytes);
    let mut out = Vec::new();
    varint::put(&mut out, u64::from(least_erases));
    let mut expected = 0;
    let row = |one: &Segment| -> Row {
        let sequence = zigzag((i64::from(one.sequence) - expected).cast_unsigned());
        expected = i64::from(one.sequence) + 1;
        let parity = layout.parity_of(one.stream);
        let dead = layout.bytes_with(parity).saturating_sub(u64::from(one.live_bytes));
        let summary = match one.summary_page {
            NO_SUMMARY => 0,
            page => 1 + zigzag((i64::from(layout.pages_with(parity)) - i64::from(page)).cast_unsigned()),
        };
        let use_of = one.state as u64 | (one.stream as u64) << 3;
        [use_of, sequence, u64::from(one.erases - least_erases), dead / unit, dead % unit, summary]
    };
    out.extend_from_slice(&encode_rows(&entries.iter().map(row).collect::<Vec<Row>>()));
    out
}

/// The `count` entries in `bytes`; `None` if they make no sense.
pub fn decode(mut bytes: &[u8], count: usize, layout: &Layout) -> Option<Vec<Segment>> {
    let least_erases = u32::try_from(varint::take(&mut bytes)?).ok()?;
    let unit = u64::from(layout.payload_bytes);
    let mut expected = 0i64;
    let segment = |row: Row| {
        let [use_of, sequence, erases, pages, rest, summary] = row;
        let state = SegmentState::from_byte((use_of & 7) as u8)?;
        let stream = Stream::from_byte(u8::try_from(use_of >> 3).ok()?).filter(|stream| layout.has_stream(*stream))?;
        let parity = layout.parity_of(stream);
        let sequence = u32::try_from(expected.checked_add(unzigzag(sequence).cast_signed())?).ok()?;
        expected = i64::from(sequence) + 1;
        let dead = pages.checked_mul(unit)?.checked_add(rest).filter(|_| rest < unit)?;
        let live_bytes = u32::try_from(layout.bytes_with(parity).checked_sub(dead)?).ok()?;
        let erases = least_erases.checked_add(u32::try_from(erases).ok()?)?;
        let summary_page = match summary.checked_sub(1) {
            None => NO_SUMMARY,
            Some(away) => {
                u16::try_from(i64::from(layout.pages_with(parity)).checked_sub(unzigzag(away).cast_signed())?).ok()?
            }
        };
        Some(Segment { state, stream, live_bytes, erases, sequence, summary_page })
    };
    decode_rows(bytes, count).into_iter().map(segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_base::Prng;
    use onode_media::Geometry;

    #[test]
    fn pieces_round_trip_and_hostile_ones_are_survived() {
        let shape = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 64, blocks: 1024, chips: 1 };
        let layout = Layout::new(shape, 2).unwrap();
        let mut random = Prng::new(1);
        for round in 0..200 {
            let mut entry = |number: u64| {
                let any = SegmentState::from_byte(random.below(7) as u8).unwrap_or(SegmentState::Full);
                let state = if round % 2 == 0 { SegmentState::Full } else { any };
                let stream = Stream::ALL[random.below(2 + round % 9) as usize];
                let live_bytes = layout.segment_bytes() as u32 - random.below(1 + (round << 8)) as u32;
                let sequence = if round % 3 == 0 { number as u32 } else { random.next_u64() as u32 };
                let summary_page = if random.chance(1, 5) { NO_SUMMARY } else { 120 + random.below(9) as u16 };
                Segment { state, stream, live_bytes, erases: 7 + random.below(3) as u32, sequence, summary_page }
            };
            let entries: Vec<Segment> = (0..170).map(&mut entry).collect();
            let bytes = encode(&entries, &layout);
            assert_eq!(decode(&bytes, 170, &layout).as_ref(), Some(&entries), "{round}");
            for _ in 0..50 {
                let mut bad = bytes.clone();
                let at = random.below(bad.len() as u64) as usize;
                bad[at] ^= 1 << random.below(8);
                for one in decode(&bad, 170, &layout).into_iter().flatten() {
                    assert!(u64::from(one.live_bytes) <= layout.segment_bytes());
                }
            }
        }
    }
}
