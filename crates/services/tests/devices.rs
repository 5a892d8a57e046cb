//! The suite that every device runs, over each kind of device with content compressed,
//! encrypted, and both: on its simulated medium, across cuts of power.

use crate::common::pool::{Mounted as Member, Pooled, Ram};
use crate::common::vault::Vault;
use crate::{common, flash, scm, tier};
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

/// Wraps a device that may have been wrapped before.
type Wrap<H> = fn(&Arc<Mounted<H>>, &Vault) -> Box<dyn ObjectDevice>;

/// The wrapper over it.
struct Over<H> {
    mounted: Arc<Mounted<H>>,
    vault: Vault,
    wrap: Wrap<H>,
    device: Box<dyn ObjectDevice>,
}

impl<H: Harness + Send + 'static> Over<H> {
    fn new(harness: H, wrap: Wrap<H>) -> Self {
        let (mounted, vault) = (Arc::new(Mounted(Mutex::new(harness))), Vault::new());
        Self { device: wrap(&mounted, &vault), mounted, vault, wrap }
    }

    /// In units in which all kinds of objects are compressed.
    fn compressed(harness: H) -> Self {
        Self::new(harness, |mounted, _| Box::new(Compressed::new(Arc::clone(mounted), Compression::Fast).in_units(512)))
    }

    fn encrypted(harness: H) -> Self {
        Self::new(harness, |mounted, vault| Box::new(vault.open(mounted)))
    }

    fn authenticated(harness: H) -> Self {
        Self::new(harness, |mounted, vault| Box::new(vault.open_authenticated(mounted)))
    }

    fn both(harness: H) -> Self {
        Self::new(harness, |mounted, vault| {
            Box::new(Compressed::new(Arc::new(vault.open(mounted)), Compression::Fast).in_units(512))
        })
    }

    /// What the wrapper remembered is as if it had been opened again, too.
    fn again(&mut self, change: impl FnOnce(&mut H)) {
        change(&mut self.mounted.0.lock());
        self.device = (self.wrap)(&self.mounted, &self.vault);
    }
}

impl<H: Harness + Send + 'static> Harness for Over<H> {
    fn device(&self) -> &dyn ObjectDevice {
        self.device.as_ref()
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

onode_object::conformance!(over_flash, |bytes| Over::compressed(flash::Flash::holding(flash::SMALL, bytes)));
onode_object::conformance!(over_scm, |bytes| Over::compressed(scm::Scm::holding(4 << 10, bytes)));
onode_object::conformance!(over_scm_mode_meta, |bytes| {
    Over::compressed(scm::Scm::holding_in_mode(16 << 10, bytes, onode_scm::Mode::Meta))
});
onode_object::conformance!(over_tier, |bytes| {
    Over::compressed(tier::Pair::with(bytes, 12 << 20, onode_tier::MountOptions::default()))
});
onode_object::conformance!(over_one_disk, |bytes| Over::compressed(tier::Alone::holding(bytes, 1 << 20)));

onode_object::conformance!(encrypted_flash, |bytes| {
    Over::encrypted(flash::Flash::holding(flash::SMALL, bytes + bytes / 16))
});
onode_object::conformance!(encrypted_scm, |bytes| Over::encrypted(scm::Scm::holding(4 << 10, bytes + bytes / 16)));
onode_object::conformance!(encrypted_scm_mode_meta, |bytes| {
    Over::encrypted(scm::Scm::holding_in_mode(16 << 10, bytes + bytes / 16, onode_scm::Mode::Meta))
});
onode_object::conformance!(encrypted_tier, |bytes| {
    Over::encrypted(tier::Pair::with(bytes + bytes / 16, 12 << 20, onode_tier::MountOptions::default()))
});
onode_object::conformance!(encrypted_and_compressed_flash, |bytes| {
    Over::both(flash::Flash::holding(flash::SMALL, bytes + bytes / 16))
});

onode_object::conformance!(authenticated_flash, |bytes| {
    Over::authenticated(flash::Flash::holding(flash::SMALL, bytes + bytes / 8))
});
onode_object::conformance!(authenticated_scm, |bytes| {
    Over::authenticated(scm::Scm::holding(4 << 10, bytes + bytes / 8))
});
onode_object::conformance!(authenticated_tier, |bytes| {
    Over::authenticated(tier::Pair::with(bytes + bytes / 8, 12 << 20, onode_tier::MountOptions::default()))
});

/// A pool of two kinds, with room for what tells how to open blocks and which changes there were.
fn pool(bytes: u64) -> Pooled {
    let bytes = bytes + bytes / 16 + (64 << 10);
    Pooled::new(vec![Member::new(flash::Flash::holding(flash::SMALL, bytes)), Member::new(Ram::holding(bytes))])
}

onode_object::conformance!(compressed_pool, |bytes| Over::compressed(pool(bytes)));
onode_object::conformance!(encrypted_pool, |bytes| Over::encrypted(pool(bytes)));
onode_object::conformance!(authenticated_pool, |bytes| Over::authenticated(pool(bytes + bytes / 16)));
onode_object::conformance!(encrypted_and_compressed_pool, |bytes| Over::both(pool(bytes)));

/// As small as a volume for this is.
const FULL_BYTES: u64 = 3 << 20;
/// How many tenths of what is available content takes that compresses, and that is encrypted.
const COMPRESSED: u64 = 15;
const ENCRYPTED: u64 = 8;

#[test]
fn flash_is_filled_overwritten_and_cut() {
    common::full::run(&mut Over::compressed(flash::Flash::holding(flash::SMALL, FULL_BYTES)), COMPRESSED);
}

#[test]
fn scm_is_filled_overwritten_and_cut() {
    common::full::run(&mut Over::compressed(scm::Scm::holding(4 << 10, FULL_BYTES)), COMPRESSED);
}

#[test]
fn tier_is_filled_overwritten_and_cut() {
    let pair = tier::Pair::with(FULL_BYTES, 6 << 20, onode_tier::MountOptions::default());
    common::full::run(&mut Over::compressed(pair), COMPRESSED);
}

#[test]
fn encrypted_flash_is_filled_overwritten_and_cut() {
    common::full::run(&mut Over::encrypted(flash::Flash::holding(flash::SMALL, FULL_BYTES)), ENCRYPTED);
}

#[test]
fn encrypted_scm_is_filled_overwritten_and_cut() {
    common::full::run(&mut Over::encrypted(scm::Scm::holding(4 << 10, FULL_BYTES)), ENCRYPTED);
}

#[test]
fn encrypted_tier_is_filled_overwritten_and_cut() {
    let pair = tier::Pair::with(FULL_BYTES, 6 << 20, onode_tier::MountOptions::default());
    common::full::run(&mut Over::encrypted(pair), ENCRYPTED);
}

#[test]
fn compressed_and_encrypted_flash_is_filled_overwritten_and_cut() {
    common::full::run(&mut Over::both(flash::Flash::holding(flash::SMALL, FULL_BYTES)), 12);
}
