//! Tokens as bytes, with whichever coder takes fewer: Exp-Golomb, whose parameters stand in front
//! of them, or rANS with a set of static tables.

use crate::bits::{BitReader, BitWriter};
use crate::golomb::{GolombSource, Parameters};
use crate::rans::{self, RansSource};
use crate::tokens::Token;
use alloc::vec::Vec;
use core::ops::Range;

const CODER_GOLOMB: u8 = 1;
/// In front of the numbers of the sets of tables of rANS.
const CODER_RANS: u8 = 0x10;

/// The shorter of both codings.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and not for long")]
pub enum Coded {
    Golomb(Parameters),
    Rans { set: usize, bytes: Vec<u8> },
}

/// Where the tokens of a coding come from.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and not for long")]
pub enum Source<'a> {
    Golomb(GolombSource<'a>),
    Rans(RansSource<'a>),
}

/// What it takes to code some tokens, as far as it is known without coding them.
pub struct Fit {
    fixed_bits: u32,
    /// The best set of tables of rANS and about the bits that it takes.
    set: usize,
    about_bits: u64,
    /// The best parameters of Exp-Golomb and the bits that they take, unless those are plainly
    /// more.
    golomb: Option<(Parameters, u64)>,
}

impl Fit {
    /// With `fixed_bits` in front of `tokens`. `sets` are the tables that are of use.
    pub fn new(tokens: &[Token], fixed_bits: u32, sets: Range<usize>) -> Self {
        let (set, about_bits) = rans::fit(tokens, sets);
        let golomb = Parameters::fit(tokens, about_bits + fixed_bytes(fixed_bits) as u64 * 8);
        Self { fixed_bits, set, about_bits, golomb }
    }

    /// About how many bits the same `tokens` take up to the ends of parts of them, each of which
    /// has so many tokens up to there.
    pub fn about_ends(&self, tokens: &[Token], ends: &[u32]) -> Vec<u32> {
        let mut bits = rans::about_ends(tokens, ends, self.set);
        if let Some((_, golomb)) = self.golomb.as_ref().filter(|golomb| golomb.1 < self.about_bits) {
            bits.iter_mut().for_each(|end| *end = (u64::from(*end) * golomb / self.about_bits) as u32);
        }
        bits
    }

    /// The coding of the same `tokens` that takes fewer bytes, and those.
    pub fn coded(&self, tokens: &[Token]) -> (Coded, usize) {
        let fixed_bytes = fixed_bytes(self.fixed_bits);
        let golomb = self.golomb.as_ref().map(|(parameters, bits)| {
            let bytes = usize::try_from((bits + u64::from(self.fixed_bits)).div_ceil(8));
            (Coded::Golomb(parameters.clone()), bytes.unwrap_or(usize::MAX / 2))
        });
        match golomb {
            // What rANS takes was counted about right only.
            Some((coded, bytes)) if bytes as u64 <= self.about_bits / 8 + fixed_bytes as u64 => (coded, bytes),
            _ => {
                let bytes = rans::encode(tokens, self.set);
                let all = fixed_bytes + bytes.len();
                golomb.filter(|golomb| golomb.1 <= all).unwrap_or((Coded::Rans { set: self.set, bytes }, all))
            }
        }
    }
}

const fn fixed_bytes(fixed_bits: u32) -> usize {
    fixed_bits.div_ceil(8) as usize
}

impl Coded {
    /// The coding of `tokens` that takes fewer bytes, and those with `fixed_bits` in front. `sets`
    /// are the tables that are of use.
    pub fn shorter(tokens: &[Token], fixed_bits: u32, sets: Range<usize>) -> (Self, usize) {
        Fit::new(tokens, fixed_bits, sets).coded(tokens)
    }

    /// The number by which a reader knows the coding.
    pub const fn coder(&self) -> u8 {
        match self {
            Self::Golomb(_) => CODER_GOLOMB,
            Self::Rans { set, .. } => CODER_RANS + *set as u8,
        }
    }

    /// The bytes of `tokens` behind the bits of `fixed`, which fill whole bytes in front of rANS.
    pub fn bytes(self, tokens: &[Token], mut fixed: BitWriter) -> Vec<u8> {
        match self {
            Self::Golomb(parameters) => {
                parameters.encode(tokens, &mut fixed);
                fixed.finish()
            }
            Self::Rans { bytes, .. } => {
                let mut all = fixed.finish();
                all.extend_from_slice(&bytes);
                all
            }
        }
    }
}

impl<'a> Source<'a> {
    /// The tokens behind the `fixed_bits` bits that `input` has handed out of `body`; `None` if
    /// `coder` is not known or has no such set.
    pub fn new(
        coder: u8,
        body: &'a [u8],
        mut input: BitReader<'a>,
        fixed_bits: u32,
        sets: Range<usize>,
    ) -> Option<Self> {
        if coder == CODER_GOLOMB {
            return GolombSource::new(input).map(Self::Golomb);
        }
        let fill = input.take(fixed_bits.next_multiple_of(8) - fixed_bits)?;
        let set = coder.checked_sub(CODER_RANS).map(usize::from).filter(|set| fill == 0 && sets.contains(set))?;
        RansSource::new(body.get(fixed_bytes(fixed_bits)..)?, set).map(Self::Rans)
    }
}
