//! Transactions of users when something goes wrong: a device that stops at any call, is full or
//! damaged, and one that may only be read after a cut.

use crate::common::faulty::{Fault, Faulty};
use onode_base::Prng;
use onode_object::conformance::{Tree, dump};
use onode_object::{
    AttributeKey, AttributeKind, DeviceInfo, Durability, Error, ErrorKind, Hints, Maintenance, ObjectDevice, ObjectId,
    ObjectStat, RamDevice, Result, SyncScope, Transaction, forward_device,
};
use onode_services::{Staged, View};
use std::sync::Arc;

/// What transactions of the device carry at most.
const MOST_BYTES: usize = 4 << 10;

const fn key(index: u64) -> AttributeKey {
    AttributeKey::new(AttributeKind::FIRST_FREE, index)
}

fn open<D: ObjectDevice + ?Sized>(device: &Arc<D>) -> Result<Arc<Staged<D>>> {
    Staged::open_limited(Arc::clone(device), Arc::new(()), MOST_BYTES).map(|(staged, _)| staged)
}

/// A device with some objects on it.
fn filled() -> Arc<RamDevice> {
    let ram = Arc::new(RamDevice::with_crash_model(1 << 20));
    let mut transaction = Transaction::new();
    for object in (1..=4).map(ObjectId) {
        transaction.create(object, Hints::default()).write(object, 0, vec![object.0 as u8; 20_000]);
        transaction.set_attribute(object, key(1), vec![object.0 as u8; 50]);
    }
    ram.commit(transaction, Durability::Durable).unwrap();
    ram
}

/// Changes of every sort, more than one transaction of the device carries.
fn change(view: &View<impl ObjectDevice + ?Sized>) -> Result<()> {
    let (new, small) = (view.reserve_ids(1)?, view.reserve_ids(1)?);
    let [one, two, three, four] = [1, 2, 3, 4].map(ObjectId);
    let commit = |build: &dyn Fn(&mut Transaction)| {
        let mut transaction = Transaction::new();
        build(&mut transaction);
        view.commit(transaction, Durability::Buffered)
    };
    commit(&|t| {
        _ = t.create(new, Hints::default()).write(new, 0, vec![9; 30_000]).set_attribute(new, key(1), vec![9])
    })?;
    commit(&|t| _ = t.write(one, 5000, vec![8; 9000]).punch(one, 0, 3000).set_attribute(one, key(2), vec![8; 300]))?;
    commit(&|t| _ = t.truncate(two, 100).write(two, 200, vec![7; 15_000]).remove_attribute(two, key(1)))?;
    commit(&|t| _ = t.remove(three).create(small, Hints::default()).write(small, 3, vec![6; 10]))?;
    commit(&|t| _ = t.truncate(four, 0).truncate(four, 50_000).set_access_time(four, 77))
}

fn states() -> (Tree, Tree) {
    let (before, after) = (filled(), filled());
    let staged = open(&after).unwrap();
    let view = staged.begin().unwrap();
    change(&view).unwrap();
    view.make_true(Durability::Durable).unwrap();
    (dump(&*before).unwrap(), dump(&*after).unwrap())
}

/// A device that stopped while a transaction was committed on it.
struct Stopped {
    ram: Arc<RamDevice>,
    done: Result<()>,
    /// It did not come to that.
    is_over: bool,
}

impl Stopped {
    /// From its `from`th call on.
    fn at(from: u64) -> Self {
        let ram = filled();
        let faulty = Faulty::new(&ram, Fault::Dead, from);
        let done = open(&faulty).and_then(|staged| {
            let view = staged.begin()?;
            change(&view)?;
            view.make_true(Durability::Durable).map(drop)
        });
        Self { ram, done, is_over: !faulty.has_begun() }
    }

    /// Bytes of the record, if a committed transaction is not in place.
    fn record(&self) -> Option<u64> {
        let size = self.ram.stat(ObjectId::STAGED).map_or(0, |stat| stat.size);
        let is_half = || Staged::open(Arc::new(Fixed(Arc::clone(&self.ram))), Arc::new(())).unwrap().1.is_some();
        (size > 0 && is_half()).then_some(size)
    }
}

#[test]
fn a_device_that_stops_at_any_call_has_all_or_nothing() {
    let (before, after) = states();
    let (mut committed, mut not) = (0, 0);
    for from in 0.. {
        let Stopped { ram, done, is_over } = Stopped::at(from);
        // What was only buffered is lost, or is there: both may be.
        if from % 2 == 0 {
            ram.crash();
        }
        let staged = open(&ram).unwrap();
        let found = dump(&*staged).unwrap();
        let is_committed = found.difference(&after).is_none();
        assert!(is_committed || found.difference(&before).is_none(), "call {from}: {:?}", found.difference(&before));
        assert!(is_committed || done.is_err(), "call {from}: a commit that returned is gone");
        assert_eq!(dump(&*ram).unwrap().difference(&found), None, "call {from}: something hidden is left");
        assert!(ram.stat(ObjectId::STAGED).is_err(), "call {from}");
        if is_committed {
            committed += 1
        } else {
            not += 1
        }
        if is_over {
            break;
        }
    }
    assert!(committed > 5 && not > 10, "{committed} {not}");
}

