//! Any bytes as a frame: no panic, and whatever is accepted is in its one form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onode_object::RamDevice;
use onode_object::wire::{Reply, Request, frame, serve};

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    // Once more with a sound header, so that the fuzzer need not find checksums.
    if let Some((&command, body)) = bytes.split_first() {
        let mut made = frame::start(command, 1);
        made.extend_from_slice(body);
        if let Some(made) = frame::finish(made) {
            check(&made);
        }
    }
});

fn check(bytes: &[u8]) {
    if let Ok((sequence, Some(request))) = Request::decode(bytes) {
        assert_eq!(request.encode(sequence).as_deref(), Some(bytes));
    }
    if let Ok((sequence, Some(reply))) = Reply::decode(bytes) {
        assert_eq!(reply.encode(sequence).as_deref(), Some(bytes));
    }
    let device = RamDevice::new(1 << 20);
    assert!(matches!(Reply::decode(&serve(&device, bytes)), Ok((_, Some(_)))));
}
