//! What the cases share: a device under test with short ways to change it and to look at it.

use super::{Harness, Maker, Tree, dump};
use crate::device::ObjectDevice;
use crate::durability::Durability;
use crate::error::{Error, ErrorKind};
use crate::hints::Hints;
use crate::id::{AttributeKey, AttributeKind, ObjectId};
use crate::transaction::Transaction;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::Prng;

/// Content that most cases need at most.
const USUAL_BYTES: u64 = 16 << 20;

pub(super) struct Subject {
    pub(super) harness: Box<dyn Harness>,
}

/// The attribute key that most cases use.
pub(super) const fn key(index: u64) -> AttributeKey {
    AttributeKey::new(AttributeKind::FIRST_FREE, index)
}

/// Bytes that follow from the seed and do not compress.
pub(super) fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Prng::new(seed).fill(&mut bytes);
    bytes
}

impl Subject {
    pub(super) fn new(make: Maker<'_>) -> Self {
        Self::with_bytes(make, USUAL_BYTES)
    }

    pub(super) fn with_bytes(make: Maker<'_>, bytes: u64) -> Self {
        Self { harness: make(bytes) }
    }

    pub(super) fn device(&self) -> &dyn ObjectDevice {
        self.harness.device()
    }

    pub(super) fn try_commit(&self, build: impl FnOnce(&mut Transaction) -> &mut Transaction) -> Result<(), Error> {
        let mut transaction = Transaction::new();
        build(&mut transaction);
        self.device().commit(transaction, Durability::Buffered)
    }

    #[track_caller]
    pub(super) fn commit(&self, build: impl FnOnce(&mut Transaction) -> &mut Transaction) {
        self.try_commit(build).expect("this transaction applies");
    }

    #[track_caller]
    pub(super) fn commit_durably(&self, build: impl FnOnce(&mut Transaction) -> &mut Transaction) {
        let mut transaction = Transaction::new();
        build(&mut transaction);
        self.device().commit(transaction, Durability::Durable).expect("this transaction applies");
    }

    /// The transaction is refused with this kind and changes nothing at all.
    #[track_caller]
    pub(super) fn refuse(&self, kind: ErrorKind, build: impl FnOnce(&mut Transaction) -> &mut Transaction) {
        let before = self.dump();
        let error = self.try_commit(build).expect_err("this transaction must be refused");
        assert_eq!(error.kind, kind, "{error}");
        assert_eq!(self.dump().difference(&before), None, "a refused transaction changed something");
    }

    /// A new id.
    #[track_caller]
    pub(super) fn id(&self) -> ObjectId {
        self.device().reserve_ids(1).expect("ids are left")
    }

    /// A new, empty object.
    #[track_caller]
    pub(super) fn object(&self) -> ObjectId {
        let object = self.id();
        self.commit(|t| t.create(object, Hints::default()));
        object
    }

    /// A new object of these bytes.
    #[track_caller]
    pub(super) fn object_of(&self, bytes: &[u8]) -> ObjectId {
        let object = self.id();
        self.commit(|t| t.create(object, Hints::default()).write(object, 0, bytes.to_vec()));
        object
    }

    #[track_caller]
    pub(super) fn size(&self, object: ObjectId) -> u64 {
        self.device().stat(object).expect("the object exists").size
    }

    /// What a read of `length` bytes from `offset` returns.
    #[track_caller]
    pub(super) fn read(&self, object: ObjectId, offset: u64, length: usize) -> Vec<u8> {
        // Not zeros, so that a device that leaves a hole's part of the buffer alone is found out.
        let mut buffer = vec![0xa5; length];
        let count = self.device().read(object, offset, &mut buffer).expect("the object is readable");
        assert!(count <= length, "a read returned more than was asked for");
        assert!(buffer[count..].iter().all(|byte| *byte == 0xa5), "a read wrote past what it returned");
        buffer.truncate(count);
        buffer
    }

    /// The object has exactly these bytes, read whole and in unaligned pieces.
    #[track_caller]
    pub(super) fn expect(&self, object: ObjectId, bytes: &[u8]) {
        assert_eq!(self.size(object), bytes.len() as u64, "size of {object}");
        let whole = self.read(object, 0, bytes.len() + 10);
        let wrong = whole.iter().zip(bytes).position(|(a, b)| a != b);
        assert!(wrong.is_none() && whole.len() == bytes.len(), "{object} differs first at {wrong:?}");
        let step = bytes.len() / 7 + 1;
        for start in (0..bytes.len()).step_by(step) {
            let end = (start + step + 3).min(bytes.len());
            assert!(self.read(object, start as u64, end - start) == bytes[start..end], "{start}..{end} of {object}");
        }
    }

    #[track_caller]
    pub(super) fn expect_missing(&self, object: ObjectId) {
        let error = self.device().stat(object).expect_err("there must be no such object");
        assert_eq!(error.kind, ErrorKind::NotFound);
    }

    #[track_caller]
    pub(super) fn dump(&self) -> Tree {
        dump(self.device()).expect("everything is readable")
    }

    #[track_caller]
    pub(super) fn attribute(&self, object: ObjectId, index: u64) -> Option<Vec<u8>> {
        self.device().attribute(object, key(index)).expect("the object exists")
    }

    /// All attributes, fetched with this limit a call.
    #[track_caller]
    pub(super) fn attributes(&self, object: ObjectId, limit: usize) -> Vec<(AttributeKey, Vec<u8>)> {
        let mut all = Vec::new();
        let mut from = Some(AttributeKey::new(AttributeKind(0), 0));
        while let Some(start) = from {
            let some = self.device().attributes(object, start, limit).expect("the object exists");
            assert!(some.len() <= limit, "more attributes than asked for");
            from = some.last().and_then(|(key, _)| key.next());
            all.extend(some);
        }
        all
    }
}
