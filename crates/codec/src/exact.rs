//! The byte-exact mode: objects with sizes, advice and access times, and extents that begin and end
//! at any byte, coded as buckets are.
//!
//! A device that packs the ends of files together cannot say in pages where they lie. Here lengths
//! and locations are in bytes, and yet what lies at whole pages costs what it does in pages:
//! numbers are in units of a page where that is exact, and a remainder follows where it is not.
//! What has its usual value - advice and access time those of the object before, all of an object
//! allocated, whole pages where the last ones ended and the rest where the last rest did - costs
//! next to nothing.
//!
//! ```
//! use onode_codec::exact::{Entry, Item, decode, encode};
//!
//! let entries = [
//!     Entry { object: 7, item: Item::Object { size: 5000, allocated: 5000, accessed: 0, hints: vec![] } },
//!     Entry { object: 7, item: Item::Extent { offset: 0, length: 4096, location: 1 << 20 } },
//!     Entry { object: 7, item: Item::Extent { offset: 4096, length: 904, location: 77_777 } },
//! ];
//! let bytes = encode((7, None), &entries, 2048).unwrap();
//! assert_eq!(decode((7, None), &bytes, 2048).as_deref(), Some(&entries[..]));
//! ```
//!
//! What it does not do: check sums, keys of buckets, limits of their bytes, the bytes of a page;
//! all that is around is the device's.

mod tokens;

use crate::bits::{BitReader, BitWriter};
use crate::bucket::SymbolCounts;
use crate::coding::{Fit, Source};
use crate::rans;
use crate::tables::EXACT_SETS;
use crate::tokens::{Token, TokenSource};
use alloc::vec::Vec;
use core::ops::Range;
use tokens::{ExactAssembly, Tokens, tokens_of};

/// The most entries of a run: bounds the memory of a decoder.
pub const ENTRIES_MAX: usize = 4096;
/// The most objects of a run.
pub const OBJECTS_MAX: usize = (1 << OBJECTS_BITS) - 1;

const OBJECTS_BITS: u32 = 9;
const WIDTH_BITS: u32 = 7;
/// In front of the tokens: how many objects, bits of a location.
const FIXED_BITS: u32 = OBJECTS_BITS + WIDTH_BITS;

/// What a device knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An object.
    Object {
        /// Bytes.
        size: u64,
        /// Bytes that its extents hold.
        allocated: u64,
        /// Access time; 0 for none.
        accessed: u64,
        /// Advice, in whatever form, 255 bytes at most; empty for none.
        hints: Vec<u8>,
    },
    /// A part of an object.
    Extent {
        /// First byte in the object.
        offset: u64,
        /// Bytes.
        length: u32,
        /// First byte on the medium.
        location: u64,
    },
    /// Something else in the place of one of these, kept as it is: 65,535 bytes at most.
    Raw {
        /// First byte of the extent; `None` if it stands in the place of an object.
        offset: Option<u64>,
        /// What.
        value: Vec<u8>,
    },
}

/// An item of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The object.
    pub object: u64,
    /// What of it.
    pub item: Item,
}

impl Entry {
    /// Its place in the order: an object before its extents, those by offset.
    #[must_use]
    pub const fn key(&self) -> Begin {
        let offset = match self.item {
            Item::Object { .. } => None,
            Item::Extent { offset, .. } => Some(offset),
            Item::Raw { offset, .. } => offset,
        };
        (self.object, offset)
    }
}

/// Where a run of entries begins: at or before the first.
pub type Begin = (u64, Option<u64>);

/// How numbers of the medium are measured.
#[derive(Clone, Copy, Debug)]
struct Measure {
    /// Bytes of a page.
    unit: u64,
    /// Bits of a number below the unit.
    unit_bits: u32,
    /// Bits that hold any page.
    page_bits: u32,
    /// Bits that hold any location.
    location_bits: u32,
}

impl Measure {
    const fn new(unit: u32, location_bits: u32) -> Self {
        let unit = unit as u64;
        let most = if location_bits == 0 { 0 } else { u64::MAX >> (64 - location_bits) };
        Self { unit, unit_bits: bits_of(unit - 1), page_bits: bits_of(most / unit), location_bits }
    }
}

const fn bits_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

fn measure_of(entries: &[Entry], unit: u32) -> Measure {
    let locations =
        entries.iter().map(|entry| if let Item::Extent { location, .. } = entry.item { location } else { 0 });
    Measure::new(unit, bits_of(locations.max().unwrap_or(0)))
}

/// Entries on their way into runs: what it takes to divide and to code them is found once.
pub struct Draft<'a> {
    begin: Begin,
    entries: &'a [Entry],
    unit: u32,
    measure: Measure,
    tokens: Tokens,
    /// Of all of them, once it was asked for.
    fit: Option<Fit>,
}

impl<'a> Draft<'a> {
    /// `entries`, which are in order and not before `begin`; they may be more than a run has. Pages
    /// have `unit` bytes. `None` if they are not in order, or something is too long for any run.
    #[must_use]
    pub fn new(begin: Begin, entries: &'a [Entry], unit: u32) -> Option<Self> {
        let in_order = entries.windows(2).all(|pair| matches!(pair, [a, b] if a.key() < b.key()));
        let is_behind = entries.first().is_none_or(|entry| entry.key() >= begin);
        if !in_order || !is_behind || unit == 0 {
            return None;
        }
        let measure = measure_of(entries, unit);
        let tokens = tokens_of(begin, entries, measure)?;
        Some(Self { begin, entries, unit, measure, tokens, fit: None })
    }

