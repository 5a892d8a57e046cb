//! Records as tokens: numbers of a few classes, most of them small, that an entropy coder can take
//! from here.
//!
//! A file that was written in one go after the one before it costs only zeros: every token is the
//! difference to what the record before it, and the place where its pages end on the medium, let
//! expect.

use crate::record::{Head, Key, PIECE_PAGES, Record, Run};
use alloc::vec::Vec;
use onode_base::varint::{unzigzag, zigzag};

/// The most runs of all records of a bucket together: bounds the memory of a decoder.
pub const BUCKET_RUNS_MAX: usize = 4096;

/// What a token means. The coder has statistics of its own for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Object id less the one before.
    Object,
    /// First page, against the piece that follows.
    Page,
    /// What of the head is there.
    Shape,
    /// Parent, against the one before.
    Parent,
    /// Kind and flags, against the ones before.
    Kind,
    /// Serial number, against the one before.
    Serial,
    /// Home, against the page behind the last run.
    Home,
    /// Size, against the end of the last run.
    Size,
    /// Time, against the one before.
    Time,
    /// Bytes of the extra part.
    Extra,
    /// How runs are written.
    Mode,
    /// How many runs.
    Count,
    /// Pages of a hole before a run.
    Gap,
    /// First run on the medium, against the end of the record before.
    Start,
    /// Further runs, against the end of the run before.
    Next,
    /// Pages of a run less one.
    Length,
    /// Pages of the last run; 0 if it ends with the piece.
    Last,
    /// Whole units before the next one that is not, more one; 0 if all are.
    Skip,
    /// Whether all but a few classes have the value that they mostly have, and are left out.
    Plain,
}

/// How many classes there are.
pub const CLASSES: usize = Class::Plain as usize + 1;

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A number.
    Value(Class, u64),
    /// A page of the medium: its difference to the expected one, and itself for when that is
    /// shorter.
    Place {
        /// What for.
        class: Class,
        /// [`zigzag`] of the difference.
        difference: u64,
        /// The page.
        at: u64,
        /// Bits that hold any page of the class.
        bits: u8,
    },
    /// A number that nothing foretells, and so many bits of it.
    Bits(u64, u8),
}

/// Where tokens come from when a bucket is decoded.
pub trait TokenSource {
    /// The next number of `class`.
    fn value(&mut self, class: Class) -> Option<u64>;
    /// The next page of `class`, of which `expected` is foretold and which has `bits` bits at most.
    fn place(&mut self, class: Class, expected: u64, bits: u32) -> Option<u64>;
    /// The next number of so many bits that nothing foretells.
    fn bits(&mut self, bits: u32) -> Option<u64>;
    /// Whether all was taken.
    fn is_finished(&self) -> bool;
}

const SHAPE_UNUSUAL: u64 = 1;
const SHAPE_NO_HOME: u64 = 2;
const SHAPE_NO_SIZE: u64 = 4;
/// Bits that a head with a home and no size, the usual one, has zero.
const SHAPE_USUAL: u64 = SHAPE_NO_SIZE;

/// A plain record without a size, one that is not plain, a plain one with a size.
const PLAIN: u64 = 0;
const NOT_PLAIN: u64 = 1;
const PLAIN_WITH_SIZE: u64 = 2;

/// The largest unit, as a power of two, in which pages without order are written.
const UNIT_SHIFT_MAX: u32 = 4;

/// What a record is measured against.
#[derive(Clone, Debug)]
struct Context {
    object: u64,
    next_page: u64,
    parent: u64,
    kind: u64,
    serial: u64,
    time: u64,
    /// The page of the medium behind what was last written.
    cursor: u64,
    page_shift: u32,
    page_bits: u32,
}

impl Context {
    fn new(first: Key, page_shift: u32, page_bits: u32) -> Self {
        let Key { object, page } = first;
        Self { object, next_page: page, parent: 0, kind: 0, serial: 0, time: 0, cursor: 0, page_shift, page_bits }
    }

    /// The page with which the record `step` objects further should begin.
    const fn expected_page(&self, step: u64) -> u64 {
        if step == 0 { self.next_page } else { 0 }
    }

