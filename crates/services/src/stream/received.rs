//! What a device keeps of streams that it receives, beneath all services.
//!
//! While a stream is received, an object says so: nobody is to use what is there of it, and power
//! may fail. On a device without snapshots it also says which state it has, until somebody changes
//! that; on others the snapshot does.

use crate::snapshots::SnapshotId;
use onode_object::{
    AttributeKey, AttributeKind, Durability, Error, ErrorKind, Hints, Mutation, ObjectDevice, ObjectId, Result,
    Transaction,
};

const FORM: u8 = 1;
const KEY: AttributeKey = AttributeKey::new(AttributeKind::SNAPSHOT, 0);

/// What a device has of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A part of the stream that leads to this state, from that one or from nothing.
    Part {
        /// Where it leads.
        to: SnapshotId,
        /// Whence.
        base: Option<SnapshotId>,
    },
    /// All of it, and nothing has changed since.
    All(SnapshotId),
}

impl Received {
    /// What a device says.
    ///
    /// # Errors
    /// `Corrupt` if that is malformed; those of the device.
    pub fn load(device: &dyn ObjectDevice) -> Result<Option<Self>> {
        let found = match device.attribute(ObjectId::RECEIVED, KEY) {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        let malformed = || Error::of(ErrorKind::Corrupt, ObjectId::RECEIVED, "what it says of streams is malformed");
        found.and_then(|value| Self::decode(&value)).map(Some).ok_or_else(malformed)
    }

    /// Has a device say this; durable on return.
    ///
    /// # Errors
    /// Those of the device.
    pub fn note(&self, device: &dyn ObjectDevice) -> Result<()> {
        let object = ObjectId::RECEIVED;
        let mut transaction = Transaction::new();
        if device.stat(object).is_err_and(|error| error.kind == ErrorKind::NotFound) {
            transaction.create(object, Hints::default());
        }
        transaction.set_attribute(object, KEY, self.encode());
        device.commit(transaction, Durability::Durable)
    }

    /// What has a device say nothing any more that says something.
    #[must_use]
    pub fn forgotten() -> Vec<Mutation> {
        vec![Mutation::Remove { object: ObjectId::RECEIVED }]
    }

    fn encode(&self) -> Vec<u8> {
        let (state, id, base) = match self {
            Self::Part { to, base: None } => (0, to, None),
            Self::Part { to, base: Some(base) } => (1, to, Some(base)),
            Self::All(id) => (2, id, None),
        };
        let mut bytes = vec![FORM, state];
        bytes.extend_from_slice(&id.0);
        bytes.extend_from_slice(base.as_ref().map_or(&[], |base| &base.0));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[form, state], rest) = bytes.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let to = SnapshotId(*id);
        let base = || rest.try_into().ok().map(SnapshotId);
        match state {
            _ if form != FORM => None,
            0 if rest.is_empty() => Some(Self::Part { to, base: None }),
            1 => Some(Self::Part { to, base: Some(base()?) }),
            2 if rest.is_empty() => Some(Self::All(to)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_object::RamDevice;

    #[test]
    fn a_device_says_what_it_was_told_until_it_is_to_forget_it() {
        let device = RamDevice::new(1 << 20);
        assert_eq!(Received::load(&device), Ok(None));
        let (to, base) = (SnapshotId([3; 16]), Some(SnapshotId([4; 16])));
        for said in [Received::Part { to, base: None }, Received::Part { to, base }, Received::All(to)] {
            said.note(&device).unwrap();
            assert_eq!(Received::load(&device), Ok(Some(said)));
            for length in 0..said.encode().len() {
                assert_eq!(Received::decode(&said.encode()[..length]), None);
            }
        }
        device.commit(Transaction { mutations: Received::forgotten() }, Durability::Durable).unwrap();
        assert_eq!(Received::load(&device), Ok(None));
    }
}
