//! Which records share a bucket: bulk load, split, merge and re-balance are all the packing of a
//! sorted run anew.

use crate::bucket::{
    BUCKET_BYTES_MAX, BUCKET_RECORDS_MAX, EncodeError, Encoded, bucket_bytes, encode_bucket, encode_within,
};
use crate::record::Record;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Divides `records` into as few buckets as hold them, each of `bytes_max` at most, filled about
/// evenly; a record that fits no bucket is [cut](Record::cut). Each part is what
/// [`crate::encode_bucket`] takes.
///
/// The records of one bucket that overflowed become two, those of neighbours become as few as will
/// do.
///
/// # Errors
/// [`EncodeError::Unsound`]; [`EncodeError::TooLarge`] for a head that no bucket holds, or with
/// `bytes_max` too small for a record at all.
pub fn pack_buckets(records: Vec<Record>, bytes_max: usize) -> Result<Vec<Vec<Record>>, EncodeError> {
    let limit = bytes_max.min(BUCKET_BYTES_MAX);
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let together = match bucket_bytes(&records) {
        Ok(bytes) if bytes <= limit => return Ok(alloc::vec![records]),
        Ok(bytes) | Err(EncodeError::TooLarge { bytes }) => bytes,
        Err(error) => return Err(error),
    };
    for count in 2..=EVEN_MAX {
        if together <= count * limit
            && let Some(even) = pack_even(&records, count, limit)?
        {
            return Ok(even);
        }
    }
    pack_full(records, limit)
}

/// [`pack_buckets`] and [`encode_bucket`] in one: faster, as nothing is worked
/// out twice when all records fit one bucket. The keys of the buckets are in their headers.
///
/// # Errors
/// See [`EncodeError`].
pub fn encode_buckets(records: Vec<Record>, generation: u64, bytes_max: usize) -> Result<Vec<Vec<u8>>, EncodeError> {
    let limit = bytes_max.min(BUCKET_BYTES_MAX);
    match encode_within(&records, generation, limit) {
        Ok(Encoded::Bucket(bucket)) => return Ok(alloc::vec![bucket]),
        Err(EncodeError::Unsound) if records.is_empty() => return Ok(Vec::new()),
        Ok(Encoded::TooLong(_)) | Err(EncodeError::TooLarge { .. }) => {}
        Err(error) => return Err(error),
    }
    let packed = pack_buckets(records, limit)?;
    packed.iter().map(|records| encode_bucket(records, generation)).collect()
}

/// More buckets than so many are filled one after another and not evenly.
const EVEN_MAX: usize = 4;

/// Divides `records` into `count` parts of about equal size; `None` if not all of them fit.
fn pack_even(records: &[Record], count: usize, limit: usize) -> Result<Option<Vec<Vec<Record>>>, EncodeError> {
    let total: usize = records.iter().map(weight).sum();
    let mut buckets = Vec::with_capacity(count);
    let (mut rest, mut before) = (records, 0);
    for part in 1..=count {
        let goal = total * part / count;
        let taken = rest.iter().take_while(|record| {
            let middle = before + weight(record) / 2;
            let is_taken = part == count || middle < goal;
            before += if is_taken { weight(record) } else { 0 };
            is_taken
        });
        let (bucket, others) = rest.split_at(taken.count());
        match bucket_bytes(bucket) {
            Ok(bytes) if bytes <= limit => buckets.push(bucket.to_vec()),
            Ok(_) | Err(EncodeError::TooLarge { .. }) => return Ok(None),
            // A part without records.
            Err(EncodeError::Unsound) if bucket.is_empty() => return Ok(None),
            Err(error) => return Err(error),
        }
        rest = others;
    }
    Ok(Some(buckets))
}

/// About what a record takes, in no particular unit.
fn weight(record: &Record) -> usize {
    let head = record.head.as_ref().map_or(0, |head| 8 + 8 * head.extra.len());
    16 + head + 20 * record.runs.len()
}

/// Fills bucket after bucket to the brim.
fn pack_full(records: Vec<Record>, limit: usize) -> Result<Vec<Vec<Record>>, EncodeError> {
    let mut rest = VecDeque::from(records);
    let mut buckets: Vec<Vec<Record>> = Vec::new();
    while !rest.is_empty() {
        let guess = buckets.last().map_or(16, Vec::len);
        let fitting = fitting(rest.make_contiguous(), limit, guess)?;
        let mut bucket: Vec<Record> = rest.drain(..fitting).collect();
        if let Some(next) = rest.pop_front() {
            rest.push_front(fill_up(&mut bucket, next, limit)?);
        }
        buckets.push(bucket);
    }
    Ok(buckets)
}

/// A record of so many runs and more is cut to fill a bucket.
const CUT_RUNS: usize = 24;

/// Moves as much of `next` into `bucket` as fits, if that is worth a cut or `bucket` would stay
/// empty; the rest of it.
fn fill_up(bucket: &mut Vec<Record>, next: Record, limit: usize) -> Result<Record, EncodeError> {
    if !bucket.is_empty() && next.runs.len() < CUT_RUNS {
        return Ok(next);
    }
    // Pages from which on it may be cut: those that begin a run, or any if that does not suffice.
    let mut pages: Vec<u64> = next.runs.iter().map(|run| run.page).filter(|&page| page > next.page).collect();
    if bucket.is_empty() && pages.len() < 2 {
        let (from, to) = (next.page + 1, next.runs.last().map_or(next.page, |run| run.end()));
        pages = (from..to).collect();
    }
    let records_before = bucket.len();
    let mut fits = |page: u64| {
        let mut front = next.clone();
        let tail = front.cut(page);
        bucket.truncate(records_before);
        bucket.push(front);
        match bucket_bytes(bucket) {
            Ok(bytes) if bytes <= limit => Ok(Some(tail)),
            Ok(_) | Err(EncodeError::TooLarge { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    };
    let (mut low, mut high) = (0, pages.len());
    while low < high {
        let middle = low.midpoint(high);
        let page = pages.get(middle).copied().unwrap_or_default();
        if fits(page)?.is_some() { low = middle + 1 } else { high = middle }
    }
    let cut = match low.checked_sub(1).and_then(|index| pages.get(index)) {
        Some(&page) => fits(page)?,
        None => None,
    };
    if let Some(tail) = cut {
        return Ok(tail);
    }
    bucket.truncate(records_before);
    if bucket.is_empty() { Err(EncodeError::TooLarge { bytes: usize::MAX }) } else { Ok(next) }
}

/// How many records from the first on fit `limit` bytes, found by steps that double from `guess`
/// on.
fn fitting(records: &[Record], limit: usize, guess: usize) -> Result<usize, EncodeError> {
    let fits = |count: usize| match bucket_bytes(records.get(..count).unwrap_or_default()) {
        Ok(bytes) => Ok(bytes <= limit),
        Err(EncodeError::TooLarge { .. }) => Ok(false),
        Err(error) => Err(error),
    };
    let most = records.len().min(BUCKET_RECORDS_MAX);
    let guess = guess.clamp(1, most);
    // `low` records fit, `high` do not.
    let (mut low, mut high) = (0, most + 1);
    let mut step = 1;
    let mut probe = guess;
    loop {
        if fits(probe)? {
            low = probe;
            if low == most {
                return Ok(low);
            }
            probe = (probe + step).min(most);
        } else {
            high = probe;
            if probe <= 1 {
                return Ok(low);
            }
            probe = probe.saturating_sub(step).max(1);
        }
        if low > 0 && high <= most {
            break;
        }
        step *= 2;
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if fits(middle)? { low = middle } else { high = middle }
    }
    Ok(low)
}
