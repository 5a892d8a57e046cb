//! Objects and extents as tokens: object by object, each measured against the one before.
//!
//! Two cursors follow what was written: one behind the last whole pages, one behind the last rest
//! of a page, because a device writes the two to different places. The classes are those of
//! records, in another meaning and with tables of their own.

use super::{Begin, ENTRIES_MAX, Entry, Item, Measure};
use crate::tokens::{Class, Token, TokenSource, put_place};
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::varint::{unzigzag, zigzag};

/// Objects that are missing before this one.
const OBJECT: Class = Class::Object;
/// Which parts are said.
const SHAPE: Class = Class::Plain;
/// Bytes of the advice more one; 0 for that of the object before.
const HINTS: Class = Class::Kind;
/// Size less what is allocated.
const ALLOCATED: Class = Class::Extra;
/// Access time, against the one before.
const ACCESSED: Class = Class::Time;
/// Whole pages of the size.
const PAGES: Class = Class::Size;
/// Bytes of the size beyond these.
const REST: Class = Class::Last;
/// Extents.
const COUNT: Class = Class::Count;
/// Hole before an extent.
const GAP: Class = Class::Gap;
/// Length of an extent.
const LENGTH: Class = Class::Length;
/// What a location of whole pages is beyond a multiple of the page.
const PHASE: Class = Class::Shape;
/// The first whole pages of the object that follows the last one.
const PAGES_NEXT: Class = Class::Start;
/// The first whole pages of an object behind missing ones.
const PAGES_LATER: Class = Class::Parent;
/// Further whole pages.
const PAGES_MORE: Class = Class::Next;
/// The same three for less than a page.
const PART_NEXT: Class = Class::Home;
const PART_LATER: Class = Class::Serial;
const PART_MORE: Class = Class::Page;

/// Whole pages in one extent and the rest in another; everything in one; any extents.
const FORM_PARTED: u64 = 0;
const FORM_WHOLE: u64 = 1;
const FORM_ANY: u64 = 2;
const FORMS: u64 = 3;
/// Added to the form of an object that does not have everything but its size in common with the one
/// before.
const UNUSUAL: u64 = FORMS;
/// Only extents: those of an object that stands in an earlier bucket.
const SHAPE_EXTENTS: u64 = 2 * FORMS;
/// Every entry as it is.
const SHAPE_RAW: u64 = 2 * FORMS + 1;

const PHASE_SAME: u64 = 0;
const PHASE_NONE: u64 = 1;
const PHASE_GIVEN: u64 = 2;

/// Offsets end here, so that no sum overflows.
const OFFSET_END: u64 = 1 << 63;
const LENGTH_BITS: u32 = 16;

/// A part of an object: offset, length, location.
type Part = (u64, u64, u64);

/// What an object is measured against.
struct ExactContext {
    measure: Measure,
    object: u64,
    is_first: bool,
    accessed: u64,
    hints: Vec<u8>,
    /// Where the extents of an object that stands in an earlier run are expected to go on.
    offset: u64,
    /// Behind the last whole pages.
    pages: u64,
    /// Behind the last part of a page.
    part: u64,
}

/// How the next extents of an object are predicted.
struct Follow {
    /// The object is the one after the last.
    is_next: bool,
    pages_before: bool,
    part_before: bool,
}

impl ExactContext {
    const fn new(begin: Begin, measure: Measure) -> Self {
        let offset = match begin.1 {
            Some(offset) => offset,
            None => 0,
        };
        let object = begin.0;
        Self { measure, object, is_first: true, accessed: 0, hints: Vec::new(), offset, pages: 0, part: 0 }
    }

    /// What is known behind `entries`, one of which is an object.
    fn resume(&mut self, entries: &[Entry], behind: Behind) {
        (self.pages, self.part) = (behind.pages, behind.part);
        self.object = entries.last().map_or(self.object, |last| last.object);
        let last = entries.iter().rev().find_map(|entry| match &entry.item {
            Item::Object { accessed, hints, .. } => Some((accessed, hints)),
            _ => None,
        });
        if let Some((accessed, hints)) = last {
            self.accessed = *accessed;
            self.hints.clone_from(hints);
        }
    }

    /// The next object is `object`, with `step` missing before it.
    const fn enter(&mut self, object: u64, step: u64) {
        if !self.is_first || step > 0 {
            self.offset = 0;
        }
        self.object = object;
        self.is_first = false;
    }

