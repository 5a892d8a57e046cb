//! The conformance suite through the wire: host and device share nothing but bytes.

use onode_object::conformance::Harness;
use onode_object::wire::{RemoteDevice, Transport, serve};
use onode_object::{ObjectDevice, RamDevice};

/// The device's end, in the same process.
struct Wire(RamDevice);

impl Transport for Wire {
    fn call(&self, request: &[u8]) -> Vec<u8> {
        serve(&self.0, request)
    }
}

struct Remote(RemoteDevice<Wire>);

impl Harness for Remote {
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
        self.0.transport().0.crash();
    }

    fn extent_bytes(&self) -> u64 {
        4096
    }
}

onode_object::conformance!(ram_behind_a_wire, |bytes: u64| {
    Remote(RemoteDevice::new(Wire(RamDevice::with_crash_model(bytes + bytes / 4 + 65_536))))
});
