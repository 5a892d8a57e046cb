//! The suite that every device runs, over each kind of device with content compressed: on its
//! simulated medium, across cuts of power.

mod common;
#[path = "../../devices/flash/tests/common/mod.rs"]
mod flash;
#[path = "../../devices/scm/tests/common/mod.rs"]
mod scm;
#[path = "../../devices/tier/tests/common/mod.rs"]
mod tier;

use onode_base::sync::{Mutex, rank};
use onode_object::conformance::Harness;
use onode_object::{
    AttributeKey, Compression, Demand, DeviceInfo, Durability, Maintenance, ObjectDevice, ObjectId, ObjectStat, Result,
    Space, SyncScope, Transaction,
};
use onode_services::Compressed;
use std::sync::Arc;

/// A device that is opened again behind the back of the wrapper.
struct Mounted<H>(Mutex<H, rank::Free>);

impl<H: Harness + Send> ObjectDevice for Mounted<H> {
    fn info(&self) -> DeviceInfo {
        self.0.lock().device().info()
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        self.0.lock().device().reserve_ids(count)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.0.lock().device().commit(transaction, durability)
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        self.0.lock().device().sync(scope)
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.0.lock().device().read(object, offset, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.0.lock().device().attribute(object, key)
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.0.lock().device().attributes(object, from, limit)
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.0.lock().device().stat(object)
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        self.0.lock().device().list(from, limit)
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.0.lock().device().extents(object, offset, limit)
    }

    fn space(&self) -> Space {
        self.0.lock().device().space()
    }

    fn space_for(&self, demand: &Demand) -> u64 {
        self.0.lock().device().space_for(demand)
    }

    fn promisable(&self) -> u64 {
        self.0.lock().device().promisable()
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        self.0.lock().device().maintain(budget)
    }

    fn close(&self) -> Result<()> {
        self.0.lock().device().close()
    }
}

/// The wrapper over it.
struct Over<H> {
    mounted: Arc<Mounted<H>>,
    device: Compressed<Mounted<H>>,
}

impl<H: Harness + Send> Over<H> {
    fn new(harness: H) -> Self {
        let mounted = Arc::new(Mounted(Mutex::new(harness)));
        Self { device: Self::wrapped(&mounted), mounted }
    }

    /// In units in which all kinds of objects are compressed.
    fn wrapped(mounted: &Arc<Mounted<H>>) -> Compressed<Mounted<H>> {
        Compressed::new(Arc::clone(mounted), Compression::Fast).in_units(512)
    }

    /// What the wrapper remembered is as if it had been opened again, too.
    fn again(&mut self, change: impl FnOnce(&mut H)) {
        change(&mut self.mounted.0.lock());
        self.device = Self::wrapped(&self.mounted);
    }
}

impl<H: Harness + Send> Harness for Over<H> {
    fn device(&self) -> &dyn ObjectDevice {
        &self.device
    }

    fn reopen(&mut self) {
        self.again(Harness::reopen);
    }

    fn can_crash(&self) -> bool {
        self.mounted.0.lock().can_crash()
    }

    fn crash(&mut self) {
        self.again(Harness::crash);
    }
}

onode_object::conformance!(over_flash, |bytes| Over::new(flash::Flash::holding(flash::SMALL, bytes)));
onode_object::conformance!(over_scm, |bytes| Over::new(scm::Scm::holding(4 << 10, bytes)));
onode_object::conformance!(over_scm_mode_meta, |bytes| {
    Over::new(scm::Scm::holding_in_mode(16 << 10, bytes, onode_scm::Mode::Meta))
});
onode_object::conformance!(over_tier, |bytes| {
    Over::new(tier::Pair::with(bytes, 12 << 20, onode_tier::MountOptions::default()))
});
onode_object::conformance!(over_one_disk, |bytes| Over::new(tier::Alone::holding(bytes, 1 << 20)));

/// As small as a volume for this is.
const FULL_BYTES: u64 = 3 << 20;

#[test]
fn flash_is_filled_overwritten_and_cut() {
    common::full::run(&mut Over::new(flash::Flash::holding(flash::SMALL, FULL_BYTES)));
}

#[test]
fn scm_is_filled_overwritten_and_cut() {
    common::full::run(&mut Over::new(scm::Scm::holding(4 << 10, FULL_BYTES)));
}

#[test]
fn tier_is_filled_overwritten_and_cut() {
    common::full::run(&mut Over::new(tier::Pair::with(FULL_BYTES, 6 << 20, onode_tier::MountOptions::default())));
}
