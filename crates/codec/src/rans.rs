//! rANS coding with static tables: a range of the state for each token, as wide as the token is
//! frequent.
//!
//! Numbers below [`EXACT`] are symbols of their own, larger ones share a symbol with those of as
//! many bits and are followed by these; a page that is far from where it is expected is an escape
//! and the page itself. Bits that nothing foretells go through the same state in pieces, so the
//! outcome is one run of bytes: the state (32 bits), and what the decoder takes in as it goes on.
//! It is written from the last token to the first.

use crate::tables::{EXACT, Frequencies, SETS, SYMBOLS, TABLES};
use crate::tokens::{CLASSES, Class, Token, TokenSource};
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::varint::unzigzag;

/// Frequencies of a class add up to two to the power of this.
pub const SCALE_BITS: u32 = 14;
const SCALE: u32 = 1 << SCALE_BITS;
/// Numbers below are symbols of their own.
const EXACT_BITS: u32 = 5;
/// The symbol that says that a page follows.
const ESCAPE: usize = SYMBOLS - 1;
/// The least state between two tokens, which is also the first one.
const LEAST: u32 = 1 << 23;

/// A class's scale is looked up in so many pieces of equal length.
const PIECES: usize = 64;
const PIECE: u32 = SCALE / PIECES as u32;

/// Costs are in units of a bit divided by this.
const COST_UNIT: u32 = 64;
/// Sets of tables side by side, as many as fill whole vectors of a processor.
const SETS_BESIDE: usize = SETS.next_multiple_of(4);

/// The costs of so many tokens, none of which costs as much as 2^14 units, are added up in 32 bits.
const TOKENS_AT_ONCE: usize = 1 << 16;

/// What each symbol costs, the logarithm of what part of the scale it has, with the sets of tables
/// side by side: to add up what each of them costs takes hardly longer than for one.
static COSTS: [[[u32; SETS_BESIDE]; SYMBOLS]; CLASSES] = {
    let mut costs = [[[0; SETS_BESIDE]; SYMBOLS]; CLASSES];
    let mut set = 0;
    while set < SETS {
        let mut class = 0;
        while class < CLASSES {
            let mut symbol = 0;
            while symbol < SYMBOLS {
                costs[class][symbol][set] = cost_of(TABLES[set][class][symbol]);
                symbol += 1;
            }
            class += 1;
        }
        set += 1;
    }
    costs
};

/// Where the range of each symbol begins.
static STARTS: [[[u16; SYMBOLS]; CLASSES]; SETS] = {
    let mut starts = [[[0; SYMBOLS]; CLASSES]; SETS];
    let mut set = 0;
    while set < SETS {
        let mut class = 0;
        while class < CLASSES {
            let mut symbol = 1;
            while symbol < SYMBOLS {
                starts[set][class][symbol] = starts[set][class][symbol - 1] + TABLES[set][class][symbol - 1];
                symbol += 1;
            }
            let end = starts[set][class][SYMBOLS - 1] + TABLES[set][class][SYMBOLS - 1];
            assert!(end as u32 == SCALE, "the frequencies of a class have to fill the scale");
            class += 1;
        }
        set += 1;
    }
    starts
};

/// The first symbol whose range reaches into each piece of the scale.
static FIRSTS: [[[u8; PIECES]; CLASSES]; SETS] = {
    let mut firsts = [[[0; PIECES]; CLASSES]; SETS];
    let mut set = 0;
    while set < SETS {
        let mut class = 0;
        while class < CLASSES {
            let (mut piece, mut symbol) = (0, 0);
            while piece < PIECES {
                while symbol + 1 < SYMBOLS && STARTS[set][class][symbol + 1] as u32 <= piece as u32 * PIECE {
                    symbol += 1;
                }
                firsts[set][class][piece] = symbol as u8;
                piece += 1;
            }
            class += 1;
        }
        set += 1;
    }
    firsts
};

/// `SCALE_BITS - log2(frequency)` in units of cost, by squaring the mantissa for each bit of the
/// fraction.
const fn cost_of(frequency: u16) -> u32 {
    assert!(frequency > 0, "a symbol without a range could not be written");
    let whole = frequency.ilog2();
    let mut mantissa = (frequency as u64) << (30 - whole);
    let mut logarithm = whole;
    let mut unit = COST_UNIT;
    while unit > 1 {
        mantissa = (mantissa * mantissa) >> 30;
        let more = (mantissa >> 31) as u32;
        mantissa >>= more;
        logarithm = logarithm << 1 | more;
        unit >>= 1;
    }
    SCALE_BITS * COST_UNIT - logarithm
}

/// What a place costs by its difference, which has `more` bits behind its symbol, and as it is,
/// behind an escape.
const fn costs_of_place(symbol: u32, more: u32, escape: u32, bits: u8) -> (u32, u32) {
    (symbol + more * COST_UNIT, escape + bits as u32 * COST_UNIT)
}

