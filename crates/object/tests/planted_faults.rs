//! The suite itself under test: every fault planted into a sound device must fail some case.

use onode_object::conformance::{Harness, run};
use onode_object::{
    AttributeKey, AttributeKind, DeviceInfo, Durability, ErrorKind, Hints, Maintenance, Mutation, ObjectDevice,
    ObjectId, ObjectStat, RamDevice, Result, Space, SyncScope, Transaction,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    AppliesPartOfRefused,
    CommitsMutationsApart,
    DurableIsBuffered,
    SyncDoesNothing,
    ObjectSyncDoesNothing,
    ForgetsHints,
    EmbeddedObjectsLoseBytes,
    RemoveKeepsAttributes,
    PunchIsOneShort,
    WritesAreRounded,
    ReadsDoNotZeroHoles,
    ReadsPastTheEnd,
    ListSkipsOne,
    AttributesUnordered,
    EmptyAttributesAreMissing,
    HandsOutIdsTwice,
    ExtentsHideTheLast,
    ExtentsIgnoreTheOffset,
    NoSpaceForRemovals,
    NoSpaceComesLate,
    PromisesTooMuchSpace,
    MaintenanceNeverEnds,
    AcceptsLargeAttributes,
    CountsObjectsWrong,
    MovesAreOneShort,
    MovesKeepHoles,
    VersionsTakeIds,
}

struct Faulty {
    inner: RamDevice,
    fault: Fault,
}

impl Faulty {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// Commits each mutation for itself, so that an error comes after the first ones were done.
    fn commit_apart(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        for mutation in transaction.mutations {
            self.inner.commit(Transaction { mutations: vec![mutation] }, durability)?;
        }
        Ok(())
    }

    fn change(&self, mutation: &mut Mutation) {
        match (self.fault, mutation) {
            (Fault::ForgetsHints, Mutation::Create { hints, .. }) => *hints = Hints::default(),
            (Fault::PunchIsOneShort, Mutation::Punch { length, .. }) => *length = length.saturating_sub(1),
            (Fault::MovesAreOneShort, Mutation::Move { length, .. }) => *length = length.saturating_sub(1),
            (Fault::MovesKeepHoles, Mutation::Move { object, offset, .. })
                if self
                    .inner
                    .extents(*object, 0, 1)
                    .is_ok_and(|all| all.first().is_some_and(|one| one.0 > *offset)) =>
            {
                *offset = self.inner.extents(*object, 0, 1).map_or(0, |all| all[0].0);
            }
            (Fault::WritesAreRounded, Mutation::Write { offset, .. }) if *offset % 512 == 1 => *offset -= 1,
            (Fault::AcceptsLargeAttributes, Mutation::SetAttribute { value, .. }) => value.truncate(600),
            (Fault::EmbeddedObjectsLoseBytes, Mutation::Write { object, data, .. })
                if self.inner.stat(*object).is_ok_and(|stat| stat.hints.embed) =>
            {
                data.truncate(4_000);
            }
            _ => {}
        }
    }
}

impl ObjectDevice for Faulty {
    fn info(&self) -> DeviceInfo {
        self.inner.info()
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        if self.is(Fault::HandsOutIdsTwice)
            && let Some(last) = self.inner.list(ObjectId::FIRST_FREE, 10_000)?.last()
        {
            // What a device does that takes the next id from the objects it finds.
            self.inner.reserve_ids(count)?;
            return Ok(ObjectId(last.0 + 1));
        }
        if self.is(Fault::HandsOutIdsTwice) {
            self.inner.reserve_ids(count)?;
            return Ok(ObjectId::FIRST_FREE);
        }
        self.inner.reserve_ids(count)
    }

