//! Exponential-Golomb coding: each class of tokens has parameters that stand in the bucket, so
//! nothing has to be trained and any bucket can be written.
//!
//! A number `v` of a class with parameter `k` is written as the number of bits that `(v >> k) + 1`
//! has, in unary, and those bits. Before that the *usual* number of the class changes places with
//! 0, which takes the fewest bits; a class with nothing but the usual number takes none. A page
//! that is far from where it is expected is written as it is.

use crate::bits::{BitReader, BitWriter};
use crate::tokens::{CLASSES, Class, Token, TokenSource};
use onode_base::varint::unzigzag;

/// Bits of `k`.
const SHIFT_BITS: u32 = 5;
/// In place of `k`: the class has only its usual number.
const CONSTANT: u32 = 31;
/// Values of `k` are below: a class with larger numbers is rare and pays the longer prefix.
const SHIFTS: usize = 31;
/// So many shifts are tried.
const TRIED: u32 = 3;
/// Bits of the usual number.
const USUAL_BITS: u32 = 3;
/// So many ones in front of a page say that the page itself follows.
const ESCAPE: u32 = 6;

/// How the numbers of one class are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parameter {
    shift: u32,
    usual: u64,
}

/// The parameters of each class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters([Parameter; CLASSES]);

const ALL_ZERO: Parameter = Parameter { shift: CONSTANT, usual: 0 };

/// Bits of the prefix: `value + 2^shift` has `shift + 1 + prefix` bits.
#[inline]
const fn prefix_of(value: u64, shift: u32) -> u32 {
    match value.checked_add(1 << shift) {
        Some(sum) => 63 - sum.leading_zeros() - shift,
        None => 64 - shift,
    }
}

const fn value_bits(value: u64, shift: u32) -> u64 {
    (2 * prefix_of(value, shift) + 1 + shift) as u64
}

const fn place_bits(difference: u64, shift: u32, bits: u8) -> u64 {
    if prefix_of(difference, shift) < ESCAPE { value_bits(difference, shift) } else { ESCAPE as u64 + bits as u64 }
}

impl Parameter {
    /// Lets the usual number and 0 change places; twice is not at all.
    const fn swap(self, value: u64) -> u64 {
        if value == self.usual {
            0
        } else if value == 0 {
            self.usual
        } else {
            value
        }
    }

    /// Its own bits, with the one that says whether there are more.
    const fn bits(self) -> u64 {
        if self.shift == CONSTANT && self.usual == 0 { 1 } else { (1 + SHIFT_BITS + USUAL_BITS) as u64 }
    }
}

/// The number that an entropy coder sees in `token`, and the bits of the page if it is one.
const fn number(token: &Token) -> Option<(Class, u64, Option<u8>)> {
    match *token {
        Token::Value(class, value) => Some((class, value, None)),
        Token::Place { class, difference, bits, .. } => Some((class, difference, Some(bits))),
        Token::Bits(..) => None,
    }
}

/// Bits of a number.
const fn length_of(value: u64) -> usize {
    64 - value.leading_zeros() as usize
}

/// The shift with which numbers of which so many have so many bits may cost the least, and no more
/// than that least; none costs more than `escape`.
fn about_the_best(lengths: &[u32; 65], escape: u32) -> (u64, u32) {
    let mut best = (u64::MAX, 0);
    let mut worse = 0;
    let used = lengths.iter().rposition(|&count| count > 0).unwrap_or(0);
    for shift in 0..SHIFTS as u32 {
        let mut cost = 0;
        for (bits, &count) in (0u32..).zip(lengths.iter().take(used + 1)) {
            let above = bits.saturating_sub(shift);
            let prefix = if above > 1 { above - 1 } else { above };
            cost += u64::from(count) * u64::from((2 * prefix + 1 + shift).min(escape));
        }
        worse = if cost < best.0 { 0 } else { worse + 1 };
        best = best.min((cost, shift));
        // With an escape there may be two valleys, but not far apart.
        if worse > 4 {
            break;
        }
    }
    best
}

