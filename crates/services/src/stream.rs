//! Send streams: what a snapshot shows, or what differs between two, as bytes from which another
//! device gets the same state.
//!
//! A stream holds mutations of the object interface in checked frames, so it fits every device
//! that stands behind that interface, whatever it compresses, encrypts or mirrors itself.
//! [`Sending`] makes one, [`Receiving`] reads one, [`Applied`] changes a device as it says. All
//! that a stream says of an object is what it is to be, so a stream that was received in part is
//! received again from its beginning. Bytes: `docs/format/send.md`.

mod applied;
mod differences;
mod frame;
mod growth;
mod received;
mod receiving;
mod rekeyed;
mod sending;

pub use applied::{Applied, Keep};
pub use differences::Differences;
pub use growth::growth_of_going_back;
pub use received::Received;
pub use receiving::Receiving;
pub use rekeyed::rekeyed;
pub use sending::Sending;

use crate::snapshots::SnapshotId;
use onode_base::{Timestamp, varint};
use onode_object::{ErrorKind, ObjectDevice, ObjectId, ObjectStat, Result};

/// What a stream says of itself before anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// The state that it leads to.
    pub id: SnapshotId,
    /// The name of that snapshot.
    pub name: String,
    /// When it was taken.
    pub created: Timestamp,
    /// All its objects have lower numbers.
    pub next_id: ObjectId,
    /// The snapshot that a device must have to which it is applied; `None`: it is for an empty one.
    pub base: Option<StreamBase>,
}

/// The snapshot on which a stream builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamBase {
    /// Its number.
    pub id: SnapshotId,
    /// Its name where the stream was made.
    pub name: String,
}

impl StreamHeader {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.id.0.to_vec();
        bytes.extend_from_slice(&self.created.seconds.to_le_bytes());
        bytes.extend_from_slice(&self.created.nanoseconds.to_le_bytes());
        varint::put(&mut bytes, self.next_id.0);
        varint::put_bytes(&mut bytes, self.name.as_bytes());
        bytes.push(u8::from(self.base.is_some()));
        if let Some(base) = &self.base {
            bytes.extend_from_slice(&base.id.0);
            varint::put_bytes(&mut bytes, base.name.as_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk()?;
        let (seconds, rest) = rest.split_first_chunk()?;
        let (nanoseconds, mut rest) = rest.split_first_chunk()?;
        let created =
            Timestamp { seconds: i64::from_le_bytes(*seconds), nanoseconds: u32::from_le_bytes(*nanoseconds) };
        let next_id = ObjectId(varint::take(&mut rest)?);
        let name = take_name(&mut rest)?;
        let base = match rest.split_off_first()? {
            0 => None,
            1 => {
                let (id, behind) = rest.split_first_chunk()?;
                rest = behind;
                Some(StreamBase { id: SnapshotId(*id), name: take_name(&mut rest)? })
            }
            _ => return None,
        };
        let is_sound = rest.is_empty() && created.nanoseconds < 1_000_000_000 && next_id < ObjectId::FIRST_VERSION;
        is_sound.then_some(Self { id: SnapshotId(*id), name, created, next_id, base })
    }
}

fn take_name(bytes: &mut &[u8]) -> Option<String> {
    let name = std::str::from_utf8(varint::take_bytes(bytes)?).ok()?;
    crate::snapshots::check_name(name).ok().map(|()| name.to_owned())
}

/// What there is of an object, if it is there.
fn stat(device: &dyn ObjectDevice, object: ObjectId) -> Result<Option<ObjectStat>> {
    match device.stat(object) {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let created = Timestamp { seconds: -1, nanoseconds: 7 };
        let base = Some(StreamBase { id: SnapshotId([2; 16]), name: "monday".into() });
        let id = SnapshotId([1; 16]);
        let header = StreamHeader { id, name: "tuesday".into(), created, next_id: ObjectId(77), base };
        for header in [header.clone(), StreamHeader { base: None, ..header }] {
            let bytes = header.encode();
            assert_eq!(StreamHeader::decode(&bytes), Some(header));
            for length in 0..bytes.len() {
                assert_eq!(StreamHeader::decode(&bytes[..length]), None, "{length} bytes");
            }
            assert_eq!(StreamHeader::decode(&[bytes, vec![0]].concat()), None, "something behind it");
        }
    }
}
