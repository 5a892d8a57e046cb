//! Durable references without names: filled, replaced, emptied, across runs and processes.

use crate::common::Place;
use onode_heap::{ErrorKind, Heap, Slots};

fn filled(heap: &Heap, slots: &Slots, slot: u64, bytes: usize, byte: u8) -> u64 {
    let mut block = heap.allocate(bytes).expect("room");
    block.fill(byte);
    let address = block.address();
    slots.fill(slot, block, false).expect("a slot");
    address
}

#[test]
fn what_a_slot_holds_is_there_in_the_next_run_and_nothing_else_is() {
    let place = Place::new("slots");
    let mut expected = Vec::new();
    {
        let heap = place.open();
        let slots = heap.slots(b"table").expect("a table");
        for slot in [0, 1, 7, Slots::COUNT - 1] {
            expected.push((slot, filled(&heap, &slots, slot, 100 + 5000 * slot.min(9) as usize, slot as u8)));
        }
        // Replaced: what was there is free.
        expected[1].1 = filled(&heap, &slots, 1, 40_000, 99);
        let gone = filled(&heap, &slots, 3, 64, 3);
        let block = slots.take(3).expect("a block");
        assert_eq!((block.address(), block[0]), (gone, 3));
        let kinds = [slots.take(3).map(drop), slots.address(Slots::COUNT).map(drop)].map(|kind| kind.unwrap_err().kind);
        assert_eq!(kinds, [ErrorKind::NotFound, ErrorKind::Invalid]);
    }
    let heap = place.open();
    let slots = heap.slots(b"table").expect("the table");
    assert_eq!(slots.address(3).expect("a slot"), None);
    for (slot, address) in expected {
        assert_eq!(slots.address(slot).expect("a slot"), Some(address));
        let byte = heap.pointer_at(address).expect("a block");
        // SAFETY: a block of the heap that nobody stores to.
        let byte = unsafe { byte.read() };
        assert_eq!(byte, if slot == 1 { 99 } else { slot as u8 });
    }
    drop(slots);
    let free = || heap.files().statfs().blocks_free;
    let before = free();
    let slots = heap.slots(b"table").expect("the table");
    for round in 0..2000 {
        filled(&heap, &slots, round % 5, 9000, 1);
    }
    (0..5).for_each(|slot| drop(slots.take(slot).expect("a block")));
    let _ = heap.files().maintain(4);
    // Caches and a longer log keep some; blocks that nobody has would be 18 MB.
    assert!(free() + 1000 >= before, "{} blocks are free, {before} were", free());
}

#[test]
fn a_block_is_held_once() {
    let place = Place::new("slots-once");
    let heap = place.open();
    let slots = heap.slots(b"table").expect("a table");
    let address = filled(&heap, &slots, 0, 64, 1);
    let pointer = heap.pointer_at(address).expect("a block");
    // SAFETY: the block is the slot's, which is what is refused.
    let error = unsafe { heap.free(pointer) }.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    let block = heap.allocate(64).expect("room");
    let (block, error) = slots.fill(Slots::COUNT, block, false).unwrap_err().into_parts();
    assert_eq!(error.kind, ErrorKind::Invalid);
    slots.fill(1, block, true).expect("a slot");
    assert_ne!(slots.address(0).unwrap(), slots.address(1).unwrap());
}
