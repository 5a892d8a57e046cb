//! Run-length coding: a marker, the rarest byte, comes first; a run is marker, length, byte.
//!
//! Lengths of 128 and more take two bytes, the first with its highest bit set. The marker itself as
//! a byte of the content is followed by its count less one if it occurs up to three times in a row
//! (0 to 2); more are a run.

/// The longest run.
const RUN_MAX: usize = 0x7fff;
/// Up to so many markers in a row are written without a byte.
const MARKERS_MAX: usize = 3;

/// `bytes`, coded.
pub fn encode(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let mut counts = [0usize; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let marker = (0..=u8::MAX).min_by_key(|&byte| counts[usize::from(byte)]).unwrap_or(0);
    let mut out = Vec::with_capacity(bytes.len() + 1);
    out.push(marker);
    let mut rest = bytes;
    while let Some(&byte) = rest.first() {
        let run = rest.iter().take(RUN_MAX).take_while(|&&other| other == byte).count();
        if run > MARKERS_MAX {
            out.push(marker);
            if run >= 128 {
                out.push(0x80 | (run >> 8) as u8);
            }
            out.push(run as u8);
            out.push(byte);
        } else if byte == marker {
            out.extend_from_slice(&[marker, run as u8 - 1]);
        } else {
            out.extend(core::iter::repeat_n(byte, run));
        }
        rest = rest.get(run..).unwrap_or_default();
    }
    out
}

/// The bytes that [`encode`] wrote.
pub fn decode(coded: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut input = coded.iter().copied();
    let Some(marker) = input.next() else { return (length == 0).then(Vec::new) };
    let mut out = Vec::with_capacity(length.min(coded.len() * 4));
    while let Some(byte) = input.next() {
        let (byte, run) = if byte != marker {
            (byte, 1)
        } else {
            let first = usize::from(input.next()?);
            if first < MARKERS_MAX {
                (marker, first + 1)
            } else {
                let run = if first & 0x80 != 0 { (first & 0x7f) << 8 | usize::from(input.next()?) } else { first };
                (input.next()?, run)
            }
        };
        if run > length - out.len() {
            return None;
        }
        out.extend(core::iter::repeat_n(byte, run));
    }
    Some(out)
}
