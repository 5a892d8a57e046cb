//! The suite that every device runs, over memory with content compressed.

mod common;

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
    common::full::run(&mut Ram::new(3 << 20, Compression::Fast));
}