    fn commit(&self, mut transaction: Transaction, durability: Durability) -> Result<()> {
        for mutation in &mut transaction.mutations {
            self.change(mutation);
        }
        let removes = |it: &Mutation| matches!(it, Mutation::Remove { .. });
        match self.fault {
            Fault::CommitsMutationsApart => self.commit_apart(transaction, durability),
            Fault::AppliesPartOfRefused => {
                let first = transaction.mutations.first().cloned();
                let result = self.inner.commit(transaction, durability);
                if result.is_err()
                    && let Some(first) = first
                {
                    _ = self.inner.commit(Transaction { mutations: vec![first] }, durability);
                }
                result
            }
            Fault::VersionsTakeIds => {
                let makes = |it: &Mutation| matches!(it, Mutation::Create { object, .. } if object.is_version());
                if transaction.mutations.iter().any(makes) {
                    self.inner.reserve_ids(1 << 20)?;
                }
                self.inner.commit(transaction, durability)
            }
            Fault::DurableIsBuffered => self.inner.commit(transaction, Durability::Buffered),
            Fault::NoSpaceForRemovals if transaction.mutations.iter().any(removes) => {
                let full = self.inner.space().available < 10_000;
                if full {
                    return Err(onode_object::Error::new(ErrorKind::NoSpace, "full"));
                }
                self.inner.commit(transaction, durability)
            }
            Fault::NoSpaceComesLate => {
                let result = self.inner.commit(transaction.clone(), durability);
                if result.as_ref().is_err_and(|error| error.kind == ErrorKind::NoSpace) {
                    return self.commit_apart(transaction, durability);
                }
                result
            }
            Fault::RemoveKeepsAttributes => {
                let removed = transaction.mutations.iter().find(|it| removes(it)).map(Mutation::object);
                let kept =
                    removed.map(|object| (object, self.attributes(object, AttributeKey::new(AttributeKind(0), 0), 9)));
                self.inner.commit(transaction, durability)?;
                if let Some((object, Ok(kept))) = kept
                    && self.inner.stat(object).is_ok()
                {
                    let mut again = Transaction::new();
                    for (key, value) in kept {
                        again.set_attribute(object, key, value);
                    }
                    self.inner.commit(again, durability)?;
                }
                Ok(())
            }
            _ => self.inner.commit(transaction, durability),
        }
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        match (self.fault, scope) {
            (Fault::SyncDoesNothing, _) | (Fault::ObjectSyncDoesNothing, SyncScope::Object(_)) => Ok(()),
            _ => self.inner.sync(scope),
        }
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if self.is(Fault::ReadsDoNotZeroHoles) {
            let before = buffer.to_vec();
            let count = self.inner.read(object, offset, buffer)?;
            if buffer[..count].iter().all(|byte| *byte == 0) {
                buffer.copy_from_slice(&before);
            }
            return Ok(count);
        }
        let count = self.inner.read(object, offset, buffer)?;
        if self.is(Fault::ReadsPastTheEnd) && count < buffer.len() {
            buffer[count..].fill(0);
        }
        Ok(count)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        let value = self.inner.attribute(object, key)?;
        Ok(value.filter(|value| !self.is(Fault::EmptyAttributesAreMissing) || !value.is_empty()))
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let mut some = self.inner.attributes(object, from, limit)?;
        if self.is(Fault::AttributesUnordered) {
            some.sort_by_key(|(key, _)| (key.index, key.kind));
        }
        Ok(some)
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.inner.stat(object)
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let mut ids = self.inner.list(from, limit)?;
        if self.is(Fault::ListSkipsOne) && ids.len() > 64 {
            ids.remove(64);
        }
        Ok(ids)
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        match self.fault {
            Fault::ExtentsIgnoreTheOffset => self.inner.extents(object, offset - offset % 4096, limit),
            Fault::ExtentsHideTheLast => {
                let mut extents = self.inner.extents(object, offset, limit)?;
                if extents.len() > 1 {
                    extents.pop();
                }
                if extents.len() == 1 && offset > 0 {
                    extents.clear();
                }
                Ok(extents)
            }
            _ => self.inner.extents(object, offset, limit),
        }
    }

    fn space(&self) -> Space {
        let mut space = self.inner.space();
        match self.fault {
            Fault::PromisesTooMuchSpace => space.available += space.available / 20,
            Fault::CountsObjectsWrong => space.objects = space.objects.min(200),
            _ => {}
        }
        space
    }

    fn move_unit(&self) -> Option<u64> {
        self.inner.move_unit()
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        let maintenance = self.inner.maintain(budget)?;
        Ok(Maintenance { more: self.is(Fault::MaintenanceNeverEnds), ..maintenance })
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

struct Planted(Faulty);

impl Harness for Planted {
    fn device(&self) -> &dyn ObjectDevice {
        &self.0
    }

    fn reopen(&mut self) {
        self.0.close().unwrap();
    }

    fn can_crash(&self) -> bool {
        true
    }

    fn crash(&mut self) {
        self.0.inner.crash();
    }

    fn extent_bytes(&self) -> u64 {
        4096
    }
}

/// Each fault, and the group of cases that has to notice it.
const FAULTS: [(Fault, &str); 27] = [
    (Fault::AppliesPartOfRefused, "atomic::"),
    (Fault::CommitsMutationsApart, "atomic::"),
    (Fault::DurableIsBuffered, "durable::"),
    (Fault::SyncDoesNothing, "durable::"),
    (Fault::ObjectSyncDoesNothing, "durable::"),
    (Fault::ForgetsHints, "hints::"),
    (Fault::EmbeddedObjectsLoseBytes, "hints::"),
    (Fault::RemoveKeepsAttributes, "atomic::"),
    (Fault::PunchIsOneShort, "content::"),
    (Fault::WritesAreRounded, "content::"),
    (Fault::ReadsDoNotZeroHoles, "content::"),
    (Fault::ReadsPastTheEnd, "content::"),
    (Fault::ListSkipsOne, "listing::"),
    (Fault::AttributesUnordered, "attributes::"),
    (Fault::EmptyAttributesAreMissing, "attributes::"),
    (Fault::HandsOutIdsTwice, "objects::"),
    (Fault::ExtentsHideTheLast, "content::"),
    (Fault::ExtentsIgnoreTheOffset, "content::"),
    (Fault::NoSpaceForRemovals, "space::"),
    (Fault::NoSpaceComesLate, "space::"),
    (Fault::PromisesTooMuchSpace, "space::"),
    (Fault::MaintenanceNeverEnds, "sizes::maintain"),
    (Fault::AcceptsLargeAttributes, "attributes::"),
    (Fault::CountsObjectsWrong, "listing::"),
    (Fault::MovesAreOneShort, "moves::"),
    (Fault::MovesKeepHoles, "moves::"),
    (Fault::VersionsTakeIds, "versions::"),
];

#[test]
fn every_planted_fault_is_found() {
    let mut unnoticed = Vec::new();
    for (fault, group) in FAULTS {
        let report = run(group, &|bytes| {
            let inner = RamDevice::with_crash_model(bytes + bytes / 4 + 65_536);
            Box::new(Planted(Faulty { inner, fault }))
        });
        println!("{fault:?}: {} of {group}: {:?}", report.summary(), report.failed());
        if report.failed().is_empty() {
            unnoticed.push(fault);
        }
    }
    assert_eq!(unnoticed, []);
}
