//! The suite that every device runs, over memory with content compressed or encrypted.

use crate::common;
use crate::common::keyed::Keyed;
use crate::common::vault::Vault;
use onode_object::conformance::Harness;
use onode_object::{Compression, ObjectDevice, RamDevice};
use onode_services::Compressed;
use std::sync::Arc;

struct Ram {
    ram: Arc<RamDevice>,
    mode: Compression,
    device: Compressed<RamDevice>,
}

impl Ram {
    fn new(bytes: u64, mode: Compression) -> Self {
        let ram = Arc::new(RamDevice::with_crash_model(bytes));
        Self { device: Compressed::new(Arc::clone(&ram), mode), ram, mode }
    }
}

impl Harness for Ram {
    fn device(&self) -> &dyn ObjectDevice {
        &self.device
    }

    fn reopen(&mut self) {
        self.device.close().unwrap();
        self.device = Compressed::new(Arc::clone(&self.ram), self.mode);
    }

    fn can_crash(&self) -> bool {
        true
    }

    fn crash(&mut self) {
        self.ram.crash();
        self.device = Compressed::new(Arc::clone(&self.ram), self.mode);
    }
}

onode_object::conformance!(fast, |bytes| Ram::new(bytes, Compression::Fast));
onode_object::conformance!(small, |bytes| Ram::new(bytes, Compression::Small));
onode_object::conformance!(auto, |bytes| Ram::new(bytes, Compression::Auto));
onode_object::conformance!(never, |bytes| Ram::new(bytes, Compression::Never));

#[test]
fn memory_is_filled_overwritten_and_cut() {
    common::full::run(&mut Ram::new(3 << 20, Compression::Fast), 15);
}

/// Memory under services with keys.
struct Sealed {
    ram: Arc<RamDevice>,
    vault: Vault,
    open: fn(&Vault, &Arc<RamDevice>) -> Box<dyn ObjectDevice>,
    device: Box<dyn ObjectDevice>,
}

impl Sealed {
    /// What tells how to open blocks takes some, which the suite does not reckon with.
    fn encrypted(bytes: u64) -> Self {
        Self::new(bytes + bytes / 16, |vault, ram| Box::new(vault.open(ram)))
    }

    /// Sums take some as well.
    fn authenticated(bytes: u64) -> Self {
        Self::new(bytes + bytes / 8, |vault, ram| Box::new(vault.open_authenticated(ram)))
    }

    /// All objects are in a directory with a key: each has a head.
    fn keyed(bytes: u64) -> Self {
        Self::new(bytes + bytes / 8 + (64 << 10), |vault, ram| Box::new(Keyed::open(vault, ram)))
    }

    fn new(bytes: u64, open: fn(&Vault, &Arc<RamDevice>) -> Box<dyn ObjectDevice>) -> Self {
        let (ram, vault) = (Arc::new(RamDevice::with_crash_model(bytes)), Vault::new());
        Self { device: open(&vault, &ram), ram, vault, open }
    }
}

impl Harness for Sealed {
    fn device(&self) -> &dyn ObjectDevice {
        self.device.as_ref()
    }

    fn reopen(&mut self) {
        self.device.close().unwrap();
        self.device = (self.open)(&self.vault, &self.ram);
    }

    fn can_crash(&self) -> bool {
        true
    }

    fn crash(&mut self) {
        self.ram.crash();
        self.device = (self.open)(&self.vault, &self.ram);
    }
}

onode_object::conformance!(encrypted, Sealed::encrypted);
onode_object::conformance!(authenticated, Sealed::authenticated);
onode_object::conformance!(keyed, Sealed::keyed);

#[test]
fn encrypted_memory_is_filled_overwritten_and_cut() {
    common::full::run(&mut Sealed::encrypted(3 << 20), 8);
}

#[test]
fn authenticated_memory_is_filled_overwritten_and_cut() {
    common::full::run(&mut Sealed::authenticated(3 << 20), 8);
}

#[test]
fn memory_of_a_directory_with_a_key_is_filled_overwritten_and_cut() {
    common::full::run(&mut Sealed::keyed(3 << 20), 8);
}