    fn fit(&mut self) -> &Fit {
        self.fit.get_or_insert_with(|| Fit::new(&self.tokens.list, FIXED_BITS, EXACT_SETS))
    }

    /// About how many bits of a run there are up to the end of each entry. What a run takes beside
    /// its entries is not counted. For who divides entries into runs: it takes a fraction of the
    /// time of coding them.
    pub fn about_ends(&mut self) -> Vec<u32> {
        self.fit();
        let Self { fit: Some(fit), tokens, .. } = self else { return Vec::new() };
        fit.about_ends(&tokens.list, &tokens.ends)
    }

    /// All of them as bytes, those of [`encode`]; `None` if they are too many.
    pub fn encode(&mut self) -> Option<Vec<u8>> {
        if self.entries.len() > ENTRIES_MAX || self.tokens.objects > OBJECTS_MAX {
            return None;
        }
        self.fit();
        let Self { fit: Some(fit), tokens, measure, .. } = self else { return None };
        Some(bytes_of(fit, &tokens.list, tokens.objects, *measure))
    }

    /// How many of them from the one with the number `from` on fit a run at most, however few bytes
    /// they take.
    #[must_use]
    pub fn most_from(&self, from: usize) -> usize {
        self.tokens.of_objects(from, OBJECTS_MAX).min(ENTRIES_MAX)
    }

    /// Some of them, one behind the other, as the bytes of a run that begins at `begin`, those of
    /// [`encode`]; `None` if they are too many. For who tries how many entries fill a run: what is
    /// known of all of them is not found anew.
    pub fn encode_some(&mut self, begin: Begin, range: Range<usize>) -> Option<Vec<u8>> {
        if begin == self.begin && range == (0..self.entries.len()) {
            return self.encode();
        }
        let some = self.entries.get(range.clone())?;
        if some.first().is_none_or(|first| first.key() < begin) {
            return encode(begin, some, self.unit);
        }
        if some.len() > self.most_from(range.start) {
            return None;
        }
        let measure = measure_of(some, self.unit);
        let tokens = self.tokens.between(begin, self.entries, range, measure)?;
        Some(bytes_of(&Fit::new(&tokens.list, FIXED_BITS, EXACT_SETS), &tokens.list, tokens.objects, measure))
    }
}

fn bytes_of(fit: &Fit, tokens: &[Token], objects: usize, measure: Measure) -> Vec<u8> {
    let (coded, bytes) = fit.coded(tokens);
    let mut out = Vec::with_capacity(1 + bytes);
    out.push(coded.coder());
    let mut fixed = BitWriter::default();
    fixed.put(objects as u64, OBJECTS_BITS);
    fixed.put(u64::from(measure.location_bits), WIDTH_BITS);
    out.extend_from_slice(&coded.bytes(tokens, fixed));
    out
}

/// `entries`, which are in order and not before `begin`, as bytes. Pages have `unit` bytes. `None`
/// if there are too many or they are not in order.
#[must_use]
pub fn encode(begin: Begin, entries: &[Entry], unit: u32) -> Option<Vec<u8>> {
    Draft::new(begin, entries, unit)?.encode()
}

/// The entries behind `bytes`, which begin at `begin`, with pages of `unit` bytes; `None` if they
/// make no sense.
#[must_use]
pub fn decode(begin: Begin, bytes: &[u8], unit: u32) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    decode_each(begin, bytes, unit, |entry| {
        entries.push(entry);
        Some(())
    })?;
    Some(entries)
}

/// Gives the entries behind `bytes` to `visit`, one after another, until that returns `None`.
/// `None` then, and if they make no sense: what `visit` has had by then is nothing either.
pub fn decode_each(begin: Begin, bytes: &[u8], unit: u32, visit: impl FnMut(Entry) -> Option<()>) -> Option<()> {
    let (&coder, body) = bytes.split_first()?;
    let mut input = BitReader::new(body);
    let objects = input.take(OBJECTS_BITS)?;
    let location_bits = input.take(WIDTH_BITS)? as u32;
    if location_bits > 64 || unit == 0 {
        return None;
    }
    let assembly = ExactAssembly::new(begin, Measure::new(unit, location_bits), visit);
    match Source::new(coder, body, input, FIXED_BITS, EXACT_SETS)? {
        Source::Golomb(source) => take(assembly, objects, source),
        Source::Rans(source) => take(assembly, objects, source),
    }
}

fn take(
    mut assembly: ExactAssembly<impl FnMut(Entry) -> Option<()>>,
    objects: u64,
    mut source: impl TokenSource,
) -> Option<()> {
    for _ in 0..objects {
        assembly.take_object(&mut source)?;
    }
    source.is_finished().then_some(())
}

/// Counts for the static tables: adds how often each symbol of each class occurs in `entries`.
/// False if they cannot be coded.
pub fn count_symbols(begin: Begin, entries: &[Entry], unit: u32, counts: &mut SymbolCounts) -> bool {
    let draft = Draft::new(begin, entries, unit);
    if let Some(draft) = &draft {
        rans::count(&draft.tokens.list, counts);
    }
    draft.is_some()
}