    /// Moves on behind `record`.
    fn advance(&mut self, record: &Record) {
        self.object = record.object;
        self.next_page = record.piece_end();
        if let Some(last) = record.runs.last() {
            self.cursor = last.end_at();
        }
        if let Some(head) = &record.head {
            (self.parent, self.kind) = (head.parent, kind_of(head));
            (self.serial, self.time) = (u64::from(head.serial), head.time);
            if let Some(home) = head.home
                && (home == self.cursor || record.runs.is_empty())
            {
                self.cursor = home.wrapping_add(1);
            }
        }
    }
}

fn kind_of(head: &Head) -> u64 {
    u64::from(head.kind) << 8 | u64::from(head.flags)
}

/// The size that a record's runs alone suggest.
fn expected_size(record: &Record, page_shift: u32) -> u64 {
    record.runs.last().map_or(record.page, Run::end) << page_shift
}

/// The page shift, of those a device may have, with which the sizes of `records` are the shortest.
pub fn best_page_shift(records: &[Record]) -> u32 {
    let cost = |shift: u32| -> u64 {
        let heads = records.iter().filter_map(|record| Some((record, record.head.as_ref()?.size?)));
        heads.map(|(record, size)| u64::from(bits(zigzag(expected_size(record, shift).wrapping_sub(size))))).sum()
    };
    [0].into_iter().chain(9..=16).min_by_key(|&shift| cost(shift)).unwrap_or(0)
}

