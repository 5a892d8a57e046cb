//! The intent record: what a transaction that is too large for the device consists of, and how far
//! it is put in place.
//!
//! The steps are the content of the object [`STAGED`](onode_object::ObjectId::STAGED), the progress
//! is an attribute of it. Setting that to "committed" is the one moment at which the transaction
//! happens. `docs/format/staged.md` describes the bytes.

use onode_base::checksum::crc32c;
use onode_base::varint;
use onode_object::wire::mutation;
use onode_object::{Mutation, ObjectId};

const VERSION: u8 = 1;
const CHANGE: u8 = 0;
const COPY: u8 = 1;

/// One thing to be done; doing it twice is doing it once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A change that has all it needs.
    Change(Mutation),
    /// Content that waits in a hidden object goes to the same place of another one.
    Copy(Copied),
}

/// Content that is to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) from: ObjectId,
    pub(crate) to: ObjectId,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl Step {
    /// Appends it to a record.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Change(change) => {
                out.push(CHANGE);
                mutation::put(out, change);
            }
            Self::Copy(Copied { from, to, offset, length }) => {
                out.push(COPY);
                [from.0, to.0, *offset, *length].into_iter().for_each(|number| varint::put(out, number));
            }
        }
    }

    /// Takes one off the front of a record; `None` if there is no step.
    pub(crate) fn take(input: &mut &[u8]) -> Option<Self> {
        let (&code, rest) = input.split_first()?;
        *input = rest;
        match code {
            CHANGE => mutation::take(input).map(Self::Change),
            COPY => {
                let (from, to) = (ObjectId(varint::take(input)?), ObjectId(varint::take(input)?));
                let (offset, length) = (varint::take(input)?, varint::take(input)?);
                Some(Self::Copy(Copied { from, to, offset, length }))
            }
            _ => None,
        }
    }
}

/// Whether there is a committed transaction, and how far it is put in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntentState {
    pub(crate) is_committed: bool,
    /// Bytes of the record, and their checksum.
    pub(crate) length: u64,
    pub(crate) checksum: u32,
    /// Steps that are done.
    pub(crate) steps: u64,
    /// Bytes of the next one that are copied.
    pub(crate) copied: u64,
}

impl IntentState {
    /// Nothing was committed.
    pub(crate) const NOTHING: Self = Self { is_committed: false, length: 0, checksum: 0, steps: 0, copied: 0 };

    /// Of a record that was just committed.
    pub(crate) fn of(record: &[u8]) -> Self {
        let (length, checksum) = (record.len() as u64, crc32c(record));
        Self { is_committed: true, length, checksum, ..Self::NOTHING }
    }

    /// Whether that is the record.
    pub(crate) fn is_of(&self, record: &[u8]) -> bool {
        self.length == record.len() as u64 && self.checksum == crc32c(record)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, u8::from(self.is_committed)];
        out.extend_from_slice(&self.checksum.to_le_bytes());
        [self.length, self.steps, self.copied].into_iter().for_each(|number| varint::put(&mut out, number));
        out
    }

    /// What an attribute says; `None` if that is no progress that this version knows.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[version, phase], rest) = bytes.split_first_chunk::<2>()?;
        let (checksum, mut rest) = rest.split_first_chunk::<4>()?;
        let input = &mut rest;
        let (length, steps, copied) = (varint::take(input)?, varint::take(input)?, varint::take(input)?);
        let is_known = version == VERSION && phase <= 1 && input.is_empty();
        let checksum = u32::from_le_bytes(*checksum);
        is_known.then_some(Self { is_committed: phase == 1, length, checksum, steps, copied })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_object::{AttributeKey, AttributeKind};

    #[test]
    fn steps_and_progress_come_back_and_what_is_cut_does_not() {
        let object = ObjectId(70);
        let key = AttributeKey::new(AttributeKind::ENTRY, 1 << 62);
        let copied = Copied { from: ObjectId(1 << 40), to: object, offset: 4096, length: 1 << 33 };
        let steps = [
            Step::Change(Mutation::Write { object, offset: 5, data: vec![1, 2, 3] }),
            Step::Copy(copied),
            Step::Change(Mutation::SetAttribute { object, key, value: vec![7; 80] }),
        ];
        let mut record = Vec::new();
        steps.iter().for_each(|step| step.put(&mut record));
        let mut rest = record.as_slice();
        assert!(steps.iter().all(|step| Step::take(&mut rest).as_ref() == Some(step)) && rest.is_empty());
        let mut cut = &record[..record.len() - 1];
        assert!((0..2).all(|_| Step::take(&mut cut).is_some()) && Step::take(&mut cut).is_none());
        let progress = IntentState { steps: 300, copied: 1 << 30, ..IntentState::of(&record) };
        let bytes = progress.encode();
        assert_eq!(IntentState::decode(&bytes), Some(progress));
        assert!(progress.is_of(&record) && !progress.is_of(&record[1..]));
        assert!((0..bytes.len()).all(|length| IntentState::decode(&bytes[..length]).is_none()));
        assert_eq!(IntentState::decode(&IntentState::NOTHING.encode()), Some(IntentState::NOTHING));
    }
}
