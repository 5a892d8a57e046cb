//! Transactions of users: what the suite of every device says of a view, and of a device on which
//! every commit is one.

use crate::common::transacting::Transacting;
use onode_object::conformance::Harness;
use onode_object::{ObjectDevice, RamDevice};
use onode_services::{Staged, View};
use std::sync::Arc;

/// A view of memory, which nothing outlives.
struct Viewed(View<RamDevice>);

impl Viewed {
    fn new(bytes: u64, most_bytes: usize) -> Self {
        let opened = Staged::open_limited(Arc::new(RamDevice::new(bytes)), Arc::new(()), most_bytes).unwrap();
        Self(opened.0.begin().unwrap())
    }
}

impl Harness for Viewed {
    fn device(&self) -> &dyn ObjectDevice {
        &self.0
    }

    fn reopen(&mut self) {}

    fn can_crash(&self) -> bool {
        false
    }

    fn crash(&mut self) {}
}

onode_object::conformance!(view_in_memory, |bytes| Viewed::new(bytes, 8 << 20));
// Content goes to hidden objects at once.
onode_object::conformance!(view_of_hidden_objects, |bytes| Viewed::new(bytes, 4 << 10));

/// Memory on which every commit is a transaction of a user.
struct Transacted {
    ram: Arc<RamDevice>,
    most_bytes: usize,
    device: Transacting<RamDevice>,
}

impl Transacted {
    /// Large ones need as much again until they are in place, which the suite does not reckon with.
    fn new(bytes: u64, most_bytes: usize) -> Self {
        let ram = Arc::new(RamDevice::with_crash_model(bytes));
        Self { device: Transacting::open(Arc::clone(&ram), most_bytes).unwrap(), ram, most_bytes }
    }
}

impl Harness for Transacted {
    fn device(&self) -> &dyn ObjectDevice {
        &self.device
    }

    fn reopen(&mut self) {
        self.device.close().unwrap();
        self.device = Transacting::open(Arc::clone(&self.ram), self.most_bytes).unwrap();
    }

    fn can_crash(&self) -> bool {
        true
    }

    fn crash(&mut self) {
        self.ram.crash();
        self.device = Transacting::open(Arc::clone(&self.ram), self.most_bytes).unwrap();
    }
}

onode_object::conformance!(transactions_at_once, |bytes| Transacted::new(bytes, 64 << 20));