    /// The class of an extent of so many bytes, and whether it is one of whole pages.
    const fn class(&self, follow: &mut Follow, length: u64) -> (Class, bool) {
        let is_pages = length >= self.measure.unit;
        let before = if is_pages { follow.pages_before } else { follow.part_before };
        if is_pages {
            follow.pages_before = true;
        } else {
            follow.part_before = true;
        }
        let class = match (is_pages, before, follow.is_next) {
            (true, true, _) => PAGES_MORE,
            (true, false, true) => PAGES_NEXT,
            (true, false, false) => PAGES_LATER,
            (false, true, _) => PART_MORE,
            (false, false, true) => PART_NEXT,
            (false, false, false) => PART_LATER,
        };
        (class, is_pages)
    }

    const fn advance(&mut self, is_pages: bool, end: u64) {
        if is_pages {
            self.pages = end;
        } else {
            self.part = end;
        }
    }

    fn put_location(&mut self, out: &mut Tokens, follow: &mut Follow, length: u64, location: u64) {
        let (class, is_pages) = self.class(follow, length);
        let Measure { unit, unit_bits, page_bits, location_bits } = self.measure;
        if is_pages {
            let phase = location % unit;
            if phase == self.pages % unit {
                out.list.push(Token::Value(PHASE, PHASE_SAME));
            } else if phase == 0 {
                out.list.push(Token::Value(PHASE, PHASE_NONE));
            } else {
                out.list.push(Token::Value(PHASE, PHASE_GIVEN));
                out.list.push(Token::Bits(phase, unit_bits as u8));
            }
            put_place(&mut out.list, class, location / unit, self.pages / unit, page_bits);
        } else {
            put_place(&mut out.list, class, location, self.part, location_bits);
        }
        self.advance(is_pages, location.wrapping_add(length));
    }

    fn take_location(&mut self, source: &mut impl TokenSource, follow: &mut Follow, length: u64) -> Option<u64> {
        let (class, is_pages) = self.class(follow, length);
        let Measure { unit, unit_bits, page_bits, location_bits } = self.measure;
        let location = if is_pages {
            let phase = match source.value(PHASE)? {
                PHASE_SAME => self.pages % unit,
                PHASE_NONE => 0,
                PHASE_GIVEN => source.bits(unit_bits)?,
                _ => return None,
            };
            source.place(class, self.pages / unit, page_bits)?.checked_mul(unit)?.checked_add(phase)?
        } else {
            source.place(class, self.part, location_bits)?
        };
        self.advance(is_pages, location.wrapping_add(length));
        Some(location)
    }
}

impl Measure {
    /// `token` as it is with this measure, if it was made with one of the same unit.
    const fn applied_to(self, mut token: Token) -> Token {
        if let Token::Place { class, bits, .. } = &mut token {
            let is_pages = matches!(*class, PAGES_NEXT | PAGES_LATER | PAGES_MORE);
            *bits = if is_pages { self.page_bits } else { self.location_bits } as u8;
        }
        token
    }
}

/// The tokens of entries.
pub struct Tokens {
    /// The tokens.
    pub list: Vec<Token>,
    /// How many there are up to the end of each entry.
    pub ends: Vec<u32>,
    /// What holds behind each entry.
    behind: Vec<Behind>,
    /// How many objects the entries are of.
    pub objects: usize,
}

/// What holds behind an entry.
#[derive(Clone, Copy)]
struct Behind {
    /// Objects up to there.
    objects: usize,
    /// The cursors.
    pages: u64,
    part: u64,
}

impl Tokens {
    /// How many entries from the one with the number `from` on are of up to `objects` objects.
    pub fn of_objects(&self, from: usize, objects: usize) -> usize {
        let rest = self.behind.get(from..).unwrap_or_default();
        let end = rest.first().map_or(0, |first| first.objects + objects);
        rest.partition_point(|behind| behind.objects < end)
    }

    fn with_capacity(entries: usize) -> Self {
        let (list, ends) = (Vec::with_capacity(entries * 5), Vec::with_capacity(entries));
        Self { list, ends, behind: Vec::with_capacity(entries), objects: 0 }
    }

    fn end_entry(&mut self, context: &ExactContext) {
        self.ends.push(self.list.len() as u32);
        self.behind.push(Behind { objects: self.objects, pages: context.pages, part: context.part });
    }

