//! The codecs, each measured on a whole volume: every object is coded, decoded and compared, and
//! counted with all that the format puts around it.

use super::chip::File;
use super::population::Volume;
use crate::codec::compared::blocks::{BlockEntry, decode_blocks, encode_blocks};
use crate::codec::compared::bytewise::ByteCoder;
use crate::codec::compared::cmfs::{Device, Hybrid, Object};
use crate::replay::processor_seconds;
use onode::{Class, Error, Result};
use onode_codec::{BUCKET_BYTES_MAX, Head, PIECE_PAGES, Record, Run};
use onode_codec::{decode_bucket, encode_bucket, pack_buckets};
use serde::Serialize;

/// How metadata is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// The paper's records as they are.
    Raw,
    /// The paper's records, each object through a coder of bytes.
    Bytes(ByteCoder),
    /// The paper's hybrid coding.
    Hybrid(Hybrid),
    /// Buckets of sorted records.
    Buckets,
    /// The same, with the sizes of files, which the paper's record lost.
    BucketsWithSizes,
}

/// What part of the memory a volume's metadata takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// Objects and their pages, coded.
    pub objects: u64,
    /// Erase blocks, coded.
    pub blocks: u64,
    /// What the allocator rounds up.
    pub rounding: u64,
    /// The directory of what lies where.
    pub directory: u64,
    /// The log of what changed since.
    pub log: u64,
}

/// A codec on a volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The population.
    pub population: &'static str,
    /// The codec.
    pub codec: &'static str,
    /// MiB of persistent RAM for each GiB of NAND.
    pub mib_per_gib: f64,
    /// Its parts.
    pub bytes: Parts,
    /// Milliseconds of processor time to code everything, for each GiB of NAND. Differs between
    /// equal runs.
    pub cpu_encode_ms_per_gib: f64,
    /// The same to decode everything.
    pub cpu_decode_ms_per_gib: f64,
}

/// Bytes of the units in which buckets are allocated.
const GRANULE: u64 = 32;
/// Bytes that name a bucket in the directory.
pub const ENTRY_BYTES: u64 = 8;
/// Bytes of the log for each GiB of NAND: 341 entries of 12 bytes.
const LOG_BYTES_PER_GIB: u64 = 4096;
/// Repetitions of which the fastest counts.
const ROUNDS: u32 = 3;

impl Codec {
    /// All, the paper's first.
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::Raw];
        all.extend(ByteCoder::ALL.map(Self::Bytes));
        all.extend([Self::Hybrid(Hybrid::Plain), Self::Hybrid(Hybrid::Coded), Self::Buckets, Self::BucketsWithSizes]);
        all
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Bytes(coder) => coder.name(),
            Self::Hybrid(Hybrid::Plain) => "hybrid",
            Self::Hybrid(Hybrid::Coded) => "hybrid, all coded",
            Self::Buckets => "buckets",
            Self::BucketsWithSizes => "buckets with sizes",
        }
    }

    /// Codes `volume`, decodes it again and compares.
    ///
    /// # Errors
    /// What came out is not what went in, or does not fit the codec.
    pub fn measure(self, population: &'static str, volume: &Volume) -> Result<Measured> {
        let gib = volume.bytes() as f64 / (1u64 << 30) as f64;
        let mut best = (Parts::default(), f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            let (parts, encode, decode) = match self {
                Self::Buckets | Self::BucketsWithSizes => of_buckets(volume, self == Self::BucketsWithSizes),
                _ => self.of_objects(volume),
            }
            .ok_or_else(|| {
                let what = format!("cannot code {population} with {}", self.name());
                Error::new(Class::General, what, "what was decoded is not what was coded")
            })?;
            best = (parts, best.1.min(encode), best.2.min(decode));
        }
        let (bytes, encode, decode) = best;
        Ok(Measured {
            population,
            codec: self.name(),
            mib_per_gib: bytes.sum() as f64 / (1u64 << 20) as f64 / gib,
            bytes,
            cpu_encode_ms_per_gib: encode * 1e3 / gib,
            cpu_decode_ms_per_gib: decode * 1e3 / gib,
        })
    }

    fn encode(self, object: &Object) -> Option<Vec<u8>> {
        match self {
            Self::Bytes(coder) => object.encode().map(|raw| coder.encode(&raw)),
            Self::Hybrid(hybrid) => hybrid.encode(object),
            _ => object.encode(),
        }
    }

    fn decode(self, bytes: &[u8], raw_bytes: usize) -> Option<Object> {
        match self {
            Self::Bytes(coder) => Object::decode(&coder.decode(bytes, raw_bytes)?),
            Self::Hybrid(hybrid) => hybrid.decode(bytes),
            _ => Object::decode(bytes),
        }
    }

    /// The paper's records: objects one by one, the device through LZO. Nothing is known of its
    /// allocator, so none is counted.
    fn of_objects(self, volume: &Volume) -> Option<(Parts, f64, f64)> {
        let device = Device { partition: [0; 10], blocks: volume.blocks.clone() };
        let started = processor_seconds();
        let coded: Option<Vec<(usize, Vec<u8>)>> =
            volume.files.iter().map(|file| Some((file.object.raw_bytes(), self.encode(&file.object)?))).collect();
        let coded = coded?;
        let raw_device = device.encode();
        let coded_device = if self == Self::Raw { raw_device.clone() } else { ByteCoder::Lzo.encode(&raw_device) };
        let encoded = processor_seconds();
        let decoded: Option<Vec<Object>> = coded.iter().map(|(raw, bytes)| self.decode(bytes, *raw)).collect();
        let decoded = decoded?;
        let read_device = match self {
            Self::Raw => Device::decode(&coded_device),
            _ => Device::decode(&ByteCoder::Lzo.decode(&coded_device, raw_device.len())?),
        };
        let ended = processor_seconds();
        let equal = decoded.iter().eq(volume.files.iter().map(|file| &file.object)) && read_device == Some(device);
        let objects = coded.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let parts = Parts { objects, blocks: coded_device.len() as u64, ..Parts::default() };
        equal.then_some((parts, encoded - started, ended - encoded))
    }
}

