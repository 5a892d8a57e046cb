//! Tokens as bytes, with whichever coder takes fewer: Exp-Golomb, whose parameters stand in front of them, or rANS with
//! a set of static tables.

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

/// About how many bits `tokens` take up to the ends of parts of them, each of which has so many tokens up to there.
pub fn about_ends(tokens: &[Token], ends: &[u32], sets: Range<usize>) -> Vec<u32> {
    let (set, about_bits) = rans::fit(tokens, sets);
    let mut bits = rans::about_ends(tokens, ends, set);
    if let Some((_, golomb)) = Parameters::fit(tokens, about_bits).filter(|golomb| golomb.1 < about_bits) {
        bits.iter_mut().for_each(|end| *end = (u64::from(*end) * golomb / about_bits) as u32);
    }
    bits
}

impl Coded {
    /// The coding of `tokens` that takes fewer bytes, and those with `fixed_bits` in front. `sets` are the tables that
    /// are of use.
    pub fn shorter(tokens: &[Token], fixed_bits: u32, sets: Range<usize>) -> (Self, usize) {
        let fixed_bytes = fixed_bits.div_ceil(8) as usize;
        let (set, about_bits) = rans::fit(tokens, sets);
        let about_bits = about_bits + 8 * fixed_bytes as u64;
        let golomb = Parameters::fit(tokens, about_bits).map(|(parameters, bits)| {
            let bytes = usize::try_from((bits + u64::from(fixed_bits)).div_ceil(8));
            (Self::Golomb(parameters), bytes.unwrap_or(usize::MAX / 2))
        });
        match golomb {
            // What rANS takes was counted about right only.
            Some((coded, bytes)) if bytes as u64 * 8 <= about_bits => (coded, bytes),
            _ => {
                let bytes = rans::encode(tokens, set);
                let all = fixed_bytes + bytes.len();
                golomb.filter(|golomb| golomb.1 <= all).unwrap_or((Self::Rans { set, bytes }, all))
            }
        }
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
    /// The tokens behind the `fixed_bits` bits that `input` has handed out of `body`; `None` if `coder` is not known or
    /// has no such set.
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
        RansSource::new(body.get(fixed_bits.div_ceil(8) as usize..)?, set).map(Self::Rans)
    }
}