    /// The tokens of the entries `range` of `entries`, if a run of nothing else begins at `begin`,
    /// by a `measure` of their own; these are those of all entries. Only what the ends of the range
    /// have a part in is made anew: the first two objects, most often, and the last one if it goes
    /// on behind the range.
    pub fn between(&self, begin: Begin, entries: &[Entry], range: Range<usize>, measure: Measure) -> Option<Self> {
        let part = entries.get(range.clone())?;
        let (cut, next) = (part.last()?.object, entries.get(range.end).map(|next| next.object));
        let rest =
            if next == Some(cut) { part.iter().rev().take_while(|entry| entry.object == cut).count() } else { 0 };
        let whole = range.end - rest;
        let mut context = ExactContext::new(begin, measure);
        let mut out =
            Self { list: Vec::with_capacity(part.len() * 5), ends: Vec::new(), behind: Vec::new(), objects: 0 };
        let (mut parts, mut done, mut is_told) = (Vec::new(), range.start, false);
        for group in part.chunk_by(|a, b| a.object == b.object) {
            put_object(&mut out, &mut context, group, &mut parts)?;
            done += group.len();
            // An object tells its advice and access time to the one behind it.
            is_told |= matches!(group, [Entry { item: Item::Object { .. }, .. }, ..]);
            let (from, to) = (self.behind.get(done - 1)?, self.behind.get(whole.max(done) - 1)?);
            if is_told && done < whole && (from.pages, from.part) == (context.pages, context.part) {
                let tokens = *self.ends.get(done - 1)? as usize..*self.ends.get(whole - 1)? as usize;
                out.list.extend(self.list.get(tokens)?.iter().map(|token| measure.applied_to(*token)));
                out.objects += to.objects - from.objects;
                if rest > 0 {
                    context.resume(entries.get(..whole)?, *to);
                    put_object(&mut out, &mut context, entries.get(whole..range.end)?, &mut parts)?;
                }
                break;
            }
        }
        Some(out)
    }
}

/// The tokens of `entries`, which are in order. `None` if something is too long.
pub fn tokens_of(begin: Begin, entries: &[Entry], measure: Measure) -> Option<Tokens> {
    let mut out = Tokens::with_capacity(entries.len());
    let mut context = ExactContext::new(begin, measure);
    let mut parts = Vec::new();
    for group in entries.chunk_by(|a, b| a.object == b.object) {
        put_object(&mut out, &mut context, group, &mut parts)?;
    }
    Some(out)
}

/// Lets `parts` be those of a group that holds nothing else; false if there is something else or
/// they overlap.
fn find_parts(extents: &[Entry], parts: &mut Vec<Part>) -> bool {
    parts.clear();
    let mut end = 0;
    extents.iter().all(|entry| {
        let Item::Extent { offset, length, location } = entry.item else { return false };
        let length = u64::from(length);
        let is_sound = length > 0 && offset >= end && offset <= OFFSET_END - length;
        end = offset.wrapping_add(length);
        parts.push((offset, length, location));
        is_sound
    })
}

/// Whether the advice of two objects is the same. Nearly all have none, and to compare nothing byte
/// by byte is slow on processors that read through the dangling pointer of an empty vector, if
/// under an empty mask.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && (one.is_empty() || one == other)
}

