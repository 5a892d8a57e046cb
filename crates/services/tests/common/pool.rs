//! A pool over members that can be closed, cut and opened again.

use onode_base::sync::{Mutex, rank};
use onode_object::conformance::Harness;
use onode_object::powers::Scrub;
use onode_object::{
    AttributeKey, Demand, DeviceInfo, Durability, Maintenance, ObjectDevice, ObjectId, ObjectStat, Result, Space,
    SyncScope, Transaction,
};
use onode_services::{Pool, PoolMember};
use std::sync::Arc;

/// A harness that is a device, which is opened again behind the back of who uses it.
pub struct Mounted(Mutex<Box<dyn Harness + Send>, rank::Free>);

impl Mounted {
    pub fn new(harness: impl Harness + Send + 'static) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Box::new(harness))))
    }

    /// Does something to what is behind it.
    pub fn with<T>(&self, act: impl FnOnce(&mut (dyn Harness + Send)) -> T) -> T {
        act(&mut **self.0.lock())
    }
}

impl ObjectDevice for Mounted {
    fn info(&self) -> DeviceInfo {
        self.with(|it| it.device().info())
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        self.with(|it| it.device().reserve_ids(count))
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.with(|it| it.device().commit(transaction, durability))
    }

    fn check_commit(&self, transaction: &Transaction) -> Result<()> {
        self.with(|it| it.device().check_commit(transaction))
    }

    fn extents_are_exact(&self) -> bool {
        self.with(|it| it.device().extents_are_exact())
    }

    fn move_unit(&self) -> Option<u64> {
        self.with(|it| it.device().move_unit())
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        self.with(|it| it.device().sync(scope))
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.with(|it| it.device().read(object, offset, buffer))
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.with(|it| it.device().attribute(object, key))
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.with(|it| it.device().attributes(object, from, limit))
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.with(|it| it.device().stat(object))
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        self.with(|it| it.device().list(from, limit))
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.with(|it| it.device().extents(object, offset, limit))
    }

    fn space(&self) -> Space {
        self.with(|it| it.device().space())
    }

    fn space_for(&self, demand: &Demand) -> u64 {
        self.with(|it| it.device().space_for(demand))
    }

    fn promisable(&self) -> u64 {
        self.with(|it| it.device().promisable())
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        self.with(|it| it.device().maintain(budget))
    }

    fn close(&self) -> Result<()> {
        self.with(|it| it.device().close())
    }
}

/// What pools in tests are made of.
pub type Device = Arc<dyn ObjectDevice>;

/// Members by these devices, each by its place.
pub fn members(devices: &[Device]) -> Vec<PoolMember<Device>> {
    let member =
        |(index, device): (usize, &Device)| PoolMember { name: format!("device {index}"), device: device.clone() };
    devices.iter().enumerate().map(member).collect()
}

/// Both or all at once, under test.
pub struct Pooled {
    pub members: Vec<Arc<Mounted>>,
    pub pool: Option<Pool<Device>>,
}

impl Pooled {
    pub fn new(members: Vec<Arc<Mounted>>) -> Self {
        let mut it = Self { members, pool: None };
        it.pool = Some(Pool::create([9; 16], super::pool::members(&it.devices())).expect("a pool can be made"));
        it
    }

    pub fn devices(&self) -> Vec<Device> {
        self.members.iter().map(|member| Arc::clone(member) as Device).collect()
    }

    fn again(&mut self, change: impl Fn(&mut (dyn Harness + Send))) {
        self.pool = None;
        self.members.iter().for_each(|member| member.with(&change));
        let pool = Pool::open(members(&self.devices()), false).expect("a pool can be opened");
        // Whatever the members were short of, they are equal now.
        assert_eq!(pool.health().conditions.iter().filter(|one| one.code != "pool-rebuilt").count(), 0);
        let scrubbed = Scrub::scrub(&pool, ObjectId(0), usize::MAX >> 1).expect("a scrub");
        assert_eq!((scrubbed.damaged, scrubbed.next), (vec![], None));
        self.pool = Some(pool);
    }
}

impl Harness for Pooled {
    fn device(&self) -> &dyn ObjectDevice {
        self.pool.as_ref().expect("it is open")
    }

    fn reopen(&mut self) {
        self.device().close().expect("it can be closed");
        self.again(|member| member.reopen());
    }

    fn can_crash(&self) -> bool {
        self.members.iter().all(|member| member.with(|it| it.can_crash()))
    }

    fn crash(&mut self) {
        self.again(|member| member.crash());
    }
}

/// Memory with a model of a crash.
pub struct Ram(pub Arc<onode_object::RamDevice>);

impl Ram {
    pub fn holding(bytes: u64) -> Self {
        Self(Arc::new(onode_object::RamDevice::with_crash_model(bytes)))
    }
}

impl Harness for Ram {
    fn device(&self) -> &dyn ObjectDevice {
        &*self.0
    }

    fn reopen(&mut self) {
        self.0.close().expect("memory can be closed");
    }

    fn can_crash(&self) -> bool {
        true
    }

    fn crash(&mut self) {
        self.0.crash();
    }
}