impl Parameters {
    /// The parameters with which `tokens` take the fewest bits, and those bits, the parameters' own
    /// included. `None` if it is soon plain that they are not fewer than `below`.
    pub fn fit(tokens: &[Token], below: u64) -> Option<(Self, u64)> {
        let mut parameters = [ALL_ZERO; CLASSES];
        let mut small = [[0u32; 1 << USUAL_BITS]; CLASSES];
        // How many numbers have so many bits.
        let mut lengths = [[0u32; 65]; CLASSES];
        let mut pages = [None; CLASSES];
        let mut total = 0;
        for token in tokens {
            let Some((class, value, page)) = number(token) else {
                total += if let Token::Bits(_, bits) = token { u64::from(*bits) } else { 0 };
                continue;
            };
            let class = class as usize;
            if let Some(count) = usize::try_from(value).ok().and_then(|value| small[class].get_mut(value)) {
                *count += 1;
            }
            lengths[class][length_of(value)] += 1;
            pages[class] = page;
        }
        let mut is_constant = [true; CLASSES];
        let mut first = [0u32; CLASSES];
        let mut least = total;
        for class in 0..CLASSES {
            let (small, lengths) = (&small[class], &mut lengths[class]);
            let often = (0..small.len()).rev().max_by_key(|&value| small[value]).unwrap_or(0);
            parameters[class].usual = often as u64;
            is_constant[class] = lengths.iter().sum::<u32>() == small[often];
            least += parameters[class].bits();
            if is_constant[class] {
                continue;
            }
            // The usual number and 0 change places.
            lengths[length_of(often as u64)] -= small[often];
            lengths[0] -= if often == 0 { 0 } else { small[0] };
            lengths[length_of(often as u64)] += if often == 0 { 0 } else { small[0] };
            lengths[0] += small[often];
            let escape = pages[class].map_or(u32::MAX, |bits| ESCAPE + u32::from(bits));
            let (bits, shift) = about_the_best(lengths, escape);
            first[class] = shift.saturating_sub(TRIED / 2).min(SHIFTS as u32 - TRIED);
            least += bits;
        }
        if least >= below {
            return None;
        }
        let mut costs = [[0u64; TRIED as usize]; CLASSES];
        for (class, value, page) in tokens.iter().filter_map(number) {
            let parameter = parameters[class as usize];
            let class = class as usize;
            if is_constant[class] {
                continue;
            }
            let value = parameter.swap(value);
            for (shift, cost) in (first[class]..).zip(&mut costs[class]) {
                *cost += page.map_or_else(|| value_bits(value, shift), |bits| place_bits(value, shift, bits));
            }
        }
        for (class, parameter) in parameters.iter_mut().enumerate() {
            if !is_constant[class] {
                let best = (first[class]..).zip(costs[class]).min_by_key(|&(_, cost)| cost);
                let (shift, cost) = best.unwrap_or_default();
                parameter.shift = shift;
                total += cost;
            }
            total += parameter.bits();
        }
        Some((Self(parameters), total))
    }

    /// Writes the parameters and the tokens.
    pub fn encode(&self, tokens: &[Token], out: &mut BitWriter) {
        for parameter in &self.0 {
            if *parameter == ALL_ZERO {
                out.put(0, 1);
            } else {
                out.put(1, 1);
                out.put(u64::from(parameter.shift), SHIFT_BITS);
                out.put(parameter.usual, USUAL_BITS);
            }
        }
        for token in tokens {
            match *token {
                Token::Value(class, value) => {
                    self.0[class as usize].put(value, u32::MAX, out);
                }
                Token::Place { class, difference, at, bits } => {
                    if !self.0[class as usize].put(difference, ESCAPE, out) {
                        out.put((1 << ESCAPE) - 1, ESCAPE);
                        out.put(at, u32::from(bits));
                    }
                }
                Token::Bits(value, bits) => out.put(value, u32::from(bits)),
            }
        }
    }
}