fn put_object(out: &mut Tokens, context: &mut ExactContext, group: &[Entry], parts: &mut Vec<Part>) -> Option<()> {
    let first = group.first()?;
    out.objects += 1;
    let step = first.object.wrapping_sub(context.object).wrapping_sub(u64::from(!context.is_first));
    out.list.push(Token::Value(OBJECT, step));
    let mut follow = Follow { is_next: step == 0 && !context.is_first, pages_before: false, part_before: false };
    context.enter(first.object, step);
    let (head, extents) = match &first.item {
        Item::Object { size, allocated, accessed, hints } => {
            (Some((*size, *allocated, *accessed, hints)), group.get(1..).unwrap_or_default())
        }
        _ => (None, group),
    };
    let fits = head.is_none_or(|(.., hints)| hints.len() <= usize::from(u8::MAX));
    if !fits || !find_parts(extents, parts) {
        return put_raw(out, context, group);
    }
    let Some((size, allocated, accessed, hints)) = head else {
        out.list.push(Token::Value(SHAPE, SHAPE_EXTENTS));
        put_parts(out, context, &mut follow, parts, None);
        return Some(());
    };
    let unit = context.measure.unit;
    let (pages, rest) = (size / unit * unit, size % unit);
    let form = match parts[..] {
        [] if size == 0 => FORM_PARTED,
        [(0, length, _)] if length == size => {
            if pages == 0 || rest == 0 {
                FORM_PARTED
            } else {
                FORM_WHOLE
            }
        }
        [(0, first, _), (second, length, _)] if first == pages && second == pages && length == rest => FORM_PARTED,
        _ => FORM_ANY,
    };
    // The length of one extent is limited, that of an object is not.
    let is_usual = allocated == size && accessed == context.accessed && is_same(hints, &context.hints);
    out.list.push(Token::Value(SHAPE, if is_usual { form } else { form + UNUSUAL }));
    if !is_usual {
        if is_same(hints, &context.hints) {
            out.list.push(Token::Value(HINTS, 0));
        } else {
            out.list.push(Token::Value(HINTS, hints.len() as u64 + 1));
            out.list.extend(hints.iter().map(|&byte| Token::Bits(u64::from(byte), 8)));
            context.hints.clone_from(hints);
        }
        out.list.push(Token::Value(ALLOCATED, zigzag(size.wrapping_sub(allocated))));
        out.list.push(Token::Value(ACCESSED, zigzag(accessed.wrapping_sub(context.accessed))));
        context.accessed = accessed;
    }
    out.list.push(Token::Value(PAGES, size / unit));
    out.list.push(Token::Value(REST, rest));
    out.end_entry(context);
    if form == FORM_ANY {
        put_parts(out, context, &mut follow, parts, Some(size));
        // That there are no extents is said of the object, not of the first extent.
        if let (Some(end), true) = (out.ends.last_mut(), parts.is_empty()) {
            *end = out.list.len() as u32;
        }
    } else {
        for &mut (_, length, location) in parts {
            context.put_location(out, &mut follow, length, location);
            out.end_entry(context);
        }
    }
    Some(())
}

fn put_parts(out: &mut Tokens, context: &mut ExactContext, follow: &mut Follow, parts: &[Part], size: Option<u64>) {
    let unit = context.measure.unit;
    out.list.push(Token::Value(COUNT, parts.len() as u64));
    let mut end = if size.is_none() { context.offset } else { 0 };
    for &(offset, length, location) in parts {
        let gap = offset - end;
        out.list.push(Token::Value(GAP, if gap.is_multiple_of(unit) { gap / unit * 2 } else { gap * 2 + 1 }));
        end = offset + length;
        let said = match size {
            Some(size) if end == size => 0,
            _ if length.is_multiple_of(unit) => length / unit * 2 - 1,
            _ => length * 2,
        };
        out.list.push(Token::Value(LENGTH, said));
        context.put_location(out, follow, length, location);
        out.end_entry(context);
    }
}

/// Entries of which some make no sense here.
fn put_raw(out: &mut Tokens, context: &ExactContext, group: &[Entry]) -> Option<()> {
    out.list.push(Token::Value(SHAPE, SHAPE_RAW));
    out.list.push(Token::Value(COUNT, group.len() as u64));
    for entry in group {
        let Item::Raw { offset, value } = &entry.item else { return None };
        out.list.push(Token::Bits(u64::from(offset.is_some()), 1));
        out.list.extend(offset.map(|offset| Token::Bits(offset, 64)));
        let length = u16::try_from(value.len()).ok()?;
        out.list.push(Token::Bits(u64::from(length), LENGTH_BITS as u8));
        out.list.extend(value.iter().map(|&byte| Token::Bits(u64::from(byte), 8)));
        out.end_entry(context);
    }
    Some(())
}

/// Makes entries of tokens, and gives each to `visit` as soon as it is whole.
pub struct ExactAssembly<V> {
    context: ExactContext,
    visit: V,
    /// How many were made.
    count: usize,
}

impl<V: FnMut(Entry) -> Option<()>> ExactAssembly<V> {
    pub const fn new(begin: Begin, measure: Measure, visit: V) -> Self {
        Self { context: ExactContext::new(begin, measure), visit, count: 0 }
    }

