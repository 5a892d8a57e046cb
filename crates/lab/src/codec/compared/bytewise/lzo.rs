//! LZO1X, written from the description of its format: literals, and copies of 2 bytes and more from
//! up to 48 KiB before.
//!
//! The encoder is a plain greedy one with a hash table of the places where three bytes were last
//! seen. Whatever it writes any decoder of LZO1X reads, and the decoder here reads what any encoder
//! of LZO1X wrote.

/// The longest distance that instruction M2, M3 and M4 reach.
const M2_DISTANCE: usize = 0x800;
const M3_DISTANCE: usize = 0x4000;
const M4_DISTANCE: usize = 0xbfff;
const HASH_BITS: u32 = 12;

/// Ends every stream: a copy from a distance that is none.
const END: [u8; 3] = [0x11, 0, 0];

fn hash(bytes: &[u8], at: usize) -> Option<usize> {
    let &[a, b, c] = bytes.get(at..)?.first_chunk::<3>()?;
    let word = u32::from_le_bytes([a, b, c, 0]);
    Some((word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize)
}

/// `bytes`, coded.
pub fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 16 + 8);
    let mut seen = vec![usize::MAX; 1 << HASH_BITS];
    let (mut at, mut literals_from) = (0, 0);
    while let Some(slot) = hash(bytes, at) {
        let before = core::mem::replace(&mut seen[slot], at);
        let distance = at.wrapping_sub(before);
        let length = if before < at && distance <= M4_DISTANCE { common(bytes, before, at) } else { 0 };
        // A copy from afar takes three bytes itself, a very far one only pays for more.
        let least = 3 + usize::from(distance > M2_DISTANCE) + usize::from(distance > M3_DISTANCE);
        if length < least {
            at += 1;
            continue;
        }
        put_literals(&mut out, &bytes[literals_from..at]);
        put_copy(&mut out, distance, length);
        for passed in at + 1..at + length {
            if let Some(slot) = hash(bytes, passed) {
                seen[slot] = passed;
            }
        }
        at += length;
        literals_from = at;
    }
    put_literals(&mut out, &bytes[literals_from..]);
    out.extend_from_slice(&END);
    out
}

/// Bytes that are equal at both places.
fn common(bytes: &[u8], before: usize, at: usize) -> usize {
    let (Some(old), Some(new)) = (bytes.get(before..), bytes.get(at..)) else { return 0 };
    old.iter().zip(new).take_while(|(a, b)| a == b).count()
}

/// Writes what is left of a length whose first bits did not suffice.
fn put_extension(out: &mut Vec<u8>, mut length: usize) {
    while length > 255 {
        out.push(0);
        length -= 255;
    }
    out.push(length as u8);
}

fn put_literals(out: &mut Vec<u8>, literals: &[u8]) {
    let count = literals.len();
    let behind = out.len();
    if count == 0 {
        return;
    }
    if out.is_empty() && count <= 238 {
        out.push(17 + count as u8);
    } else if count <= 3 && behind >= 2 {
        // The two low bits of the last byte but one of a copy are free for them.
        if let Some(byte) = out.get_mut(behind - 2) {
            *byte |= count as u8;
        }
    } else if count <= 18 {
        out.push(count as u8 - 3);
    } else {
        out.push(0);
        put_extension(out, count - 18);
    }
    out.extend_from_slice(literals);
}

fn put_copy(out: &mut Vec<u8>, distance: usize, length: usize) {
    if length <= 8 && distance <= M2_DISTANCE {
        let distance = distance - 1;
        let low = (distance as u8 & 7) << 2;
        out.push(if length <= 4 { 0x40 | (length as u8 - 3) << 5 | low } else { 0x80 | (length as u8 - 5) << 5 | low });
        out.push((distance >> 3) as u8);
        return;
    }
    let (kind, bits, distance) = if distance <= M3_DISTANCE {
        (0x20, 31, distance - 1)
    } else {
        let distance = distance - M3_DISTANCE;
        (0x10 | (distance >> 14 << 3) as u8, 7, distance & 0x3fff)
    };
    if length - 2 <= bits {
        out.push(kind | (length - 2) as u8);
    } else {
        out.push(kind);
        put_extension(out, length - 2 - bits);
    }
    out.extend_from_slice(&((distance as u16) << 2).to_le_bytes());
}

/// What is left to decode.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<usize> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(usize::from(byte))
    }

    fn pair(&mut self) -> Option<usize> {
        Some(self.byte()? | self.byte()? << 8)
    }

    /// `first` if it is not zero, else `bits` and what the bytes that follow add.
    fn length(&mut self, first: usize, bits: usize) -> Option<usize> {
        if first != 0 {
            return Some(first);
        }
        let mut length = bits;
        loop {
            match self.byte()? {
                0 => length = length.checked_add(255)?,
                last => return length.checked_add(last),
            }
        }
    }
}

/// The bytes that [`encode`], or any encoder of LZO1X, wrote.
pub fn decode(coded: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(length.min(coded.len() * 8));
    let mut input = Input(coded);
    // Literals since the last copy: 0 to 3, or 4 for more.
    let mut state = 0;
    if coded.first().is_some_and(|&first| first > 17) {
        let count = input.byte()? - 17;
        literals(&mut out, &mut input, count, length)?;
        state = count.min(4);
    }
    loop {
        let code = input.byte()?;
        let (count, distance, behind) = match code {
            0..=15 if state == 0 => {
                let count = input.length(code, 15)? + 3;
                literals(&mut out, &mut input, count, length)?;
                state = 4;
                continue;
            }
            0..=15 if state == 4 => (3, (input.byte()? << 2) + (code >> 2) + 2049, code & 3),
            0..=15 => (2, (input.byte()? << 2) + (code >> 2) + 1, code & 3),
            16..=31 => {
                let count = input.length(code & 7, 7)? + 2;
                let pair = input.pair()?;
                let distance = M3_DISTANCE + ((code & 8) << 11) + (pair >> 2);
                if distance == M3_DISTANCE {
                    return (count == 3 && input.0.is_empty()).then_some(out);
                }
                (count, distance, pair & 3)
            }
            32..=63 => {
                let count = input.length(code & 31, 31)? + 2;
                let pair = input.pair()?;
                (count, (pair >> 2) + 1, pair & 3)
            }
            64..=127 => (3 + (code >> 5 & 1), (input.byte()? << 3) + (code >> 2 & 7) + 1, code & 3),
            _ => (5 + (code >> 5 & 3), (input.byte()? << 3) + (code >> 2 & 7) + 1, code & 3),
        };
        copy(&mut out, distance, count, length)?;
        literals(&mut out, &mut input, behind, length)?;
        state = behind;
    }
}

fn literals(out: &mut Vec<u8>, input: &mut Input<'_>, count: usize, length: usize) -> Option<()> {
    if count > length - out.len() || count > input.0.len() {
        return None;
    }
    let (literals, rest) = input.0.split_at(count);
    out.extend_from_slice(literals);
    input.0 = rest;
    Some(())
}

fn copy(out: &mut Vec<u8>, distance: usize, count: usize, length: usize) -> Option<()> {
    if count > length - out.len() {
        return None;
    }
    let from = out.len().checked_sub(distance)?;
    for at in from..from + count {
        // A copy may overlap what it writes.
        out.push(*out.get(at)?);
    }
    Some(())
}
