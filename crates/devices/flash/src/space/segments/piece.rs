//! A piece of the segment table as bytes: mostly differences, so that a mount reads few pages.

use super::{Segment, SegmentState};
use crate::medium::format::NO_SUMMARY;
use crate::medium::layout::Layout;
use crate::policy::Stream;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_base::varint;

/// Bytes that an entry usually takes.
pub const ENTRY_BYTES_USUAL: usize = 12;
/// Bytes that an entry takes at most.
const ENTRY_BYTES_MAX: usize = 1 + 5 + 5 + 5 + 3;
/// Room behind the entries. Writing a piece changes the table: the figures may be a little longer
/// when it is written than when its place was found.
const SLACK_BYTES: usize = 8;

/// Bytes of the largest piece of `entries` entries.
pub const fn bytes_max(entries: usize) -> usize {
    10 + entries * ENTRY_BYTES_MAX + SLACK_BYTES
}

/// The piece as bytes, with room behind it; `next_sequence` is above every sequence number in it.
pub fn encode(entries: &[Segment], next_sequence: u32) -> Vec<u8> {
    let least_erases = entries.iter().map(|one| one.erases).min().unwrap_or(0);
    let mut out = Vec::with_capacity(entries.len() * ENTRY_BYTES_USUAL);
    varint::put(&mut out, u64::from(next_sequence));
    varint::put(&mut out, u64::from(least_erases));
    for one in entries {
        out.push(one.state as u8 | (one.stream as u8) << 3);
        varint::put(&mut out, u64::from(one.live_bytes));
        varint::put(&mut out, u64::from(one.erases - least_erases));
        // 0: never opened.
        let distance = if one.sequence == 0 { 0 } else { next_sequence.wrapping_sub(one.sequence) };
        varint::put(&mut out, u64::from(distance));
        varint::put(&mut out, u64::from(one.summary_page.wrapping_add(1)));
    }
    out.resize(out.len() + SLACK_BYTES, 0);
    out
}

/// The `count` entries in `bytes`.
///
/// # Errors
/// What makes no sense.
pub fn decode(bytes: &[u8], count: usize, layout: &Layout) -> Result<Vec<Segment>, String> {
    let mut input = bytes;
    let short = || String::from("it is cut short");
    let number = |input: &mut &[u8]| varint::take(input).and_then(|value| u32::try_from(value).ok()).ok_or_else(short);
    let next_sequence = number(&mut input)?;
    let least_erases = number(&mut input)?;
    let mut entries = Vec::with_capacity(count);
    for index in 0..count {
        let (&head, rest) = input.split_first().ok_or_else(short)?;
        input = rest;
        let (Some(state), Some(stream)) = (SegmentState::from_byte(head & 7), Stream::from_byte(head >> 3)) else {
            return Err(format!("entry {index}: unknown state {} or stream {}", head & 7, head >> 3));
        };
        if !layout.has_stream(stream) {
            return Err(format!("entry {index}: stream {} on a volume without it", stream.name()));
        }
        let live_bytes = number(&mut input)?;
        if u64::from(live_bytes) > layout.bytes_with(layout.parity_of(stream)) {
            return Err(format!("entry {index}: {live_bytes} live bytes"));
        }
        let erases = least_erases.saturating_add(number(&mut input)?);
        let sequence = match number(&mut input)? {
            0 => 0,
            distance => next_sequence.wrapping_sub(distance),
        };
        let summary_page = u16::try_from(number(&mut input)?).map_err(|_| short())?.checked_sub(1);
        let summary_page = summary_page.unwrap_or(NO_SUMMARY);
        entries.push(Segment { state, stream, live_bytes, erases, sequence, summary_page });
    }
    if input.iter().all(|&byte| byte == 0) { Ok(entries) } else { Err("something follows its entries".into()) }
}