    #[inline]
    fn push(&mut self, item: Item) -> Option<()> {
        self.count += 1;
        if self.count > ENTRIES_MAX {
            return None;
        }
        (self.visit)(Entry { object: self.context.object, item })
    }

    /// Takes all of the next object; `None` if the tokens make no sense.
    pub fn take_object(&mut self, source: &mut impl TokenSource) -> Option<()> {
        let step = source.value(OBJECT)?;
        let before = u64::from(!self.context.is_first);
        let mut follow = Follow { is_next: step == 0 && before == 1, pages_before: false, part_before: false };
        let object = self.context.object.checked_add(step)?.checked_add(before)?;
        self.context.enter(object, step);
        match source.value(SHAPE)? {
            SHAPE_RAW => self.take_raw(source),
            SHAPE_EXTENTS => self.take_parts(source, &mut follow, None),
            shape @ ..SHAPE_EXTENTS => self.take_whole(source, &mut follow, shape),
            _ => None,
        }
    }

    fn take_whole(&mut self, source: &mut impl TokenSource, follow: &mut Follow, shape: u64) -> Option<()> {
        let (mut saved, is_unusual) = (0, shape >= UNUSUAL);
        if is_unusual {
            if let Some(length) = source.value(HINTS)?.checked_sub(1) {
                let length = u8::try_from(length).ok()?;
                self.context.hints = (0..length).map(|_| Some(source.bits(8)? as u8)).collect::<Option<_>>()?;
            }
            saved = unzigzag(source.value(ALLOCATED)?);
            self.context.accessed = self.context.accessed.wrapping_add(unzigzag(source.value(ACCESSED)?));
        }
        let unit = self.context.measure.unit;
        let pages = source.value(PAGES)?.checked_mul(unit)?;
        let rest = source.value(REST)?;
        let size = pages.checked_add(rest).filter(|_| rest < unit)?;
        let (accessed, hints) = (self.context.accessed, self.context.hints.clone());
        self.push(Item::Object { size, allocated: size.wrapping_sub(saved), accessed, hints })?;
        match shape % FORMS {
            FORM_ANY => return self.take_parts(source, follow, Some(size)),
            FORM_WHOLE => self.take_part(source, follow, 0, size)?,
            _ => {
                if pages > 0 {
                    self.take_part(source, follow, 0, pages)?;
                }
                if rest > 0 {
                    self.take_part(source, follow, pages, rest)?;
                }
            }
        }
        Some(())
    }

    fn take_parts(&mut self, source: &mut impl TokenSource, follow: &mut Follow, size: Option<u64>) -> Option<()> {
        let unit = self.context.measure.unit;
        let mut end = if size.is_none() { self.context.offset } else { 0 };
        for _ in 0..source.value(COUNT)? {
            let gap = source.value(GAP)?;
            let gap = if gap % 2 == 0 { (gap / 2).checked_mul(unit)? } else { gap / 2 };
            let offset = end.checked_add(gap)?;
            let length = match source.value(LENGTH)? {
                0 => size?.checked_sub(offset)?,
                odd if odd % 2 == 1 => (odd / 2 + 1).checked_mul(unit)?,
                even => even / 2,
            };
            self.take_part(source, follow, offset, length)?;
            end = offset.checked_add(length)?;
        }
        Some(())
    }

    fn take_part(
        &mut self,
        source: &mut impl TokenSource,
        follow: &mut Follow,
        offset: u64,
        length: u64,
    ) -> Option<()> {
        let short = u32::try_from(length).ok().filter(|&length| length > 0)?;
        offset.checked_add(length).filter(|&end| end <= OFFSET_END)?;
        let location = self.context.take_location(source, follow, length)?;
        self.push(Item::Extent { offset, length: short, location })
    }

    fn take_raw(&mut self, source: &mut impl TokenSource) -> Option<()> {
        let mut last = None;
        for _ in 0..source.value(COUNT)? {
            let offset = if source.bits(1)? == 1 { Some(source.bits(64)?) } else { None };
            let length = source.bits(LENGTH_BITS)?;
            let value = (0..length).map(|_| Some(source.bits(8)? as u8)).collect::<Option<_>>()?;
            if last.replace(offset).is_some_and(|last| last >= offset) {
                return None;
            }
            self.push(Item::Raw { offset, value })?;
        }
        Some(())
    }
}