#[test]
fn a_full_device_refuses_before_anything_happened() {
    let (before, after) = states();
    let (mut refused, mut done) = (0, 0);
    for from in 0.. {
        let ram = filled();
        let faulty = Faulty::new(&ram, Fault::Full, from);
        let staged = open(&faulty).unwrap();
        let view = staged.begin().unwrap();
        let made = change(&view).and_then(|()| view.make_true(Durability::Durable).map(drop));
        // One that says it has room and has none breaks its word after the commit point.
        let is_half = staged.info().read_only.is_some();
        match made {
            Ok(()) => done += 1,
            Err(error) if is_half => assert_eq!(error.kind, ErrorKind::Media, "call {from}"),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::NoSpace, "call {from}: {error}");
                refused += 1;
            }
        }
        let is_over = !faulty.has_begun();
        drop(view);
        drop(staged);
        let found = dump(&*open(&ram).unwrap()).unwrap();
        let what = found.difference(&after).zip(found.difference(&before));
        assert!(what.is_none(), "call {from}: {what:?}");
        if is_over {
            break;
        }
    }
    assert!(refused > 5 && done > 0, "{refused} {done}");
}

#[test]
fn one_that_needs_more_than_there_is_changes_nothing() {
    let ram = Arc::new(RamDevice::new(300_000));
    let staged = open(&ram).unwrap();
    let object = ObjectId(1);
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, vec![1; 150_000]);
    staged.commit(transaction, Durability::Durable).unwrap();
    let before = dump(&*staged).unwrap();
    let view = staged.begin().unwrap();
    let mut transaction = Transaction::new();
    transaction.write(object, 0, vec![2; 120_000]);
    view.commit(transaction, Durability::Buffered).unwrap();
    // It waits in a hidden object, and there is no room for it twice.
    assert_eq!(view.make_true(Durability::Durable).unwrap_err().kind, ErrorKind::NoSpace);
    assert_eq!(dump(&*staged).unwrap().difference(&before), None);
    let mut more = Transaction::new();
    more.write(object, 200_000, vec![2; 100_000]);
    assert_eq!(view.commit(more, Durability::Buffered).unwrap_err().kind, ErrorKind::NoSpace);
    drop(view);
    assert_eq!(dump(&*ram).unwrap().difference(&before), None);
}

/// A device of which nothing changes.
struct Fixed(Arc<RamDevice>);

impl ObjectDevice for Fixed {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { read_only: Some("for reading".to_owned()), ..self.0.info() }
    }

    fn reserve_ids(&self, _: u64) -> Result<ObjectId> {
        Err(Error::new(ErrorKind::ReadOnly, "for reading"))
    }

    fn commit(&self, _: Transaction, _: Durability) -> Result<()> {
        panic!("it is changed");
    }

    fn sync(&self, _: SyncScope) -> Result<()> {
        Ok(())
    }

    fn maintain(&self, _: u32) -> Result<Maintenance> {
        Ok(Maintenance::default())
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }

    forward_device!(self => self.0; read, attribute, attributes, stat, list, extents, space);
}

#[test]
fn for_reading_a_half_done_transaction_is_shown_as_if_it_were_in_place() {
    let (before, after) = states();
    let (mut half, mut leftovers) = (0, 0);
    for from in 0.. {
        let Stopped { ram, done, .. } = Stopped::at(from);
        let (staged, shown) =
            Staged::open_limited(Arc::new(Fixed(Arc::clone(&ram))), Arc::new(()), MOST_BYTES).unwrap();
        let device: &dyn ObjectDevice = shown.as_ref().map_or(staged.as_ref(), |shown| shown);
        let found = dump(device).unwrap();
        let is_whole = [&before, &after].into_iter().any(|state| found.difference(state).is_none());
        assert!(is_whole, "call {from}: {:?}", found.difference(&after));
        half += u32::from(shown.is_some());
        leftovers += u32::from(shown.is_none() && ram.stat(ObjectId::STAGED).is_ok());
        // The next one that may write shows the same.
        assert_eq!(dump(&*open(&ram).unwrap()).unwrap().difference(&found), None, "call {from}");
        if done.is_ok() {
            break;
        }
    }
    assert!(half > 5 && leftovers > 5, "{half} {leftovers}");
}

/// A device whose damage took all that it knew of the object with the list, and nothing else.
struct Holed<D>(Arc<D>);

impl<D> Holed<D> {
    fn unless_holed<T>(&self, object: ObjectId, read: impl FnOnce(&D) -> Result<T>) -> Result<T> {
        if object == ObjectId::STAGED { Err(Error::new(ErrorKind::Corrupt, "a damaged page")) } else { read(&self.0) }
    }
}

impl<D: ObjectDevice> ObjectDevice for Holed<D> {
    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        let is_holed = transaction.mutations.iter().any(|mutation| mutation.object() == ObjectId::STAGED);
        let object = if is_holed { ObjectId::STAGED } else { ObjectId(0) };
        self.unless_holed(object, |device| device.commit(transaction, durability))
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.unless_holed(object, |device| device.attribute(object, key))
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.unless_holed(object, |device| device.attributes(object, from, limit))
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.unless_holed(object, |device| device.stat(object))
    }

    forward_device!(self => self.0; info, read, list, extents, space, reserve_ids, sync, maintain, close);
}