const fn bits(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// The tokens of `records`, which are sound and in order. `page_bits` holds every page of the
/// medium that they name.
pub fn tokens_of(records: &[Record], first: Key, page_shift: u32, page_bits: u32) -> Vec<Token> {
    let mut out = Vec::with_capacity(records.len() * 16);
    let mut context = Context::new(first, page_shift, page_bits);
    for record in records {
        put_record(&mut out, record, &context);
        context.advance(record);
    }
    out
}

fn put_record(out: &mut Vec<Token>, record: &Record, context: &Context) {
    use Token::Value;
    out.push(Value(Class::Object, record.object.wrapping_sub(context.object)));
    let plain = plainness(record, context);
    out.push(Value(Class::Plain, plain));
    if plain == NOT_PLAIN {
        return put_any_record(out, record, context);
    }
    if let Some(head) = &record.head {
        out.push(Value(Class::Parent, zigzag(head.parent.wrapping_sub(context.parent))));
    }
    let mut cursor = context.cursor;
    if let [run] = record.runs[..] {
        put_place(out, Class::Start, run.at, cursor, context.page_bits);
        put_last(out, record, &run);
        cursor = run.end_at();
    }
    put_tail(out, record, cursor, context);
}

/// Whether `record` is one run of an object of which nothing but the parent has to be said.
fn plainness(record: &Record, context: &Context) -> u64 {
    let expected = context.expected_page(record.object.wrapping_sub(context.object));
    let [run] = record.runs[..] else { return NOT_PLAIN };
    if record.page != expected || run.page != record.page || record.head.is_some() != (record.page == 0) {
        return NOT_PLAIN;
    }
    let Some(head) = &record.head else { return PLAIN };
    let Head { parent: _, kind: _, flags: _, serial, home, size, time, extra } = head;
    let as_before = kind_of(head) == context.kind && u64::from(*serial) == context.serial && *time == context.time;
    match (as_before && home.is_some() && extra.is_empty(), size) {
        (false, _) => NOT_PLAIN,
        (true, None) => PLAIN,
        (true, Some(_)) => PLAIN_WITH_SIZE,
    }
}

/// All of a record behind its object.
fn put_any_record(out: &mut Vec<Token>, record: &Record, context: &Context) {
    use Token::Value;
    let expected = context.expected_page(record.object.wrapping_sub(context.object));
    out.push(Value(Class::Page, zigzag(record.page.wrapping_sub(expected))));
    let unusual = if record.head.is_some() == (record.page == 0) { 0 } else { SHAPE_UNUSUAL };
    let Some(head) = &record.head else {
        out.push(Value(Class::Shape, unusual));
        put_runs(out, record, context.cursor, context.page_bits);
        return;
    };
    let no_home = if head.home.is_none() { SHAPE_NO_HOME } else { 0 };
    let no_size = if head.size.is_none() { SHAPE_NO_SIZE } else { 0 };
    out.push(Value(Class::Shape, (unusual | no_home | no_size) ^ SHAPE_USUAL));
    out.push(Value(Class::Parent, zigzag(head.parent.wrapping_sub(context.parent))));
    out.push(Value(Class::Kind, kind_of(head) ^ context.kind));
    out.push(Value(Class::Serial, zigzag(u64::from(head.serial).wrapping_sub(context.serial))));
    out.push(Value(Class::Time, zigzag(head.time.wrapping_sub(context.time))));
    out.push(Value(Class::Extra, head.extra.len() as u64));
    out.extend(head.extra.iter().map(|&byte| Token::Bits(u64::from(byte), 8)));
    let cursor = put_runs(out, record, context.cursor, context.page_bits);
    put_tail(out, record, cursor, context);
}

/// Home and size, which are measured against the runs.
fn put_tail(out: &mut Vec<Token>, record: &Record, cursor: u64, context: &Context) {
    let Some(head) = &record.head else { return };
    if let Some(at) = head.home {
        put_place(out, Class::Home, at, cursor, context.page_bits);
    }
    if let Some(size) = head.size {
        out.push(Token::Value(Class::Size, zigzag(expected_size(record, context.page_shift).wrapping_sub(size))));
    }
}

/// Puts a page of which `expected` is foretold.
pub fn put_place(out: &mut Vec<Token>, class: Class, at: u64, expected: u64, bits: u32) {
    out.push(Token::Place { class, difference: zigzag(at.wrapping_sub(expected)), at, bits: bits as u8 });
}

fn put_last(out: &mut Vec<Token>, record: &Record, run: &Run) {
    let pages = if run.end() == record.piece_end() { 0 } else { u64::from(run.pages) };
    out.push(Token::Value(Class::Last, pages));
}

/// Puts the runs in the cheapest way and returns the page of the medium behind the last.
fn put_runs(out: &mut Vec<Token>, record: &Record, cursor: u64, page_bits: u32) -> u64 {
    // With few runs nothing is won by another way.
    if record.runs.len() < 8 {
        put_ordered_runs(out, record, cursor, page_bits);
        return record.runs.last().map_or(cursor, Run::end_at);
    }
    let ordered = {
        let mut cursor = cursor;
        let cost = |run: &Run| {
            let far = u64::from(2 * bits(zigzag(run.at.wrapping_sub(cursor))) + 1).min(u64::from(page_bits) + 6);
            cursor = run.end_at();
            far + u64::from(2 * bits(u64::from(run.pages)))
        };
        record.runs.iter().map(cost).sum()
    };
    match cheapest_units(record, page_bits) {
        Some((cost, shift)) if cost < ordered => put_units(out, record, shift, page_bits),
        _ => put_ordered_runs(out, record, cursor, page_bits),
    }
    record.runs.last().map_or(cursor, Run::end_at)
}

/// A page of the object and where it lies.
type Mapped = (u64, u64);

fn mapped(record: &Record) -> Vec<Mapped> {
    let pages = record.runs.iter().flat_map(|run| (0..u64::from(run.pages)).map(|n| (run.page + n, run.at + n)));
    pages.collect()
}

/// Whether pages are as many as a unit has and lie one after another.
fn is_whole(unit: &[Mapped], shift: u32) -> bool {
    let follows = |pair: &[Mapped]| match *pair {
        [a, b] => a.0 + 1 == b.0 && a.1 + 1 == b.1,
        _ => true,
    };
    unit.len() == 1 << shift && unit.windows(2).all(follows)
}

/// Bits of the shortest way to write the pages in units, and the shift of those units.
fn cheapest_units(record: &Record, page_bits: u32) -> Option<(u64, u32)> {
    let pages = mapped(record);
    let cost = |shift: u32| -> u64 {
        let of = |unit: &[Mapped]| {
            if is_whole(unit, shift) { u64::from(page_bits) } else { 8 + unit.len() as u64 * u64::from(page_bits) }
        };
        pages.chunks(1 << shift).map(of).sum()
    };
    (0..=UNIT_SHIFT_MAX).map(|shift| (cost(shift), shift)).min()
}

/// One page number for each unit of `2^shift` pages, and one for each page of a unit whose pages do
/// not lie together.
fn put_units(out: &mut Vec<Token>, record: &Record, shift: u32, page_bits: u32) {
    let pages = mapped(record);
    out.push(Token::Value(Class::Mode, u64::from(shift) + 1));
    out.push(Token::Value(Class::Count, pages.len() as u64));
    let mut end = record.page;
    let mut rest = &pages[..];
    while !rest.is_empty() {
        let whole = rest.chunks(1 << shift).take_while(|unit| is_whole(unit, shift)).count();
        let (units, others) = rest.split_at(whole << shift);
        out.push(Token::Value(Class::Skip, if others.is_empty() { 0 } else { whole as u64 + 1 }));
        for unit in units.chunks(1 << shift) {
            put_unit(out, unit, &mut end, page_bits);
        }
        let (broken, others) = others.split_at(others.len().min(1 << shift));
        for page in broken.chunks(1) {
            put_unit(out, page, &mut end, page_bits);
        }
        rest = others;
    }
}

/// The first page of `unit`, from which the others follow.
fn put_unit(out: &mut Vec<Token>, unit: &[Mapped], end: &mut u64, page_bits: u32) {
    if let Some(&(page, at)) = unit.first() {
        out.push(Token::Value(Class::Gap, page - *end));
        out.push(Token::Bits(at, page_bits as u8));
        *end = page + unit.len() as u64;
    }
}

fn put_ordered_runs(out: &mut Vec<Token>, record: &Record, mut cursor: u64, page_bits: u32) {
    out.push(Token::Value(Class::Mode, 0));
    out.push(Token::Value(Class::Count, record.runs.len() as u64));
    let mut end = record.page;
    for (index, run) in record.runs.iter().enumerate() {
        out.push(Token::Value(Class::Gap, run.page - end));
        put_place(out, if index == 0 { Class::Start } else { Class::Next }, run.at, cursor, page_bits);
        if index + 1 < record.runs.len() {
            out.push(Token::Value(Class::Length, u64::from(run.pages) - 1));
        } else {
            put_last(out, record, run);
        }
        (end, cursor) = (run.end(), run.end_at());
    }
}

/// Makes records of tokens.
pub struct Assembly {
    context: Context,
    runs_left: usize,
}

impl Assembly {
    pub fn new(first: Key, page_shift: u32, page_bits: u32) -> Self {
        Self { context: Context::new(first, page_shift, page_bits), runs_left: BUCKET_RUNS_MAX }
    }

    /// The next record; `None` if the tokens make no sense.
    pub fn take(&mut self, source: &mut impl TokenSource) -> Option<Record> {
        let step = source.value(Class::Object)?;
        let object = self.context.object.checked_add(step)?;
        let page = self.context.expected_page(step);
        let mut record = Record { object, page, ..Record::default() };
        match source.value(Class::Plain)? {
            NOT_PLAIN => self.take_any_record(&mut record, source)?,
            plain @ (PLAIN | PLAIN_WITH_SIZE) => self.take_plain_record(&mut record, plain, source)?,
            _ => return None,
        }
        self.context.advance(&record);
        Some(record)
    }

    fn take_plain_record(&mut self, record: &mut Record, plain: u64, source: &mut impl TokenSource) -> Option<()> {
        let context = &self.context;
        if record.page == 0 {
            record.head = Some(Head {
                parent: context.parent.wrapping_add(unzigzag(source.value(Class::Parent)?)),
                kind: (context.kind >> 8) as u8,
                flags: context.kind as u8,
                serial: u32::try_from(context.serial).ok()?,
                time: context.time,
                ..Head::default()
            });
        } else if plain == PLAIN_WITH_SIZE {
            return None;
        }
        self.take_ordered_run(record, record.page, true, source)?;
        if !record.is_sound() {
            return None;
        }
        self.take_tail(record, true, plain == PLAIN_WITH_SIZE, source)
    }

    /// All of a record behind its object, which [`Self::take_plain_record`] leaves out.
    fn take_any_record(&mut self, record: &mut Record, source: &mut impl TokenSource) -> Option<()> {
        record.page = record.page.wrapping_add(unzigzag(source.value(Class::Page)?));
        let shape = source.value(Class::Shape)?;
        if (shape & SHAPE_UNUSUAL == 0) != (record.page == 0) {
            if shape > SHAPE_UNUSUAL {
                return None;
            }
            return self.take_runs(record, source);
        }
        let shape = shape ^ SHAPE_USUAL;
        if shape >= 2 * SHAPE_NO_SIZE {
            return None;
        }
        record.head = Some(self.take_head(source)?);
        self.take_runs(record, source)?;
        self.take_tail(record, shape & SHAPE_NO_HOME == 0, shape & SHAPE_NO_SIZE == 0, source)
    }

    fn take_tail(&self, record: &mut Record, home: bool, size: bool, source: &mut impl TokenSource) -> Option<()> {
        let cursor = record.runs.last().map_or(self.context.cursor, Run::end_at);
        let expected = expected_size(record, self.context.page_shift);
        let Some(head) = &mut record.head else { return Some(()) };
        if home {
            head.home = Some(source.place(Class::Home, cursor, self.context.page_bits)?);
        }
        if size {
            head.size = Some(expected.wrapping_sub(unzigzag(source.value(Class::Size)?)));
        }
        Some(())
    }

    fn take_head(&self, source: &mut impl TokenSource) -> Option<Head> {
        let context = &self.context;
        let parent = context.parent.wrapping_add(unzigzag(source.value(Class::Parent)?));
        let kind = context.kind ^ source.value(Class::Kind)?;
        let serial = context.serial.wrapping_add(unzigzag(source.value(Class::Serial)?));
        let time = context.time.wrapping_add(unzigzag(source.value(Class::Time)?));
        let mut extra = Vec::new();
        for _ in 0..source.value(Class::Extra)? {
            extra.push(source.bits(8)? as u8);
        }
        Some(Head {
            parent,
            kind: u8::try_from(kind >> 8).ok()?,
            flags: kind as u8,
            serial: u32::try_from(serial).ok()?,
            home: None,
            size: None,
            time,
            extra,
        })
    }

    fn take_runs(&mut self, record: &mut Record, source: &mut impl TokenSource) -> Option<()> {
        let mode = source.value(Class::Mode)?;
        let count = source.value(Class::Count).filter(|&count| count <= PIECE_PAGES)?;
        if let Some(shift) = mode.checked_sub(1) {
            let shift = u32::try_from(shift).ok().filter(|&shift| shift <= UNIT_SHIFT_MAX)?;
            self.take_units(record, count, shift, source)?;
        } else {
            let mut page = record.page;
            for index in 0..count {
                page = page.checked_add(source.value(Class::Gap)?)?;
                page = self.take_ordered_run(record, page, index + 1 == count, source)?;
            }
        }
        record.is_sound().then_some(())
    }

    /// Takes a run that begins at `page` and returns the page behind it.
    fn take_ordered_run(
        &mut self,
        record: &mut Record,
        page: u64,
        is_last: bool,
        source: &mut impl TokenSource,
    ) -> Option<u64> {
        let (class, expected) = match record.runs.last() {
            None => (Class::Start, self.context.cursor),
            Some(run) => (Class::Next, run.end_at()),
        };
        let at = source.place(class, expected, self.context.page_bits)?;
        let pages = if is_last {
            match source.value(Class::Last)? {
                0 => record.piece_end().checked_sub(page)?,
                pages => pages,
            }
        } else {
            source.value(Class::Length)?.checked_add(1)?
        };
        self.push(record, page, pages, at)
    }

    fn take_units(&mut self, record: &mut Record, count: u64, shift: u32, source: &mut impl TokenSource) -> Option<()> {
        let (mut page, mut left, bits) = (record.page, count, self.context.page_bits);
        let mut unit = |this: &mut Self, record: &mut Record, pages: u64, source: &mut dyn TokenSource| {
            page = page.checked_add(source.value(Class::Gap)?)?;
            page = this.push(record, page, pages, source.bits(bits)?)?;
            Some(())
        };
        while left > 0 {
            let skip = source.value(Class::Skip)?;
            let whole = skip.checked_sub(1).unwrap_or(left >> shift);
            for _ in 0..whole {
                left = left.checked_sub(1 << shift)?;
                unit(self, record, 1 << shift, source)?;
            }
            let broken = if skip == 0 { 0 } else { left.min(1 << shift) };
            if skip == 0 && left > 0 {
                return None;
            }
            for _ in 0..broken {
                unit(self, record, 1, source)?;
            }
            left -= broken;
        }
        Some(())
    }

    /// Adds a run, joined to the last one if it continues it, and returns the page behind it.
    fn push(&mut self, record: &mut Record, page: u64, pages: u64, at: u64) -> Option<u64> {
        let end = page.checked_add(pages).filter(|&end| end <= record.piece_end())?;
        at.checked_add(pages)?;
        let run = Run { page, pages: u32::try_from(pages).ok()?, at };
        match record.runs.last_mut() {
            Some(last) if last.continues_in(&run) => last.pages += run.pages,
            _ => {
                self.runs_left = self.runs_left.checked_sub(1)?;
                record.runs.push(run);
            }
        }
        Some(end)
    }
}
