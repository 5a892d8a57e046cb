//! Two processes use one device: each sees at once what the other did, and when one dies, at
//! whatever store, the other goes on and nothing is lost.

use crate::common;
use crate::common::Scm;
use crate::mortal::{Died, Mortal};
use onode_media::Pmem;
use onode_media::sim::SimPmem;
use onode_object::conformance::{Harness, Tree, dump};
use onode_object::powers::{Content, MapObjects};
use onode_object::{
    AttributeKey, AttributeKind, DeviceInfo, Durability, Hints, Maintenance, ObjectDevice, ObjectId, ObjectStat,
    Result, Space, SyncScope, Transaction,
};
use onode_scm::allocator::Process;
use onode_scm::{FormatOptions, MountOptions, ScmDevice};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const ONE: Process = Process { id: 1, started: 10 };
const OTHER: Process = Process { id: 2, started: 20 };

/// Two devices on one memory; every call goes to the other one than the call before.
struct Both {
    memory: Arc<SimPmem>,
    devices: [ScmDevice<Arc<SimPmem>>; 2],
    calls: AtomicU64,
    cuts: u64,
}

impl Both {
    fn of(memory: Arc<SimPmem>, mut one: ScmDevice<Arc<SimPmem>>) -> Self {
        one.join(ONE, |_| false).unwrap();
        let other = ScmDevice::attach(Arc::clone(&memory), &MountOptions::default(), OTHER, |_| false).unwrap();
        Self { memory, devices: [one, other], calls: AtomicU64::new(0), cuts: 0 }
    }

    fn new(chunk_bytes: u32, bytes: u64) -> Self {
        let Scm { memory, device, .. } = Scm::holding(chunk_bytes, bytes);
        Self::of(memory, device)
    }

    fn next(&self) -> &ScmDevice<Arc<SimPmem>> {
        &self.devices[self.calls.fetch_add(1, Ordering::Relaxed) as usize % 2]
    }

    fn mount(&mut self, image: Vec<u8>) {
        let memory = Arc::new(SimPmem::from_image(image, Default::default()));
        let device = ScmDevice::mount(Arc::clone(&memory), &MountOptions::default()).unwrap();
        *self = Self { cuts: self.cuts, ..Self::of(memory, device) };
        self.verify();
    }

    fn verify(&self) {
        self.devices.iter().for_each(|device| device.verify().unwrap_or_else(|what| panic!("{what}")));
    }
}

impl ObjectDevice for Both {
    fn info(&self) -> DeviceInfo {
        self.next().info()
    }
    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        self.next().reserve_ids(count)
    }
    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.next().commit(transaction, durability)
    }
    fn sync(&self, scope: SyncScope) -> Result<()> {
        self.next().sync(scope)
    }
    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.next().read(object, offset, buffer)
    }
    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.next().attribute(object, key)
    }
    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.next().attributes(object, from, limit)
    }
    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.next().stat(object)
    }
    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        self.next().list(from, limit)
    }
    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.next().extents(object, offset, limit)
    }
    fn space(&self) -> Space {
        self.next().space()
    }
    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        self.next().maintain(budget)
    }
    fn close(&self) -> Result<()> {
        self.devices.iter().try_for_each(ScmDevice::close)
    }
}

impl Harness for Both {
    fn device(&self) -> &dyn ObjectDevice {
        self
    }

    fn reopen(&mut self) {
        self.verify();
        self.close().expect("both can be closed");
        self.mount(self.memory.durable_image());
    }

    fn can_crash(&self) -> bool {
        true
    }

    fn crash(&mut self) {
        self.cuts += 1;
        let survival = onode_media::sim::Survival::Words(self.cuts);
        self.mount(self.memory.crash_image(survival));
    }
}

onode_object::conformance!(two_handles_of_one_device, |bytes| Both::new(4 << 10, bytes));

const CHUNK: u64 = 4 << 10;

