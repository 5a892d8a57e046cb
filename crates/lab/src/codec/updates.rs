//! What updates cost, and what they leave: every object of a population is rewritten twice, in no
//! order, and each bucket that this changes is written anew at once, as if no log gathered the
//! changes.

use super::chip::Chip;
use super::coders::{ENTRY_BYTES, Parts, block_table, granules, parts_of, records_of, records_of_file};
use super::compared::blocks::encode_blocks;
use super::population::{Files as _, Population, Volume};
use crate::replay::processor_seconds;
use onode_base::Prng;
use onode_codec::{BUCKET_BYTES_MAX, EncodeError, Key, Record, decode_bucket, encode_buckets, peek_bucket};
use std::collections::BTreeMap;

/// What came out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Updates {
    /// Memory in MiB for each GiB of NAND, after the updates.
    pub mib_per_gib: f64,
    /// Bytes written to the memory for an update of one object, its entries in the directory
    /// included: on average.
    pub bytes_mean: f64,
    /// The same for the dearest one.
    pub bytes_max: u64,
    /// Processor time of an update in microseconds.
    pub cpu_us: f64,
    /// Objects that the cleaner moved while an object was written, for each such object.
    pub moved: f64,
}

/// Buckets by the key of their first record.
#[derive(Default)]
struct Directory(BTreeMap<Key, Vec<u8>>);

/// The key of a bucket that goes and the buckets that come.
type Joined = (Key, Vec<Vec<u8>>);

/// Nothing here asks which bucket is the newer.
const GENERATION: u64 = 1;

/// Buckets that would be filled to less than this are not tried: even parts need some room.
const MARGIN: usize = 48;

/// Buckets that are smaller look for a neighbour to join.
const SPARSE: usize = BUCKET_BYTES_MAX / 2;

impl Directory {
    fn load(records: Vec<Record>) -> Result<Self, EncodeError> {
        let mut directory = Self::default();
        directory.store(encode_buckets(records, GENERATION, BUCKET_BYTES_MAX)?);
        Ok(directory)
    }

    /// Takes in buckets and returns the bytes that this writes.
    fn store(&mut self, buckets: Vec<Vec<u8>>) -> u64 {
        let mut written = 0;
        for bytes in buckets {
            written += granules(bytes.len()) + ENTRY_BYTES;
            self.0.extend(peek_bucket(&bytes).ok().map(|header| (header.first, bytes)));
        }
        written
    }

    /// Takes the bucket at `key` out.
    fn take(&mut self, key: Key) -> Vec<Record> {
        self.0.remove(&key).and_then(|bytes| decode_bucket(&bytes).ok()).unwrap_or_default()
    }

    fn before(&self, key: Key) -> Option<(Key, usize)> {
        self.0.range(..key).next_back().map(|(key, bytes)| (*key, bytes.len()))
    }

    fn behind(&self, key: Key) -> Option<(Key, usize)> {
        self.0.range(key..).next().map(|(key, bytes)| (*key, bytes.len()))
    }

    /// Lets `new` be the records of `object`; bytes written.
    fn update(&mut self, object: u64, new: Vec<Record>) -> Result<u64, EncodeError> {
        let (from, to) = (Key { object, page: 0 }, Key { object, page: u64::MAX });
        let first = self.0.range(..=from).next_back().map_or(from, |(key, _)| *key);
        let keys: Vec<Key> = self.0.range(first..=to).map(|(key, _)| *key).collect();
        let mut records: Vec<Record> = keys.iter().flat_map(|key| self.take(*key)).collect();
        let at = records.partition_point(|record| record.object < object);
        let end = records.partition_point(|record| record.object <= object);
        records.splice(at..end, new);
        let first = records.first().map(Record::key);
        let mut encoded = encode_buckets(records, GENERATION, BUCKET_BYTES_MAX)?;
        let bytes: usize = encoded.iter().map(Vec::len).sum();
        let joined = match (encoded.len(), first) {
            (1, Some(first)) if bytes < SPARSE => self.join(first, &encoded, BUCKET_BYTES_MAX - bytes)?,
            // Two full neighbours are better divided by three than one by two.
            (count, Some(first)) if count > keys.len() => {
                self.join(first, &encoded, (count * BUCKET_BYTES_MAX).saturating_sub(bytes + MARGIN))?
            }
            _ => None,
        };
        if let Some((neighbour, joined)) = joined {
            self.0.remove(&neighbour);
            encoded = joined;
        }
        Ok(self.store(encoded))
    }