/// The symbol of a number and the bits that follow it.
pub const fn symbol_of(value: u64) -> (usize, u32) {
    if value < EXACT {
        (value as usize, 0)
    } else {
        let bits = 64 - value.leading_zeros();
        ((EXACT as u32 + bits - EXACT_BITS) as usize, bits - 1)
    }
}

/// How often each symbol of each class occurs; tables are made from this.
pub fn count(tokens: &[Token], counts: &mut [[u64; SYMBOLS]; CLASSES]) {
    for token in tokens {
        let (class, symbol) = match *token {
            Token::Value(class, value) => (class, symbol_of(value).0),
            Token::Place { class, difference, bits, .. } => {
                let (symbol, more) = symbol_of(difference);
                // Those with nearly all bits are spread over symbols that each cost some.
                (class, if more + 2 >= u32::from(bits) { ESCAPE } else { symbol })
            }
            Token::Bits(..) => continue,
        };
        counts[class as usize][symbol] += 1;
    }
}

/// The set of tables among `sets` with which `tokens` take the fewest bits, and about how many.
pub fn fit(tokens: &[Token], sets: Range<usize>) -> (usize, u64) {
    let mut costs = [0u64; SETS_BESIDE];
    let mut bits = 0;
    for some in tokens.chunks(TOKENS_AT_ONCE) {
        let mut of_some = [0u32; SETS_BESIDE];
        for token in some {
            match *token {
                Token::Value(class, value) => {
                    let (symbol, more) = symbol_of(value);
                    bits += u64::from(more);
                    for (cost, one) in of_some.iter_mut().zip(COSTS[class as usize][symbol]) {
                        *cost += one;
                    }
                }
                Token::Place { class, difference, bits, .. } => {
                    let (symbol, more) = symbol_of(difference);
                    let table = &COSTS[class as usize];
                    for ((cost, one), escape) in of_some.iter_mut().zip(table[symbol]).zip(table[ESCAPE]) {
                        let (near, far) = costs_of_place(one, more, escape, bits);
                        *cost += near.min(far);
                    }
                }
                Token::Bits(_, count) => bits += u64::from(count),
            }
        }
        costs.iter_mut().zip(of_some).for_each(|(cost, some)| *cost += u64::from(some));
    }
    let best = sets.clone().min_by_key(|&set| costs[set]).unwrap_or(sets.start);
    (best, bits + 32 + costs[best] / u64::from(COST_UNIT))
}

/// What a token costs with the tables of `set`.
fn cost(token: &Token, set: usize) -> u32 {
    match *token {
        Token::Value(class, value) => {
            let (symbol, more) = symbol_of(value);
            COSTS[class as usize][symbol][set] + more * COST_UNIT
        }
        Token::Place { class, difference, bits, .. } => {
            let (symbol, more) = symbol_of(difference);
            let table = &COSTS[class as usize];
            let (near, far) = costs_of_place(table[symbol][set], more, table[ESCAPE][set], bits);
            near.min(far)
        }
        Token::Bits(_, count) => u32::from(count) * COST_UNIT,
    }
}

/// About how many bits `tokens` take with the tables of `set` up to the ends of parts, each of
/// which has so many tokens up to there.
pub fn about_ends(tokens: &[Token], ends: &[u32], set: usize) -> Vec<u32> {
    let (mut rest, mut done, mut all) = (tokens, 0, 0u64);
    let bits_up_to = |end: &u32| {
        let (part, behind) = rest.split_at((*end as usize - done).min(rest.len()));
        (rest, done) = (behind, *end as usize);
        all += part.iter().map(|token| u64::from(cost(token, set))).sum::<u64>();
        (all / u64::from(COST_UNIT)).min(u64::from(u32::MAX)) as u32
    };
    ends.iter().map(bits_up_to).collect()
}

/// Ranges of the state, in the order of the tokens.
struct Ranges {
    set: usize,
    ranges: Vec<(u32, u32)>,
}

impl Ranges {
    fn symbol(&mut self, class: Class, symbol: usize) {
        let start = STARTS[self.set][class as usize][symbol];
        self.ranges.push((u32::from(start), u32::from(TABLES[self.set][class as usize][symbol])));
    }

    /// Bits that nothing foretells, the lowest ones first.
    fn bits(&mut self, mut value: u64, mut bits: u32) {
        while bits > 0 {
            let piece = bits.min(SCALE_BITS);
            let width = SCALE >> piece;
            self.ranges.push(((value as u32 & ((1 << piece) - 1)) * width, width));
            value >>= piece;
            bits -= piece;
        }
    }

