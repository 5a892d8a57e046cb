//! The suite that every device runs, over memory with content compressed or encrypted.

use crate::common;
use crate::common::vault::Vault;
use onode_object::conformance::Harness;
use onode_object::{Compression, ObjectDevice, RamDevice};
use onode_services::{Authenticated, Compressed, Encrypted};
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

/// Memory that is encrypted.
struct Sealed {
    ram: Arc<RamDevice>,
    vault: Vault,
    device: Encrypted<RamDevice>,
}

impl Sealed {
    /// What tells how to open blocks takes some, which the suite does not reckon with.
    fn new(bytes: u64) -> Self {
        let (ram, vault) = (Arc::new(RamDevice::with_crash_model(bytes + bytes / 16)), Vault::new());
        Self { device: vault.open(&ram), ram, vault }
    }
}

impl Harness for Sealed {
    fn device(&self) -> &dyn ObjectDevice {
        &self.device
    }

    fn reopen(&mut self) {
        self.device.close().unwrap();
        self.device = self.vault.open(&self.ram);
    }

    fn can_crash(&self) -> bool {
        true
    }

    fn crash(&mut self) {
        self.ram.crash();
        self.device = self.vault.open(&self.ram);
    }
}

onode_object::conformance!(encrypted, Sealed::new);

#[test]
fn encrypted_memory_is_filled_overwritten_and_cut() {
    common::full::run(&mut Sealed::new(3 << 20), 8);
}

/// Memory that is authenticated, too.
struct Summed {
    ram: Arc<RamDevice>,
    vault: Vault,
    device: Encrypted<Authenticated<RamDevice>>,
}

impl Summed {
    fn new(bytes: u64) -> Self {
        let (ram, vault) = (Arc::new(RamDevice::with_crash_model(bytes + bytes / 8)), Vault::new());
        Self { device: vault.open_authenticated(&ram), ram, vault }
    }
}

impl Harness for Summed {
    fn device(&self) -> &dyn ObjectDevice {
        &self.device
    }

    fn reopen(&mut self) {
        self.device.close().unwrap();
        self.device = self.vault.open_authenticated(&self.ram);
    }

    fn can_crash(&self) -> bool {
        true
    }

    fn crash(&mut self) {
        self.ram.crash();
        self.device = self.vault.open_authenticated(&self.ram);
    }
}

onode_object::conformance!(authenticated, Summed::new);

#[test]
fn authenticated_memory_is_filled_overwritten_and_cut() {
    common::full::run(&mut Summed::new(3 << 20), 8);
}