/// Found by the explorer of damage: one damaged page of an index and no consent opened the volume.
#[test]
fn damage_that_hides_what_transactions_left_leaves_everything_else_to_be_read() {
    let ram = filled();
    let before = dump(&*ram).unwrap();
    let is_same = |staged: &Staged<_>| dump(staged).unwrap().difference(&before).is_none();
    let holed = Arc::new(Holed(Arc::clone(&ram)));
    let error = open(&holed).map(drop).unwrap_err();
    assert_eq!((error.kind, error.object), (ErrorKind::Corrupt, Some(ObjectId::STAGED)));
    // Who may not change anything reads it, and who consents to loss changes it, too.
    let fixed = open(&Arc::new(Holed(Arc::new(Fixed(Arc::clone(&ram)))))).unwrap();
    assert!(fixed.is_unreadable() && dump(&*fixed).unwrap().difference(&before).is_none());
    let staged = Staged::open_giving_up(Arc::clone(&holed), Arc::new(())).unwrap();
    assert!(staged.is_unreadable() && is_same(&staged));
    assert_eq!(staged.begin().map(drop).unwrap_err().kind, ErrorKind::Corrupt);
    let mut transaction = Transaction::new();
    transaction.write(ObjectId(1), 0, b"afterwards".to_vec());
    staged.commit(transaction, Durability::Durable).unwrap();
    assert!(!is_same(&staged));
    // After a repair all is well.
    let repaired = open(&ram).unwrap();
    assert!(!repaired.is_unreadable() && repaired.begin().is_ok());
}

#[test]
fn a_damaged_record_is_given_up_with_consent() {
    let (before, after) = states();
    let mut given_up = 0;
    for from in 0.. {
        let stopped = Stopped::at(from);
        if let Some(size) = stopped.record() {
            let ram = &stopped.ram;
            let mut transaction = Transaction::new();
            transaction.write(ObjectId::STAGED, size / 2, vec![0xa5; 3]);
            ram.commit(transaction, Durability::Durable).unwrap();
            assert_eq!(open(ram).map(drop).unwrap_err().kind, ErrorKind::Corrupt, "call {from}");
            // Who may not write sees what is in place, and changes nothing.
            let found = dump(&**ram).unwrap();
            let fixed = Staged::open_giving_up(Arc::new(Fixed(Arc::clone(ram))), Arc::new(())).unwrap();
            assert!(fixed.stat(ObjectId::STAGED).is_err());
            assert_eq!(dump(&**ram).unwrap().difference(&found), None, "call {from}");
            drop(Staged::open_giving_up(Arc::clone(ram), Arc::new(())).unwrap());
            assert!(ram.stat(ObjectId::STAGED).is_err(), "call {from}: nothing of it is left");
            // The volume is used as any other.
            let again = open(ram).unwrap();
            let view = again.begin().unwrap();
            let object = view.reserve_ids(1).unwrap();
            let mut transaction = Transaction::new();
            transaction.create(object, Hints::default());
            transaction.write(object, 0, b"afterwards".to_vec());
            view.commit(transaction, Durability::Buffered).unwrap();
            view.make_true(Durability::Durable).unwrap();
            given_up += u32::from(dump(&*again).unwrap().difference(&before).is_some());
            assert!(dump(&*again).unwrap().difference(&after).is_some(), "call {from}");
        }
        if stopped.done.is_ok() {
            break;
        }
    }
    assert!(given_up > 5, "{given_up}");
}

#[test]
fn a_damaged_record_is_told_and_nothing_is_lost() {
    let (_, after) = states();
    let mut prng = Prng::new(5);
    let mut told = 0;
    for from in 0.. {
        let stopped = Stopped::at(from);
        if let Some(size) = stopped.record() {
            let ram = &stopped.ram;
            let at = prng.below(size);
            let mut byte = [0];
            ram.read(ObjectId::STAGED, at, &mut byte).unwrap();
            let flip = |value: u8| {
                let mut transaction = Transaction::new();
                transaction.write(ObjectId::STAGED, at, vec![value]);
                ram.commit(transaction, Durability::Durable).unwrap();
            };
            flip(byte[0] ^ 1 << prng.below(8));
            let before = dump(&**ram).unwrap();
            let error = open(ram).map(drop).unwrap_err();
            assert_eq!((error.kind, error.object), (ErrorKind::Corrupt, Some(ObjectId::STAGED)), "call {from}");
            assert_eq!(dump(&**ram).unwrap().difference(&before), None, "call {from}: something was changed");
            // From a copy of the record everything comes back.
            flip(byte[0]);
            assert_eq!(dump(&*open(ram).unwrap()).unwrap().difference(&after), None, "call {from}");
            told += 1;
        }
        if stopped.done.is_ok() {
            break;
        }
    }
    assert!(told > 5, "{told}");
}
