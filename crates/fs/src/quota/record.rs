//! A limit as the volume object keeps it (`docs/format/fs.md`): an attribute of its own, whose
//! index says what it is for.
//!
//! What is used stands there in 16 bytes, whatever the numbers are: a change of it replaces as many
//! bytes as there were, which a full device takes.

use crate::error::Result;
use crate::quota::{QuotaLimits, QuotaUse};
use crate::volume::VOLUME;
use onode_base::varint;
use onode_object::{AttributeKey, AttributeKind, ObjectDevice, Transaction};

/// The form of a record.
const FORM: u8 = 1;
/// Where the indices of users begin, and those of groups; below are trees.
const USERS: u64 = 1 << 62;
const GROUPS: u64 = 2 << 62;
const RECORDS_AT_ONCE: usize = 256;

/// What a limit is for, as the volume knows it: a tree by its own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Charged {
    Tree(u64),
    User(u32),
    Group(u32),
}

impl Charged {
    pub(crate) const fn index(self) -> u64 {
        match self {
            Self::Tree(tree) => tree,
            Self::User(uid) => USERS | uid as u64,
            Self::Group(gid) => GROUPS | gid as u64,
        }
    }

    pub(crate) const fn from_index(index: u64) -> Option<Self> {
        let (class, number) = (index & !(USERS - 1), index & (USERS - 1));
        match class {
            0 if number != 0 => Some(Self::Tree(number)),
            USERS if number <= u32::MAX as u64 => Some(Self::User(number as u32)),
            GROUPS if number <= u32::MAX as u64 => Some(Self::Group(number as u32)),
            _ => None,
        }
    }

    pub(crate) const fn key(self) -> AttributeKey {
        AttributeKey::new(AttributeKind::QUOTA, self.index())
    }
}

/// A limit with what the device has of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuotaRecord {
    pub limits: QuotaLimits,
    pub used: QuotaUse,
    /// Of a tree: its topmost directory; else 0.
    pub directory: u64,
}

impl QuotaRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORM];
        for limit in [self.limits.bytes, self.limits.files] {
            // One more than the limit, so that there is a number for none.
            varint::put(&mut out, limit.map_or(0, |limit| limit.saturating_add(1)));
        }
        varint::put(&mut out, self.directory);
        out.extend_from_slice(&self.used.bytes.to_le_bytes());
        out.extend_from_slice(&self.used.files.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = bytes.strip_prefix(&[FORM])?;
        let input = &mut input;
        let limits =
            QuotaLimits { bytes: varint::take(input)?.checked_sub(1), files: varint::take(input)?.checked_sub(1) };
        let directory = varint::take(input)?;
        let used = QuotaUse { bytes: take_number(input)?, files: take_number(input)? };
        input.is_empty().then_some(Self { limits, used, directory })
    }

    pub(crate) fn store(&self, transaction: &mut Transaction, charged: Charged) {
        transaction.set_attribute(VOLUME, charged.key(), self.encode());
    }
}

fn take_number(input: &mut &[u8]) -> Option<u64> {
    let (number, rest) = input.split_first_chunk::<8>()?;
    *input = rest;
    Some(u64::from_le_bytes(*number))
}

/// A stored limit; what it is for is `None`, or the record, if it is damaged.
pub(crate) struct StoredQuota {
    pub index: u64,
    pub charged: Option<Charged>,
    pub record: Option<QuotaRecord>,
}

/// Every limit of the volume on `device`.
pub(crate) fn list(device: &dyn ObjectDevice) -> Result<Vec<StoredQuota>> {
    let mut found = Vec::new();
    let mut from = AttributeKey::new(AttributeKind::QUOTA, 0);
    loop {
        let batch = device.attributes(VOLUME, from, RECORDS_AT_ONCE)?;
        let ours = batch.iter().take_while(|(key, _)| key.kind == AttributeKind::QUOTA);
        let before = found.len();
        found.extend(ours.map(|(key, value)| StoredQuota {
            index: key.index,
            charged: Charged::from_index(key.index),
            record: QuotaRecord::decode(value),
        }));
        match found.last().and_then(|last| last.index.checked_add(1)) {
            Some(next) if found.len() - before == RECORDS_AT_ONCE => from.index = next,
            _ => return Ok(found),
        }
    }
}

/// Two changes of one record together: what a transaction of a user made of it, and what others
/// made of it meanwhile. `None` if they contradict each other, or together go beyond a limit.
#[must_use]
pub fn merge_quotas(before: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let (before, ours, theirs) =
        (QuotaRecord::decode(before)?, QuotaRecord::decode(ours)?, QuotaRecord::decode(theirs)?);
    if before.limits != ours.limits || before.directory != ours.directory {
        return None;
    }
    let sum = |of: fn(&QuotaUse) -> u64, limit: Option<u64>| {
        let added = i128::from(of(&ours.used)) - i128::from(of(&before.used));
        let sum = u64::try_from(i128::from(of(&theirs.used)) + added).ok()?;
        (added <= 0 || limit.is_none_or(|limit| sum <= limit)).then_some(sum)
    };
    let used = QuotaUse {
        bytes: sum(|used| used.bytes, theirs.limits.bytes)?,
        files: sum(|used| used.files, theirs.limits.files)?,
    };
    Some(QuotaRecord { used, ..theirs }.encode())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> QuotaRecord {
        let limits = QuotaLimits { bytes: Some(1 << 30), files: None };
        QuotaRecord { limits, used: QuotaUse { bytes: 513, files: 3 }, directory: 200 }
    }

    #[test]
    fn records_come_back_and_cuts_are_refused() {
        let bytes = sample().encode();
        assert_eq!(QuotaRecord::decode(&bytes), Some(sample()));
        let head = [1, 0x81, 0x80, 0x80, 0x80, 4, 0, 0xc8, 1];
        assert_eq!(bytes, [&head[..], &[1, 2, 0, 0, 0, 0, 0, 0], &[3, 0, 0, 0, 0, 0, 0, 0]].concat());
        for length in 0..bytes.len() {
            assert_eq!(QuotaRecord::decode(&bytes[..length]), None);
        }
        let nothing = QuotaRecord { limits: QuotaLimits { bytes: Some(0), files: Some(u64::MAX - 1) }, ..sample() };
        assert_eq!(QuotaRecord::decode(&nothing.encode()), Some(nothing));
    }

    #[test]
    fn an_index_says_what_a_limit_is_for() {
        for charged in [Charged::Tree(64), Charged::User(0), Charged::User(u32::MAX), Charged::Group(7)] {
            assert_eq!(Charged::from_index(charged.index()), Some(charged));
        }
        for index in [0, USERS | 1 << 32, GROUPS | 1 << 40, 3 << 62] {
            assert_eq!(Charged::from_index(index), None, "{index:#x}");
        }
    }

    #[test]
    fn two_changes_add_up_as_far_as_the_limit_goes() {
        let with = |bytes| QuotaRecord { used: QuotaUse { bytes, files: 3 }, ..sample() }.encode();
        assert_eq!(merge_quotas(&with(513), &with(613), &with(500)), Some(with(600)));
        assert_eq!(merge_quotas(&with(513), &with(613), &with(1 << 30)), None, "beyond the limit");
        assert_eq!(merge_quotas(&with(513), &with(13), &with(1 << 30)), Some(with((1 << 30) - 500)));
        assert_eq!(merge_quotas(&with(513), &with(13), &with(100)), None, "less than nothing");
        assert_eq!(merge_quotas(&with(513), b"", &with(100)), None);
    }
}