impl Parts {
    /// All together.
    pub const fn sum(&self) -> u64 {
        self.objects + self.blocks + self.rounding + self.directory + self.log
    }
}

/// The records of a volume.
pub fn records_of(volume: &Volume, with_sizes: bool) -> Vec<Record> {
    volume.files.iter().flat_map(|file| records_of_file(file, with_sizes)).collect()
}

/// The records of one object.
pub fn records_of_file(file: &File, with_sizes: bool) -> Vec<Record> {
    let mut records = Vec::new();
    let Object { id, parent, header, kind, flags, serial, ref pages } = file.object;
    let head = Head {
        parent: u64::from(parent),
        kind,
        flags,
        serial: u32::from(serial),
        home: (header != 0).then_some(u64::from(header)),
        size: with_sizes.then_some(file.size),
        ..Head::default()
    };
    let mut record = Record { object: u64::from(id), page: 0, head: Some(head), runs: Vec::new() };
    for (page, &at) in (0u64..).zip(pages) {
        if page > 0 && page % PIECE_PAGES == 0 {
            let next = Record { object: record.object, page, ..Record::default() };
            records.push(std::mem::replace(&mut record, next));
        }
        let run = Run { page, pages: 1, at: u64::from(at) };
        match record.runs.last_mut() {
            _ if at == 0 => {}
            Some(last) if last.continues_in(&run) => last.pages += 1,
            _ => record.runs.push(run),
        }
    }
    records.push(record);
    records
}

/// Bytes of the log of a volume of that size.
pub const fn log_bytes(nand_bytes: u64) -> u64 {
    (nand_bytes * LOG_BYTES_PER_GIB) >> 30
}

/// What the allocator gives for a bucket of that length.
pub const fn granules(length: usize) -> u64 {
    (length as u64).next_multiple_of(GRANULE)
}

/// What encoded buckets of these lengths take.
pub fn parts_of(lengths: &[usize], blocks: u64, nand_bytes: u64) -> Parts {
    let objects = lengths.iter().map(|&length| length as u64).sum();
    let rounded: u64 = lengths.iter().map(|&length| granules(length)).sum();
    Parts {
        objects,
        blocks,
        rounding: rounded - objects,
        directory: lengths.len() as u64 * ENTRY_BYTES,
        log: log_bytes(nand_bytes),
    }
}

/// The block table of a volume.
pub fn block_table(volume: &Volume) -> Vec<BlockEntry> {
    volume.blocks.iter().map(|block| BlockEntry { state: block.state, sequence: block.sequence }).collect()
}

fn of_buckets(volume: &Volume, with_sizes: bool) -> Option<(Parts, f64, f64)> {
    let records = records_of(volume, with_sizes);
    let table = block_table(volume);
    let started = processor_seconds();
    let packed = pack_buckets(records.clone(), BUCKET_BYTES_MAX).ok()?;
    let buckets: Option<Vec<Vec<u8>>> = packed.iter().map(|bucket| encode_bucket(bucket, 1).ok()).collect();
    let buckets = buckets?;
    let blocks = encode_blocks(&table);
    let encoded = processor_seconds();
    let mut decoded = Vec::with_capacity(packed.len());
    for bucket in &buckets {
        decoded.push(decode_bucket(bucket).ok()?);
    }
    let read_table = decode_blocks(&blocks, table.len());
    let ended = processor_seconds();
    let equal = decoded == packed && read_table == Some(table);
    let lengths: Vec<usize> = buckets.iter().map(Vec::len).collect();
    let parts = parts_of(&lengths, blocks.len() as u64, volume.bytes());
    equal.then_some((parts, encoded - started, ended - encoded))
}
