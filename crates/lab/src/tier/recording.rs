//! The block requests of a file system, as a disk saw them, with marks where phases of a workload
//! begin and end.
//!
//! A recording is a sequence of [`Event`]s. On the medium it is a magic, the size of the disk and
//! one event after the other: a byte for the kind, then numbers in LEB128. Offsets and lengths
//! count units of 512 bytes; an offset is the distance from the end of the request before (zigzag),
//! so that sequential requests are a few equal bytes and compress well. Reading one takes any bytes
//! and answers with an error.

use super::failed;
use onode::{Class, Error, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

const MAGIC: &[u8; 8] = b"ONODEBR1";
/// The unit of offsets and lengths.
const UNIT: u64 = 512;
/// Names of phases are short.
const NAME_BYTES_MAX: u64 = 200;

/// What a phase did, as the program that ran it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Operations.
    pub operations: u64,
    /// Bytes of content that they read and wrote.
    pub bytes: u64,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// So many bytes were read from an offset on.
    Read(u64, u64),
    /// So many bytes were written from an offset on.
    Write(u64, u64),
    /// So many bytes from an offset on were given up.
    Discard(u64, u64),
    /// A flush began; what comes before its end others did meanwhile.
    FlushBegin,
    /// The disk was flushed. Without a beginning of its own it began here as well.
    Flush,
    /// A phase begins.
    Begin(String),
    /// It ends.
    End(Done),
}

/// All that happened on a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The size of the disk.
    pub disk_bytes: u64,
    /// What happened, in order.
    pub events: Vec<Event>,
}

impl Recording {
    /// Reads the one of that name in `folder`, plain or compressed; `None` if there is none.
    ///
    /// # Errors
    /// `Damaged`; what the host says.
    pub fn find(folder: &Path, name: &str) -> Result<Option<Self>> {
        for extension in ["blk.zst", "blk"] {
            let path = folder.join(format!("{name}.{extension}"));
            if path.exists() {
                return Self::open(&path).map(Some);
            }
        }
        Ok(None)
    }

    /// Reads a file; one that ends in `.zst` is unpacked.
    ///
    /// # Errors
    /// `Damaged`; what the host says.
    pub fn open(path: &Path) -> Result<Self> {
        let what = || format!("cannot read the recording {}", path.display());
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
        read.map_err(|error| failed(&what(), error))?;
        if path.extension().is_some_and(|extension| extension == "zst") {
            return Self::unpack(&path.display().to_string(), &bytes);
        }
        Self::decode(&bytes).ok_or_else(|| Error::new(Class::Damaged, what(), "these are no block requests"))
    }

    /// The recording `name` from its compressed bytes.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn unpack(name: &str, packed: &[u8]) -> Result<Self> {
        let damaged = |why: String| Error::new(Class::Damaged, format!("cannot read the recording {name}"), why);
        let mut bytes = Vec::new();
        let mut unpacked = ruzstd::decoding::StreamingDecoder::new(packed).map_err(|why| damaged(why.to_string()))?;
        unpacked.read_to_end(&mut bytes).map_err(|why| damaged(why.to_string()))?;
        Self::decode(&bytes).ok_or_else(|| damaged("these are no block requests".to_owned()))
    }

    /// The bytes of a file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put(&mut out, self.disk_bytes);
        let mut end = 0;
        for event in &self.events {
            let (kind, range) = match event {
                Event::Read(offset, length) => (b'r', Some((offset, length))),
                Event::Write(offset, length) => (b'w', Some((offset, length))),
                Event::Discard(offset, length) => (b'd', Some((offset, length))),
                Event::FlushBegin => (b'b', None),
                Event::Flush => (b'f', None),
                Event::Begin(_) => (b'<', None),
                Event::End(_) => (b'>', None),
            };
            out.push(kind);
            if let Some((offset, length)) = range {
                let distance = (offset / UNIT).wrapping_sub(end) as i64;
                put(&mut out, ((distance << 1) ^ (distance >> 63)) as u64);
                put(&mut out, length / UNIT);
                end = (offset + length) / UNIT;
            }
            match event {
                Event::Begin(name) => {
                    put(&mut out, name.len() as u64);
                    out.extend_from_slice(name.as_bytes());
                }
                Event::End(done) => {
                    put(&mut out, done.operations);
                    put(&mut out, done.bytes);
                }
                _ => (),
            }
        }
        out
    }

    /// What `bytes` say; `None` if they are no recording.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let disk_bytes = take(&mut rest)?;
        let (mut events, mut end) = (Vec::new(), 0u64);
        while let Some((kind, after)) = rest.split_first() {
            rest = after;
            let mut range = || {
                let distance = take(&mut rest)?;
                let distance = (distance >> 1) as i64 ^ -((distance & 1) as i64);
                let (offset, length) = (end.checked_add_signed(distance)?, take(&mut rest)?);
                end = offset.checked_add(length).filter(|end| *end <= disk_bytes / UNIT)?;
                Some((offset * UNIT, length * UNIT))
            };
            events.push(match kind {
                b'r' => range().map(|(offset, length)| Event::Read(offset, length))?,
                b'w' => range().map(|(offset, length)| Event::Write(offset, length))?,
                b'd' => range().map(|(offset, length)| Event::Discard(offset, length))?,
                b'b' => Event::FlushBegin,
                b'f' => Event::Flush,
                b'<' => {
                    let length = take(&mut rest).filter(|length| *length <= NAME_BYTES_MAX)?;
                    let (name, after) = rest.split_at_checked(length as usize)?;
                    rest = after;
                    Event::Begin(String::from_utf8(name.to_vec()).ok()?)
                }
                b'>' => Event::End(Done { operations: take(&mut rest)?, bytes: take(&mut rest)? }),
                _ => return None,
            });
        }
        Some(Self { disk_bytes, events })
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tier::Recordings;

    fn some() -> Recording {
        let events = vec![
            Event::Begin("write".to_owned()),
            Event::Write(1 << 20, 4096),
            Event::Write((1 << 20) + 4096, 128 << 10),
            Event::FlushBegin,
            Event::Flush,
            Event::End(Done { operations: 2, bytes: 132 << 10 }),
            Event::Read(512, 1024),
            Event::Discard(0, 1 << 30),
        ];
        Recording { disk_bytes: 1 << 30, events }
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(Recording::decode(&some().encode()), Some(some()));
    }

    #[test]
    fn those_of_the_repository_are_whole() {
        for peer in crate::tier::PEERS {
            for workload in &crate::tier::workload::WORKLOADS {
                let name = crate::tier::recording_name(peer, workload.name);
                let found = Recordings::Embedded.find(&name).expect(&name).expect(&name);
                let begins = found.events.iter().filter(|event| matches!(event, Event::Begin(_))).count();
                let ends = found.events.iter().filter(|event| matches!(event, Event::End(_))).count();
                assert!(begins > 0 && begins == ends, "{name}: {begins} phases begin, {ends} end");
                assert!(found.events.contains(&Event::Flush), "{name} flushes nothing");
            }
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_read_as_something_else() {
        let whole = some().encode();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            assert_ne!(Recording::decode(&bytes), Some(some()), "byte {at}");
            // Cut off: the events before it, or nothing.
            assert_ne!(Recording::decode(&whole[..at]), Some(some()), "cut at {at}");
        }
    }
}
