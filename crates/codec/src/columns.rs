//! Rows of small numbers, such as a table of erase blocks, coded with what was learnt from the rows
//! before.
//!
//! Each number is a symbol - itself if it is below 64, else how many bits it has - and the bits
//! that the symbol leaves open. The bits of a symbol are coded one by one by a binary arithmetic
//! coder, each with a chance of its own that follows what came before. The first number of a row
//! says what kind of row it is: it is foretold by that of the row before, and the others by what
//! stood in their column in rows of that kind. So a column that is constant, or follows from the
//! kind, costs next to nothing.
//!
//! What it does not do: count rows, check sums, take differences. Bytes that were never written as
//! rows give rows all the same; who reads them has to look whether they make sense.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The bits of a symbol.
const SYMBOL_BITS: u32 = 7;
/// Numbers below are symbols of their own.
const EXACT: u64 = 1 << EXACT_BITS;
const EXACT_BITS: u32 = 6;
const _: () = assert!(EXACT as u32 + u64::BITS - EXACT_BITS <= 1 << SYMBOL_BITS);
/// Chances are parts of this.
const CERTAIN: u32 = 1 << 16;
/// No chance is nearer to nothing.
const CHANCE_MIN: u32 = 48;
/// From so many bits on a chance follows no slower.
const SEEN_MAX: u8 = 40;
/// Kinds beyond share their numbers.
const KINDS: u64 = 128;

/// How likely a one is.
#[derive(Clone, Copy)]
struct Chance {
    one: u16,
    seen: u8,
}

impl Chance {
    const EVEN: Self = Self { one: 1 << 15, seen: 0 };

    const fn learn(&mut self, bit: bool) {
        // Quickly at first, by less and less.
        let divisor = 16 + 10 * self.seen as u32;
        let one = self.one as u32;
        let one = if bit { one + (CERTAIN - one) * 10 / divisor } else { one - one * 10 / divisor };
        self.one = if one < CHANCE_MIN {
            CHANCE_MIN as u16
        } else if one > CERTAIN - CHANCE_MIN {
            (CERTAIN - CHANCE_MIN) as u16
        } else {
            one as u16
        };
        if self.seen < SEEN_MAX {
            self.seen += 1;
        }
    }
}

type Tree = [Chance; 1 << SYMBOL_BITS];

/// A binary arithmetic coder, in either direction: `None` as a bit asks for it.
trait Coder {
    fn code(&mut self, one: u32, bit: Option<bool>) -> bool;
}

/// The range of what may still come out.
struct Range {
    low: u32,
    high: u32,
}

impl Range {
    const ALL: Self = Self { low: 0, high: u32::MAX };

    /// The last number that stands for a one.
    fn middle(&self, one: u32) -> u32 {
        self.low + ((u64::from(self.high - self.low) * u64::from(one)) >> 16) as u32
    }

    const fn take(&mut self, middle: u32, bit: bool) {
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
    }

    /// The first byte, once it is certain.
    const fn settled(&mut self) -> Option<u8> {
        let byte = (self.high >> 24) as u8;
        if (self.low ^ self.high) >> 24 != 0 {
            return None;
        }
        self.low <<= 8;
        self.high = self.high << 8 | 0xff;
        Some(byte)
    }
}

struct Writer {
    range: Range,
    out: Vec<u8>,
}

impl Coder for Writer {
    fn code(&mut self, one: u32, bit: Option<bool>) -> bool {
        let bit = bit.unwrap_or(false);
        self.range.take(self.range.middle(one), bit);
        while let Some(byte) = self.range.settled() {
            self.out.push(byte);
        }
        bit
    }
}

impl Writer {
    /// The bytes; behind them a reader finds zeros.
    fn finish(mut self) -> Vec<u8> {
        let Range { low, high } = self.range;
        for bytes in 0..=4u32 {
            let open = u32::MAX.checked_shr(8 * bytes).unwrap_or(0);
            let rounded = low.checked_add(open).map(|least| least & !open);
            if let Some(value) = rounded.filter(|value| *value <= high) {
                let all = value.to_le_bytes();
                self.out.extend(all.iter().rev().take(bytes as usize));
                break;
            }
        }
        while self.out.last() == Some(&0) {
            self.out.pop();
        }
        self.out
    }
}

struct Reader<'a> {
    range: Range,
    value: u32,
    input: &'a [u8],
}

impl<'a> Reader<'a> {
    fn new(input: &'a [u8]) -> Self {
        let mut reader = Self { range: Range::ALL, value: 0, input };
        for _ in 0..4 {
            reader.take_byte();
        }
        reader
    }

    fn take_byte(&mut self) {
        let (byte, rest) = self.input.split_first().map_or((0, &[][..]), |(byte, rest)| (*byte, rest));
        self.value = self.value << 8 | u32::from(byte);
        self.input = rest;
    }
}

impl Coder for Reader<'_> {
    fn code(&mut self, one: u32, _: Option<bool>) -> bool {
        let middle = self.range.middle(one);
        let bit = self.value <= middle;
        self.range.take(middle, bit);
        while self.range.settled().is_some() {
            self.take_byte();
        }
        bit
    }
}

/// What was learnt: a tree of chances for each column in rows of each kind.
#[derive(Default)]
struct Model(BTreeMap<(usize, u64), Box<Tree>>);