    fn value(&mut self, class: Class, value: u64) {
        let (symbol, more) = symbol_of(value);
        self.symbol(class, symbol);
        self.bits(value, more);
    }

    fn token(&mut self, token: &Token) {
        match *token {
            Token::Value(class, value) => self.value(class, value),
            Token::Place { class, difference, at, bits } => {
                let (symbol, more) = symbol_of(difference);
                let table = &COSTS[class as usize];
                let (near, far) = costs_of_place(table[symbol][self.set], more, table[ESCAPE][self.set], bits);
                if near <= far {
                    self.value(class, difference);
                } else {
                    self.symbol(class, ESCAPE);
                    self.bits(at, u32::from(bits));
                }
            }
            Token::Bits(value, bits) => self.bits(value, u32::from(bits)),
        }
    }
}

/// `tokens` with the tables of `set`.
pub fn encode(tokens: &[Token], set: usize) -> Vec<u8> {
    let mut ranges = Ranges { set, ranges: Vec::with_capacity(tokens.len() + tokens.len() / 4) };
    for token in tokens {
        ranges.token(token);
    }
    let mut out = Vec::with_capacity(512);
    let mut state = LEAST;
    for &(start, width) in ranges.ranges.iter().rev() {
        let most = u64::from((LEAST >> SCALE_BITS) << 8) * u64::from(width);
        while u64::from(state) >= most {
            out.push(state as u8);
            state >>= 8;
        }
        state = (state / width) * SCALE + state % width + start;
    }
    out.extend(state.to_le_bytes().into_iter().rev());
    out.reverse();
    out
}

/// Takes tokens out of what [`encode`] wrote.
pub struct RansSource<'a> {
    widths: &'static [Frequencies; CLASSES],
    starts: &'static [Frequencies; CLASSES],
    firsts: &'static [[u8; PIECES]; CLASSES],
    state: u32,
    input: &'a [u8],
}

impl<'a> RansSource<'a> {
    pub fn new(bytes: &'a [u8], set: usize) -> Option<Self> {
        let (state, input) = bytes.split_first_chunk::<4>()?;
        let state = u32::from_le_bytes(*state);
        let (widths, starts, firsts) = (TABLES.get(set)?, STARTS.get(set)?, FIRSTS.get(set)?);
        (state >= LEAST && state >> 31 == 0).then_some(Self { widths, starts, firsts, state, input })
    }

    fn advance(&mut self, start: u32, width: u32) -> Option<()> {
        self.state = width * (self.state / SCALE) + self.state % SCALE - start;
        while self.state < LEAST {
            let (&byte, rest) = self.input.split_first()?;
            self.state = self.state << 8 | u32::from(byte);
            self.input = rest;
        }
        Some(())
    }

    fn symbol(&mut self, class: Class) -> Option<usize> {
        let slot = self.state % SCALE;
        let starts = self.starts.get(class as usize)?;
        let first = *self.firsts.get(class as usize)?.get((slot / PIECE) as usize)?;
        let mut symbol = usize::from(first);
        while starts.get(symbol + 1).is_some_and(|&start| u32::from(start) <= slot) {
            symbol += 1;
        }
        self.advance(u32::from(*starts.get(symbol)?), u32::from(*self.widths.get(class as usize)?.get(symbol)?))?;
        Some(symbol)
    }

    fn take_bits(&mut self, bits: u32) -> Option<u64> {
        let mut value = 0;
        let mut got = 0;
        while got < bits {
            let piece = (bits - got).min(SCALE_BITS);
            // A shift: a division would take as long as all the rest.
            let part = (self.state % SCALE) >> (SCALE_BITS - piece);
            self.advance(part << (SCALE_BITS - piece), SCALE >> piece)?;
            value |= u64::from(part) << got;
            got += piece;
        }
        Some(value)
    }

    fn number(&mut self, symbol: usize) -> Option<u64> {
        if symbol < EXACT as usize {
            return Some(symbol as u64);
        }
        let more = (symbol - EXACT as usize) as u32 + EXACT_BITS - 1;
        if more >= u64::BITS {
            return None;
        }
        Some(1 << more | self.take_bits(more)?)
    }
}

impl TokenSource for RansSource<'_> {
    fn value(&mut self, class: Class) -> Option<u64> {
        let symbol = self.symbol(class)?;
        self.number(symbol)
    }

    fn place(&mut self, class: Class, expected: u64, bits: u32) -> Option<u64> {
        let symbol = self.symbol(class)?;
        if symbol == ESCAPE {
            return self.take_bits(bits);
        }
        Some(expected.wrapping_add(unzigzag(self.number(symbol)?)))
    }

    fn bits(&mut self, bits: u32) -> Option<u64> {
        self.take_bits(bits)
    }

    fn is_finished(&self) -> bool {
        self.input.is_empty() && self.state == LEAST
    }
}