/// What the one that dies does, step by step; `done` hears of each.
fn life(device: &ScmDevice<Mortal>, done: &mut dyn FnMut()) -> Result<()> {
    let blocks = device.blocks()?;
    let first = device.reserve_ids(8)?.0;
    let object = |number: u64| ObjectId(first + number);
    let key = AttributeKey::new(AttributeKind::ENTRY, 7);
    let commit = |fill: &dyn Fn(&mut Transaction), durability| {
        let mut transaction = Transaction::new();
        fill(&mut transaction);
        device.commit(transaction, durability)
    };
    use Durability::{Buffered, Durable};
    let step = |result: Result<()>, done: &mut dyn FnMut()| result.map(|()| done());
    step(commit(&|tx| _ = tx.create(object(0), Hints::default()).write(object(0), 0, vec![1; 300]), Durable), done)?;
    let larger = vec![2; 3 * CHUNK as usize + 100];
    step(commit(&|tx| _ = tx.create(object(1), Hints::default()).write(object(1), 0, larger.clone()), Buffered), done)?;
    step(commit(&|tx| _ = tx.write(object(1), 50, vec![3; 5000]), Durable), done)?;
    step(
        commit(&|tx| _ = tx.write(object(0), 100, vec![4; 700]).set_attribute(object(0), key, vec![5; 40]), Buffered),
        done,
    )?;
    step(commit(&|tx| _ = tx.punch(object(1), CHUNK, CHUNK), Buffered), done)?;
    let block = blocks.allocate(2 * CHUNK).expect("there is room");
    let small = blocks.allocate(200).expect("there is room");
    for (number, address) in [(2, block), (3, small)] {
        let mut transaction = Transaction::new();
        transaction.create(object(number), Hints::default());
        blocks.pmem().write(address, &[6; 150]);
        let content = Content { object: object(number), address, bytes: 150, is_durable: false };
        step(device.publish(transaction, &[content], Durable), done)?;
    }
    step(commit(&|tx| _ = tx.remove(object(1)), Durable), done)?;
    for number in [2, 3] {
        let mut transaction = Transaction::new();
        transaction.remove(object(number));
        let content = device.withdraw(transaction, object(number))?;
        done();
        blocks.try_release(content.address).expect("it is memory again");
    }
    step(commit(&|tx| _ = tx.truncate(object(0), 10), Durable), done)?;
    step(commit(&|tx| _ = tx.create(object(4), Hints::default()).write(object(4), 9000, vec![7; 10]), Durable), done)?;
    device.close()
}

/// A device that two processes use: the one that is to die, and the other.
fn two() -> (Arc<SimPmem>, Mortal, ScmDevice<Mortal>, ScmDevice<Mortal>) {
    let memory = Arc::new(common::sim(512 << 10));
    let options =
        FormatOptions { uuid: *b"a device in test", chunk_bytes: Some(CHUNK as u32), ..FormatOptions::default() };
    let view = Mortal::new(&memory);
    let mut one = ScmDevice::format(view.clone(), &options).unwrap();
    one.join(ONE, |_| false).unwrap();
    let judged = view.clone();
    let other = ScmDevice::attach(Mortal::new(&memory), &MountOptions::default(), OTHER, move |process| {
        process == ONE && judged.is_dead()
    })
    .unwrap();
    (memory, view, one, other)
}

fn put(device: &ScmDevice<Mortal>, byte: u8) -> ObjectId {
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, vec![byte; 6000]);
    device.commit(transaction, Durability::Buffered).unwrap();
    object
}

/// What there is but for some objects.
fn without(device: &dyn ObjectDevice, others: &[ObjectId]) -> Tree {
    let mut tree = dump(device).unwrap();
    tree.objects.retain(|object, _| !others.contains(object));
    tree
}

#[test]
fn whatever_store_a_process_dies_at_the_other_goes_on() {
    let mut states = Vec::new();
    {
        let (_, _, one, other) = two();
        let mine = put(&other, 1);
        states.push(without(&other, &[mine]));
        life(&one, &mut || states.push(without(&other, &[mine]))).unwrap();
    }
    let every: u64 = std::env::var("ONODE_DEATHS_EVERY").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut deaths = 0;
    for stores in (0..).step_by(every as usize) {
        let (memory, view, one, other) = two();
        let mut mine = vec![put(&other, 1)];
        view.die_after(stores);
        let mut done = 0;
        let end = catch_unwind(AssertUnwindSafe(|| life(&one, &mut || done += 1)));
        // A process that died does nothing in the end.
        std::mem::forget(one);
        match end {
            Ok(Ok(())) => break,
            Ok(Err(error)) => panic!("after {stores} stores: {error}"),
            Err(payload) if payload.is::<Died>() => deaths += 1,
            Err(payload) => std::panic::resume_unwind(payload),
        }
        // The other one works on, whatever state the lock is in.
        mine.push(put(&other, 2));
        let found = without(&other, &mine);
        let next = (done + 1).min(states.len() - 1);
        assert!(states[done..=next].contains(&found), "after {stores} stores, {done} steps: {found:?}");
        other.maintain(0).unwrap();
        other.verify().unwrap_or_else(|what| panic!("after {stores} stores: {what}"));
        mine.push(put(&other, 3));
        let all = dump(&other).unwrap();
        other.close().unwrap();
        drop(other);
        let again = ScmDevice::mount(memory, &MountOptions::default()).unwrap();
        again.verify().unwrap_or_else(|what| panic!("after {stores} stores and a mount: {what}"));
        assert_eq!(dump(&again).unwrap(), all, "after {stores} stores and a mount");
    }
    assert!(deaths * every > 300, "only {deaths} deaths");
}