impl Model {
    fn number(&mut self, coder: &mut impl Coder, place: (usize, u64), value: Option<u64>) -> u64 {
        let tree = self.0.entry(place).or_insert_with(|| Box::new([Chance::EVEN; 1 << SYMBOL_BITS]));
        let said = value.map(symbol_of);
        let mut node = 1;
        for bit in (0..SYMBOL_BITS).rev() {
            let chance = &mut tree[node];
            let is_one = coder.code(u32::from(chance.one), said.map(|symbol| symbol >> bit & 1 == 1));
            chance.learn(is_one);
            node = node << 1 | usize::from(is_one);
        }
        let symbol = node - (1 << SYMBOL_BITS);
        let (least, open) = open_bits(symbol);
        (0..open).rev().fold(least >> open, |number, bit| {
            let is_one = coder.code(CERTAIN / 2, value.map(|value| value >> bit & 1 == 1));
            number << 1 | u64::from(is_one)
        })
    }

    fn row<const N: usize>(&mut self, coder: &mut impl Coder, before: u64, row: Option<&[u64; N]>) -> [u64; N] {
        let mut out = [0; N];
        let mut kind = before % KINDS;
        for (column, number) in out.iter_mut().enumerate() {
            *number = self.number(coder, (column, kind), row.and_then(|row| row.get(column).copied()));
            if column == 0 {
                kind = *number % KINDS;
            }
        }
        out
    }
}

const fn symbol_of(value: u64) -> usize {
    let bits = u64::BITS - value.leading_zeros();
    if value < EXACT { value as usize } else { (EXACT as u32 + bits - EXACT_BITS - 1) as usize }
}

/// The least number of a symbol, and how many of its lower bits are open.
const fn open_bits(symbol: usize) -> (u64, u32) {
    if symbol < EXACT as usize {
        return (symbol as u64, 0);
    }
    // The first one has the numbers of one bit more than those below. Those beyond 64 bits are
    // never written.
    let open = symbol as u32 - EXACT as u32 + EXACT_BITS;
    let open = if open > 63 { 63 } else { open };
    (1 << open, open)
}

/// `rows` as bytes.
#[must_use]
pub fn encode_rows<const N: usize>(rows: &[[u64; N]]) -> Vec<u8> {
    let mut writer = Writer { range: Range::ALL, out: Vec::new() };
    let (mut model, mut before) = (Model::default(), 0);
    for row in rows {
        model.row(&mut writer, before, Some(row));
        before = row.first().copied().unwrap_or(0);
    }
    writer.finish()
}

/// The `count` rows behind `bytes`.
#[must_use]
pub fn decode_rows<const N: usize>(bytes: &[u8], count: usize) -> Vec<[u64; N]> {
    let mut reader = Reader::new(bytes);
    let (mut model, mut before) = (Model::default(), 0);
    let row = |_| {
        let row: [u64; N] = model.row(&mut reader, before, None);
        before = row.first().copied().unwrap_or(0);
        row
    };
    (0..count).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_base::Prng;

    #[test]
    fn any_rows_round_trip() {
        let mut random = Prng::new(1);
        for round in 0..400 {
            let mut number = |limit: u32| random.next_u64() >> (64 - 1 - random.below(u64::from(limit))) as u32;
            let rows: Vec<[u64; 4]> = (0..round)
                .map(|_| [number(3), number(64), number(9), if round % 3 == 0 { 0 } else { u64::MAX }])
                .collect();
            let bytes = encode_rows(&rows);
            assert_eq!(decode_rows(&bytes, rows.len()), rows, "{round}");
        }
        for value in (0..64).map(|bit| 1u64 << bit).chain([0, 63, 65, 127, 128, u64::MAX]) {
            assert_eq!(decode_rows(&encode_rows(&[[value]]), 1), [[value]]);
        }
    }

    #[test]
    fn what_does_not_change_is_nearly_free_and_chance_costs_its_bits() {
        let mut random = Prng::new(2);
        let equal = encode_rows(&[[4, 0, 62]; 500]);
        assert!(equal.len() < 30, "{} bytes", equal.len());
        // Two kinds in no order, with constants of their own.
        let kinds: Vec<[u64; 3]> =
            (0..500).map(|_| if random.chance(1, 2) { [4, 0, 62] } else { [9, 33, 5000] }).collect();
        let taken = encode_rows(&kinds).len();
        assert!(taken < 500 / 8 + 250 * 12 / 8 + 70, "{taken} bytes");
        let noise: Vec<[u64; 2]> = (0..1000).map(|_| [1, random.below(1 << 10) + (1 << 10)]).collect();
        let taken = encode_rows(&noise).len();
        assert!((1240..1300).contains(&taken), "{taken} bytes for 10,000 bits");
    }

    #[test]
    fn any_bytes_are_survived() {
        let mut random = Prng::new(3);
        for _ in 0..2000 {
            let mut bytes = alloc::vec![0; random.below(80) as usize];
            random.fill(&mut bytes);
            let rows: Vec<[u64; 3]> = decode_rows(&bytes, 200);
            assert_eq!(decode_rows(&encode_rows(&rows), 200), rows);
        }
    }
}