impl Parameter {
    /// Writes `value` if its prefix is shorter than `limit`.
    fn put(self, value: u64, limit: u32, out: &mut BitWriter) -> bool {
        let Self { shift, .. } = self;
        if shift == CONSTANT {
            return true;
        }
        let value = self.swap(value);
        let prefix = prefix_of(value, shift);
        if prefix < limit {
            let (low, low_bits) = (value.wrapping_add(1 << shift), prefix + shift);
            if prefix + 1 + low_bits <= 32 {
                let ones = (1 << prefix) - 1;
                out.put((low & ((1 << low_bits) - 1)) << (prefix + 1) | ones, prefix + 1 + low_bits);
            } else {
                // 64 ones do not fit one call together with the zero.
                out.put(u64::MAX, prefix);
                out.put(0, 1);
                out.put(low, low_bits);
            }
        }
        prefix < limit
    }
}

/// Takes tokens out of what [`Parameters::encode`] wrote.
pub struct GolombSource<'a> {
    parameters: Parameters,
    input: BitReader<'a>,
}

impl<'a> GolombSource<'a> {
    pub fn new(mut input: BitReader<'a>) -> Option<Self> {
        let mut parameters = Parameters([ALL_ZERO; CLASSES]);
        for parameter in &mut parameters.0 {
            if input.take(1)? == 1 {
                *parameter = Parameter { shift: input.take(SHIFT_BITS)? as u32, usual: input.take(USUAL_BITS)? };
            }
        }
        Some(Self { parameters, input })
    }

    fn parameter(&self, class: Class) -> Parameter {
        self.parameters.0.get(class as usize).copied().unwrap_or(ALL_ZERO)
    }

    /// A number of few bits: nearly all of them.
    #[inline]
    fn short(&mut self, parameter: Parameter, limit: u32) -> Option<u64> {
        let shift = parameter.shift;
        let (prefix, low) = self.input.take_prefixed(shift, limit)?;
        Some(parameter.swap((1 << (prefix + shift)) + low - (1 << shift)))
    }

    fn tail(&mut self, prefix: u32, parameter: Parameter) -> Option<u64> {
        let count = prefix + parameter.shift;
        let low = if count <= 64 { self.input.take(count)? } else { return None };
        let value = if count < 64 {
            (1 << count) + low - (1 << parameter.shift)
        } else {
            // 2^64 + low - 2^shift has to be below 2^64.
            Some(low.wrapping_sub(1 << parameter.shift)).filter(|_| low < 1 << parameter.shift)?
        };
        Some(parameter.swap(value))
    }
}

impl TokenSource for GolombSource<'_> {
    fn value(&mut self, class: Class) -> Option<u64> {
        let parameter = self.parameter(class);
        if parameter.shift == CONSTANT {
            return Some(parameter.usual);
        }
        if let Some(value) = self.short(parameter, u32::MAX) {
            return Some(value);
        }
        let prefix = self.input.take_ones(64)?;
        if prefix == 64 {
            // The zero behind 64 ones.
            (self.input.take(1)? == 0).then_some(())?;
        }
        self.tail(prefix, parameter)
    }

    fn place(&mut self, class: Class, expected: u64, bits: u32) -> Option<u64> {
        let parameter = self.parameter(class);
        if parameter.shift == CONSTANT {
            return Some(expected.wrapping_add(unzigzag(parameter.usual)));
        }
        if let Some(value) = self.short(parameter, ESCAPE) {
            return Some(expected.wrapping_add(unzigzag(value)));
        }
        let prefix = self.input.take_ones(ESCAPE)?;
        if prefix == ESCAPE {
            return self.input.take(bits);
        }
        Some(expected.wrapping_add(unzigzag(self.tail(prefix, parameter)?)))
    }

    fn bits(&mut self, bits: u32) -> Option<u64> {
        self.input.take(bits)
    }

    fn is_finished(&self) -> bool {
        self.input.is_finished()
    }
}