    /// The buckets `own`, the first of which begins at `first`, and the smaller neighbour if it has
    /// at most `bytes`, written anew in no more buckets than `own` are.
    fn join(&self, first: Key, own: &[Vec<u8>], bytes: usize) -> Result<Option<Joined>, EncodeError> {
        let smallest = self.before(first).into_iter().chain(self.behind(first)).min_by_key(|neighbour| neighbour.1);
        let Some((key, _)) = smallest.filter(|neighbour| neighbour.1 <= bytes) else { return Ok(None) };
        let records = |bytes: &Vec<u8>| decode_bucket(bytes).unwrap_or_default();
        let neighbour = self.0.get(&key).map(records).unwrap_or_default();
        let mut together: Vec<Record> = own.iter().flat_map(records).collect();
        let at = if key < first { 0 } else { together.len() };
        together.splice(at..at, neighbour);
        let joined = encode_buckets(together, GENERATION, BUCKET_BYTES_MAX)?;
        Ok((joined.len() <= own.len()).then_some((key, joined)))
    }

    fn parts(&self, volume: &Volume) -> Parts {
        let lengths: Vec<usize> = self.0.values().map(Vec::len).collect();
        parts_of(&lengths, encode_blocks(&block_table(volume)).len() as u64, volume.bytes())
    }

    fn records(&self) -> Vec<Record> {
        self.0.values().flat_map(|bytes| decode_bucket(bytes).unwrap_or_default()).collect()
    }
}

/// Rewrites every object of `population` twice. `None` if the buckets do not hold in the end what
/// the chip does.
pub fn measure(population: Population, blocks: u32, seed: u64) -> Option<Updates> {
    let mut chip = population.fill(blocks, seed);
    let mut directory = Directory::load(records_of(&Volume::of(&chip), false)).ok()?;
    let files: Vec<u32> = (0u32..)
        .zip(&chip.objects)
        .filter(|(_, file)| file.as_ref().is_some_and(|file| !file.object.pages.is_empty()))
        .map(|(number, _)| number)
        .collect();
    let mut random = Prng::new(seed);
    let mut updates = Updates::default();
    let count = 2 * files.len() as u64;
    let (mut written, mut moved) = (0, 0);
    for _ in 0..count {
        let file = files[random.below(files.len() as u64) as usize];
        chip.touched.clear();
        let (_, pages, size) = chip.look(file);
        chip.write_pages(file, 0, pages as u32);
        chip.close(file, size);
        for touched in std::mem::take(&mut chip.touched) {
            let (id, records) = records_of_number(&chip, touched)?;
            let started = processor_seconds();
            let bytes = directory.update(id, records).ok()?;
            if touched == file {
                updates.cpu_us += (processor_seconds() - started) * 1e6;
                written += bytes;
                updates.bytes_max = updates.bytes_max.max(bytes);
            } else {
                moved += 1;
            }
        }
    }
    let volume = Volume::of(&chip);
    let sum = directory.parts(&volume).sum();
    updates.mib_per_gib = sum as f64 * 1024.0 / volume.bytes() as f64;
    updates.bytes_mean = written as f64 / count as f64;
    updates.moved = f64::from(moved) / count as f64;
    updates.cpu_us /= count as f64;
    joined(directory.records()).eq(&joined(records_of(&volume, false))).then_some(updates)
}

fn records_of_number(chip: &Chip, number: u32) -> Option<(u64, Vec<Record>)> {
    let file = chip.objects.get(number as usize)?.as_ref()?;
    Some((u64::from(file.object.id), records_of_file(file, false)))
}

/// Records that were cut put together again.
fn joined(records: Vec<Record>) -> Vec<Record> {
    let mut out: Vec<Record> = Vec::new();
    for record in records {
        match out.last_mut() {
            Some(last) if last.object == record.object && last.piece_end() == record.piece_end() => {
                for run in record.runs {
                    match last.runs.last_mut() {
                        Some(end) if end.continues_in(&run) => end.pages += run.pages,
                        _ => last.runs.push(run),
                    }
                }
            }
            _ => out.push(record),
        }
    }
    out
}
